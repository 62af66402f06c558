# SPDX-License-Identifier: Apache-2.0
"""Samples that this process supplies."""

import os
import pathlib
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import threads
from conftest import daemons_of, digest, train

import leat
from leat import fn

FEEDS = "leat._iterators.external"


def augmented(encoded, label, size=16):
    image = fn.random_resized_crop(fn.decode(encoded), size=size)
    image = fn.flip(image, horizontal=fn.coin_flip(0.5))
    return {"image": image, "label": label}


def photo_pipeline(source, num_samples=None, name="photos"):
    @leat.pipeline
    def pipeline():
        return augmented(*leat.external_source(source, ("encoded", "int32"), num_samples=num_samples, name=name))

    return pipeline


def array_pipeline(source, types="int32", **options):
    @leat.pipeline
    def pipeline():
        return {"x": leat.external_source(source, types, **options)}

    return pipeline


class Photos:
    """The files of a folder, as a sequence."""

    def __init__(self, folder):
        self.files = sorted(pathlib.Path(folder).rglob("*.jpg"))
        self.classes = sorted({file.parent for file in self.files})
        self.read = []

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        self.read.append(index)
        return self.files[index].read_bytes(), self.classes.index(self.files[index].parent)


def hashes(job, **options):
    return [digest(batch) for batch in job.batches(**options)]


def test_the_same_photos_give_the_same_batches_as_a_folder_of_them(service, job, folder):
    photos = Photos(folder)
    stored = hashes(job, epochs=2)
    brought = service.job("brought", photo_pipeline(photos), batch=16, seed=7)
    assert hashes(brought, epochs=2) == stored
    assert len(photos.read) == 2 * 96
    assert sorted(photos.read[:96]) == sorted(set(photos.read[:96]))
    assert set(brought.sample(5)) == {"image", "label"}
    np.testing.assert_array_equal(brought.sample(5)["image"], job.sample(5)["image"])
    assert brought.sample(-1)["label"] == 3


def test_hosts_bring_the_samples_of_their_own_rows(service, job, folder):
    whole = [batch["label"].copy() for batch in job.batches()]
    brought = service.job("two-hosts", photo_pipeline(Photos(folder), name="hosts"), batch=16, seed=7)
    for rows in (range(0, 8), range(8, 16)):
        photos = Photos(folder)
        it = brought.batches(rows=rows, source=photos)
        wanted = set()
        for step, batch in enumerate(it):
            np.testing.assert_array_equal(batch["label"], whole[step][rows.start : rows.stop])
            wanted |= {int(sample) for sample in it.samples(0, step)}
        assert set(photos.read) == wanted and len(photos.read) == 48


def test_a_killed_worker_changes_nothing(folder):
    def photo(index, photos=Photos(folder)):
        return photos[index]

    with leat.connect(workers=2, threads=1) as service:
        expected = hashes(service.job("stored", train(folder), batch=8, seed=3), epochs=4)
        brought = service.job("brought", photo_pipeline(photo, 100), batch=8, seed=3)
        workers = [pid for pid, program in daemons_of(service).items() if program == "leat-worker"]
        assert len(workers) == 2
        got = []
        for batch in brought.batches(epochs=4):
            got.append(digest(batch))
            if len(got) == 5:
                os.kill(workers[0], signal.SIGKILL)
        assert got == expected


def test_a_position_goes_on_with_another_source_of_the_same_data(service, folder):
    job = service.job("position", photo_pipeline(Photos(folder), name="position"), batch=16, seed=1)
    expected = hashes(job, epochs=2)
    it = job.batches(epochs=2)
    for _ in range(3):
        next(it)
    position = it.position()
    it.close()
    assert hashes(job, epochs=2 - job.step_of(position)[0], position=position, source=Photos(folder)) == expected[3:]


@pytest.mark.parametrize(
    ("types", "value"),
    [
        ("int32", lambda i: i),
        ("int64", lambda i: np.int64(i) << 40),
        ("float32", lambda i: i / 2),
        ("bool", lambda i: i % 2 == 0),
        ("float32[4]", lambda i: [i, 0.5, -1, 2]),
        (("uint8", (2, 3)), lambda i: np.full((2, 3), i, np.uint8)),
        ("float16[2]", lambda i: np.array([i, 1], np.float16)),
        ("uint8[3]", lambda i: (i, 1, 255)),
    ],
)
def test_values_come_back_as_they_were(service, types, value):
    job = service.job(
        f"values-{types if isinstance(types, str) else 'pair'}".replace("[", "-").replace("]", ""),
        array_pipeline(value, types, num_samples=10),
        batch=5,
        shuffle=False,
    )
    got = np.concatenate([batch["x"] for batch in job.batches()])
    np.testing.assert_array_equal(got, np.array([value(i) for i in range(10)], got.dtype))


