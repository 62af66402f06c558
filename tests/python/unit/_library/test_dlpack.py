# SPDX-License-Identifier: Apache-2.0
"""Tensors as DLPack capsules, with consumers made of ctypes, NumPy and JAX."""

import ctypes
import gc
import threading

import numpy as np
import pytest

from leat._library import buffer as _buffer, native

_api = ctypes.pythonapi
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_USED = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# CFUNCTYPE: called without the GIL.
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


class Consumer:
    """Takes a capsule as DLPack specifies; `drop` ends its use."""

    def __init__(self, capsule):
        name = _api.PyCapsule_GetName(capsule)
        if name not in _USED:
            raise ValueError(f"a capsule named {name!r} has been consumed")
        self._address = _api.PyCapsule_GetPointer(capsule, name)
        kind = Managed if name == b"dltensor" else ManagedVersioned
        self.managed = kind.from_address(self._address)
        self.tensor = self.managed.tensor
        self._deleter = _DELETER(ctypes.cast(self.managed.deleter, ctypes.c_void_p).value)
        _api.PyCapsule_SetName(capsule, _USED[name])

    def bytes(self):
        shape = self.tensor.shape[: self.tensor.ndim]
        return ctypes.string_at(self.tensor.data, int(np.prod(shape)) * self.tensor.bits // 8)

    def drop(self):
        self._deleter(self._address)


def churn(job):
    """Makes the library reuse free buffers."""
    for _ in job.batches(epochs=3):
        pass


@pytest.fixture
def batch(job):
    """Takes the first batch as tensors; the returned object owns it."""

    def take():
        buffer = _buffer.Buffer(job)
        it = job.batches()
        native.check(it._handle.call(native.lib.leat_batches_next, -1.0, ctypes.byref(buffer.out)))
        it.close()
        return _buffer.tensors(buffer)

    return take


@pytest.fixture
def on_device(fake, job):
    fake.set_devices(2)
    it = job._open(device=1)
    yield lambda: next(it)
    it.close()


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 3)])
def test_a_capsule_says_what_the_tensor_is(fake, job, batch, version):
    before = fake.live()
    expected = next(job.batches())
    tensors = batch()
    for name, code, bits in ("image", 1, 8), ("label", 0, 32):
        tensor = tensors[name]
        assert (tensor.name, tensor.dtype, tensor.shape) == (name, expected[name].dtype, expected[name].shape)
        assert tensor.__dlpack_device__() == (1, 0)
        capsule = tensor.__dlpack__(max_version=version)
        versioned = version is not None and version >= (1, 0)
        assert _api.PyCapsule_GetName(capsule) == (b"dltensor_versioned" if versioned else b"dltensor")
        consumer = Consumer(capsule)
        if versioned:
            assert (consumer.managed.major, consumer.managed.flags) == (1, 0)
        seen = consumer.tensor
        assert (seen.device_type, seen.device_id, seen.byte_offset) == (1, 0, 0)
        assert (seen.code, seen.bits, seen.lanes) == (code, bits, 1)
        assert tuple(seen.shape[: seen.ndim]) == expected[name].shape
        assert [seen.strides[i] * bits // 8 for i in range(seen.ndim)] == [*expected[name].strides]
        assert consumer.bytes() == expected[name].tobytes()
        consumer.drop()
    del tensors, tensor, expected, seen, consumer, capsule
    assert fake.live() == before


def test_a_consumer_holds_the_buffer_until_it_drops_it(fake, batch):
    before = fake.live()
    tensors = batch()
    consumers = [Consumer(tensors["image"].__dlpack__()), Consumer(tensors["label"].__dlpack__())]
    expected = consumers[0].bytes()
    del tensors
    assert fake.live() == before + 1
    consumers[1].drop()
    assert fake.live() == before + 1 and consumers[0].bytes() == expected
    # It could also be a thread unknown to Python: the deleter runs no Python.
    thread = threading.Thread(target=consumers[0].drop)
    thread.start()
    thread.join()
    assert fake.live() == before


def test_a_capsule_that_nobody_takes_gives_its_share_back(fake, batch):
    before = fake.live()
    tensors = batch()
    for version in None, (1, 0):
        capsules = [tensor.__dlpack__(max_version=version) for tensor in tensors.values()]
        del capsules
    assert fake.live() == before + 1
    capsule = tensors["image"].__dlpack__()
    del tensors
    assert fake.live() == before + 1
    del capsule
    assert fake.live() == before


def test_a_capsule_is_consumed_once(fake, batch):
    before = fake.live()
    tensors = batch()
    capsule = tensors["image"].__dlpack__()
    consumer = Consumer(capsule)
    with pytest.raises(ValueError, match="has been consumed"):
        Consumer(capsule)
    with pytest.raises(ValueError):
        _api.PyCapsule_GetPointer(capsule, b"dltensor")
    del tensors, capsule  # the consumer owns the capsule now, so this frees nothing
    gc.collect()
    assert fake.live() == before + 1
    consumer.drop()
    assert fake.live() == before


def test_many_threads_drop_at_the_same_time(fake, batch):
    before = fake.live()
    for _ in range(50):
        tensors = batch()
        consumers = [Consumer(tensors["image"].__dlpack__()) for _ in range(8)]
        threads = [threading.Thread(target=consumer.drop) for consumer in consumers]
        for thread in threads:
            thread.start()
        del tensors
        for thread in threads:
            thread.join()
    assert fake.live() == before


def test_what_cannot_be_given_is_refused(batch):
    tensor = batch()["image"]
    with pytest.raises(BufferError, match="has no stream"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="without a copy"):
        tensor.__dlpack__(copy=True)
    with pytest.raises(BufferError, match=r"is on device \(1, 0\), not \(2, 0\)"):
        tensor.__dlpack__(dl_device=(2, 0))
    assert tensor.__dlpack__(stream=None, dl_device=(1, 0), copy=False) is not None


def test_numpy_imports_without_a_copy(fake, job, batch):
    before = fake.live()
    image = np.from_dlpack(batch()["image"])
    np.testing.assert_array_equal(image, next(job.batches())["image"])
    part = image[2:4]
    expected = part.copy()
    del image
    assert fake.live() == before + 1
    churn(job)
    np.testing.assert_array_equal(part, expected)
    del part
    assert fake.live() == before


def test_jax_imports_without_a_copy(job, batch):
    jax = pytest.importorskip("jax")
    tensors = batch()
    image = jax.dlpack.from_dlpack(tensors["image"])
    aliased = image.unsafe_buffer_pointer() == Consumer(tensors["image"].__dlpack__()).tensor.data
    del tensors
    expected = next(job.batches())["image"]
    churn(job)
    np.testing.assert_array_equal(np.asarray(image), expected)
    assert aliased


def test_torch_imports_without_a_copy(fake, job, batch):
    torch = pytest.importorskip("torch")
    before = fake.live()
    image = torch.from_dlpack(batch()["image"])
    expected = next(job.batches())["image"].copy()
    assert fake.live() == before + 1
    churn(job)
    assert image.numpy().tobytes() == expected.tobytes()
    del image
    assert fake.live() == before


@pytest.mark.parametrize(
    ("stream", "used"), [(None, 1), (1, 1), (2, 2), (0x7F00DEADBEE0, 0x7F00DEADBEE0), (-1, None)]
)
def test_a_gpus_tensor_is_given_back_on_its_consumers_stream(fake, on_device, stream, used):
    tensors = on_device()
    assert {tensor.__dlpack_device__() for tensor in tensors.values()} == {(2, 1)}
    assert "CUDA device 1" in repr(tensors["image"])
    consumers = [Consumer(tensor.__dlpack__(stream=stream)) for tensor in tensors.values()]
    assert {(each.tensor.device_type, each.tensor.device_id) for each in consumers} == {(2, 1)}
    del tensors
    live = fake.live()
    for consumer in consumers:
        assert fake.live() == live
        consumer.drop()
    assert fake.live() == live - 1 and fake.last_stream() == used


def test_a_gpus_tensors_are_used_on_one_stream(on_device):
    tensors = on_device()
    tensors["image"].__dlpack__(stream=5)
    tensors["label"].__dlpack__(stream=5)
    tensors["label"].__dlpack__(stream=-1)
    with pytest.raises(BufferError, match="one CUDA stream, not also on 0x6"):
        tensors["label"].__dlpack__(stream=6)
    for stream in 0, -2, "1", True:
        with pytest.raises(BufferError, match="expected None, -1, 1, 2 or"):
            tensors["image"].__dlpack__(stream=stream)
