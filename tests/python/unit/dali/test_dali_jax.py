# SPDX-License-Identifier: Apache-2.0
import inspect
import json
import pathlib

import numpy as np
import pytest
from dali_fake import FakePipeline
from interrupts import INTERRUPTS, Interrupts, gone_through

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from leat.dali.plugin.base_iterator import LastBatchPolicy  # noqa: E402
from leat.dali.plugin.jax import DALIGenericIterator, clu, data_iterator, integration  # noqa: E402
from leat.dali.plugin.jax.clu import peekable_data_iterator  # noqa: E402
from leat.dali.tensors import TensorListCPU  # noqa: E402

BOTH = pytest.mark.parametrize("decorator", [data_iterator, peekable_data_iterator])


def fake_pipeline_def(function):
    """Makes functions that return the arguments of a FakePipeline."""

    def make(*args, checkpoint=None, batch_size, num_threads, device_id, enable_checkpointing=False, **kwargs):
        return FakePipeline(
            batch=batch_size,
            device_id=device_id,
            enable_checkpointing=enable_checkpointing,
            checkpoint=checkpoint,
            **function(*args, **kwargs),
        )

    return make


@pytest.fixture(autouse=True)
def pipeline_def(monkeypatch):
    import leat.dali

    monkeypatch.setattr(leat.dali, "pipeline_def", fake_pipeline_def, raising=False)


def mesh_of(*shape, names=("batch", "model"), order=None):
    devices = np.array(jax.devices())[order or slice(None)][: int(np.prod(shape))]
    return Mesh(devices.reshape(shape), names[: len(shape)])


def batch_axis(devices=2):
    return NamedSharding(mesh_of(devices), P("batch"))


def rows(array):
    return np.asarray(array).tolist()


def features(samples):
    """Returns a matrix of floats, and labels without an axis of their own."""
    return [np.arange(8, dtype=np.float32) + np.asarray(samples, np.float32)[:, None], np.asarray(samples, np.int32)]


def sharded(shard_id, num_shards):
    return {"samples": 47, "shard_id": shard_id, "num_shards": num_shards}


@BOTH
def test_two_devices_have_the_rows_of_two_shards(decorator):
    it = decorator(
        sharded,
        output_map=["data"],
        reader_name="reader",
        sharding=batch_axis(),
        last_batch_policy=LastBatchPolicy.DROP,
    )(batch_size=4)
    assert (it.size, len(it), it.batch_size) == (23, 11, 2)
    batches = list(it)
    assert len(batches) == 11
    assert rows(batches[0]["data"]) == [[0], [1], [23], [24]]
    assert batches[0]["data"].sharding == batch_axis()
    for step, batch in enumerate(batches):
        shards = {shard.device: rows(shard.data) for shard in batch["data"].addressable_shards}
        first = [[2 * step], [2 * step + 1]]
        assert shards == dict(zip(jax.devices(), [first, [[23 + row] for (row,) in first]]))


@BOTH
def test_devices_give_what_pmap_takes(decorator):
    devices = jax.devices()[:2]
    it = decorator(sharded, output_map=["data"], reader_name="reader", devices=devices)(batch_size=4)
    batch = next(it)["data"]
    assert rows(batch) == [[[0], [1]], [[23], [24]]]
    assert [shard.device for shard in batch.addressable_shards] == devices
    assert rows(jax.pmap(lambda x: x * 2, devices=devices)(batch)) == [[[0], [2]], [[46], [48]]]
    flat = decorator(sharded, output_map=["data"], devices=devices[:1], pmap_compatible=False)(batch_size=4)
    assert next(flat)["data"].shape == (4, 1)


@BOTH
def test_a_function_may_be_decorated_in_every_way(decorator):
    def plain():
        return {"samples": 47}

    @decorator(output_map=["data"], reader_name="reader", size=-1)
    def declared():
        """The samples of a reader."""
        return {"samples": 47}

    @decorator(output_map=["data"], reader_name="reader")
    def told(num_shards, samples=40):
        return {"samples": samples, "num_shards": num_shards}

    assert declared.__name__ == "declared" and declared.__doc__ == "The samples of a reader."
    for create in (declared, decorator(plain, output_map=["data"], reader_name="reader")):
        for kwargs in ({}, {"num_threads": 4, "device_id": 0}):
            it = create(batch_size=3, **kwargs)
            assert len(it) == 16
            for step, batch in enumerate(it):
                assert rows(batch["data"]) == [[(3 * step + row) % 47] for row in range(3)]
                assert batch["data"].devices() == {jax.devices()[0]}
            assert step == 15
    assert told(batch_size=3, num_shards=2, samples=47).size == 24
    assert told(batch_size=4, num_shards=2).size == 20, "one function makes many iterators"


