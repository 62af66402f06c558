# SPDX-License-Identifier: Apache-2.0
"""Compares readers.caffe2 and readers.caffe with DALI's, on LMDB files of MNIST, sample by sample.

By hand: build/peers-venv/bin/python tests/parity/readers_lmdb.py BUILD/tests/parity/dump_source

MNIST is that of LEAT_TEST_DATA, or of LEAT_MADE_DATA, the build's test-data/. mdb_load (Debian's lmdb-utils) writes the
files in the format of DALI's MNIST: gray JPEGs in TensorProtos; and as raw pixels, and as Datum.
"""

import gzip
import hashlib
import io
import pathlib
import subprocess
import sys
import tempfile

import numpy
from nvidia.dali import fn, pipeline_def
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import test_data  # noqa: E402

SAMPLES, BATCH = 2000, 100


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def label_proto(label):
    return text(1, number(1, 1) + number(2, 2) + number(4, label))


def encoded(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


KINDS = {
    "caffe2 of JPEGs": ("caffe2", lambda p, l: text(1, number(2, 4) + text(6, encoded(p))) + label_proto(l)),
    "caffe2 of pixels": ("caffe2", lambda p, l: text(1, b"".join(number(1, n) for n in (*p.shape, 1)) + number(2, 3) +
                                                     text(5, p.tobytes())) + label_proto(l)),
    "caffe of JPEGs": ("caffe", lambda p, l: text(4, encoded(p)) + number(5, l) + number(7, 1)),
    "caffe of pixels": ("caffe", lambda p, l: number(1, 1) + number(2, 28) + number(3, 28) + text(4, p.tobytes()) +
                        number(5, l) + number(7, 0)),
}


def write(folder, values):
    lines = [b"VERSION=3", b"format=bytevalue", b"type=btree", b"mapsize=1073741824", b"HEADER=END"]
    for i, value in enumerate(values):
        lines += [b" " + (b"%08d" % i).hex().encode(), b" " + value.hex().encode()]
    folder.mkdir()
    subprocess.run(["mdb_load", str(folder)], input=b"\n".join([*lines, b"DATA=END", b""]), check=True)


def by_dali(reader, folder):
    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
    def pipeline():
        return tuple(getattr(fn.readers, reader)(path=str(folder)))
    pipe = pipeline()
    for _ in range(SAMPLES // BATCH):
        images, labels = pipe.run()
        for i in range(BATCH):
            yield [hashlib.sha256(numpy.asarray(field.at(i)).tobytes()).hexdigest() for field in (images, labels)]


def by_leat(program, reader, folder):
    out = subprocess.run([program, f"readers.{reader}", f"path:={folder}"], check=True, capture_output=True, text=True)
    for line in out.stdout.splitlines():
        yield [word[-64:] for word in line.split()[1:]]  # skips the sample's number, and the shape before each hash


def main(program):
    mnist = test_data.best("mnist")
    images = numpy.frombuffer(gzip.open(mnist / "t10k-images-idx3-ubyte.gz").read()[16:], numpy.uint8)
    labels = gzip.open(mnist / "t10k-labels-idx1-ubyte.gz").read()[8:]
    images = images.reshape(-1, 28, 28)
    failed = False
    for name, (reader, value) in KINDS.items():
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root) / "db"
            write(folder, (value(images[i], labels[i]) for i in range(SAMPLES)))
            dali, leat = list(by_dali(reader, folder)), list(by_leat(program, reader, folder))
            same = sum(a == b for a, b in zip(dali, leat))
            good = same == len(dali) == len(leat) == SAMPLES
            failed |= not good
            print(f"{name:18} {same} of {SAMPLES} samples the same: {'ok' if good else 'FAILED'}")
            if not good:
                print("  first by DALI:", dali[:1], "\n  by Leat:", leat[:1])
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
