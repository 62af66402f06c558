# SPDX-License-Identifier: Apache-2.0
"""Batches in the memory of CUDA device 0, whose fake driver uses host memory: run by test_device_e2e.py.

Arguments: a folder of pictures. Prints how many GPUs the worker has, and for the last iterator: how many rows the
worker wrote into the batches' memory, the bytes received, and the steps.
"""

import ctypes
import gc
import os
import sys

import jax
import looks_like_torch
import numpy as np
from jax.sharding import SingleDeviceSharding

import leat
import leat.jax
from leat import fn
from leat._arrays import jax_device

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class OnCpu:
    """A tensor of the fake device, presented as the host tensor that it really is."""

    def __init__(self, tensor, stream=-1):
        assert tensor.__dlpack_device__() == (2, 0)
        self._capsule = tensor.__dlpack__(stream=stream)
        # dl_tensor.device.device_type
        ctypes.c_int32.from_address(_pointer(self._capsule, b"dltensor") + 8).value = 1

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        return self._capsule


@leat.pipeline
def train(path):
    encoded, label = fn.readers.image_folder(path)
    image = fn.random_resized_crop(fn.decode(encoded), size=(16, 20))
    image = fn.flip(image, horizontal=fn.coin_flip(0.5))
    image = fn.normalize(image, mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
    return {"image": fn.transpose(image, perm=(2, 0, 1)), "label": label}


def tensors_borrow_the_devices_memory(job, expected):
    """Takes more batches than the window has buffers; each is taken and dropped on a stream, as torch does."""
    it = job._open(epochs=2, device=0)
    for host, batch in zip(expected, it):
        for name, tensor in batch.items():
            # The fake's default stream.
            array = np.from_dlpack(OnCpu(tensor, stream=1))
            assert array.tobytes() == host[name].tobytes()
        del array, tensor, batch
    it.close()


def jax_makes_the_jobs_batches(job, expected, epilogue):
    it = leat.jax.batches(job, sharding=SingleDeviceSharding(jax.devices()[0]), epochs=2, epilogue=epilogue)
    assert isinstance(it._place, jax_device.DevicesPlacing)
    kept = [batch for batch, _ in zip(it, expected)]
    for batch, host in zip(kept, expected):
        for name, array in host.items():
            assert np.asarray(batch[name]).tobytes() == array.tobytes()
    stats = it.stats()
    it.close()
    return stats


def main(folder):
    looks_like_torch.trainer()
    jax_device._imported = lambda tensor: jax.dlpack.from_dlpack(OnCpu(tensor))
    jax_device.cuda_number = lambda device: 0
    with leat.connect(devices="all") as service:
        job = service.job("device", train(folder), batch=16, seed=3)
        expected = [{name: array.copy() for name, array in batch.items()} for batch in job.batches(epochs=2)]
        tensors_borrow_the_devices_memory(job, expected)
        (worker,) = service.get("workers")["workers"]
        gpus = len(worker["devices"])
        if gpus:  # otherwise rows may come as bytes until a busy machine has prepared the memory
            os.environ["LEAT_TRANSPORT"] = "cuda"
        for epilogue in "worker", "device":
            stats = jax_makes_the_jobs_batches(job, expected, epilogue)
        gc.collect()
        try:
            job._open(device=99)
        except leat.FailedPrecondition as error:
            assert "99" in str(error)
        else:
            raise AssertionError("there is no device 99")
        print(gpus, stats["rows"] - stats["payload_copies"], stats["bytes"], len(expected))


main(sys.argv[1])
