# SPDX-License-Identifier: Apache-2.0
"""A DALI script on Leat: random crops of photos, normalized. Only the imports name Leat.

    python docs/examples/from_dali.py FOLDER
"""

import sys

from leat.dali import fn, pipeline_def
from leat.dali.data_node import DataNode


@pipeline_def(batch_size=32, num_threads=4, device_id=None, seed=7)
def photos(folder: str) -> tuple[DataNode, DataNode]:
    encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="reader")
    images = fn.random_resized_crop(fn.decoders.image(encoded), size=224)
    images = fn.crop_mirror_normalize(
        images, mean=[124.0, 116.0, 104.0], std=[58.0, 57.0, 57.0], mirror=fn.random.coin_flip()
    )
    return images, labels


def main(folder: str) -> None:
    pipeline = photos(folder)
    pipeline.build()
    print(pipeline.reader_meta("reader")["epoch_size"], "photos")
    images, labels = pipeline.run()
    print(images.as_array().shape, images.as_array().dtype, labels.as_array().shape)


if __name__ == "__main__":
    main(sys.argv[1])
