# SPDX-License-Identifier: Apache-2.0
"""leat.rocal's iterators over jobs that compute their rows in this process: placement, resets, peeking."""

import itertools
import pathlib
import subprocess
import sys

import leat
import numpy as np
import pytest
from interrupts import INTERRUPTS, Interrupts
from leat.rocal import _feed, types
from ports import free_port
from rocal_fakes import SAMPLES, FakeJob, jobs, make, samples  # noqa: F401

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from leat.rocal.plugin.jax import ROCALJaxIterator, ROCALPeekableIterator  # noqa: E402


def per_device(count, **arguments):
    return [make(shard_id=i, num_shards=count, **arguments) for i in range(count)]


def on_mesh(shape, names, spec, devices=None):
    devices = np.array(jax.devices() if devices is None else devices)
    return NamedSharding(Mesh(devices[: int(np.prod(shape))].reshape(shape), names), spec)


class TestJaxIterator:
    @pytest.mark.parametrize("count", [2, 8])
    def test_a_pipeline_a_device_makes_global_arrays(self, count):
        it = ROCALJaxIterator(per_device(count, batch_size=3), on_mesh((count,), ("batch",), P("batch")))
        assert len(it) == -(-(-(-SAMPLES // count)) // 3)
        images, labels = next(it)
        assert images.shape == (3 * count, 2) and labels.shape == (3 * count,) and labels.dtype == np.int32
        starts = [SAMPLES * k // count for k in range(count)]
        assert labels.tolist() == [start + i for start in starts for i in range(3)]
        for shard, start in zip(images.addressable_shards, starts):
            assert shard.device == jax.devices()[starts.index(start)] and np.asarray(shard.data)[0, 0] == start
        assert FakeJob.opened == 1

    def test_the_epoch_ends_until_a_reset(self):
        it = ROCALJaxIterator(make(batch_size=20, last_batch_policy=types.LAST_BATCH_DROP))
        assert len(it) == 2
        assert [len(samples(it)), len(samples(it)), len(samples(iter(it)))] == [2, 0, 0]
        it.reset()
        first = it.next()
        assert np.asarray(first[0])[0].tolist() == [0, 1] and FakeJob.opened == 1

    def test_a_reset_in_the_middle_begins_the_next_epoch(self):
        it = ROCALJaxIterator(make(batch_size=10))
        it.reset()  # nothing was taken: the first epoch is still to come
        assert samples(it, 2) == [list(range(10)), list(range(10, 20))]
        it.reset()
        batch = next(it)
        assert np.asarray(batch[0])[0].tolist() == [0, 1]
        assert len(samples(it)) == 4

    def test_no_batch_is_lost_to_an_interrupt(self):
        it = ROCALJaxIterator(make(batch_size=20))
        next(it)
        FakeJob.interrupt = True
        with pytest.raises(KeyboardInterrupt):
            next(it)
        assert samples(it) == [list(range(20, 40)), [*range(40, 50), *[49] * 10]] and FakeJob.opened == 2

    @pytest.mark.parametrize("kind", [ROCALJaxIterator, ROCALPeekableIterator])
    def test_no_batch_is_lost_or_repeated_wherever_the_interrupt_falls(self, kind):
        def epochs(it, count, interrupts=None):
            got = []
            while len(got) < count:
                try:
                    if interrupts:
                        interrupts.arm()
                    for batch in map(kind.__next__, itertools.repeat(it)):  # `for` over it may begin an epoch
                        got.append(batch)
                        if interrupts:
                            interrupts.arm()
                    if interrupts:
                        interrupts.armed = False
                    it.reset()
                except KeyboardInterrupt:
                    pass
            return [np.asarray(batch[0])[:, 0].astype(int).tolist() for batch in got[:count]]

        expected = epochs(kind(make()), 39)
        with Interrupts(1) as interrupts:
            while interrupts.raised < INTERRUPTS:
                assert epochs(kind(make()), 39, interrupts) == expected

    def test_without_sharding_one_pipeline_gives_arrays_of_its_device(self):
        images, labels = next(ROCALJaxIterator([make(device_id=5)]))
        assert images.devices() == {jax.local_devices()[5]} and labels.devices() == images.devices()

    def test_without_sharding_several_give_what_pmap_takes(self):
        images, labels = next(ROCALJaxIterator(per_device(8)))
        assert images.shape == (8, 4, 2) and labels.shape == (8, 4)
        assert [shard.device for shard in images.addressable_shards] == jax.devices()
        doubled = jax.pmap(lambda x: x * 2)(labels)
        assert doubled.tolist() == (2 * np.asarray(labels)).tolist()

    def test_without_sharding_and_on_one_device_they_are_stacked(self):
        (images, _) = next(ROCALJaxIterator(per_device(2, device_id=3)))
        assert images.shape == (2, 4, 2) and images.devices() == {jax.local_devices()[3]}
        with pytest.raises(leat.InvalidArgument, match="all different or all the same"):
            ROCALJaxIterator([make(device_id=device) for device in (0, 1, 1)])

    def test_one_hot_labels(self):
        member = per_device(1)[0]._member()._replace(one_hot=True)
        vectors = np.eye(4, 10, dtype=np.int32)
        result = _feed._taken(member, {"output0": np.zeros((4, 2)), "label": vectors})
        assert result.labels.shape == (1, 4, 10) and result.labels.dtype == np.int32

    @pytest.mark.parametrize("order", [list(range(8)), [5, 2, 7, 0, 1, 6, 3, 4]])
    def test_rows_lie_where_device_id_says(self, order):
        sharding = on_mesh((8,), ("batch",), P("batch"), [jax.devices()[i] for i in order])
        images, labels = next(ROCALJaxIterator(per_device(8, batch_size=1), sharding))
        assert labels.tolist() == [SAMPLES * k // 8 for k in order]
        assert [shard.device for shard in sorted(labels.addressable_shards, key=lambda s: s.index[0].start)] == [
            jax.devices()[i] for i in order
        ]

    @pytest.mark.parametrize(
        "shape, names, spec, parts",
        [
            ((4, 2), ("data", "model"), P("data"), 4),
            ((4, 2), ("model", "data"), P("data"), 2),
            ((2, 2, 2), ("a", "b", "c"), P(("a", "b"), "c"), 4),
            ((8, 1), ("x", "y"), P("x", "y"), 8),
            ((8,), ("x",), P(), 1),
        ],
    )
    def test_any_mesh(self, shape, names, spec, parts):
        """It has as many parts of rows as its data axes make, and replicas of them along the others."""
        sharding = on_mesh(shape, names, spec)
        images, labels = next(ROCALJaxIterator(per_device(parts, batch_size=2, device_id=0), sharding))
        assert images.shape == (2 * parts, 2) and len(images.addressable_shards) == 8
        assert labels.tolist() == [SAMPLES * k // parts + i for k in range(parts) for i in range(2)]

    def test_a_positional_sharding_of_old_jax(self):
        positional = getattr(jax.sharding, "PositionalSharding", None) if jax.__version__ < "0.5" else None
        if positional is None:
            pytest.skip(f"JAX {jax.__version__} has none")
        devices = np.array(jax.devices()).reshape(8, 1)
        images, labels = next(ROCALJaxIterator(per_device(8), positional(devices)))
        assert images.shape == (32, 2) and labels.shape == (32,)

    def test_what_does_not_fit(self):
        sharding = on_mesh((8,), ("batch",), P("batch"))
        with pytest.raises(leat.InvalidArgument, match="2 pipelines, but.*into 8 parts, and this process holds 8"):
            ROCALJaxIterator(per_device(2), sharding)
        with pytest.raises(leat.InvalidArgument, match="expected a NamedSharding"):
            ROCALJaxIterator(per_device(8), sharding=jax.devices())
        with pytest.raises(leat.InvalidArgument, match="LAST_BATCH_PARTIAL"):
            ROCALJaxIterator(make(last_batch_policy=types.LAST_BATCH_PARTIAL))
        with pytest.raises(leat.InvalidArgument, match="expected a Pipeline"):
            ROCALJaxIterator([])
        with pytest.raises(leat.InvalidArgument, match="device_id = 8, but this process has 8 devices"):
            ROCALJaxIterator(make(device_id=8))
        with pytest.raises(leat.InvalidArgument, match=r"batches in an epoch; expected as many in each"):
            ROCALJaxIterator([make(), make(batch_size=8, device_id=1)])
        with pytest.raises(leat.InvalidArgument, match="expected the same shapes and types from all"):
            ROCALJaxIterator([make(), make(outputs=2, device_id=1)])

    def test_pipelines_of_different_seeds_are_jobs_of_their_own(self, jobs):
        pipelines = [make(shard_id=i, num_shards=2, seed=42 + i) for i in range(2)]
        _, labels = next(ROCALJaxIterator(pipelines, on_mesh((2,), ("batch",), P("batch"))))
        assert labels.tolist() == [*range(4), *range(25, 29)] and len(jobs) == FakeJob.opened == 2

    def test_a_pipeline_with_others_is_not_run_by_itself(self):
        pipelines = per_device(2)
        it = ROCALJaxIterator(pipelines)
        with pytest.raises(leat.FailedPrecondition, match="together with 1 others"):
            pipelines[0].run()
        next(it)
        assert pipelines[1].get_image_labels().tolist() == [25, 26, 27, 28]


class TestPeekableIterator:
    @pytest.fixture
    def it(self):
        it = ROCALPeekableIterator(per_device(2, batch_size=5), on_mesh((2,), ("batch",), P("batch")))
        yield it
        it.close()

    def test_peek_is_next(self, it):
        for _ in range(5):
            peeked = it.peek()
            assert it.peek() is peeked and next(it) is peeked
        with pytest.raises(StopIteration):
            it.peek()
        with pytest.raises(StopIteration):
            next(it)

    def test_peek_async_is_the_next_of_the_time_it_was_called(self, it):
        future = it.peek_async()
        taken = next(it)
        assert future.result(timeout=60) is taken
        assert it.peek_async().result(timeout=60) is not taken

    def test_element_spec(self, it):
        specs = [(spec.shape, spec.dtype) for spec in it.element_spec]
        assert specs == [((10, 2), np.float32), ((10,), np.int32)]
        assert samples(it)[0][0] == 0  # nothing was lost

    def test_for_begins_the_next_epoch(self, it):
        assert len(list(it)) == 5
        assert np.asarray(next(iter(it))[0])[0].tolist() == [0, 1]
        it.reset()
        it.peek()
        batches = list(it)  # not reset again
        assert len(batches) == 5 and np.asarray(batches[0][0])[0].tolist() == [0, 2]

    def test_a_batch_that_changes_is_refused(self, it):
        next(it)
        found = it._feed.find()
        smaller = [part._replace(outputs=[part.outputs[0][:3]]) for part in found.parts]
        it._feed.find = lambda: found._replace(parts=smaller)
        with pytest.raises(ValueError, match="expected the same at every step"):
            it.peek()


def test_two_processes():
    """Each has the pipelines of its own devices, and makes the same global arrays."""
    script, port = pathlib.Path(__file__).with_name("rocal_processes.py"), free_port()
    processes = [
        subprocess.Popen([sys.executable, str(script), str(i), str(port)], stderr=subprocess.PIPE, text=True)
        for i in range(2)
    ]
    for process in processes:
        _, error = process.communicate(timeout=240)
        assert process.returncode == 0, error


def test_nothing_deprecated_is_imported():
    code = "import leat.rocal.plugin.jax, leat.rocal.plugin.generic"
    subprocess.run([sys.executable, "-W", "error::DeprecationWarning:leat", "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("policy", [types.LAST_BATCH_FILL, types.LAST_BATCH_PARTIAL])
def test_samples_and_where_an_iterator_is(policy):
    from leat.rocal.plugin.generic import ROCALGenericIterator

    it = ROCALGenericIterator(make(batch_size=20, num_shards=2, shard_id=1, last_batch_policy=policy))
    with pytest.raises(leat.FailedPrecondition, match="no batch has been taken"):
        it.samples()
    for epoch in range(2):
        for _, labels in it:
            assert it.samples().tolist() == labels.tolist()
        assert repr(it).endswith(f"batches of 20>: {len(it)} of {len(it)} batches of epoch {epoch}>")
        it.reset()
        assert it.samples().tolist() == labels.tolist()


def test_samples_of_several_pipelines_are_one_behind_the_other():
    it = ROCALJaxIterator([make(shard_id=shard, num_shards=2, batch_size=4) for shard in range(2)])
    found = samples(it, 3)[-1]
    assert it.samples().tolist() == [number for each in found for number in each]
    assert repr(it).startswith("<leat.rocal ROCALJaxIterator over ") and "and 1 more" in repr(it)


def test_a_mask_counts_each_sample_once():
    """Three shards, of 16 or 17 samples: the last of 5 batches has a valid row or two of each."""
    it = ROCALJaxIterator(
        [make(shard_id=shard, num_shards=3, last_batch_policy=types.LAST_BATCH_MASK) for shard in range(3)]
    )
    counted = []
    for images, labels, valid in it:
        assert valid.dtype == bool and valid.shape == labels.shape == (3, 4)
        assert (it.samples() < 0).tolist() == (~np.asarray(valid)).ravel().tolist()
        counted += np.asarray(labels)[np.asarray(valid)].tolist()
    assert sorted(counted) == list(range(SAMPLES)) and not np.asarray(valid).all()


def test_a_mask_behind_the_labels():
    from leat.rocal.plugin.generic import ROCALGenericIterator, ROCALNumpyIterator

    def masked():
        return make(batch_size=30, last_batch_policy=types.LAST_BATCH_MASK)

    *_, ((images,), labels, valid) = ROCALGenericIterator(masked())
    assert valid.tolist() == [True] * 20 + [False] * 10 and len(images) == len(labels) == 30
    *_, (images, valid) = ROCALNumpyIterator(masked())
    assert valid.tolist() == [True] * 20 + [False] * 10


def test_numpy_iterators():
    from leat.rocal.plugin.generic import ROCALGenericIterator, ROCALNumpyIterator

    it = ROCALGenericIterator(make(batch_size=20), tensor_layout=types.NCHW, device="cpu")
    (images,), labels = next(it)
    assert len(it) == 3 and images[:, 0].tolist() == labels.tolist() == list(range(20)) and labels.dtype == np.int64
    it.reset()
    assert next(it)[0][0][0].tolist() == [0, 1]
    assert [array.shape for array in next(ROCALNumpyIterator(make()))] == [(4, 2)]
    with pytest.raises(TypeError, match="'tensor_format'; did you mean 'tensor_layout'"):
        ROCALGenericIterator(make(), tensor_format=1)
    with pytest.raises(leat.Unimplemented, match="display"):
        ROCALGenericIterator(make(), display=True)


def test_torch_iterators():
    torch = pytest.importorskip("torch")
    from leat.rocal.plugin.pytorch import ROCALClassificationIterator

    it = ROCALClassificationIterator(make(batch_size=20), device="cpu")
    (images,), labels = next(it)
    assert labels.dtype == torch.int64 and labels.tolist() == list(range(20)) and images.shape == (20, 2)
    assert len(it) == 60
    *_, (_, labels, valid) = ROCALClassificationIterator(make(batch_size=30, last_batch_policy=types.LAST_BATCH_MASK))
    assert valid.dtype == torch.bool and labels[valid].tolist() == list(range(30, 50))
