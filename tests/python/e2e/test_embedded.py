# SPDX-License-Identifier: Apache-2.0
import gc
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import children_of, daemons_of, digest, make_folder, train, wait_until_gone

import leat
from leat import fn


def test_an_epoch_has_every_batch_once(job):
    labels = []
    for batch in job.batches():
        assert batch["image"].shape == (16, 16, 16, 3) and batch["image"].dtype == np.uint8
        assert batch["image"].ctypes.data % 64 == 0 and batch["label"].ctypes.data % 64 == 0
        labels += batch["label"].tolist()
    assert len(labels) == len(job) * 16 == 96
    assert set(labels) <= {0, 1, 2, 3}


def test_epochs_and_seeds_differ_and_repeat(service, job, folder):
    first = [digest(batch) for batch in job.batches(epochs=2)]
    assert [digest(batch) for batch in job.batches(epochs=2)] == first
    assert len(set(first)) == len(first)
    other = service.job("seed8", train(folder), batch=16, seed=8)
    assert digest(next(other.batches())) != first[0]


def test_photos_are_the_same_bytes_for_any_workers_threads_and_hosts(photos):
    def hashes(rows=None, **options):
        with leat.connect(**options) as service:
            job = service.job("photos", train(photos, size=64), batch=64, seed=3)
            assert job.num_samples == 500 and len(job.classes) > 100
            return job.plan_hash, [batch["image"].copy() for batch in job.batches(rows=rows)]

    plan, one = hashes()
    same_plan, two = hashes(workers=2, threads=1)
    assert plan == same_plan and len(one) == 7
    for a, b in zip(one, two):
        np.testing.assert_array_equal(a, b)
    _, part = hashes(rows=[40, 3])
    for a, b in zip(one, part):
        np.testing.assert_array_equal(a[[40, 3]], b)


def test_a_position_goes_on_in_a_new_service(job, folder):
    it = job.batches(epochs=2)
    expected = [digest(batch) for batch in job.batches(epochs=2)]
    for _ in range(8):
        next(it)
    position = it.position()
    assert 0 < len(position) < 1024
    with leat.connect(workers=2) as other:
        again = other.job("tiny", train(folder), batch=16, seed=7)
        assert [digest(batch) for batch in again.batches(epochs=1, position=position)] == expected[8:]
        assert [digest(batch) for batch in again.batches(position=position)] == expected[8:]


def test_ctrl_c_while_a_batch_is_waited_for_loses_none(job):
    expected = [digest(batch) for batch in job.batches(epochs=10)]
    it, got = job.batches(epochs=10), []
    random = np.random.default_rng(5)
    armed = False

    def interrupt(*_):
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while len(got) < len(expected):
            kept = []
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 3e-3))
                for batch in it:
                    kept.append(batch)
                armed = False
            except KeyboardInterrupt:
                pass
            got += [digest(batch) for batch in kept]
            if len(got) % 3 == 0:  # continues in another iterator, by the interrupted one's position
                it.close()
                position, it = it.position(), job.batches(epochs=10)
                it.set_state(position)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert got == expected


def test_a_position_of_another_job_is_refused(service, job, folder):
    other = service.job("other", train(folder), batch=8)
    with pytest.raises(leat.InvalidArgument, match="position"):
        job.batches(position=other.batches().position())
    with pytest.raises(leat.InvalidArgument, match="position"):
        job.batches(position=b"garbage")


def test_whole_numbers_keep_64_bits(service, folder):
    @leat.pipeline
    def labels():
        label = fn.readers.image_folder(folder)[1]
        return {"label": label, "far": label + (2**60 + 1), "negative": label * (-(2**59) - 3)}

    batch = next(service.job("wide", labels, batch=100, shuffle=False).batches())
    label = batch["label"].astype(np.int64)
    assert len(set(label.tolist())) == 4
    np.testing.assert_array_equal(batch["far"], label + (2**60 + 1))
    np.testing.assert_array_equal(batch["negative"], label * (-(2**59) - 3))


