# SPDX-License-Identifier: Apache-2.0
"""Cuts the graph of a pipeline into what workers compute and what this process does in between.

Every operation has a time. Workers' jobs run at even times, calls and external sources of this process at odd ones: the
reader's job at 0, a call on its results at 1, the job over what the call gave at 2. An operation's time is the first of
its kind that is not before its inputs'. Random numbers without inputs are drawn by the first job, whoever uses them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from leat import _external
from leat._graph import Node, Operation, Pipeline
from leat.dali._node import ConsumerOperation, ReaderOperation
from leat.dali._varying import Form
from leat.errors import InvalidArgument

# One value: the operation's number, and which of its outputs.
Key = tuple[int, int]

_BEFORE_ALL = -1
_IMAGE_FILES = ("decode", "peek_shape")


def key_of(node: Node) -> Key:
    """The value's key."""
    return node._operation.number, node._output


def needs(operation: Operation) -> list[Node]:
    """The values that it takes: inputs, and arguments that vary."""
    return [*operation.inputs, *(each for each in operation.args.values() if isinstance(each, Node))]


@dataclasses.dataclass
class WorkerStage:
    """A job.

    Attributes:
        reader: of the first job, if the pipeline has a reader; None: the job is fed by this process.
        imports: what it is fed.
        exports: what it gives, by the names of its outputs.
        encoded: imports that are image files.
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
        """The job's graph.

        Args:
            name: of the pipeline, for messages.
            types: of the imports, as leat.external_source takes them.
            source: the name of what it is fed.
            forms: how the job carries what it gives, by its names; others are given as they are.
        """
        made: dict[Key, Node] = {}
        if types is not None:
            fed = _external.external_source(_nothing, tuple(types), num_samples=SAMPLES, name=source)
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
        for operation in self.operations:  # in the order of their making, so that all processes number them alike
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


# How many samples a job that is fed has: more than anybody takes. A step has at most 2**20 rows.
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
    reader: ReaderOperation | None

    @property
    def sources(self) -> list[ConsumerOperation]:
        """Its external sources."""
        consumers = [each for each in self.stages if isinstance(each, ConsumerStage)]
        return [each for stage in consumers for each in stage.operations if each.source is not None]

    def takes(self, operation: Operation) -> bool:
        """Whether an operation takes what this one gives."""
        operations = [each for stage in self.stages for each in stage.operations]
        return any(node._operation is operation for each in operations for node in needs(each))


def _reachable(nodes: list[Node], sinks: list[Operation]) -> list[Operation]:
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


def _times(operations: list[Operation], has_reader: bool) -> dict[int, int]:
    times: dict[int, int] = {}
    for operation in operations:
        if _is_constant(operation):
            continue
        before = [times[n] for n in (each._operation.number for each in needs(operation)) if n in times]
        if isinstance(operation, ConsumerOperation):
            if operation.source is not None:
                times[operation.number] = 1 if has_reader else _BEFORE_ALL
            else:
                latest = max(before, default=1 if has_reader else _BEFORE_ALL)
                times[operation.number] = latest if latest % 2 else latest + 1
        else:
            latest = max(before, default=0)
            times[operation.number] = latest + latest % 2
    return times


def make(outputs: list[Node], sinks: list[Operation]) -> Plan:
    """The stages of a graph.

    Args:
        outputs: of the pipeline.
        sinks: operations that run though no output needs them.

    Raises:
        leat.InvalidArgument: it has two readers.
    """
    operations = _reachable(outputs, sinks)
    readers = [each for each in operations if isinstance(each, ReaderOperation)]
    if len(readers) > 1:
        raise InvalidArgument(
            f"the pipeline has two readers, {readers[0].reader.op} ({readers[0].where}) and {readers[1].reader.op} "
            f"({readers[1].where}); Leat's workers read one dataset a pipeline: make two pipelines"
        )
    times = _times(operations, bool(readers))
    if any(_is_constant(each._operation) for each in outputs):
        times |= {each._operation.number: 0 for each in outputs if _is_constant(each._operation)}
    stages: dict[int, WorkerStage | ConsumerStage] = {}
    for operation in operations:
        time = times.get(operation.number)
        if time is None:
            continue
        if isinstance(operation, ConsumerOperation):
            consumer = stages.setdefault(time, ConsumerStage(time, []))
            assert isinstance(consumer, ConsumerStage)
            consumer.operations.append(operation)
        else:
            worker = stages.setdefault(time, WorkerStage(time, []))
            assert isinstance(worker, WorkerStage)
            worker.operations.append(operation)
    ordered = [stages[time] for time in sorted(stages)]
    if readers:
        first = next(each for each in ordered if isinstance(each, WorkerStage))
        first.reader = readers[0].reader
    _connect(ordered, times, outputs)
    return Plan(ordered, outputs, readers[0] if readers else None)


def _connect(stages: list[WorkerStage | ConsumerStage], times: dict[int, int], outputs: list[Node]) -> None:
    """What crosses the borders."""
    workers = {each.time: each for each in stages if isinstance(each, WorkerStage)}

    def export(node: Node, name: str) -> None:
        stage = workers.get(times.get(node._operation.number, 1))
        if stage is None or key_of(node) in {key_of(each) for each in stage.exports.values()}:
            return
        stage.exports[name] = node

    for i, node in enumerate(outputs):
        export(node, f"output{i}")
    for stage in stages:
        for place, operation in enumerate(stage.operations):
            for i, node in enumerate(needs(operation)):
                name = f"input{i}_of_{operation.op}_{stage.time}_{place}"
                crosses = times.get(node._operation.number) not in (None, stage.time)
                if isinstance(stage, ConsumerStage) or crosses:
                    export(node, name)
                if isinstance(stage, WorkerStage) and crosses:
                    if key_of(node) not in {key_of(each) for each in stage.imports}:
                        stage.imports.append(node)
                    if operation.op in _IMAGE_FILES:
                        stage.encoded.add(key_of(node))


def settle_types(plan: Plan) -> None:
    """Says of a reader's outputs that may be image files whether something decodes them."""
    if plan.reader is None:
        return
    reader = plan.reader
    first = next(each for each in plan.stages if isinstance(each, WorkerStage))
    decoded = {
        each._output
        for operation in first.operations
        if operation.op in _IMAGE_FILES
        for each in operation.inputs
        if each._operation is reader
    }
    types = list(reader.args.get("types", ()))
    for output, (encoded, otherwise) in reader.reader.either.items():
        types[output] = encoded if output in decoded else otherwise
    if types:
        reader.args["types"] = types
