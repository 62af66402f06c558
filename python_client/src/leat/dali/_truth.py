# SPDX-License-Identifier: Apache-2.0
"""The advice for scripts that use a node as a truth value."""

from __future__ import annotations

import sys
import types

from leat._graphs.graph import user_frame
from leat.dali import _current

# Prefixes of the rewriter's own functions, and of Python's names for lambdas and comprehensions.
_PARTS = ("_leat_", "<")


def _holds(code: types.CodeType, part: types.CodeType) -> bool:
    """True if `part` is `code`, or is inside it and is not a function of its own."""
    if code is part:
        return True
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType) and each.co_name.startswith(_PARTS))
    return any(_holds(each, part) for each in inner)


def way_out() -> str:
    """Returns what chooses per sample at the line of the nearest caller outside this package."""
    pipeline = _current.pipeline()
    rewritten = None if pipeline is None else pipeline._rewritten
    if rewritten is None:
        return (
            "With pipeline_def(enable_conditionals=True), `if` in the pipeline's own function chooses for each sample"
        )
    frame = user_frame(sys._getframe(1))
    if frame is None or _holds(rewritten, frame.f_code):
        return (
            "An `if` that returns, breaks or continues, a while, an assert and a chained comparison stay Python's own: "
            "assign in both branches, and return after the `if`"
        )
    asking = getattr(frame.f_code, "co_qualname", frame.f_code.co_name).rpartition("<locals>.")[2]
    return (
        f"enable_conditionals=True rewrites the pipeline's own function alone, which is {rewritten.co_name}, and "
        f"this `if` is in {asking}: let {asking} return both values, and choose between them in {rewritten.co_name}"
    )
