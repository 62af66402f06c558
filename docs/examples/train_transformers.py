# SPDX-License-Identifier: Apache-2.0
"""The training of train_torch.py by the Trainer of Hugging Face's transformers, with checkpoints.

    pip install transformers accelerate
    python docs/examples/train_transformers.py FOLDER OUTPUT    # train_torch.py is beside it
    torchrun --nproc-per-node 2 docs/examples/train_transformers.py FOLDER OUTPUT

Stop it at any time and start it again: it continues after the last checkpoint with the very next batch.
"""

import pathlib
import sys
from typing import Any

import torch
import transformers
from torch import nn
from torch.utils.data import DataLoader
from train_torch import EPOCHS, classifier, photos

import leat
import leat.torch


class Classifier(nn.Module):
    """Returns the loss, as the Trainer wants it."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.model = classifier(classes)

    def forward(self, image: torch.Tensor, label: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.model(image)
        return {"loss": nn.functional.cross_entropy(scores, label.long()), "scores": scores}


class Trainer(transformers.Trainer):
    """Takes batches from a job as they are, without Accelerate's sharding."""

    def get_train_dataloader(self) -> Any:
        return DataLoader(self.train_dataset, batch_size=None)


class Position(transformers.TrainerCallback):
    """Stores the position in the data beside each checkpoint of the model."""

    def __init__(self, dataset: leat.torch.IterableDataset) -> None:
        self.dataset = dataset

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            torch.save(self.dataset.state_dict(), f"{args.output_dir}/checkpoint-{state.global_step}/position.pt")


def last_checkpoint(output: str) -> pathlib.Path | None:
    """Returns the last checkpoint with a position, which is written last."""
    found = [file.parent for file in pathlib.Path(output).glob("checkpoint-*/position.pt")]
    return max(found, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)


def main(folder: str, output: str) -> None:
    options = transformers.TrainingArguments(
        output,
        num_train_epochs=EPOCHS,
        learning_rate=1e-3,
        logging_steps=1,
        save_steps=5,
        save_total_limit=2,
        ignore_data_skip=True,  # the dataset continues at its own position
        accelerator_config={"dispatch_batches": False, "split_batches": False},
        use_cpu=not torch.cuda.is_available(),  # otherwise several processes without GPUs would each train alone
        report_to=[],
        disable_tqdm=True,
    )
    transformers.set_seed(0)
    last = last_checkpoint(output)
    with leat.connect() as service:
        job = service.job("transformers", photos(folder), batch=32, seed=7)
        dataset = leat.torch.IterableDataset(job)
        if last:
            dataset.load_state_dict(torch.load(last / "position.pt"))
        trainer = Trainer(Classifier(len(job.classes)), options, train_dataset=dataset, callbacks=[Position(dataset)])
        trainer.train(resume_from_checkpoint=str(last) if last else None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
