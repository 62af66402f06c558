# SPDX-License-Identifier: Apache-2.0
"""Cuts the graph of a pipeline into what workers compute and what this process does in between.

Every operation has a time. Workers' jobs run at even times, calls and external sources of this process at odd ones: the
jobs of readers at 0, a call on their results at 1, the job over the results of that call at 2. An operation's time is
the first of its kind that is not before its inputs' times. An operation on values of several readers is at 2, since
each reader has a job of its own. Random numbers without inputs are drawn by the job of a reader whose values they meet.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from leat._graphs.graph import Node, Operation
from leat._graphs.pipeline import Pipeline
from leat._iterators import external
from leat.dali._node import ConsumerOperation, ReaderOperation
from leat.dali._varying import Form
from leat.errors import InvalidArgument

# A value: the operation's number, and the index of its output.
Key = tuple[int, int]

_BEFORE_ALL = -1
_IMAGE_FILES = ("decode", "peek_shape")


def key_of(node: Node) -> Key:
    """Returns the value's key."""
    return node._operation.number, node._output


def needs(operation: Operation) -> list[Node]:
    """Returns the values that it takes: inputs, and arguments that vary."""
    return [*operation.inputs, *(each for each in operation.args.values() if isinstance(each, Node))]


@dataclasses.dataclass
class WorkerStage:
    """A job of the service.

    Attributes:
        reader: the reader, for a job that reads; None: this process feeds the job.
        imports: the values that it is fed.
        exports: the values that it gives, by the names of its outputs.
        encoded: the imports that are image files.
    """

    time: int
    operations: list[Operation]
    reader: Any = None
    imports: list[Node] = dataclasses.field(default_factory=list)
    exports: dict[str, Node] = dataclasses.field(default_factory=dict)
    encoded: set[Key] = dataclasses.field(default_factory=set)

    def pipeline(
        self, name: str, types: list[str] | None = None, source: str = "", forms: Mapping[str, Form] | None = None
    ) -> Pipeline:
        """Returns the job's graph.

        Args:
            name: the pipeline's name, for messages.
            types: the types of the imports, as leat.external_source takes them.
            source: the name of the data that it is fed.
            forms: how the job carries its outputs, by their names; others are given as they are.
        """
        made: dict[Key, Node] = {}
        if types is not None:
            fed = external.external_source(_nothing, tuple(types), num_samples=SAMPLES, name=source)
            made.update(zip([key_of(each) for each in self.imports], fed))

        def value(node: Node) -> Node:
            key = key_of(node)
            if key not in made:
                operation = node._operation
                args = {name: value(arg) if isinstance(arg, Node) else arg for name, arg in operation.args.items()}
                copy = Operation(operation.op, tuple(value(each) for each in operation.inputs), args)
                copy.where = operation.where
                copies[operation.number] = copy
                made[key] = Node(copy, node._output)
            return made[key]

        copies: dict[int, Operation] = {}
        for operation in self.operations:  # in creation order, so that all processes number them alike
            for output in sorted(self._outputs_of(operation)):
                if operation.number in copies:
                    made[operation.number, output] = Node(copies[operation.number], output)
                else:
                    value(Node(operation, output))
        outputs: dict[str, Node] = {}
        for each, node in self.exports.items():
            given = made[key_of(node)]
            outputs.update(forms[each].carried(each, given) if forms and each in forms else {each: given})
        if types is not None and not self.imports:
            outputs["nothing"] = fed[0]

        def trace() -> dict[str, Node]:
            return outputs

        trace.__qualname__ = trace.__name__ = name
        return Pipeline(trace, (), {})

    def _outputs_of(self, operation: Operation) -> set[int]:
        used = {0}
        for other in self.operations:
            used |= {each._output for each in needs(other) if each._operation is operation}
        return used | {each._output for each in self.exports.values() if each._operation is operation}


def _nothing(sample: int) -> Any:
    raise InvalidArgument(f"sample {sample} is brought by the pipeline's own iterator only")


# The number of samples of a job that is fed: a bound that no run reaches. A step has at most 2**20 rows.
SAMPLES = 1 << 47


@dataclasses.dataclass
class ConsumerStage:
    """Calls and sources of this process, in order."""

    time: int
    operations: list[ConsumerOperation]


@dataclasses.dataclass
class Plan:
    """A pipeline's stages in the order of time, and its outputs."""

    stages: list[WorkerStage | ConsumerStage]
    outputs: list[Node]
    readers: list[ReaderOperation]

    @property
    def reader(self) -> ReaderOperation | None:
        """The first reader, whose shards are the pipeline's; None: there is none."""
        return self.readers[0] if self.readers else None

    @property
    def sources(self) -> list[ConsumerOperation]:
        """Its external sources."""
        consumers = [each for each in self.stages if isinstance(each, ConsumerStage)]
        return [each for stage in consumers for each in stage.operations if each.source is not None]

    @functools.cached_property
    def readers_of_outputs(self) -> list[list[int]]:
        """For each output, the indices of the readers whose samples it depends on."""
        found = [{each.number for each in reachable([output], [])} for output in self.outputs]
        return [[i for i, reader in enumerate(self.readers) if reader.number in each] for each in found]

    def takes(self, operation: Operation) -> bool:
        """True if an operation takes a value of this one."""
        return any(node._operation is operation for node in self._taken())

    def used(self, operation: Operation) -> set[int]:
        """Returns the operation's outputs that another one takes, or that are the pipeline's."""
        return {node._output for node in [*self.outputs, *self._taken()] if node._operation is operation}

    def _taken(self) -> list[Node]:
        return [node for stage in self.stages for each in stage.operations for node in needs(each)]


