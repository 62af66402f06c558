# SPDX-License-Identifier: Apache-2.0
"""The CLI in terminals of 80 and of 40 columns, in one that changes its size, and without a terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import cluster
from cluster import PATIENCE_S, program
from scene import Scene

TABLES = (("get", "jobs"), ("get", "workers"), ("get", "consumers"), ("get", "datasets"), ("top", "--count", "1"),
          ("top", "jobs", "--count", "1"), ("top", "consumers", "--count", "1"))


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, argv, columns, lines=24):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.environ.update(TERM="xterm", NO_COLOR="1")
            os.environ.pop("COLUMNS", None)
            os.execv(argv[0], argv)
        self.said, self.ended = "", False

    def resize(self, columns, lines=24):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def hears(self, holds):
        """Reads until `holds` is true of the output, or the program has ended; returns whether it is true."""
        end = time.monotonic() + PATIENCE_S
        while not holds(self.said) and not self.ended and time.monotonic() < end:
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    self.said += os.read(self.fd, 65536).decode()
                except OSError:  # the other side is closed
                    self.ended = True
        return holds(self.said)

    def lines(self):
        return re.sub(r"\x1b\[\d*[A-Za-z]|\r", "", self.said).splitlines()

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class TerminalsTest(cluster.ClusterTest):
    def leat(self, *words):
        return [program("CLI"), "--coordinator", self.scene.grpc, *words]

    def test_tables_of_long_names(self):
        self.scene = self._keep(Scene("names", int(time.time())))
        for columns in (80, 40):
            for words in TABLES:
                terminal = self._keep(Terminal(self.leat(*words), columns))
                terminal.hears(lambda said: False)
                table = [line for line in terminal.lines() if not line.startswith("leat: ")]
                self.assertGreater(len(table), 2, words)
                self.assertLessEqual(max(map(len, table)), columns, (words, table))
                self.assertTrue(any("…" in line for line in table), (words, table))
                # Workers and consumers have different lines.
                self.assertEqual(len(table), len(set(table)), (words, table))

    def test_what_is_no_terminal_cuts_nothing(self):
        self.scene = self._keep(Scene("names", int(time.time())))
        for words in TABLES:
            done = subprocess.run(self.leat(*words), capture_output=True, text=True, timeout=PATIENCE_S,
                                  env={**os.environ, "COLUMNS": "40"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("…", done.stdout)
            self.assertNotIn("\x1b", done.stdout)
            self.assertNotIn("left out", done.stderr)
            self.assertGreater(max(map(len, done.stdout.splitlines())), 90, words)

    def test_top_follows_the_terminal(self):
        self.scene = self._keep(Scene("many", int(time.time())))
        terminal = self._keep(Terminal(self.leat("top", "workers", "--interval", "300s"), 120, lines=12))
        self.assertTrue(terminal.hears(lambda said: "more lines" in said), terminal.said)
        self.assertLessEqual(len(terminal.lines()), 11)
        self.assertIn("WAITS OUT(%)", terminal.said)
        terminal.said = ""
        terminal.resize(40, lines=8)
        self.assertTrue(terminal.hears(lambda said: "more lines" in said), terminal.said)
        self.assertLessEqual(len(terminal.lines()), 7)
        self.assertLessEqual(max(map(len, terminal.lines())), 40, terminal.lines())


if __name__ == "__main__":
    unittest.main()
