# SPDX-License-Identifier: Apache-2.0
"""The package over tests/python/fake_leat.c; LEAT_NATIVE_DIR is the folder that holds the fake libleat.so."""

import ctypes
import gc
import os
import types

import pytest

import leat
from leat import fn


def pytest_collection_modifyitems(items):
    if not leat.__version__.endswith("-fake"):
        raise pytest.UsageError("these tests need LEAT_NATIVE_DIR to be the folder of the fake libleat.so")


def pytest_collection_finish():
    """What is imported stays: a collection of garbage, of which tests make thousands, passes over it."""
    gc.collect()
    gc.freeze()


@leat.pipeline
def images():
    encoded, label = fn.readers.image_folder("/photos")
    image = fn.random_resized_crop(fn.decode(encoded), size=(8, 8))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}


class Fake:
    """What the fake library lets a test see and steer."""

    def __init__(self):
        self._library = ctypes.CDLL(os.path.join(os.environ["LEAT_NATIVE_DIR"], "libleat.so"))
        self._library.fake_set_delay.argtypes = [ctypes.c_double]
        self._library.fake_set_samples.argtypes = [ctypes.c_uint64]
        self._library.fake_last_stream.restype = ctypes.c_void_p

    def live(self):
        """Buffers that nobody has given back."""
        gc.collect()
        return self._library.fake_live()

    def freed_in_use(self):
        """Services that were freed while a call worked on them."""
        return self._library.fake_freed_in_use()

    def handles(self):
        """Services and jobs that nobody has freed."""
        gc.collect()
        return self._library.fake_handles()

    def iterators(self):
        """Iterators that nobody has freed."""
        gc.collect()
        return self._library.fake_iterators()

    def made(self):
        """Buffers ever made."""
        return self._library.fake_made()

    def waits(self):
        """How many waits of trainers were begun, and ended with a batch, of all iterators that work ahead of them."""
        return self._library.fake_waits_begun(), self._library.fake_waits_ended()

    def set_delay(self, seconds):
        self._library.fake_set_delay(seconds)

    def set_samples(self, samples):
        self._library.fake_set_samples(samples)

    def set_devices(self, devices):
        """How many CUDA devices there are; their memory is the host's, really."""
        self._library.fake_set_devices(devices)

    def last_stream(self):
        """On which the last batch that was freed was used; None: on none."""
        return self._library.fake_last_stream()

    def fail_at_step(self, step):
        self._library.fake_fail_at_step(step)


@pytest.fixture
def fake():
    fake = Fake()
    yield fake
    fake.set_delay(0)
    fake.set_samples(100)
    fake.fail_at_step(-1)
    fake.set_devices(0)


@pytest.fixture
def service(fake):
    with leat.connect() as service:
        yield service


@pytest.fixture
def job(service):
    return service.job("images", images, batch=10, seed=7)


@pytest.fixture
def floats(service):
    """A job whose image is float32, channels first, and which may be finished on a device."""
    return service.job("floats", images, batch=16, seed=7)


@pytest.fixture
def graph():
    return types.SimpleNamespace(images=images)
