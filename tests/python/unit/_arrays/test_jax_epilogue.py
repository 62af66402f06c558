# SPDX-License-Identifier: Apache-2.0
"""epilogue="device": the job sends bytes, and these devices compute the floats from them."""

import contextlib

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402
from leat._arrays import jax_epilogue  # noqa: E402
from leat._iterators import epilogue as _epilogue, placement  # noqa: E402


def devices(*order):
    assert len(jax.devices()) == 8, "XLA_FLAGS came too late"
    return np.array(jax.devices())[list(order) or slice(None)]


SHARDINGS = [
    lambda: NamedSharding(Mesh(devices(), ("data",)), P("data")),
    lambda: NamedSharding(Mesh(devices(5, 2, 7, 0, 1, 6, 3, 4), ("data",)), P("data")),
    lambda: NamedSharding(Mesh(devices().reshape(4, 2), ("data", "model")), P("data")),
    # Image axes are (row, channel, height, width).
    lambda: NamedSharding(Mesh(devices().reshape(2, 4), ("data", "model")), P("data", None, "model")),
    lambda: NamedSharding(Mesh(devices().reshape(2, 2, 2), ("a", "b", "c")), P(("c", "a"), None, None, "b")),
    lambda: NamedSharding(Mesh(devices(0, 1, 2), ("c",)), P(None, "c")),
    lambda: NamedSharding(Mesh(devices(), ("data",)), P()),
    lambda: NamedSharding(Mesh(devices(1, 3), ("data",)), P("data")),
    lambda: SingleDeviceSharding(jax.devices()[3]),
]


@pytest.mark.parametrize("sharding_of", SHARDINGS)
def test_the_bits_are_the_workers_on_any_mesh(floats, sharding_of):
    sharding = sharding_of()
    it = leat.jax.batches(floats, sharding=sharding, epochs=2, epilogue="device")
    for got, expected in zip(it, floats.batches(epochs=2)):
        assert list(got) == ["image", "label"]
        image = got["image"]
        assert image.shape == (16, 3, 8, 8) and image.dtype == np.float32 and image.sharding == sharding
        assert np.asarray(image).tobytes() == expected["image"].tobytes()
        for shard in image.addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), expected["image"][shard.index])
        np.testing.assert_array_equal(np.asarray(got["label"]), expected["label"])


def contexts():
    yield "none", lambda: contextlib.nullcontext()
    if hasattr(jax, "set_mesh"):
        yield "set_mesh", lambda: jax.set_mesh(Mesh(devices(), ("data",)))
        yield "explicit", lambda: jax.set_mesh(jax.make_mesh((8,), ("data",)))


@pytest.mark.parametrize("context", [each[1] for each in contexts()], ids=[each[0] for each in contexts()])
def test_a_mesh_that_is_set_does_not_matter(floats, context):
    with context():
        mesh = jax.make_mesh((8,), ("data",)) if hasattr(jax, "make_mesh") else Mesh(devices(), ("data",))
        it = leat.jax.batches(floats, sharding=NamedSharding(mesh, P("data")), epilogue="device")
        got, expected = next(it), next(floats.batches())
        assert np.asarray(got["image"]).tobytes() == expected["image"].tobytes()
        assert got["image"].sharding.mesh == mesh


def test_it_is_compiled_once(floats, monkeypatch):
    traced = []
    finished = jax_epilogue.finished
    monkeypatch.setattr(jax_epilogue, "finished", lambda *args: traced.append(1) or finished(*args))
    it = leat.jax.batches(floats, sharding=SHARDINGS[0](), epochs=2, epilogue="device")
    assert len([*it]) == 12
    assert len(traced) == 1


def test_nothing_goes_from_device_to_device(floats):
    it = leat.jax.batches(floats, sharding=SHARDINGS[4](), epilogue="device")
    text = it._place._epilogues[0]._compiled.as_text()
    for collective in ("all-gather", "all-reduce", "all-to-all", "collective-permute"):
        assert collective not in text


