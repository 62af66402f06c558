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
    """Freezes the imported objects: collections of garbage, which tests cause thousands of, then skip them."""
    gc.collect()
    gc.freeze()


@leat.pipeline
def images():
    encoded, label = fn.readers.image_folder("/photos")
    image = fn.random_resized_crop(fn.decode(encoded), size=(8, 8))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}


class Fake:
    """The parts of the fake library that a test can inspect and control."""

    def __init__(self):
        self._library = ctypes.CDLL(os.path.join(os.environ["LEAT_NATIVE_DIR"], "libleat.so"))
        self._library.fake_set_delay.argtypes = [ctypes.c_double]
        self._library.fake_set_samples.argtypes = [ctypes.c_uint64]
        self._library.fake_last_stream.restype = ctypes.c_void_p

    def live(self):
        """Returns the number of buffers that were not given back."""
        gc.collect()
        return self._library.fake_live()

    def freed_in_use(self):
        """Returns the number of services that were freed during a call on them."""
        return self._library.fake_freed_in_use()

    def handles(self):
        """Returns the number of services and jobs that were not freed."""
        gc.collect()
        return self._library.fake_handles()

    def iterators(self):
        """Returns the number of iterators that were not freed."""
        gc.collect()
        return self._library.fake_iterators()

    def made(self):
        """Returns the number of buffers ever made."""
        return self._library.fake_made()

    def waits(self):
        """Returns how many waits of trainers were begun, and ended with a batch, for all iterators opened with
        ahead=True."""
        return self._library.fake_waits_begun(), self._library.fake_waits_ended()

    def set_delay(self, seconds):
        self._library.fake_set_delay(seconds)

    def set_samples(self, samples):
        self._library.fake_set_samples(samples)

    def set_devices(self, devices):
        """Sets how many CUDA devices there are; their memory is really the host's."""
        self._library.fake_set_devices(devices)

    def last_stream(self):
        """Returns the stream on which the last freed batch was used; None: on none."""
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
    """Returns a job whose image is float32, channels first, and which may be finished on a device."""
    return service.job("floats", images, batch=16, seed=7)


@pytest.fixture
def graph():
    return types.SimpleNamespace(images=images)
