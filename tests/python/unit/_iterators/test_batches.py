# SPDX-License-Identifier: Apache-2.0
import gc
import pickle
import threading
import time
import weakref

import numpy as np
import pytest

import leat


def expected_image(sample, epoch=0):
    return (7 * sample + np.arange(8 * 8 * 3) + epoch).astype(np.uint8).reshape(8, 8, 3)


def test_every_batch_comes_once_and_in_order(job):
    batches = list(job.batches(epochs=2))
    assert len(batches) == 20
    assert np.concatenate([batch["label"] for batch in batches]).tolist() == [*range(100)] * 2
    for i, batch in enumerate(batches):
        assert batch["image"].dtype == np.uint8 and batch["image"].shape == (10, 8, 8, 3)
        np.testing.assert_array_equal(batch["image"][3], expected_image(i % 10 * 10 + 3, i // 10))


@pytest.mark.parametrize("rows", [range(2, 5), slice(2, 5), [2, 3, 4], np.array([2, 3, 4]), slice(-8, -5)])
def test_part_of_the_rows(job, rows):
    assert next(job.batches(rows=rows))["label"].tolist() == [2, 3, 4]


@pytest.mark.parametrize("rows", [[], [10], [-1], [1, 1], 3, "all", [1.5], range(5, 5), [[1]], slice(20, 30)])
def test_wrong_rows_are_refused(job, rows):
    with pytest.raises(leat.InvalidArgument, match="rows"):
        job.batches(rows=rows)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": -1},
        {"epochs": 1.5},
        {"window": 0},
        {"window": 65},
        {"row_timeout": 0},
        {"position": "text"},
        {"position": b""},
        {"position": b"x"},
        {"start": 3},
        {"start": (1, 2, 3)},
        {"start": (-1, 0)},
        {"start": (0, 1.5)},
    ],
)
def test_wrong_options_are_refused(job, wrong):
    with pytest.raises(leat.InvalidArgument):
        job.batches(**wrong)


def test_a_position_goes_on_at_the_very_next_batch(job):
    it = job.batches(epochs=3)
    for _ in range(13):
        next(it)
    assert (it.epoch, it.step) == (1, 2)
    rest = [int(batch["label"][0]) for batch in job.batches(epochs=2, position=it.position())]
    assert rest == [*range(30, 100, 10), *range(0, 100, 10)]
    assert rest == [int(batch["label"][0]) for batch in it]


def test_without_epochs_a_position_gives_the_rest_of_its_epoch(job):
    it = job.batches(epochs=0)
    for _ in range(13):
        next(it)
    resumed = job.batches(position=it.position())
    assert len(list(resumed)) == 7
    assert (resumed.epoch, resumed.step) == (1, 9)
    assert len(list(job.batches(position=resumed.position()))) == 10


def test_a_position_says_which_batch_comes_next(job):
    it = job.batches(epochs=3)
    assert job.step_of(it.position()) == (0, 0)
    for step in [*((0, number) for number in range(1, 10)), (1, 0), (1, 1)]:
        next(it)
        assert job.step_of(it.position()) == step
    for wrong, text in ((b"", "position is empty"), ("text", "position is str"), (b"nonsense", "another job")):
        with pytest.raises(leat.InvalidArgument, match=text):
            job.step_of(wrong)


@pytest.mark.parametrize(("epochs", "steps"), [(None, 7), (1, 7), (2, 17)])
def test_an_iterator_starts_where_it_is_told(job, epochs, steps):
    it = job.batches(epochs, start=(1, 3))
    assert int(next(it)["label"][0]) == 30
    assert (it.epoch, it.step) == (1, 3)
    assert len(list(it)) == steps - 1


def test_samples_names_the_rows(job):
    it = job.batches(rows=[7, 1])
    np.testing.assert_array_equal(it.samples(0, 2), [27, 21])
    assert job.batches().samples(5, 0).tolist() == [*range(10)] == job.samples(5, 0).tolist()
    with pytest.raises(leat.FailedPrecondition, match="no batch has been handed out"):
        it.samples()
    for batch in it:
        assert it.samples().tolist() == batch["label"].tolist() and it.samples().dtype == np.int64
    it.close()
    assert it.samples().tolist() == [97, 91] and it.samples(3, 1).tolist() == [17, 11]
    with pytest.raises(leat.InvalidArgument, match="epoch = 3, step = None; expected both"):
        it.samples(3)
    with pytest.raises(leat.OutOfRange):
        job.samples(0, 10)


