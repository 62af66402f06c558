# SPDX-License-Identifier: Apache-2.0
"""Mixtures by leat.jax and leat.torch have the rows of NumPy's batches, with epilogues on workers and on devices."""

import numpy as np
import pytest
from conftest import make_folder

import leat
from leat import fn

SIZES = {"web": 60, "books": 25, "code": 9}
BATCH = 16
STEPS = 10


@leat.pipeline
def ended(path, size=(16, 20)):
    encoded, label = fn.readers.image_folder(path)
    image = fn.random_resized_crop(fn.decode(encoded), size=size)
    image = fn.normalize(image, mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375))
    return {"image": fn.transpose(image, perm=(2, 0, 1)), "label": label}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("mixed")
    return {name: str(make_folder(root / name, count)) for name, count in SIZES.items()}


@pytest.fixture(scope="module")
def mixed(service, folders):
    """Without an end, with a share that changes at step 4."""
    sources = {name: ended(folder) for name, folder in folders.items()}
    weights = [(0, {"web": 7, "books": 2, "code": 1}), (4, {"web": 1, "books": 2, "code": 2})]
    return service.job("mixed", leat.mix(sources, weights, source_field="source"), batch=BATCH, seed=7)


@pytest.fixture(scope="module")
def ending(service, folders):
    sources = {name: ended(folder) for name, folder in folders.items()}
    return service.job("ending", leat.mix(sources, {"web": 7, "books": 2, "code": 1}, ends="all"), batch=BATCH, seed=7)


@pytest.fixture(scope="module")
def expected(mixed):
    """The first batches by NumPy, which hold rows of every source."""
    batches = mixed.batches()
    first = [{name: array.copy() for name, array in next(batches).items()} for _ in range(STEPS)]
    assert set(np.concatenate([batch["source"] for batch in first])) == {0, 1, 2}
    return first


def assert_same(batches, expected, rows=slice(None)):
    count = 0
    for got, wanted in zip(batches, expected):
        assert list(got) == list(wanted)
        for name, array in wanted.items():
            mine = np.asarray(got[name])
            assert mine.dtype == array.dtype
            np.testing.assert_array_equal(mine, array[rows], err_msg=name)
        count += 1
    assert count == len(expected)


def test_a_job_says_its_sources_and_where_each_is(mixed, ending, expected):
    assert [(each.name, each.samples, each.first) for each in mixed.sources] == [
        ("web", 60, 0), ("books", 25, 60), ("code", 9, 85)]
    rows = np.bincount(np.concatenate([batch["source"] for batch in expected]), minlength=3)
    for number, (name, where) in enumerate(mixed.passes(epoch=0, step=STEPS).items()):
        passes, done = divmod(int(rows[number]), SIZES[name])
        assert (where.number, where.done) == (passes, pytest.approx(done / SIZES[name])), name
    with pytest.raises(TypeError, match='has no end, .*; expected a number of steps of your own, or ends="first" or'):
        len(mixed)
    assert len(ending) == len(list(ending.batches(epochs=1)))


@pytest.mark.parametrize("epilogue", ["worker", "device"])
def test_jax_has_the_rows_of_numpy_on_eight_devices(mixed, expected, epilogue):
    jax = pytest.importorskip("jax")
    import leat.jax

    assert len(jax.devices()) == 8
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(("model", "data")))
    batches = leat.jax.batches(mixed, sharding=sharding, epilogue=epilogue)
    assert_same((next(batches) for _ in range(3)), expected[:3])
    position = batches.position()
    batches.close()
    resumed = leat.jax.batches(mixed, sharding=sharding, epilogue=epilogue, position=position)
    assert_same((next(resumed) for _ in range(STEPS - 3)), expected[3:])
    resumed.close()


@pytest.mark.parametrize("epilogue", ["worker", "device"])
def test_torch_has_the_rows_of_numpy(mixed, expected, epilogue):
    pytest.importorskip("torch")
    import leat.torch

    with leat.torch.batches(mixed, epilogue=epilogue) as batches:
        assert_same((next(batches) for _ in range(STEPS)), expected)
    rows = range(8, 16)
    with leat.torch.batches(mixed, epilogue=epilogue, rows=rows) as batches:
        assert_same((next(batches) for _ in range(STEPS)), expected, slice(rows.start, rows.stop))


def test_a_data_loader_of_torch_has_the_rows_of_numpy(mixed, expected, ending):
    torch = pytest.importorskip("torch")
    import leat.torch

    dataset = leat.torch.IterableDataset(mixed)
    loader = iter(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=0))
    assert_same((next(loader) for _ in range(3)), expected[:3])
    state = dataset.state_dict()
    dataset.close()
    later = leat.torch.IterableDataset(mixed)
    later.load_state_dict(state)
    resumed = iter(later)
    assert_same((next(resumed) for _ in range(STEPS - 3)), expected[3:])
    later.close()
    with pytest.raises(TypeError, match="no end"):
        len(dataset)

    passes = leat.torch.IterableDataset(ending)
    assert len(passes) == len(ending)
    for epoch in range(2):
        assert_same(passes, list(ending.batches(start=(epoch, 0), epochs=1)))
    passes.close()


def test_a_mixture_of_other_ends_has_its_epilogue_on_the_workers_only(service, folders):
    jax = pytest.importorskip("jax")
    import leat.jax

    @leat.pipeline
    def cast(path):
        encoded, label = fn.readers.image_folder(path)
        image = fn.cast(fn.random_resized_crop(fn.decode(encoded), size=(20, 3)), dtype="float32")
        return {"image": image, "label": label}

    @leat.pipeline
    def normalized(path):
        encoded, label = fn.readers.image_folder(path)
        image = fn.random_resized_crop(fn.decode(encoded), size=(20, 3))
        return {"image": fn.normalize(image, mean=[127.5], std=[127.5]), "label": label}

    sources = {"web": cast(folders["web"]), "books": normalized(folders["books"])}
    job = service.job("other-ends", leat.mix(sources, {"web": 1, "books": 1}), batch=BATCH, seed=7)
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(jax.devices()), ("data",)),
                                          jax.sharding.PartitionSpec("data"))
    wanted = [next(job.batches())]
    assert_same([next(leat.jax.batches(job, sharding=sharding))], wanted)
    with pytest.raises(leat.InvalidArgument, match="ends"):
        next(leat.jax.batches(job, sharding=sharding, epilogue="device"))
