# SPDX-License-Identifier: Apache-2.0
"""readers.parquet against pyarrow's own reader, on files that its writer makes.

    ninja -C build/dev dump_source leat_parquet
    python tests/parity/readers_parquet.py build/dev/tests/parity/dump_source

Needs pyarrow and NumPy. It covers every codec that pyarrow has, dictionaries and plain pages, both versions of pages,
with and without an index of pages, small and large pages, and every other encoding that its writer has.
"""

import glob
import hashlib
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 700
# column -> (Arrow's type, Leat's)
COLUMNS = {
    "blob": (pa.binary(), "bytes"), "text": (pa.string(), "bytes"), "large": (pa.large_binary(), "bytes"),
    "fixed": (pa.binary(12), "uint8[3,4]"), "floats": (pa.binary(), "float32[?,2]"), "flag": (pa.bool_(), "bool"),
    "i8": (pa.int8(), "int32"), "i16": (pa.int16(), "int32"), "i32": (pa.int32(), "int32"),
    "i64": (pa.int64(), "int64"),
    "u8": (pa.uint8(), "uint8"), "u16": (pa.uint16(), "int32"), "u32": (pa.uint32(), "int64"),
    "f16": (pa.float16(), "float16"), "f32": (pa.float32(), "float32"), "f64": (pa.float64(), "float32"),
    "few": (pa.string(), "bytes"), "wide": (pa.int8(), "int64"), "half": (pa.float16(), "float32"),
    "ragged": (pa.list_(pa.int64()), "int64[?]"), "vector": (pa.list_(pa.float32(), 6), "float32[6]"),
    "rows": (pa.list_(pa.float64()), "float32[?,2]"), "flags": (pa.list_(pa.bool_()), "bool[?]"),
    "bytes8": (pa.list_(pa.uint8()), "uint8[?]"),
}
# Members of structures.
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
DTYPES = {"bool": np.bool_, "uint8": np.uint8, "int32": np.int32, "int64": np.int64, "float16": np.float16,
          "float32": np.float32}


def value(name, rng):
    """Returns one value of a column, as a Python value."""
    if name == "blob":
        return rng.randbytes(rng.choice([0, 7, 300]))
    if name == "text":
        return "ä" * rng.choice([0, 1, 50])
    if name == "few":
        return rng.choice(["cat", "dog", ""])
    if name == "large":
        return rng.randbytes(rng.choice([1, 5000]))
    if name == "fixed":
        return rng.randbytes(12)
    if name == "floats":
        return rng.randbytes(8 * rng.randrange(4))
    if name == "flag":
        return rng.random() < 0.5
    if name in ("ragged", "flags", "bytes8"):
        bound = {"ragged": 1 << 63, "flags": 2, "bytes8": 256}[name]
        numbers = [rng.randrange(bound) for _ in range(rng.choice([0, 1, 5, 40]))]
        return [bool(n) for n in numbers] if name == "flags" else numbers
    if name == "rows":
        return [rng.random() for _ in range(2 * rng.randrange(5))]
    if name == "vector":
        return [rng.random() for _ in range(6)]
    if name[0] == "f" or name == "half":
        return rng.random()
    bits = {"wide": 8}.get(name) or int(name[1:])
    return rng.randrange(1 << bits) if name[0] == "u" else rng.randrange(-1 << (bits - 1), 1 << (bits - 1))


def table(rows, seed):
    rng = random.Random(seed)
    arrays = {}
    for name, (kind, _) in COLUMNS.items():
        values = [value(name, rng) for _ in range(rows)]
        if kind == pa.float16() or name == "half":
            values = [np.float16(v) for v in values]
        arrays[name] = pa.array(values, kind)
    arrays["image"] = pa.array([{"bytes": rng.randbytes(rng.choice([100, 2000])), "path": None} for _ in range(rows)],
                               IMAGE)
    return pa.table(arrays)


