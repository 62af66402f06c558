# SPDX-License-Identifier: Apache-2.0
# pyright: basic
"""An example of each name of leat.torch; the reference shows the lines under a name.

    python docs/examples/api_torch.py FOLDER
"""

import sys

import leat
import leat.torch
import torch.utils.data
from leat import fn


@leat.pipeline
def photos(folder: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    return {"image": fn.resize(fn.decode(encoded), size=32), "label": label}


service = leat.connect()
job = service.job("photos", photos(sys.argv[1]), batch=16, seed=7)

# [leat.torch.batches]
for batch in leat.torch.batches(job, epochs=1):  # device="cuda" for batches on a GPU
    print(batch["image"].shape, batch["label"].float().mean())

# [leat.torch.TensorBatches]
with leat.torch.batches(job, epochs=2, rows=range(8)) as batches:
    for batch in batches:
        print(batches.epoch, batches.step, batch["label"])

# [leat.torch.IterableDataset]
dataset = leat.torch.IterableDataset(job)  # under torch.distributed: the rows of this rank
loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=0)
for epoch in range(2):
    for batch in loader:
        print(epoch, batch["image"].shape)

# [leat.torch.IterableDataset.__len__]
steps = len(dataset)
# [end]

passing = iter(dataset)
batch = next(passing)

# [leat.torch.IterableDataset.samples]
numbers = dataset.samples()  # of the last batch

# [leat.torch.IterableDataset.state_dict]
state = dataset.state_dict()  # beside the model's

# [leat.torch.IterableDataset.load_state_dict]
dataset.load_state_dict(state)  # the next pass continues after the batch at state_dict

# [leat.torch.IterableDataset.set_epoch]
dataset.set_epoch(0)  # the next pass is epoch 0

# [leat.torch.IterableDataset.stats]
print(dataset.stats()["rows"], "rows so far")

# [leat.torch.IterableDataset.close]
dataset.close()
# [end]

service.close()
