# SPDX-License-Identifier: Apache-2.0
"""One private service for all processes of a user that request the same one."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import children_of, daemons_of, digest, train, wait_until_gone

import leat
from leat._library import native

RANK = """
import json, sys
import leat
service = leat.connect()
print(json.dumps(service.get("private")), flush=True)
for line in sys.stdin:
    if line == "close\\n":
        service.close()
    print("done", flush=True)
"""


class Rank:
    """A process that connects, and waits for commands."""

    def __init__(self, name, **environment):
        self.process = subprocess.Popen(
            [sys.executable, "-c", RANK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, "LEAT_PRIVATE_NAME": f"{os.getpid()}-{name}", **environment},
        )

    def info(self):
        return json.loads(self.process.stdout.readline())

    def order(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def named(name):
    """Uses other services than those of other tests."""
    before = os.environ["LEAT_PRIVATE_NAME"]
    os.environ["LEAT_PRIVATE_NAME"] = f"{os.getpid()}-{name}"
    try:
        yield
    finally:
        os.environ["LEAT_PRIVATE_NAME"] = before


def test_eight_processes_share_one_which_outlives_the_first_and_ends_with_the_last():
    with contextlib.ExitStack() as stack:
        ranks = [stack.enter_context(Rank("eight")) for _ in range(8)]
        infos = [rank.info() for rank in ranks]
        (supervisor,) = {info["pid"] for info in infos}
        assert [info["started"] for info in infos].count(True) == 1
        assert sorted(info["lessees"] for info in infos) == list(range(1, 9))
        daemons = children_of(supervisor)
        assert sorted(daemons.values()) == ["leat-coordinator", "leat-worker"]
        first = [info["started"] for info in infos].index(True)
        last = (first + 1) % 8
        ranks[first].process.send_signal(signal.SIGKILL)
        ranks[first].process.wait(20)
        for index, rank in enumerate(ranks):
            if index not in (first, last):
                rank.order("close")
        # One process is left: its calls are answered, and new processes join.
        with Rank("eight") as late:
            info = late.info()
            assert (info["pid"], info["started"]) == (supervisor, False)
        assert children_of(supervisor) == daemons
        ranks[last].order("close")
        assert wait_until_gone([supervisor, *daemons])


def test_others_have_their_own(tmp_path):
    differ = {"AWS_ACCESS_KEY_ID": "somebody"}, {"HOME": str(tmp_path)}, {"all_proxy": "http://127.0.0.1:1"}
    with contextlib.ExitStack() as stack:
        ranks = [Rank("own"), Rank("other"), *(Rank("own", **one) for one in differ)]
        for rank in ranks:
            stack.enter_context(rank)
        assert len({rank.info()["pid"] for rank in ranks}) == 5
    with named("options"), leat.connect(threads=1, cache="64MiB") as one:
        with leat.connect(threads=1, cache=2**26) as same, leat.connect(threads=2) as other:
            assert one.get("private")["pid"] == same.get("private")["pid"] != other.get("private")["pid"]
            assert one.get("private")["options"].startswith("workers=1 devices=none threads=1 cache=67108864 name=")


def test_a_package_of_other_files_has_its_own(tmp_path):
    for file in native.folder.iterdir():
        (tmp_path / file.name).symlink_to(file.resolve())
    (tmp_path / "leat-private").unlink()
    shutil.copy((native.folder / "leat-private").resolve(), tmp_path / "leat-private")
    with Rank("version") as one, Rank("version", LEAT_NATIVE_DIR=str(tmp_path)) as two, Rank("version") as three:
        pids = [rank.info()["pid"] for rank in (one, two, three)]
        assert pids[0] == pids[2] != pids[1]


def name_of(service):
    """Returns the abstract name at which a private service listens, which has its daemons' sockets, too."""
    sockets = {os.readlink(fd) for fd in pathlib.Path(f"/proc/{service.get('private')['pid']}/fd").iterdir()}
    lines = [line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]]
    packets = f"{socket.SOCK_SEQPACKET:04x}"
    listening = [line for line in lines if line[3] == "00010000" and line[4] == packets and line[7:]]
    (name,) = {line[7] for line in listening if f"socket:[{line[6]}]" in sockets}
    return name.removeprefix("@")


def processes_of(name):
    """Returns process numbers of the private services of this LEAT_PRIVATE_NAME, and of their daemons."""
    pids = []
    for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"LEAT_PRIVATE_NAME={name}".encode() in environment.read_bytes().split(b"\0"):
                pids.append(int(environment.parent.name))
    return pids


