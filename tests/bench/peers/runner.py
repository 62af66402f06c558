# SPDX-License-Identifier: Apache-2.0
"""Runs the yardstick and the peers, each in a process of its own under keeper.py, and reports why one is absent."""

import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

from peers import LIMIT, PEERS, PREPARED, keeper, measured, photos

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE_S = 180  # besides the measured time: imports, servers' starts, first batches
_GRACE_S = 3  # to give shared memory back
_END_S = 60  # until the keeper has ended all
_LEAST_RATE = 50  # images per second; a slower peer is given up
_FILES = 20_000  # the most for the yardstick; it reads at most 2 GiB of them


def answer(argv, patience_s, env=None, given=None, grace_s=_GRACE_S):
    """Returns the rate that a program prints ("rate X" or "prepared X"; a list for "epochs X Y"), or why there is none.
    All processes that it started have ended."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, HERE / "keeper.py", str(patience_s), str(grace_s), *map(str, argv)], env=env, text=True,
            stdin=subprocess.DEVNULL if given is None else given, stdout=subprocess.PIPE, stderr=errors,
            start_new_session=True)
        try:
            output, _ = process.communicate(timeout=patience_s + _END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"it could not be ended within {_END_S} s"
        except BaseException:  # for example KeyboardInterrupt
            process.terminate()
            process.wait(_END_S)
            raise
        errors.seek(0)
        said = errors.read().strip().splitlines()
    for line in output.splitlines():
        kind, _, rest = line.partition(" ")
        if kind in ("rate", "prepared"):
            return float(rest)
        if kind == "epochs":
            return [float(value) for value in rest.split()]
        if kind == "absent":
            return rest[:300]
    if process.returncode == keeper.TIMED_OUT:
        return f"no rate within {patience_s:.0f} s"
    return f"{(said or ['it said nothing'])[-1].strip()[:300]} ({_ended(process.returncode)})"


def _ended(code):
    return f"exit code {code}" if code <= 128 else f"killed by {signal.Signals(code - 128).name}"


def compiled(build, name="jpeg_limit"):
    """Compiles a program of this folder once into `build`. Raises OSError that names what is missing."""
    source, program = HERE / f"{name}.cc", pathlib.Path(build) / name
    if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    making = program.with_suffix(".making")
    argv = ["c++", "-std=c++20", "-O2", "-o", making, source, "-Wl,--as-needed", "-lturbojpeg", "-lpng", "-lwebp",
            "-pthread"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True)
    except FileNotFoundError:
        raise OSError(f"no c++ to compile {source.name}: want Debian's g++") from None
    if done.returncode:
        packages = {"turbojpeg": "libturbojpeg0-dev", "png": "libpng-dev", "webp": "libwebp-dev"}
        missing = next((f" (want Debian's {package})" for name, package in packages.items() if name in done.stderr), "")
        raise OSError(f"{source.name} does not compile{missing}: {done.stderr.strip().splitlines()[0]}")
    making.rename(program)
    return program


class Peers:
    """Measures peers on the photos of a folder. One that was absent is not tried again."""

    def __init__(self, images, seconds, threads, python, build, absent=()):
        """`python`: returns the interpreter of a peer's environment. `absent`: known reasons, by name. The data that
        peers prepare from the photos is in a folder of `build` while this is a `with` block."""
        self._images, self._seconds, self._threads = images, seconds, threads
        self._python, self._build, self._absent = python, pathlib.Path(build), dict(absent)
        self.prepare_s, self._prepared = {}, None

    def __enter__(self):
        self._build.mkdir(parents=True, exist_ok=True)
        self._prepared = tempfile.TemporaryDirectory(prefix="prepared-", dir=self._build)
        return self

    def __exit__(self, *_):
        self._prepared.cleanup()

    def rate(self, name):
        """Returns images per second, or the reason why there is no rate."""
        return self._asked(name, lambda: self._limit() if name == LIMIT else self._peer(name, "rate", self._seconds))

    def epochs(self, name, photos_count):
        """Returns [images per second of the first epoch, of the tenth], or the reason why there is none."""
        seconds = measured.EPOCHS * photos_count / _LEAST_RATE
        return self._asked(name, lambda: self._peer(name, "epochs", seconds))

    def _asked(self, name, ask):
        if name not in self._absent:
            try:
                found = ask()
            except OSError as error:
                found = str(error)
            if not isinstance(found, str):
                return found
            self._absent[name] = found
        return self._absent[name]

    def _limit(self):
        names = photos.files(self._images)
        names = names[::-(-len(names) // _FILES)]
        with tempfile.TemporaryFile("w+") as given:
            given.write("\n".join(names))
            given.seek(0)
            return answer([compiled(self._build), self._seconds, self._threads], self._seconds + PATIENCE_S,
                          given=given)

    def _peer(self, name, what, seconds):
        if name in PREPARED and name not in self.prepare_s:
            took = self._run(name, "prepare", len(photos.files(self._images)) / _LEAST_RATE)
            if isinstance(took, str):
                return f"its own format was not made: {took}"
            self.prepare_s[name] = took
        return self._run(name, what, seconds)

    def _run(self, name, what, seconds):
        env = {**os.environ, "PYTHONPATH": str(HERE.parent), "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "",
               "TF_CPP_MIN_LOG_LEVEL": "3", "RAY_USAGE_STATS_ENABLED": "0"}
        folder = pathlib.Path(self._prepared.name, name) if self._prepared else ""
        argv = [self._python(name), "-m", "peers.measured", name, self._images, self._seconds, self._threads, folder,
                what]
        return answer(argv, seconds + PATIENCE_S, env)


def named(text, others=()):
    """Returns the peers of --peers: all, limit, none, or names. Raises ValueError for an unknown name."""
    known = list(dict.fromkeys([*PEERS, *others]))
    names = {"none": [], LIMIT: [], "all": known}.get(text, text.split(","))
    for name in names:
        if name not in (*known, LIMIT):
            raise ValueError(f"--peers {name}: want limit, all, none, or some of {', '.join(known)}")
    return [name for name in names if name != LIMIT]


def median(values):
    """Returns the median of the rates among `values`; None if there is no rate."""
    numbers = [value for value in values if isinstance(value, (int, float))]
    return statistics.median(numbers) if numbers else None


def line(name, rounds):
    """Returns a line of the table: median, ratio to the yardstick of the same round, and every round."""
    values = [one[name] for one in rounds]
    if median(values) is None:
        return f"{name:24}  absent: {values[0]}"
    ratio = median([one[name] / one[LIMIT] for one in rounds
                    if isinstance(one[name], float) and isinstance(one.get(LIMIT), float)])
    shown = ", ".join(f"{value:.0f}" if isinstance(value, float) else f"none: {value}" for value in values)
    return f"{name:24}{median(values):8.0f}" + (f"{'':8}" if ratio is None else f"{ratio:8.2f}") + f"   {shown}"