def test_positions_are_the_same(floats):
    here = leat.jax.batches(floats, sharding=SHARDINGS[0](), epilogue="device")
    there = leat.jax.batches(floats, sharding=SHARDINGS[0]())
    for _ in range(3):
        next(here), next(there)
    assert here.position() == there.position()
    rest = leat.jax.batches(floats, sharding=SHARDINGS[0](), position=there.position(), epilogue="device")
    assert [int(batch["label"][0]) for batch in rest] == [48, 64, 80]


def test_shardings_of_different_devices(floats):
    sharding = {"image": SHARDINGS[7](), "label": SingleDeviceSharding(jax.devices()[5])}
    got = next(leat.jax.batches(floats, sharding=sharding, epilogue="device"))
    assert np.asarray(got["image"]).tobytes() == next(floats.batches())["image"].tobytes()


def test_jobs_without_an_end_are_as_ever(service, graph):
    job = service.job("images", graph.images, batch=16)
    got = next(leat.jax.batches(job, sharding=SHARDINGS[0](), epilogue="device"))
    np.testing.assert_array_equal(np.asarray(got["image"]), next(job.batches())["image"])


def test_epilogue_is_one_of_two_words(floats):
    with pytest.raises(leat.InvalidArgument, match="epilogue = 'gpu'; expected 'worker' or 'device'"):
        leat.jax.batches(floats, sharding=SHARDINGS[0](), epilogue="gpu")


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "float32", None])
def test_tables_of_every_dtype(dtype, channels):
    generator = np.random.default_rng(5)
    table = None
    if dtype is not None:
        bits = generator.integers(0, 256, (256, channels, np.dtype(dtype).itemsize), np.uint8)
        table = (bits & 1 if dtype == "bool" else bits).view(dtype)[..., 0]
    epilogue = _epilogue.Epilogue(np.dtype(dtype or "uint8"), table, (1, 2, 0))
    rows = generator.integers(0, 256, (16, 4, 5, 3), np.uint8)
    sharding = SHARDINGS[0]()
    _, placements = placement.place({"x": (5, 3, 4)}, sharding, 16)
    assert epilogue.row_of((5, 3, 4)) == (4, 5, 3)
    (group,) = jax_epilogue.plan(placements, {"x": epilogue})
    got = np.asarray(group({"x": rows})["x"])
    looked_up = rows if table is None else table[rows, np.arange(3) if channels == 3 else 0]
    assert got.tobytes() == np.transpose(looked_up, (0, 2, 3, 1)).tobytes()


def test_buffers_come_back(fake, floats):
    before = fake.live()
    it = leat.jax.batches(floats, sharding=SHARDINGS[0](), epochs=0, epilogue="device")
    kept = [next(it) for _ in range(20)]
    for _ in range(100):
        next(it)
    for got, expected in zip(kept, floats.batches(epochs=4)):
        assert np.asarray(got["image"]).tobytes() == expected["image"].tobytes()
    it.close()
    jax.block_until_ready(kept)
    del got, expected, kept
    jax.numpy.zeros(1).block_until_ready()  # JAX drops its references to NumPy arrays at its next call
    assert fake.live() - before <= 1


def test_devices_give_the_layout_of_pmap(floats):
    chosen = [jax.devices()[i] for i in (6, 1, 3, 0)]
    for got, expected in zip(leat.jax.batches(floats, devices=chosen, epilogue="device"), floats.batches()):
        assert got["image"].shape == (4, 4, 3, 8, 8) and got["label"].shape == (4, 4)
        assert np.asarray(got["image"]).tobytes() == expected["image"].tobytes()
        assert np.asarray(got["label"]).tobytes() == expected["label"].tobytes()
        on = {shard.device: np.asarray(shard.data)[0] for shard in got["image"].addressable_shards}
        for i, device in enumerate(chosen):
            np.testing.assert_array_equal(on[device], expected["image"][4 * i : 4 * (i + 1)])
