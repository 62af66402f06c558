# SPDX-License-Identifier: Apache-2.0
"""Faults by the kernel: limits, control groups, other host names, and network namespaces.

Each gives words (`before`, or the function's result) that are put before a program and end by executing it. If this
machine does not permit one, the test is skipped.
"""

import os
import pathlib
import shutil
import stat
import subprocess
import unittest


def prlimit(**limits):
    """Returns words before a program: prlimit(nofile=100) sets its soft and hard limit."""
    if shutil.which("prlimit") is None:
        raise unittest.SkipTest("no prlimit here")
    return ["prlimit", *(f"--{name}={value}:{value}" for name, value in limits.items())]


def as_somebody(uid):
    """Returns words before a program, for limits that root does not have."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        raise unittest.SkipTest("only root can start programs as another user, by setpriv")
    for folder in pathlib.Path(os.environ["LEAT_COORDINATOR_BIN"]).resolve().parents:
        if not folder.stat().st_mode & stat.S_IXOTH:
            raise unittest.SkipTest(f"another user has no way into {folder}, where the programs are")
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


class ControlGroup:
    """Limits a process: memory in bytes, or the share of one CPU. Uses control groups of version 1."""

    ROOT = pathlib.Path("/sys/fs/cgroup")

    def __init__(self, number, memory=None, cpu=None):
        name = f"leat-{os.getpid()}-{number}"
        self._folders = []
        try:
            if memory is not None:
                self._make("memory", name, {"memory.limit_in_bytes": memory})
            if cpu is not None:
                self._make("cpu", name, {"cpu.cfs_period_us": 100_000, "cpu.cfs_quota_us": round(cpu * 100_000)})
        except OSError as error:
            self.close()
            raise unittest.SkipTest(f"no control groups of version 1 here: {error}")
        join = " && ".join(f"echo $$ > {folder}/cgroup.procs" for folder in self._folders)
        self.before = ["sh", "-c", f'{join} && exec "$@"', "sh"]

    def _make(self, controller, name, limits):
        folder = self.ROOT / controller / name
        folder.mkdir()
        self._folders.append(folder)
        for file, value in limits.items():
            (folder / file).write_text(str(value))

    def read(self, file):
        return next(folder / file for folder in self._folders if (folder / file).exists()).read_text().strip()

    def close(self):
        """Call it after its processes have ended."""
        while self._folders:
            self._folders.pop().rmdir()


class Names:
    """The /etc/hosts of processes behind `before`: they see a file of ours instead, which may change."""

    def __init__(self, path):
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            raise unittest.SkipTest("other names need root and unshare(1)")
        self._path = path
        self.set()
        self.before = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(path)]

    def set(self, **addresses):
        """Sets name=address; names that are not given have none."""
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
        self._path.write_text("".join(line + "\n" for line in lines))


class Network:
    """A network namespace, and a link into it that can be cut. `before`: words for a program in it."""

    def __init__(self, number):
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise unittest.SkipTest("a network namespace needs root and ip(8)")
        self.name = f"leat{os.getpid()}-{number}"
        self._link = f"lt{os.getpid() % 100_000}h{number}"
        inside = f"lt{os.getpid() % 100_000}n{number}"
        self.host, self.address = f"10.213.{number}.1", f"10.213.{number}.2"
        try:
            for words in (f"netns add {self.name}", f"link add {self._link} type veth peer name {inside}",
                          f"link set {inside} netns {self.name}", f"addr add {self.host}/24 dev {self._link}",
                          f"link set {self._link} up", f"-n {self.name} addr add {self.address}/24 dev {inside}",
                          f"-n {self.name} link set {inside} up", f"-n {self.name} link set lo up"):
                self.run(words)
        except subprocess.CalledProcessError as error:
            self.close()
            raise unittest.SkipTest(f"no network namespace here: {error.stderr.strip()}")
        self.before = ["ip", "netns", "exec", self.name]

    def run(self, words):
        subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True)

    def cut(self):
        self.run(f"link set {self._link} down")

    def heal(self):
        self.run(f"link set {self._link} up")

    def mute(self):
        """Drops packets from inside; packets to it arrive."""
        self.run(f"-n {self.name} route add blackhole {self.host}/32")

    def unmute(self):
        self.run(f"-n {self.name} route del blackhole {self.host}/32")

    def close(self):
        for words in (["link", "del", self._link], ["netns", "del", self.name]):
            subprocess.run(["ip", *words], capture_output=True)


class Lossy(Network):
    """A link whose packets packet_relay.cc carries: some are lost, doubled, late, or out of order."""

    def __init__(self, number, seed):
        relay = os.environ.get("LEAT_PACKET_RELAY_BIN", "")
        if not os.path.exists("/dev/net/tun") or not os.path.exists(relay):
            raise unittest.SkipTest("packets need /dev/net/tun and LEAT_PACKET_RELAY_BIN")
        self._relay = None
        super().__init__(number)
        device = f"lr{os.getpid() % 100_000}n{number}"
        self._relay = subprocess.Popen([relay, self.name, device, str(seed)], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        if self._relay.stdout.readline() != "ready\n":
            self.close()
            raise unittest.SkipTest("no TUN device here")
        self.host, self.address = f"10.214.{number}.1", f"10.214.{number}.2"
        for where, address, peer in (("", self.host, self.address), (f"-n {self.name} ", self.address, self.host)):
            self.run(f"{where}addr add {address} peer {peer} dev {device}")
            self.run(f"{where}link set {device} up")

    def set(self, loss=0.0, twice=0.0, delay_ms=0.0, jitter_ms=0.0):
        """Sets the shares of packets, and their delay."""
        self._relay.stdin.write(f"{round(loss * 1000)} {round(twice * 1000)} {delay_ms} {jitter_ms}\n")
        self._relay.stdin.flush()

    def end(self):
        """Returns counts: packets, lost, twice, overtaken. Nothing passes afterwards."""
        said, _ = self._relay.communicate(timeout=10)
        return {key: int(value) for key, value in (word.split("=") for word in said.split())}

    def close(self):
        if self._relay is not None and self._relay.poll() is None:
            self._relay.kill()
            self._relay.communicate()
        super().close()
