# SPDX-License-Identifier: Apache-2.0
# pyright: basic
"""A small transformer in PyTorch on a mixture of three packed corpora, on several processes.

    torchrun --nproc-per-node 2 transformer_torchrun.py FOLDER [--stop STEPS]    # packed_corpora.py is beside it

It makes the corpora in FOLDER, and saves model and position there when it stops. Started again on any number of
processes, it continues with the very next batch. It prints the hash of each batch, and the loss to its last bit.
"""

import argparse
import os
import pathlib

import torch
from packed_corpora import BATCH, LENGTH, VOCABULARY, digest, make, mixture
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import leat
import leat.torch

LAYERS, HEADS, WIDTH, EPOCHS, RATE = 2, 2, 32, 2, 0.003
Batch = dict[str, torch.Tensor]


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.scores = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, batch: Batch) -> torch.Tensor:
        segments = batch["segment_ids"]
        hidden = segments[:, :, None] != segments[:, None, :]  # tokens of other documents
        hidden = hidden | torch.ones(LENGTH, LENGTH, device=hidden.device).triu(1).bool()
        x = self.tokens(batch["tokens"]) + self.positions(batch["positions"])
        return self.scores(self.layers(x, hidden.repeat_interleave(HEADS, 0)))


def loss_of(scores: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the sum over tokens that have a next one in their document, and their number."""
    segments, following = batch["segment_ids"], batch["tokens"][:, 1:].long()
    counts = (segments[:, :-1] == segments[:, 1:]) & (segments[:, 1:] > 0)
    losses = nn.functional.cross_entropy(scores[:, :-1].transpose(1, 2), following, reduction="none")
    return (losses * counts).sum(), counts.sum()


def gathered(batch: Batch) -> Batch:
    """Returns the rows of all processes."""
    whole: Batch = {}
    for name, own in batch.items():
        parts = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
        distributed.all_gather(parts, own)
        whole[name] = torch.cat(parts)
    return whole


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--stop", type=int, metavar="STEPS", help="stop after so many")
    args = parser.parse_args()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    first = distributed.get_rank() == 0
    if first:
        make(args.folder)
    distributed.barrier()
    torch.manual_seed(0)
    transformer = Transformer().to(device)
    model = DistributedDataParallel(transformer)
    optimizer = torch.optim.AdamW(transformer.parameters(), lr=RATE)
    checkpoint, position = args.folder / "checkpoint.pt", None
    if checkpoint.exists():
        saved = torch.load(str(checkpoint), map_location=device)
        transformer.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        position = bytes(saved["position"].tolist())
    with leat.connect() as service:  # on several machines: leat.connect("HOST:7411")
        job = service.job("transformer", mixture(args.folder), batch=BATCH, seed=7)
        part = BATCH // distributed.get_world_size()
        own = range(distributed.get_rank() * part, (distributed.get_rank() + 1) * part)
        with leat.torch.batches(job, rows=own, device=device, epochs=EPOCHS) as batches:
            if position is not None:
                batches.set_state(position)
            for batch in batches:
                loss, count = loss_of(model(batch), batch)
                distributed.all_reduce(count)
                # DistributedDataParallel takes the mean over the processes.
                mean = loss * distributed.get_world_size() / count
                optimizer.zero_grad()
                mean.backward()
                optimizer.step()
                total = loss.detach()
                distributed.all_reduce(total)
                hashed = digest({name: whole.cpu().numpy() for name, whole in gathered(batch).items()})
                assert batches.epoch is not None and batches.step is not None
                if first:
                    at = f"epoch {batches.epoch} step {batches.step}"
                    print(f"{at}: {hashed}, loss {float(total / count):.9g}", flush=True)
                if batches.epoch * len(job) + batches.step + 1 == args.stop:
                    break
            if first:
                state = {"model": transformer.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({**state, "position": torch.tensor(list(batches.position()))}, str(checkpoint) + ".new")
                os.replace(str(checkpoint) + ".new", checkpoint)
    # Until then gloo's threads hold tensors: PyTorch 1.13 may hang if the model ends before them.
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
