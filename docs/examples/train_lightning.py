# SPDX-License-Identifier: Apache-2.0
"""The training of train_torch.py in Lightning, on one device or several, with validation and a checkpoint.

    pip install lightning torchdata
    python docs/examples/train_lightning.py FOLDER [--devices 2] [--resume checkpoints/last.ckpt]
"""

import argparse
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torchdata.stateful_dataloader import StatefulDataLoader
from train_torch import EPOCHS, SIZE, classifier, photos

import leat
import leat.torch
from leat import fn


@leat.pipeline
def validation(folder: str) -> dict[str, leat.Node]:
    """Has no random operator: each epoch has the same pixels."""
    encoded, label = fn.readers.image_folder(folder)
    image = fn.resize(fn.decode(encoded), size=SIZE)
    image = fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
    return {"image": fn.transpose(image, perm=(2, 0, 1)), "label": label}


class Classifier(lightning.LightningModule):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.model = classifier(classes)

    def training_step(self, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
        loss = nn.functional.cross_entropy(self.model(batch["image"]), batch["label"].long())
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch: dict[str, torch.Tensor], index: int) -> None:
        right = (self.model(batch["image"]).argmax(1) == batch["label"]) & batch["valid"]
        self.log("right", right.sum().float(), reduce_fx="sum", sync_dist=True)

    def on_train_epoch_end(self) -> None:
        loss, right = (float(self.trainer.callback_metrics[name]) for name in ("loss", "right"))
        self.print(f"epoch {self.current_epoch}: loss {loss:.4f}, {right:.0f} photos are right", flush=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Photos(lightning.LightningDataModule):
    """Two jobs. The loaders find their rank when their first batch is read."""

    def __init__(self, service: leat.Service, folder: str) -> None:
        super().__init__()
        self.train = service.job("lightning", photos(folder), batch=32, seed=7)
        test = validation(folder)
        self.test = service.job("lightning-test", test, batch=32, shuffle=False, last_batch="mask")

    def train_dataloader(self) -> Any:
        return StatefulDataLoader(leat.torch.IterableDataset(self.train), batch_size=None)

    def val_dataloader(self) -> Any:
        return StatefulDataLoader(leat.torch.IterableDataset(self.test), batch_size=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--resume", metavar="CHECKPOINT")
    args = parser.parse_args()
    lightning.seed_everything(0)
    with leat.connect() as service:
        data = Photos(service, args.folder)
        trainer = lightning.Trainer(
            max_epochs=args.epochs,
            devices=args.devices,
            use_distributed_sampler=False,  # each process has its own rows already
            num_sanity_val_steps=0,
            callbacks=[ModelCheckpoint("checkpoints", save_last=True, every_n_train_steps=2)],
            logger=False,
            enable_progress_bar=False,
        )
        trainer.fit(Classifier(len(data.train.classes)), data, ckpt_path=args.resume)


if __name__ == "__main__":
    main()
