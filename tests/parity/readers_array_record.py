# SPDX-License-Identifier: Apache-2.0
"""readers.array_record against array_record's own reader, on files that its writer makes.

    ninja -C build/dev dump_source
    python tests/parity/readers_array_record.py build/dev/tests/parity/dump_source

Wants array_record.
"""

import hashlib
import os
import random
import subprocess
import sys
import tempfile

from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

OPTIONS = ["", "uncompressed", "zstd:9", "brotli:3", "group_size:7,uncompressed", "group_size:1000",
           "group_size:64,brotli:6", "group_size:10,zstd:3,pad_to_block_boundary:true"]
SIZES = [0, 1, 100, 5000, 65_536, 200_000]


def write(path, options, rng):
    writer = ArrayRecordWriter(path, options)
    for _ in range(rng.randrange(150, 250)):
        size = rng.choice(SIZES)
        writer.write(rng.randbytes(size) if rng.random() < 0.5 else bytes([rng.randrange(256)]) * size)
    writer.close()


def main():
    for options in OPTIONS:
        with tempfile.TemporaryDirectory() as directory:
            rng = random.Random(11)
            paths = [os.path.join(directory, name) for name in ("a", "b")]
            wanted = []
            for path in paths:
                write(path, options, rng)
                reader = ArrayRecordReader(path)
                wanted += [hashlib.sha256(reader.read([i])[0]).hexdigest() for i in range(reader.num_records())]
            done = subprocess.run([sys.argv[1], "readers.array_record", "paths:=" + "|".join(paths)],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"\"{options}\": {done.stderr}")
            for i, (ours, theirs) in enumerate(zip(done.stdout.splitlines(), wanted, strict=True)):
                if ours != f"{i} []{theirs}":
                    sys.exit(f"\"{options}\": differ\n  leat         {ours}\n  array_record {theirs}")
            print(f"\"{options}\": {len(wanted)} records are the same")


if __name__ == "__main__":
    main()
