# SPDX-License-Identifier: Apache-2.0
"""SPDL, whose threads decode by FFmpeg. Its filter crops, resizes and flips; batches are NumPy arrays."""

import random

import spdl.io
from spdl.pipeline import PipelineBuilder

from peers import BATCH, SIDE
from peers.crop import random_part


def _frames(path):
    packets = spdl.io.demux_image(path)
    left, top, right, bottom = random_part(packets.width, packets.height)
    steps = [f"crop={right - left}:{bottom - top}:{left}:{top}:exact=1", f"scale={SIDE}:{SIDE}:flags=bilinear"]
    if random.random() < 0.5:
        steps.append("hflip")
    return spdl.io.decode_packets(packets, filter_desc=",".join([*steps, "format=pix_fmts=rgb24"]))


def _batch(frames):
    return spdl.io.to_numpy(spdl.io.convert_frames(frames))


def _shuffled(files):
    files = list(files)
    while True:
        random.shuffle(files)
        yield from files


def batches(files, seconds, threads):
    pipeline = (PipelineBuilder().add_source(_shuffled(files)).pipe(_frames, concurrency=threads).aggregate(BATCH)
                .pipe(_batch).add_sink(2).build(num_threads=threads))
    with pipeline.auto_stop():
        yield from pipeline.get_iterator()
