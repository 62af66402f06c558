# SPDX-License-Identifier: Apache-2.0
"""A linear classifier of photos in PyTorch: tensors from a job, in torch's own DataLoader.

    python docs/examples/train_torch.py FOLDER
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

import leat
import leat.torch
from leat import fn

SIZE, EPOCHS = 16, 4


@leat.pipeline
def photos(folder: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=SIZE, area=(0.35, 1.0))
    image = fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
    return {"image": fn.transpose(image, perm=(2, 0, 1)), "label": label}


def classifier(classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, classes))


def main(folder: str) -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with leat.connect() as service:
        job = service.job("torch", photos(folder), batch=32, seed=7)
        dataset = leat.torch.IterableDataset(job, device=device, epilogue="device")
        loader = DataLoader(dataset, batch_size=None)  # the batches are the job's
        model = classifier(len(job.classes)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for epoch in range(EPOCHS):
            total = 0.0
            for batch in loader:
                loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"].long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach())
            print(f"epoch {epoch}: loss {total / len(job):.4f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
