# SPDX-License-Identifier: Apache-2.0
"""Options of a private service, and its log lines; tests/python/e2e/test_private.py tests who shares one."""

import sys
import types

import pytest

import leat
from leat._service import private

GIB = 2**30


def test_options_become_the_librarys():
    options = private.options(2, 3, "1.5GiB", ("/scratch", "200 GiB"), [1, 0])
    assert options == {
        "embedded_workers": 2,
        "embedded_threads": 3,
        "embedded_cache_bytes": 3 * GIB // 2,
        "embedded_disk_cache": "/scratch",
        "embedded_disk_cache_bytes": 200 * GIB,
        "embedded_devices": "1,0",
    }
    assert private.options(None, None, None, None, None) == {"embedded_devices": "none"}
    # 0 means none, as in `leat-worker --cache`: the library's own 0 is its default.
    assert private.options(None, None, 0, None, None)["embedded_cache_bytes"] == 1


@pytest.mark.parametrize(
    ("given", "text"), [(None, "none"), ("all", "all"), ("none", "none"), ([], "none"), (0, "0"), ((2, 5), "2,5")]
)
def test_devices(given, text):
    assert private.devices(given) == text


@pytest.mark.parametrize(("given", "text"), [("all", "all"), ("", "none"), ("0,3", "0,3")])
def test_devices_of_the_environment(monkeypatch, given, text):
    monkeypatch.setenv("LEAT_PRIVATE_DEVICES", given)
    assert private.devices(None) == text
    assert private.devices("none") == "none"


@pytest.mark.parametrize("wrong", ["gpu", "1,1", "-1", "64", "0,"])
def test_wrong_devices_of_the_environment_are_named(monkeypatch, wrong):
    monkeypatch.setenv("LEAT_PRIVATE_DEVICES", wrong)
    with pytest.raises(leat.InvalidArgument, match="LEAT_PRIVATE_DEVICES = .*expected"):
        leat.connect()


@pytest.mark.parametrize(
    "wrong",
    [
        {"cache": -1},
        {"cache": "8 gigs"},
        {"cache": "-1GiB"},
        {"cache": "9" * 30 + "GiB"},
        {"cache": 1.5},
        {"disk_cache": "/scratch"},
        {"disk_cache": ("/scratch",)},
        {"disk_cache": ("/scratch", "1MiB")},
        {"workers": 2, "disk_cache": ("/scratch", "64MiB")},
        {"devices": "gpu"},
        {"devices": [0, 0]},
        {"devices": [-1]},
        {"devices": 64},
        {"devices": 0.5},
        {"devices": True},
        {"workers": 65},
        {"threads": 1025},
    ],
)
def test_a_wrong_option_is_named_with_its_value(wrong):
    with pytest.raises(leat.InvalidArgument, match=f"{[*wrong][-1]} = .*expected"):
        leat.connect(**wrong)


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, None),
        ({"WORLD_SIZE": "16"}, None),
        ({"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}, None),
        ({"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "x", "LOCAL_WORLD_SIZE": ""}, None),
        ({"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, "torchrun started 16 processes"),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_NNODES": "1"}, None),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_NNODES": "2"}, None),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_NNODES": "2"}, "Slurm started 16 processes on 2 machines"),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_NNODES": "2", "SLURM_STEP_NUM_NODES": "1"}, None),
    ],
)
def test_who_seems_to_run_on_several_machines(monkeypatch, environment, why):
    monkeypatch.delitem(sys.modules, "jax._src.distributed", raising=False)
    found = private.several_machines(environment)
    assert found is None if why is None else found.startswith(why)


@pytest.mark.parametrize(
    ("processes", "address", "several"),
    [(2, "10.0.0.1:1", True), (2, "127.0.0.1:1", False), (2, "localhost:1", False), (2, "[::1]:1", False),
     (1, "10.0.0.1:1", False), (None, None, False), ("2", 3, False)],
)
def test_a_process_of_jax_distributed(monkeypatch, processes, address, several):
    state = types.SimpleNamespace(num_processes=processes, coordinator_address=address)
    monkeypatch.setitem(sys.modules, "jax._src.distributed", types.SimpleNamespace(global_state=state))
    found = private.several_machines({})
    assert ("jax.distributed has 2 processes, whose coordinator is at 10.0.0.1:1" == found) if several else not found


def test_what_is_logged(monkeypatch, caplog):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    with caplog.at_level("INFO", "leat"):
        private.tell({"pid": 7, "started": True, "lessees": 1, "options": "workers=1"})
    info, warning = caplog.records
    assert (info.levelname, warning.levelname) == ("INFO", "WARNING")
    assert info.getMessage().startswith("started the private service of process 7 (workers=1), since")
    assert "set LEAT_COORDINATOR" in warning.getMessage()
    with caplog.at_level("INFO", "leat"):
        caplog.clear()
        private.tell(None)
    assert not caplog.records