SQUATTER = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\\0" + sys.argv[1])
s.listen()
print("sits", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")
def test_another_users_process_at_the_name_is_passed_over():
    with named("squat"):
        with leat.connect() as service:
            assert service.get("private")["pid"] in processes_of(os.environ["LEAT_PRIVATE_NAME"])
            name = name_of(service)
            pid = service.get("private")["pid"]
        assert wait_until_gone([pid])
        squatter = subprocess.Popen(
            # The system's own Python: another user may have no access to the folder of the environment.
            [os.path.realpath(sys.executable), "-c", SQUATTER, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            user=65534,
        )
        assert squatter.stdout.readline() == "sits\n"
        try:
            with leat.connect() as service:
                assert name_of(service) == name.removesuffix("-0") + "-1"
                assert service.get("workers")
        finally:
            squatter.communicate()


def test_a_worker_that_is_killed_is_started_again_and_no_batch_is_lost(folder, capfd):
    with named("killed"), leat.connect() as service:
        job = service.job("again", train(folder), batch=10, seed=1)
        expected = [digest(batch) for batch in job.batches(epochs=3)]
        for _ in range(2):
            (worker,) = [pid for pid, program in daemons_of(service).items() if program == "leat-worker"]
            it = job.batches(epochs=3)
            got = [digest(next(it))]
            os.kill(worker, signal.SIGKILL)
            got += [digest(batch) for batch in it]
            assert got == expected
        error = capfd.readouterr().err
        assert f"(process {worker}) ended with signal 9" in error and "it is started again in 200ms" in error


def test_after_the_supervisor_is_killed_the_next_connect_starts_another(folder, capfd):
    with named("lost"):
        first = leat.connect(timeout=20)
        info = first.get("private")
        daemons = daemons_of(first)
        job = first.job("lost", train(folder), batch=10, seed=1)
        expected = [digest(batch) for batch in job.batches()]
        it = job.batches(epochs=0)
        assert digest(next(it)) == expected[0]
        position = it.position()
        os.kill(info["pid"], signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(leat.errors.Error, match=rf"the private service \(process {info['pid']}\) has ended"):
            while True:
                next(it)
        assert time.monotonic() - began < 20
        assert wait_until_gone([info["pid"], *daemons])
        with pytest.raises(leat.Unavailable, match="no coordinator at unix-abstract:leat-"):
            first.job("more", train(folder), batch=10, timeout=1)
        with leat.connect() as second:
            assert second.get("private")["started"] and second.get("private")["pid"] != info["pid"]
            again = second.job("lost", train(folder), batch=10, seed=1)
            assert [digest(batch) for batch in again.batches(position=position)] == expected[1:]
        it.close()
        first.close()
        assert f"private.lost pid={info['pid']}" in capfd.readouterr().err


def test_a_notebook_that_runs_its_cell_twice_joins_itself(folder):
    with named("cell"):
        service = leat.connect()
        pid = service.get("private")["pid"]
        plan = service.job("cell", train(folder), batch=10).plan_hash
        service = leat.connect()
        assert service.get("private")["pid"] == pid
        assert service.job("cell", train(folder), batch=10).plan_hash == plan
        service.close()


def test_whoever_closes_and_connects_again_meets_a_new_one(folder):
    with named("anew"):
        pids = set()
        for batch in (10, 11, 12):
            with leat.connect() as service:
                pids.add(service.get("private")["pid"])
                assert service.job("anew", train(folder), batch=batch).batch == batch
        assert len(pids) == 3


def test_a_forked_child_neither_keeps_it_nor_ends_it(folder):
    with named("fork"):
        service = leat.connect()
        started = [service.get("private")["pid"], *daemons_of(service)]
        ours, its = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(its)
            os.read(ours, 1)
            os._exit(0)
        os.close(ours)
        try:
            assert len(daemons_of(service)) == 2
            service.close()
            assert wait_until_gone(started)
        finally:
            os.close(its)
            os.waitpid(child, 0)


def test_a_forked_child_is_told_why_it_cannot_connect(folder):
    with named("forked"), leat.connect() as service:
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                leat.connect(timeout=10)
                os.write(tell, b"it connected")
            except leat.FailedPrecondition as error:
                os.write(tell, str(error).encode())
            finally:
                os._exit(0)
        os.close(tell)
        assert "was forked from process" in (said := os.read(told, 4096).decode()) and "spawn" in said, said
        os.close(told)
        os.waitpid(child, 0)
        assert service.job("after-fork", train(folder), batch=8).batch == 8


def test_what_does_not_start_says_why_and_leaves_nothing():
    with named("bad"):
        for _ in range(2):
            with pytest.raises(leat.Unavailable, match="(?s)leat-worker ended at start with exit code.*/dev/null/no"):
                leat.connect(disk_cache=("/dev/null/no", "64MiB"))
        assert wait_until_gone(processes_of(os.environ["LEAT_PRIVATE_NAME"]))


def test_a_service_that_ends_slowly_does_not_hold_up_the_next_one():
    with named("slowly"):
        first = leat.connect()
        pid = first.get("private")["pid"]
        (worker,) = [each for each, program in daemons_of(first).items() if program == "leat-worker"]
        os.kill(worker, signal.SIGSTOP)  # as if its threads got no processor
        first.close()
        with leat.connect(timeout=4) as second:
            assert second.get("private")["pid"] != pid
            assert pathlib.Path(f"/proc/{worker}").exists()
        os.kill(worker, signal.SIGCONT)
        assert wait_until_gone([pid, worker])


def test_the_folder_of_a_disk_cache_is_made(tmp_path, folder):
    with named("cache"), leat.connect(disk_cache=(tmp_path / "new one", "64MiB")) as other:
        assert other.job("a", train(folder), batch=8).batch == 8
        assert (tmp_path / "new one").stat().st_mode & 0o777 == 0o700


def cli(*args):
    return subprocess.run(
        [native.folder / "leat", *args], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"}
    )


def test_the_command_line_finds_it(service):
    info = service.get("private")
    done = cli("status", f"--private={info['pid']}")
    assert done.returncode == 0 and "embedded-0" in done.stdout, done
    with named("cli"), leat.connect(threads=1) as other:
        done = cli("status", "--private")
        assert done.returncode != 0 and str(info["pid"]) in done.stderr and "private services run" in done.stderr
        assert str(other.get("private")["pid"]) in done.stderr
    done = cli("get", "jobs", "--private=1")
    assert done.returncode == 3 and "no private service of process 1 runs here" in done.stderr
    done = cli("status", "--private", "--coordinator", "h:1")
    assert done.returncode != 0 and "--private and --coordinator: want one" in done.stderr
    assert "want the number of a process" in cli("status", "--private=x").stderr


def test_who_started_is_logged(caplog):
    with named("log"), caplog.at_level("INFO", "leat"):
        with leat.connect(), leat.connect():
            pass
    first, second = [record for record in caplog.records if record.name == "leat"]
    assert first.levelname == "INFO" and first.getMessage().startswith("started the private service of process")
    assert "neither an address nor LEAT_COORDINATOR" in first.getMessage()
    assert second.getMessage().startswith("joined, as one of 2 processes, the private service")


def test_a_context_of_the_command_says_where_the_service_is(tmp_path, monkeypatch):
    config = tmp_path / "config.yaml"
    config.write_text("contexts: {lab: {coordinator: '127.0.0.1:1', access_token_file: lab.token}}")
    config.chmod(0o600)
    for name, value in {"CONFIG": config, "CONTEXT": "lab", "COORDINATOR": "127.0.0.1:2", "TLS_CA": "/nowhere"}.items():
        monkeypatch.setenv(f"LEAT_{name}", str(value))
    with pytest.raises(leat.InvalidArgument, match=f"LEAT_ACCESS_TOKEN_FILE = '{tmp_path}/lab.token'"):
        leat.connect(timeout=0.2)
    (tmp_path / "lab.token").write_text("a-token-of-the-lab")
    with pytest.raises(leat.Unavailable, match="127.0.0.1:1"):
        leat.connect(timeout=0.2)
    monkeypatch.setenv("LEAT_CONTEXT", "lba")
    with pytest.raises(leat.InvalidArgument, match=f"LEAT_CONTEXT = 'lba': no context \"lba\" in {config}.*lab"):
        leat.connect()
    monkeypatch.delenv("LEAT_CONTEXT")
    monkeypatch.delenv("LEAT_TLS_CA")
    with pytest.raises(leat.Unavailable, match="127.0.0.1:2"):
        leat.connect(timeout=0.2)
