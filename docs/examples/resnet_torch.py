# SPDX-License-Identifier: Apache-2.0
"""A small ResNet in PyTorch, trained from a folder of photos, one folder a class.

    python docs/examples/resnet_torch.py FOLDER [--epochs 10] [--checkpoint FILE]
    torchrun --nproc-per-node 2 docs/examples/resnet_torch.py FOLDER        # each process pulls its own rows

With --checkpoint the training's place is kept in the file beside the model, and a run that was killed goes on there,
with the very next batch, on any number of processes.
"""

import argparse
import os

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader

import leat
import leat.torch
from leat import fn


@leat.pipeline
def photos(folder: str, size: int) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=size, area=(0.35, 1.0))
    image = fn.flip(image, horizontal=fn.coin_flip(0.5))
    image = fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
    return {"image": fn.transpose(image, perm=(2, 0, 1)), "label": label}


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.convolved = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.convolved(x) + self.shortcut(x))


def resnet(classes: int, width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        Block(width, width, 1),
        Block(width, 2 * width, 2),
        Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, classes),
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="of all processes together")
    parser.add_argument("--size", type=int, default=64, help="of the photos, in pixels")
    parser.add_argument("--width", type=int, default=32, help="channels of the first layer")
    parser.add_argument("--checkpoint", help="a file to go on from, written after each epoch")
    parser.add_argument("--save-every", type=int, default=0, help="steps; 0: after each epoch only")
    return parser.parse_args()


def main() -> None:
    args = parse()
    several = "RANK" in os.environ  # of torchrun
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    if several:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    first = not several or distributed.get_rank() == 0
    torch.manual_seed(0)
    with leat.connect() as service:
        job = service.job("resnet", photos(args.folder, args.size), batch=args.batch, seed=7)
        dataset = leat.torch.IterableDataset(job, device=device, epilogue="device")
        loader = DataLoader(dataset, batch_size=None)
        model = resnet(len(job.classes), args.width).to(device)
        trained = nn.parallel.DistributedDataParallel(model) if several else model
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        epoch, total = 0, 0.0
        if args.checkpoint and os.path.exists(args.checkpoint):
            saved = torch.load(args.checkpoint, map_location=device)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            dataset.load_state_dict(saved["data"])
            epoch, total = saved["data"]["epoch"], saved["total"]
            if first:
                print(f"going on in epoch {epoch + 1} after step {saved['data']['step']}")

        def save() -> None:
            if args.checkpoint and first:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "data": dataset.state_dict()}
                torch.save({**state, "total": total}, args.checkpoint + ".new")
                os.replace(args.checkpoint + ".new", args.checkpoint)
                print(f"saved in epoch {epoch + 1}", flush=True)

        for epoch in range(epoch, args.epochs):
            dataset.set_epoch(epoch)
            for batch in loader:
                loss = nn.functional.cross_entropy(trained(batch["image"]), batch["label"].long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach())
                step = dataset.state_dict()["step"]  # 0: the epoch is over
                if args.save_every and step and step % args.save_every == 0:
                    save()
            if first:
                print(f"epoch {epoch + 1}: loss {total / len(job):.6f}", flush=True)
            total = 0.0
            save()
    if several:
        # Until then gloo's threads hold tensors: PyTorch 1.13 may hang if the model ends before them.
        distributed.barrier()  # pyright: ignore[reportUnknownMemberType]
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
