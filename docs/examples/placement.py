# SPDX-License-Identifier: Apache-2.0
"""Arrays of each process made into global ones, and back: the placement functions that Loadax has, for any mesh.

    python docs/examples/placement.py FOLDER            # of photos: one process, eight emulated devices
    python docs/examples/placement.py FOLDER --processes 2 --process 0 --coordinator 127.0.0.1:9000 &
    python docs/examples/placement.py FOLDER --processes 2 --process 1 --coordinator 127.0.0.1:9000

leat.jax.batches does all of this by itself. Here it is done by hand, as for arrays that come from elsewhere.
"""

import argparse
import os


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--process", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--coordinator", help="of jax.distributed, on process 0: HOST:PORT")
    return parser.parse_args()


def main() -> None:
    args = parse()
    os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={8 // args.processes}")
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    import leat
    from leat import fn
    from leat.jax import DataPartitionType, global_to_host_array, host_to_global_device_array, with_sharding_constraint

    if args.processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(args.coordinator, num_processes=args.processes, process_id=args.process)

    @leat.pipeline
    def photos() -> dict[str, leat.Node]:
        encoded, label = fn.readers.image_folder(args.folder)
        return {"image": fn.random_resized_crop(fn.decode(encoded), size=32), "label": label}

    mesh = Mesh(np.reshape(np.array(jax.devices()), (4, 2)), ("data", "model"))
    by_data = NamedSharding(mesh, P("data"))

    @jax.jit
    def brightness(image: jax.Array) -> jax.Array:
        return with_sharding_constraint(image.mean((1, 2, 3)), by_data)

    with leat.connect() as service:
        job = service.job("placement", photos, batch=32, seed=7)
        each = job.batch // args.processes  # the rows of this process's devices, which follow one another here
        mine = range(args.process * each, (args.process + 1) * each)
        for step, (host, _) in enumerate(zip(job.batches(rows=mine), range(args.steps))):
            # FULL: the rows are divided among all eight devices. Nothing is sent; each process tells what it has.
            batch = host_to_global_device_array(host, partition=DataPartitionType.FULL, mesh=mesh)
            assert batch["image"].shape == (job.batch, 32, 32, 3)
            back = global_to_host_array(batch)
            assert all(np.array_equal(back[name], host[name]) for name in host)
            # In jit the batch is one array, on whichever devices and processes it is.
            bright = global_to_host_array(brightness(batch["image"]))
            rows = f"{len(back['label'])} rows here, of {batch['image'].shape[0]}"
            print(f"step {step}: {rows}; the brightest of them is row {int(np.argmax(bright))}", flush=True)
        # REPLICATED: every device holds all of it. All processes must bring the same.
        table = host_to_global_device_array(
            {"classes": np.arange(len(job.classes))}, partition=DataPartitionType.REPLICATED, mesh=mesh
        )
        assert table["classes"].sharding.is_fully_replicated
    print("what went there came back")


if __name__ == "__main__":
    main()
