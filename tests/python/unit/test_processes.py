# SPDX-License-Identifier: Apache-2.0
import ast
import pathlib
import subprocess
import sys

import pytest
from ports import free_port

pytest.importorskip("jax")



@pytest.mark.parametrize("count", [2, 4])
def test_each_process_pulls_the_rows_of_its_own_devices(count):
    script, port = pathlib.Path(__file__).with_name("processes.py"), free_port()
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(i), str(count), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(count)
    ]
    rows = []
    for process in processes:
        out, error = process.communicate(timeout=240)
        assert process.returncode == 0, error
        rows.append(ast.literal_eval(out.strip().splitlines()[-1]))
    each = 16 // count
    everything = [*range(16)]
    for i, (in_order, interleaved, alternate) in enumerate(rows):
        assert in_order == everything[each * i : each * (i + 1)]
        assert interleaved == everything  # each process holds a replica of each row
        assert alternate == [row for row in everything if row // 2 % count == i]


def test_a_jax_function_exchanges_rows_between_processes():
    script, port = pathlib.Path(__file__).with_name("dali_processes.py"), free_port()
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(script), str(i), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    rows = []
    for process in processes:
        out, error = process.communicate(timeout=240)
        assert process.returncode == 0, error
        rows.append(ast.literal_eval(out.strip().splitlines()[-1]))
    assert rows == [[[0, 7, 2, 9], [4, 11, 6, 1], [8, 3, 10, 5]], [[6, 1, 8, 3], [10, 5, 0, 7], [2, 9, 4, 11]]]
