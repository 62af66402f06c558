# SPDX-License-Identifier: Apache-2.0
"""readers.mds against mosaicml-streaming's own reader, on folders that its writer makes.

    ninja -C build/dev dump_source
    python tests/parity/readers_mds.py build/dev/tests/parity/dump_source

Wants mosaicml-streaming.
"""

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
from streaming.base.compression import decompress
from streaming.base.format.mds.reader import MDSReader
from streaming.base.format.mds.writer import MDSWriter

COLUMNS = {
    "image": "jpeg", "blob": "bytes", "text": "str", "label": "int", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "f16": "float16", "f32": "float32",
    "f64": "float64", "array": "ndarray:int16:2,3", "pixels": "ndarray:uint8:28,28", "tokens": "bytes",
    "unread": "json",
}
TYPES = {"image": "encoded", "blob": "bytes", "text": "bytes", "label": "int64", "i8": "int8", "i16": "int16",
         "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "f16": "float16",
         "f32": "float32", "f64": "float32", "array": "int16[2,3]", "pixels": "uint8[28,28]", "tokens": "uint16[?]"}
READ = [name for name in COLUMNS if name != "unread"]
WIDENED = {"float64": "float32"}


def sample(rng, i):
    numbers = np.random.default_rng(i)
    return {
        "image": rng.randbytes(rng.choice([1, 100, 9000])), "blob": rng.randbytes(rng.choice([0, 7, 1000])),
        "text": "ä" * rng.choice([0, 1, 50]), "label": rng.randrange(-10**12, 10**12),
        "i8": np.int8(rng.randrange(-128, 128)), "i16": np.int16(rng.randrange(-2**15, 2**15)),
        "i32": np.int32(rng.randrange(-2**31, 2**31)), "i64": np.int64(rng.randrange(-2**63, 2**63)),
        "u8": np.uint8(rng.randrange(256)), "u16": np.uint16(rng.randrange(2**16)),
        "u32": np.uint32(rng.randrange(2**32)), "f16": np.float16(rng.random()), "f32": np.float32(rng.random()),
        "f64": np.float64(rng.random()), "array": numbers.integers(-2**15, 2**15, (2, 3)).astype(np.int16),
        "pixels": numbers.integers(0, 256, (28, 28)).astype(np.uint8),
        "tokens": numbers.integers(0, 2**16, rng.choice([0, 1, 700])).astype(np.uint16).tobytes(),
        "unread": {"a": [1, 2, i]},
    }


def field(name, value, declared):
    encoding = COLUMNS[name]
    if encoding in ("jpeg", "bytes", "str"):
        data = value.encode() if isinstance(value, str) else value
        size = 2 if declared and name == "tokens" else 1
        shape = "" if encoding == "jpeg" else str(len(data) // size)
        return f" [{shape}]{hashlib.sha256(data).hexdigest()}"
    array = np.asarray(value)
    array = array.astype(WIDENED.get(array.dtype.name, array.dtype.name))
    return f" []{hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"


class Reader(MDSReader):
    """Gives JPEG columns as their bytes."""

    def decode_sample(self, data):
        jpegs = self.column_encodings
        self.column_encodings = ["bytes" if encoding == "jpeg" else encoding for encoding in jpegs]
        try:
            return super().decode_sample(data)
        finally:
            self.column_encodings = jpegs


def by_streaming(directory, compression):
    with open(os.path.join(directory, "index.json"), encoding="utf-8") as text:
        shards = json.load(text)["shards"]
    for shard in shards:
        raw = os.path.join(directory, shard["raw_data"]["basename"])
        made = not os.path.exists(raw)
        if made:
            with open(os.path.join(directory, shard["zip_data"]["basename"]), "rb") as packed, open(raw, "wb") as out:
                out.write(decompress(compression, packed.read()))
        reader = Reader.from_json(directory, None if "split" not in shard else shard["split"], shard)
        reader.split = ""
        for i in range(shard["samples"]):
            yield reader[i]
        if made:
            os.remove(raw)


def check(program, compression, hashes):
    with tempfile.TemporaryDirectory() as parent:
        directory = os.path.join(parent, "set")
        rng = random.Random(7)
        with MDSWriter(out=directory, columns=COLUMNS, compression=compression, hashes=hashes,
                       size_limit=1 << 18) as writer:
            for i in range(400):
                writer.write(sample(rng, i))
        samples = list(by_streaming(directory, compression))
        for declared in ([], ["types:=" + "|".join(TYPES[name] for name in READ)]):
            wanted = [f"{i}" + "".join(field(name, one[name], declared) for name in READ)
                      for i, one in enumerate(samples)]
            arguments = [f"path={directory}", "columns:=" + "|".join(READ), *declared]
            done = subprocess.run([program, "readers.mds", *arguments], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{compression}: {done.stderr}")
            for ours, theirs in zip(done.stdout.splitlines(), wanted, strict=True):
                if ours != theirs:
                    sys.exit(f"{compression} {declared}: differ\n  leat      {ours}\n  streaming {theirs}")
        shards = sum(name.startswith("shard") for name in os.listdir(directory))
        print(f"{compression}, hashes {hashes}: {len(samples)} samples in {shards} shards are the same")


def main():
    for compression, hashes in [(None, None), ("zstd", ["sha1"]), ("zstd:7", ["md5", "xxh64"]),
                                ("gz", ["blake2b", "sha256"]), ("br:5", ["sha3_256"])]:
        check(sys.argv[1], compression, hashes)


if __name__ == "__main__":
    main()