def test_a_job_is_replaced_on_request(service, folder):
    first = service.job("cell", train(folder), batch=16)
    with pytest.raises(leat.AlreadyExists):
        service.job("cell", train(folder), batch=20)
    second = service.job("cell", pickle.loads(pickle.dumps(train(folder))), batch=20, replace=True)
    assert (second.batch, service.job("cell").batch) == (20, 20)
    assert service.job("cell", train(folder), batch=20, replace=True).plan_hash == second.plan_hash != first.plan_hash
    assert len(next(second.batches())["label"]) == 20
    again = service.job("graph", leat.Pipeline.from_dict(train(folder).to_dict()), batch=20)
    assert again.plan_hash == second.plan_hash


def test_samples_of_rows_without_one(service, folder):
    for last_batch, expected in (("mask", [*range(96, 100)] + [-1] * 20), ("partial", [*range(96, 100)])):
        job = service.job(f"samples-{last_batch}", train(folder), batch=24, shuffle=False, last_batch=last_batch)
        it = job.batches(start=(0, 4))
        batch = next(it)
        assert it.samples().tolist() == expected and len(batch["label"]) == len(expected)
        assert job.samples(0, 4, rows=[0, 3, 4]).tolist() == [96, 99, -1]
    with pytest.raises(leat.OutOfRange, match="step 5: job .* has 5 steps an epoch"):
        job.samples(0, 5)


def test_one_sample_is_the_row_of_epoch_0(job):
    it = job.batches()
    samples = it.samples(0, 0)
    batch = next(it)
    one = job.sample(int(samples[5]))
    np.testing.assert_array_equal(one["image"], batch["image"][5])
    assert one["label"] == batch["label"][5]


def test_the_same_spec_attaches_and_another_is_told_what_differs(service, job, folder):
    assert service.job("tiny", train(folder), batch=16, seed=7).plan_hash == job.plan_hash
    assert service.job("tiny").plan_hash == job.plan_hash
    with pytest.raises(leat.AlreadyExists, match="seed"):
        service.job("tiny", train(folder), batch=16, seed=8)
    with pytest.raises(leat.NotFound, match="nobody"):
        service.job("nobody")


@pytest.mark.parametrize(
    ("last_batch", "steps", "rows"),
    [("drop", 6, 16), ("fill", 7, 16), ("pad", 7, 16), ("mask", 7, 16), ("partial", 7, 4)],
)
def test_last_batches(service, folder, last_batch, steps, rows):
    job = service.job(f"last-{last_batch}", train(folder), batch=16, shuffle=False, last_batch=last_batch)
    batches = list(job.batches())
    assert len(job) == len(batches) == steps
    assert len(batches[-1]["label"]) == rows


@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_a_mask_makes_sums_over_hosts_exact(service, folder, hosts):
    job = service.job("mask", train(folder), batch=24, shuffle=False, last_batch="mask")
    rows = np.array_split(np.arange(24), hosts)
    of_hosts = [list(job.batches(rows=each.tolist())) for each in rows]
    assert {len(batches) for batches in of_hosts} == {len(job)} == {5}
    label = np.concatenate([[batch["label"] for batch in batches] for batches in of_hosts], axis=1).ravel()
    valid = np.concatenate([[batch["valid"] for batch in batches] for batches in of_hosts], axis=1).ravel()
    assert valid.dtype == bool and valid.tolist() == [True] * 100 + [False] * 20
    whole = service.job("whole", train(folder), batch=100, shuffle=False)
    np.testing.assert_array_equal(label[valid], next(whole.batches())["label"])
    pad = list(service.job("pad", train(folder), batch=24, shuffle=False, last_batch="pad").batches())
    last = np.concatenate([batches[-1]["image"] for batches in of_hosts])
    np.testing.assert_array_equal(last, pad[-1]["image"])