def test_images_of_any_size_and_samples_larger_than_a_message(service):
    def image(index):
        return np.full((1 + index * 700, 2000, 3), index * 9, np.uint8)

    @leat.pipeline
    def pipeline():
        node = leat.external_source(image, ("uint8", (None, None, 3)), num_samples=6, name="sizes")
        return {"image": fn.resize(node, size=4)}

    job = service.job("sizes", pipeline, batch=3, shuffle=False)
    assert image(5).nbytes > 20 << 20
    for step, batch in enumerate(job.batches()):
        for row in range(3):
            assert (batch["image"][row] == (3 * step + row) * 9).all()


def test_a_function_of_the_epoch_too(service):
    job = service.job("epochs", array_pipeline(lambda epoch, i: 100 * epoch + i, num_samples=4), batch=4, shuffle=False)
    assert [batch["x"].tolist() for batch in job.batches(epochs=2)] == [[0, 1, 2, 3], [100, 101, 102, 103]]


def test_iterables_are_consumed_in_order_and_begin_anew(service):
    def numbers():
        yield from range(10)

    for name, source in (("generator", numbers), ("iterable", {i: None for i in range(10)}.keys())):
        job = service.job(
            name, array_pipeline(source, num_samples=10, name=name), batch=4, shuffle=False, last_batch="pad"
        )
        expected = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 9, 9]]
        assert [batch["x"].tolist() for batch in job.batches(epochs=2)] == expected * 2
        it = job.batches()
        next(it)
        assert [batch["x"].tolist() for batch in job.batches(position=it.position())] == expected[1:]


