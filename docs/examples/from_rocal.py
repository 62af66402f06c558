# SPDX-License-Identifier: Apache-2.0
"""A rocAL script on Leat: photos of a folder as NumPy arrays and labels. Only the imports name Leat.

    python docs/examples/from_rocal.py FOLDER
"""

import sys

import leat.rocal.fn as fn
import leat.rocal.types as types
from leat.rocal.pipeline import Pipeline
from leat.rocal.plugin.generic import ROCALClassificationIterator


def photos(folder: str) -> Pipeline:
    pipeline = Pipeline(batch_size=32, num_threads=4, device_id=0, seed=7, rocal_cpu=True)
    with pipeline:
        jpegs, _ = fn.readers.file(file_root=folder)
        images = fn.decoders.image(jpegs, file_root=folder, random_shuffle=True, output_type=types.RGB)
        images = fn.resize(images, resize_width=224, resize_height=224)
        pipeline.set_outputs(images)
    return pipeline.build()


def main(folder: str) -> None:
    for images, labels in ROCALClassificationIterator(photos(folder)):
        print(images[0].shape, images[0].dtype, labels.shape)
        break


if __name__ == "__main__":
    main(sys.argv[1])
