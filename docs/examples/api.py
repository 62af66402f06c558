# SPDX-License-Identifier: Apache-2.0
"""An example of each name of leat; the reference shows the lines under a name.

    python docs/examples/api.py FOLDER
"""

import sys

import leat
import numpy as np
from leat import fn

FOLDER = sys.argv[1]

# [leat.pipeline]
# Without arguments a function is a pipeline; with arguments it makes one at each call.
@leat.pipeline
def photos(folder: str, side: int) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    return {"image": fn.resize(fn.decode(encoded), size=side), "label": label}


small = photos(FOLDER, side=32)

# [leat.connect]
with leat.connect() as service:  # or leat.connect("head:7411")
    print(service.address)
# [end]

service = leat.connect()

# [leat.Service.job]
job = service.job("photos", small, batch=16, seed=7)
print(len(job), "steps in an epoch, plan", job.plan_hash[:12])

# [leat.Service.get]
for worker in service.get("workers")["workers"]:
    print(worker["name"])

# [leat.Service]
with leat.connect() as another:
    attached = another.job("photos")  # by its name alone
    assert attached.plan_hash == job.plan_hash

# [leat.Service.address]
print("the coordinator is at", service.address)

# [leat.Job]
print(job.num_samples, "samples of", len(job.classes), "classes,", job.batch, "rows in a batch")

# [leat.Job.__len__]
steps_of_three_epochs = 3 * len(job)

# [leat.Field]
for name, field in job.schema.items():
    print(name, field.dtype, field.shape)  # image uint8 (32, 32, 3)

# [leat.Job.batches]
for batch in job.batches(epochs=1):
    print(batch["image"].shape, batch["image"].mean())

# [leat.Batches]
with job.batches(epochs=2, rows=range(8), window=2) as batches:  # the first half of each batch
    for batch in batches:
        print(batches.epoch, batches.step, batch["label"])
# [end]

batches = job.batches(epochs=2)

# [leat.Batches.next]
batch = batches.next(timeout=60)  # None at the end; leat.DeadlineExceeded if none has come

# [leat.Batches.__len__]
remaining = len(batches)

# [leat.Batches.samples]
numbers = batches.samples()  # of the last batch
paths = [job.record(int(number)).path for number in numbers]

# [leat.Batches.position]
checkpoint = batches.position()  # bytes, beside the weights
rest = job.batches(epochs=2, position=checkpoint)

# [leat.Batches.get_state]
state = batches.get_state()

# [leat.Batches.set_state]
batches.set_state(state)  # the next batch is the one after get_state

# [leat.Batches.stats]
stats = batches.stats()
print(f"{stats['rows_per_s']:.0f} rows/s, waited {stats['stall_fraction']:.0%} of the time")

# [leat.Batches.close]
batches.close()  # batches that were handed out stay valid
# [end]

rest.close()

# [leat.Job.step_of]
epoch, step = job.step_of(checkpoint)
print(f"the checkpoint continues at epoch {epoch}, step {step}")

# [leat.Job.samples]
order = np.concatenate([job.samples(epoch=0, step=step) for step in range(len(job))])

# [leat.Job.sample]
first = job.sample(0)
print(first["image"].shape)  # (32, 32, 3); a notebook shows the picture

# [leat.Job.record]
record = job.record(0)
print(record.path, record.size, "bytes")

# [leat.Record]
record = job.record(-1)
print(record.file, "in", record.root, "shard", record.shard)

# [leat.Job.why]
row = job.why(step=0, row=3)
print(row.record)

# [leat.Row]
for row in job.why(step=0):
    print(row.row, row.record.path if row.record else "no sample")
# [end]

# [leat.Draw]
@leat.pipeline
def random_views() -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(FOLDER)
    return {"view": fn.random_resized_crop(fn.decode(encoded), size=32), "label": label}


for draw in service.job("views", random_views, batch=16).why(step=0, row=0).draws:
    print(draw.op, draw.value)  # random_resized_crop (y, x, height, width)

# [leat.Job.to_dict]
print(job.to_dict()["spec"]["seed"])

# [leat.Pipeline]
@leat.pipeline
def numbers_only() -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(FOLDER)
    return {"label": fn.cast(label, dtype="int64"), "shape": fn.peek_shape(encoded)}


print(numbers_only.outputs)  # ('label', 'shape')

# [leat.Pipeline.outputs]
assert small.outputs == ("image", "label")

# [leat.Pipeline.to_dict]
graph = small.to_dict()
print([node["op"] for node in graph["nodes"]])

# [leat.Pipeline.from_dict]
same = leat.Pipeline.from_dict(graph)
assert same.outputs == small.outputs

# [leat.Pipeline.explain]
try:
    service.job("wrong", same, batch=0)
except leat.Error as error:
    print(same.explain(error))
# [end]

# [leat.Node]
@leat.pipeline
def darker() -> dict[str, leat.Node]:
    encoded, _ = fn.readers.image_folder(FOLDER)
    image = fn.resize(fn.decode(encoded), size=32)
    darker = fn.cast(image * 0.5, dtype="uint8")  # operators of Python add nodes, too
    return {"image": darker, "top": fn.slice(darker, axes=0, shape=16)}
# [end]

# [leat.Node.op]
@leat.pipeline
def named() -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(FOLDER)
    assert encoded.op == "readers.image_folder"
    return {"label": label}
# [end]

# [leat.Node.where]
@leat.pipeline
def located() -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(FOLDER)
    print(encoded.where)  # the line of this script
    return {"label": label}
# [end]

# [leat.Mixture]
mixed = leat.mix({"plain": photos(FOLDER, side=32), "again": photos(FOLDER, side=32)}, {"plain": 3, "again": 1})
print(mixed)
# [end]

mixture = service.job("mixture", mixed, batch=16, seed=7)

# [leat.Source]
for source in mixture.sources:
    print(source.name, source.samples, "samples")

# [leat.Pass]
where = mixture.passes(epoch=0, step=10)["again"]
print(f"pass {where.number}, {where.done:.0%} of it")

# [leat.external_source]
def noise(number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal(16, dtype=np.float32)


@leat.pipeline
def supplied() -> dict[str, leat.Node]:
    return {"noise": leat.external_source(noise, types="float32[16]", num_samples=1000)}


print(next(iter(service.job("noise", supplied, batch=10).batches()))["noise"].shape)

# [leat.Service.delete_job]
service.delete_job("noise")

# [leat.Service.close]
service.close()
# [end]
