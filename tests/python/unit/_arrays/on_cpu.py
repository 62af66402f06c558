# SPDX-License-Identifier: Apache-2.0
"""A tensor of a fake GPU, presented as the host tensor that it really is."""

import ctypes

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class OnCpu:
    """The importer is to use it on `stream`; None: on the stream that the tensor itself gives."""

    def __init__(self, tensor, stream=None):
        self._capsule = tensor.__dlpack__(stream=stream)
        # dl_tensor.device.device_type
        ctypes.c_int32.from_address(_pointer(self._capsule, b"dltensor") + 8).value = 1

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        return self._capsule
