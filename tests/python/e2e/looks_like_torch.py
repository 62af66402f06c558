# SPDX-License-Identifier: Apache-2.0
"""torch's streams, events, graphs and memory over the tests' CUDA driver, for `leat._arrays.torch_device`.

A tensor here is an address in the driver's memory, which is the host's. Memory is never reused, as if each tensor knew
all its streams (`Tensor.record_stream`), so that no failure comes from torch's allocator.
"""

import contextlib
import ctypes
import math
import os

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_GLOBAL, _RELAXED = 0, 2


def trainer():
    """Makes this process a trainer's for the driver: a graph is captured at all times, and reads are watched."""
    assert ctypes.CDLL(os.environ["LEAT_CUDA_LIBRARY"]).fake_cuda_set(b"trainer", ctypes.c_uint64(1))


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    ]


class View:
    """The library's memory, through the tensor's own capsule, until it is dropped."""

    def __init__(self, tensor):
        self._capsule = tensor.__dlpack__()
        seen = _DLTensor.from_address(_capsule_pointer(self._capsule, b"dltensor"))
        self.address = seen.data
        self.size = math.prod(seen.shape[: seen.ndim]) * seen.bits // 8


class Copy:
    def __init__(self, address, size):
        self.address, self.size = address, size


class Cuda:
    """Implements `leat._arrays.torch_device.Cuda` on device 0, and the calls of torch.cuda that trainers make."""

    def __init__(self):
        self._driver = ctypes.CDLL(os.environ["LEAT_CUDA_LIBRARY"])
        self._driver.fake_cuda_violations.restype = ctypes.c_uint64
        self._driver.fake_cuda_violation.restype = ctypes.c_char_p
        self._driver.fake_cuda_violation.argtypes = [ctypes.c_uint64]
        trainer()
        context = ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._call("cuCtxSetCurrent", context)
        self._current = self.stream()

    def _call(self, name, *arguments):
        """Calls as torch itself does: calls that are unsafe during a capture are made by a relaxed thread."""
        mode = ctypes.c_int(_RELAXED)
        self._driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        try:
            result = getattr(self._driver, name)(*arguments)
        finally:
            self._driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        assert result == 0, (name, result)

    # Used by leat.torch.

    def current_stream(self):
        return self._current.value

    def is_capturing(self):
        status = ctypes.c_int()
        self._call("cuStreamIsCapturing", self._current, ctypes.byref(status))
        return status.value != 0

    def view(self, tensor):
        return View(tensor)

    def copy(self, tensor):
        made = self.empty(tensor.size)
        self.queue_copy(made, tensor, self._current)
        return made

    def shares(self, tensor, other):
        return tensor.address == other.address

    # The methods below do what a trainer does with its streams and tensors.

    def stream(self):
        made = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(made), 1)
        return made

    @contextlib.contextmanager
    def on(self, stream):
        before, self._current = self._current, stream
        try:
            yield
        finally:
            self._current = before

    def wait(self, stream, other):
        """Makes `stream` wait for the work that is queued on `other` now."""
        event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(event), 2)
        self._call("cuEventRecord", event, other)
        self._call("cuStreamWaitEvent", stream, event, 0)
        self._call("cuEventDestroy_v2", event)

    def empty(self, size):
        made = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(size))
        return Copy(made.value, size)

    def queue_copy(self, to, source, stream):
        size = ctypes.c_size_t(source.size)
        self._call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(to.address), ctypes.c_uint64(source.address), size, stream)

    def bytes(self, tensor):
        """Returns the bytes that the memory has at this moment, without waiting for any stream."""
        return ctypes.string_at(tensor.address, tensor.size)

    def synchronize(self, stream):
        self._call("cuStreamSynchronize", stream)

    def hold(self, stream):
        self._driver.fake_cuda_hold_stream(stream)

    def release(self, stream):
        self._driver.fake_cuda_release_stream(stream)

    @contextlib.contextmanager
    def graph(self, stream):
        """As torch.cuda.graph, in its default mode; the yielded object has the graph in `.value` afterwards."""
        made, graph = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", stream, _GLOBAL)
        with self.on(stream):
            yield made
        self._call("cuStreamEndCapture", stream, ctypes.byref(graph))
        self._call("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_uint64(0))

    def replay(self, graph, stream):
        self._call("cuGraphLaunch", graph, stream)

    def violations(self):
        return [self._driver.fake_cuda_violation(i) for i in range(self._driver.fake_cuda_violations())]
