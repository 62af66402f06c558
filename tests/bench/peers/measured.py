# SPDX-License-Identifier: Apache-2.0
"""One peer in a process of its own: prints "rate IMAGES_PER_SECOND", or "absent REASON".

    python -m peers.measured PEER IMAGES SECONDS THREADS

All do the same: JPEG files are read and decoded, a random part (area 0.08 to 1, aspect 3/4 to 4/3) is resized to
224 x 224 and flipped with probability 0.5; batches of 64, uint8 HWC (torchvision: CHW), reach this process's memory.
"""

import importlib
import os
import sys
import time

from peers import BATCH, PEERS, photos

WARM_UP = 4


def rate(batches, seconds):
    """Images a second, after the first batches. `batches` gives arrays."""
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


def main(peer, images, seconds, threads):
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print there
    try:
        module, function, arguments = PEERS[peer]
        loader = getattr(importlib.import_module(f"peers.{module}"), function)
        batches = loader(photos.files(images), float(seconds), int(threads), **arguments)
        found = f"rate {rate(batches, float(seconds)):.1f}"
    except Exception as error:  # the reason is what is reported
        found = " ".join(f"absent {type(error).__name__}: {error}".split())
    print(found, file=answer, flush=True)
    os._exit(0)  # without what libraries do at the end, which may take long: the keeper ends what they started


if __name__ == "__main__":
    main(*sys.argv[1:])
