# SPDX-License-Identifier: Apache-2.0
"""Makes the files that DALI's tests read, in a checkout of DALI_extra whose large files are pointers of Git LFS.

    data.py DALI_EXTRA MNIST

It replaces pointers by databases and archives: LMDBs of the photos of db/single/jpeg, in the formats of Caffe and
Caffe2, by mdb_load (Debian's lmdb-utils); tars of MNIST's digits as JPEGs, with the numbers of samples that the tests
count. MNIST is a folder with t10k-images-idx3-ubyte.gz and its labels. All other pointers stay.
"""

from __future__ import annotations

import gzip
import io
import pathlib
import subprocess
import sys
import tarfile
from collections.abc import Iterable

import numpy as np
from PIL import Image

_EACH = 1000  # samples per tar
_LABELLED = 500  # samples of missing.tar that have a label


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def caffe(photo: bytes, label: int, size: tuple[int, int]) -> bytes:
    """Returns a Datum."""
    pixels = _number(1, 3) + _number(2, size[1]) + _number(3, size[0])
    return pixels + _text(4, photo) + _number(5, label) + _number(7, 1)


def caffe2(photo: bytes, label: int | None) -> bytes:
    """Returns TensorProtos; None: there is no label."""
    image = _text(1, _number(2, 4) + _text(6, photo))
    return image if label is None else image + _text(1, _number(1, 1) + _number(2, 2) + _number(4, label))


def write_lmdb(folder: pathlib.Path, values: Iterable[bytes]) -> None:
    lines = [b"VERSION=3", b"format=bytevalue", b"type=btree", b"mapsize=1073741824", b"HEADER=END"]
    for i, value in enumerate(values):
        lines += [b" " + (b"%08d" % i).hex().encode(), b" " + value.hex().encode()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    subprocess.run(["mdb_load", str(folder)], input=b"\n".join([*lines, b"DATA=END", b""]), check=True)


def write_tar(path: pathlib.Path, files: Iterable[tuple[str, bytes]], form: int = tarfile.GNU_FORMAT) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as tar:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if form == tarfile.PAX_FORMAT:
                member.pax_headers = {"comment": "a header of each member"}
            tar.addfile(member, io.BytesIO(content))


def _databases(extra: pathlib.Path) -> None:
    lines = (extra / "db/single/jpeg/image_list.txt").read_text().splitlines()
    photos = [(extra / "db/single/jpeg" / name, int(label)) for name, label in (line.split() for line in lines)]
    records = [(path.read_bytes(), label, Image.open(path).size) for path, label in photos]
    write_lmdb(extra / "db/lmdb", (caffe(*each) for each in records))
    write_lmdb(extra / "db/lmdb_no_label", (caffe(photo, 0, size) for photo, _, size in records))
    write_lmdb(extra / "db/c2lmdb", (caffe2(photo, label) for photo, label, _ in records))
    write_lmdb(extra / "db/c2lmdb_no_label", (caffe2(photo, None) for photo, _, _ in records))


def _digits(mnist: pathlib.Path) -> list[tuple[bytes, bytes]]:
    pixels = np.frombuffer(gzip.open(mnist / "t10k-images-idx3-ubyte.gz").read()[16:], np.uint8).reshape(-1, 28, 28)
    labels = gzip.open(mnist / "t10k-labels-idx1-ubyte.gz").read()[8:]
    found = []
    for image, label in zip(pixels[: 3 * _EACH], labels):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG")
        found.append((file.getvalue(), b"%d" % label))
    return found


def _archives(extra: pathlib.Path, digits: list[tuple[bytes, bytes]]) -> None:
    folder = extra / "db/webdataset"

    def members(first: int, labels: str = "cls", step: int = 1, photos: str = "jpg") -> list[tuple[str, bytes]]:
        files = []
        for i in range(first, first + _EACH):
            name = i * step
            files.append((f"{name}.{photos}", digits[i][0]))
            if step == 1 or i - first < _LABELLED:
                files.append((f"{name}.{labels}", digits[i][1]))
        return files

    for i in range(3):
        write_tar(folder / f"MNIST/devel-{i}.tar", members(i * _EACH))
    # Samples with a label have names below 2500.
    write_tar(folder / "MNIST/missing.tar", members(0, step=5))
    mixed = [(name.replace("cls", "txt") if i % 4 == 1 else name, data) for i, (name, data) in enumerate(members(0))]
    write_tar(folder / "MNIST/scrambled.tar", mixed)
    write_tar(folder / "pax/devel-0.tar", members(0), tarfile.PAX_FORMAT)
    write_tar(folder / "case_insensitive/devel-0.tar", members(0, labels="Cls", photos="JPG"))
    arrays = [(kind, np.dtype(kind)) for kind in ("float16", "int32", "float64")]
    numbers = [(f"{i}.{name}", np.full(10, i, kind).tobytes()) for i in range(100) for name, kind in arrays]
    write_tar(folder / "sample-tar/dtypes.tar", numbers)
    write_tar(folder / "sample-tar/single.tar", [("0.txt", b"a text")])
    write_tar(folder / "sample-tar/empty.tar", [])


def main(extra: str, mnist: str) -> None:
    _databases(pathlib.Path(extra))
    _archives(pathlib.Path(extra), _digits(pathlib.Path(mnist)))


if __name__ == "__main__":
    main(*sys.argv[1:])
