# SPDX-License-Identifier: Apache-2.0
"""readers.numpy against numpy.load, on files that NumPy writes.

    ninja -C build/dev dump_source
    python tests/parity/readers_numpy.py build/dev/tests/parity/dump_source

Wants numpy.
"""

import hashlib
import os
import subprocess
import sys
import tempfile

import numpy as np

DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "int8", "int16", "uint16", "uint32"]


def field(array, open_axes=False):
    shape = ",".join(map(str, array.shape)) if open_axes else ""
    return f" [{shape}]{hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"


def random_array(rng, dtype, shape):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def same(name, program, arguments, wanted):
    done = subprocess.run([program, "readers.numpy", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}")
    for ours, theirs in zip(done.stdout.splitlines(), wanted, strict=True):
        if ours != theirs:
            sys.exit(f"{name}: differ\n  leat  {ours}\n  numpy {theirs}")
    print(f"{name}: {len(wanted)} samples are the same")


def check(program, directory, rng, dtype):
    paths = []
    for i in range(40):
        shape = (3, 4, 5) if i % 2 else (int(rng.integers(1, 9)), 4, 5)
        array = random_array(rng, dtype, shape)
        paths.append(os.path.join(directory, f"{dtype}-{i:03}.npy"))
        with open(paths[-1], "wb") as out:
            order = np.asfortranarray(array) if i % 3 == 0 else array
            np.lib.format.write_array(out, order, version=[(1, 0), (2, 0), (3, 0)][i % 3])
    arrays = [np.load(path) for path in paths]
    same(f"{dtype} files", program, ["files:=" + "|".join(paths)],
         [f"{i}" + field(a, True) for i, a in enumerate(arrays)])
    same(f"{dtype} folder", program, [f"path={directory}", f"pattern={dtype}-*.npy"],
         [f"{i}" + field(a, True) for i, a in enumerate(arrays)])
    one = os.path.join(directory, f"all-{dtype}.npy")
    np.save(one, random_array(rng, dtype, (1000, 7, 3)))
    same(f"{dtype} rows", program, [f"array={one}"], [f"{i}" + field(row) for i, row in enumerate(np.load(one))])


def main():
    rng = np.random.default_rng(5)
    for dtype in DTYPES:
        with tempfile.TemporaryDirectory() as directory:
            check(sys.argv[1], directory, rng, dtype)


if __name__ == "__main__":
    main()
