# SPDX-License-Identifier: Apache-2.0
"""Job: a dataset and pipeline that a service knows under a name; it opens iterators over its batches."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

import numpy as np

from leat._graphs.options import flag, seconds, whole
from leat._iterators import epilogue as _epilogue, external
from leat._iterators.batches import BatchIterator, Batches, Opened, row_numbers, row_pointer
from leat._library import native
from leat._library.buffer import Buffer, arrays, stack_one
from leat._service import show, why as _why
from leat._service.facts import Field, Pass, Source, dealt_of, get, pass_at, samples_of, schema_of, sources_of
from leat._service.sample import Sample
from leat.errors import InvalidArgument, OutOfRange

_Iterator = TypeVar("_Iterator", bound=BatchIterator[Any])


def _epoch_and_step(start: Any) -> tuple[int, int]:
    if not isinstance(start, (tuple, list)) or len(start) != 2:  # a list: JSON has no tuples
        raise InvalidArgument(f"start = {start!r:.40}; expected (epoch, step)")
    return whole("start[0]", start[0], 0, 2**53), whole("start[1]", start[1], 0, 2**53)


class Job:
    """A dataset, pipeline, seed, batch size and order under a name; they determine the bytes of every batch."""

    def __init__(self, service: object, made: native.Cell, source: external.Source | None = None) -> None:
        self._service = service
        self._source = source  # the pipeline's leat.external_source
        self._handle = native.Handle(made, "job")
        facts = json.loads(native.take_text(self._handle.call(native.lib.leat_job_json)))
        job = facts["job"]
        spec = job["spec"]
        self._facts = job
        self._external = external.Reader.of(spec)  # None: workers read the samples
        self._steps = int(facts["steps_per_epoch"])
        self.plan_hash: str = facts["plan_hash"]
        self._attached: bool = facts.get("attached", True)
        self._consumers: int = facts.get("consumers", 0)
        # How the dataset had changed since it was listed, when this process attached; "": no change is known.
        self.dataset_changed: str = facts.get("dataset_changed", "")
        self.name: str = spec["name"]
        self.batch: int = int(spec["batch"])
        self.seed: int = int(get(spec, "seed", 0))
        self.decoder: str = get(spec, "decoder_class", "DECODER_CLASS_EXACT").removeprefix("DECODER_CLASS_").lower()
        self.last_batch: str = get(spec, "last_batch", "LAST_BATCH_DROP").rpartition("_")[2].lower()
        datasets = job.get("datasets") or [job.get("dataset", {})]
        # The sources of a mixture, in their order; empty: it is none.
        self.sources: tuple[Source, ...] = sources_of(spec, datasets)
        self.num_samples: int = sum(map(samples_of, datasets))
        # The names of the labels; a mixture has none.
        self.classes: tuple[str, ...] = tuple(datasets[0].get("classes", ())) if len(datasets) == 1 else ()
        self.schema: dict[str, Field] = schema_of(job)

    def __len__(self) -> int:
        """Returns the number of steps per epoch.

        Raises:
            TypeError: the job is a mixture without an end (`leat.mix`, ends=None).
        """
        if self.sources and self.last_batch == "stream":
            raise TypeError(
                f"job {self.name!r} has no end, since its mixture has ends=None; expected a number of steps of your "
                'own, or ends="first" or "all"'
            )
        return self._steps

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {field.dtype} {field.shape}" for name, field in self.schema.items())
        steps = "endless steps" if self.sources and self.last_batch == "stream" else f"{self._steps:,} steps"
        return (
            f"<leat job {self.name!r}: {self.num_samples:,} samples, {steps} of {self.batch} ({fields}), "
            f"plan {self.plan_hash[:12]}>"
        )

    def _repr_html_(self) -> str:
        fields = ", ".join(f"{name}: {field.dtype} {field.shape}" for name, field in self.schema.items())
        steps = "without an end" if self.last_batch == "stream" else f"{len(self):,} steps an epoch"
        return show.facts(
            {
                "job": self.name,
                "samples": f"{self.num_samples:,}" + (f" of {len(self.classes):,} classes" if self.classes else ""),
                "batch": f"{self.batch:,} rows, {steps}, last batch {self.last_batch}",
                "fields": fields,
                "seed": str(self.seed),
                "decoder": self.decoder,
                "plan": self.plan_hash[:12],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns everything about the job: the JSON form of leat.v1.Job."""
        return json.loads(json.dumps(self._facts))

    def step_of(self, position: bytes) -> tuple[int, int]:
        """Returns epoch and step of the batch that comes next at `position`, the bytes of `Batches.position()`.

        Raises:
            leat.InvalidArgument: it is not a position, or a position of another job.
        """
        if not isinstance(position, (bytes, bytearray, memoryview)):
            raise InvalidArgument(f"position is {type(position).__name__}; expected the bytes that position() returned")
        position = bytes(position)
        if not position:
            raise InvalidArgument("position is empty; expected the bytes that position() returned, or None")
        epoch, step = ctypes.c_uint64(), ctypes.c_uint64()
        request = native.lib.leat_job_step_of
        native.check(self._handle.call(request, position, len(position), ctypes.byref(epoch), ctypes.byref(step)))
        return epoch.value, step.value

    def batches(
        self,
        epochs: int | None = None,
        *,
        rows: range | slice | np.ndarray | list[int] | None = None,
        position: bytes | None = None,
        start: tuple[int, int] | None = None,
        window: int | None = None,
        max_window_bytes: int | None = None,
        row_timeout: float | None = None,
        progress: bool = False,
        epilogue: Literal["worker"] = "worker",
        source: Any = None,
    ) -> Batches:
        """Opens an iterator over the batches, in order.

        Args:
            epochs: how many epochs to deliver, counting the one that `position` or `start` lies in; only the rest of
                that one is delivered. 0: without end. None: one.
            rows: which rows of each global batch, in the order wanted; None: all.
            position: the bytes that `Batches.position` returned; continue there, with these or other rows.
            start: epoch and step of the first batch, instead of a position; None: (0, 0).
            window: steps in flight beyond the one handed out, 1 … 64 (default 4).
            max_window_bytes: the window shrinks to stay below this size (default 4 GiB).
            row_timeout: seconds that a row may be overdue before the iterator fails (default 120).
            progress: shows a tqdm bar with img/s and the fraction of time spent waiting.
            epilogue: where the pipeline's end runs; "device" is for `leat.jax.batches` and `leat.torch.batches`.
            source: for a job whose consumers supply samples: what `leat.external_source` takes; None: the pipeline's.

        Returns:
            An iterator of dicts of NumPy arrays of the shape (rows, …). The first axis is the number of `rows`, or the
            batch size, or less in the last batch of last_batch="partial". `schema` has the axes after the first.

        Raises:
            leat.InvalidArgument: an option is wrong, or the position is of another job.
            leat.FailedPrecondition: the job needs a source, and none is given.
        """
        if _epilogue.chosen(epilogue) != "worker":
            raise InvalidArgument(
                "epilogue = 'device', but NumPy has no device for it; expected 'worker', or use "
                "leat.jax.batches or leat.torch.batches"
            )
        return self._open(
            epochs,
            rows=rows,
            position=position,
            start=start,
            window=window,
            max_window_bytes=max_window_bytes,
            row_timeout=row_timeout,
            progress=progress,
            source=source,
        )

    def _open(
        self,
        epochs: int | None = None,
        *,
        rows: range | slice | np.ndarray | list[int] | None = None,
        position: bytes | None = None,
        start: tuple[int, int] | None = None,
        window: int | None = None,
        max_window_bytes: int | None = None,
        row_timeout: float | None = None,
        progress: bool = False,
        epilogue: str = "worker",
        device: int = -1,
        ahead: bool = False,
        source: Any = None,
        make: Callable[..., _Iterator] = Batches,
    ) -> _Iterator:
        """`batches`, for the frameworks: it can also leave the epilogue, or give arrays in a GPU's memory.

        Args:
            ahead: a thread other than the trainer's takes the batches, and calls `begin_wait` and `end_wait`.
            make: the iterator's class, or a function of the arguments of BatchIterator that returns an iterator.
        """
        numbers = row_numbers(rows, self.batch)
        options: dict[str, Any] = {}
        flag("progress", progress)
        if epochs is not None:
            epochs = whole("epochs", epochs, 0, 2**53)
        first = None if start is None else _epoch_and_step(start)
        if start is not None and position is not None:
            raise InvalidArgument("expected one of position and start")
        if window is not None:
            options["window"] = whole("window", window, 1, 64)
        if max_window_bytes is not None:
            options["max_window_bytes"] = whole("max_window_bytes", max_window_bytes, 1, 2**53)
        if row_timeout is not None:
            options["row_timeout_s"] = seconds("row_timeout", row_timeout)
        if _epilogue.chosen(epilogue) != "worker":
            options["epilogue"] = epilogue
        if device >= 0:
            options["device"] = device
        if ahead:
            options["ahead"] = True
        if self._external is not None:
            source = self._chosen_source(source, self.batch if numbers is None else numbers.size)
        elif source is not None:
            raise InvalidArgument(f"source is given, but workers read the samples of job {self.name!r} themselves")

        begin = (first or (0, 0)) if position is None else self.step_of(position)

        def open_at(position: bytes | None) -> Opened | None:
            at = begin if position is None else self.step_of(position)
            end = (at if epochs is None else begin)[0] + (epochs or 1)
            if epochs == 0:
                return self._opened(position, begin, None, options, numbers, source)
            if at > (end, 0):
                raise InvalidArgument(
                    f"the state is at epoch {at[0]} step {at[1]}; expected one before epoch {end}, since the iterator "
                    f"was opened for epochs {begin[0]} … {end - 1}"
                )
            if at == (end, 0):
                return None
            return self._opened(position, begin, end - at[0], options, numbers, source)

        batches = make(self, open_at, position, numbers, device=device)
        if progress:
            batches.show_progress()
        return batches

    def _opened(
        self,
        position: bytes | None,
        start: tuple[int, int],
        epochs: int | None,
        options: dict[str, Any],
        rows: np.ndarray | None,
        source: external.Source | None,
    ) -> Opened:
        """Opens an iterator of the library at `position`, or at `start`, for so many `epochs`; None: without end."""
        if position is None:
            epoch, step = start
            options = {**options, "epoch": epoch, "step": step}
        else:
            position = bytes(position)
            epoch, step = self.step_of(position)
        out, feed = native.Cell("leat_batches_free"), native.Cell("leat_feed_free")
        asked = (
            native.json_text({**options, "epochs": epochs or 0}),
            position,
            len(position or b""),
            *row_pointer(rows),
            ctypes.byref(out.made),
        )
        feeder = None
        if self._external is None:
            native.check(self._handle.call(native.lib.leat_batches_open, *asked))
        else:
            assert source is not None
            native.check(self._handle.call(native.lib.leat_batches_open_fed, *asked, ctypes.byref(feed.made)))
            feeder = external.Feeder(feed, self._external, source)
        return Opened(out, (epoch, step), None if epochs is None else epoch + epochs, feeder)

    def _chosen_source(self, source: Any, rows: int) -> external.Source:
        assert self._external is not None
        spec = self._facts["spec"]
        order = get(spec, "order", "")
        parts = int(get(spec, "num_parts", 0))
        return self._external.chosen(
            self._source if source is None else source,
            self.name,
            {
                "the job shuffles": order != "ORDER_SEQUENTIAL",
                "its last batch is filled from the beginning": self.last_batch == "fill",
                f"it has {parts} parts": parts > 1,
                f"{rows} of {self.batch} rows are wanted": rows != self.batch,
            },
        )

    def samples(
        self, epoch: int, step: int, rows: range | slice | np.ndarray | list[int] | None = None
    ) -> np.ndarray:
        """Returns the samples that the plan puts into a step, as int64, in the order of `rows` (None: all).

        -1: the row has no sample. It is padding (last_batch="mask"), or does not exist (last_batch="partial").

        Raises:
            leat.OutOfRange: no such step.
        """
        numbers = row_numbers(rows, self.batch)
        result = np.empty(self.batch if numbers is None else numbers.size, np.int64)
        at = whole("epoch", epoch, 0, 2**53), whole("step", step, 0, 2**53)
        where = result.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
        native.check(self._handle.call(native.lib.leat_job_samples, *at, *row_pointer(numbers), where))
        return result

    def _number(self, index: Any) -> int:
        number = whole("index", index, -(2**63), 2**63 - 1)
        if number < 0:
            number += self.num_samples
        if not 0 <= number < self.num_samples:
            raise OutOfRange(f"sample {index}; job {self.name!r} has {self.num_samples} samples")
        return number

    def _asked(self, function: Any, *args: Any) -> Any:
        """Returns the parsed answer of a call that gives JSON; Ctrl-C ends the wait for it."""
        out = native.Cell("leat_string_free")
        self._handle.make(function, *args, out=out)
        return json.loads(out.text() or "null")

    def record(self, index: int, *, first_document: int = 0, timeout: float = 60.0) -> _why.Record:
        """Returns where a sample is stored: its file, and its place in it. A worker looks in the index; reads nothing.

            for i in job.samples(epoch=0, step=340):
                print(job.record(i).path)

        A packed row (`leat.fn.pack`) is a sample, too, and `documents` lists up to 1,024 of its documents.

        Args:
            index: as in `sample`.
            first_document: how many documents of a packed row to leave out before the first one that is listed.
            timeout: seconds.

        Raises:
            leat.OutOfRange: no such sample.
            leat.FailedPrecondition: the job's samples are in no storage (`leat.external_source`).
            leat.Unavailable: no worker can answer.
        """
        number = self._number(index)
        first = whole("first_document", first_document, 0, 2**53)
        return _why.record(self._asked(native.lib.leat_job_record, number, first, seconds("timeout", timeout)))

    def passes(self, epoch: int, step: int) -> dict[str, Pass]:
        """Returns where each source of a mixture is before a step, or else each class that has a share.

            job.passes(epoch=0, step=1000)["books"]  # Pass(number=3, done=0.25)

        Args:
            epoch: of the step.
            step: of the epoch.

        Raises:
            leat.FailedPrecondition: the job is no mixture, and its classes have no shares.
            leat.OutOfRange: no such step.
        """
        dealt = dealt_of(self._facts, self.sources)
        rows = (ctypes.c_uint64 * max(1, len(dealt)))()
        at = whole("epoch", epoch, 0, 2**53), whole("step", step, 0, 2**53)
        native.check(self._handle.call(native.lib.leat_job_rows_before, *at, rows, len(dealt)))
        return {name: pass_at(rows[i], samples) for i, (name, samples) in enumerate(dealt)}

    @overload
    def why(self, step: int, row: int, epoch: int = ..., *, timeout: float = ...) -> _why.Row: ...
    @overload
    def why(self, step: int, row: None = ..., epoch: int = ..., *, timeout: float = ...) -> tuple[_why.Row, ...]: ...
    def why(
        self, step: int, row: int | None = None, epoch: int = 0, *, timeout: float = 60.0
    ) -> _why.Row | tuple[_why.Row, ...]:
        """Explains a row of a step, or all of its rows (None): the sample, its file, and the random draws.

            for draw in job.why(step=340, row=7).draws:
                print(draw.op, draw.name, draw.value)

        If a row is named, its record is read where a draw depends on the image's size, as the window of
        `fn.random_resized_crop` does. Without a row such draws are None. Of a packed row the first 1,024 documents are
        listed, and without a row the first ones of each, 1,024 in all.

        Args:
            step: of the epoch.
            row: of the batch, 0 … batch-1.
            epoch: as in `samples`.
            timeout: seconds.

        Raises:
            leat.OutOfRange: no such step.
            leat.InvalidArgument: no such row.
            leat.FailedPrecondition, leat.Unavailable: as in `record`.
        """
        at = whole("epoch", epoch, 0, 2**53), whole("step", step, 0, 2**53)
        numbers = None if row is None else row_numbers([whole("row", row, 0, self.batch - 1)], self.batch)
        asked = (*at, *row_pointer(numbers), 0 if row is None else 1, seconds("timeout", timeout))
        rows = tuple(_why.row(each) for each in self._asked(native.lib.leat_job_explain, *asked))
        return rows if row is None else rows[0]

    def sample(self, index: int, *, timeout: float = 60.0, source: Any = None) -> Sample:
        """Returns one sample as in epoch 0: the arrays of one row, which a notebook shows as pictures.

        Args:
            index: in the dataset's order, 0 … num_samples-1; negative: from the end.
            timeout: seconds.
            source: as in `batches`.

        Raises:
            leat.OutOfRange: no such sample.
        """
        number = self._number(index)
        buffer = Buffer(self)
        timeout_s = seconds("timeout", timeout)
        if self._external is None:
            self._handle.make(native.lib.leat_job_sample, number, timeout_s, out=buffer.cell)
        else:
            chosen = self._external.chosen(
                self._source if source is None else source, self.name, {"one sample is wanted": True}
            )
            fields = self._external.fields(chosen.read(0, number))
            pointer = self._external.pointer(fields)
            request = native.lib.leat_job_sample_supplied
            self._handle.make(request, number, pointer, len(fields), timeout_s, out=buffer.cell)
        return Sample(stack_one(arrays(buffer)))
