# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/examples about the rows of a job: the same ones on any number of hosts."""

import pathlib
import shutil

import numpy as np
from example_programs import few, numbers, run, started  # noqa: F401


def test_token_files_give_the_same_losses_on_other_hosts(tmp_path):
    lines = run("tokens.py", str(tmp_path)).splitlines()
    assert run("tokens.py", str(tmp_path), "--hosts", "4").splitlines() == lines
    losses = numbers(r"loss ([\d.]+)", "\n".join(lines))
    # Three tokens may follow each one: the loss goes to the logarithm of 3.
    assert len(losses) == 3 and 1.098 < losses[2] < 1.3 < losses[0] < 4


def test_packed_rows_are_the_same_on_other_hosts_and_from_the_middle(tmp_path):
    whole = run("packing.py", str(tmp_path)).splitlines()
    assert len(whole) == 40
    assert np.mean(numbers(r"([\d.]+)% full", "\n".join(whole))) > 99
    assert run("packing.py", str(tmp_path), "--hosts", "4", "--from-step", "17").splitlines() == whole[17:]


def test_a_mixture_that_is_killed_goes_on_with_the_same_batches_on_one_host_and_on_four(few, tmp_path):
    folders = []
    for number, classes in enumerate(np.array_split(sorted(pathlib.Path(few).iterdir()), 3)):
        folders.append(str(tmp_path / str(number)))
        for folder in classes:
            shutil.copytree(folder, pathlib.Path(folders[-1]) / folder.name)
    killed = started("mixture.py", *folders, PYTHONUNBUFFERED="1")
    before = [killed.stdout.readline().rstrip() for _ in range(170)]
    killed.kill()
    killed.communicate()
    after = run("mixture.py", *folders, "--from-step", "150").splitlines()
    assert before[150:] == after[:20], "the batches that it had when it was killed"
    assert before[0].startswith("step 0: ")
    assert run("mixture.py", *folders, "--hosts", "4", "--from-step", "150").splitlines() == after
    rows = [int(number) for number in after[70].split("rows ")[1].split()]
    assert sum(rows) == 256 and abs(rows[2] - 0.4 * 256) <= 4, "the shares from step 200 on"


def test_a_subset_has_the_same_batches_on_other_hosts(few):
    whole = run("subset.py", few)
    assert run("subset.py", few, "--hosts", "4") == whole
    (train, steps), (test, _) = [numbers(r"\d+", line)[:3:2] for line in whole.splitlines()]
    assert 0 < train <= 4 * test and steps == train // 8
    named = run("subset.py", few, "--where", 'name like "*1.jpg"')
    assert 0 < numbers(r"\d+", named)[0] < train


def test_classes_in_balance_are_the_same_on_other_hosts():
    whole = run("balance.py").splitlines()
    assert run("balance.py", "--hosts", "4", "--from-step", "5").splitlines() == whole[5:]
    rows = [[int(number) for number in line.split("rows ")[1].split()] for line in whole if "rows " in line]
    assert len(rows) == 10
    assert whole[-1] == "emu: pass 16, 0% of it done"  # 80 of 240 rows, of 5 samples
    for step in range(10):
        for so_far in np.sum(rows[: step + 1], axis=0):
            assert abs(so_far - 8 * (step + 1)) <= 1.68


def test_weights_by_a_column_and_of_samples_are_the_same_on_other_hosts():
    whole = run("weigh.py")
    assert run("weigh.py", "--hosts", "4") == whole
    column, samples = [[int(number) for number in line.split("rows ")[1].split(",")[0].split()]
                       for line in whole.splitlines()]
    assert np.max(np.abs(np.subtract(column, [60, 60, 120]))) <= 1.68
    shares = np.sqrt([90, 20, 5])  # a class has its samples times their weight
    assert np.max(np.abs(np.subtract(samples, 240 * shares / np.sum(shares)))) <= 1.68
