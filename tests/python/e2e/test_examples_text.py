# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/examples that train on packed tokens and on captions, with JAX and with torch."""

import importlib.util
import re
import shutil

import pytest
from example_programs import finished, run, started
from ports import free_port

STEPS, STOP = 38, 25  # of two epochs of 19; STOP is in the middle of the second


def devices(count):
    return {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}


def steps_of(out):
    """Returns for each step its line up to the hash, and its loss."""
    return [(line, float(loss)) for line, loss in re.findall(r"^(epoch .*), loss (.*)$", out, re.M)]


def check_close(steps, expected):
    assert [line for line, _ in steps] == [line for line, _ in expected]
    assert [loss for _, loss in steps] == pytest.approx([loss for _, loss in expected], abs=1e-4)


@pytest.fixture(scope="module")
def jax_run(tmp_path_factory):
    """Returns the steps of a training, and a folder with the checkpoint of one that was stopped."""
    pytest.importorskip("jax")
    whole = run("transformer_jax.py", str(tmp_path_factory.mktemp("whole")), **devices(4))
    folder = tmp_path_factory.mktemp("stopped")
    stopped = run("transformer_jax.py", str(folder), "--stop", str(STOP), **devices(4))
    assert stopped.splitlines() == whole.splitlines()[:STOP]
    return whole, folder


def test_a_transformer_in_jax_resumes_bit_for_bit_on_the_same_mesh(jax_run, tmp_path):
    whole, folder = jax_run
    steps = steps_of(whole)
    assert len(steps) == STEPS and steps[-1][1] < 0.4 * steps[0][1]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    assert run("transformer_jax.py", str(tmp_path), **devices(4)).splitlines() == whole.splitlines()[STOP:]


def test_a_transformer_in_jax_resumes_on_other_processes_and_devices(jax_run, tmp_path):
    import jax

    whole, folder = jax_run
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    if jax.__version_info__ < (0, 5):  # this JAX's CPU devices compute within one process only
        check_close(steps_of(run("transformer_jax.py", str(tmp_path), **devices(1))), steps_of(whole)[STOP:])
        return
    arguments = ("transformer_jax.py", str(tmp_path), "--hosts", f"127.0.0.1:{free_port()}", "2")
    first, second = [finished(each) for each in [started(*arguments, str(i), **devices(2)) for i in range(2)]]
    check_close(steps_of(first), steps_of(whole)[STOP:])
    assert not steps_of(second)


def test_chats_are_learned_from_the_answers(jax_run, tmp_path):
    out = run("chats_jax.py", str(tmp_path))
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+) of", out)]
    assert len(losses) == 6 and losses[-1] < 0.8 * losses[0] and "continues" not in out
    _, folder = jax_run
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    tuned = [float(loss) for loss in re.findall(r"loss ([\d.]+) of", run("chats_jax.py", str(tmp_path)))]
    assert tuned[0] != losses[0] and tuned[-1] < 0.8 * tuned[0]


def test_captions_find_their_images(tmp_path):
    pytest.importorskip("jax")
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", run("captions_jax.py", str(tmp_path), **devices(2)))]
    assert len(losses) == 6 and losses[-1] < 0.5 < losses[0]


def torch_run(folder, ranks, *arguments):
    """Returns the steps that a training prints; its processes are started as torchrun does."""
    group = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    processes = [
        started("transformer_torchrun.py", str(folder), *arguments, RANK=str(rank), OMP_NUM_THREADS="1", **group)
        for rank in range(ranks)
    ]
    first, *others = [finished(process) for process in processes]
    assert not any(others)
    return first


def test_a_transformer_in_torch_resumes_on_as_many_and_on_fewer_processes(request, tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or torch.cuda.is_available():
        pytest.skip("this torch has no torch.distributed, or would take GPUs")
    whole = torch_run(tmp_path / "whole", 2)
    steps = steps_of(whole)
    assert len(steps) == STEPS and steps[-1][1] < 0.5 * steps[0][1]
    if importlib.util.find_spec("jax"):
        in_jax = steps_of(request.getfixturevalue("jax_run")[0])
        assert [line for line, _ in steps] == [line for line, _ in in_jax], "the same batches"
    assert torch_run(tmp_path / "stopped", 2, "--stop", str(STOP)).splitlines() == whole.splitlines()[:STOP]
    shutil.copytree(tmp_path / "stopped", tmp_path / "one")
    assert torch_run(tmp_path / "stopped", 2).splitlines() == whole.splitlines()[STOP:]
    check_close(steps_of(torch_run(tmp_path / "one", 1)), steps[STOP:])
