# SPDX-License-Identifier: Apache-2.0
"""Imported before JAX by modules that need it: says what to install if JAX is missing or too old."""

from __future__ import annotations

import re

OLDEST = (0, 4, 30)
_WANTED = f"leat.jax needs JAX {'.'.join(map(str, OLDEST))} or later"

try:
    import jax
except ModuleNotFoundError as error:
    if error.name != "jax":  # jax is installed, but one of its own imports is missing
        raise
    raise ImportError(f"{_WANTED}: pip install 'leat-data[jax]'") from error

# Parsed from the text: the first of these releases had no __version_info__.
_FOUND = tuple(map(int, re.findall(r"\d+", jax.__version__)[:3]))
if _FOUND < OLDEST:
    raise ImportError(f"{_WANTED}, and this is {jax.__version__}: pip install --upgrade jax jaxlib")
