# SPDX-License-Identifier: Apache-2.0
"""A WebDataset program on Leat: tar files of photos, as tensors in torch's DataLoader.

    leat convert PHOTOS ARCHIVES --to webdataset
    python docs/examples/from_webdataset.py ARCHIVES
"""

import sys

from torch.utils.data import DataLoader

import leat
import leat.torch
from leat import fn


@leat.pipeline
def photos(archives: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.webdataset(archives, ext=["jpg;jpeg;png", "cls"], types=["encoded", "int64"])
    image = fn.random_resized_crop(fn.decode(encoded), size=(224, 224))
    image = fn.flip(image, horizontal=fn.coin_flip(0.5))
    return {"image": fn.transpose(image, perm=(2, 0, 1)), "label": label}


def main(archives: str) -> None:
    with leat.connect() as service:
        job = service.job("photos", photos(f"{archives}/*.tar"), batch=32, seed=7, on_bad_sample="replace")
        loader = DataLoader(leat.torch.IterableDataset(job), batch_size=None)
        for epoch in range(2):
            for batch in loader:
                print(epoch, batch["image"].shape, batch["label"][:4])


if __name__ == "__main__":
    main(sys.argv[1])
