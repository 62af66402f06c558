# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402


def devices(*order):
    assert len(jax.devices()) == 8, "XLA_FLAGS came too late"
    return np.array(jax.devices())[list(order) or slice(None)]


@pytest.fixture
def sharding():
    return NamedSharding(Mesh(devices(), ("data",)), P("data"))


@pytest.fixture
def job(service, graph):
    return service.job("images", graph.images, batch=16)


@pytest.mark.parametrize(
    "sharding_of",
    [
        lambda: NamedSharding(Mesh(devices(), ("data",)), P("data")),
        lambda: NamedSharding(Mesh(devices(5, 2, 7, 0, 1, 6, 3, 4), ("data",)), P("data")),
        lambda: NamedSharding(Mesh(devices().reshape(4, 2), ("data", "model")), P("data")),
        lambda: NamedSharding(Mesh(devices().reshape(2, 4), ("data", "model")), P("data", "model")),
        lambda: NamedSharding(Mesh(devices().reshape(2, 2, 2), ("a", "b", "c")), P(("c", "a"))),
        lambda: NamedSharding(Mesh(devices(), ("data",)), P()),
        lambda: NamedSharding(Mesh(devices(1, 3), ("data",)), P("data")),
        lambda: SingleDeviceSharding(jax.devices()[3]),
    ],
)
def test_the_global_batch_is_the_jobs_batch_on_any_mesh(job, sharding_of):
    sharding = sharding_of()
    steps = 0
    for got, expected in zip(leat.jax.batches(job, sharding=sharding), job.batches()):
        assert isinstance(got["image"], jax.Array) and got["image"].shape == (16, 8, 8, 3)
        assert got["image"].sharding == sharding
        np.testing.assert_array_equal(np.asarray(got["image"]), expected["image"])
        np.testing.assert_array_equal(np.asarray(got["label"]), expected["label"])
        for shard in got["image"].addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), expected["image"][shard.index])
        steps += 1
    assert steps == len(job)


def test_batches_work_in_jit(job, sharding):
    batch = next(leat.jax.batches(job, sharding=sharding))
    total = jax.jit(lambda batch: batch["image"].astype(jnp.int32).sum() + batch["label"].sum())(batch)
    expected = next(job.batches())
    assert int(total) == int(expected["image"].astype(np.int64).sum() + expected["label"].sum())


def test_the_position_is_that_of_the_last_batch_handed_out(job, sharding):
    it = leat.jax.batches(job, sharding=sharding, epochs=2)
    first = it.position()
    for _ in range(8):
        next(it)
    assert (it.epoch, it.step) == (1, 1)
    resumed = leat.jax.batches(job, sharding=sharding, epochs=1, position=it.position())
    rest = [int(batch["label"][0]) for batch in resumed]
    assert rest == [32, 48, 64, 80]
    assert [int(batch["label"][0]) for batch in it] == rest
    assert len(it) == 12 and it and repr(it) == "<leat.jax batches of job 'images': closed>"
    it.set_state(it.position())  # at the end
    assert list(it) == [] and job.step_of(it.position()) == (2, 0)
    assert int(next(leat.jax.batches(job, sharding=sharding, position=first))["label"][0]) == 0


def test_a_replicated_row_is_pulled_once(job):
    mesh = Mesh(devices().reshape(4, 2), ("data", "model"))
    it = leat.jax.batches(job, sharding=NamedSharding(mesh, P("data")))
    assert it.rows.tolist() == [*range(16)]


def test_fields_may_be_chosen_and_placed_apart(job, sharding):
    replicated = NamedSharding(sharding.mesh, P())
    batch = next(leat.jax.batches(job, sharding={"image": sharding, "label": replicated}))
    assert batch["label"].sharding.is_fully_replicated and not batch["image"].sharding.is_fully_replicated
    assert list(next(leat.jax.batches(job, sharding=sharding, fields=["label"]))) == ["label"]
    with pytest.raises(leat.InvalidArgument, match="'labels'; job 'images' has 'image', 'label'"):
        leat.jax.batches(job, sharding=sharding, fields=["labels"])


