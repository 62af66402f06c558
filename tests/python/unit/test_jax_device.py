# SPDX-License-Identifier: Apache-2.0
"""Batches in a GPU's memory, over a fake one: the memory is the host's, and JAX's device a CPU."""

import ctypes

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402
from leat import _jax_device, _placement  # noqa: E402

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class OnCpu:
    """A tensor of the fake GPU, as what it really is."""

    def __init__(self, tensor):
        self._capsule = tensor.__dlpack__(stream=-1)
        # dl_tensor.device.device_type
        ctypes.c_int32.from_address(_pointer(self._capsule, b"dltensor") + 8).value = 1

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        return self._capsule


@pytest.fixture
def gpu(fake, monkeypatch):
    """Makes the first CPU device look like CUDA device 1."""
    fake.set_devices(2)
    monkeypatch.delenv("LEAT_PLANE", raising=False)
    monkeypatch.setattr(_jax_device, "_imported", lambda tensor: jax.dlpack.from_dlpack(OnCpu(tensor)))
    monkeypatch.setattr(_jax_device, "cuda_device", lambda placements: 1)
    return SingleDeviceSharding(jax.devices()[0])


@pytest.mark.parametrize("finish", ["worker", "device"])
@pytest.mark.parametrize("job_name", ["images", "floats"])
def test_batches_are_the_jobs_batches(service, graph, gpu, job_name, finish):
    job = service.job(job_name, graph.images, batch=16)
    it = leat.jax.batches(job, sharding=gpu, epochs=2, finish=finish)
    assert isinstance(it._place, _jax_device.DevicePlacing)
    steps = 0
    for got, expected in zip(it, job.batches(epochs=2)):
        for name, array in expected.items():
            assert got[name].shape == array.shape and got[name].sharding == gpu
            assert np.asarray(got[name]).tobytes() == array.tobytes()
        steps += 1
    assert steps == 2 * len(job)


def test_arrays_kept_alive_keep_no_buffer_and_never_change(fake, floats, gpu):
    before = fake.live()
    it = leat.jax.batches(floats, sharding=gpu, epochs=0, finish="device")
    kept = [next(it) for _ in range(30)]
    assert fake.live() - before <= _jax_device._MAX_PENDING + 1
    for got, expected in zip(kept, floats.batches(epochs=5)):
        assert np.asarray(got["image"]).tobytes() == expected["image"].tobytes()
        assert np.asarray(got["label"]).tobytes() == expected["label"].tobytes()
    del expected
    it.close()
    del it
    jax.numpy.zeros(1).block_until_ready()
    assert fake.live() == before
    assert fake.last_stream() is None  # given back when nothing used them any more


def test_another_plane_is_not_the_devices(floats, gpu, monkeypatch):
    for plane in "grpc", "shm":
        monkeypatch.setenv("LEAT_PLANE", plane)
        it = leat.jax.batches(floats, sharding=gpu)
        assert not isinstance(it._place, _jax_device.DevicePlacing)
        assert np.asarray(next(it)["image"]).tobytes() == next(floats.batches())["image"].tobytes()


def test_without_such_a_device_batches_come_through_host_memory(fake, floats, gpu, monkeypatch):
    fake.set_devices(1)
    it = leat.jax.batches(floats, sharding=gpu)
    assert not isinstance(it._place, _jax_device.DevicePlacing)
    next(it)
    monkeypatch.setenv("LEAT_PLANE", "cuda")
    with pytest.raises(leat.FailedPrecondition, match="no such CUDA device"):
        leat.jax.batches(floats, sharding=gpu)


class Device:
    def __init__(self, platform, version, number=3):
        self.platform, self.local_hardware_id, self.id = platform, number, 7
        self.client = type("Client", (), {"platform_version": version})


def placed_on(*devices):
    pieces = tuple(_placement.Piece(device, slice(0, 4), ()) for device in devices)
    return {"x": _placement.Placement((4,), None, pieces)}


@pytest.mark.parametrize(
    ("device", "number"),
    [
        (Device("gpu", "PJRT C API\ncuda 12090"), 3),
        (Device("cuda", "cuda 12050", None), 7),
        (Device("gpu", "PJRT C API\nrocm 60300"), None),
        (Device("cpu", "cpu"), None),
        (Device("tpu", "TFRT TPU v5"), None),
    ],
)
def test_only_cuda_devices_count(device, number):
    assert _jax_device.cuda_device(placed_on(device)) == number


def test_several_devices_of_a_process_share_host_memory():
    assert _jax_device.cuda_device(placed_on(Device("cuda", "cuda 1"), Device("cuda", "cuda 1"))) is None


def test_here_there_is_no_gpu(floats):
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("data",)), P("data"))
    it = leat.jax.batches(floats, sharding=sharding, finish="device")
    assert not isinstance(it._place, _jax_device.DevicePlacing)
