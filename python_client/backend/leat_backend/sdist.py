# SPDX-License-Identifier: Apache-2.0
"""The source distribution: the repository without its tests, and pyproject.toml at the top, where pip looks."""

from __future__ import annotations

import gzip
import io
import pathlib
import subprocess
import tarfile

from leat_backend import wheel
from leat_backend.errors import BuildError
from leat_backend.wheel import ROOT

_LEFT_OUT = ("tests/", "docs/", ".")


def files() -> list[str]:
    """Returns its files, as paths from the root; BuildError: git does not list the clone's files."""
    if (ROOT / ".git").exists():
        names = _of_the_clone()
    else:  # a source distribution of a source distribution
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        names = [name for name in names if not name.startswith("build/") and name not in ("PKG-INFO", "pyproject.toml")]
    return sorted(name for name in names if not name.startswith(_LEFT_OUT) and (ROOT / name).is_file())


def _of_the_clone() -> list[str]:
    """Returns the clone's files that git does not ignore."""
    command = ["git", "-C", str(ROOT), "ls-files", "-coz", "--exclude-standard"]  # -z: without it some names are quoted
    try:
        listed = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise BuildError("no git here, which says what files a clone has: apt-get install git") from None
    if listed.returncode != 0:
        raise BuildError(f"git cannot list the files of {ROOT}: {listed.stderr.strip()}")
    return listed.stdout.split("\0")[:-1]


def write(folder: pathlib.Path) -> pathlib.Path:
    top = wheel.stem()
    pyproject = (ROOT / "python_client/pyproject.toml").read_text()
    pyproject = pyproject.replace('backend-path = ["backend"]', 'backend-path = ["python_client/backend"]')
    pyproject = pyproject.replace('readme = "README.md"', 'readme = "python_client/README.md"')
    texts = {"pyproject.toml": pyproject, "PKG-INFO": wheel.metadata([], [])}
    out = folder / f"{top}.tar.gz"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data, mode in [
                *((name, text.encode(), 0o644) for name, text in texts.items()),
                *((n, (ROOT / n).read_bytes(), 0o755 if (ROOT / n).stat().st_mode & 0o100 else 0o644)
                  for n in files())]:
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    out.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return out
