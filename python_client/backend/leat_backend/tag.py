# SPDX-License-Identifier: Apache-2.0
"""The platform tag of a wheel: computed from the versions of symbols that its files need.

A tag promises a glibc. libstdc++ also comes from the machine and has no tag of its own. So each version of it counts as
the first glibc whose distributions all have it, as in the manylinux policies of auditwheel.
"""

from __future__ import annotations

import pathlib
import platform
import re

from leat_backend import elf
from leat_backend.errors import BuildError

# Newest symbols of libstdc++, libgcc and the C++ ABI -> the first glibc that comes with them.
_CAME_WITH = {
    "GLIBCXX": [((3, 4, 24), (2, 27)), ((3, 4, 25), (2, 28)), ((3, 4, 28), (2, 31)), ((3, 4, 29), (2, 34)),
                ((3, 4, 30), (2, 35)), ((3, 4, 32), (2, 38)), ((3, 4, 33), (2, 39)), ((3, 4, 34), (2, 41))],
    "CXXABI": [((1, 3, 11), (2, 28)), ((1, 3, 12), (2, 31)), ((1, 3, 13), (2, 35)), ((1, 3, 14), (2, 38)),
               ((1, 3, 15), (2, 39))],
    "GCC": [((8, 0, 0), (2, 28)), ((9, 0, 0), (2, 31)), ((12, 0, 0), (2, 35)), ((13, 0, 0), (2, 38)),
            ((14, 0, 0), (2, 39))],
}
_OLDEST = (2, 17)  # manylinux2014


def _glibc_of(version: str, file: pathlib.Path) -> tuple[int, ...]:
    if version == "GLIBC_ABI_DT_RELR":
        return (2, 36)
    match = re.match(r"^(GLIBC|GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)*)$", version)
    if not match:
        return _OLDEST  # a symbol of a library in the wheel
    number = tuple(int(part) for part in match[2].split("."))
    if match[1] == "GLIBC":
        return number[:2]
    for newest, glibc in _CAME_WITH[match[1]]:
        if number <= newest:
            return glibc
    raise BuildError(f"{file.name} needs {version}: no glibc is known that comes with it (leat_backend/tag.py)")


def glibc(files: list[pathlib.Path], with_runtime: bool = True) -> tuple[tuple[int, ...], str]:
    """Returns the glibc that all of these ELF files run with, and the reason: "leat-worker needs GLIBC_2.36".

    `with_runtime`: they include libstdc++ and libgcc.
    """
    newest, why = _OLDEST, ""
    for file in files:
        for version in sorted(elf.needs(file).versions):
            if not with_runtime and not version.startswith("GLIBC_"):
                continue
            wanted = _glibc_of(version, file)
            if wanted > newest:
                newest, why = wanted, f"{file.name} needs {version}"
    return newest, why


def platform_tag(files: list[pathlib.Path]) -> str:
    """Returns the platform tag that these files need, as manylinux_2_36_x86_64."""
    (major, minor), _ = glibc(files)
    return f"manylinux_{major}_{minor}_{platform.machine()}"
