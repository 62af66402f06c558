# SPDX-License-Identifier: Apache-2.0
"""Batches of photos with up to 100 boxes each, from COCO's annotations.

    python docs/examples/boxes.py instances_train2017.json train2017
"""

import sys

import leat
from leat import fn


@leat.pipeline
def detection(annotations: str, photos: str) -> dict[str, leat.Node]:
    encoded, boxes, labels = fn.readers.coco(annotations, photos)
    image = fn.resize(fn.decode(encoded, orient=False), size=640)
    return {
        "image": image,
        "count": fn.length(boxes),
        "boxes": fn.pad(boxes, axes=0, shape=100),
        "labels": fn.pad(labels, shape=100, fill_value=-1),
    }


def main(annotations: str, photos: str) -> None:
    with leat.connect() as service:
        job = service.job("detection", detection(annotations, photos), batch=2, seed=7)
        for batch in job.batches(epochs=1):
            for count, boxes in zip(batch["count"].ravel(), batch["boxes"], strict=True):
                print(f"{count} boxes: {boxes[:count].tolist()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
