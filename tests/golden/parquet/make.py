# SPDX-License-Identifier: Apache-2.0
"""Makes the files beside it, which tests/worker/source/parquet/parquet_test.cc reads. Wants pyarrow; what it writes may differ
with its release: change the tests' files only where they are to hold something else."""

import pathlib
import struct

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parent
SMALL = {"store_schema": False, "write_statistics": False}


def write(name, columns, **options):
    pq.write_table(pa.table(columns), FOLDER / f"{name}.parquet", **{**SMALL, **options})


def write_grouped():
    """Forty rows in groups of eight, with statistics, without, and with some that lie."""
    ids = range(40)
    columns = {"id": pa.array(ids, pa.int64()),
               "small": pa.array([200 + i for i in ids], pa.uint8()),
               "part": pa.array([f"{'abcde'[i // 8]}/{i}" for i in ids]),
               "score": pa.array([float("nan") if i % 8 == 3 else i + 0.1 for i in ids], pa.float64()),
               "maybe": pa.array([None if i // 8 == 1 or i == 20 else i for i in ids], pa.int32()),
               "flag": pa.array([i >= 16 for i in ids]),
               "list": pa.array([[i] for i in ids], pa.list_(pa.int32())),
               "date": pa.array(ids, pa.date32())}
    options = {"row_group_size": 8, "store_schema": False}
    write("grouped", columns, **options, write_statistics=True)
    write("grouped_without", columns, **options)
    # The second group's ids are said to be 108 to 115, and the third's 7 to -7.
    path = FOLDER / "grouped.parquet"
    stored = bytearray(path.read_bytes())
    footer = len(stored) - 8 - struct.unpack("<I", stored[-8:-4])[0]
    for true, lie in {8: 108, 15: 115, 16: 7, 23: -7}.items():
        before, after = (b"\x08" + struct.pack("<q", value) for value in (true, lie))
        assert 1 <= stored.count(before, footer) <= 2, true
        stored[footer:] = stored[footer:].replace(before, after)
    (FOLDER / "grouped_lying.parquet").write_bytes(stored)


def main():
    write_grouped()
    # Ten rows in groups of four, a page every two rows.
    pages = {"row_group_size": 4, "data_page_size": 1, "write_batch_size": 2, "compression": "zstd"}
    flat = {"image": pa.array([{"bytes": b"image-%d" % i, "path": None} for i in range(10)]),
            "label": pa.array(range(-5, 5), pa.int64()),
            "small": pa.array([200 + i for i in range(10)], pa.uint8()),
            "score": pa.array([i + 0.1 for i in range(10)], pa.float64()),
            "kind": pa.array(["cat" if i % 3 else "dog" for i in range(10)])}
    write("flat", flat, **pages, write_page_checksum=True)
    write("indexed", flat, **pages, write_page_index=True, data_page_version="2.0")
    lists = {"ids": pa.array([list(range(i)) for i in range(6)], pa.list_(pa.int32())),
             "pairs": pa.array([[0.5 * i, 1.5, 2.5, 3.5] for i in range(6)], pa.list_(pa.float32())),
             "structs": pa.array([[{"a": i, "b": -i}] * 2 for i in range(6)])}
    write("lists", lists)
    write("lists_by_page", lists, data_page_version="2.0", data_page_size=1, write_batch_size=2)
    write("nulls", {"value": pa.array([1, None, 3], pa.int32()), "text": pa.array(["a", None, ""]),
                    "list": pa.array([[1], None, [2, None]], pa.list_(pa.int32())),
                    "empty": pa.array([[], None, [3]], pa.list_(pa.int32()))})
    write("refused", {"nested": pa.array([[[1]], [[2], []]]), "date": pa.array([1, 2], pa.date32()),
                      "texts": pa.array([["a"], []]), "big": pa.array([1, 2], pa.uint64()),
                      "decimal": pa.array([1, 2], pa.decimal128(9, 2)), "plain": pa.array([1, 2], pa.int64())})
    write("huge", {"zeros": pa.array([bytes(4 << 20)], pa.binary()), "small": [1]}, compression="zstd",
          use_dictionary=False)
    write("many", {"flag": pa.array([True] * 1_000_000)}, compression="zstd", column_encoding={"flag": "RLE"},
          use_dictionary=False, max_rows_per_page=1_000_000, data_page_version="2.0")
    # As Hugging Face's datasets write images.
    write("photos", {"image": pa.array([{"bytes": b"image-0", "path": "0.jpg"}]), "label": pa.array([1], pa.int64())})
    write("empty", {"label": pa.array([], pa.int64())})


if __name__ == "__main__":
    main()
