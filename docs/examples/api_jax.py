# SPDX-License-Identifier: Apache-2.0
# pyright: basic
"""An example of each name of leat.jax; the reference shows the lines under a name.

    python docs/examples/api_jax.py FOLDER
"""

import sys

import jax
import leat
import leat.jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from leat import fn


@leat.pipeline
def photos(folder: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    return {"image": fn.resize(fn.decode(encoded), size=32), "label": label}


service = leat.connect()
job = service.job("photos", photos(sys.argv[1]), batch=16, seed=7)
step_of_model = jax.jit(lambda image, label: image.mean() + label.sum())

# [leat.jax.batches]
mesh = Mesh(np.array(jax.devices()), ("data",))
sharding = NamedSharding(mesh, PartitionSpec("data"))
for batch in leat.jax.batches(job, sharding=sharding, epochs=1):
    loss = step_of_model(batch["image"], batch["label"])

# [leat.jax.GlobalBatches]
with leat.jax.batches(job, sharding=sharding, epochs=2) as batches:
    for batch in batches:
        print(batches.epoch, batches.step, batch["image"].shape)  # of all processes
# [end]

batches = leat.jax.batches(job, sharding=sharding, epochs=2)
batch = next(batches)

# [leat.jax.GlobalBatches.__len__]
remaining = len(batches)

# [leat.jax.GlobalBatches.samples]
here = dict(zip(batches.rows, batches.samples(), strict=True))  # row: sample

# [leat.jax.GlobalBatches.position]
checkpoint = batches.position()  # bytes, beside the weights

# [leat.jax.GlobalBatches.get_state]
state = batches.get_state()

# [leat.jax.GlobalBatches.set_state]
batches.set_state(state)  # the next batch is the one after get_state

# [leat.jax.GlobalBatches.stats]
print(f"waited {batches.stats()['stall_fraction']:.0%} of the time")

# [leat.jax.GlobalBatches.close]
batches.close()

# [leat.jax.DataPartitionType]
split = leat.jax.DataPartitionType.FULL  # over all devices
whole = leat.jax.DataPartitionType.REPLICATED  # each device has all rows

# [leat.jax.data_partition_type_to_spec]
spec = leat.jax.data_partition_type_to_spec(split, mesh=mesh)

# [leat.jax.host_to_global_device_array]
ones = {"image": np.ones((16, 8), np.float32)}  # this process's rows
array = leat.jax.host_to_global_device_array(ones, partition=split, mesh=mesh)

# [leat.jax.global_to_host_array]
host = leat.jax.global_to_host_array(array, partition=split)  # NumPy, this process's rows

# [leat.jax.with_sharding_constraint]
doubled = jax.jit(lambda x: leat.jax.with_sharding_constraint(2 * x, sharding))(array["image"])
# [end]

service.close()
