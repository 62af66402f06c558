# SPDX-License-Identifier: Apache-2.0
"""One measured trainer without a model: prints a line of JSON.

puller.py numpy|kept|jax|start|paced|together|epochs|cold
          --images DIR|URL.tar,… [--reduce auto] [--address ADDR] --seconds S --name JOB
"""

import argparse
import json
import os
import resource
import statistics
import sys
import time

BATCH, SIDE, WARM_UP = 64, 224, 4


def pipeline(images, reduce="none"):
    import leat
    from leat import fn

    @leat.pipeline
    def train():
        if images.endswith(".tar"):
            encoded, label = fn.readers.webdataset(images.split(","), ext=("jpg", "cls"), types=("encoded", "int32"))
        else:
            encoded, label = fn.readers.image_folder(images)
        image = fn.random_resized_crop(fn.decode(encoded, reduce=reduce), size=(SIDE, SIDE))
        return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}

    return train()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def rate(batches, seconds):
    """Returns images per second and processor seconds per gigabyte, after a few batches; as peers/measured.py does."""
    it = iter(batches)
    for _ in range(WARM_UP):
        next(it)
    start, cpu, images = time.perf_counter(), cpu_seconds(), 0
    while time.perf_counter() - start < seconds:
        batch = next(it)["image"]
        if hasattr(batch, "block_until_ready"):
            batch.block_until_ready()
        images += len(batch)
    elapsed = time.perf_counter() - start
    gigabytes = images * SIDE * SIDE * 3 / 1e9
    return {"img_per_s": images / elapsed, "cpu_s_per_gb": (cpu_seconds() - cpu) / gigabytes}


def as_numpy(job, args):
    with job.batches(epochs=0) as batches:
        result = rate(batches, args.seconds)
        return result | {"stats": batches.stats()}


def kept(job, args):
    """NumPy's rate from the fifth epoch on: workers decide once per epoch what to keep of records."""
    with job.batches(epochs=0) as batches:
        for _ in range(4 * len(job)):
            next(batches)
        return rate(batches, args.seconds)


def as_jax(job, args):
    import jax
    import leat.jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    with leat.jax.batches(job, sharding=sharding, epochs=0) as batches:
        return rate(batches, args.seconds)


def paced(job, args):
    """The wait of each step, at half the service's speed; prints when it is warm, so that a worker can be killed."""
    waits = []
    with job.batches(epochs=0) as batches:
        start = time.perf_counter()
        for _ in range(2 * WARM_UP):
            next(batches)
        step_s = 2 * (time.perf_counter() - start) / (2 * WARM_UP)
        print("warm", flush=True)
        end = time.perf_counter() + args.seconds
        while time.perf_counter() < end:
            begin = time.perf_counter()
            next(batches)
            waits.append(time.perf_counter() - begin)
            time.sleep(max(0.0, step_s - waits[-1]))  # the trainer's step
    return {"median_ms": 1e3 * statistics.median(waits), "longest_ms": 1e3 * max(waits), "steps": len(waits)}


def together(job, args):
    """Eight epochs that begin when a line comes: several trainers begin at the same time."""
    print("ready", flush=True)
    sys.stdin.readline()
    begin, images = time.perf_counter(), 0
    with job.batches(epochs=8) as batches:
        for batch in batches:
            images += len(batch["image"])
    return {"img_per_s": images / (time.perf_counter() - begin)}


def epochs(job, args):
    """Pulls an epoch for each line that comes; the line is the seconds that each of the trainer's steps takes. Prints
    images per second."""
    print("ready", flush=True)
    with job.batches(epochs=0) as batches:
        for line in sys.stdin:
            begin, images, step_s = time.perf_counter(), 0, float(line)
            for _ in range(len(job)):
                images += len(next(batches)["image"])
                time.sleep(step_s)
            print(images / (time.perf_counter() - begin), flush=True)
    return {}


def cold(job, args):
    """Images per second of the first epoch, since before the service was asked, and of the tenth."""
    from peers import measured
    with job.batches(epochs=measured.EPOCHS) as batches:
        first, tenth = measured.epochs(args.begin, (batch["image"] for batch in batches), BATCH * len(job))
    return {"first": first, "tenth": tenth}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("numpy", "kept", "jax", "start", "paced", "together", "epochs", "cold"))
    parser.add_argument("--images", required=True)
    parser.add_argument("--reduce", default="none")
    parser.add_argument("--address")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--name", default="bench")
    args = parser.parse_args()
    import leat
    begin = args.begin = time.perf_counter()
    with leat.connect(args.address) as service:
        connected = time.perf_counter()
        job = service.job(args.name, pipeline(args.images, args.reduce), batch=BATCH, seed=7, shuffle="global",
                          last_batch="fill")
        if args.mode == "start":
            with job.batches(epochs=1) as batches:
                next(batches)
                first = time.perf_counter()
            result = {"connect_ms": 1e3 * (connected - begin), "first_batch_ms": 1e3 * (first - begin)}
        else:
            measured = {"numpy": as_numpy, "kept": kept, "jax": as_jax, "paced": paced, "together": together,
                        "epochs": epochs, "cold": cold}
            result = measured[args.mode](job, args)
    print("RESULT " + json.dumps(result), flush=True)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