def test_rows_that_do_not_divide_are_refused(service, graph, sharding):
    with pytest.raises(leat.InvalidArgument, match="divides the 10 rows"):
        leat.jax.batches(service.job("ten", graph.images, batch=10), sharding=sharding)


def test_a_smaller_last_batch_is_refused(service, graph, sharding):
    job = service.job("partial", graph.images, batch=16, last_batch="partial")
    with pytest.raises(leat.InvalidArgument, match="expected 'mask', 'drop', 'fill' or 'pad'"):
        leat.jax.batches(job, sharding=sharding)


def test_statistics_say_what_cpu_devices_copied(job, sharding):
    """Each device has two rows: its images are aligned for JAX, its labels are not, except for the first device's."""
    seen = aliased = copied = 0
    with leat.jax.batches(job, sharding=sharding) as it:
        for batch in it:
            seen += 1
            host = {name: np.asarray(array) for name, array in batch.items()}
            assert sum(array.nbytes for array in host.values()) == 16 * (8 * 8 * 3 + 4)
        stats = it.stats()
    assert stats["rows_per_s"] == 1234.5  # includes the statistics of leat.Batches
    assert stats["aliased_bytes"] + stats["copied_bytes"] == seen * 16 * (8 * 8 * 3 + 4)
    with leat.jax.batches(job, sharding=sharding) as it:  # compares with the addresses, batch by batch
        while (host := it._host.next()) is not None:
            for name, array in it._place(host).items():
                for shard in array.addressable_shards:
                    part = host[name][shard.index]
                    if shard.data.unsafe_buffer_pointer() == part.ctypes.data:
                        aliased += part.nbytes
                    else:
                        copied += part.nbytes
    assert (stats["aliased_bytes"], stats["copied_bytes"]) == (aliased, copied)
    assert copied or jax.__version_info__ < (0, 5)  # older versions alias more


def test_statistics_count_what_is_finished_on_the_devices(floats, sharding):
    with leat.jax.batches(floats, sharding=sharding, epilogue="device") as it:
        steps = sum(1 for _ in it)
        stats = it.stats()
    assert stats["aliased_bytes"] + stats["copied_bytes"] == steps * 16 * (8 * 8 * 3 + 4)  # bytes, not floats


@pytest.mark.parametrize("single", [False, True])
def test_arrays_kept_alive_never_change_and_buffers_come_back(fake, job, sharding, single):
    """On CPU JAX may alias our memory; the fake overwrites every buffer that it gets back."""
    if single:
        sharding = SingleDeviceSharding(jax.devices()[0])
    before = fake.live()
    it = leat.jax.batches(job, sharding=sharding, epochs=0)
    kept = [(step, next(it)) for step in range(30)]
    derived = [batch["image"][3:5] for _, batch in kept[:5]]
    for _ in range(300):
        next(it)
    reference = [batch for batch in job.batches(epochs=5)][:30]
    for step, batch in kept:
        np.testing.assert_array_equal(np.asarray(batch["image"]), reference[step]["image"])
        np.testing.assert_array_equal(np.asarray(batch["label"]), reference[step]["label"])
    for step, image in enumerate(derived):
        np.testing.assert_array_equal(np.asarray(image), reference[step]["image"][3:5])
    del kept, batch, derived, image, reference
    it.close()
    jnp.zeros(1).block_until_ready()  # JAX drops its references to NumPy arrays at its next call
    assert fake.live() - before <= 1


def test_aliasing_does_happen_here_and_holds_the_buffer(fake, service, graph):
    """Proves that the previous test is effective: one device, aligned memory, no copy."""
    job = service.job("aligned", graph.images, batch=16)
    host = next(job.batches())["image"]
    address = host.__array_interface__["data"][0]
    placed = jax.device_put(host, jax.devices()[0]).block_until_ready()
    if placed.unsafe_buffer_pointer() != address:
        pytest.skip("this JAX copies")
    before = fake.live()
    del host
    assert fake.live() == before
    expected = np.array(placed)
    for _ in job.batches(epochs=5):
        pass
    np.testing.assert_array_equal(np.asarray(placed), expected)


