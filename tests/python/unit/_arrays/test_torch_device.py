# SPDX-License-Identifier: Apache-2.0
"""leat.torch's handling of batches in a GPU's memory, with a fake GPU, and with a stand-in for torch.

Streams are numbers here; e2e/torch_streams.py tests their effect on memory.
"""

import types

import numpy as np
import pytest
from on_cpu import OnCpu

import leat
from leat._arrays import torch_device


class Cuda:
    """A stand-in for torch: streams are numbers, tensors are NumPy's, and calls are recorded."""

    def __init__(self):
        self.stream = 7
        self.done = []

    def current_stream(self):
        return self.stream

    def is_capturing(self):
        return False

    def view(self, tensor):
        return np.from_dlpack(OnCpu(tensor))

    def copy(self, tensor):
        self.done.append(("copy", self.stream))
        return tensor.copy()

    def shares(self, tensor, other):
        return tensor.ctypes.data == other.ctypes.data


@pytest.fixture
def cuda():
    return Cuda()


@pytest.fixture
def opened(fake, job):
    fake.set_devices(2)
    it = job._open(device=1, epochs=0)
    yield it
    it.close()


def test_what_is_handed_out_is_a_copy_and_the_buffer_goes_back_at_once(fake, job, cuda, opened):
    before = fake.live()
    handing = torch_device.Handing(cuda, {}, view=False)
    kept = [handing(next(opened)) for _ in range(3)]
    assert fake.live() == before
    assert fake.last_stream() == 7 and cuda.done == 6 * [("copy", 7)]
    for got, expected in zip(kept, job.batches()):
        for name, array in expected.items():
            assert got[name].tobytes() == array.tobytes()


def test_the_copy_and_the_release_are_on_the_stream_of_the_moment(fake, cuda, opened):
    handing = torch_device.Handing(cuda, {}, view=False)
    for stream in 1, 2, 0x7F00DEADBEE0:
        cuda.stream = stream
        handing(next(opened))
        assert fake.last_stream() == stream and cuda.done[-1] == ("copy", stream)


def test_what_an_epilogue_has_made_is_not_copied_again(cuda, opened):
    def turned(array):
        return np.ascontiguousarray(array.transpose(0, 3, 1, 2))

    handing = torch_device.Handing(cuda, {"image": turned, "label": lambda array: array}, view=False)
    got = handing(next(opened))
    assert got["image"].shape[1] == 3
    assert cuda.done == [("copy", 7)], "the labels alone, which came back as they were"


def test_a_view_is_the_buffer_itself_until_the_last_is_dropped(fake, cuda, opened):
    before = fake.live()
    handing = torch_device.Handing(cuda, {}, view=True)
    got = handing(next(opened))
    cuda.stream = 8
    for _ in range(20):
        handing(next(opened))
    assert cuda.done == [] and fake.live() == before + 1
    del got["image"]
    assert fake.live() == before + 1
    cuda.stream = 9
    got.clear()
    assert fake.live() == before and fake.last_stream() == 7, "of the hand-out"


def test_an_epilogue_that_fails_keeps_no_buffer(fake, cuda, opened):
    def broken(array):
        raise RuntimeError("out of memory")

    before = fake.live()
    handing = torch_device.Handing(cuda, {"label": broken}, view=False)
    with pytest.raises(RuntimeError, match="out of memory"):
        handing(next(opened))
    assert fake.live() == before


torch_there = pytest.mark.skipif("not __import__('importlib').util.find_spec('torch')", reason="no torch")


@pytest.fixture
def gpu(fake, monkeypatch):
    """Sets up leat.torch over a torch whose CUDA device 1 is the CPU."""
    torch = pytest.importorskip("torch")
    import leat.torch

    class TorchOnCpu(Cuda):
        made = []

        def __init__(self, device):
            super().__init__()
            self.asked = device
            self.device = torch.device("cpu")
            self.capturing = False
            self.made.append(self)

        def is_capturing(self):
            return self.capturing

        def view(self, tensor):
            return torch.from_dlpack(OnCpu(tensor))

        def copy(self, tensor):
            self.done.append(("copy", self.stream))
            return tensor.clone()

        def shares(self, tensor, other):
            return tensor.data_ptr() == other.data_ptr()

    fake.set_devices(2)
    monkeypatch.delenv("LEAT_TRANSPORT", raising=False)
    monkeypatch.setattr(torch.version, "cuda", "12.4")
    monkeypatch.setattr(leat.torch, "_TorchCuda", TorchOnCpu)
    return TorchOnCpu


@torch_there
@pytest.mark.parametrize("epilogue", ["worker", "device"])
@pytest.mark.parametrize("view", [False, True])
def test_torch_gets_the_jobs_batches(fake, floats, gpu, epilogue, view):
    before = fake.live()
    it = leat.torch.batches(floats, device="cuda:1", epochs=2, epilogue=epilogue, view=view)
    (cuda,) = gpu.made[-1:]
    assert str(cuda.asked) == "cuda:1"
    kept = [next(it) for _ in range(4)]
    for got, expected in zip(kept, floats.batches(epochs=2)):
        for name, array in expected.items():
            assert got[name].numpy().tobytes() == array.tobytes()
    del expected, array, got
    assert fake.live() - before == (4 if view else 0)
    assert len(cuda.done) == (0 if view else 4 if epilogue == "device" else 8)
    it.close()


@torch_there
def test_a_dataset_hands_out_copies_or_views(fake, job, gpu):
    for view, live in (False, 0), (True, 1):
        before = fake.live()
        dataset = leat.torch.IterableDataset(job, device="cuda:1", view=view)
        kept = next(iter(dataset))
        assert fake.live() == before + live and len(kept) == 2
        del kept
        dataset.close()


@torch_there
def test_a_batch_through_host_memory_is_not_taken_in_a_capture(job, gpu, monkeypatch):
    monkeypatch.setenv("LEAT_TRANSPORT", "shm")
    import torch

    it = leat.torch.batches(job, device="cuda:1")
    (cuda,) = gpu.made[-1:]
    monkeypatch.setattr(it, "_placed", lambda name, tensor: tensor)
    cuda.capturing = True
    with pytest.raises(leat.FailedPrecondition, match="comes through host memory cannot be taken while"):
        next(it)
    cuda.capturing = False
    assert torch.equal(next(it)["label"], torch.arange(10, dtype=torch.int32)), "nothing was lost"


@torch_there
def test_what_torch_itself_is_asked(job, monkeypatch):
    torch = pytest.importorskip("torch")
    import leat.torch

    cuda = leat.torch._TorchCuda(torch.device("cuda", 1))
    asked = []
    for address, stream in (0, 1), (0x7F00DEADBEE0, 0x7F00DEADBEE0):
        monkeypatch.setattr(
            torch.cuda,
            "current_stream",
            lambda device, address=address: asked.append(device) or types.SimpleNamespace(cuda_stream=address),
        )
        assert cuda.current_stream() == stream and asked[-1] == torch.device("cuda", 1)
    tensor = torch.arange(12)
    copied = cuda.copy(tensor)
    assert torch.equal(copied, tensor)
    assert cuda.shares(tensor, tensor[:3]) and not cuda.shares(tensor, copied)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert leat.torch._TorchCuda(None).is_capturing() is False
