# SPDX-License-Identifier: Apache-2.0
"""As formats.py, for formats whose files are written by a package of their own. Leat needs none of them to read.

    pip install pyarrow array_record lmdb
    pip install mosaicml-streaming                   # it installs torch, too
    python docs/examples/formats_packages.py parquet

Without names the program reads those formats whose package is installed.
"""

import importlib.util
import pathlib
import sys
from collections.abc import Callable

import leat
from formats import LABELS, PHOTOS, show
from leat import fn


def parquet() -> leat.Pipeline:
    """A Parquet file as Hugging Face's datasets have it: a column of structures with the image's bytes."""
    import pyarrow
    import pyarrow.parquet

    pathlib.Path("parquet").mkdir(exist_ok=True)
    images = [{"bytes": photo, "path": f"{number:04}.png"} for number, photo in enumerate(PHOTOS)]
    pyarrow.parquet.write_table(pyarrow.table({"image": images, "label": LABELS}), "parquet/train-0.parquet")

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        encoded, label = fn.readers.parquet("parquet/", columns=["image.bytes", "label"], types=["encoded", "int64"])
        return {"image": fn.resize(fn.decode(encoded), size=32), "label": fn.cast(label, dtype="int32")}

    return pipeline


def mds() -> leat.Pipeline:
    """MosaicML Streaming's shards."""
    from streaming import MDSWriter

    columns = {"image": "jpeg", "label": "int"}
    with MDSWriter(out="mds", columns=columns, exist_ok=True) as writer:
        for photo, label in zip(PHOTOS, LABELS):
            writer.write({"image": photo, "label": label})

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        encoded, label = fn.readers.mds("mds", columns=["image", "label"])
        return {"image": fn.resize(fn.decode(encoded), size=32), "label": fn.cast(label, dtype="int32")}

    return pipeline


def array_record() -> leat.Pipeline:
    """ArrayRecord files: a record is an image file, or any bytes."""
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter("photos.array_record", "group_size:1")
    for photo in PHOTOS:
        writer.write(photo)
    writer.close()

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        encoded = fn.readers.array_record("photos.array_record")
        return {"image": fn.resize(fn.decode(encoded), size=32)}

    return pipeline


def caffe() -> leat.Pipeline:
    """Caffe's LMDB: each value is a Datum, here with an image file and a label under 128."""
    import lmdb

    with lmdb.open("caffe", map_size=1 << 24) as database, database.begin(write=True) as transaction:
        for number, (photo, label) in enumerate(zip(PHOTOS, LABELS)):
            length = bytes([len(photo) & 127 | 128, len(photo) >> 7 & 127 | 128, len(photo) >> 14])
            datum = b"\x22" + length + photo + bytes([0x28, label, 0x38, 1])  # data, label, encoded
            transaction.put(f"{number:08}".encode(), datum)

    @leat.pipeline
    def pipeline() -> dict[str, leat.Node]:
        encoded, label = fn.readers.caffe("caffe")
        return {"image": fn.resize(fn.decode(encoded), size=32), "label": label}

    return pipeline


PACKAGES: dict[str, Callable[[], leat.Pipeline]] = {
    "pyarrow": parquet, "streaming": mds, "array_record": array_record, "lmdb": caffe,
}  # fmt: skip

if __name__ == "__main__":
    installed = [each for package, each in PACKAGES.items() if importlib.util.find_spec(package)]
    show(installed, sys.argv[1:])
