# SPDX-License-Identifier: Apache-2.0
"""The licences of what the wheel and the bundle hold, as Debian's packages state them."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

from leat_backend.errors import BuildError

_DOC = pathlib.Path("/usr/share/doc")
_COMMON = pathlib.Path("/usr/share/common-licenses")
# Headers that are compiled into our programs.
_HEADERS = ("libcli11-dev", "nlohmann-json3-dev", "libspdlog-dev", "libfmt-dev", "libabsl-dev", "libgrpc++-dev")


def package_of(path: pathlib.Path) -> str:
    """The Debian package that holds a file."""
    # dpkg may know it by the name before /lib became a link to /usr/lib.
    for name in dict.fromkeys((str(path.resolve()), str(path), str(path.resolve()).removeprefix("/usr"),
                               f"/usr{path}")):
        if shutil.which("dpkg-query") is None:
            break
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise BuildError(f"{path}: no Debian package holds it, so its licence is not known")


def write_package(package: pathlib.Path, folder: pathlib.Path) -> None:
    """folder/NAME for a Python package, given by its folder in site-packages: what its wheel says of licences."""
    found = sorted(file for file in package.parent.glob(f"{package.name}-*.dist-info/**/*")
                   if file.is_file() and re.search(r"licen[cs]e|notice", str(file.relative_to(package.parent)), re.I))
    if not found:
        raise BuildError(f"{package}: its wheel has no licence")
    for file in found:
        target = folder / package.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)


def write(root: pathlib.Path, folder: pathlib.Path, libraries: dict[str, pathlib.Path]) -> None:
    """folder/PACKAGE/copyright for every library, and the common licences that they refer to."""
    packages = {package_of(path) for path in libraries.values()}
    referred = set()
    headers = {package for package in _HEADERS if (_DOC / package).is_dir()}
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
