# SPDX-License-Identifier: Apache-2.0
"""Checks that the machine has everything that a build needs; reports what is missing in one line before it begins."""

from __future__ import annotations

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

from leat_backend.errors import BuildError
from leat_backend.wheel import ROOT

_INSTALL = "deploy/install-dependencies build"
_PROGRAMS = ("c++", "cc", "cmake", "ninja", "objdump", "patchelf", "protoc", "grpc_cpp_plugin")
_CMAKE = (3, 25)  # presets of version 6


def _debian_packages() -> list[str]:
    """Returns the packages that deploy/ lists for a build and this Debian 12 lacks; none on another system."""
    release = pathlib.Path("/etc/os-release")
    listed = ROOT / "deploy/packages/build.txt"
    if not release.is_file() or not listed.is_file() or shutil.which("dpkg-query") is None:
        return []
    if not {"ID=debian", 'VERSION_ID="12"'} <= set(release.read_text().splitlines()):
        return []
    wanted = re.findall(r"^([a-z0-9][a-z0-9.+-]+)", listed.read_text(), re.M)
    done = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *wanted], capture_output=True,
                          text=True)
    there = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    return [package for package in wanted if package not in there]


def check(tree: pathlib.Path) -> None:
    if sys.version_info < (3, 10):  # pip would report it only after the build
        raise BuildError(f"this is Python {platform.python_version()} ({sys.executable}): want 3.10 or later")
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        raise BuildError(f"Leat runs on Linux with glibc, not on {sys.platform} {platform.libc_ver()[0]}".rstrip())
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    packages = _debian_packages()
    if missing or packages:
        what = " ".join(packages) if packages else f"the programs {' '.join(missing)}"
        raise BuildError(f"missing here: {what}; install them with: {ROOT}/{_INSTALL}")
    said = subprocess.run(["cmake", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    if not found or (int(found[1]), int(found[2])) < _CMAKE:
        version = said.partition("\n")[0]
        raise BuildError(f"{shutil.which('cmake')} is {version}: want 3.25 or later (pip install cmake)")
    place = tree
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        raise BuildError(f"{place} cannot be written to: set LEAT_BUILD_DIR to a folder for the build")


def of_cmake(log: str) -> str:
    """Returns what is missing, from CMake's output when it fails; "" for any other error."""
    # Remarks of CMake before the error do not concern what is missing.
    error = log[log.find("CMake Error"):] if "CMake Error" in log else ""
    found = re.search(r'provided by "([\w-]+)"|Could NOT find ([\w-]+)|(\w+) was not found', error)
    if not found:
        return ""
    name = next(group for group in found.groups() if group)
    return f"CMake finds no {name}: install its development package (on Debian 12: {ROOT}/{_INSTALL})"
