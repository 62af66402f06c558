# SPDX-License-Identifier: Apache-2.0
"""Reports what in a script for DALI will not work on Leat, without running it.

    python -m leat.dali.check SCRIPT.py…

Each finding is one line: the file and line, the name as in DALI, the reason, and what to write instead. The exit status
is 1 if there are any findings, and 2 if a script cannot be read. Names and arguments are looked up through the script's
imports. Errors that depend on data, such as the shapes of samples, are reported when the pipeline is built. `--refused`
prints the table of docs/guide/move-from-dali-refused.md.
"""

from __future__ import annotations

import argparse
import ast
import enum
import importlib
import inspect
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from leat._graphs.operators import nearest
from leat.dali import _refused, types
from leat.dali._definition import PIPELINE_ARGUMENTS, pipeline_def
from leat.errors import Error, one_line

# A bound, since a script is read whole.
_MOST_BYTES = 4 << 20
_ROOTS = ("nvidia.dali", "leat.dali")


class Finding(NamedTuple):
    """A use of DALI that will not work."""

    line: int
    text: str


def _after_root(name: str) -> str | None:
    """Returns what follows "nvidia.dali" or "leat.dali", "" if nothing does; None: the name is another module's."""
    for root in _ROOTS:
        if name == root or name.startswith(f"{root}."):
            return name[len(root) + 1 :]
    return None


class _Script:
    """The names in a script that refer to DALI."""

    def __init__(self, tree: ast.AST) -> None:
        self._names: dict[str, str] = {}  # a name in the script: its full name
        self.imports: list[tuple[int, str]] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._import(node)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._import_from(node, node.module)

    def _import(self, node: ast.Import) -> None:
        for each in node.names:
            if _after_root(each.name) is not None:
                self.imports.append((node.lineno, each.name))
            if each.asname:
                self._names[each.asname] = each.name
            else:
                self._names[each.name.partition(".")[0]] = each.name.partition(".")[0]

    def _import_from(self, node: ast.ImportFrom, module: str) -> None:
        for each in node.names:
            full = f"{module}.{each.name}"
            self._names[each.asname or each.name] = full
            if each.name != "*" and _after_root(full) is not None:
                self.imports.append((node.lineno, full))

    def name_of(self, node: ast.AST) -> str | None:
        """Returns what an expression names below DALI's root; None: it does not refer to DALI."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._names:
            return None
        return _after_root(".".join([self._names[node.id], *reversed(parts)]))


def _exported(module: str) -> set[str] | None:
    """Returns the names in `__all__` of a module of leat.dali without importing it; None: there is no such module."""
    base = pathlib.Path(__file__).parent.joinpath(*module.split("."))
    path = next((each for each in (base.with_suffix(".py"), base / "__init__.py") if each.is_file()), None)
    if path is None:
        return None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(each, "id", "") for each in node.targets] == ["__all__"]:
            return set(ast.literal_eval(node.value))
    return {each.name for each in tree.body if isinstance(each, (ast.FunctionDef, ast.ClassDef))}


def _in_plugin(name: str) -> str | None:
    """Returns why a name of a plugin will not work. A plugin is not imported, since it needs its framework."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        names = _exported(".".join(parts[:end]))
        if names is None:
            continue
        if end == len(parts) or parts[end] in names:
            return None
        return f"leat.dali.{'.'.join(parts[:end])} has no {parts[end]!r}{nearest(parts[end], names)}"
    return f"leat.dali has no {name}"


