# SPDX-License-Identifier: Apache-2.0
"""The cost of a step for the training thread while the data is ready: prints a line of JSON.

overhead.py --images DIR [--address ADDR] [--rounds N]

It measures the time inside next(), in microseconds: for NumPy batches; for global arrays on eight emulated devices,
which a thread places while the trainer takes a step (it waits for 2 ms) or, without steps, as fast as that thread can;
and the time that JAX alone needs to make such arrays from data already on the devices
(jax.make_array_from_single_device_arrays), and to bring it there too (jax.device_put). The window is filled first and
then emptied, in turns.
"""

import argparse
import json
import os
import statistics
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

BATCH, SIDE, WINDOW, TAKEN = 64, 64, 32, 16
PATIENCE_S = 120
STEP_S = 0.002


def pipeline(images):
    import leat
    from leat import fn

    @leat.pipeline
    def train():
        encoded, label = fn.readers.image_folder(images)
        return {"image": fn.random_resized_crop(fn.decode(encoded), size=(SIDE, SIDE)), "label": label}

    return train()


def timed(call, times):
    start = time.perf_counter()
    result = call()
    times.append(1e6 * (time.perf_counter() - start))
    return result


def fill(batches):
    """Waits until the batches of a round have arrived."""
    until = time.monotonic() + PATIENCE_S
    while (stats := batches.stats())["rows"] < (stats["steps"] + TAKEN + 2) * BATCH:
        if time.monotonic() > until:
            raise SystemExit(f"no {TAKEN} batches within {PATIENCE_S} s: {stats}")
        time.sleep(0.1)


def numpy_round(batches, times):
    fill(batches)
    for _ in range(TAKEN):
        timed(lambda: next(batches), times["next() of NumPy batches"])


def jax_round(batches, times):
    import jax

    fill(batches)
    for _ in range(TAKEN):
        timed(lambda: next(batches), times["next() of jax.Arrays, without steps"])
    fill(batches)
    for _ in range(TAKEN):
        time.sleep(STEP_S)
        batch = timed(lambda: next(batches), times["next() of jax.Arrays"])
    parts = {name: [shard.data for shard in array.addressable_shards] for name, array in batch.items()}
    host = {name: [jax.device_get(part) for part in on_devices] for name, on_devices in parts.items()}
    devices = {name: [next(iter(part.devices())) for part in on_devices] for name, on_devices in parts.items()}

    def make(parts):
        return {
            name: jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts[name])
            for name, array in batch.items()
        }

    for _ in range(TAKEN):
        timed(lambda: make(parts), times["make_array_from_single_device_arrays"])
        timed(
            lambda: make({name: jax.device_put(host[name], devices[name]) for name in host}),
            times["device_put and make_array_from_single_device_arrays"],
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", required=True)
    parser.add_argument("--address")
    parser.add_argument("--rounds", type=int, default=8)
    args = parser.parse_args()
    import collections

    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    import leat
    import leat.jax

    times = collections.defaultdict(list)
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    with leat.connect(args.address) as service:
        job = service.job("overhead", pipeline(args.images), batch=BATCH, seed=7)
        with job.batches(epochs=0, window=WINDOW) as plain:
            with leat.jax.batches(job, sharding=sharding, epochs=0, window=WINDOW) as placed:
                for _ in range(4):  # compiles, and lets JAX choose its call
                    next(plain), next(placed)
                for _ in range(args.rounds):
                    numpy_round(plain, times)
                    jax_round(placed, times)
    print("RESULT " + json.dumps({name: statistics.median(values) for name, values in times.items()}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
