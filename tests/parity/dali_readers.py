# SPDX-License-Identifier: Apache-2.0
"""The readers of leat.dali beside those of nvidia.dali: the same arguments, on files made here from photos.

    LEAT_NATIVE_DIR=build/dev/native PYTHONPATH=python_client/src build/parity-venv/bin/python \
        tests/parity/dali_readers.py PHOTOS

Prints a line for each case. Exit status 1: a value differs.
"""

from __future__ import annotations

import io
import json
import pathlib
import struct
import sys
import tarfile
import tempfile
from collections.abc import Callable
from typing import Any

import leat.dali
import numpy as np
import nvidia.dali
import nvidia.dali.tfrecord

BATCH = 4
STEPS = 4
SAMPLES = 14


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(image: bytes, label: int, box: list[float]) -> bytes:
    """Makes a tf.Example."""
    features = {
        "image": field(1, field(1, image)),
        "label": field(3, field(1, varint(label))),
        "box": field(2, field(1, struct.pack(f"<{len(box)}f", *box))),
    }
    entries = b"".join(field(1, field(1, name.encode()) + field(2, value)) for name, value in features.items())
    return field(1, entries)


def crc32c(data: bytes) -> int:
    """Returns the masked checksum, as in TFRecord."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def write(folder: pathlib.Path, photos: list[pathlib.Path]) -> None:
    """Writes all files of all cases."""
    index = []
    with open(folder / "a.tfrecord", "wb") as records:
        for i, photo in enumerate(photos):
            record = example(photo.read_bytes(), i, [i + 0.5, 2.0, 3.0, 4.0])
            length = struct.pack("<Q", len(record))
            text = length + struct.pack("<I", crc32c(length)) + record + struct.pack("<I", crc32c(record))
            index.append(f"{records.tell()} {len(text)}")
            records.write(text)
    (folder / "a.idx").write_text("\n".join(index) + "\n")
    with tarfile.open(folder / "a.tar", "w") as archive:
        for i, photo in enumerate(photos):
            numbers = np.arange(i, i + 3, dtype=np.int32).tobytes()
            for extension, data in (("jpg", photo.read_bytes()), ("cls", b"%03d" % i), ("num", numbers)):
                info = tarfile.TarInfo(f"{i:04}.{extension}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    (folder / "arrays").mkdir()
    (folder / "images").mkdir()
    images, annotations = [], []
    for i, photo in enumerate(photos):
        np.save(folder / "arrays" / f"{i:02}.npy", np.arange(i, i + 42, dtype=np.float32).reshape(6, 7))
        (folder / "images" / f"{i:02}.jpg").write_bytes(photo.read_bytes())
        images.append({"id": 100 + i, "file_name": f"{i:02}.jpg", "height": 300, "width": 400})
        for j in range(2):
            annotations.append(
                {"id": 2 * i + j, "image_id": 100 + i, "category_id": 7 + j, "bbox": [i, j, 10 + i, 20], "iscrowd": 0}
            )
    categories = [{"id": 7, "name": "a"}, {"id": 8, "name": "b"}]
    text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
    (folder / "coco.json").write_text(text)
    lines = [f"images/{i:02}.jpg {3 * i}" for i in range(len(photos))]
    (folder / "list.txt").write_text("\n".join(lines) + "\n")


def tfrecord(d: Any, folder: pathlib.Path) -> Any:
    words = d.tfrecord
    features = {
        "image": words.FixedLenFeature((), words.string, ""),
        "label": words.FixedLenFeature([], words.int64, -1),
        "box": words.FixedLenFeature([2, 2], words.float32, 0.0),
    }
    path, index = str(folder / "a.tfrecord"), str(folder / "a.idx")
    read = d.fn.readers.tfrecord(path=path, index_path=index, features=features, num_shards=2, shard_id=1)
    return d.fn.peek_image_shape(read["image"]), read["label"], read["box"]


def tfrecord_varying(d: Any, folder: pathlib.Path) -> Any:
    words = d.tfrecord
    features = {"box": words.VarLenFeature(words.float32, 0.0), "label": words.VarLenFeature(words.int64, 0)}
    path, index = str(folder / "a.tfrecord"), str(folder / "a.idx")
    read = d.fn.readers.tfrecord(path=path, index_path=index, features=features)
    return d.fn.pad(read["box"], axes=[0], shape=[6]), d.fn.reshape(read["label"], shape=[1])


def webdataset(d: Any, folder: pathlib.Path) -> Any:
    image, text, numbers = d.fn.readers.webdataset(
        paths=[str(folder / "a.tar")],
        ext=["jpg;png", "cls", "num"],
        dtypes=[d.types.UINT8, d.types.UINT8, d.types.INT32],
        missing_component_behavior="error",
    )
    image = d.fn.resize(d.fn.decoders.image(image), size=(32, 40))
    return image, d.fn.reshape(text, shape=[3]), d.fn.reshape(numbers, shape=[3])


def numpy(d: Any, folder: pathlib.Path) -> Any:
    whole = {"file_root": str(folder / "arrays"), "file_filter": "*.npy"}
    return d.fn.reshape(d.fn.readers.numpy(**whole, pad_last_batch=True), shape=[6, 7])


def numpy_region(d: Any, folder: pathlib.Path) -> Any:
    files = [f"{i:02}.npy" for i in range(5)]
    region = {"roi_start": [1, 2], "roi_shape": [3, 4]}
    return d.fn.readers.numpy(file_root=str(folder / "arrays"), files=files, **region)


def numpy_relative_region(d: Any, folder: pathlib.Path) -> Any:
    region = {"rel_roi_start": [0.5], "rel_roi_end": [1.0], "roi_axes": [1]}
    array = d.fn.readers.numpy(file_root=str(folder / "arrays"), **region)
    return d.fn.pad(array, axes=[0, 1], shape=[8, 8])


def coco(d: Any, folder: pathlib.Path) -> Any:
    image, boxes, labels, ids = d.fn.readers.coco(
        file_root=str(folder / "images"), annotations_file=str(folder / "coco.json"), ltrb=True, image_ids=True
    )
    boxes = d.fn.pad(boxes, axes=[0], shape=[4], fill_value=-1)
    return d.fn.peek_image_shape(image), boxes, d.fn.reshape(labels, shape=[2]), ids


def file_list(d: Any, folder: pathlib.Path) -> Any:
    return d.fn.readers.file(file_list=str(folder / "list.txt"), num_shards=3, shard_id=2, stick_to_shard=True)[1]


def filtered(d: Any, folder: pathlib.Path) -> Any:
    options = {"file_filters": ["0*.JPG"], "dir_filters": ["im*"]}
    image, label = d.fn.readers.file(file_root=str(folder), **options)
    return d.fn.peek_image_shape(image), label


CASES = [
    tfrecord,
    tfrecord_varying,
    webdataset,
    numpy,
    numpy_region,
    numpy_relative_region,
    coco,
    file_list,
    filtered,
]


def run(d: Any, function: Callable[..., Any], folder: pathlib.Path) -> list[list[np.ndarray]]:
    pipeline = d.pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)(function)(d, folder)
    pipeline.build()
    return [[np.array(each.as_array()) for each in pipeline.run()] for _ in range(STEPS)]


def main() -> int:
    photos = sorted(each for each in pathlib.Path(sys.argv[1]).rglob("*.*") if each.is_file())[:SAMPLES]
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, photos)
        for function in CASES:
            ours, theirs = run(leat.dali, function, folder), run(nvidia.dali, function, folder)
            for output in range(len(theirs[0])):
                a, b = (np.stack([step[output] for step in steps]) for steps in (ours, theirs))
                same = a.dtype == b.dtype and np.array_equal(a, b)
                text = f"{function.__name__:22} {output}  {b.dtype!s:8} {b.shape[2:]!s:12}"
                print(text, "same" if same else f"DIFFERS: ours is {a.dtype} {a.shape[2:]}")
                bad += not same
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