def _looked_up(name: str) -> tuple[Any, str | None]:
    """Returns the object of a name in leat.dali, and why it will not work."""
    refusal = _refused.found(name)
    if refusal is not None:
        return None, refusal.of(name)
    if name == "*" or not name:
        return None, None
    if name.split(".")[0] == "plugin":
        return None, _in_plugin(name)
    value: Any = importlib.import_module("leat.dali")
    at = "leat.dali"
    for part in name.split("."):
        if part.startswith("__"):
            return None, None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                value = getattr(value, part)
        except (AttributeError, Error) as error:
            if inspect.isclass(value):
                known = [each for each in dir(value) if not each.startswith("_")]
                return None, f"{at} has no {part!r}{nearest(part, known)}"
            if not inspect.ismodule(value):  # an attribute of an object that exists only in a run
                return None, None
            try:
                value = importlib.import_module(f"{at}.{part}")
            except ImportError:
                known = [each for each in dir(value) if not each.startswith("_")]
                plain = str(error).startswith("module ")  # Python's own message
                return None, f"{at} has no {part!r}{nearest(part, known)}" if plain else str(error)
        at = f"{at}.{part}"
    return value, None


def _is_default(node: ast.expr, parameter: inspect.Parameter) -> bool:
    """True if an argument is None, or equal to the default. A value that is not a constant is not."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return value is None or bool(value == parameter.default)


def _of_call(script: _Script, node: ast.Call, name: str, function: Callable[..., Any]) -> Iterator[str]:
    """Yields a message for each argument of a call that leat.dali refuses."""
    own = getattr(function, "_function", function)  # the function of a class of ops
    where = f"fn.{own.__qualname__}"
    parameters = inspect.signature(own).parameters
    for keyword in node.keywords:
        if keyword.arg is None:
            continue
        if keyword.arg not in parameters:
            yield f"{name} has no argument {keyword.arg!r}{nearest(keyword.arg, parameters)}"
            continue
        refusal = _refused.ARGUMENTS.get((where, keyword.arg))
        if refusal is not None and not _is_default(keyword.value, parameters[keyword.arg]):
            yield refusal.of(f"{name}: {keyword.arg} = {ast.unparse(keyword.value):.60}")
        yield from _of_word(script, name, where, keyword.arg, keyword.value)
    if where == "fn.random_resized_crop":
        words = {each.arg: script.name_of(each.value) for each in node.keywords}
        main = words.get("interp_type", "types.INTERP_LINEAR")
        for argument in ("min_filter", "mag_filter"):
            word = words.get(argument)
            if main is not None and word is not None and _looked_up(word)[0] is not _looked_up(main)[0]:
                yield f"{name}: {argument} = {word}; Leat takes one filter here, interp_type"


def _of_plain_call(node: ast.Call, name: str, value: Any) -> Iterator[str]:
    """Yields a message for each argument by name that a function or class outside of fn and ops does not have."""
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return
    parameters = inspect.signature(value).parameters
    known = list(parameters)
    if value is pipeline_def:
        known += PIPELINE_ARGUMENTS
    elif any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in known:
            yield f"{name} has no argument {keyword.arg!r}{nearest(keyword.arg, known)}"


def _of_word(script: _Script, name: str, where: str, argument: str, value: ast.expr) -> Iterator[str]:
    """Yields a message for a constant of DALI's types, or each of a list of them, that the argument does not take."""
    if isinstance(value, (ast.List, ast.Tuple)):
        for each in value.elts:
            yield from _of_word(script, name, where, argument, each)
        return
    wanted = script.name_of(value)
    word = _looked_up(wanted)[0] if wanted is not None and wanted.startswith("types.") else None
    if word is not None and where != "fn.external_source":
        reason = _refused_word(f"{name}: {argument}", where, argument, word)
        if reason is not None:
            yield reason


# Types and filters of DALI, by name, that an operator refuses although other operators take them for the argument.
_COMPUTED = ("UINT8", "INT32", "INT64", "FLOAT16", "FLOAT")
_TAKEN: dict[tuple[str, str], tuple[str, ...]] = {
    **{(f"fn.{each}", "image_type"): ("RGB",) for each in ("hue", "saturation", "color_twist")},
    ("fn.peek_image_shape", "image_type"): ("RGB", "BGR", "YCbCr"),
    **{
        (f"fn.{each}", "dtype"): _COMPUTED
        for each in "brightness brightness_contrast color_twist contrast hsv hue normalize saturation".split()
    },
    **{(f"fn.{each}", "dtype"): ("UINT8",) for each in ("resize", "random_resized_crop", "resize_crop_mirror")},
    **{
        (f"fn.{each}", "interp_type"): ("INTERP_NN", "INTERP_LINEAR", "INTERP_TRIANGULAR")
        for each in ("rotate", "warp_affine")
    },
}


