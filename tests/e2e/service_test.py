# SPDX-License-Identifier: Apache-2.0
"""Daemons as systemd runs them: a configuration file with every flag, and the messages to NOTIFY_SOCKET."""

import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import time
import unittest

import cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAEMONS = ("coordinator", "worker")
PLAIN = {"PATH": "/usr/bin:/bin"}


class Manager:
    """systemd's end of NOTIFY_SOCKET."""

    def __init__(self, path):
        self.path, self.socket = path, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))

    def until(self, field, patience=cluster.PATIENCE_S):
        """Returns the fields of the next datagram with a field that begins so."""
        end = time.monotonic() + patience
        while select.select([self.socket], [], [], max(0, end - time.monotonic()))[0]:
            fields = self.socket.recv(4096).decode().splitlines()
            if any(one.startswith(field) for one in fields):
                return fields
        raise AssertionError(f"nobody said {field} within {patience} s")

    def close(self):
        self.socket.close()


class ServiceTest(cluster.ClusterTest):
    def start(self, name, *words, **environment):
        log = open(self.folder / f"{name}.log", "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen([cluster.program(name.upper()), *map(str, words)], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, env={**PLAIN, **environment})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def told(self, name, *words):
        return subprocess.run([cluster.program(name.upper()), *map(str, words)], capture_output=True, text=True,
                              timeout=60, env=PLAIN)

    def manager(self):
        manager = Manager(self.folder / "notify")
        self.addCleanup(manager.close)
        return manager


class NotifyTest(ServiceTest):
    def test_a_coordinator_tells_its_life(self):
        manager = self.manager()
        process = self.start("coordinator", "--listen", "127.0.0.1:0", NOTIFY_SOCKET=str(manager.path),
                             WATCHDOG_USEC="3000000")
        ready = manager.until("READY=1")
        self.assertRegex(ready[1], r"^STATUS=serving 127\.0\.0\.1:\d+$")
        manager.until("WATCHDOG=1")
        manager.until("WATCHDOG=1")
        process.send_signal(signal.SIGHUP)
        self.assertRegex(manager.until("RELOADING=1")[1], r"^MONOTONIC_USEC=\d+$")
        manager.until("READY=1")
        process.terminate()
        manager.until("STOPPING=1")
        self.assertEqual(process.wait(cluster.PATIENCE_S), 0)

    def test_a_stopped_process_does_not_say_that_it_lives(self):
        manager = self.manager()
        process = self.start("coordinator", "--listen", "127.0.0.1:0", NOTIFY_SOCKET=str(manager.path),
                             WATCHDOG_USEC="3000000")
        manager.until("WATCHDOG=1")
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        while select.select([manager.socket], [], [], 0)[0]:  # drops earlier messages
            manager.socket.recv(4096)
        self.assertEqual(select.select([manager.socket], [], [], 3)[0], [], "within the time that the manager waits")
        process.send_signal(signal.SIGCONT)
        manager.until("WATCHDOG=1")

    def test_a_worker_is_ready_before_its_coordinator(self):
        manager = self.manager()
        path = self.folder / "coordinator.socket"
        worker = self.start("worker", "--coordinator", f"unix:{path}", "--threads", 1, NOTIFY_SOCKET=str(manager.path),
                            WATCHDOG_USEC="3000000")
        self.assertIn(f"waiting for the coordinator unix:{path}", manager.until("READY=1")[1])
        manager.until("WATCHDOG=1")
        self.start("coordinator", "--listen", f"unix:{path}")
        self.assertIn("known to", manager.until("STATUS=")[0])
        worker.terminate()
        manager.until("STOPPING=1")
        self.assertEqual(worker.wait(cluster.PATIENCE_S), 0)

    def test_a_daemon_on_a_lifeline_tells_nobody(self):
        manager = self.manager()
        daemon = cluster.Daemon("coordinator", [cluster.program("COORDINATOR"), "--listen", "127.0.0.1:0"],
                                self.folder / "coordinator.log",
                                env={"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "3000000"})
        self.addCleanup(daemon.close)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(select.select([manager.socket], [], [], 0)[0], [])


class FlagFileTest(ServiceTest):
    """`GOOD`: the flags that each daemon needs."""

    GOOD = {"coordinator": (), "worker": ("--coordinator", "127.0.0.1:7411")}

    def flags(self, name):
        """Returns the flags that --help shows and that are for a file."""
        shown = self.told(name, "--help").stdout
        known = set(re.findall(r"^  (?:-\w,)?--([a-z][a-z-]*)", shown, re.M))
        self.assertGreater(len(known), 20)
        return known - {"help", "version", "config", "check-config", "print-config", "ready-fd", "lifeline-fd",
                        "backup-to", "accept-data-loss"}

    def test_the_printed_file_has_every_flag_and_is_good(self):
        for name in DAEMONS:
            printed = self.told(name, *self.GOOD[name], "--print-config").stdout
            self.assertEqual(set(re.findall(r"^#?([a-z][a-z-]*):", printed, re.M)), self.flags(name))
            file = self.folder / f"{name}.yaml"
            # Values in comments are the defaults, so removing the comment marks changes nothing.
            file.write_text(re.sub(r"^#([a-z-]+: .)", r"\1", printed, flags=re.M))
            checked = self.told(name, "--config", file, "--check-config")
            self.assertEqual((checked.returncode, checked.stdout), (0, f"the configuration is good (with {file})\n"),
                             checked.stderr)

    def test_every_flag_is_on_a_page(self):
        for name in DAEMONS:
            text = (ROOT / f"docs/reference/flags/leat-{name}.md").read_text()
            for flag in sorted(self.flags(name)):
                with self.subTest(daemon=name, flag=flag):
                    self.assertTrue(re.search(rf"--{flag}(?![a-z-])", text),
                                    "want it in docs/reference/flags: run docs/site/program_pages.py")

    def test_what_is_wrong_with_a_file_is_one_line_that_names_it(self):
        file = self.folder / "wrong.yaml"
        for name in DAEMONS:
            for text, *said in (("listn: 127.0.0.1:0\n", f"{file}, line 1", '"listn"', 'did you mean "listen"?'),
                                ("\nmax-connections: many\n", f"{file}, line 2: max-connections: ", "many"),
                                ("listen: 0.0.0.0:7411\n", f"(with {file})"),
                                ("tls-cert: /nowhere.pem\n", "/nowhere.pem", f"(with {file})")):
                file.write_text(text)
                done = self.told(name, *self.GOOD[name], "--config", file, "--check-config")
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                for words in (f"leat-{name}: ", *said):
                    self.assertIn(words, done.stderr)

    def test_daemons_run_from_files(self):
        listening = f"unix:{self.folder}/socket"
        (self.folder / "coordinator.yaml").write_text(
            f"listen: {listening}\nstate: {self.folder}/state\n")
        (self.folder / "worker.yaml").write_text(f"coordinator: {listening}\nname: mill\nthreads: 1\nmemory: 600MiB\n")
        for name in DAEMONS:
            daemon = cluster.Daemon(name, [cluster.program(name.upper()), "--config", f"{self.folder}/{name}.yaml"],
                                    self.folder / f"{name}.log")
            self.addCleanup(daemon.close)
        shown = subprocess.run([cluster.program("CLI"), "--coordinator", listening, "status"], capture_output=True,
                               text=True, timeout=60, env=PLAIN)
        self.assertIn(f"state sqlite {self.folder}/state", shown.stdout, shown.stderr)
        self.assertRegex(shown.stdout, r"(?m)^mill +ready ")
        self.assertIn("memory_bytes=629145600", (self.folder / "worker.log").read_text())


if __name__ == "__main__":
    unittest.main()
