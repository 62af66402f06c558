# SPDX-License-Identifier: Apache-2.0
"""A function for each reader: it makes a small data set in the folder "formats", and a pipeline that reads it.

    python docs/examples/formats.py                  # all of them, one after the other
    python docs/examples/formats.py webdataset coco

The program prints the names, types and shapes of the first batch. formats_packages.py has the formats whose files are
written by a package of their own.
"""

import csv
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import leat
from leat import fn

COUNT = 12
LABELS = [number % 3 for number in range(COUNT)]
BREEDS = ["beagle", "boxer", "pug"]


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Returns a PNG file, of pixels of the shape (height, width, 3)."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", size) + part(b"IDAT", zlib.compress(lines)) + part(b"IEND", b"")


PIXELS = np.random.default_rng(0).integers(0, 256, (COUNT, 48, 64, 3), np.uint8)
PHOTOS = [png(pixels) for pixels in PIXELS]  # the bytes of 12 image files


def folder_of_classes() -> pathlib.Path:
    for number, (photo, label) in enumerate(zip(PHOTOS, LABELS)):
        file = pathlib.Path("photos", BREEDS[label], f"{number:04}.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(photo)
    return pathlib.Path("photos")


def file_list() -> leat.Pipeline:
    """A CSV file with a name and a word on each line. Every fourth file is held out."""
    photos = sorted(folder_of_classes().rglob("*.png"))
    with open("all.csv", "w") as file:
        file.writelines(["file,breed\n", *(f"{photo},{photo.parent.name}\n" for photo in photos)])

    with open("all.csv") as file:
        rows = [(row["file"], row["breed"]) for row in csv.DictReader(file)]
    classes = sorted({breed for _, breed in rows})
    with open("train.txt", "w") as train, open("held-out.txt", "w") as held_out:
        for number, (name, breed) in enumerate(rows):
            print(name, classes.index(breed), file=held_out if number % 4 == 0 else train)

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        encoded, label = fn.readers.file_list("train.txt")
        return {"image": fn.resize(fn.decode(encoded), size=32), "label": label}

    return pipeline


def files() -> leat.Pipeline:
    """Names and labels that the script has in lists."""
    photos = sorted(folder_of_classes().rglob("*.png"))
    labels = [BREEDS.index(photo.parent.name) for photo in photos]

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        encoded, label = fn.readers.files([str(photo) for photo in photos], labels=labels)
        return {"image": fn.resize(fn.decode(encoded), size=32), "label": label}

    return pipeline


def webdataset() -> leat.Pipeline:
    """Tar archives: the files of a sample have the same name up to the first dot."""
    with tarfile.open("train-000.tar", "w") as archive:
        for number, (photo, label) in enumerate(zip(PHOTOS, LABELS)):
            for name, data in ((f"{number:04}.png", photo), (f"{number:04}.cls", str(label).encode())):
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        archives = "train-{000..000}.tar"
        encoded, label = fn.readers.webdataset(archives, ext=["jpg;png", "cls"], types=["encoded", "int64"])
        return {"image": fn.resize(fn.decode(encoded), size=32), "label": fn.cast(label, dtype="int32")}

    return pipeline


def tfrecord() -> leat.Pipeline:
    """TFRecord files of tf.Example, which `leat convert` writes from a folder of classes."""
    photos = folder_of_classes()
    subprocess.run(["leat", "convert", str(photos), "records", "--to", "tfrecord", "--force"], check=True)

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        encoded, label = fn.readers.tfrecord(
            "records/*.tfrecord", features=["image/encoded", "image/class/label"], types=["encoded", "int64"]
        )
        return {"image": fn.resize(fn.decode(encoded), size=32), "label": fn.cast(label, dtype="int32")}

    return pipeline


def caffe2() -> leat.Pipeline:
    """Caffe2's LMDB, which `leat convert` writes from a folder of classes."""
    photos = folder_of_classes()
    subprocess.run(["leat", "convert", str(photos), "lmdb", "--to", "caffe2", "--force"], check=True)

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        encoded, label = fn.readers.caffe2("lmdb")
        return {"image": fn.resize(fn.decode(encoded), size=32), "label": label}

    return pipeline


def numpy_array() -> leat.Pipeline:
    """One .npy file; its first axis is the samples."""
    np.save("pixels.npy", PIXELS)

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        return {"image": fn.readers.numpy(array="pixels.npy")}

    return pipeline


def numpy_files() -> leat.Pipeline:
    """A .npy file for each sample. They differ in length, so the pipeline pads them."""
    pathlib.Path("texts").mkdir(exist_ok=True)
    for number in range(COUNT):
        np.save(f"texts/{number:04}.npy", np.arange(20 + number, dtype=np.int32))

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        text = fn.readers.numpy(path="texts")
        return {"text": fn.pad(text, axes=0, shape=64), "length": fn.length(text)}

    return pipeline


def idx() -> leat.Pipeline:
    """MNIST's files: four bytes of kind, the sizes, then the elements."""
    gray = np.ascontiguousarray(PIXELS[:, :28, :28, 0])
    pathlib.Path("images.idx").write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, COUNT, 28, 28) + gray.tobytes())
    pathlib.Path("labels.idx").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, COUNT) + bytes(LABELS))

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        image, label = fn.readers.idx("images.idx", labels="labels.idx")
        return {"image": image, "label": label}

    return pipeline


