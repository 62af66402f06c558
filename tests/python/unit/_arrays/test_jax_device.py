# SPDX-License-Identifier: Apache-2.0
"""Batches in a GPU's memory, with a fake GPU: the memory is the host's, and JAX's device a CPU."""

import numpy as np
import pytest
from on_cpu import OnCpu

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402
from leat._arrays import jax_device  # noqa: E402
from leat._iterators import placement  # noqa: E402


def imported(tensor):
    """JAX treats host memory as the first CPU device's."""
    return jax.device_put(jax.dlpack.from_dlpack(OnCpu(tensor, stream=-1)), jax.devices()[tensor.device])


@pytest.fixture
def gpu(fake, monkeypatch):
    """Makes the CPU devices look like CUDA devices; returns a sharding of the second one."""
    fake.set_devices(8)
    monkeypatch.delenv("LEAT_TRANSPORT", raising=False)
    monkeypatch.setattr(jax_device, "_imported", imported)
    monkeypatch.setattr(jax_device, "cuda_number", lambda device: device.id)
    return SingleDeviceSharding(jax.devices()[1])


def devices(*order):
    return np.array(jax.devices())[list(order) or slice(None)]


SHARDINGS = [
    lambda: SingleDeviceSharding(jax.devices()[1]),
    lambda: NamedSharding(Mesh(devices(), ("data",)), P("data")),
    lambda: NamedSharding(Mesh(devices(5, 2, 7, 0, 1, 6, 3, 4), ("data",)), P("data")),
    lambda: NamedSharding(Mesh(devices(6, 1), ("data",)), P("data")),
]


@pytest.mark.parametrize("sharding_of", SHARDINGS)
@pytest.mark.parametrize("epilogue", ["worker", "device"])
@pytest.mark.parametrize("job_name", ["images", "floats"])
def test_batches_are_the_jobs_batches(service, graph, gpu, job_name, epilogue, sharding_of):
    job = service.job(job_name, graph.images, batch=16)
    sharding = sharding_of()
    it = leat.jax.batches(job, sharding=sharding, epochs=2, epilogue=epilogue)
    assert isinstance(it._place, jax_device.DevicesPlacing)
    steps = 0
    for got, expected in zip(it, job.batches(epochs=2)):
        for name, array in expected.items():
            assert got[name].shape == array.shape and got[name].sharding == sharding
            assert np.asarray(got[name]).tobytes() == array.tobytes()
        steps += 1
    assert steps == 2 * len(job)


def test_arrays_kept_alive_keep_no_buffer_and_never_change(fake, floats, gpu):
    before = fake.live()
    it = leat.jax.batches(floats, sharding=gpu, epochs=0, epilogue="device")
    kept = [next(it) for _ in range(30)]
    assert fake.live() - before <= jax_device._MAX_PENDING + 1
    for got, expected in zip(kept, floats.batches(epochs=5)):
        assert np.asarray(got["image"]).tobytes() == expected["image"].tobytes()
        assert np.asarray(got["label"]).tobytes() == expected["label"].tobytes()
    del expected
    it.close()
    del it
    jax.numpy.zeros(1).block_until_ready()
    assert fake.live() == before
    assert fake.last_stream() is None  # given back when nothing used it any more


def test_another_transport_is_not_the_devices(floats, gpu, monkeypatch):
    for transport in "grpc", "shm":
        monkeypatch.setenv("LEAT_TRANSPORT", transport)
        it = leat.jax.batches(floats, sharding=gpu)
        assert not isinstance(it._place, jax_device.DevicesPlacing)
        assert np.asarray(next(it)["image"]).tobytes() == next(floats.batches())["image"].tobytes()


