# SPDX-License-Identifier: Apache-2.0
"""Writes fn.pyi from the library's operator table: `python -m leat._graphs.stubs > src/leat/fn.pyi`."""

from __future__ import annotations

import inspect
import textwrap

from leat._graphs import operators

_HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
# Written by `python -m leat._graphs.stubs`; a test compares it with the library.
from collections.abc import Sequence
from typing import Literal

from leat._graphs.compositions import cutmix as cutmix
from leat._graphs.compositions import mixup as mixup
from leat._graphs.graph import Node as Node
'''


def _parameter(info: operators.OperatorInfo) -> str:
    signature = inspect.signature(operators.make_function(info))
    parts = []
    keyword_only = False
    positional = len(info.input_names)
    for i, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only and not info.variadic:
            keyword_only = True
            parts.append("*")
        annotation = info.input_annotation if i < positional else parameter.annotation
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        parts.append(f"{stars}{parameter.name}: {annotation}{default}")
        if i == positional - 1 and not stars:
            parts.append("/")
    return ", ".join(parts)


def _function(info: operators.OperatorInfo) -> str:
    result = inspect.signature(operators.make_function(info)).return_annotation
    name = info.name.rpartition(".")[2]
    body = textwrap.indent(f'"""{info.docstring()}\n"""', "    ")
    return f"def {name}({_parameter(info)}) -> {result}:\n{body}\n"


def text() -> str:
    """Returns the whole stub file."""
    groups: dict[str, list[str]] = {}
    parts = [_HEAD]
    for info in operators.table():
        group, _, _ = info.name.rpartition(".")
        if group:
            groups.setdefault(group, []).append("@staticmethod\n" + _function(info))
        else:
            parts.append(_function(info))
    for group, functions in groups.items():
        parts.append(f"class {group}:\n" + textwrap.indent("\n".join(functions), "    "))
    return "\n".join(part.rstrip() + "\n" for part in parts)


if __name__ == "__main__":
    print(text(), end="")
