# SPDX-License-Identifier: Apache-2.0
"""The data that leat.ray and leat.dask pass to other nodes, and the worker below an engine's process."""

import concurrent.futures
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
import types

import leat
import pytest
from leat._engines import daemon


@pytest.fixture(autouse=True)
def no_service(monkeypatch):
    for name in ("COORDINATOR", "ACCESS_TOKEN", "ACCESS_TOKEN_FILE", "TLS_CA", "TLS_CERT", "TLS_KEY"):
        monkeypatch.delenv(f"LEAT_{name}", raising=False)


@pytest.mark.parametrize("name", ["COORDINATOR", "ACCESS_TOKEN", "ACCESS_TOKEN_FILE", "TLS_CA", "TLS_CERT", "TLS_KEY"])
def test_a_variable_that_is_empty_is_an_error_that_names_it(monkeypatch, name):
    monkeypatch.setenv("LEAT_COORDINATOR", "head:7411")
    monkeypatch.setenv(f"LEAT_{name}", "")
    with pytest.raises(leat.InvalidArgument, match=f"LEAT_{name} is set and empty; expected a value"):
        daemon.service(None)
    monkeypatch.delenv(f"LEAT_{name}")
    monkeypatch.setenv("LEAT_COORDINATOR", "")
    assert daemon.service("head:7411") == {"coordinator": "head:7411"}


def test_a_service_is_an_address_and_names_of_files(monkeypatch):
    monkeypatch.setenv("LEAT_TLS_CA", "/ca.pem")
    found = daemon.service("head:7411", access_token_file="/token", tls_cert="/tls/{host}.pem", tls_key=None)
    assert daemon.service_flags(found) == [
        *("--coordinator", "head:7411", "--access-token-file", "/token", "--tls-ca", "/ca.pem"),
        *("--tls-cert", f"/tls/{socket.gethostname()}.pem"),
    ]
    monkeypatch.setenv("LEAT_COORDINATOR", "other:1")
    assert daemon.service(None) == {"coordinator": "other:1", "tls_ca": "/ca.pem"}


def test_an_access_token_is_not_shown_to_the_engine(monkeypatch):
    monkeypatch.setenv("LEAT_ACCESS_TOKEN", "secret-secret-secret")
    with pytest.raises(leat.InvalidArgument, match="expected access_token_file") as caught:
        daemon.service("head:7411")
    assert "secret-" not in str(caught.value)
    assert "secret-secret-secret" not in daemon.service("head:7411", access_token_file="/token").values()


def test_a_missing_coordinator_is_named():
    with pytest.raises(leat.InvalidArgument, match="coordinator is missing; expected HOST:PORT, or LEAT_COORDINATOR"):
        daemon.service(None)


@pytest.fixture
def worker(monkeypatch, tmp_path):
    """Makes a stand-in for leat-worker, which ends with its lifeline and by SIGTERM, or as its first flag says."""
    path = tmp_path / "leat-worker"
    path.write_text(
        f"#!{sys.executable}\n"
        "import os, sys, time\n"
        "if sys.argv[1] == 'fails': sys.exit(3)\n"
        "if sys.argv[1] == 'stays':\n"
        "    import signal\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    print('deaf', flush=True)\n"
        "os.read(int(sys.argv[sys.argv.index('--lifeline-fd') + 1]), 1)\n"
    )
    path.chmod(0o755)
    monkeypatch.setattr(daemon, "program", lambda name: str(tmp_path / name))


def test_a_worker_that_fails_at_once_is_told_later(worker, monkeypatch):
    monkeypatch.setattr(daemon, "SHORTEST_LIFE_S", 0.5)
    start = time.monotonic()
    assert daemon.Daemon(["fails"]).wait() == 3
    assert time.monotonic() - start >= 0.5


def test_a_worker_drains_and_is_killed_if_it_does_not(worker, capfd):
    descriptors = len(os.listdir("/proc/self/fd"))
    assert daemon.Daemon(["waits"]).drain(10) == -signal.SIGTERM
    assert len(os.listdir("/proc/self/fd")) == descriptors
    deaf = daemon.Daemon(["stays"])
    while "deaf" not in capfd.readouterr().out:
        time.sleep(0.01)
    assert deaf.drain(0.2) == -signal.SIGKILL


