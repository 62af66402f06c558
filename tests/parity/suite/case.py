# SPDX-License-Identifier: Apache-2.0
"""Runs cases of one file of DALI's tests in this process; count.py starts it, and ends it if a case takes too long.

    case.py LIBRARY TESTS FILE MOST FIRST DESCRIPTOR

LIBRARY is leat.dali or nvidia.dali, TESTS the folder of the tests, FILE one of them below it, MOST how many cases of a
function are run, spread evenly over all (0: all). Cases before number FIRST were run by an earlier process. Writes
lines of JSON to the file descriptor: the number of cases, the beginning of each case, and its outcome.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import pathlib
import sys
import traceback
import unittest
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import stand_ins


# Names of cases for other frameworks, which are not run: Leat has no plugin for them.
_OTHERS = {"mxnet", "gluon", "paddle", "cupy", "numba", "tensorflow", "tf"}


class Case(NamedTuple):
    """One call of a test function.

    Attributes:
        name: the function's name, and the number of the call among all of that function.
        call: makes the call.
        arguments: the call's arguments, as a text.
        words: the marks of the function, such as "pytorch", and the words of its name.
    """

    name: str
    call: Callable[[], Any]
    arguments: str
    words: list[str]


def _words(name: str, *functions: Any) -> list[str]:
    """Returns the marks of the functions, and the words of the test's name."""
    marks = {mark for each in functions for mark, value in getattr(each, "__dict__", {}).items() if value is True}
    return sorted({mark for mark in marks if not mark.startswith("_")} | set(name.split("_")))


def _with_setup(function: Any, arguments: Any) -> Callable[[], Any]:
    """Returns the call, between the functions that `with_setup` names."""

    def nothing() -> None:
        pass

    def call() -> Any:
        (getattr(function, "setup", None) or nothing)()
        try:
            return function(*arguments)
        finally:
            (getattr(function, "teardown", None) or nothing)()

    return call


def _is_generator(function: Any) -> bool:
    return inspect.isgeneratorfunction(inspect.unwrap(function))


def _calls(function: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """Returns the function, or what it yields, with the arguments of each call."""
    given = getattr(function, "paramList", None)
    sets = [()] if given is None else [each if isinstance(each, tuple) else (each,) for each in given]
    if not _is_generator(function):
        return [(function, each) for each in sets]
    found = []
    for each in sets:
        for item in function(*each):
            target, *arguments = item if isinstance(item, (tuple, list)) else (item,)
            found.append((target, tuple(arguments)))
    return found


def _spread(count: int, most: int) -> list[int]:
    if most == 0 or count <= most:
        return list(range(count))
    return [i * count // most for i in range(most)]


def _fails(error: BaseException) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call


def _parameters(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _functions(module: Any) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(module).items()):
        if not name.startswith("test") or not callable(value) or inspect.isclass(value):
            continue
        if not getattr(value, "__test__", True):
            continue
        # Functions that need arguments and have none are called by other tests.
        wants = any(
            each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD for each in _parameters(value)
        )
        if not wants or hasattr(value, "paramList"):
            yield name, value


def cases_of(module: Any, most: int) -> tuple[list[Case], int]:
    """Returns the cases that are run, and how many there are in all."""
    found: list[Case] = []
    total = 0
    for name, function in _functions(module):
        try:
            calls = _calls(function)
        except Exception as error:  # the function uses the tested library to make its cases
            calls = []
            found.append(Case(f"{name}[gen]", _fails(error), "", _words(name, function)))
            total += 1
        total += len(calls)
        for i in _spread(len(calls), most):
            target, arguments = calls[i]
            text = ", ".join(f"{each!r:.80}" for each in arguments)
            words = _words(name, function, target)
            found.append(Case(f"{name}[{i}]", _with_setup(target, arguments), text, words))
    return found, total


def _say(descriptor: int, **line: Any) -> None:
    os.write(descriptor, (json.dumps(line) + "\n").encode())


def _reason(error: BaseException) -> str:
    """Returns the message, and the last line of the tests, or of a function they call, that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [each for each in frames if "/test" in each.filename and each.filename != __file__]
    last = f" at {pathlib.Path(where[-1].filename).name}:{where[-1].lineno} {where[-1].line}" if where else ""
    return f"{type(error).__name__}: {str(error)[:600]}{last}"


def _outcome(case: Case) -> tuple[str, str]:
    if _OTHERS & set(case.words):
        return "skipped", "there is no such plugin"
    try:
        case.call()
    except unittest.SkipTest as error:
        return "skipped", str(error)[:200]
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return "failed", _reason(error)
    return "passed", ""


def main() -> int:
    library, tests, file, most, first, descriptor = sys.argv[1:]
    say = functools.partial(_say, int(descriptor))
    path = pathlib.Path(tests) / file
    sys.path[:0] = [str(path.parent), tests]
    try:
        stand_ins.install(library)
        module = importlib.import_module(path.stem)
        getattr(module, "setUpModule", lambda: None)()
        found, total = cases_of(module, int(most))
    except BaseException as error:
        say(kind="no import", reason=_reason(error))
        return 0
    say(kind="cases", run=len(found), total=total)
    for i, case in enumerate(found):
        if i < int(first):
            continue
        say(kind="begins", number=i, name=case.name, arguments=case.arguments[:300], words=case.words)
        outcome, reason = _outcome(case)
        say(kind="ended", number=i, outcome=outcome, reason=reason)
    sys.stdout.flush()
    os._exit(0)  # ignores threads that a failed case has left


if __name__ == "__main__":
    sys.exit(main())