def test_without_such_a_device_batches_come_through_host_memory(fake, floats, gpu, monkeypatch, caplog):
    fake.set_devices(1)  # but the sharding uses the second
    with caplog.at_level("INFO", logger="leat"):
        it = leat.jax.batches(floats, sharding=gpu)
    assert "come through host memory: no such CUDA device" in caplog.text
    assert not isinstance(it._place, jax_device.DevicesPlacing)
    next(it)
    monkeypatch.setenv("LEAT_TRANSPORT", "cuda")
    with pytest.raises(leat.FailedPrecondition, match="no such CUDA device"):
        leat.jax.batches(floats, sharding=gpu)


class Device:
    def __init__(self, platform, version, number=3):
        self.platform, self.local_hardware_id, self.id = platform, number, 7
        self.client = type("Client", (), {"platform_version": version})


@pytest.mark.parametrize(
    ("device", "number"),
    [
        (Device("gpu", "PJRT C API\ncuda 12090"), 3),
        (Device("cuda", "cuda 12050", None), 7),
        (Device("gpu", "PJRT C API\nrocm 60300"), None),
        (Device("cpu", "cpu"), None),
        (Device("tpu", "TFRT TPU v5"), None),
    ],
)
def test_only_cuda_devices_count(device, number):
    assert jax_device.cuda_number(device) == number


def test_rows_on_several_devices_are_computed_once(floats, gpu):
    replicated = NamedSharding(Mesh(devices().reshape(4, 2), ("data", "model")), P("data"))
    it = leat.jax.batches(floats, sharding=replicated)
    assert not isinstance(it._place, jax_device.DevicesPlacing)


def test_each_device_pulls_its_own_rows(floats, gpu):
    image, label = SHARDINGS[2](), NamedSharding(Mesh(devices(5, 2, 7, 0, 1, 6, 3, 4), ("data",)), P("data"))
    rows, placements = placement.place(
        {"image": (3, 8, 8), "label": ()}, {"image": image, "label": label}, floats.batch
    )
    shares = jax_device.shares(placements, rows)
    assert [share.number for share in shares] == [5, 2, 7, 0, 1, 6, 3, 4]
    assert [share.rows.tolist() for share in shares] == [[2 * i, 2 * i + 1] for i in range(8)]
    assert all(share.placements["image"].pieces[0].rows == slice(0, 2) for share in shares)


def test_devices_go_in_step(fake, floats, gpu):
    """They stay in step also if one has its batch and another has not yet."""
    it = leat.jax.batches(floats, sharding=SHARDINGS[1](), epochs=2, epilogue="device")
    first = it.position()
    next(it)
    fake.set_delay(0.01)
    for step in range(1, 5):
        got = next(it)
        assert (it.epoch, it.step) == (0, step)
        np.testing.assert_array_equal(np.asarray(got["label"]), np.arange(16 * step, 16 * step + 16))
    fake.set_delay(0)
    rest = leat.jax.batches(floats, sharding=SHARDINGS[0](), epochs=2, position=it.position())
    assert [int(batch["label"][0]) for batch in rest] == [int(batch["label"][0]) for batch in it]
    again = leat.jax.batches(floats, sharding=SHARDINGS[1](), position=first)
    assert int(next(again)["label"][0]) == 0
    assert again.stats()["rows_per_s"] == 8 * 1234.5


def test_one_device_that_is_not_there_closes_the_others(fake, floats, gpu):
    fake.set_devices(7)
    it = leat.jax.batches(floats, sharding=SHARDINGS[1]())
    assert not isinstance(it._place, jax_device.DevicesPlacing)
    assert int(next(it)["label"][3]) == 3


def test_progress_is_shown_once(floats, gpu, capsys):
    pytest.importorskip("tqdm")
    assert len([*leat.jax.batches(floats, sharding=SHARDINGS[1](), progress=True)]) == 6
    assert "6/6" in capsys.readouterr().err


def test_here_there_is_no_gpu(floats):
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("data",)), P("data"))
    it = leat.jax.batches(floats, sharding=sharding, epilogue="device")
    assert not isinstance(it._place, jax_device.DevicesPlacing)
