# SPDX-License-Identifier: Apache-2.0
"""Batches of your own photos, from a folder with one folder for each class, or with photos only.

    python docs/examples/own_photos.py FOLDER
"""

import sys

import leat
from leat import fn


@leat.pipeline
def photos(folder: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=(224, 224))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}


def main(folder: str) -> None:
    with leat.connect() as service:
        job = service.job("photos", photos(folder), batch=32, seed=7, on_bad_sample="replace", max_bad=0.01)
        print(f"{job.num_samples} photos of {len(job.classes)} classes, {len(job)} steps in an epoch")
        for batch in job.batches(epochs=1):
            print(batch["image"].shape, "first class:", job.classes[int(batch["label"][0])])
            break
        row = job.why(step=0, row=0)
        assert row.record is not None
        print(f"row 0 of step 0 is {row.record.path}")


if __name__ == "__main__":
    main(sys.argv[1])