def test_a_mask_needs_its_name_for_itself(service, folder):
    @leat.pipeline
    def named():
        encoded, label = fn.readers.image_folder(folder)
        return {"image": fn.resize(fn.decode(encoded), size=(8, 8)), "valid": label}

    with pytest.raises(leat.InvalidArgument, match='output "valid": want another name, as last_batch "mask" adds'):
        service.job("named", named(), batch=16, last_batch="mask")


def test_bad_paths_and_pipelines_are_told_at_the_caller(service, tmp_path):
    with pytest.raises(leat.Error, match="absent"):
        service.job("absent", train(tmp_path / "absent"), batch=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(leat.Error, match="empty"):
        service.job("empty", train(tmp_path / "empty"), batch=1)
    with pytest.raises(leat.InvalidArgument, match=f"(?s)differs from.*output 'output' is fn.decode at {__file__}"):
        leat.pipeline(lambda: fn.decode(fn.readers.image_folder(tmp_path)[0]))


def test_a_batch_larger_than_the_dataset_is_refused(service, folder):
    with pytest.raises(leat.InvalidArgument, match="101"):
        service.job("large", train(folder), batch=101)


@pytest.mark.parametrize("policy", ["fail", "replace", "zero"])
def test_a_damaged_file_follows_the_policy(service, tmp_path, policy):
    make_folder(tmp_path / policy, 20)
    (tmp_path / policy / "class1" / "0007.jpg").write_text("no picture")
    job = service.job(f"bad-{policy}", train(tmp_path / policy), batch=20, shuffle=False, on_bad_sample=policy)
    if policy == "fail":
        with pytest.raises(leat.Error, match="0007.jpg"):
            next(job.batches())
        return
    batch = next(job.batches())
    if policy == "zero":
        assert batch["valid"].tolist() == [i != 7 for i in range(20)]
        assert not batch["image"][7].any()
    assert batch["image"][6].any()


def test_arrays_kept_alive_do_not_change(job):
    it = job.batches(epochs=40)
    kept = [next(it) for _ in range(30)]
    hashes = [digest(batch) for batch in kept]
    for _ in it:
        pass
    assert [digest(batch) for batch in kept] == hashes


def test_memory_is_used_again(job):
    it = job.batches(epochs=60)
    for _ in range(40):
        next(it)
    addresses = {next(it)["image"].ctypes.data for _ in range(300)}
    assert len(addresses) <= 16


def test_a_private_service_ends_with_the_last_that_uses_it(folder):
    service = leat.connect(threads=1)
    started = [service.get("private")["pid"], *daemons_of(service)]
    assert len(started) == 3
    it = service.job("a", train(folder), batch=10).batches()
    batch = next(it)
    hashed = digest(batch)
    service.close()
    it.close()
    del it, service
    gc.collect()
    assert digest(batch) == hashed
    del batch
    assert wait_until_gone(started)


SCRIPT = """
import sys, time, leat
start = time.monotonic()
service = leat.connect(workers=2)
print(time.monotonic() - start, service.get("private")["pid"], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("kill", [True, False])
def test_daemons_die_with_the_script(kill):
    script = subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    seconds, supervisor = script.stdout.readline().split()
    assert float(seconds) < 10
    started = [int(supervisor), *children_of(int(supervisor))]
    assert len(started) == 4
    script.send_signal(signal.SIGKILL) if kill else script.stdin.close()
    script.wait(10)
    assert wait_until_gone(started)


def test_the_private_service_starts_within_a_second():
    def seconds(threads):
        start = time.monotonic()
        leat.connect(threads=threads).close()
        return time.monotonic() - start

    assert min(map(seconds, range(11, 16))) < 1


def test_no_coordinator_at_the_address():
    with pytest.raises(ConnectionError, match="127.0.0.1:1"):
        leat.connect("127.0.0.1:1", timeout=1)


def test_operators_view(service, job, folder):
    next(job.batches())
    assert "tiny" in str(service.get("jobs"))
    assert "embedded-0" in str(service.get("workers"))
    service.job("short-lived", train(folder), batch=2)
    service.delete_job("short-lived")
    with pytest.raises(leat.NotFound):
        service.delete_job("short-lived")
