# SPDX-License-Identifier: Apache-2.0
"""The training of train_torch.py on several processes, each with its own rows of every batch.

    torchrun --nproc-per-node 2 docs/examples/train_torchrun.py FOLDER    # train_torch.py is beside it
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from train_torch import EPOCHS, classifier, photos

import leat
import leat.torch


def main(folder: str) -> None:
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    torch.manual_seed(0)
    with leat.connect() as service:
        job = service.job("torchrun", photos(folder), batch=32, seed=7)  # 32 rows of all processes together
        dataset = leat.torch.IterableDataset(job, device=device, epilogue="device")
        loader = DataLoader(dataset, batch_size=None)
        model = DistributedDataParallel(classifier(len(job.classes)).to(device))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for epoch in range(EPOCHS):
            total = 0.0
            for batch in loader:
                loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"].long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach())
            if distributed.get_rank() == 0:
                print(f"epoch {epoch}: loss {total / len(job):.4f} of the rows of rank 0", flush=True)
    # Until then gloo's threads hold tensors: PyTorch 1.13 may hang if the model ends before them.
    distributed.barrier()  # pyright: ignore[reportUnknownMemberType]
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
