# SPDX-License-Identifier: Apache-2.0
"""readers.file_list and readers.files against DALI's readers.file, on the same lists and files.

    ninja -C build/dev dump_source
    python tests/parity/readers_files.py build/dev/tests/parity/dump_source

Wants numpy and nvidia.dali.
"""

import hashlib
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from nvidia.dali import fn, pipeline_def

COUNT = 300


@pipeline_def(batch_size=COUNT, num_threads=1, device_id=None, prefetch_queue_depth=1)
def theirs(arguments):
    contents, labels = fn.readers.file(**arguments, name="files")
    return contents, labels


def dali(**arguments):
    pipeline = theirs(arguments)
    pipeline.build()
    if pipeline.epoch_size("files") != COUNT:
        sys.exit(f"DALI has {pipeline.epoch_size('files')} files, want {COUNT}")
    return [f"{i}" + "".join(f" []{hashlib.sha256(np.asarray(value).tobytes()).hexdigest()}" for value in sample)
            for i, sample in enumerate(zip(*(list(output) for output in pipeline.run()), strict=True))]


def leat(program, reader, *arguments):
    done = subprocess.run([program, reader, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{reader}: {done.stderr}")
    return done.stdout.splitlines()


def same(name, ours, wanted):
    for one, other in zip(ours, wanted, strict=True):
        if one != other:
            sys.exit(f"{name}: differ\n  leat {one}\n  DALI {other}")
    print(f"{name}: {len(wanted)} samples are the same")


def main():
    program, rng = sys.argv[1], np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        names = [f"{'a b' if i % 3 else 'c'}/{i:03} {i % 5}.jpg" for i in range(COUNT)]
        for name in names:
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(rng.bytes(int(rng.integers(1, 5000))))
        rng.shuffle(names)
        text = "".join(f"{name}{' ' * (1 + i % 3)}{rng.integers(0, 1000)}{' ' * (i % 2)}\n" + "\n" * (i % 7 == 0)
                       for i, name in enumerate(names))
        (root / "list.txt").write_text(text)
        same("file_list", leat(program, "readers.file_list", f"path={root}/list.txt"),
             dali(file_list=f"{root}/list.txt"))
        same("file_list with a root", leat(program, "readers.file_list", f"path={root}/list.txt", f"root={root}"),
             dali(file_list=f"{root}/list.txt", file_root=str(root)))
        same("files", leat(program, "readers.files", "files:=" + "|".join(names), f"root={root}"),
             dali(files=names, file_root=str(root)))


if __name__ == "__main__":
    main()
