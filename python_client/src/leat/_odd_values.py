# SPDX-License-Identifier: Apache-2.0
"""Errors that Python and NumPy raise of an argument's value, as errors that say the operator and the value."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from leat.errors import Error, InvalidArgument

# What is raised of a value of another kind than is expected.
_RAW = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
_LEAT, _NUMPY = (os.path.dirname(each) + os.sep for each in (__file__, np.__file__))
_OWN_CODE = (_LEAT, _NUMPY, contextmanager.__code__.co_filename, "<")


def _of_arguments(error: Exception) -> bool:
    """Whether it is Python's own, and not one that names an operator, or of a function of the script."""
    if isinstance(error, Error) or str(error).startswith("fn."):
        return False
    frames = traceback.walk_tb(error.__traceback__)
    return all(frame.f_code.co_filename.startswith(_OWN_CODE) for frame, _ in frames)


@contextmanager
def says_values(where: str, given: Mapping[str, Any]) -> Iterator[None]:
    """Makes errors about the values of `given`, which say nothing of them, InvalidArgument of the operator `where`."""
    try:
        yield
    except _RAW as error:
        if not _of_arguments(error):
            raise
        values = ", ".join(f"{key} = {value!r:.60}" for key, value in given.items())
        raise InvalidArgument(f"{where}: {values}: {error}; expected values of other kinds") from error
