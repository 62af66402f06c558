# SPDX-License-Identifier: Apache-2.0
"""The commands of the wheel: each replaces this process by the program of its name."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def _run(program: str) -> NoReturn:
    folder = os.environ.get("LEAT_NATIVE_DIR") or pathlib.Path(__file__).parents[1] / "_native"
    path = pathlib.Path(folder) / program
    try:
        os.execv(path, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{program}: cannot run {path}: {error.strerror}")


def leat() -> NoReturn:
    """The `leat` command."""
    _run("leat")


def coordinator() -> NoReturn:
    """The `leat-coordinator` command."""
    _run("leat-coordinator")


def worker() -> NoReturn:
    """The `leat-worker` command."""
    _run("leat-worker")
