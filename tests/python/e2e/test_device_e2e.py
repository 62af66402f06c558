# SPDX-License-Identifier: Apache-2.0
"""Batches in a GPU's memory over the real library and workers; the driver is the tests' own."""

import os
import pathlib
import subprocess
import sys

import pytest


def run(script, folder, **environment):
    fakes = pathlib.Path(os.environ["LEAT_NATIVE_DIR"]).parent / "fake_cuda"
    driver, nvjpeg = fakes / "libcuda.so.1", fakes / "libnvjpeg.so.13"
    if not (driver.exists() and nvjpeg.exists()):
        pytest.skip(f"no fake driver in {fakes}: it is built with the GPU worker's tests")
    return subprocess.run(
        [sys.executable, str(pathlib.Path(__file__).parent / script), str(folder)],
        env={
            **os.environ,
            "LEAT_CUDA_LIBRARY": str(driver),
            "LEAT_NVJPEG_LIBRARY": str(nvjpeg),
            **environment,
        },
        timeout=120,
        capture_output=True,
        text=True,
    )


def test_batches_are_in_the_devices_memory(folder):
    pytest.importorskip("jax")
    out = run("device_batches.py", folder)
    assert out.returncode == 0, out.stderr
    gpus, placed, received, steps = out.stdout.split()
    # With LEAT_TRANSPORT=cuda a row in the batch's memory is on the device; a late one may come twice, once as bytes.
    assert int(placed) > 0 or not int(gpus)
    # epilogue="device": one byte per element, and the labels.
    assert int(received) >= int(steps) * 16 * (3 * 16 * 20 + 4)
    assert int(received) < int(steps) * 16 * 2 * 3 * 16 * 20


def test_a_trainers_streams_and_graphs_never_see_another_batch(folder):
    out = run("torch_streams.py", folder)
    assert out.returncode == 0, out.stderr
    *scenes, without = (line.split(maxsplit=4) for line in out.stdout.splitlines())
    assert [scene[:4] for scene in scenes] == [
        ["second_stream", "copy", "0", "0"],
        ["one_stream", "copy", "0", "0"],
        ["one_stream", "view", "0", "0"],
        ["captured", "copy", "0", "0"],
        ["captured", "view", "0", "0"],
        ["captures_without_end", "copy", "0", "0"],
    ], out.stdout
    # Shows the purpose of the copy: without it the driver records violations.
    assert without[:2] == ["second_stream", "view"] and int(without[3]) > 0, out.stdout
