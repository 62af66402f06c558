# SPDX-License-Identifier: Apache-2.0
"""One peer in a process of its own: prints "rate IMAGES_PER_SECOND", "epochs FIRST TENTH", "prepared SECONDS", or
"absent REASON".

    python -m peers.measured PEER IMAGES SECONDS THREADS [FOLDER [epochs|prepare]]

FOLDER is for the results of prepare() (peers.PREPARED). With `epochs` it measures the first and the tenth epoch instead
of a rate: the first epoch begins before photos are listed and the loader is made, and after modules are imported.

All do the same: JPEG files are read and decoded, a random part (area 0.08 to 1, aspect 3/4 to 4/3) is resized to
224 x 224 and flipped with probability 0.5; batches of 64, uint8 HWC (torchvision: CHW), reach this process's memory.
"""

import importlib
import os
import pathlib
import sys
import time

from peers import BATCH, PEERS, PREPARED, photos

WARM_UP, EPOCHS = 4, 10


def rate(batches, seconds):
    """Returns images per second, after the first batches. `batches` gives arrays."""
    batches = iter(batches)
    images, start = 0, None
    for number, batch in enumerate(batches):
        now = time.perf_counter()
        if number + 1 == WARM_UP:
            start = now
        elif start is not None:
            images += len(batch)
            if now - start >= seconds:
                return images / (now - start)
    raise RuntimeError(f"it ended after {images} images and less than {seconds} s")


def epochs(start, batches, size):
    """Returns images per second of the first epoch, since `start`, and of the tenth. `batches` gives arrays without an
    end, and an epoch is `size` images of them; in a batch across its end the rest counts for the next one."""
    ends, images = [], 0
    for batch in batches:
        images += len(batch)
        while images >= size * (len(ends) + 1):
            ends.append((time.perf_counter(), images))
        if len(ends) >= EPOCHS:
            break
    else:
        raise RuntimeError(f"it ended after {images} images, before {EPOCHS} epochs of {size}")
    (before, images_before), (end, images_then) = ends[EPOCHS - 2:EPOCHS]
    return ends[0][1] / (ends[0][0] - start), (images_then - images_before) / (end - before)


def _found(peer, images, seconds, threads, folder, what):
    name, function, arguments = PEERS[peer]
    module = importlib.import_module(f"peers.{name}")
    if peer in PREPARED:
        arguments = {**arguments, "prepared": folder}
    if what == "prepare":
        start = time.perf_counter()
        module.prepare(photos.files(images), folder, threads)
        return f"prepared {time.perf_counter() - start:.1f}"
    start = time.perf_counter()
    files = photos.files(images)
    batches = getattr(module, function)(files, seconds, threads, **arguments)
    if what == "epochs":
        return "epochs {:.1f} {:.1f}".format(*epochs(start, batches, len(files)))
    return f"rate {rate(batches, seconds):.1f}"


def main(peer, images, seconds, threads, folder="", what="rate"):
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries goes to stderr
    try:
        found = _found(peer, images, float(seconds), int(threads), pathlib.Path(folder), what)
    except Exception as error:  # the reason is reported
        found = " ".join(f"absent {type(error).__name__}: {error}".split())
    print(found, file=answer, flush=True)
    os._exit(0)  # skips libraries' exit handlers, which may take long: the keeper ends their processes


if __name__ == "__main__":
    main(*sys.argv[1:])
