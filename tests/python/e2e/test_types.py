# SPDX-License-Identifier: Apache-2.0
"""All eleven types of elements, from a source to NumPy, JAX and torch."""

import ctypes
import sys
import warnings

import numpy as np
import pytest

import leat
from leat import fn
from leat._library import dtypes

CARRIED = ("int8", "int16", "uint16", "uint32", "bfloat16")
SAMPLES, WIDTH = 12, 5
# Code and bits of DLPack's types.
DLPACK = {
    "bool": (6, 8),
    "uint8": (1, 8),
    "int32": (0, 32),
    "int64": (0, 64),
    "float16": (2, 16),
    "float32": (2, 32),
    "int8": (0, 8),
    "int16": (0, 16),
    "uint16": (1, 16),
    "uint32": (1, 32),
    "bfloat16": (4, 16),
}


def bits_of(name):
    """Returns the unsigned type of the elements' size."""
    return np.dtype(f"uint{8 * dtypes.of(name).itemsize}")


def value(name, i):
    """Returns sample i: up to WIDTH elements of any bits that are no NaN."""
    rng = np.random.default_rng([i, *name.encode()])
    bits = rng.integers(0, np.iinfo(bits_of(name)).max, i % (WIDTH + 1), bits_of(name), endpoint=True)
    if name == "bool":
        bits &= 1
    if "float" in name:
        bits &= np.array({"float16": 0xBFFF, "bfloat16": 0xBFFF, "float32": 0xBFFFFFFF}[name], bits.dtype)
    return bits.view(dtypes.of(name))


def padded(name):
    rows = np.zeros((SAMPLES, WIDTH), bits_of(name))
    for i in range(SAMPLES):
        rows[i, : i % (WIDTH + 1)] = value(name, i).view(bits_of(name))
    return rows


