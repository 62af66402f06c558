# SPDX-License-Identifier: Apache-2.0
"""The peers' Python environment: made from tests/bench/requirements.txt, by sections, for the requested peers.

A stamp in the environment records what is complete: a digest of the requirements, and the sections that pip finished.
It is removed while pip works, so an environment without a stamp is incomplete, and is made again; so is one with other
requirements. A section that pip refuses leaves its peers absent, with pip's reason, and is tried again by the next run.
"""

import fcntl
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

REQUIREMENTS = pathlib.Path(__file__).resolve().parents[1] / "requirements.txt"
PYTHON = "/usr/bin/python3"  # Debian's, with headers in python3-dev
STAMP = ".leat-peers"
# Peers with an environment of their own, build/peers-NAME-venv of requirements-NAME.txt.
OWN = ("ffcv", "mosaic")
# Peers that need Debian's packages of deploy/packages/bench-peers.txt.
WITH_DEBIAN = ("spdl", "ffcv")
INSTALL = REQUIREMENTS.parents[2] / "deploy/install-dependencies"
# The program that makes the environment ends with this process, and after an hour, so that it never overlaps a later
# run.
_KEPT = [sys.executable, pathlib.Path(__file__).with_name("keeper.py"), "3600", "1"]
_SECTION = re.compile(r"# peers: (.+)")
_IN_PLACE_OF = {"pillow-simd": "pillow"}  # both have the same modules, so only one is installed


def sections(text):
    """Returns [(peers, requirements)]; the first entry is for all peers: its peers are None."""
    found = [(None, [])]
    for line in map(str.strip, text.splitlines()):
        opened = _SECTION.fullmatch(line)
        if opened:
            found.append((opened[1].split(), []))
        elif line and not line.startswith("#"):
            found[-1][1].append(line)
    return found


class Environment:
    """The environment in `folder`. After install(), `absent` has a reason for each peer that lacks a package."""

    def __init__(self, folder, requirements=REQUIREMENTS, run=subprocess.run):
        self.folder, self.absent, self._run = pathlib.Path(folder), {}, run
        self.python = self.folder / "bin/python"
        text = pathlib.Path(requirements).read_text()
        (_, self._common), *self._sections = sections(text)
        version = run([PYTHON, "--version"], capture_output=True, text=True, check=True).stdout
        self._digest = hashlib.sha256((text + version).encode()).hexdigest()
        self._stamp = self.folder / STAMP

    def install(self, peers):
        """Makes or completes the environment for `peers`. Raises OSError if the disk is full, and then leaves
        nothing."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with open(self.folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be making it
            self._install(peers)

    def _install(self, peers):
        wanted = [lines for names, lines in self._sections if set(names) & set(peers)]
        done = self._installed()
        if all(lines in done for lines in wanted):
            return
        if not done:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._checked([PYTHON, "-m", "venv", self.folder])
        self._stamp.unlink(missing_ok=True)
        for lines in wanted:
            if lines in done:
                continue
            print(f"installing for the peers: {' '.join(lines)}", flush=True)
            begin = time.monotonic()
            reason = self._add(lines, done)
            if reason is None:
                done.append(lines)
                print(f"  {time.monotonic() - begin:.0f} s", flush=True)
                continue
            print(f"  not to be had: {reason}", flush=True)
            for names in (names for names, section in self._sections if section == lines):
                self.absent.update({name: f"pip install {' '.join(lines)}: {reason}" for name in names})
        self._stamp.write_text(json.dumps({"requirements": self._digest, "installed": done}) + "\n")

    def _installed(self):
        """Returns the complete sections; none if the environment has other requirements, or is incomplete."""
        try:
            stamp = json.loads(self._stamp.read_text())
            return stamp["installed"] if stamp["requirements"] == self._digest and self.python.exists() else []
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def _add(self, lines, done):
        """Returns None, or why pip did not install `lines`. Passes installed packages too, so that pip keeps their
        versions."""
        there = [line for section in done for line in section]
        substitutes = [line for line in there + lines if _name(line) in _IN_PLACE_OF]
        rest = [line for line in there + lines if line not in substitutes]
        reason = self._pip("install", *self._common, *rest)
        for line in substitutes:
            reason = reason or self._take_place(line)
        return reason

    def _take_place(self, line):
        """Installs a package over another with the same files; the other stays if this one cannot be built."""
        wheels = self.folder / "wheels"
        reason = self._pip("wheel", "--no-deps", "--wheel-dir", wheels, line)
        reason = reason or self._pip("uninstall", "--yes", _IN_PLACE_OF[_name(line)], _name(line))
        return reason or self._pip("install", "--no-deps", "--find-links", wheels, line)

    def _pip(self, command, *arguments):
        argv = [self.python, "-m", "pip", command, "-q", "--disable-pip-version-check", *arguments]
        done = self._run(_KEPT + argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0:
            return None
        if "No space left on device" in done.stderr:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise OSError(f"{self.folder}: the disk is full, nothing was left there. All peers take 8 GB, torch most")
        return _reason(done.stderr)

    def _checked(self, argv):
        done = self._run(_KEPT + argv, capture_output=True, text=True)
        if done.returncode:
            reason = _reason(done.stdout + done.stderr)
            raise OSError(f"{' '.join(map(str, argv))}: {reason} (want Debian's python3-venv)")


class Environments:
    """The environments of all peers, in the folder `build`. `absent` is as in Environment."""

    def __init__(self, build, run=subprocess.run):
        self._build, self._run, self.absent = pathlib.Path(build), run, {}

    def python(self, peer):
        return self._folder(peer if peer in OWN else None) / "bin/python"

    def install(self, peers):
        """Makes the environments. Raises OSError if the disk is full."""
        peers = self._with_debian(peers)
        for own in (None, *OWN):
            file = REQUIREMENTS.with_name(f"requirements-{own}.txt") if own else REQUIREMENTS
            one = Environment(self._folder(own), file, self._run)
            one.install([peer for peer in peers if own == (peer if peer in OWN else None)])
            self.absent.update(one.absent)

    def _folder(self, own):
        return self._build / (f"peers-{own}-venv" if own else "peers-venv")

    def _with_debian(self, peers):
        """Returns those of `peers` that have Debian's packages."""
        wanting = [peer for peer in peers if peer in WITH_DEBIAN]
        if not wanting:
            return peers
        done = self._run([INSTALL, "bench-peers"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0:
            return peers
        self.absent.update({name: f"Debian's packages: {_reason(done.stdout + done.stderr)}" for name in wanting})
        return [peer for peer in peers if peer not in wanting]


def _name(line):
    return re.match(r"[\w.-]+", line)[0]


def _reason(output):
    """Returns the most informative line: pip's first error, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror:|\bERROR:", line)]
    reason = [*errors, *lines[-1:], "no output"][0][:200]
    return reason + ("; is there a network?" if "from versions: none" in reason else "")