def test_a_worker_ends_with_the_process_that_started_it(worker, tmp_path):
    script = (
        "import time, sys\nfrom leat._engines import daemon\n"
        f"daemon.program = lambda name: {str(tmp_path / 'leat-worker')!r}\n"
        "print(daemon.Daemon(['waits']).pid, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{child}"):
        # Its parent may not have reaped it: a zombie has ended, too.
        if open(f"/proc/{child}/stat").read().rpartition(")")[2].split()[0] == "Z":
            break
        assert time.monotonic() < end
        time.sleep(0.05)


class FakeRay(types.ModuleType):
    """The part of Ray that leat.ray uses, with actors that end at once, and one supervisor in this process."""

    def __init__(self):
        super().__init__("ray")
        self.started, self.killed = [], []
        self.supervisor = None
        self.util = types.SimpleNamespace(list_named_actors=lambda all_namespaces: [])

    def remote(self, actor):
        actor.options = lambda name, **_: types.SimpleNamespace(remote=lambda *_: self.start(name))
        return actor

    def start(self, name):
        self.started.append(name)

        def call():
            ended = concurrent.futures.Future()
            ended.set_exception(RuntimeError("the actor has died"))
            return types.SimpleNamespace(future=lambda: ended)

        return types.SimpleNamespace(pid=types.SimpleNamespace(remote=call), wait=types.SimpleNamespace(remote=call))

    def is_initialized(self):
        return True

    def get_actor(self, name, namespace):
        return types.SimpleNamespace(stop=types.SimpleNamespace(remote=self.supervisor.stop))

    def get(self, result):
        raise KeyboardInterrupt

    def kill(self, actor):
        self.killed.append(actor)


@pytest.fixture
def fake_ray(monkeypatch):
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    fake.module = importlib.import_module("leat.ray")
    yield fake
    del sys.modules["leat.ray"], leat.ray


def test_workers_that_end_by_themselves_are_started_one_by_one_after_pauses(fake_ray):
    pace, started, now = fake_ray.module._Pace(), [], 100.0
    assert (pace.take(16, now), pace.wait_s(now)) == (16, 0)
    while now < 400 and len(started) < 100:  # every worker ends at once
        pace.failed(now)
        pace.failed(now)
        now += pace.wait_s(now)
        started += [now] * pace.take(16, now)
    assert started[:6] == [101, 103, 107, 115, 131, 161] and len(started) < 16
    # All of them follow when none has ended for a minute.
    assert pace.take(15, now) == 0
    now += pace.wait_s(now)
    assert pace.take(15, now) == 15
    pace.failed(now)
    assert (pace.take(1, now), pace.wait_s(now)) == (0, 1)


def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_supervisor_does_not_start_what_fails_at_once_again_at_once_and_ends_its_watch(
    fake_ray, monkeypatch, tmp_path
):
    program = tmp_path / "leat"
    wish = '{"desired": 3, "max": 8, "reason": "rows"}'
    program.write_text(f"#!/bin/sh\ncase \"$*\" in *watch*) echo '{wish}'; exec sleep 600;; *) exit 1;; esac\n")
    program.chmod(0o755)
    monkeypatch.setattr(daemon, "program", lambda name: str(tmp_path / name))
    for bound in ("_MIN_PAUSE_S", "_MAX_PAUSE_S", "_STEADY_S"):
        monkeypatch.setattr(fake_ray.module, bound, 600.0)
    pool = fake_ray.module.Pool("cpu", max=8, coordinator="head:7411")
    supervisor = fake_ray.supervisor = fake_ray.module._Supervisor(pool._config)
    until(lambda: len(fake_ray.killed) == 3 and not supervisor.status()["workers"])
    assert len(fake_ray.started) == 3 and supervisor.status()["desired"] == 3
    # down() raises: an error of `leat pool set`, and one of Ray, whose actor is gone.
    watch = supervisor._watch
    with pytest.raises(KeyboardInterrupt):
        pool.down()
    assert watch.wait(10) == -signal.SIGTERM and len(fake_ray.killed) == 4
