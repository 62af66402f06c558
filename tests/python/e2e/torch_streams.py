# SPDX-License-Identifier: Apache-2.0
"""A trainer's streams and CUDA graphs with batches in the memory of CUDA device 0, whose fake driver uses host memory:
run by test_device_e2e.py.

Arguments: a folder of pictures. Prints a line for each scene: its name, and what went wrong.
"""

import sys

from looks_like_torch import Cuda

import leat
from leat import fn
from leat._arrays import torch_device

WINDOW = 2
BUFFERS = WINDOW + 2  # of an iterator


@leat.pipeline
def train(path):
    encoded, label = fn.readers.image_folder(path)
    image = fn.random_resized_crop(fn.decode(encoded), size=(16, 20))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}


class Trainer:
    """Takes batches as leat.torch does; its forward pass copies them to memory that the test can read."""

    def __init__(self, job, expected, *, view):
        self.cuda = Cuda()
        self.main, self.side = self.cuda.stream(), self.cuda.stream()
        self.it = job._open(epochs=0, device=0, window=WINDOW)
        self.handing = torch_device.Handing(self.cuda, {}, view=view)
        self.expected = [batch for _ in range(4) for batch in expected]
        self.taken = 0

    def next(self):
        """Returns (tensors, the bytes that they should have)."""
        batch = self.handing(next(self.it))
        self.taken += 1
        return batch, self.expected[self.taken - 1]

    def forward(self, batch, stream):
        """Queues a read of the batch; returns what it will have read."""
        seen = {name: self.cuda.empty(tensor.size) for name, tensor in batch.items()}
        for name, tensor in batch.items():
            self.cuda.queue_copy(seen[name], tensor, stream)
        return seen

    def wrong(self, seen, expected):
        return sum(self.cuda.bytes(seen[name]) != expected[name] for name in expected)


def second_stream(trainer):
    """A prefetcher: batches are taken on one stream, and used on another, which lags behind."""
    cuda, passes = trainer.cuda, []
    cuda.hold(trainer.main)
    for _ in range(2 * BUFFERS):
        with cuda.on(trainer.side):
            batch, expected = trainer.next()
        cuda.wait(trainer.main, trainer.side)
        passes.append((trainer.forward(batch, trainer.main), expected))
        del batch
    cuda.release(trainer.main)
    cuda.synchronize(trainer.main)
    return sum(trainer.wrong(seen, expected) for seen, expected in passes)


def one_stream(trainer):
    """Batches are taken and used on one stream, the intended use of a view."""
    cuda, wrong = trainer.cuda, 0
    with cuda.on(trainer.main):
        for _ in range(2 * BUFFERS):
            batch, expected = trainer.next()
            seen = trainer.forward(batch, trainer.main)
            del batch
            cuda.synchronize(trainer.main)
            wrong += trainer.wrong(seen, expected)
    return wrong


def captured(trainer):
    """A batch is taken within a capture, while the library reads ahead; then others are, and the graph is replayed."""
    cuda = trainer.cuda
    with cuda.graph(trainer.main) as graph:
        batch, expected = trainer.next()
        assert cuda.is_capturing()
        seen = trainer.forward(batch, trainer.main)
        del batch
    wrong = 0
    with cuda.on(trainer.side):
        for _ in range(2 * BUFFERS):
            other, others = trainer.next()
            passed = trainer.forward(other, trainer.side)
            del other
            cuda.synchronize(trainer.side)
            wrong += trainer.wrong(passed, others)
            cuda.replay(graph, trainer.main)
            cuda.synchronize(trainer.main)
            wrong += trainer.wrong(seen, expected)
    return wrong


def captures_without_end(trainer):
    """Takes a batch within each of more captures than there are buffers: an error that names a remedy."""
    cuda = trainer.cuda
    for _ in range(3 * BUFFERS):
        try:
            with cuda.graph(trainer.main):
                trainer.next()
        except leat.ResourceExhausted as error:
            assert "Take batches outside of captures" in str(error), error
            return 0
    return 1


def main(folder):
    with leat.connect(devices="all") as service:
        job = service.job("streams", train(folder), batch=16, seed=3)
        expected = [{name: array.tobytes() for name, array in batch.items()} for batch in job.batches(epochs=4)]
        for scene, view in (
            (second_stream, False),
            (one_stream, False),
            (one_stream, True),
            (captured, False),
            (captured, True),
            (captures_without_end, False),
            (second_stream, True),
        ):
            trainer = Trainer(job, expected, view=view)
            before = len(trainer.cuda.violations())
            wrong = scene(trainer)
            broken = trainer.cuda.violations()[before:]
            trainer.it.close()
            print(scene.__name__, "view" if view else "copy", wrong, len(broken), broken[:1], flush=True)


main(sys.argv[1])
