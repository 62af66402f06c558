# SPDX-License-Identifier: Apache-2.0
"""Another user of the machine, beside a private service: calls its daemons, and waits for a name to become free."""

import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/e2e"))
import cluster  # noqa: E402

OTHER_USER = 54321
# Commands come as lines: "call NAME" prints the answer, "take NAME" tries to bind the name until the next command, and
# prints whether it could. It prints what clients that connect to its name send.
OTHER = r"""
import select, socket, sys

def call(name):
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect("\0" + name)
        caller.settimeout(20)
        try:
            caller.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            return repr(caller.recv(100))
        except (BrokenPipeError, ConnectionResetError):
            return "b''"

def take(name):
    tries = 0
    while True:
        tries += 1
        with socket.socket(socket.AF_UNIX) as taker:
            try:
                taker.bind("\0" + name)
            except OSError:
                if select.select([sys.stdin], [], [], 0.001)[0]:
                    return f"never in {tries} tries"
                continue
            taker.listen()
            taker.settimeout(1)
            try:
                victim, _ = taker.accept()
            except TimeoutError:
                return "taken"
            victim.settimeout(5)
            return f"taken, and told {victim.recv(100000)!r}"

print("ready", flush=True)
for line in sys.stdin:
    order, _, name = line.strip().partition(" ")
    if order in ("call", "take"):
        print({"call": call, "take": take}[order](name), flush=True)
"""


def listening(pattern):
    """Returns the abstract names of this machine that match."""
    lines = pathlib.Path("/proc/net/unix").read_text().splitlines()
    return {name for name in (line.split("@")[-1] for line in lines if "@" in line) if re.fullmatch(pattern, name)}


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root can be two users, by setpriv")
class OtherUser(cluster.PhotosTest):
    def setUp(self):
        super().setUp()
        other = subprocess.Popen(
            ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups", "/usr/bin/python3", "-uc",
             OTHER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", bufsize=0)
        self.addCleanup(other.stdout.close)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.addCleanup(other.stdin.close)
        self.other = other
        self.assertEqual(self.says(), "ready")

    def order(self, what):
        self.other.stdin.write(f"{what}\n".encode())

    def says(self):
        return cluster.read_line(self.other.stdout, "the other user")

    def test_he_is_not_heard_and_gets_no_name_while_a_trainer_may_connect_to_it(self):
        before = listening("leat-[0-9a-f]{32}-[cw]0?")
        consumer = self.consumer(self.spec(), "--paced", embedded=True, epochs=4)
        consumer.pull(1)
        names = sorted(listening("leat-[0-9a-f]{32}-[cw]0?") - before)
        self.assertEqual([name[-2:] for name in names], ["-c", "w0"])
        for name in names:
            self.order(f"call {name}")
            self.assertEqual(self.says(), "b''", "the connection is closed, and no word is said")
        supervisor = self.supervisor_of(names[0])
        worker = next(pid for pid, name in self.children(supervisor).items() if name == "leat-worker")
        self.order(f"take {names[1]}")
        os.kill(worker, signal.SIGKILL)
        consumer.pull(10)
        self.order("")
        self.assertRegex(self.says(), r"^never in \d+ tries$")
        # The other user cannot take it either while the service is dead, and the trainer tries to reach it.
        self.order(f"take {names[0]}")
        daemons = [os.pidfd_open(pid) for pid in self.children(supervisor)]
        os.kill(supervisor, signal.SIGKILL)
        for daemon in daemons:  # each ends with its lifeline
            self.assertTrue(select.select([daemon], [], [], cluster.PATIENCE_S)[0])
            os.close(daemon)
        self.order("")
        self.assertRegex(self.says(), r"^never in \d+ tries$")
        consumer.close()
        # When the trainer has ended, the name is free, and worthless.
        self.order(f"take {names[0]}")
        self.assertEqual(self.says(), "taken")

    @staticmethod
    def children(pid):
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return {int(child): pathlib.Path(f"/proc/{child}/comm").read_text().strip() for child in children}

    def supervisor_of(self, name):
        """Returns the leat-private that has the socket of this name."""
        inode = next(line.split()[6] for line in pathlib.Path("/proc/net/unix").read_text().splitlines()
                     if line.endswith("@" + name) and line.split()[3] == "00010000")  # it listens
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (process / "comm").read_text().strip() != "leat-private":
                    continue
                sockets = [os.readlink(fd) for fd in (process / "fd").iterdir()]
            except OSError:  # it has ended
                continue
            if f"socket:[{inode}]" in sockets:
                return int(process.name)
        self.fail(f"no leat-private has {name}")


if __name__ == "__main__":
    unittest.main()
