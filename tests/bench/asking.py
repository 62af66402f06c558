# SPDX-License-Identifier: Apache-2.0
"""Both ends of the protocol in measured_cases.h: programs that measure cases in turns."""

import os
import subprocess
import sys
import tempfile
import threading
import time


def measure_cases(cases):
    """Runs the answering end. `cases`: name -> a function that does the work once and returns the number of items."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries goes to stderr
    print("\n".join([f"case {name}" for name in cases] + ["ready"]), file=answers, flush=True)
    for line in sys.stdin:
        name, seconds = line.rstrip("\n").split("\t")
        try:
            cases[name]()  # warms caches and memory
            begin, items, elapsed = time.process_time(), 0, 0.0
            while items == 0 or elapsed < float(seconds):
                items += cases[name]()
                elapsed = time.process_time() - begin
        except Exception as error:  # reports that the case is not available
            print("absent\t" + " ".join(str(error).split())[:200], file=answers, flush=True)
        else:
            print(f"{items}\t{elapsed:.9f}", file=answers, flush=True)


class Program:
    """The asking end: a program bound to one core, as `with` block. `absent`: why there is none."""

    def __init__(self, argv, core, patience_s=120):
        self.argv, self.core, self.patience_s = [str(a) for a in argv], core, patience_s
        self.cases, self.absent = [], None
        self.said = []  # other lines before it was ready

    def __enter__(self):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            ["taskset", "-c", str(self.core), *self.argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""})
        while (line := self._line()) and line != "ready":
            if line.startswith("case "):
                self.cases.append(line[5:])
            else:
                self.said.append(line)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def rate(self, name, seconds):
        """Returns items per processor second, or the reason why there is no rate."""
        if self.absent or name not in self.cases:
            return self.absent
        self.process.stdin.write(f"{name}\t{seconds}\n")
        self.process.stdin.flush()
        items, _, elapsed = self._line().partition("\t")
        return int(items) / float(elapsed) if items.isdigit() else elapsed or self.absent

    def _line(self):
        """Returns the next answer; "" if the program has ended or does not answer, after which it is absent."""
        watch = threading.Timer(self.patience_s, self.process.kill)
        watch.start()
        line = self.process.stdout.readline().rstrip("\n")
        watch.cancel()
        if not line:
            self.errors.seek(0)
            last = (self.errors.read().strip().splitlines() or ["it ended"])[-1]
            self.absent = f"{last[:200]} (exit code {self.process.wait()})"
        return line