@pytest.fixture(scope="module")
def job(service):
    @leat.pipeline
    def all_types():
        given = leat.external_source(
            lambda i: tuple(value(name, i) for name in dtypes.NAMES),
            tuple(f"{name}[?]" for name in dtypes.NAMES),
            num_samples=SAMPLES,
            name="all types",
        )
        made = {name: fn.pad(node, shape=WIDTH) for name, node in zip(dtypes.NAMES, given)}
        made |= {f"{name}_of": fn.cast(made["int32"], dtype=name) for name in dtypes.NAMES}
        return {
            **made,
            "length": fn.length(given[8]),
            "part": fn.slice(made["uint16"], start=[1], shape=[2]),
            "shaped": fn.reshape(made["bfloat16"], shape=[WIDTH, 1]),
        }

    return service.job("types", all_types, batch=SAMPLES // 2, shuffle=False)


@pytest.fixture(scope="module")
def whole(job):
    batches = list(job.batches())
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_what_is_carried_comes_back_bit_for_bit(job, whole, name):
    assert job.schema[name] == (dtypes.of(name), (WIDTH,))
    assert dtypes.name_of(whole[name].dtype) == name
    np.testing.assert_array_equal(whole[name].view(bits_of(name)), padded(name))


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_casts_are_saturated_or_rounded_to_even(whole, name):
    given = whole["int32"]
    if name == "bool":
        expected = given != 0
    elif name == "bfloat16":
        bits = given.astype(np.float32).view(np.uint32)
        expected = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
        np.testing.assert_array_equal(whole["bfloat16_of"].view(np.uint16), expected)
        return
    elif "float" in name:
        with np.errstate(over="ignore"):
            expected = given.astype(np.float32).astype(name)
    else:
        limits = np.iinfo(name)
        expected = np.clip(given.astype(np.int64), limits.min, limits.max).astype(name)
    assert whole[f"{name}_of"].dtype == expected.dtype
    np.testing.assert_array_equal(whole[f"{name}_of"], expected)


def test_lengths_parts_and_shapes(whole):
    np.testing.assert_array_equal(whole["length"], np.arange(SAMPLES) % (WIDTH + 1))
    np.testing.assert_array_equal(whole["part"], whole["uint16"][:, 1:3])
    assert whole["shaped"].shape == (SAMPLES, WIDTH, 1)
    assert whole["shaped"].tobytes() == whole["bfloat16"].tobytes()


def test_a_batch_may_be_kept_and_its_arrays_written(job):
    it = job.batches()
    kept = next(it)["bfloat16"]
    for _ in it:
        pass
    assert kept.tobytes() == padded("bfloat16")[: SAMPLES // 2].tobytes()
    kept[0] = kept[1]


@pytest.mark.parametrize("name", CARRIED)
def test_operators_that_compute_say_to_cast(service, name):
    wider = {"bfloat16": "float32", "uint32": "int64"}.get(name, "int32")
    with pytest.raises(leat.InvalidArgument, match=f"do not compute with {name}: cast it, for example to {wider}"):

        @leat.pipeline
        def computes():
            x = leat.external_source(lambda i: value(name, i), f"{name}[3]", num_samples=2)
            return {"x": x + 1}

        service.job(f"computes-{name}", computes, batch=1)


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


def test_dlpack_names_every_type(job):
    from leat._library import buffer, native

    made = buffer.Buffer(job)
    it = job.batches()
    native.check(it._handle.call(native.lib.leat_batches_next, -1.0, ctypes.byref(made.out)))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensors = buffer.tensors(made)
    for name, (code, bits) in DLPACK.items():
        assert dtypes.name_of(tensors[name].dtype) == name
        capsule = tensors[name].__dlpack__()
        seen = _Tensor.from_address(pointer(capsule, b"dltensor"))
        assert (seen.code, seen.bits, seen.lanes) == (code, bits, 1), name
    it.close()


def test_jax_has_all_of_them(job, whole):
    jax = pytest.importorskip("jax")
    import leat.jax

    jax.config.update("jax_enable_x64", True)  # for int64
    try:
        batches = list(leat.jax.batches(job, devices=jax.local_devices()[:1]))
    finally:
        jax.config.update("jax_enable_x64", False)
    for step, batch in enumerate(batches):
        for name in dtypes.NAMES:
            array = np.asarray(batch[name])
            assert array.dtype == dtypes.of(name) and isinstance(batch[name], jax.Array)
            rows = slice(step * SAMPLES // 2, (step + 1) * SAMPLES // 2)
            assert array.tobytes() == whole[name][rows].tobytes(), name


def test_torch_has_those_of_its_release(job, whole):
    torch = pytest.importorskip("torch")
    import leat.torch

    if not hasattr(torch, "uint16"):  # added by 2.3
        with pytest.raises(leat.InvalidArgument, match=r'uint16, which PyTorch 1.*fn.cast\(uint16, dtype="int32"\)'):
            leat.torch.batches(job)
        return
    for step, batch in enumerate(leat.torch.batches(job)):
        rows = slice(step * SAMPLES // 2, (step + 1) * SAMPLES // 2)
        for name in dtypes.NAMES:
            assert str(batch[name].dtype) == f"torch.{name}"
            assert batch[name].contiguous().view(torch.uint8).numpy().tobytes() == whole[name][rows].tobytes()


def to_bfloat16(image):
    return fn.cast(fn.normalize(image, mean=(123.675, 116.28, 103.53), std=(58.4, 57.1, 57.4)), dtype="bfloat16")


@pytest.fixture(scope="module")
def photos_job(service, folder):
    @leat.pipeline
    def of_photos():
        encoded, label = fn.readers.image_folder(str(folder))
        image = fn.random_resized_crop(fn.decode(encoded), size=16)
        tokens = fn.cast(label, dtype="int16")
        return {"image": fn.transpose(image, perm=(2, 0, 1)), "input": to_bfloat16(image), "label": tokens}

    return service.job("bfloat16-photos", of_photos, batch=16, seed=3)


@pytest.mark.parametrize("epilogue", ["worker", "device"])
def test_jax_gets_images_as_bfloat16(photos_job, epilogue):
    jax = pytest.importorskip("jax")
    import leat.jax

    devices = jax.local_devices()[:1]
    for got, expected in zip(leat.jax.batches(photos_job, devices=devices, epilogue=epilogue), photos_job.batches()):
        assert str(got["input"].dtype) == "bfloat16"
        assert np.asarray(got["input"]).tobytes() == expected["input"].tobytes()


@pytest.mark.parametrize("epilogue", ["worker", "device"])
def test_torch_gets_images_as_bfloat16(photos_job, epilogue):
    torch = pytest.importorskip("torch")
    import leat.torch

    for got, expected in zip(leat.torch.batches(photos_job, epilogue=epilogue), photos_job.batches()):
        assert got["input"].dtype == torch.bfloat16 and got["label"].dtype == torch.int16
        assert got["input"].view(torch.int16).numpy().tobytes() == expected["input"].tobytes()


def test_without_ml_dtypes_bfloat16_is_shown_as_its_bits(photos_job, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    caches = _clear_caches()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            batch = next(photos_job.batches())
        assert [str(each.message) for each in caught] == [
            "NumPy has no bfloat16, so that its bits are given as uint16: pip install ml_dtypes"
        ]
        assert batch["input"].dtype == np.uint16 and dtypes.name_of(batch["input"].dtype) == "bfloat16"
        try:
            import torch

            import leat.torch
        except ImportError:
            return
        got = next(leat.torch.batches(photos_job))["input"]
        assert got.dtype == torch.bfloat16 and got.view(torch.int16).numpy().tobytes() == batch["input"].tobytes()
    finally:
        monkeypatch.undo()
        for cache in caches:
            cache.cache_clear()


def _clear_caches():
    from leat._library import buffer

    caches = (dtypes.of, buffer._dtype)
    for cache in caches:
        cache.cache_clear()
    return caches
