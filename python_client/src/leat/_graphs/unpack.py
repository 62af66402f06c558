# SPDX-License-Identifier: Apache-2.0
"""A hint for scripts that pass all outputs of an operator where one of them is expected."""

from __future__ import annotations

from typing import Any


def hint(value: Any) -> str:
    """Returns the end of a message if `value` is the tuple that an operator returns; otherwise an empty text."""
    if not isinstance(value, tuple) or len({id(getattr(each, "_operation", each)) for each in value}) != 1:
        return ""
    if not hasattr(value[0], "_operation"):
        return ""
    call = f"fn.{value[0].op}(…)"
    write = f"(x,) = {call}" if len(value) == 1 else f"{', '.join('xyz'[: len(value)])} = {call}"
    if len(value) > 3:
        write = f"{call}[0]"
    return f"; it is a tuple of {len(value)}: write `{write}`"
