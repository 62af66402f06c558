# SPDX-License-Identifier: Apache-2.0
"""Builds the Python package: the hooks that pip and build call (PEP 517). Needs only Arrow's headers from PyPI.

Environment: LEAT_BUILD_DIR names a build tree to use instead of build/release; LEAT_PARQUET=OFF builds without Parquet;
LEAT_BUILD_JOBS is the number of compilers at a time.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable

from leat_backend import needs, sdist, tree, wheel
from leat_backend.errors import BuildError


def _said(work: Callable[[], object]) -> object:
    """Prints a BuildError as one line, without a traceback."""
    try:
        return work()
    except BuildError as error:
        sys.exit(f"leat-data: {error}")


def get_requires_for_build_wheel(config_settings: dict | None = None) -> list[str]:
    _said(lambda: needs.check(tree.folder()))
    return tree.requirements()


def get_requires_for_build_sdist(config_settings: dict | None = None) -> list[str]:
    return []


def build_wheel(wheel_directory: str, config_settings: dict | None = None,
                metadata_directory: str | None = None) -> str:
    return str(_said(lambda: wheel.write(tree.build(), pathlib.Path(wheel_directory)).name))


def build_sdist(sdist_directory: str, config_settings: dict | None = None) -> str:
    return str(_said(lambda: sdist.write(pathlib.Path(sdist_directory)).name))
