# SPDX-License-Identifier: Apache-2.0
"""The training of train_torch.py with torchdata's StatefulDataLoader, whose state is part of the checkpoint.

    pip install torchdata
    python docs/examples/resume_torch.py FOLDER CHECKPOINT.pt    # train_torch.py is beside it

Stop it at any time and start it again: it continues after the last checkpoint with the very next batch.
"""

import os
import sys

import torch
from torch import nn
from torchdata.stateful_dataloader import StatefulDataLoader
from train_torch import EPOCHS, classifier, photos

import leat
import leat.torch


def main(folder: str, checkpoint: str) -> None:
    torch.manual_seed(0)
    with leat.connect() as service:
        job = service.job("stateful", photos(folder), batch=32, seed=7)
        loader = StatefulDataLoader(leat.torch.IterableDataset(job), batch_size=None)
        model = classifier(len(job.classes))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        step = 0
        if os.path.exists(checkpoint):
            saved = torch.load(checkpoint, map_location=torch.device("cpu"))
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            loader.load_state_dict(saved["loader"])
            step = saved["step"]
            print(f"continues after step {step}", flush=True)
        while step < EPOCHS * len(job):
            for batch in loader:
                loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"].long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                if step % 5 == 0:
                    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                    torch.save({**state, "loader": loader.state_dict()}, checkpoint + ".new")
                    os.replace(checkpoint + ".new", checkpoint)
                print(f"step {step}: loss {float(loss.detach()):.6f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
