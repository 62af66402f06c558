# SPDX-License-Identifier: Apache-2.0
"""Collects the licences of all that the wheel and the bundle contain, from Debian's packages and from wheels.

The build backend and deploy/bundle call it once, while they pack. A file without a known licence raises BuildError, so
nothing is packed without one.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterable

from leat_backend.errors import BuildError

_DOC = pathlib.Path("/usr/share/doc")
_COMMON = pathlib.Path("/usr/share/common-licenses")
# Packages of headers that are compiled into our programs, and of dygraphs, which is a part of one.
HEADERS = ("libboost1.81-dev", "libcli11-dev", "nlohmann-json3-dev", "libspdlog-dev", "libfmt-dev", "libabsl-dev",
            "libgrpc++-dev", "libjs-dygraphs")


def packages_of(paths: Iterable[pathlib.Path]) -> dict[pathlib.Path, str]:
    """Returns the Debian package of each file. It asks once for all, since dpkg reads all its lists for each query."""
    # dpkg may know a file by the name before /lib became a link to /usr/lib.
    names = {path: list(dict.fromkeys((str(path.resolve()), str(path), str(path.resolve()).removeprefix("/usr"),
                                       f"/usr{path}"))) for path in paths}
    owners: dict[str, str] = {}
    if names and shutil.which("dpkg-query") is not None:
        asked = [name for several in names.values() for name in several]
        # Most files have only one of these names there, so the exit status is always 1.
        answer = subprocess.run(["dpkg-query", "-S", *asked], capture_output=True, text=True).stdout
        for line in answer.splitlines():  # "libc6:amd64, other: /path", and "diversion by package from: /path"
            packages, _, name = line.rpartition(": ")
            if packages and not packages.startswith("diversion by "):
                owners[name] = packages.split(",")[0].split(":")[0]
    found = {path: owners[name] for path, several in names.items() for name in reversed(several) if name in owners}
    for path in names:
        if path not in found:
            raise BuildError(f"{path}: no Debian package holds it, so its licence is not known")
    return found


def write_package(package: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes folder/NAME for a Python package, given by its folder in site-packages: the licences in its wheel."""
    found = sorted(file for file in package.parent.glob(f"{package.name}-*.dist-info/**/*")
                   if file.is_file() and re.search(r"licen[cs]e|notice", str(file.relative_to(package.parent)), re.I))
    if not found:
        raise BuildError(f"{package}: its wheel has no licence")
    for file in found:
        target = folder / package.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)


def write(root: pathlib.Path, folder: pathlib.Path, libraries: dict[str, pathlib.Path]) -> None:
    """Writes folder/PACKAGE/copyright for every library, and the common licences that they refer to."""
    packages = set(packages_of(libraries.values()).values())
    referred = set()
    headers = {package for package in HEADERS if (_DOC / package).is_dir()}
    for package in sorted(packages | headers):
        copyright_file = _DOC / package / "copyright"
        if not copyright_file.exists():
            raise BuildError(f"{copyright_file}: not there, so the licence of {package} is not known")
        (folder / package).mkdir(parents=True, exist_ok=True)
        shutil.copy(copyright_file, folder / package / "copyright")
        text = copyright_file.read_text(errors="replace")
        referred |= {name.rstrip(".") for name in re.findall(r"/usr/share/common-licenses/([\w.+-]+)", text)}
    (folder / "common-licenses").mkdir(parents=True, exist_ok=True)
    for name in sorted(referred):
        if (_COMMON / name).exists():
            shutil.copy(_COMMON / name, folder / "common-licenses" / name)
    (folder / "leat").mkdir(exist_ok=True)
    shutil.copy(root / "LICENSE", folder / "leat" / "LICENSE")