@BOTH
def test_a_pipeline_may_be_on_another_device_or_on_none(decorator):
    create = decorator(lambda: {"samples": 47}, output_map=["data"])
    assert next(create(batch_size=3, device_id=1))["data"].devices() == {jax.devices()[1]}
    assert next(create(batch_size=3, device_id=None))["data"].devices() == {jax.devices("cpu")[0]}
    with pytest.raises(ValueError, match="device_id = 99, but this process has 8 devices"):
        create(batch_size=3, device_id=99)


@pytest.mark.parametrize(
    ("sharding", "parts"),
    [
        (lambda: NamedSharding(mesh_of(8), P("batch")), 8),
        (lambda: NamedSharding(mesh_of(4, 2), P("batch")), 4),
        (lambda: NamedSharding(mesh_of(4, 2), P("model")), 2),
        (lambda: NamedSharding(mesh_of(2, 4), P("batch", "model")), 2),
        (lambda: NamedSharding(mesh_of(2, 4), P(("model", "batch"))), 8),
        (lambda: NamedSharding(mesh_of(8, order=[5, 2, 7, 0, 1, 6, 3, 4]), P("batch")), 8),
        (lambda: NamedSharding(mesh_of(8), P()), 1),
        (lambda: NamedSharding(mesh_of(8), P(None, "batch")), 1),
        (lambda: jax.sharding.SingleDeviceSharding(jax.devices()[3]), 1),
    ],
)
def test_global_arrays_are_right_on_any_mesh(sharding, parts):
    sharding, seen = sharding(), []

    def function(shard_id, num_shards):
        seen.append((shard_id, num_shards))
        return {"samples": 64, "shard_id": shard_id, "num_shards": num_shards, "outputs": features}

    it = data_iterator(function, output_map=["x", "y"], reader_name="reader", sharding=sharding)(batch_size=16)
    assert seen == [(part, parts) for part in range(parts)]
    each = 16 // parts
    for step, batch in enumerate(it):
        samples = [part * 64 // parts + step * each + row for part in range(parts) for row in range(each)]
        for name, expected in zip("xy", features(samples)):
            np.testing.assert_array_equal(np.asarray(batch[name]), expected)
            for shard in batch[name].addressable_shards:
                np.testing.assert_array_equal(np.asarray(shard.data), expected[shard.index])
        assert batch["x"].sharding == sharding
    assert step == 3


def test_positional_shardings_work_where_jax_has_them():
    positional = getattr(jax.sharding, "PositionalSharding", None)
    if positional is None:
        pytest.skip("this JAX has none")
    sharding = positional(np.array(jax.devices()[:2]).reshape(2, 1))

    def function(shard_id, num_shards):
        return {"samples": 8, "shard_id": shard_id, "num_shards": num_shards, "outputs": features}

    batch = next(data_iterator(function, output_map=["x", "y"], sharding=sharding, reader_name="reader")(batch_size=4))
    assert rows(batch["y"]) == [0, 1, 4, 5] and batch["x"].sharding == sharding
    assert [rows(shard.data) for shard in batch["y"].addressable_shards] == [[0, 1], [4, 5]]


def test_a_tensor_is_put_where_its_script_has_it():
    batch = TensorListCPU(np.arange(6, dtype=np.int32).reshape(2, 3))
    for target, wanted in ((None, jax.devices("cpu")[0]), (1, jax.devices()[1])):
        batch._target = target
        for tensor in (batch.as_tensor(), batch[1]):
            array = integration._to_jax_array(tensor, False)
            assert integration._jax_device(array) == wanted
            np.testing.assert_array_equal(array, np.asarray(tensor))


def test_pipelines_of_their_own_devices_are_put_there():
    """As in scripts that make the pipelines themselves."""
    sharding = NamedSharding(mesh_of(2, order=[1, 0]), P("batch"))
    pipelines = [FakePipeline(47, 2, shard, 2, device_id=shard) for shard in range(2)]
    batch = next(DALIGenericIterator(pipelines, ["data"], reader_name="reader", sharding=sharding))["data"]
    assert {shard.device.id: rows(shard.data) for shard in batch.addressable_shards} == {
        0: [[0], [1]],
        1: [[23], [24]],
    }
    with pytest.raises(ValueError, match="2 pipelines, but sharding .* cuts rows into 4 parts"):
        DALIGenericIterator(pipelines, ["data"], reader_name="reader", sharding=batch_axis(4))


def test_several_pipelines_without_sharding_are_stacked():
    def opened(*devices):
        pipelines = [FakePipeline(20, 2, shard, len(devices), device_id=at) for shard, at in enumerate(devices)]
        return next(DALIGenericIterator(pipelines, ["data"], reader_name="reader"))["data"]

    assert rows(opened(0, 1)) == rows(opened(0, 0)) == [[[0], [1]], [[10], [11]]]
    assert opened(0, 1).devices() == set(jax.devices()[:2]) and opened(0, 0).devices() == {jax.devices()[0]}
    with pytest.raises(AssertionError, match="different devices or all on the same device"):
        opened(0, 0, 1)


def test_a_bare_pipeline_works_and_outputs_without_a_name_are_left_out():
    it = DALIGenericIterator(FakePipeline(8, 2, outputs=features), ["x"], reader_name="reader", auto_reset=True)
    assert list(next(it)) == ["x"]
    assert len(list(it)) == 3 and next(it)["x"][0, 0] == 0
    with pytest.raises(ValueError, match="'z'.* and the pipeline 2 outputs"):
        DALIGenericIterator(FakePipeline(8, 2, outputs=features), ["x", "y", "z"])


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool", "float16"])
@pytest.mark.parametrize("shape", [(), (1,), (10,), (2, 4), (1, 2, 3)])
def test_arrays_keep_dtype_shape_and_values(dtype, shape):
    value = np.full((2, *shape), 99).astype(dtype)
    array = next(DALIGenericIterator(FakePipeline(8, 2, outputs=lambda samples: [value]), ["x"]))["x"]
    assert isinstance(array, jax.Array) and array.dtype == dtype and array.shape == (2, *shape)
    np.testing.assert_array_equal(np.asarray(array), value)


def test_a_hundred_batches_have_their_own_values():
    pipeline = FakePipeline(400, 4, outputs=lambda samples: [np.repeat(np.int32(samples)[:, None, None], 5, 2)])
    kept = list(DALIGenericIterator(pipeline, ["x"], reader_name="reader"))
    assert len(kept) == 100
    for step, batch in enumerate(kept):
        assert rows(batch["x"][:, 0, 4]) == [4 * step + row for row in range(4)] and batch["x"].shape == (4, 1, 5)


def test_outputs_that_are_jax_arrays_already_are_placed_too():
    pipelines = [
        FakePipeline(8, 2, k, 2, device_id=k, outputs=lambda s: [jnp.asarray(s, jnp.int32)[:, None]]) for k in range(2)
    ]
    for options, expected in (({"sharding": batch_axis()}, (4, 1)), ({}, (2, 2, 1))):
        batch = next(DALIGenericIterator(pipelines, ["x"], reader_name="reader", **options))["x"]
        assert batch.shape == expected and batch.devices() == set(jax.devices()[:2])


def test_shards_of_several_shapes_are_refused():
    pipelines = [FakePipeline(8, 2, outputs=lambda s, n=n: [np.zeros((2, n))], device_id=n) for n in range(2)]
    for options in ({}, {"sharding": batch_axis()}):
        with pytest.raises(AssertionError, match="Shards shapes have to be the same"):
            DALIGenericIterator(pipelines, ["x"], reader_name="reader", **options)


def test_a_global_batch_that_does_not_divide_is_made_smaller_and_the_warning_says_so():
    create = data_iterator(sharded, output_map=["data"], reader_name="reader", sharding=batch_axis())
    with pytest.warns(Warning, match="does not divide by 2: global batches have 4 rows"):
        assert next(create(batch_size=5))["data"].shape == (4, 1)
    with pytest.raises(ValueError, match="at least a row for each of 2"):
        create(batch_size=1)
    with pytest.raises(ValueError, match="`batch_size` is missing; .* the global batch"):
        create()


@BOTH
def test_wrong_arguments_are_told(decorator, monkeypatch):
    def made(function=sharded, **options):
        return decorator(function, output_map=options.pop("output_map", ["data"]), **options)(batch_size=4)

    with pytest.raises(ValueError, match="Only one of `sharding` and `devices` arguments can be provided."):
        decorator(sharded, output_map=["data"], sharding=batch_axis(), devices=jax.devices())
    with pytest.raises(AssertionError, match="output_map names should be distinct"):
        made(lambda: {}, output_map=["a", "a"])
    with pytest.raises(AssertionError, match="should be an instance of `NamedSharding` or `PositionalSharding`"):
        made(sharding="batch")
    with pytest.raises(AssertionError, match="does not support partial last batch policy"):
        made(lambda: {}, last_batch_policy=LastBatchPolicy.PARTIAL)
    with pytest.raises(TypeError, match="does not take shard_id and num_shards"):
        made(lambda: {}, sharding=batch_axis())
    for devices in ([], jax.devices()[:1] * 2):
        with pytest.raises(ValueError, match="expected different devices, at least one"):
            made(devices=devices)
    create = decorator(sharded, output_map=["data"], devices=jax.devices())
    with pytest.raises(RuntimeError, match=r"checkpoints provided \(1\) should match .* to use \(8\)"):
        create(batch_size=8, checkpoints=["x"])
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(RuntimeError, match="does not support running in multiprocess mode. Use `sharding`"):
        create(batch_size=8)


@BOTH
def test_checkpoints_go_on_in_another_iterator(decorator):
    create = decorator(sharded, output_map=["data"], reader_name="reader", sharding=batch_axis())
    it = create(batch_size=4, enable_checkpointing=True)
    for _ in range(3):
        next(it)
    checkpoints = it.checkpoints()
    assert len(checkpoints) == 2 and all(isinstance(each, str) for each in checkpoints)
    again = create(batch_size=4, enable_checkpointing=True, checkpoints=checkpoints)
    assert [rows(batch["data"]) for batch in again] == [rows(batch["data"]) for batch in it]


@pytest.mark.parametrize("kind", [DALIGenericIterator, clu.DALIGenericPeekableIterator])
def test_no_batch_is_lost_or_repeated_wherever_an_interrupt_falls(kind):
    def make():
        return kind(FakePipeline(11, 2, ahead=True), ["x"], reader_name="reader", auto_reset=True)

    expected = [rows(batch["x"]) for batch, _ in zip(iter(lambda it=make(): next(it, None), 0), range(5))]
    with Interrupts(1) as interrupts:
        while interrupts.raised < INTERRUPTS:
            got = gone_through(interrupts, make(), 40)
            assert [rows(batch["x"]) for batch in got][:5] == expected
            assert len({str(rows(batch["x"])) for batch in got}) == 11


def test_peek_is_the_next_batch():
    it = clu.DALIGenericPeekableIterator(FakePipeline(10, 2), ["data"], reader_name="reader")
    for _ in range(5):
        assert it.peek()["data"] is it.peek()["data"]
        assert rows(it.peek()["data"]) == rows(next(it)["data"])
    with pytest.raises(StopIteration):
        it.peek()
    assert rows(iter(it).peek()["data"]) == [[0], [1]]
    assert rows(next(iter(it))["data"]) == [[0], [1]], "iter() with a peeked batch begins nothing"


def test_peek_async_is_the_next_batch():
    it = clu.DALIGenericPeekableIterator(FakePipeline(10, 2), ["data"], reader_name="reader")
    future = it.peek_async()
    peeked = future.result(timeout=60)["data"]
    assert next(it)["data"] is peeked
    assert rows(it.peek_async().result(timeout=60)["data"]) == [[2], [3]]


def test_element_spec_is_of_the_global_arrays():
    it = clu.DALIGenericPeekableIterator(FakePipeline(47, 3), ["data"], reader_name="reader")
    assert it.element_spec == {"data": clu.ArraySpec(shape=(3, 1), dtype=np.dtype("int32"))}
    assert rows(next(it)["data"]) == [[0], [1], [2]]
    pipelines = [FakePipeline(8, 2, k, 2) for k in range(2)]
    it = clu.DALIGenericPeekableIterator(pipelines, ["data"], reader_name="reader", sharding=batch_axis())
    assert it.element_spec["data"].shape == (4, 1)


def test_element_specs_are_clus_where_it_is_installed():
    theirs = pytest.importorskip("clu.data.dataset_iterator")
    assert clu.ArraySpec is theirs.ArraySpec


def test_shapes_that_change_are_refused():
    pipeline = FakePipeline(8, 2, outputs=lambda samples: [np.zeros((2, 1 + samples[0]))])
    it = clu.DALIGenericPeekableIterator(pipeline, ["data"])
    next(it)
    with pytest.raises(ValueError, match="shape or type of the output changed between iterations"):
        next(it)


def test_a_peeked_batch_belongs_to_no_checkpoint():
    it = clu.DALIGenericPeekableIterator(FakePipeline(8, 2, enable_checkpointing=True), ["x"], reader_name="reader")
    it.peek()
    with pytest.raises(RuntimeError, match="peeked"):
        it.checkpoints()
    next(it)
    assert len(it.checkpoints()) == 1


@pytest.mark.parametrize("sharding", [None, batch_axis])
def test_is_nonpadding_marks_the_samples_of_the_shards(sharding):
    pipelines = [FakePipeline(7, 3, shard, 2, pad=True, device_id=shard) for shard in range(2)]
    it = clu.DALIGenericPeekableIterator(
        pipelines, ["data"], reader_name="reader", sharding=sharding and sharding(), auto_reset=True
    )
    seen = []
    for _ in range(2):
        for _ in it:
            seen.append(rows(it.is_nonpadding))
    assert seen == [[True] * 6, [False] * 3 + [True] + [False] * 2, [True] * 6, [True] + [False] * 5]
    if sharding is not None:
        assert it.is_nonpadding.sharding == batch_axis()
    with pytest.raises(ValueError, match="reader_name"):
        _ = clu.DALIGenericPeekableIterator(FakePipeline(), ["data"]).is_nonpadding


@pytest.mark.parametrize("sharding", [None, batch_axis])
def test_mask_marks_the_rows_that_count(sharding):
    pipelines = [FakePipeline(7, 3, shard, 2, pad=True, device_id=shard) for shard in range(2)]
    it = DALIGenericIterator(
        pipelines,
        ["data"],
        reader_name="reader",
        sharding=sharding and sharding(),
        last_batch_policy=LastBatchPolicy.MASK,
    )
    counted = []
    for batch in it:
        valid = np.asarray(batch["valid"]).ravel()
        data = np.asarray(batch["data"]).ravel()
        assert valid.dtype == bool and it.samples()[valid].tolist() == data[valid].tolist()
        assert (it.samples()[~valid] == -1).all()
        counted += data[valid].tolist()
        if sharding is not None:
            assert batch["valid"].sharding == batch_axis()
    assert sorted(counted) == list(range(7))


def defaults(function):
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    empty = inspect.Parameter.empty
    return [[p.name, None if p.default is empty else str(p.default)] for p in parameters]


TABLE = json.loads(pathlib.Path(__file__).with_name("dali_iterators.json").read_text())


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: f"{entry['module']}.{entry['name']}")
def test_arguments_are_dalis(entry):
    """dali_iterators.json is compared with the installed DALI by tests/parity/dali_api.py."""
    if entry["module"].endswith("pytorch"):
        pytest.importorskip("torch")
    module = __import__(f"leat.dali.{entry['module']}", fromlist=["x"])
    assert defaults(getattr(module, entry["name"])) == entry["arguments"]


def test_decorators_and_classes_have_the_same_arguments_and_describe_them_alike():
    for kind, decorator in (
        (DALIGenericIterator, data_iterator),
        (clu.DALIGenericPeekableIterator, peekable_data_iterator),
    ):
        options = [each for each in defaults(decorator) if each[0] not in ("pipeline_fn", "output_map", "devices")]
        assert options == [each for each in defaults(kind) if each[0] not in ("pipelines", "output_map")]
        for name, _ in options:
            docs = (kind.__doc__, decorator.__doc__)
            texts = {doc[doc.index(f"\n        {name}: ") :].split("\n        ")[1] for doc in docs}
            assert len(texts) == 1
