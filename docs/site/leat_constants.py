# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: numbers of pages that are constants of the code.

{constant}`core/plan/job.h:kMaxBatch` is that constant's value, "1,048,576". If its name has Bytes in it the value has a
unit, "64 MiB", unless the text ends with |plain. Large powers of two are written as such.
"""

import pathlib
import re

from docutils import nodes

ROOT = pathlib.Path(__file__).resolve().parents[2]
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def value_of(path, name):
    """Returns the value of a constant that is defined by an expression of numbers; None: there is no such one."""
    text = (ROOT / path).read_text(encoding="utf-8")
    found = re.search(rf"\b{name}\s*=\s*([^;,]+)[;,]", text)
    if not found:
        return None
    expression = re.sub(r"\b\w+\{(\d+)\}", r"\1", found[1].replace("'", ""))
    expression = re.sub(r"\b(0x[0-9A-Fa-f]+|\d+)[uUlL]+\b", r"\1", expression)
    if not re.fullmatch(r"[\d\s()<*+\-xXA-Fa-f]+", expression):
        return None
    return eval(expression, {"__builtins__": {}})


def shown(value, name, plain):
    """Returns the value as text."""
    if not plain and "bytes" in name.lower():
        unit = 0
        while value >= 1024 and value * 2 % 1024 == 0 and unit + 1 < len(_UNITS):
            value, unit = value / 1024, unit + 1
        return f"{value:g} {_UNITS[unit]}"
    if value >= 1 << 40 and value & (value - 1) == 0:
        return "2" + str(value.bit_length() - 1).translate(_SUPERSCRIPT)
    return f"{value:,}"


def constant(role, rawtext, text, lineno, inliner, options=None, content=()):
    """Implements the role."""
    place, _, plain = text.partition("|")
    path, _, name = place.partition(":")
    value = value_of(path, name) if (ROOT / path).is_file() else None
    if value is None:
        message = inliner.reporter.error(f"{place}: there is no such constant", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    inliner.document.settings.env.note_dependency(str(ROOT / path))
    return [nodes.Text(shown(value, name, plain))], []


def setup(app):
    app.add_role("constant", constant)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
