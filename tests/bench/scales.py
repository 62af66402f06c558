#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scales.py [--rounds N] [--program reduced_bench] FOLDER: whole JPEG photos to 224 × 224, at full resolution and at a
smaller scale of the decoder, by libraries other than Leat.

For each way: milliseconds per photo (processor time, medians of rounds that take turns), the ratio of full resolution
to it, and its pixels' difference from the same library's full resolution, of 255: the mean, and the worst photo's.
Pillow and torchvision are measured if they are installed; torchvision has no scaled decoding, and is included for the
time of its full one. With --program, Leat's lines follow.
"""

import argparse
import io
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

SIDE = 224


def pillow_ways():
    from PIL import Image

    def decode(data, draft):
        image = Image.open(io.BytesIO(data))
        if draft:
            image.draft("RGB", (SIDE, SIDE))
        return np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))

    return {"Pillow": lambda data: decode(data, False), "Pillow, draft": lambda data: decode(data, True)}


def torchvision_ways():
    import torch
    from torchvision import io as images
    from torchvision.transforms import functional

    torch.set_num_threads(1)

    def decode(data):
        image = images.decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), images.ImageReadMode.RGB)
        return functional.resize(image, [SIDE, SIDE], antialias=True).permute(1, 2, 0).numpy()

    return {"torchvision": decode}


def measure(name, ways, photos, rounds):
    """The first way is full resolution."""
    times = {way: [] for way in ways}
    apart = {way: [] for way in ways}
    for photo in photos:
        pixels = {way: run(photo).astype(np.int32) for way, run in ways.items()}
        for way in ways:
            apart[way].append(float(np.abs(pixels[way] - pixels[name]).mean()))
    for _ in range(rounds):
        for way, run in ways.items():
            begin = time.process_time()
            for photo in photos:
                run(photo)
            times[way].append((time.process_time() - begin) * 1e3 / len(photos))
    full = statistics.median(times[name])
    for way in ways:
        taken = statistics.median(times[way])
        print(f"{way:28} {taken:8.2f} ms   {full / taken:.2f} x   apart {statistics.mean(apart[way]):.2f} "
              f"(at worst {max(apart[way]):.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", help="reduced_bench, of the release tree")
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    photos = [path.read_bytes() for path in sorted(args.folder.rglob("*")) if path.is_file()]
    if not photos:
        sys.exit(f"no files under {args.folder}")
    for name, make in {"Pillow": pillow_ways, "torchvision": torchvision_ways}.items():
        try:
            ways = make()
        except ImportError as error:
            print(f"{name}: not measured: {error}")
            continue
        measure(name, ways, photos, args.rounds)
    if args.program:
        subprocess.run([args.program, str(args.rounds), args.folder], check=True)


if __name__ == "__main__":
    main()