def test_a_failure_comes_at_its_own_step(fake, job, sharding):
    fake.fail_at_step(2)
    it = leat.jax.batches(job, sharding=sharding)
    assert int(next(it)["label"][0]) == 0
    assert int(next(it)["label"][0]) == 16
    position = it.position()
    lengths = []
    for _ in range(4):
        with pytest.raises(leat.DataLoss, match="cats/1.jpg") as error:
            next(it)
        lengths.append(len(error.traceback))
    assert it.position() == position
    assert max(lengths) == lengths[0], "frames of one call are kept for the next"
    # The failure may be over: the iterator continues there when it is told to.
    fake.fail_at_step(-1)
    it.set_state(position)
    assert int(next(it)["label"][0]) == 32
    it.close()


@pytest.mark.parametrize("order", [[*range(8)], [3, 1], [6]])
def test_devices_give_the_layout_of_pmap(job, order):
    chosen = [jax.devices()[i] for i in order]
    each = job.batch // len(chosen)
    step = jax.pmap(lambda image, label: image.astype(jnp.int32).sum() + label.sum(), devices=chosen)
    for got, expected in zip(leat.jax.batches(job, devices=chosen), job.batches()):
        assert got["image"].shape == (len(chosen), each, 8, 8, 3) and got["label"].shape == (len(chosen), each)
        for i, device in enumerate(chosen):
            (shard,) = [shard for shard in got["image"].addressable_shards if shard.device == device]
            np.testing.assert_array_equal(np.asarray(shard.data)[0], expected["image"][each * i : each * (i + 1)])
        sums = expected["image"].astype(np.int64).sum((1, 2, 3)) + expected["label"]
        assert step(got["image"], got["label"]).tolist() == sums.reshape(len(chosen), each).sum(1).tolist()


def test_devices_that_cannot_be_are_refused(job, sharding):
    for arguments in ({}, {"sharding": sharding, "devices": jax.devices()}):
        with pytest.raises(leat.InvalidArgument, match="one of sharding and devices"):
            leat.jax.batches(job, **arguments)
    for devices in (jax.devices()[:3], [], [jax.devices()[0]] * 2):
        with pytest.raises(leat.InvalidArgument, match="number divides the 16 rows"):
            leat.jax.batches(job, devices=devices)


def test_what_is_no_sharding_is_refused(job, sharding):
    for wrong in (P("data"), sharding.mesh, {"image": sharding, "label": P()}):
        with pytest.raises(leat.InvalidArgument, match="expected a jax.sharding.Sharding, such as NamedSharding"):
            leat.jax.batches(job, sharding=wrong)
    with pytest.raises(leat.InvalidArgument, match=r"one for each of the fields \['image', 'label'\]"):
        leat.jax.batches(job, sharding={"image": sharding})


def test_a_sharding_without_a_device_of_this_process_is_refused(job, sharding, monkeypatch):
    monkeypatch.setattr(NamedSharding, "addressable_devices_indices_map", lambda self, shape: {})
    with pytest.raises(leat.InvalidArgument, match="has no device of this process; expected at least one"):
        leat.jax.batches(job, sharding=sharding)


