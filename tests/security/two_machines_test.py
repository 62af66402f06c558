# SPDX-License-Identifier: Apache-2.0
"""The two machines of docs/run/several-machines.md: the scripts that it shows run unchanged on two network namespaces
with the page's addresses and names, except that /data is another folder. They also run on two addresses of loopback,
which replace the names.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/e2e"))
import cluster  # noqa: E402
from ports import free_ports  # noqa: E402  (of tests/support, which cluster has added)

SCRIPTS = ROOT / "docs/examples/two_machines"
MACHINES = {"coordinator.example": "10.0.0.5", "node1.example": "10.0.0.6"}
PORTS = ("7411", "7412")
# A network of two machines: this shell, on the first, and a sleeper on the second. All processes end with the shell.
NETWORK = r"""
set -eu
unshare -n sleep 1000 &
second=$!
until [ "$(readlink /proc/$second/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do :; done
ip link add leat0 type veth peer name leat1 netns $second
ip addr add 10.0.0.5/24 dev leat0
ip link set leat0 up
ip link set lo up
nsenter -t $second -n ip addr add 10.0.0.6/24 dev leat1
nsenter -t $second -n ip link set leat1 up
nsenter -t $second -n ip link set lo up
mount --bind hosts /etc/hosts
there() { nsenter -t $second -n "$@"; }
"""
LOOPBACK = "set -eu\nthere() { \"$@\"; }\n"
ENDS = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n"
# The other machine's shell has none of this one's settings.
THERE = "there env -u LEAT_COORDINATOR -u LEAT_TLS_CA -u LEAT_ACCESS_TOKEN_FILE bash -eu node1.sh\n"
UNSHARE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def has_namespaces():
    """True if namespaces can be made, as this user, or as root of a user namespace."""
    for before in ([], ["--user", "--map-root-user"]):
        probe = "ip link add leat0 type veth peer name leat1 && mount --bind /dev/null /etc/hosts"
        argv = [UNSHARE[0], *before, *UNSHARE[1:], "sh", "-c", probe]
        if all(map(shutil.which, ("unshare", "nsenter", "ip", "mount"))) and subprocess.run(
                argv, capture_output=True).returncode == 0:
            return [UNSHARE[0], *before, *UNSHARE[1:]]
    return None


@unittest.skipUnless(shutil.which("openssl"), "no openssl program here to make certificates with")
class TwoMachines(cluster.PhotosTest):
    def setUp(self):
        super().setUp()
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        for name, variable in (("leat", "CLI"), ("leat-coordinator", "COORDINATOR"), ("leat-worker", "WORKER")):
            (self.programs / name).symlink_to(cluster.program(variable))
        for machine, address in MACHINES.items():
            (self.folder / machine).mkdir(mode=0o700)
            (self.folder / address.replace("10.0.0", "127.0.0")).symlink_to(machine)
        shutil.copy(SCRIPTS / "make-certificate", self.folder / "coordinator.example")
        # The machines share a disk, so scp is a copy.
        scp = self.programs / "scp"
        scp.write_text('#!/bin/sh -eu\nshift\nfor to; do :; done\nwhile [ $# -gt 1 ]; do cp -p "$1" '
                       f'"{self.folder}/${{to%:}}/"; shift; done\n')
        scp.chmod(0o755)
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in MACHINES.items()))

    def script(self, network, replaced):
        first, tokens, worker, trainer = (
            (SCRIPTS / f"{name}.sh").read_text() for name in ("coordinator", "tokens", "worker", "trainer"))
        consumer = (f"{cluster.program('CONSUMER')} --spec {self.spec()} --epochs {cluster.EPOCHS} "
                    "--access-token $(cat $LEAT_ACCESS_TOKEN_FILE) "
                    "--tls-ca $LEAT_TLS_CA --tls-cert $LEAT_TLS_CERT --tls-key $LEAT_TLS_KEY < /dev/null")
        here = f"cd {self.folder}/coordinator.example\n{first}\n{tokens}\n"
        on_node = f"{ENDS}cd {self.folder}/node1.example\n{worker}\n{trainer}\n{consumer}\n"
        (self.folder / "node1.sh").write_text(on_node.replace("/data", str(cluster.photos())))
        lines = "\n".join((f"cd {self.folder}", ENDS, network, here, f"cd {self.folder}", THERE))
        for old, new in replaced.items():
            lines = lines.replace(old, new)
            text = (self.folder / "node1.sh").read_text().replace(old, new)
            (self.folder / "node1.sh").write_text(text)
        return lines

    def test_the_lines_work_as_they_stand(self):
        unshared = has_namespaces()
        if not unshared:
            self.skipTest("no network namespaces can be made here")
        self.check(unshared, self.script(NETWORK, {}))

    def test_the_lines_work_with_two_addresses_of_loopback(self):
        replaced = {"10.0.0.5": "127.0.0.5", "10.0.0.6": "127.0.0.6"}
        replaced |= {f"{name}:": f"{address.replace('10.0.0', '127.0.0')}:" for name, address in MACHINES.items()}
        replaced |= dict(zip(PORTS, map(str, free_ports(len(PORTS)))))
        self.check([], self.script(LOOPBACK, replaced))

    @staticmethod
    def end(shell):
        """Ends processes that the lines have started and not ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()

    def check(self, argv, lines):
        (self.folder / "here.sh").write_text(lines)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LEAT_")}
        environment["PATH"] = f"{self.programs}:{environment['PATH']}"
        log = self.folder / "log"
        with open(log, "wb") as err, open(self.folder / "out", "wb") as out:
            shell = subprocess.Popen([*argv, "bash", "-eu", str(self.folder / "here.sh")], stdout=out, stderr=err,
                                     stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
            self.addCleanup(self.end, shell)
            try:
                status = shell.wait(cluster.PATIENCE_S * 2)
            except subprocess.TimeoutExpired:
                status = "not ended"
        out = (self.folder / "out").read_text()
        self.assertEqual(status, 0, out[-3000:] + log.read_text(errors="replace")[-3000:])
        steps = [line.split(" ") for line in out.splitlines() if line.startswith("step ")]
        self.assertEqual([(int(step[1]), int(step[2]), step[4]) for step in steps], self.expected)
        self.assertIn("SERVER_CERTIFICATE", out)
        self.assertIn("node1", out)


if __name__ == "__main__":
    unittest.main()
