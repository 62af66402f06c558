# SPDX-License-Identifier: Apache-2.0
import inspect
import types

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from leat.dali import _current, _node  # noqa: E402
from leat.dali.plugin.jax.fn import jax_function  # noqa: E402
from leat.errors import InvalidArgument  # noqa: E402

BATCH = np.arange(24, dtype=np.float32).reshape(4, 3, 2)


@pytest.fixture(autouse=True)
def nodes(monkeypatch):
    """Records the arguments of consumer_call; nodes are texts."""
    told = []

    def consumer_call(call, inputs, num_outputs, layouts, preserve):
        told.append(types.SimpleNamespace(call=call, inputs=inputs, layouts=layouts, preserve=preserve))
        return tuple(f"output {i}" for i in range(num_outputs))

    monkeypatch.setattr(_node, "consumer_call", consumer_call)
    monkeypatch.setattr(_current, "pipeline", lambda: types.SimpleNamespace(device_id=0, max_batch_size=4))
    return told


def called(nodes, function, *arrays, **options):
    jax_function(**options)(function)(*["node"] * len(arrays))
    return nodes[-1].call(list(arrays))


def test_it_decorates_in_every_way_and_returns_what_was_declared(nodes):
    @jax_function
    @jax.jit
    @jax.vmap
    def flipped(image):
        """Upside down."""
        return image[::-1]

    assert flipped("images") == "output 0" and "Upside down." in flipped.__doc__
    (result,) = nodes[-1].call([BATCH])
    np.testing.assert_array_equal(np.asarray(result), BATCH[:, ::-1])
    assert nodes[-1].inputs == ("images",) and nodes[-1].preserve is True and nodes[-1].layouts is None
    assert jax_function(lambda a, b: (b, a), num_outputs=2, preserve=False)("a", "b") == ("output 0", "output 1")
    assert nodes[-1].preserve is False
    assert jax_function(num_outputs=0)(lambda a: None)("a") is None
    assert nodes[-1].call([BATCH]) == []
    jax_function(lambda a: (a, a), num_outputs=2, output_layouts=("HW", "FH"))("a")
    assert list(nodes[-1].layouts) == ["HW", "FH"]
    jax_function(lambda a: (a, a), num_outputs=2, output_layouts="HW")("a")
    assert list(nodes[-1].layouts) == ["HW", "HW"]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("device", [None, "cpu", "gpu"])
def test_inputs_of_any_kind_are_arrays_on_the_pipelines_device(nodes, compiled, device):
    seen = []

    def function(a, b):
        seen.append((isinstance(a, jax.Array), a.shape, b.shape))
        return a + 1, b

    inputs = (BATCH[:, ::-1], jax.device_put(jnp.asarray(BATCH), jax.devices()[3]))
    a, b = called(nodes, jax.jit(function) if compiled else function, *inputs, num_outputs=2, device=device)
    assert seen[0] == (True, (4, 3, 2), (4, 3, 2))
    np.testing.assert_array_equal(np.asarray(a), BATCH[:, ::-1] + 1)
    np.testing.assert_array_equal(np.asarray(b), BATCH)
    assert a.devices() == b.devices() == {jax.devices()[0]}


def test_without_inputs_the_batch_is_the_pipelines(nodes):
    assert called(nodes, lambda: jnp.zeros((4, 2)))[0].shape == (4, 2)
    with pytest.raises(RuntimeError, match="current batch size of 4"):
        called(nodes, lambda: jnp.zeros((3, 2)))


def on_two_devices(array):
    return jax.device_put(array, NamedSharding(Mesh(np.array(jax.devices()[:2]), ("x",)), P("x")))


@pytest.mark.parametrize(
    ("function", "options", "error", "text"),
    [
        (lambda a: (a, a), {}, RuntimeError, r"\(a tuple of\) `num_outputs=1` outputs, but returned 2"),
        (lambda a: None, {}, RuntimeError, "`num_outputs=1` outputs, but returned 0"),
        (lambda a: a, {"num_outputs": 0}, RuntimeError, "`num_outputs=0` outputs, but returned 1"),
        (lambda a: a[1:], {}, RuntimeError, "current batch size of 4, but the output at index 0 has the shape"),
        (lambda a: a.sum(), {}, RuntimeError, "current batch size of 4, but the output at index 0"),
        (lambda a: (a, a[:2]), {"num_outputs": 2}, RuntimeError, "the output at index 1"),
        (on_two_devices, {}, ValueError, r"array split across multiple devices \(2\)"),
        (np.asarray, {}, TypeError, "output at index 0 is ndarray; expected a jax.Array"),
        (lambda a: a, {"output_layouts": "HWC"}, ValueError, "layout 'HWC' .* has 3 axes, and its samples 2"),
        (lambda a: next(iter(())), {}, RuntimeError, "raised StopIteration"),
        (lambda a: a.no_such, {}, AttributeError, "no_such"),
    ],
)
def test_wrong_outputs_are_told(nodes, function, options, error, text):
    with pytest.raises(error, match=text):
        called(nodes, function, BATCH, **options)


def test_an_array_of_another_kind_of_device_is_told(nodes):
    class Elsewhere:
        """Like a jax.Array on a GPU, for the check only."""

        ndim, shape = 3, BATCH.shape

        def devices(self):
            return [types.SimpleNamespace(platform="gpu")]

    jax_function(lambda a: a)("node")
    with pytest.raises(InvalidArgument, match="array residing on the device of kind `gpu`, expected `cpu`"):
        nodes[-1].call._on_one_device(0, Elsewhere())


def test_samples_of_several_shapes_are_told(nodes):
    with pytest.raises(InvalidArgument, match="batch of samples with different shapes"):
        called(nodes, lambda a: a, [np.zeros(1), np.zeros(2)])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_outputs": -1}, "num_outputs"),
        ({"num_outputs": True}, "num_outputs"),
        ({"device": "tpu"}, "device"),
        ({"output_layouts": ("H", "W")}, "output_layouts"),
        ({"output_layouts": 3}, "output_layouts"),
    ],
)
def test_wrong_arguments_are_told(options, text):
    with pytest.raises(ValueError, match=text):
        jax_function(lambda a: a, **options)


def test_sharding_is_for_processes_of_one_device(monkeypatch):
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("batch",)), P("batch"))
    with pytest.raises(NotImplementedError, match="exactly one device, and this one has 8"):
        jax_function(lambda a: a, sharding=sharding)("node")
    monkeypatch.setattr(jax, "local_device_count", lambda: 1)
    with pytest.raises(ValueError, match="must be an instance of `NamedSharding` or `PositionalSharding`"):
        jax_function(lambda a: a, sharding="batch")("node")


def test_with_sharding_the_function_has_global_arrays(nodes, monkeypatch):
    monkeypatch.setattr(jax, "local_device_count", lambda: 1)
    sharding = NamedSharding(Mesh(np.array(jax.devices()[2:3]), ("batch",)), P("batch"))
    seen = []

    def function(a):
        seen.append(a.sharding)
        return a * 2

    (result,) = called(nodes, function, BATCH, sharding=sharding)
    assert seen == [sharding] and result.devices() == {jax.devices()[2]}
    np.testing.assert_array_equal(np.asarray(result), BATCH * 2)


def test_it_is_known_as_what_it_wraps():
    def named(a):
        return a

    assert jax_function(named).__name__ == "named"
    assert list(inspect.signature(jax_function).parameters)[0] == "function"
