# SPDX-License-Identifier: Apache-2.0
"""Pipelines, with DALI's constructor and methods, over jobs of Leat."""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from leat.dali import _current, _node, _plan, _settled, types
from leat.dali._formalities import Formalities
from leat.dali._node import DataNode
from leat.dali._operator import check_hint, warn_of_slower
from leat.dali._origins import Origin
from leat.dali._runner import Position, Runner, Taken
from leat.dali._source_checks import layout_in
from leat.dali._stages import Settings
from leat.dali._tensors import TensorList
from leat.dali._ways import Ways
from leat.errors import Error, FailedPrecondition, InvalidArgument, NotFound, PipelineError, Unimplemented

_HINTS = (
    "num_threads exec_pipelined exec_async bytes_per_sample set_affinity max_streams default_cuda_stream_priority "
    "enable_memory_stats py_num_workers py_start_method py_callback_pickler exec_dynamic experimental_exec_dynamic "
    "stream_policy concurrency"
).split()


class Pipeline(Formalities):
    """A graph of operators, and the current position in its data.

    Build it by calling functions of `fn` in a `with` block and then set_outputs, or by `pipeline_def`. All pipelines of
    one graph that differ only in their shard share one job of the service.
    """

    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        seed: int | None = None,
        exec_pipelined: bool = True,
        prefetch_queue_depth: Any = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        set_affinity: bool = False,
        max_streams: int | None = None,
        default_cuda_stream_priority: int | None = None,
        *,
        enable_memory_stats: bool = False,
        enable_checkpointing: bool = False,
        checkpoint: bytes | None = None,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        output_dtype: Any = None,
        output_ndim: Any = None,
        output_layout: Any = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: Any = None,
        concurrency: Any = None,
    ) -> None:
        given = locals()
        for name in _HINTS:
            check_hint("Pipeline", name, given[name])
            setattr(self, name, given[name])
        if (py_num_workers or 1) > 1:
            warn_of_slower("Pipeline", "py_num_workers")
        if batch_size is not None and (isinstance(batch_size, bool) or not hasattr(batch_size, "__index__")):
            raise TypeError(f"Pipeline: batch_size = {batch_size!r:.40}; expected a whole number")
        self._batch_size = None if batch_size is None or batch_size == -1 else batch_size.__index__()
        self.device_id: int | None = None if device_id is None or device_id == -1 else device_id
        self.seed: int | None = None if seed is None or seed < 0 else int(seed)
        self.prefetch_queue_depth: Any = 2 if prefetch_queue_depth is None else prefetch_queue_depth
        self.exec_dynamic: bool = bool(exec_dynamic if exec_dynamic is not None else experimental_exec_dynamic)
        self.enable_checkpointing: bool = bool(enable_checkpointing)
        self._checks = {"dtype": output_dtype, "ndim": output_ndim, "layout": output_layout}
        self._checkpoint = checkpoint
        self._name = "pipeline"
        self._outputs: list[DataNode] | None = None
        self._sinks: list[Any] = []
        self._operator_seeds: list[int] = []
        # The function that defined the graph, if it was not a `with` block; sources are numbered as they are made.
        self._function: Callable[[], Any] | None = None
        self._defined = False
        self._rewritten: Any = None  # the code in which `if` chooses per sample
        self._sources_made = 0
        self._fed_layouts: dict[int, str] = {}
        self._begun: Position | None = None
        self._plan: _plan.Plan | None = None
        self._runner: Runner | None = None
        self._set_up: int | None = None
        self._ways = Ways()

    # Defining.

    def __enter__(self) -> Pipeline:
        _current.stack().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.stack().pop()

    @staticmethod
    def current() -> Pipeline | None:
        """Returns the pipeline whose `with` block is entered."""
        return _current.pipeline()

    def _define(self, function: Callable[[], Any] | None) -> None:
        """Runs the function that defines the graph, and keeps it for `_defined_again`; None: runs define_graph."""
        self._function, self._defined = function, True
        with self:
            result = getattr(self, "define_graph")() if function is None else function()  # noqa: B009
            several = (tuple, list) if function is None else tuple  # as DALI has it
            self.set_outputs(*(result if isinstance(result, several) else [result]))

    def _defined_again(self, source: Any, layout: str) -> Any:
        """Defines the graph again, with operators that know the layout of the fed batches; returns the new source.

        Returns the given source if a step was handed out, if a script's own source was asked, which cannot be asked
        again, or if it is not known how the graph was defined.
        """
        runner, plan = self._runner, self._plan
        if not self._defined or source.number is None or runner is None or plan is None:
            return source
        if runner.position != self._begun or any(each.source.was_asked for each in plan.sources):
            return source
        before = dict(vars(self))
        self._fed_layouts = {**self._fed_layouts, source.number: layout}
        self._runner = self._plan = self._outputs = None
        self._sinks, self._operator_seeds, self._sources_made = [], [], 0
        try:
            self._define(self._function)
            self.build()
        except BaseException:  # the layout does not fit the operators: restores the graph
            vars(self).update(before)
            raise
        runner.close()
        assert self._plan is not None
        found = {each.source.number: each.source for each in self._plan.sources}
        for operation in plan.sources:
            if operation.source.number in found:
                found[operation.source.number].take_fed(operation.source)
        return found.get(source.number, source)

    def set_outputs(self, *outputs: Any) -> None:
        """Sets the contents of a batch: nodes, and numbers or lists of numbers, which are the same for every sample.

        Raises TypeError if an output is a list that holds nodes.
        """
        if self._runner is not None:
            raise FailedPrecondition("set_outputs: the pipeline is built; expected it before build()")
        nodes = []
        for i, each in enumerate(outputs):
            if not isinstance(each, DataNode) and _node.holds_nodes(each):
                raise TypeError(
                    f"{self._name}: output {i} is a {type(each).__name__} that holds nodes; expected each node as an "
                    "output of its own: write * in front of it"
                )
            try:
                nodes.append(_node.node_of(each))
            except (Error, TypeError):
                raise PipelineError(
                    f"{self._name}: output {i} is {type(each).__name__} {each!r:.60}; expected a node, as functions of "
                    "fn return"
                ) from None
        if not nodes:
            raise PipelineError(f"{self._name}: there are no outputs; expected at least one node")
        self._outputs = nodes

    # Properties.

    @property
    def max_batch_size(self) -> int:
        """The number of samples in a batch."""
        if self._batch_size is None:
            raise InvalidArgument("batch_size must be given: to the pipeline's constructor, or to the function's call")
        if not 1 <= self._batch_size <= 1 << 20:
            raise InvalidArgument(f"batch_size = {self._batch_size}; expected 1 … {1 << 20}")
        return self._batch_size

    @property
    def batch_size(self) -> int:
        """The number of samples in a batch."""
        return self.max_batch_size

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """True if it was made with a checkpoint."""
        return self._checkpoint is not None

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self._outputs or ())

    # Running.

    def build(self) -> None:
        """Makes the jobs. Idempotent; methods that need a built pipeline build it."""
        if self._runner is not None:
            return
        if self._outputs is None and hasattr(self, "define_graph"):
            self._define(None)
        if self._outputs is None:
            raise PipelineError(
                f"{self._name}: it has no outputs; expected set_outputs, or a function that returns them"
            )
        plan = _plan.make([each.node for each in self._outputs], self._sinks)
        _plan.settle_types(plan)
        _settled.require_names(plan)
        for operation in plan.sources:
            operation.source.has_users, operation.source.used = plan.takes(operation), plan.used(operation)
            operation.source.ahead = self.steps_unseen
            unused = operation.source.unused()
            if unused is not None:
                warnings.warn(unused, Warning, stacklevel=2)
        reader = plan.reader.reader if plan.reader is not None else None
        settings = Settings(
            rows=self.max_batch_size,
            shard=reader.shard_id if reader else 0,
            shards=reader.num_shards if reader else 1,
            seed=self._job_seed(),
            name=self._name,
            ahead=_settled.steps_ahead(plan, self.prefetch_queue_depth),
        )
        self._check_outputs()
        first, of, positions = (0, None, []) if self._checkpoint is None else self._restored()
        if positions and len(positions) != len(plan.sources):
            raise InvalidArgument(
                f"{self._name}: the checkpoint is of a pipeline with {len(positions)} external sources, not "
                f"{len(plan.sources)}"
            )
        for operation, position in zip(plan.sources, positions):
            operation.source.go_to(position, settings.rows)
        runner = Runner(plan, settings, first)
        if of is not None and of != runner.plan_hash:
            raise InvalidArgument(
                f"{self._name}: the checkpoint is of another pipeline, batch size, seed or data (plan {of[:12]}, not "
                f"{runner.plan_hash[:12]})"
            )
        self._plan, self._runner, self._begun = plan, runner, runner.position

    def _job_seed(self) -> int:
        if not self._operator_seeds:
            return self.seed or 0
        text = json.dumps([self.seed or 0, self._operator_seeds]).encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")

    def _built(self) -> Runner:
        self.build()
        assert self._runner is not None
        return self._runner

    def _check_outputs(self) -> None:
        assert self._outputs is not None
        for what, wanted in self._checks.items():
            if wanted is None:
                continue
            values = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted] * len(self._outputs)
            if len(values) != len(self._outputs):
                raise InvalidArgument(
                    f"{self._name}: output_{what} has {len(values)} entries for {len(self._outputs)} outputs"
                )
            self._checks[what] = values
        for i, (node, layout) in enumerate(zip(self._outputs, self._checks["layout"] or [])):
            if layout is not None and layout != node.layout:
                raise InvalidArgument(
                    f"{self._name}: output {i} has the layout {node.layout!r}; output_layout says {layout!r}"
                )

    @property
    def _may_look_ahead(self) -> bool:
        """True if `_take` accepts a time-out: nothing runs in this process."""
        return self._built().direct is not None

    def iter_setup(self) -> None:
        """For subclasses: feeds the external sources of a step before it is made; StopIteration ends the data.

        It is called once for each step, also for a step that failed with an exception and is made again.
        """

    def _take(self, position: Position, timeout: float | None = None) -> Taken:
        """As `Runner.at`, with checks."""
        runner = self._built()
        runner.position = position
        if self._set_up != position.steps:
            self.iter_setup()
            self._set_up = position.steps
            runner = self._built()  # iter_setup may have made another one
            runner.position = position
        taken = runner.at(position, timeout)
        dtypes, ndims = self._checks["dtype"], self._checks["ndim"]
        for i, batch in enumerate(taken.outputs if dtypes or ndims else ()):
            first = batch[0]
            if dtypes and dtypes[i] is not None and types.from_numpy_type(str(first.dtype)) is not dtypes[i]:
                raise InvalidArgument(f"{self._name}: output {i} is {first.dtype}; expected {dtypes[i]}")
            if ndims and ndims[i] is not None and len(first.shape) != ndims[i]:
                raise InvalidArgument(f"{self._name}: output {i} has {len(first.shape)} axes; expected {ndims[i]}")
        return taken

    def _on_gpu(self) -> list[bool]:
        """For each output, True if the script has it on the GPU."""
        return [node.device == "gpu" for node in self._outputs or ()]

    def _samples_at(self, position: Position) -> np.ndarray:
        """Returns the samples of the step at a position, in the order of its rows."""
        runner = self._built()
        if len(runner.readers) != 1:
            raise Unimplemented(
                f"{self._name}: it has {len(runner.readers)} readers; expected one, since the samples of an external "
                "source have no numbers of Leat's, and those of several readers several"
            )
        (reader,) = runner.readers
        epoch, step = divmod(position.steps, len(reader.job))
        return reader.job.samples(epoch, step, runner.block)

    def _position(self) -> Position:
        return self._built().position

    def _begun_again(self, position: Position) -> Position:
        return self._built().begun_again(position)

    def _next(self) -> list[Any]:
        """Returns the next batch of every output; StopIteration at the end of an external source."""
        runner = self._built()
        taken = self._take(runner.position)
        runner = self._built()
        # No calls from here on: see Runner.
        runner.position = taken.after
        return taken.outputs

    def run(self, **inputs: Any) -> tuple[TensorList, ...]:
        """Returns the next batch of every output.

        Args:
            inputs: batches for external sources without a source, by name. If the run fails, they are withdrawn.
        """
        self._ways.use(types.PipelineAPIType.BASIC)
        return self._run(inputs)

    def outputs(self) -> tuple[TensorList, ...]:
        """Returns the next batch of every output; scripts call schedule_run before it."""
        self._ways.use(types.PipelineAPIType.SCHEDULED)
        return self._run({})

    def share_outputs(self) -> tuple[TensorList, ...]:
        """Same as `outputs`."""
        return self.outputs()

    def _run(self, inputs: dict[str, Any]) -> tuple[TensorList, ...]:
        runner = self._built()
        assert self._plan is not None and self._outputs is not None
        for operation in self._plan.sources:
            operation.source.withdraw(runner.position.steps)
        for name, data in inputs.items():
            self._feed(name, data, step=runner.position.steps)
        position = self._built().position
        taken = self._take(position)
        runner = self._built()
        layouts = [_settled.layout_of(node, batch) for node, batch in zip(self._outputs, taken.outputs)]
        batches = tuple([TensorList(batch, layout) for batch, layout in zip(taken.outputs, layouts)])
        for batch, on_gpu, readers in zip(batches, self._on_gpu(), self._plan.readers_of_outputs):
            batch._target = self.device_id if on_gpu else None
            if readers:
                made_of = [runner.readers[i] for i in readers]
                batch._origin = Origin([(each.job, each.block) for each in made_of], position.steps)
        # No calls from here on: see Runner.
        runner.position = taken.after
        return batches

    def schedule_run(self) -> None:
        """Does nothing: workers read ahead by themselves."""
        self._ways.use(types.PipelineAPIType.SCHEDULED)
        self._built()

    def release_outputs(self) -> None:
        """Does nothing: a batch's memory is reused when nothing refers to its arrays."""
        self._ways.use(types.PipelineAPIType.SCHEDULED)

    def enable_api_check(self, enable: bool) -> None:
        """If true, `run`, schedule_run with its like, and an iterator over the pipeline exclude each other."""
        self._ways.enable_check(enable)

    def feed_input(
        self,
        data_node: Any,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool | None = False,
    ) -> None:
        """Supplies a batch for an external source without a source, which is given by its name or its node.

        `layout` is that of the samples. Before the first step, a graph that a function or define_graph defines is
        defined again if operators take the source and do not know its layout. Later fn.external_source must give it.
        """
        for hint, value in (("cuda_stream", cuda_stream), ("use_copy_kernel", use_copy_kernel)):
            check_hint("feed_input", hint, value)
        self._feed(data_node, data, layout)

    def _feed(self, data_node: Any, data: Any, layout: Any = None, step: int | None = None) -> None:
        source = self._source(data_node)
        layout = layout_in(data) if layout is None else layout
        if layout and source.lacks(layout):
            source = self._defined_again(source, layout)
        source.feed(data, step, layout)

    def _source(self, data_node: Any) -> Any:
        self._built()
        assert self._plan is not None
        node = data_node.node._operation if isinstance(data_node, DataNode) else None
        given = getattr(node, "source", None)
        for operation in self._plan.sources:
            source = operation.source
            again = given is not None and given.number is not None and given.number == source.number
            if operation is node or again or node is None and source.name == data_node:
                return source
        names = ", ".join(repr(each.source.name) for each in self._plan.sources) or "none"
        raise NotFound(f"feed_input: no external source {data_node!r:.60}; the pipeline has {names}")

    def reset(self) -> None:
        """External sources begin again, also before they end, where DALI ignores this; a reader's stream continues."""
        if self._runner is not None:
            self._runner.position = self._runner.begun_again(self._runner.position)

    def close(self) -> None:
        """Ends the jobs' iterators. Idempotent; batches handed out stay valid."""
        if self._runner is not None:
            self._runner.close()

    def __del__(self, _is_finalizing: Any = sys.is_finalizing) -> None:
        # When the interpreter ends, modules are gone, and the process frees what the library holds.
        if getattr(self, "_runner", None) is not None and not _is_finalizing():
            self.close()

    # Facts from readers.

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Returns the facts about a reader's data and its shard; without a name: {name: …}."""
        runner = self._built()
        assert self._plan is not None
        metas = {}
        for operation, stage in zip(self._plan.readers, runner.readers):
            reader = operation.reader
            key = reader.name or f"__{reader.op}"
            metas[f"{key}_{len(metas)}" if key in metas else key] = _settled.meta_of(reader, stage.job.num_samples)
        if name is None:
            return metas
        if name not in metas:
            known = ", ".join(map(repr, metas)) or "none"
            raise NotFound(f"reader_meta: no reader {name!r}; the pipeline has {known}")
        return metas[name]

    def epoch_size(self, name: str | None = None) -> Any:
        """Returns the samples of a reader's epoch, with the padding of its shards; without a name: {name: …}."""
        if name is not None:
            return self.reader_meta(name)["epoch_size_padded"]
        return {key: meta["epoch_size_padded"] for key, meta in self.reader_meta().items()}

    # Checkpoints.

    def _state(self, position: Position | None = None) -> bytes:
        """Returns the position, or the given one, for Pipeline(checkpoint=…)."""
        runner = self._built()
        steps, sources = runner.position if position is None else position
        state = {"leat.dali": 1, "steps": steps, "plan": runner.plan_hash, "sources": sources}
        return json.dumps(state).encode()

    def checkpoint(self, filename: str | None = None) -> bytes:
        """Returns the position, and also writes it to `filename`."""
        if not self.enable_checkpointing:
            raise FailedPrecondition("checkpoint: expected a pipeline with enable_checkpointing=True")
        state = self._state()
        if filename is not None:
            with open(filename, "wb") as file:
                file.write(state)
        return state

    def _restored(self) -> tuple[int, str, list[tuple[int, int, int]]]:
        """Returns the checkpoint's step, plan hash, and positions of external sources."""
        text = self._checkpoint
        try:
            state = json.loads(text if isinstance(text, (bytes, str)) else b"")
            steps, plan = state["steps"], state["plan"]
            positions = [(int(epoch), int(iteration), int(before)) for epoch, iteration, before in state["sources"]]
            if state["leat.dali"] != 1 or not isinstance(steps, int) or steps < 0 or not isinstance(plan, str):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise InvalidArgument("Pipeline: checkpoint is not what a pipeline's checkpoint() returned") from None
        return steps, plan, positions