def test_an_iterator_is_good_for_one_epoch(service):
    job = service.job("once", array_pipeline(iter(range(8)), num_samples=8, name="once"), batch=4, shuffle=False)
    it = job.batches(epochs=2)
    assert [next(it)["x"].tolist() for _ in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(leat.FailedPrecondition, match="gives its samples once"):
        next(it)
    assert next(job.batches(source=iter(range(8))))["x"].tolist() == [0, 1, 2, 3]


def test_what_cannot_be_had_in_order_is_refused(service):
    def numbers():
        yield from range(10)

    shuffled = service.job("in-order", array_pipeline(numbers, num_samples=10, name="o"), batch=5)
    with pytest.raises(leat.InvalidArgument, match=r"in order only, but the job shuffles"):
        shuffled.batches()
    job = service.job("in-order-2", array_pipeline(numbers, num_samples=10, name="o"), batch=5, shuffle=False)
    with pytest.raises(leat.InvalidArgument, match="2 of 5 rows"):
        job.batches(rows=[0, 1])
    with pytest.raises(leat.InvalidArgument, match="one sample is wanted"):
        job.sample(3)
    filled = service.job(
        "in-order-3", array_pipeline(numbers, num_samples=10, name="o"), batch=4, shuffle=False, last_batch="fill"
    )
    with pytest.raises(leat.InvalidArgument, match="filled from the beginning"):
        filled.batches()
    short = service.job("short", array_pipeline(numbers, num_samples=12, name="s"), batch=4, shuffle=False)
    it = short.batches()
    next(it), next(it)
    with pytest.raises(leat.OutOfRange, match="ended after 10 samples; expected 12"):
        next(it)


def test_an_exception_of_the_source_is_the_iterators_at_its_step(service):
    def value(index):
        if index == 9:
            raise KeyError("page 9")
        return index

    job = service.job("raises", array_pipeline(value, num_samples=20, name="raises"), batch=4, shuffle=False)
    it = job.batches()
    assert [next(it)["x"].tolist() for _ in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(leat.Error, match=r"epoch 0 step 2: source \"raises\" sample 9: KeyError: 'page 9'") as raised:
        next(it)
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(leat.Error, match="sample 9"):
        next(it)
    with pytest.raises(KeyError):
        job.sample(9)


@pytest.mark.parametrize(
    ("types", "value", "text"),
    [
        ("int32", "7", "got str '7'; expected int32"),
        ("int32", 1 << 40, "expected int32"),
        ("int32", 0.5, "expected int32"),
        ("int32", np.zeros(1, np.int32), r"got int32 of shape \(1,\); expected int32"),
        ("float32[4]", np.zeros(4), r"got float64 of shape \(4,\); expected float32\[4\]"),
        ("uint8[2,2]", np.zeros((2, 3), np.uint8), r"expected uint8\[2,2\]"),
        (("encoded", "int32"), b"123", "expected a tuple of 2"),
        (("encoded", "int32"), (np.zeros(3), 1), "value 0: got float64 .* expected the bytes of an image"),
        (("encoded", "int32"), (b"", 1), "sample 0: field 0: 0 bytes|value 0: got"),
    ],
)
def test_a_value_of_another_type_names_sample_and_types(service, types, value, text):
    @leat.pipeline
    def pipeline():
        nodes = leat.external_source(lambda sample: value, types, num_samples=4, name="wrong")
        return {"x": nodes[1] if isinstance(nodes, tuple) else nodes}

    name = f"wrong-{abs(hash((str(types), text)))}"
    it = service.job(name, pipeline, batch=2, shuffle=False).batches()
    with pytest.raises(leat.InvalidArgument, match=f'source "wrong" sample 0: .*({text})'):
        next(it)


def test_bad_samples_follow_the_policy_and_substitutes_are_refused(service, folder):
    photos = Photos(folder)

    def photo(index):
        return (b"no image", 1) if index == 3 else photos[index]

    pipeline = photo_pipeline(photo, 100, name="bad")
    job = service.job("zeros", pipeline, batch=10, shuffle=False, on_bad_sample="zero")
    batch = next(job.batches())
    assert batch["valid"].tolist() == [i != 3 for i in range(10)]
    failing = service.job("fails", pipeline, batch=10, shuffle=False)
    with pytest.raises(leat.InvalidArgument, match='source "bad" sample 3'):
        next(failing.batches())
    with pytest.raises(leat.InvalidArgument, match="want fail or zero"):
        service.job("replaces", pipeline, batch=10, on_bad_sample="replace")


def test_a_consumer_without_a_source_is_told_so(service, job, folder):
    service.job("attached", photo_pipeline(Photos(folder), name="attached"), batch=16)
    attached = service.job("attached")
    with pytest.raises(leat.FailedPrecondition, match=r"100 samples 'attached' are in no storage.*source="):
        attached.batches()
    with pytest.raises(leat.FailedPrecondition, match="source="):
        attached.sample(0)
    assert next(attached.batches(source=Photos(folder)))["label"].shape == (16,)
    with pytest.raises(leat.InvalidArgument, match="source has 3 samples; expected 100"):
        attached.batches(source=[1, 2, 3])
    with pytest.raises(leat.InvalidArgument, match="read the samples of job 'tiny' themselves"):
        job.batches(source=Photos(folder))


def test_wrong_use_is_refused_when_the_pipeline_is_made():
    for source, types, options, text in (
        (7, "int32", {}, "source is int 7"),
        ({0: 1}, "int32", {}, "source is a mapping"),
        (lambda: 0, "int32", {}, "num_samples must be given"),
        ([1, 2], "int32", {"num_samples": 3}, "source has 2 samples; expected 3"),
        ([1, 2], "int33", {}, "no type"),
        ([1, 2], ("float64", (3,)), {}, "dtype float64"),
        ([1, 2], 7, {}, "types has 7"),
        ([1, 2], "int32", {"num_samples": 1.5}, "num_samples = 1.5"),
        ([1, 2], "int32", {"name": ""}, '"name" is empty'),
        (lambda a, b, c: 0, "int32", {"num_samples": 3}, "takes 3 arguments"),
    ):
        with pytest.raises(leat.InvalidArgument, match=text):
            array_pipeline(source, types, **options)


def test_the_source_works_ahead_by_the_window(service):
    read, ahead = [], threading.Event()

    def value(index):
        read.append(index)
        if len(read) == 30:
            ahead.set()
        return index

    job = service.job("ahead", array_pipeline(value, num_samples=1000, name="ahead"), batch=10, shuffle=False)
    it = job.batches(window=2)
    next(it)
    assert ahead.wait(60)
    assert len(read) <= 40


def test_closing_does_not_wait_for_the_source(service):
    entered, leave = threading.Event(), threading.Event()

    def value(index):
        entered.set()
        leave.wait()
        return index

    job = service.job("blocks", array_pipeline(value, num_samples=10, name="blocks"), batch=5)
    it = job.batches()
    assert entered.wait(30)
    with pytest.raises(leat.DeadlineExceeded):
        it.next(timeout=0.01)
    it.close()
    assert it.next() is None
    leave.set()


def test_an_iterator_that_is_dropped_ends_its_thread(service):
    threads.wait_until_ended(FEEDS)
    job = service.job("dropped", array_pipeline(lambda i: i, num_samples=1000, name="dropped"), batch=5)
    it = job.batches(epochs=0)
    next(it)
    assert threads.running(FEEDS)
    del it
    threads.wait_until_ended(FEEDS)


def test_a_script_may_end_in_the_middle():
    script = """
import leat, time
@leat.pipeline
def pipeline():
    return {"x": leat.external_source(lambda i: i, "int32", num_samples=10**6)}
service = leat.connect()
it = service.job("script", pipeline, batch=10).batches(epochs=0)
next(it)
blocked = service.job("blocked", pipeline, batch=10).batches(source=lambda i: time.sleep(1000))
print("done")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
