# SPDX-License-Identifier: Apache-2.0
"""A tf.data program on Leat: TFRecord files of photos, shuffled, cropped and flipped, as NumPy arrays.

    leat convert PHOTOS RECORDS --to tfrecord
    python docs/examples/from_tf_data.py RECORDS
"""

import sys

import leat
from leat import fn


@leat.pipeline
def photos(records: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.tfrecord(
        records, features=["image/encoded", "image/class/label"], types=["encoded", "int64"]
    )
    image = fn.random_resized_crop(fn.decode(encoded), size=(224, 224))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}


def main(records: str) -> None:
    with leat.connect() as service:
        job = service.job("photos", photos(f"{records}/"), batch=32, seed=7)
        for batch in job.batches(epochs=2):
            print(batch["image"].shape, batch["image"].dtype, batch["label"][:4])


if __name__ == "__main__":
    main(sys.argv[1])
