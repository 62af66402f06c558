# SPDX-License-Identifier: Apache-2.0
"""DALI on the CPU. Fused: its decoder skips the parts that the random window does not need."""

from nvidia.dali import fn, pipeline_def

from peers import AREA, ASPECT, BATCH, SIDE


@pipeline_def
def _graph(files, fused):
    part, size = {"random_area": AREA, "random_aspect_ratio": ASPECT}, (SIDE, SIDE)
    encoded, label = fn.readers.file(files=files, random_shuffle=True)
    if fused:
        image = fn.resize(fn.decoders.image_random_crop(encoded, **part), size=size)
    else:
        image = fn.random_resized_crop(fn.decoders.image(encoded), size=size, **part)
    return fn.flip(image, horizontal=fn.random.coin_flip()), label


def batches(files, seconds, threads, fused):
    pipe = _graph(files, fused, batch_size=BATCH, num_threads=threads, device_id=None, prefetch_queue_depth=2, seed=1)
    pipe.build()
    while True:
        images, _ = pipe.run()
        yield images.as_array()
