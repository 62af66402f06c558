# SPDX-License-Identifier: Apache-2.0
"""Checks that no other project's package `leat` is installed: PyPI has one, which is no part of this project.

Both install into the folder leat/ of site-packages, so the one that was installed last has overwritten the other.
"""

from __future__ import annotations

import os
import sys

_ADVICE = "pip uninstall leat leat-data, then pip install leat-data"


def _distributions(folder: str) -> list[str]:
    """Returns the distributions named leat that are installed in a folder of sys.path: leat-0.1.1.dist-info."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    endings = (".dist-info", ".egg-info")
    return [name for name in names if name.startswith(("leat-", "leat.")) and name.endswith(endings)]


def check(ours: str) -> None:
    """Raises ImportError if another project's `leat` is installed. `ours`: the folder that holds our leat/.

    Looks only into folders of sys.path that have a leat/: a few system calls.
    """
    package = sys.modules.get("leat")
    first = getattr(package, "__file__", None)
    if first and not hasattr(package, "_OF_LEAT_DATA"):
        raise ImportError(
            f"{first!r} is another project's package, and files of leat-data are among its own: {_ADVICE}"
        )
    for folder in dict.fromkeys((ours, *sys.path)):
        if os.path.isdir(os.path.join(folder, "leat")):
            for name in _distributions(folder):
                raise ImportError(
                    f"another project's package `leat` is installed in {folder or '.'!r} ({name!r}), which has the "
                    f"same import name as leat-data: {_ADVICE}")
