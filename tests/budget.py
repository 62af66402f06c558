#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time that a run's steps took, and their budget.

    budget.py --calibrate      prints the processor seconds of one compilation of support/calibration.cc on this machine

A step is a build, a list of packages, or a test of ctest. Processors differ by a factor of two, so budget.tsv has the
processor time of each step as a multiple of that compilation. A step that is a third over its budget gives a warning;
one that is two thirds over fails the run. Steps that are not in the file share the budget of its line "(all others)",
so that many small tests cannot grow unseen.
"""

import dataclasses
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE / "budget.tsv"
LONGEST = 10
WARNS, FAILS = 4 / 3, 5 / 3
OTHERS = "(all others)"
# A shorter step does not get a line of its own.
LEAST = 15


@dataclasses.dataclass
class Step:
    """`wall`, `processor`: seconds. For a build that began before its turn, `wall` counts only the turn."""

    name: str
    wall: float = 0.0
    processor: float = 0.0


def _compile():
    """Returns the processor seconds of one compilation."""
    source = HERE / "support/calibration.cc"
    before = os.times()
    subprocess.run(["g++", "-std=c++20", "-O1", "-c", str(source), "-o", "/dev/null"], check=True)
    after = os.times()
    return (after.children_user + after.children_system) - (before.children_user + before.children_system)


def calibrate(rounds=2):
    """Returns the median of several compilations, running as many at a time as there are cores."""
    script = f"import sys; sys.path.insert(0, {str(HERE)!r}); import budget; print(budget._compile())"
    seconds = []
    for _ in range(rounds):
        running = [subprocess.Popen([sys.executable, "-B", "-c", script], stdout=subprocess.PIPE, text=True)
                   for _ in range(os.cpu_count() or 1)]
        for process in running:
            said, _ = process.communicate()
            if process.returncode != 0:
                raise SystemExit("budget.py: support/calibration.cc does not compile")
            seconds.append(float(said))
    return statistics.median(seconds)


def read_steps(file):
    """Reads a steps file of tests/run: lines of name, wall and processor seconds; lines with the same name are
    added."""
    steps = {}
    for line in pathlib.Path(file).read_text().splitlines():
        name, wall, processor = line.split("\t")
        step = steps.setdefault(name, Step(name))
        step.wall += float(wall)
        step.processor += float(processor)
    return list(steps.values())


def print_longest(steps):
    whole = sum(step.processor for step in steps)
    print(f"\nlongest steps, of {whole:.0f} s of processor time:\n{'processor':>11}  {'share':>6}  {'wall':>8}")
    for step in sorted(steps, key=lambda step: -step.processor)[:LONGEST]:
        share = step.processor / whole if whole else 0
        print(f"{step.processor:9.1f} s  {share:6.1%}  {step.wall:6.1f} s  {step.name}")


def read_budget():
    """Returns the multiple that each step may take."""
    budget = {}
    for line in FILE.read_text().splitlines():
        if line and not line.startswith("#"):
            name, multiple = line.split("\t")
            budget[name] = float(multiple)
    if OTHERS not in budget:
        raise SystemExit(f"{FILE}: want a line {OTHERS}")
    return budget


def check(steps, budget, unit):
    """Prints steps that are over budget. Returns the names of those that are two thirds over it."""
    taken = dict.fromkeys(budget, 0.0)
    for step in steps:
        name = step.name if step.name in budget else OTHERS
        taken[name] = taken.get(name, 0.0) + step.processor / unit
    over = [(multiple / budget[name], name) for name, multiple in taken.items() if multiple > WARNS * budget[name]]
    for ratio, name in sorted(over, reverse=True):
        what = "fails" if ratio > FAILS else "warning"
        print(f"budget, {what}: {name} took {taken[name]:.0f} compilations of {unit:.2f} s of processor time, and may "
              f"take {budget[name]:.0f} ({FILE.name})")
    return [name for ratio, name in over if ratio > FAILS]


def write(steps, unit):
    """Writes the time of each step of a run as its budget, and keeps the file's comments."""
    comments = [line for line in FILE.read_text().splitlines() if line.startswith("#")]
    multiples = {step.name: step.processor / unit for step in steps}
    lines = [f"{name}\t{multiple:.0f}" for name, multiple in sorted(multiples.items()) if multiple >= LEAST]
    rest = sum(multiple for multiple in multiples.values() if multiple < LEAST)
    FILE.write_text("\n".join([*comments, *lines, f"{OTHERS}\t{max(1, rest):.0f}"]) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] != ["--calibrate"]:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    print(f"{calibrate():.3f}")
