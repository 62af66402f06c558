# SPDX-License-Identifier: Apache-2.0
"""Grain, one process per core, over Pillow."""

import grain.python as grain
from absl import flags

from peers import BATCH
from peers.pillow_image import image_of


def pillow(files, seconds, threads):
    flags.FLAGS(["peers"])  # Grain reads flags that a program of absl would have parsed
    images = grain.MapDataset.source(files).shuffle(seed=1).repeat().map(image_of)
    batches = images.batch(BATCH).to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=2))
    return batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=threads))