def test_an_iterator_has_a_length_unless_it_is_without_end(job):
    assert len(job.batches()) == 10 and len(job.batches(3, start=(7, 4))) == 26
    it = job.batches(2)
    for _ in range(13):
        next(it)
    assert len(it) == 20 and len(job.batches(position=it.position())) == 7
    it.set_state(it.position())
    assert len(it) == 7 == len(list(it))
    it.set_state(it.position())
    assert len(it) == 0 and it  # true all the same
    endless = job.batches(0)
    with pytest.raises(TypeError, match="no length: it was opened with epochs=0"):
        len(endless)
    assert endless and next(zip(endless, range(1)))[1] == 0


def test_a_buffer_goes_back_only_when_nothing_sees_it(fake, job):
    before = fake.live()
    it = job.batches(epochs=100)
    batch = next(it)
    views = {
        "slice": batch["image"][2:4, ::2],
        "reshaped": batch["image"].reshape(10, -1)[:, 3:],
        "memoryview": memoryview(batch["image"]),
        "cast": batch["image"].view(np.int8),
        "label only": batch["label"][1:],
        "dlpack": np.from_dlpack(batch["image"]),
    }
    expected = {name: bytes(np.ascontiguousarray(view)) for name, view in views.items()}
    del batch
    for name in list(views):
        for _ in range(20):
            next(it)
        for other, view in views.items():
            assert bytes(np.ascontiguousarray(view)) == expected[other], other
        assert fake.live() == before + 1, name
        del views[name]
        view = None
    assert fake.live() == before


def test_buffers_are_used_again(fake, job):
    for _ in job.batches(epochs=1):
        pass
    made = fake.made()
    for _ in job.batches(epochs=20):
        pass
    assert fake.made() <= made + 1


def test_arrays_outlive_iterator_job_and_service(fake, graph):
    service = leat.connect()
    job = service.job("a", graph.images, batch=10)
    it = job.batches()
    batch = next(it)
    it.close()
    service.close()
    del it, job, service
    gc.collect()
    np.testing.assert_array_equal(batch["image"][9], expected_image(9))


def test_arrays_may_be_written_and_kept(job):
    it = job.batches()
    first = next(it)
    first["image"][...] = 1
    second = next(it)
    assert first["image"].flags.writeable and (first["image"] == 1).all()
    np.testing.assert_array_equal(second["image"][0], expected_image(10))


def test_pickling_copies(fake, job):
    before = fake.live()
    batch = next(job.batches())
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(batch, protocol))
        np.testing.assert_array_equal(copy["image"], batch["image"])
    del batch
    assert fake.live() == before
    np.testing.assert_array_equal(copy["image"][1], expected_image(1))


def test_a_reference_cycle_is_no_leak(fake, job):
    before = fake.live()
    batch = next(job.batches())
    batch["self"] = batch
    del batch
    assert fake.live() == before


