# SPDX-License-Identifier: Apache-2.0
"""readers.tfrecord against TensorFlow's writer and parser, and DALI's reader, on files that TensorFlow writes.

    ninja -C build/dev dump_source
    python tests/parity/readers_tfrecord.py build/dev/tests/parity/dump_source

Wants tensorflow (any build) and, for the second half, nvidia-dali.
"""

import hashlib
import os
import random
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

FILES, RECORDS = 3, 200


def write(directory, rng):
    paths = []
    for f in range(FILES):
        path = os.path.join(directory, f"part-{f:05}-of-{FILES:05}.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(RECORDS + f):
                n = rng.choice([0, 1, 2, 7, 40])
                feature = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(
                        value=[rng.randbytes(rng.choice([0, 1, 100, 5000, 70000]))])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[rng.getrandbits(63) - 2**62])),
                    "ids": tf.train.Feature(int64_list=tf.train.Int64List(
                        value=[rng.randrange(-1000, 1000) for _ in range(n)])),
                    "boxes": tf.train.Feature(float_list=tf.train.FloatList(
                        value=[rng.random() for _ in range(4 * n)])),
                    "unused": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x", b"y"])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
        paths.append(path)
    return paths


def write_index(path):
    """Writes an index as DALI's tfrecord2idx does."""
    index = path + ".idx"
    with open(path, "rb") as data, open(index, "w") as out:
        while True:
            begin = data.tell()
            head = data.read(8)
            if not head:
                return index
            data.seek(int.from_bytes(head, "little") + 8, os.SEEK_CUR)
            out.write(f"{begin} {data.tell() - begin}\n")


def field(array, shape=""):
    array = np.ascontiguousarray(array)
    return f" [{shape}]{hashlib.sha256(array.tobytes()).hexdigest()}"


def by_tensorflow(paths):
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
        "ids": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        "boxes": tf.io.FixedLenSequenceFeature([4], tf.float32, allow_missing=True),
    }
    for i, record in enumerate(tf.data.TFRecordDataset(paths)):
        one = tf.io.parse_single_example(record, spec)
        image = np.frombuffer(one["image"].numpy(), np.uint8)
        ids, boxes = one["ids"].numpy(), one["boxes"].numpy()
        yield (f"{i}" + field(image) + field(one["label"].numpy()) + field(ids, len(ids)) +
               field(boxes, f"{len(boxes)},4"))


def by_dali(paths, indexes):
    from nvidia.dali import fn, pipeline_def, tfrecord as tfrec

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe():
        read = fn.readers.tfrecord(
            path=paths, index_path=indexes, features={
                "image": tfrec.FixedLenFeature((), tfrec.string, ""),
                "label": tfrec.FixedLenFeature([1], tfrec.int64, -1),
                "ids": tfrec.VarLenFeature(tfrec.int64, 0),
                "boxes": tfrec.VarLenFeature([4], tfrec.float32, 0.0),
            })
        return read["image"], read["label"], read["ids"], read["boxes"]

    built = pipe()
    built.build()
    for i in range(sum(RECORDS + f for f in range(FILES))):
        image, label, ids, boxes = (out.at(0) for out in built.run())
        yield (f"{i}" + field(image) + field(label) + field(ids, len(ids)) + field(boxes, f"{len(boxes)},4"))


def dump(program, *args):
    command = [program, "readers.tfrecord", "features:=image|label|ids|boxes",
               "types:=encoded|int64|int64[?]|float32[?,4]", *args]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return run.stdout.splitlines()


def same(name, ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        if a != b:
            sys.exit(f"{name}: differ\n  leat {a}\n  {name} {b}")
    print(f"{name}: {len(ours)} samples are the same")


def main():
    with tempfile.TemporaryDirectory() as directory:
        paths = write(directory, random.Random(5))
        indexes = [write_index(path) for path in paths]
        ours = dump(sys.argv[1], "paths:=" + directory)
        same("tensorflow", ours, list(by_tensorflow(paths)))
        indexed = dump(sys.argv[1], "paths:=" + "|".join(paths), "index:=" + "|".join(indexes))
        same("leat with DALI's index", indexed, ours)
        same("dali", ours, list(by_dali(paths, indexes)))


if __name__ == "__main__":
    main()