def cifar10() -> leat.Pipeline:
    """CIFAR-10 in binary: a byte for the label, then the pixels' planes."""
    planes: npt.NDArray[np.uint8] = np.moveaxis(PIXELS[:, :32, :32], 3, 1)
    records = (bytes([label]) + image.tobytes() for label, image in zip(LABELS, planes))
    pathlib.Path("data_batch_1.bin").write_bytes(b"".join(records))

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        image, label = fn.readers.cifar10("data_batch_1.bin")
        return {"image": image, "label": label}

    return pipeline


def cifar100() -> leat.Pipeline:
    """CIFAR-100 in binary: a coarse and a fine label, then the pixels' planes."""
    planes: npt.NDArray[np.uint8] = np.moveaxis(PIXELS[:, :32, :32], 3, 1)
    records = (bytes([label // 2, label]) + image.tobytes() for label, image in zip(LABELS, planes))
    pathlib.Path("train.bin").write_bytes(b"".join(records))

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        image, fine, coarse = fn.readers.cifar100("train.bin")
        return {"image": image, "fine": fine, "coarse": coarse}

    return pipeline


def coco() -> leat.Pipeline:
    """COCO's annotations of instances, and the images beside them. Images differ in their number of boxes."""
    pathlib.Path("coco").mkdir(exist_ok=True)
    images: list[dict[str, object]] = []
    annotations: list[dict[str, object]] = []
    for number, photo in enumerate(PHOTOS):
        pathlib.Path("coco", f"{number:04}.png").write_bytes(photo)
        images.append({"id": number, "file_name": f"{number:04}.png", "width": 64, "height": 48})
        for place in range(1 + number % 3):
            ids = {"id": len(annotations), "image_id": number, "category_id": 5}
            annotations.append({**ids, "bbox": [4 * place, 2, 10, 20], "iscrowd": 0})  # x, y, width, height
    categories = [{"id": 5, "name": "dog"}]
    text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
    pathlib.Path("coco/instances.json").write_text(text)

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        encoded, boxes, labels = fn.readers.coco("coco/instances.json")
        return {
            "image": fn.resize(fn.decode(encoded, orient=False), size=32),
            "count": fn.length(boxes),
            "boxes": fn.pad(boxes, axes=0, shape=10),
            "labels": fn.pad(labels, axes=0, shape=10, fill_value=-1),
        }

    return pipeline


FORMATS: list[Callable[[], leat.Pipeline]] = [
    file_list, files, webdataset, tfrecord, caffe2, numpy_array, numpy_files, idx, cifar10, cifar100, coco,
]  # fmt: skip


def show(formats: list[Callable[[], leat.Pipeline]], wanted: list[str]) -> None:
    """Reads a batch of each wanted format; of all if none is named. Works in the folder "formats", beside your data."""
    pathlib.Path("formats").mkdir(exist_ok=True)
    os.chdir("formats")
    with leat.connect() as service:
        for each in formats:
            if wanted and each.__name__ not in wanted:
                continue
            job = service.job(each.__name__, each(), batch=4, seed=7)
            batch = next(job.batches())
            fields = ", ".join(f"{name} {array.dtype} {array.shape}" for name, array in batch.items())
            print(f"{each.__name__}: {job.num_samples} samples; {fields}", flush=True)


if __name__ == "__main__":
    show(FORMATS, sys.argv[1:])