def line(row, types):
    """Returns a line as dump_source prints it."""
    fields = []
    for (name, kind), cell in zip(types.items(), row):
        if kind == "encoded":
            fields.append((b"", "", cell))
            continue
        shape = kind[kind.index("["):] if "[" in kind else ("[?]" if kind == "bytes" else "")
        dtype = DTYPES[kind.split("[")[0]] if kind != "bytes" else np.uint8
        if isinstance(cell, str):
            cell = cell.encode()
        data = cell if isinstance(cell, bytes) else np.asarray(cell).astype(dtype).tobytes()
        inner = [int(size) for size in shape.strip("[]").split(",") if size and size != "?"]
        sizes = ""
        if "?" in shape:
            each = int(np.prod(inner)) if inner else 1
            sizes = ",".join(str(size) for size in [len(data) // np.dtype(dtype).itemsize // each, *inner])
        fields.append((name, sizes, data))
    return "".join(f" [{sizes}]{hashlib.sha256(data).hexdigest()}" for _, sizes, data in fields)


def compare(program, what, paths, types, environment=None):
    files = [file for path in paths
             for file in (sorted(pathlib.Path(path).rglob("*.parquet")) if os.path.isdir(path) else [path])]
    wanted = []
    for file in files:
        read = pq.read_table(file, use_threads=False).flatten()
        columns = [read.column(name).to_pylist() for name in types]
        wanted += [f"{len(wanted) + i}{line(row, types)}" for i, row in enumerate(zip(*columns))]
    done = subprocess.run([program, "readers.parquet", "paths:=" + "|".join(map(str, paths)),
                           "columns:=" + "|".join(types), "types:=" + "|".join(types.values())],
                          capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{what}: {done.stderr}")
    for ours, theirs in zip(done.stdout.splitlines(), wanted, strict=True):
        if ours != theirs:
            sys.exit(f"{what}: differ\n  leat    {ours}\n  pyarrow {theirs}")
    print(f"{what}: {len(wanted)} rows in {len(files)} files are the same")


def main():
    program = os.path.abspath(sys.argv[1])
    libraries = glob.glob(os.path.join(os.path.dirname(program), "..", "..", "worker", "libleat_parquet-*.so"))
    environment = {"LEAT_PARQUET_LIBRARY": os.path.normpath(max(libraries)), **os.environ}
    types = {name: kind for name, (_, kind) in COLUMNS.items()} | {"image.bytes": "encoded"}
    data = table(ROWS, 7)
    ways = [(f"{codec}, version {version}", {"compression": codec, "data_page_version": version})
            for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd") for version in ("1.0", "2.0")]
    for codec in ("none", "zstd"):
        for version in ("1.0", "2.0"):
            for index in (False, True):
                ways.append((f"{codec}, version {version}, small pages, index {index}",
                             {"compression": codec, "data_page_version": version, "data_page_size": 500,
                              "write_batch_size": 20, "write_page_index": index, "write_page_checksum": True}))
    ways.append(("plain", {"use_dictionary": False}))
    ways.append(("a dictionary that overflows", {"dictionary_pagesize_limit": 1000, "write_batch_size": 30}))
    encodings = {"i8": "DELTA_BINARY_PACKED", "i32": "DELTA_BINARY_PACKED", "i64": "DELTA_BINARY_PACKED",
                 "blob": "DELTA_LENGTH_BYTE_ARRAY", "text": "DELTA_BYTE_ARRAY", "fixed": "DELTA_BYTE_ARRAY",
                 "f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT", "f16": "BYTE_STREAM_SPLIT",
                 "u32": "BYTE_STREAM_SPLIT", "flag": "RLE", "large": "DELTA_LENGTH_BYTE_ARRAY"}
    ways.append(("delta and split", {"use_dictionary": False, "column_encoding": encodings,
                                     "data_page_version": "2.0"}))
    with tempfile.TemporaryDirectory() as folder:
        for what, options in ways:
            file = os.path.join(folder, "x.parquet")
            pq.write_table(data, file, row_group_size=250, **options)
            compare(program, what, [file], types, environment)
        many = pathlib.Path(folder, "many")
        many.mkdir()
        for i in range(5):
            pq.write_table(table(40 * i, i), many / f"part-{i}.parquet", row_group_size=33)
        compare(program, "a folder", [many], types, environment)
        required = pa.table({"i32": pa.array(range(50), pa.int32()), "text": [str(i) for i in range(50)]},
                            pa.schema([pa.field("i32", pa.int32(), False), pa.field("text", pa.string(), False)]))
        pq.write_table(required, os.path.join(folder, "required.parquet"))
        compare(program, "columns without nulls", [os.path.join(folder, "required.parquet")],
                {"text": "bytes", "i32": "int32"}, environment)


if __name__ == "__main__":
    main()
