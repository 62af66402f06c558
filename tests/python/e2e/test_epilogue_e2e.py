# SPDX-License-Identifier: Apache-2.0
"""epilogue="device" over the real service: bits equal to the worker's, and fewer bytes on the wire."""

import numpy as np
import pytest
from conftest import train

import leat
from leat import fn

MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


def pipeline(folder, *ends):
    """Each end is a function of the image."""

    @leat.pipeline
    def ended():
        encoded, label = fn.readers.image_folder(str(folder))
        image = fn.random_resized_crop(fn.decode(encoded), size=(16, 20))
        image = fn.flip(image, horizontal=fn.coin_flip(0.5))
        return {**{name: end(image) for name, end in ends}, "label": label}

    return ended


def to_chw(dtype):
    return lambda image: fn.transpose(fn.normalize(image, mean=MEAN, std=STD, dtype=dtype), perm=(2, 0, 1))


ENDS = {
    "float32, channels first": to_chw("float32"),
    "float16, channels first": to_chw("float16"),
    "float32, channels last": lambda image: fn.normalize(image, mean=MEAN, std=STD),
    "one mean": lambda image: fn.normalize(image, mean=[127.5], std=[127.5], scale=2.0, shift=0.1),
    "uint8 again": lambda image: fn.cast(fn.normalize(image, mean=MEAN, std=[0.7]), dtype="uint8"),
    "int32": lambda image: fn.cast(image, dtype="int32"),
    "bool": lambda image: fn.cast(fn.normalize(image, mean=[100], std=[1]), dtype="bool"),
    "axes only": lambda image: fn.transpose(image, perm=(2, 0, 1)),
}


@pytest.fixture(params=ENDS, scope="module")
def job(request, service, folder):
    name = request.param.replace(",", "").replace(" ", "-")
    return service.job(f"epilogue-{name}", pipeline(folder, ("image", ENDS[request.param])), batch=16, seed=3)


@pytest.fixture(scope="module")
def floats(service, folder):
    return service.job("epilogue-floats", pipeline(folder, ("image", to_chw("float32"))), batch=16, seed=3)


def same_bits(it, job, as_numpy):
    steps = 0
    for got, expected in zip(it, job.batches(epochs=2)):
        assert list(got) == list(expected)
        for name, array in expected.items():
            mine = as_numpy(got[name])
            assert mine.dtype == array.dtype and mine.shape == array.shape
            assert mine.tobytes() == array.tobytes()
        steps += 1
    return steps == 2 * len(job)


def test_jax_makes_the_workers_bits(job):
    jax = pytest.importorskip("jax")
    import leat.jax

    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(("model", "data")))
    it = leat.jax.batches(job, sharding=sharding, epochs=2, epilogue="device")
    assert same_bits(it, job, np.asarray)


def test_torch_makes_the_workers_bits(job):
    pytest.importorskip("torch")
    import leat.torch

    assert same_bits(leat.torch.batches(job, epochs=2, epilogue="device"), job, lambda tensor: tensor.numpy())


def received(it):
    for _ in it:
        count = it.stats()["bytes"]
    return count


def test_a_quarter_of_the_bytes_is_received(floats):
    jax = pytest.importorskip("jax")
    import leat.jax

    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    images = len(floats) * floats.batch * 3 * 16 * 20
    labels = len(floats) * floats.batch * 4
    with leat.jax.batches(floats, sharding=sharding) as whole:
        assert received(whole) == 4 * images + labels
    with leat.jax.batches(floats, sharding=sharding, epilogue="device") as heads:
        assert received(heads) == images + labels


def test_the_plan_and_the_positions_are_the_same(floats):
    jax = pytest.importorskip("jax")
    import leat.jax

    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    here = leat.jax.batches(floats, sharding=sharding, epochs=2, epilogue="device")
    there = floats.batches(epochs=2)
    for _ in range(3):
        next(here), next(there)
    assert here.position() == there.position()
    rest = leat.jax.batches(floats, sharding=sharding, epilogue="device", position=there.position())
    for got, expected in zip(rest, there):
        assert np.asarray(got["image"]).tobytes() == expected["image"].tobytes()


def test_consumers_of_both_kinds_share_a_job(service, folder):
    """They read at the same time, from the same worker; several fields of one image, and zeros for a bad sample."""
    jax = pytest.importorskip("jax")
    import leat.jax

    ends = [("first", to_chw("float32")), ("raw", lambda image: image), ("last", to_chw("float16"))]
    job = service.job("epilogue-both", pipeline(folder, *ends), batch=16, seed=3, on_bad_sample="zero")
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    assert same_bits(leat.jax.batches(job, sharding=sharding, epochs=2, epilogue="device"), job, np.asarray)


def test_single_samples_come_finished(floats):
    assert floats.sample(3)["image"].dtype == np.float32


def test_a_job_without_an_end(service, folder):
    jax = pytest.importorskip("jax")
    import leat.jax

    job = service.job("epilogue-none", train(folder), batch=16, seed=3)
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    assert same_bits(leat.jax.batches(job, sharding=sharding, epochs=2, epilogue="device"), job, np.asarray)
