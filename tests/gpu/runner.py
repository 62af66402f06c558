# SPDX-License-Identifier: Apache-2.0
"""Runs a step as a process of its own, with a time limit of its own: if it hangs or crashes, only that step fails.

Its findings until then are kept: it writes its lines to a file as they come (findings.py). All processes that it
started end with it, since they are in its session.
"""

import dataclasses
import os
import pathlib
import signal
import subprocess
import time
import typing

import findings
from findings import CRASHED, FAILED, HUNG, NOT_HERE, PASSED, SKIPPED, UNFINISHED

LEAST_S = 3.0  # with less of the budget left no step is begun
KILL_PATIENCE_S = 10.0  # a process inside the driver may outlive SIGKILL
SAID_LINES = 30  # kept in the JSON, for a step that did not pass


@dataclasses.dataclass(frozen=True)
class Context:
    """Context holds the run's folders and settings, which every step may read."""
    top: pathlib.Path  # the bundle's
    folder: pathlib.Path  # for files of this run, removed at its end
    photos: pathlib.Path  # JPEG files
    env: dict  # for every process
    quick: bool = False
    fake: bool = False  # the driver computes on the CPU: tools that look at a real one are left out

    def program(self, name):
        """Returns the path of one of the bundle's checks, or None."""
        path = self.top / "checks" / name
        return path if path.exists() else None


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    about: str  # what it decides
    limit_s: float
    # (context, file for lines) -> the words of its command; or a text: the reason why there is no command here.
    command: typing.Callable
    takes_s: float = 0  # about, on a machine with an H200

@dataclasses.dataclass
class Done:
    name: str
    about: str
    outcome: str
    why: str = ""
    seconds: float = 0.0
    lines: list = dataclasses.field(default_factory=list)
    said: list = dataclasses.field(default_factory=list)
    by_budget: bool = False  # it was not begun, because the budget was used up

    def as_json(self):
        kept = {"step": self.name, "about": self.about, "outcome": self.outcome, "seconds": round(self.seconds, 2)}
        kept.update({name: getattr(self, name) for name in ("why", "said") if getattr(self, name)})
        return {**kept, "lines": self.lines}


def skipped(step, why):
    return Done(step.name, step.about, SKIPPED, why)


def run(step, context, end, budget_s):
    """Runs the step, but not beyond `end` (monotonic)."""
    left = end - time.monotonic()
    if left < LEAST_S:
        return Done(step.name, step.about, SKIPPED, f"the budget of {budget_s:g} s was used up (--budget)",
                    by_budget=True)
    lines = context.folder / f"{step.name}.lines"
    words = step.command(context, lines)
    if isinstance(words, str):
        return Done(step.name, step.about, NOT_HERE, words)
    limit_s = min(step.limit_s, left)
    log = log_of(step, context)
    started = time.monotonic()
    code, stuck = _wait(words, context, log, limit_s)
    done = Done(step.name, step.about, PASSED, seconds=time.monotonic() - started, lines=findings.read(lines))
    done.outcome, done.why = _judge(code, done.lines, log, step, limit_s)
    if stuck:
        done.why += "; it outlived SIGKILL, and the driver may be held by it"
    if done.outcome not in (PASSED, NOT_HERE):
        done.said = _tail(log, SAID_LINES)
    return done


def log_of(step, context):
    """Returns the file that collects what the step prints."""
    return context.folder / f"{step.name}.log"


def _wait(words, context, log, limit_s):
    """Returns (exit code, or None if it did not end in time; True if it is still running)."""
    with open(log, "wb") as out:
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, env=context.env, cwd=context.folder,
                                   start_new_session=True)
    code = None
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    try:
        process.wait(KILL_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return code, True
    return code, False


def _judge(code, lines, log, step, limit_s):
    """Returns (outcome, reason)."""
    if code is None and limit_s < step.limit_s:
        return UNFINISHED, f"the budget ended after {limit_s:.0f} s of it; it may take {step.limit_s:g} s"
    if code is None:
        return HUNG, f"no end within {limit_s:g} s"
    if code < 0:
        return CRASHED, f"ended by {_signal_name(-code)}"
    wrong = sum(line.get("ok") is False for line in lines)
    if wrong:
        return FAILED, f"{wrong} of its checks"
    if code != 0:
        return FAILED, f"exit code {code}: {' '.join(_tail(log, 1)) or 'it said nothing'}"
    if not lines:
        return FAILED, "it found nothing"
    if all("missing" in line for line in lines):
        return NOT_HERE, lines[0]["why"]
    return PASSED, ""


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tail(path, count):
    try:
        text = path.read_bytes()[-64 << 10:].decode(errors="replace")
    except OSError:
        return []
    return [line[:300] for line in text.splitlines() if line.strip()][-count:]
