# SPDX-License-Identifier: Apache-2.0
"""Runs a command for a limited time, and ends it with all processes that it started.

    keeper.py SECONDS GRACE COMMAND…

Libraries start servers that outlive them, in sessions of their own. The keeper is the subreaper of all its descendants,
so that a process whose parent ends becomes the keeper's child: none is left when the keeper ends. It first sends
SIGTERM, so that shared memory is given back, and kills the rest GRACE seconds later. It also ends them when its own
parent ends, or on SIGTERM. The command's TMPDIR is a folder that is removed with it. Exit codes: the command's, 124
after SECONDS, 128 + N after signal N.
"""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

TIMED_OUT = 124
_REPEAT_S = 0.2
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def below(root):
    """Returns every process below `root`, as the kernel lists parents now."""
    children = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = children.get(root, [])
    for pid in found:  # the list grows meanwhile
        found.extend(children.get(pid, []))
    return found


def end_all(grace_s):
    """Ends all processes below this one, and returns when there are none."""

    def send(number):
        for pid in below(os.getpid()):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    signal.signal(signal.SIGALRM, lambda *_: send(signal.SIGKILL))  # also processes that were started meanwhile
    signal.setitimer(signal.ITIMER_REAL, grace_s, _REPEAT_S)
    send(signal.SIGTERM)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    signal.setitimer(signal.ITIMER_REAL, 0)


def main(seconds, grace_s, argv):
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_PR_SET_CHILD_SUBREAPER, 1), (_PR_SET_PDEATHSIG, signal.SIGTERM)):
        if libc.prctl(option, int(value), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl {option}")

    def stop(number, _):
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        with tempfile.TemporaryDirectory(prefix="leat-kept-", ignore_cleanup_errors=True) as scratch:
            try:
                env = {**os.environ, "TMPDIR": scratch, "RAY_TMPDIR": scratch}
                code = subprocess.Popen(argv, start_new_session=True, env=env).wait(seconds)
                return code if code >= 0 else 128 - code
            finally:
                end_all(grace_s)
    except subprocess.TimeoutExpired:
        return TIMED_OUT


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
