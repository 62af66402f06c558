# SPDX-License-Identifier: Apache-2.0
"""The operators, as functions from nodes to nodes, for use in a `leat.pipeline`.

They are made of the library's own table when this module is imported, and a few
(mixup, cutmix) of several operators; `help(leat.fn.decode)` shows one,
`dir(leat.fn)` lists them.
"""

from __future__ import annotations

import types
from typing import Any, NoReturn

from leat._graphs import compositions as _compositions, operators as _operators
from leat._graphs.graph import Node


class _Namespace(types.SimpleNamespace):
    """A group of operators, such as `fn.readers`."""

    def __getattr__(self, name: str) -> NoReturn:
        known = [other for other in vars(self) if not other.startswith("_")]
        raise AttributeError(f"leat.fn.{self._name} has no operator {name!r}{_operators.nearest(name, known)}")


def _install() -> list[str]:
    names = {"Node"}
    for info in _operators.table():
        group, _, name = info.name.rpartition(".")
        function = _operators.make_function(info)
        if group:
            namespace = globals().setdefault(group, _Namespace(_name=group, __doc__=f"The {group}."))
            setattr(namespace, name, function)
        else:
            globals()[name] = function
        names.add(group or name)
    for composition in _compositions.ALL:
        globals()[composition.__name__] = composition
        names.add(composition.__name__)
    return sorted(names)


def __getattr__(name: str) -> Any:
    known = [info.name for info in _operators.table()]
    raise AttributeError(f"leat.fn has no operator {name!r}{_operators.nearest(name, known)}")


__all__ = _install()