def _refused_word(says: str, where: str, argument: str, word: Any) -> str | None:
    """Returns why a constant of DALI's types is refused for an argument; None: it is taken."""
    try:
        if argument in ("dtype", "dtypes"):
            types.name_of(says, word, types.computed_by(where))
        elif argument in ("image_type", "output_type"):
            types.colours_of(says, word)
        elif argument in ("interp_type", "min_filter", "mag_filter"):
            types.filter_of(says, word)
    except Error as error:
        return str(error)
    taken = _TAKEN.get((where, argument))
    if taken is not None and isinstance(word, enum.Enum) and word.name not in taken:
        return f"{says} = {word}; expected {', '.join(f'types.{each}' for each in taken)}"
    return None


def _of_constant(script: _Script, node: ast.AST) -> str | None:
    """Returns why a call of types.Constant, or of a method of its result, will not work."""
    call = node.value if isinstance(node, ast.Attribute) else node
    name = script.name_of(call.func) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or name not in ("types.Constant", "types.ScalarConstant"):
        return None
    if isinstance(node, ast.Attribute):
        known = dir(types.ScalarConstant)
        if node.attr not in known:
            return f"{name}() has no {node.attr!r}{nearest(node.attr, known)}"
        word = types.cast_of(node.attr)
        return None if word is None else _refused_word(f"{name}().{node.attr}()", name, "dtype", word)
    given = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "dtype")]
    return next((text for each in given for text in _of_word(script, name, name, "dtype", each)), None)


def _is_operator(value: Any) -> bool:
    module = getattr(getattr(value, "_function", value), "__module__", "")
    return module in ("leat.dali.fn", "leat.dali._external_source")


def findings(text: str) -> list[Finding]:
    """Returns what in a script will not work, in the order of its lines.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not a Python script.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    script = _Script(tree)
    found: set[Finding] = set()
    for line, full in script.imports:
        reason = _looked_up(_after_root(full) or "")[1]
        if reason is not None:
            found.add(Finding(line, reason))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        reason = _of_constant(script, node)
        if reason is not None:
            found.add(Finding(node.lineno, reason))
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            name = script.name_of(node)
            reason = None if name is None else _looked_up(name)[1]
            if reason is not None:
                found.add(Finding(node.lineno, reason))
        elif isinstance(node, ast.Call):
            name = script.name_of(node.func)
            value = None if name is None else _looked_up(name)[0]
            if name is not None:
                plain = _of_plain_call(node, name, value)
                reasons = _of_call(script, node, name, value) if _is_operator(value) else plain
                found |= {Finding(node.lineno, reason) for reason in reasons}
    return sorted(found)


def _read(path: str) -> str:
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES} bytes; expected a script")
    return data.decode("utf-8-sig")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m leat.dali.check", description="Reports the parts of a DALI script that will not work on Leat."
    )
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT.py")
    parser.add_argument("--refused", action="store_true", help="print the table of what is refused")
    options = parser.parse_args(arguments)
    if options.refused:
        print(_refused.table(), end="")
        return 0
    if not options.scripts:
        parser.error("there is no script; expected at least one")
    status = 0
    for path in options.scripts:
        name = one_line(path)
        try:
            found = findings(_read(path))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            print(f"{name}: cannot be read: {one_line(str(error))}", file=sys.stderr)
            status = 2
            continue
        for line, text in found:
            print(f"{name}:{line}: {one_line(text)}")
        if not found:
            print(f"{name}: nothing was found that will not work")
        status = max(status, 1 if found else 0)
    return status


if __name__ == "__main__":
    sys.exit(main())