def test_many_threads_drop_and_keep_batches(fake, job):
    before = fake.live()
    wrong = []

    def consume():
        kept = []
        for step, batch in enumerate(job.batches(epochs=20)):
            if step % 7 == 0:
                kept.append((step, batch["image"][::3]))
        for step, image in kept:
            if not np.array_equal(image[1], expected_image(step % 10 * 10 + 3, step // 10)):
                wrong.append(step)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert fake.live() == before


def test_the_gil_is_free_while_waiting(fake, job):
    fake.set_delay(0.5)
    it = job.batches()
    thread = threading.Thread(target=lambda: next(it))
    count = 0
    thread.start()
    while thread.is_alive():
        count += 1
        time.sleep(0.001)
    assert count > 50


def test_close_wakes_a_waiting_thread_and_ends_the_loop(fake, job):
    fake.set_delay(60)
    it = job.batches()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(list(it)))
    thread.start()
    it.close()
    thread.join(10)
    assert seen == [[]]
    it.close()
    assert list(it) == []
    with pytest.raises(leat.FailedPrecondition, match="no batch has been handed out"):
        it.samples()


def test_a_closed_iterator_knows_where_the_consumer_is(job):
    with job.batches() as it:
        next(it), next(it)
        position = it.position()
    assert it.position() == position
    assert next(job.batches(position=position))["label"][0] == 20


def test_closing_from_many_threads_at_once(fake, job):
    fake.set_delay(60)
    for _ in range(20):
        it = job.batches()
        threads = [threading.Thread(target=it.close) for _ in range(4)]
        threads.append(threading.Thread(target=lambda it=it: list(it)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()


def test_a_loop_may_close_its_own_iterator(job):
    it = job.batches(epochs=0)
    steps = 0
    for _ in it:
        steps += 1
        if steps == 3:
            it.close()
    assert steps == 3
    with job.batches() as it:
        next(it)
    assert "closed" in repr(it)


def test_waiting_with_a_timeout_loses_nothing(fake, job):
    fake.set_delay(0.05)
    it = job.batches()
    with pytest.raises(TimeoutError):
        it.next(timeout=0)
    assert it.next(timeout=5)["label"][0] == 0
    assert next(it)["label"][0] == 10


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1"])
def test_a_timeout_that_is_none_is_refused(job, timeout):
    it = job.batches()
    with pytest.raises(leat.InvalidArgument, match="timeout = .*; expected seconds"):
        it.next(timeout=timeout)
    assert next(it)["label"][0] == 0


def test_a_long_wait_in_slices_is_one_wait(fake, job, monkeypatch):
    monkeypatch.setattr("leat._library.threads.SLICE_S", 0.2)
    fake.set_delay(0.2)
    assert next(job.batches())["label"][0] == 0


def test_a_failure_is_raised_at_its_step(fake, job):
    fake.fail_at_step(2)
    it = job.batches()
    next(it), next(it)
    with pytest.raises(leat.DataLoss, match="cats/1.jpg: not a JPEG file"):
        next(it)


def test_progress_counts_on_from_a_position(job, capfd):
    pytest.importorskip("tqdm")
    it = job.batches(epochs=2, progress=True)
    for _ in range(15):
        next(it)
    it.close()
    for _ in job.batches(position=it_position(job, 15), progress=True):
        pass
    text = capfd.readouterr().err
    assert "15/20" in text and "20/20" in text and "img/s, stall 25%" in text


def test_progress_of_a_stream_has_no_end(service, graph, capfd):
    pytest.importorskip("tqdm")
    it = service.job("stream", graph.images, batch=10, last_batch="stream").batches(progress=True)
    next(it), next(it)
    it.close()
    text = capfd.readouterr().err
    assert "2step" in text and "/10" not in text and "/20" not in text


def it_position(job, steps):
    it = job.batches(epochs=0)
    for _ in range(steps):
        next(it)
    return it.position()


def test_stats_and_collection(job):
    it = job.batches()
    assert it.stats()["stall_fraction"] == 0.25
    alive = weakref.ref(it)
    del it
    gc.collect()
    assert alive() is None


def test_numpy_has_no_device_for_an_epilogue(job):
    with pytest.raises(leat.InvalidArgument, match="use leat.jax.batches or leat.torch.batches"):
        job.batches(epilogue="device")
    with pytest.raises(leat.InvalidArgument, match="epilogue = 'gpu'; expected 'worker' or 'device'"):
        job.batches(epilogue="gpu")
    assert next(job.batches(epilogue="worker"))["image"].shape == (10, 8, 8, 3)


def test_statistics_outlive_the_iterator(job):
    it = job.batches()
    before = it.stats()
    it.close()
    assert it.stats() == before


@pytest.mark.parametrize("epochs", [None, 2])
def test_a_state_is_gone_back_to(fake, job, epochs):
    before = fake.live()
    it = job.batches(epochs, rows=[3, 1])
    kept = next(it)["label"]
    state = it.get_state()
    assert state == it.position()
    rest = [batch["label"].tolist() for batch in it]
    for _ in range(2):
        it.set_state(state)
        assert it.get_state() == state and it.epoch is None
        assert [batch["label"].tolist() for batch in it] == rest
    it.set_state(state)
    next(it)
    with pytest.raises(leat.InvalidArgument, match="another job"):
        it.set_state(b"nonsense")
    assert [batch["label"].tolist() for batch in it] == rest[1:]  # where it was
    it.close()
    it.set_state(state)  # also after the end
    assert next(it)["label"].tolist() == rest[0] and kept.tolist() == [3, 1]
    del kept
    it.close()
    assert fake.live() == before


def test_the_epochs_of_an_iterator_stay_when_a_state_moves_it(job):
    it = job.batches(2, start=(3, 4))
    states = [it.position()]
    for _ in it:
        states.append(it.position())
    assert (it.epoch, it.step, len(states)) == (4, 9, 17)
    it.set_state(states[5])
    assert len(list(it)) == 11 and it.position() == states[-1]
    it.set_state(states[-1])  # the end: nothing follows, and nothing is wrong
    assert list(it) == [] and it.position() == states[-1] and (it.epoch, it.step) == (None, None)
    it.set_state(job.batches(start=(1, 8)).position())
    assert [int(batch["label"][0]) for batch in it][:3] == [80, 90, 0] and it.epoch == 4
    with pytest.raises(leat.InvalidArgument, match="at epoch 5 step 1; expected one before epoch 5.* for epochs 3 … 4"):
        it.set_state(job.batches(start=(5, 1)).position())


def test_a_state_goes_back_while_another_thread_waits(fake, job):
    it = job.batches(epochs=0)
    next(it)
    state = it.position()
    fake.set_delay(60)
    waiting = threading.Thread(target=it.next)
    waiting.start()
    it.set_state(state)  # ends that wait, without a batch; or it has not begun yet
    it.close()
    waiting.join()
    fake.set_delay(0)
    it.set_state(state)
    assert next(it)["label"].tolist() == [*range(10, 20)]
