# SPDX-License-Identifier: Apache-2.0
"""The training of train_torch.py with Hugging Face's Accelerate, and a checkpoint after each epoch.

    pip install accelerate
    python docs/examples/train_accelerate.py FOLDER CHECKPOINT    # train_torch.py is beside it
    torchrun --nproc-per-node 2 docs/examples/train_accelerate.py FOLDER CHECKPOINT
"""

import os
import sys
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader
from train_torch import EPOCHS, classifier, photos

import leat
import leat.torch


def main(folder: str, checkpoint: str) -> None:
    # Without cpu=True several processes without GPUs would each train alone.
    accelerator: Any = Accelerator(cpu=not torch.cuda.is_available())
    torch.manual_seed(0)
    with leat.connect() as service:
        job = service.job("accelerate", photos(folder), batch=32, seed=7)
        dataset = leat.torch.IterableDataset(job, device=accelerator.device, epilogue="device")
        loader = DataLoader(dataset, batch_size=None)  # not prepared: each process has its own rows already
        model: Any = classifier(len(job.classes))
        optimizer: Any = torch.optim.AdamW(model.parameters(), lr=1e-3)
        model, optimizer = accelerator.prepare(model, optimizer)
        accelerator.register_for_checkpointing(dataset)
        accelerator.print(f"{accelerator.num_processes} processes")
        if os.path.exists(checkpoint):
            accelerator.load_state(checkpoint)
        for epoch in range(dataset.state_dict()["epoch"], EPOCHS):
            total = torch.zeros(1, device=accelerator.device)
            for batch in loader:
                loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"].long())
                optimizer.zero_grad()
                accelerator.backward(loss)
                optimizer.step()
                total += loss.detach()
            accelerator.save_state(checkpoint)
            loss = accelerator.reduce(total, "mean").item() / len(job)
            accelerator.print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