def test_devices_are_for_one_process(job, monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(leat.InvalidArgument, match="devices is for one process, and there are 2; expected sharding="):
        leat.jax.batches(job, devices=jax.devices())


def test_samples_are_those_of_the_rows_that_are_pulled(job, sharding):
    it = leat.jax.batches(job, sharding=sharding, start=(2, 1))
    with pytest.raises(leat.FailedPrecondition, match="no batch has been handed out"):
        it.samples()
    next(it)
    assert repr(it) == "<leat.jax batches of job 'images': epoch 2 step 1>"
    assert it.samples().tolist() == (16 + it.rows.astype(int)).tolist() == it.samples(0, 1).tolist()
    part = Mesh(devices(*range(4)), ("data",))
    assert leat.jax.batches(job, sharding=NamedSharding(part, P("data"))).samples(0, 0).tolist() == [*range(16)]


def test_int64_that_would_be_cut_is_refused(job, sharding):
    job.schema["label"] = leat.Field(np.dtype("int64"), ())
    told = "field 'label' of job 'images' is int64.*fn.cast\\(label, dtype=\"int32\"\\).*jax_enable_x64"
    with pytest.raises(leat.InvalidArgument, match=told):
        leat.jax.batches(job, sharding=sharding)
    assert next(leat.jax.batches(job, sharding=sharding, fields=["image"]))["image"].shape[0] == 16
    jax.config.update("jax_enable_x64", True)
    try:
        leat.jax.batches(job, sharding=sharding).close()
    finally:
        jax.config.update("jax_enable_x64", False)


def test_what_no_option_is_called_is_refused_at_once(job, sharding):
    for wrong in ("rows", "widnow", "make", "device"):
        with pytest.raises(TypeError, match=f"batches\\(\\) got an unexpected keyword argument '{wrong}'"):
            leat.jax.batches(job, sharding=sharding, **{wrong: 1})


@pytest.mark.parametrize("epochs", [None, 2])
def test_a_state_is_gone_back_to(job, sharding, epochs):
    it = leat.jax.batches(job, sharding=sharding, epochs=epochs)
    labels = lambda: [int(batch["label"][0]) for batch in it]  # noqa: E731
    next(it)
    state = it.get_state()
    rest = labels()
    for _ in range(2):
        it.set_state(state)
        assert it.get_state() == state and it.epoch is None
        assert labels() == rest
    it.set_state(state)
    next(it)
    with pytest.raises(leat.InvalidArgument, match="another job"):
        it.set_state(b"nonsense")
    assert labels() == rest[1:]  # where it was


def test_a_failed_iterator_goes_on_from_its_state(job, sharding, fake):
    it = leat.jax.batches(job, sharding=sharding)
    first = int(next(it)["label"][0])
    state = it.get_state()
    it.close()
    it.set_state(state)
    assert int(next(it)["label"][0]) == first + 16


@pytest.mark.parametrize("order", [[*range(8)], [5, 2, 7, 0, 1, 6, 3, 4]])
def test_jaxs_own_call_is_used_where_it_gives_the_same(job, order, monkeypatch):
    sharding = NamedSharding(Mesh(devices(*order), ("data",)), P("data"))
    expected = [batch["image"] for batch in job.batches()]
    it = leat.jax.batches(job, sharding=sharding)
    first = next(it)["image"]
    assembled = it._place._fields["image"]
    assert assembled._one_call is not None, "this JAX has another call: leat._arrays.assembling stays slow"
    for step, batch in enumerate(it, 1):
        image = batch["image"]
        assert (image.aval, image.sharding) == (first.aval, first.sharding)
        for shard in image.addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), expected[step][shard.index])

    def refuse(*_):
        raise TypeError("another signature")

    monkeypatch.setattr("leat._arrays.assembling._batched_device_put", refuse)
    for step, batch in enumerate(leat.jax.batches(job, sharding=sharding)):
        np.testing.assert_array_equal(np.asarray(batch["image"]), expected[step])


def test_whole_numbers_of_64_bits_are_narrowed_as_jax_narrows_them():
    from leat._arrays import assembling as _assembling
    from leat._iterators import placement

    sharding = NamedSharding(Mesh(devices(), ("data",)), P("data"))
    _, placements = placement.place({"x": (2,)}, sharding, 16)
    assembling = _assembling.Assembling(placements["x"])
    for step in range(3):
        host = np.arange(32, dtype=np.int64).reshape(16, 2) + step
        placed = assembling(host)
        assert placed.dtype == jax.device_put(host).dtype
        np.testing.assert_array_equal(np.asarray(placed), host)
