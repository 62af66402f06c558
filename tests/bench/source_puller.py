# SPDX-License-Identifier: Apache-2.0
"""source_puller.py KIND FOLDER: a trainer without a model, of a mixture or of one source, for sources.py.

FOLDER has a folder of images for each source. KIND is `folders` (rows a second of a job over FOLDER and of a mixture of
its folders, in slices that take turns), `opened` (a job over FOLDER, up to its first batch),
`many` (the same for a mixture of its folders in even shares) or `shares` (the worst error of three shares after a
step). It prints a line "RESULT {json}"."""

import argparse
import json
import pathlib
import statistics
import time

import numpy as np

import leat
from leat import fn

BATCH = 64
SHARES = (0.7, 0.2, 0.1)
STEPS = 400
WARM, AHEAD, SLICES = 40, 8, 8


@leat.pipeline
def photos(path, side):
    encoded, label = fn.readers.image_folder(str(path))
    image = fn.random_resized_crop(fn.decode(encoded), size=(side, side))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}


def sources_of(folder, side):
    """Returns a pipeline and the number of files for each folder."""
    folders = [each for each in sorted(folder.iterdir()) if each.is_dir()]
    return ({each.name: photos(each, side) for each in folders},
            {each.name: sum(file.is_file() for file in each.rglob("*")) for each in folders})


def rates(one, mixed, seconds):
    """Returns the ratio of the mixture's rows a second to those of one source, and both."""
    with one.batches(epochs=0) as of_one, mixed.batches() as of_mixed:
        for batches in (of_one, of_mixed):  # a pass, which fills the caches
            take(batches, WARM)
        slices = [[slice_rate(batches, seconds / SLICES) for batches in (of_one, of_mixed)] for _ in range(SLICES)]
    return {"ratio": statistics.median(mixed / one for one, mixed in slices), "slices": slices}


def take(batches, steps):
    for _ in range(steps):
        next(batches)


def slice_rate(batches, seconds):
    take(batches, AHEAD)  # those that are there already
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        next(batches)
        steps += 1
    return BATCH * steps / (time.perf_counter() - begin)


def first_batch(make):
    """Returns the seconds until the job is there, and from then to its first batch."""
    begin = time.perf_counter()
    job = make()
    created = time.perf_counter()
    with job.batches() as batches:
        next(batches)
        return {"created_s": created - begin, "first_batch_s": time.perf_counter() - created}


def worst_error(job, names):
    """Returns by how many rows a source is off its share after a step, at worst."""
    rows = np.zeros(len(names), np.int64)
    worst = 0.0
    with job.batches() as batches:
        for step in range(1, STEPS + 1):
            rows += np.bincount(next(batches)["source"], minlength=len(names))
            worst = max(worst, np.abs(rows - BATCH * step * np.array(SHARES)).max())
    return {"worst_rows": worst}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--address", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    args = parser.parse_args()
    with leat.connect(args.address) as service:
        if args.kind == "folders":
            pipelines, counts = sources_of(args.folder, 224)
            one = service.job("one", photos(args.folder, 224), batch=BATCH, seed=7)
            mixed = service.job("mixed", leat.mix(pipelines, counts), batch=BATCH, seed=7)
            result = rates(one, mixed, 2 * args.seconds)
        elif args.kind == "shares":
            pipelines, _ = sources_of(args.folder, 8)
            mixed = leat.mix(pipelines, dict(zip(pipelines, SHARES)), source_field="source")
            result = worst_error(service.job("shares", mixed, batch=BATCH, seed=7), list(pipelines))
        else:
            pipelines, _ = sources_of(args.folder, 64)
            mixed = leat.mix(pipelines, dict.fromkeys(pipelines, 1)) if args.kind == "many" else None
            last = {} if mixed else {"last_batch": "stream"}
            result = first_batch(lambda: service.job(args.kind, mixed or photos(args.folder, 64), batch=1024, seed=7,
                                                     **last))
    print("RESULT", json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
