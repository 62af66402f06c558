# SPDX-License-Identifier: Apache-2.0
"""FFCV in JPEG mode: a .beton file in which its writer has compressed the photos again, quality 90, at full size."""

from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip
from ffcv.writer import DatasetWriter
from PIL import Image

from peers import AREA, ASPECT, BATCH, SIDE


class _Photos:
    def __init__(self, files):
        self._files = files

    def __len__(self):
        return len(self._files)

    def __getitem__(self, index):
        with Image.open(self._files[index]) as image:
            return image.convert("RGB"), 0


def prepare(files, folder, threads):
    folder.mkdir()
    fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()}
    DatasetWriter(str(folder / "photos.beton"), fields, num_workers=threads).from_indexed_dataset(_Photos(files))


def batches(files, seconds, threads, prepared):
    image = [RandomResizedCropRGBImageDecoder((SIDE, SIDE), scale=AREA, ratio=ASPECT), RandomHorizontalFlip()]
    loader = Loader(str(prepared / "photos.beton"), batch_size=BATCH, num_workers=threads, order=OrderOption.RANDOM,
                    os_cache=True, drop_last=False, pipelines={"image": image, "label": None})
    while True:
        for images, in loader:
            yield images
