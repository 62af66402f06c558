# SPDX-License-Identifier: Apache-2.0
"""Several JAX processes on one service: which process pulls which rows, and the results of a restart."""

import json
import pathlib
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from ports import free_port

import leat
from leat import fn
from leat._library import native

pytest.importorskip("jax")
sys.path.append(str(pathlib.Path(__file__).parents[2] / "e2e"))

import cluster  # noqa: E402

SAMPLES, BATCH, STEPS = 640, 64, 10
ROW_BYTES = 8 * 8 + 4
SCRIPT = pathlib.Path(__file__).with_name("several_processes.py")


@pytest.fixture
def folder(tmp_path):
    """Makes idx files of small pictures that can be told apart."""
    random = np.random.default_rng(7)
    labels = random.integers(0, 10, SAMPLES, np.uint8)
    images = random.integers(0, 64, (SAMPLES, 8, 8), np.uint8)
    images[np.arange(SAMPLES), labels % 8] += 128  # a bright row shows the class
    (tmp_path / "images").write_bytes(struct.pack(">4I", 0x803, SAMPLES, 8, 8) + images.tobytes())
    (tmp_path / "labels").write_bytes(struct.pack(">2I", 0x801, SAMPLES) + labels.tobytes())
    return tmp_path


@pytest.fixture
def address(tmp_path):
    def daemon(program, *flags):
        return cluster.Daemon(program, [str(native.folder / program), *flags], tmp_path / f"{program}.log")

    coordinator = daemon("leat-coordinator", "--listen", "127.0.0.1:0")
    worker = daemon("leat-worker", "--coordinator", coordinator.address, "--threads", "1")
    yield coordinator.address
    worker.close()
    coordinator.close()


@pytest.fixture
def job(address, folder):
    """Returns the job of several_processes.py."""

    @leat.pipeline
    def pictures():
        image, label = fn.readers.idx(f"{folder}/images", labels=f"{folder}/labels")
        return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}

    with leat.connect(address) as service:
        yield service.job("pictures", pictures(), batch=BATCH, seed=5)


class Trainers:
    """The processes of one start. They end with the test."""

    def __init__(self, mode, count, address, folder):
        port = str(free_port())
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), mode, str(i), str(count), port, address, str(folder)],
                stdout=subprocess.PIPE,
                stderr=(folder / f"{mode}{i}.err").open("ab"),
                text=True,
            )
            for i in range(count)
        ]
        self.errors = [folder / f"{mode}{i}.err" for i in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.communicate()

    def lines(self):
        """Returns the output lines of each process until it ends."""
        said = []
        for process, errors in zip(self.processes, self.errors):
            out, _ = process.communicate(timeout=240)
            assert process.returncode == 0, errors.read_text()[-3000:]
            said.append([json.loads(line) for line in out.splitlines() if line.startswith("{")])
        return said


def steps_of(lines):
    """Returns by (epoch, step): the loss, and the checksums of the rows of all processes."""
    result = {}
    for of_process in lines:
        for line in of_process:
            if "rows" in line:
                loss, rows = result.setdefault((line["epoch"], line["step"]), (line.get("loss"), {}))
                assert loss == line.get("loss") and not rows.keys() & line["rows"].keys()
                rows.update(line["rows"])
    return result


def expected_rows(job, epoch):
    result = {}
    with job.batches(start=(epoch, 0)) as batches:
        for batch in batches:
            rows = zip(batch["image"], batch["label"])
            checksums = {str(i): zlib.crc32(image.tobytes() + label.tobytes()) for i, (image, label) in enumerate(rows)}
            result[epoch, batches.step] = checksums
    return result


def test_a_training_that_was_killed_goes_on_bit_for_bit(address, folder, job, tmp_path):
    pytest.importorskip("orbax.checkpoint")
    with Trainers("train", 2, address, folder) as trainers:
        whole = steps_of(trainers.lines())
    assert {place: rows for place, (_, rows) in whole.items()} == {**expected_rows(job, 0), **expected_rows(job, 1)}
    assert float.fromhex(whole[1, 9][0]) < 0.8 * float.fromhex(whole[0, 0][0])
    (folder / "run").rename(folder / "run of the whole")

    first = []
    with Trainers("train", 2, address, folder) as trainers:
        for line in trainers.processes[1].stdout:
            first += [json.loads(line)] if line.startswith("{") else []
            # In the middle of an epoch; the step after a checkpoint is computed by processes that both have saved it.
            if {"saved": 12} in first[:-1]:
                break
        trainers.processes[1].kill()  # kill -9; the other one waits for it in a computation, and goes with it
    assert all(line["loss"] == whole[line["epoch"], line["step"]][0] for line in first if "loss" in line)
    with Trainers("train", 2, address, folder) as trainers:
        again = steps_of(trainers.lines())
    assert list(again) == [(1, step) for step in range(2, STEPS)]
    assert again == {place: whole[place] for place in again}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_accuracy_is_numpys_on_any_number_of_processes(address, folder, count):
    """640 pictures in batches of 72: the last one has 8 rows that must not count."""
    weights = np.random.default_rng(3).integers(-9, 10, (64, 10), np.int32)
    weights[:, :8] += 40 * np.repeat(np.eye(8, dtype=np.int32), 8, axis=0)  # finds the bright row
    np.save(folder / "weights.npy", weights)
    images = np.frombuffer((folder / "images").read_bytes()[16:], np.uint8).reshape(SAMPLES, 64)
    labels = np.frombuffer((folder / "labels").read_bytes()[8:], np.uint8)
    right = int(((images.astype(np.int32) @ weights).argmax(-1) == labels).sum())
    assert 0.5 * SAMPLES < right < SAMPLES
    with Trainers("evaluate", count, address, folder) as trainers:
        assert trainers.lines() == [[{"right": right, "of": SAMPLES, "steps": 9}]] * count


@pytest.mark.parametrize("count", [1, 2, 4])
def test_each_process_pulls_its_own_rows_and_no_others(address, folder, job, count):
    with job.batches(epochs=2) as batches:
        for _ in range(STEPS + 3):
            next(batches)
        (folder / "position").write_bytes(batches.position())  # from one process without JAX
    with Trainers("pull", count, address, folder) as trainers:
        lines = trainers.lines()
    steps = [[(line["epoch"], line["step"]) for line in of_process[:-1]] for of_process in lines]
    assert steps == [[(1, step) for step in range(3, STEPS)]] * count  # the same on each
    expected = expected_rows(job, 1)
    assert {place: rows for place, (_, rows) in steps_of(lines).items()} == {
        place: rows for place, rows in expected.items() if place in steps[0]
    }
    for i, of_process in enumerate(lines):
        own = {str(row) for row in range(i * BATCH // count, (i + 1) * BATCH // count)}
        assert all(line["rows"].keys() == own for line in of_process[:-1])
        # The window looks ahead, into the next epoch.
        asked = of_process[-1]["bytes"] / (ROW_BYTES * BATCH // count)
        assert len(steps[0]) <= asked <= len(steps[0]) + 5, asked