def reachable(nodes: Sequence[Node], sinks: Sequence[Operation]) -> list[Operation]:
    """Returns all operations that outputs and sinks need, and those themselves, each behind its inputs."""
    found: dict[int, Operation] = {}
    pending = [each._operation for each in nodes] + list(sinks)
    while pending:
        operation = pending.pop()
        if operation.number not in found:
            found[operation.number] = operation
            pending += [each._operation for each in needs(operation)]
    return [found[number] for number in sorted(found)]


def _is_constant(operation: Operation) -> bool:
    return operation.op == "constant"


def _wanted(operations: list[Operation], readers: dict[int, int]) -> dict[int, int]:
    """Maps operations that depend on no reader to the first reader they are combined with: its job computes them."""
    of: dict[int, set[int]] = {}
    for operation in operations:
        mine = {readers[operation.number]} if operation.number in readers else set()
        of[operation.number] = mine.union(*(of[each._operation.number] for each in needs(operation)))
    met: dict[int, set[int]] = {}
    for operation in reversed(operations):
        mine = of[operation.number] or met.get(operation.number, set())
        for each in needs(operation):
            if not of[each._operation.number]:
                met.setdefault(each._operation.number, set()).update(mine)
    return {number: min(each) for number, each in met.items() if each}


# An operation's time and, at time 0, the index of the reader whose job it is in, else 0.
Where = tuple[int, int]


def _places(operations: list[Operation], readers: dict[int, int]) -> dict[int, Where]:
    """Returns where each operation other than a constant is computed.

    Args:
        operations: in an order in which inputs come first.
        readers: the index of each reader, by the operation's number.
    """
    wanted = _wanted(operations, readers)
    found: dict[int, Where] = {}
    for operation in operations:
        if _is_constant(operation):
            continue
        before = [found[n] for n in (each._operation.number for each in needs(operation)) if n in found]
        latest = max((time for time, _ in before), default=None)
        if isinstance(operation, ConsumerOperation):
            first = 1 if readers else _BEFORE_ALL
            time = first if operation.source is not None or latest is None else latest + 1 - latest % 2
            found[operation.number] = (time, 0)
            continue
        time = 0 if latest is None else latest + latest % 2
        if time > 0:
            found[operation.number] = (time, 0)
            continue
        jobs = {job for at, job in before if at == 0}
        if operation.number in readers:
            jobs = {readers[operation.number]}
        if len(jobs) > 1:  # this process combines the values of several readers
            found[operation.number] = (2, 0)
        else:
            found[operation.number] = (0, jobs.pop() if jobs else wanted.get(operation.number, 0))
    return found


def make(outputs: list[Node], sinks: list[Operation]) -> Plan:
    """Returns the stages of a graph.

    Args:
        outputs: the pipeline's outputs.
        sinks: operations that run though no output needs them.
    """
    operations = reachable(outputs, sinks)
    readers = [each for each in operations if isinstance(each, ReaderOperation)]
    places = _places(operations, {each.number: i for i, each in enumerate(readers)})
    places |= {each._operation.number: (0, 0) for each in outputs if _is_constant(each._operation)}
    stages: dict[Where, WorkerStage | ConsumerStage] = {}
    for operation in operations:
        place = places.get(operation.number)
        if place is None:
            continue
        if isinstance(operation, ConsumerOperation):
            consumer = stages.setdefault(place, ConsumerStage(place[0], []))
            assert isinstance(consumer, ConsumerStage)
            consumer.operations.append(operation)
        else:
            worker = stages.setdefault(place, WorkerStage(place[0], []))
            assert isinstance(worker, WorkerStage)
            worker.operations.append(operation)
            if isinstance(operation, ReaderOperation):
                worker.reader = operation.reader
    _connect(stages, places, outputs)
    return Plan([stages[place] for place in sorted(stages)], outputs, readers)


def _connect(
    stages: dict[Where, WorkerStage | ConsumerStage], places: dict[int, Where], outputs: list[Node]
) -> None:
    """Sets the imports and exports of stages: the values that one stage gives and another takes."""

    def export(node: Node, name: str) -> None:
        place = places.get(node._operation.number)
        stage = None if place is None else stages[place]
        if not isinstance(stage, WorkerStage) or key_of(node) in {key_of(each) for each in stage.exports.values()}:
            return
        stage.exports[name] = node

    for i, node in enumerate(outputs):
        export(node, f"output{i}")
    for here in sorted(stages):
        stage = stages[here]
        for place, operation in enumerate(stage.operations):
            for i, node in enumerate(needs(operation)):
                name = f"input{i}_of_{operation.op}_{stage.time}_{place}"
                crosses = places.get(node._operation.number) not in (None, here)
                if isinstance(stage, ConsumerStage) or crosses:
                    export(node, name)
                if isinstance(stage, WorkerStage) and crosses:
                    if key_of(node) not in {key_of(each) for each in stage.imports}:
                        stage.imports.append(node)
                    if operation.op in _IMAGE_FILES:
                        stage.encoded.add(key_of(node))


def settle_types(plan: Plan) -> None:
    """Sets the types of readers' outputs that may be image files, by whether an operation decodes them."""
    for reader in plan.readers:
        decoded = {
            each._output
            for stage in plan.stages
            if isinstance(stage, WorkerStage)
            for operation in stage.operations
            if operation.op in _IMAGE_FILES
            for each in operation.inputs
            if each._operation is reader
        }
        types = list(reader.args.get("types", ()))
        for output, (encoded, otherwise) in reader.reader.either.items():
            types[output] = encoded if output in decoded else otherwise
        if types:
            reader.args["types"] = types
