# SPDX-License-Identifier: Apache-2.0
import ast
import pathlib
import socket
import subprocess
import sys

import pytest

pytest.importorskip("jax")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_each_process_pulls_the_rows_of_its_own_devices():
    script, port = pathlib.Path(__file__).with_name("two_processes.py"), free_port()
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(i), str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for i in range(2)
    ]
    rows = []
    for process in processes:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        rows.append(ast.literal_eval(out.strip().splitlines()[-1]))
    everything = [*range(16)]
    assert rows[0][0] == everything[:8] and rows[1][0] == everything[8:]
    assert rows[0][1] == rows[1][1] == everything  # both hold a replica of each row
    assert rows[0][2] == [0, 1, 4, 5, 8, 9, 12, 13] and rows[1][2] == [2, 3, 6, 7, 10, 11, 14, 15]
