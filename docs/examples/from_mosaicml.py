# SPDX-License-Identifier: Apache-2.0
"""A MosaicML Streaming program on Leat: a folder of MDS shards, as tensors, with a position for checkpoints.

    python docs/examples/from_mosaicml.py SHARDS
"""

import sys

from torch.utils.data import DataLoader

import leat
import leat.torch
from leat import fn


@leat.pipeline
def photos(shards: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.mds(shards, columns=["image", "label"], images=["image"])
    image = fn.random_resized_crop(fn.decode(encoded), size=(224, 224))
    image = fn.flip(image, horizontal=fn.coin_flip(0.5))
    return {"image": fn.transpose(image, perm=(2, 0, 1)), "label": label}


def main(shards: str) -> None:
    with leat.connect() as service:
        job = service.job("photos", photos(shards), batch=32, seed=7)
        dataset = leat.torch.IterableDataset(job)
        for batch in DataLoader(dataset, batch_size=None):
            print(batch["image"].shape, batch["label"][:4])
            state = dataset.state_dict()  # for the checkpoint; load_state_dict(state) resumes after this batch
            print(sorted(state))
            break


if __name__ == "__main__":
    main(sys.argv[1])
