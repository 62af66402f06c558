# SPDX-License-Identifier: Apache-2.0
"""The branches of an `if` on a node: a value that one of them makes counts for the samples of that branch only.

Both branches are traced for all samples. What they assign to a name is chosen for each sample, and what else they leave
behind is not: a list to which one branch has appended a node gives that node for every sample. So no operation outside
of a branch may take a value that the branch has made, except those that choose. Operations have rising numbers, and a
branch is a range of them:

    mark   then   mark   other   mark   choices   mark
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from leat._graphs.graph import Node, Operation, mark
from leat.dali import _current, _plan
from leat.dali._operations import ConsumerOperation, ReaderOperation
from leat.errors import PipelineError

_Made = TypeVar("_Made")
# The inputs of `where` that are the values of the branches.
_FIRST, _SECOND = 1, 2
_state = threading.local()


class _If(NamedTuple):
    """The marks of one `if`."""

    begin: int
    middle: int
    choices: int
    end: int

    def forbids(self, made: int, used: float, place: int) -> bool:
        """True if an operation takes a value of one branch as its input `place`, and is not in that branch, nor does it
        choose that branch by this input."""
        chooses = self.choices < used < self.end
        if self.begin < made < self.middle:
            return not (self.begin < used < self.middle or chooses and place == _FIRST)
        if self.middle < made < self.choices:
            return not (self.middle < used < self.choices or chooses and place == _SECOND)
        return False


@contextlib.contextmanager
def traced() -> Iterator[list[_If]]:
    """Collects the `if`s on nodes that are traced inside, for `check`."""
    before = getattr(_state, "found", None)
    _state.found = found = []
    try:
        yield found
    finally:
        _state.found = before


def both(then: Callable[[], Any], other: Callable[[], Any], choose: Callable[[Any, Any], _Made]) -> _Made:
    """Returns what `choose` makes of the results of both branches."""
    with _current.branch():
        begin = mark()
        first = then()
        middle = mark()
        second = other()
        choices = mark()
    result = choose(first, second)
    found = getattr(_state, "found", None)
    if found is not None:
        found.append(_If(begin, middle, choices, mark()))
    return result


def check(found: Sequence[_If], outputs: Sequence[Node], sinks: Sequence[Operation]) -> None:
    """Raises PipelineError if a value that a branch has made is used outside of it.

    As in DALI, a value that depends on no other one is of no branch; neither are numbers that are drawn or constant.

    Args:
        found: as `traced` gives it.
        outputs: the graph's outputs.
        sinks: operations that run though no output needs them.
    """
    if not found:
        return
    of_data: set[int] = set()
    for operation in _plan.reachable(outputs, sinks):
        taken = _plan.needs(operation)
        for i, node in enumerate(taken):
            _check_one(found, of_data, node, operation.number, i, f"fn.{operation.op} ({operation.where})")
        if isinstance(operation, (ConsumerOperation, ReaderOperation)) or any(
            each._operation.number in of_data for each in taken
        ):
            of_data.add(operation.number)
    for i, node in enumerate(outputs):
        _check_one(found, of_data, node, float("inf"), i, f"output {i} of the pipeline")


def _check_one(found: Sequence[_If], of_data: set[int], node: Node, used: float, place: int, by: str) -> None:
    operation = node._operation
    if operation.number not in of_data or not _plan.needs(operation):
        return
    if any(each.forbids(operation.number, used, place) for each in found):
        raise PipelineError(
            f"{node!r} is made in a branch of an `if` on a node, and {by} uses it outside of that branch, where it "
            "would be the value of all samples; expected a name that both branches assign, which is chosen for each "
            "sample"
        )
