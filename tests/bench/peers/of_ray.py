# SPDX-License-Identifier: Apache-2.0
"""Ray Data, with as many processors as threads, over Pillow."""

import logging

import ray
import ray.data

from peers import BATCH
from peers.pillow_image import image_of

# Its list of rows has an end: enough for a machine of this many images a second, in blocks of 250 rows.
_MAX_RATE, _LEAST_ROWS, _BLOCK = 16_000, 100_000, 250


def _row(row):
    return {"image": image_of(row["path"])}


def pillow(files, seconds, threads):
    ray.init(num_cpus=threads, logging_level=logging.ERROR, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    rounds = -(-max(_LEAST_ROWS, int(_MAX_RATE * seconds)) // len(files))
    rows = [{"path": path} for path in files] * rounds
    images = ray.data.from_items(rows, override_num_blocks=len(rows) // _BLOCK).map(_row)
    return (batch["image"] for batch in images.iter_batches(batch_size=BATCH, batch_format="numpy"))
