# SPDX-License-Identifier: Apache-2.0
"""Makes the data of the tests, as test_data.py describes it; does nothing if the same programs have made it already.

    make_test_data.py FOLDER MAKE_PHOTOS MAKE_TEST_SETS

The folder appears complete or not at all: it is made under another name. FOLDER/.made-by has the hash of its makers.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

PHOTOS, CLASSES, SIDE = 500, 125, 400  # smaller than a camera's: they are decoded often
ANIMALS = 8  # of each kind
STOPS = (signal.SIGTERM, signal.SIGINT)


def hash_of(paths):
    digest = hashlib.sha256()
    for path in paths:
        digest.update(hashlib.sha256(pathlib.Path(path).read_bytes()).digest())
    return digest.hexdigest()


def make(folder, make_photos, make_test_sets):
    """Makes everything in `folder`, which is empty; the programs run in parallel."""
    animals = folder / "dogs-cats"
    commands = [
        [make_photos, folder / "imagenet-sample", PHOTOS, "--classes", CLASSES, "--max-side", SIDE],
        [make_test_sets, folder],
        [make_photos, animals, 2 * ANIMALS, "--classes", 2, "--max-side", SIDE],
    ]
    processes = []
    try:
        # A signal between a start and its entry in the list would leave a process that is never ended.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        for command in commands:
            processes.append(subprocess.Popen(
                [str(word) for word in command], stdout=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        for process in processes:
            if process.wait() != 0:
                sys.exit(f"make_test_data.py: {' '.join(map(str, process.args))}: exit code {process.returncode}")
    finally:
        for process in processes:  # and their children, which would continue to write
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    cats, dogs = sorted(animals.iterdir())
    cats.rename(animals / "cat")
    dogs.rename(animals / "dog")


def remove(folder):
    """Removes the folder, even if a killed process finishes its last write to it only now."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve()
    programs = sys.argv[2:]
    stamp, makers = folder / ".made-by", hash_of([__file__, *programs])
    if stamp.exists() and stamp.read_text() == makers:
        stamp.touch()  # newer than its makers, for the build
        return
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("make_test_data.py: stopped"))
    try:
        partial.mkdir(parents=True)
        make(partial, *programs)
        (partial / stamp.name).write_text(makers)
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)
    finally:
        remove(partial)


if __name__ == "__main__":
    main()
