# SPDX-License-Identifier: Apache-2.0
"""Turns errors that Python and NumPy raise about an argument's value into errors that name the operator and value."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from leat._graphs.operators import shown
from leat.errors import Error, InvalidArgument

# The exceptions that Python raises for a value of an unexpected kind.
_RAW = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
_LEAT, _NUMPY = (os.path.dirname(each) + os.sep for each in (os.path.dirname(__file__), np.__file__))
_OWN_CODE = (_LEAT, _NUMPY, contextmanager.__code__.co_filename, "<")


def _of_arguments(error: Exception) -> bool:
    """True if Python or NumPy raised it, and it names no operator and comes from no function of the script."""
    if isinstance(error, Error) or str(error).startswith("fn."):
        return False
    frames = traceback.walk_tb(error.__traceback__)
    return all(frame.f_code.co_filename.startswith(_OWN_CODE) for frame, _ in frames)


@contextmanager
def says_values(where: str, given: Mapping[str, Any]) -> Iterator[None]:
    """Turns errors about the values of `given` that do not name them into InvalidArgument of the operator `where`."""
    try:
        yield
    except _RAW as error:
        if not _of_arguments(error):
            raise
        values = ", ".join(f"{key} = {shown(value):.60}" for key, value in given.items())
        raise InvalidArgument(f"{where}: {values}: {error}; expected values of other kinds") from error
