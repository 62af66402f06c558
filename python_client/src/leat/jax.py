# SPDX-License-Identifier: Apache-2.0
"""Batches as global `jax.Array`s: each process pulls the rows that its devices hold, and no others.

    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    sharding = NamedSharding(mesh, P("data"))
    for batch in leat.jax.batches(job, sharding=sharding, epochs=90):
        state = train_step(state, batch)

Row r of the global batch is the job's row r whatever the mesh, so the same
bytes reach the model on any number of hosts.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from leat._arrays import jax_version as _jax_version  # noqa: F401  # isort: skip (it says what to install)

import jax
import numpy as np

from leat._arrays import (
    ahead as _ahead,
    assembling as _assembling,
    jax_device as _jax_device,
    jax_epilogue as _jax_epilogue,
)
from leat._arrays.global_arrays import (
    DataPartitionType,
    data_partition_type_to_spec,
    global_to_host_array,
    host_to_global_device_array,
    with_sharding_constraint,
)
from leat._graphs.options import flag as _flag
from leat._iterators import (
    epilogue as _epilogue,
    placement as _placement,
    together as _together,
    transport as _transport,
)
from leat._iterators.batches import samples_of
from leat._library import threads as _threads
from leat.errors import InvalidArgument

if TYPE_CHECKING:
    from leat._iterators.batches import Batches
    from leat._service.job import Job

    _Place = Callable[[Any], dict[str, jax.Array]]

__all__ = [
    "DataPartitionType",
    "GlobalBatches",
    "batches",
    "data_partition_type_to_spec",
    "global_to_host_array",
    "host_to_global_device_array",
    "with_sharding_constraint",
]


class _HostPlacing:
    """Makes global arrays from batches in host memory."""

    def __init__(
        self, placements: Mapping[str, _placement.Placement], epilogues: Mapping[str, _epilogue.Epilogue]
    ) -> None:
        self._epilogues = _jax_epilogue.plan(placements, epilogues)
        self._fields = {
            name: _assembling.Assembling(placement) for name, placement in placements.items() if name not in epilogues
        }
        self._names = list(placements)
        self._batches = 0

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, jax.Array]:
        self._batches += 1
        placed = {name: assembled(batch[name]) for name, assembled in self._fields.items()}
        if not self._epilogues:
            return placed
        for epilogue in self._epilogues:
            placed.update(epilogue(batch))
        return {name: placed[name] for name in self._names}

    def stats(self) -> dict[str, int]:
        """How many bytes of all batches CPU devices read in place, and how many JAX copied for them."""
        parts: list[Any] = [*self._fields.values(), *self._epilogues]
        return {
            "aliased_bytes": self._batches * sum(part.aliased_bytes for part in parts),
            "copied_bytes": self._batches * sum(part.copied_bytes for part in parts),
        }


class GlobalBatches(Iterator[dict[str, jax.Array]]):
    """Global batches in order; made by `leat.jax.batches`.

    While a batch is used, a thread that the first `next` starts brings the next one to the devices. Use it from one
    thread at a time; `close` may be called from any.

    Attributes:
        epoch, step: the position of the last batch handed out; None before the first.
        rows: the rows of the global batch that this process pulls.
    """

    def __init__(self, rows: np.ndarray, host: Batches | _together.Together, place: _Place) -> None:
        self._host = host
        self._place = place
        self._position = host.position()
        self._ahead: _ahead.Ahead | None = None
        self._failure: BaseException | None = None
        self._ended = False
        self._stop: Callable[[], Any] = host.close
        self.rows = rows
        self.epoch: int | None = None
        self.step: int | None = None

    def __iter__(self) -> GlobalBatches:
        return self

    def __enter__(self) -> GlobalBatches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> dict[str, jax.Array]:
        if self._failure is not None:
            raise self._failure.with_traceback(None)  # the same one each time
        if self._ended:
            raise StopIteration
        ahead = self._ahead or self._start()
        taken = ahead.take()
        if isinstance(taken, _ahead.Ended):
            if taken.error is None:
                self.close()
                raise StopIteration
            self._failure = taken.error
            raise taken.error
        # No calls from here on, so an interrupt finds the batch either handed out or still the next one.
        ahead.slots[ahead.number & 1] = None
        ahead.number += 1
        batch, self._position, self.epoch, self.step = taken
        return batch

    def __len__(self) -> int:
        """As in `leat.Batches`."""
        return len(self._host)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        shown = "not started" if self.step is None else f"epoch {self.epoch} step {self.step}"
        return f"<leat.jax batches of job {self._host.job.name!r}: {'closed' if self._ended else shown}>"

    def samples(self, epoch: int | None = None, step: int | None = None) -> np.ndarray:
        """As in `leat.Batches`, for the rows that this process pulls (`rows`)."""
        at = None if self.epoch is None or self.step is None else (self.epoch, self.step)
        return samples_of(self._host.job, at, self.rows, epoch, step)

    def _start(self) -> _ahead.Ahead:
        ahead = _ahead.Ahead(self._host, self._place)
        self._stop = weakref.finalize(self, ahead.stop)  # also when this iterator is dropped
        self._ahead = ahead
        return ahead

    def position(self) -> bytes:
        """The trainer's position, after the last batch handed out. It is the same on every process at the same step."""
        return self._position

    def get_state(self) -> bytes:
        """Same as `position`; Grain and checkpoint handlers call it by this name."""
        return self._position

    def set_state(self, state: bytes) -> None:
        """Continues after the batch at which `get_state` or `position` returned `state`, here or in another process.

        The last epoch stays the one given when the iterator was opened. If it was opened without `epochs`, the last
        epoch becomes the one that the state lies in.

        Raises:
            leat.InvalidArgument: the state is of another job, or after the last epoch. The iterator's position is
                unchanged.
        """
        host_goes_on = self._host.prepared(state)

        def go_on() -> None:
            self._stop()
            host_goes_on()
            self._stop = self._host.close
            self._position = self._host.position()
            self._ahead = self._failure = self.epoch = self.step = None
            self._ended = False

        _threads.to_its_end(go_on)

    def stats(self) -> dict[str, Any]:
        """As `leat.Batches.stats`, and for batches in host memory that go to CPU devices:

        aliased_bytes: bytes that the devices read in the library's buffers.
        copied_bytes: bytes that JAX copied, because they are not aligned.
        """
        stats = self._host.stats()
        if isinstance(self._place, _HostPlacing):
            stats.update(self._place.stats())
        return stats

    def close(self) -> None:
        """Ends the iterator, even while another thread waits in it. Idempotent; batches handed out stay valid."""
        self._ended = True
        self._stop()
        self._ahead = None


def _over(devices: Sequence[jax.Device], batch: int) -> jax.sharding.Sharding:
    """Returns the sharding that gives pmap's layout."""
    devices = list(devices)
    if jax.process_count() > 1:
        raise InvalidArgument(
            f"devices is for one process, and there are {jax.process_count()}; expected sharding=, for jit or shard_map"
        )
    if not devices or len(set(devices)) != len(devices) or batch % len(devices):
        raise InvalidArgument(
            f"devices = {devices}: expected different devices whose number divides the {batch} rows of a batch"
        )
    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("device"))


def _checked(sharding: Any) -> Any:
    for one in sharding.values() if isinstance(sharding, Mapping) else [sharding]:
        if not isinstance(one, jax.sharding.Sharding):
            raise InvalidArgument(
                f"sharding = {one!r:.120}; expected a jax.sharding.Sharding, such as NamedSharding(mesh, P('data'))"
            )
    return sharding


def _check_wide(job: Job, names: Sequence[str]) -> None:
    """Raises if JAX would narrow 64-bit integers to 32 bits."""
    narrowed = [name for name in names if job.schema[name].dtype == np.int64]
    if narrowed and not jax.config.jax_enable_x64:
        raise InvalidArgument(
            f"field {narrowed[0]!r} of job {job.name!r} is int64, and this JAX would cut it to int32; expected "
            f'fn.cast({narrowed[0]}, dtype="int32") in the pipeline, if the values fit, or '
            'jax.config.update("jax_enable_x64", True); or fields= without it'
        )


def batches(
    job: Job,
    *,
    sharding: jax.sharding.Sharding | Mapping[str, jax.sharding.Sharding] | None = None,
    devices: Sequence[Any] | None = None,
    epochs: int | None = None,
    position: bytes | None = None,
    start: tuple[int, int] | None = None,
    window: int | None = None,
    max_window_bytes: int | None = None,
    row_timeout: float | None = None,
    progress: bool = False,
    fields: Sequence[str] | None = None,
    epilogue: Literal["worker", "device"] = "worker",
    source: Any = None,
) -> GlobalBatches:
    """Opens an iterator over global batches.

        mesh = Mesh(np.array(jax.devices()), ("data",))
        sharding = NamedSharding(mesh, PartitionSpec("data"))
        with leat.jax.batches(job, sharding=sharding, epochs=90) as batches:
            for batch in batches:  # {"image": uint8 (64, 224, 224, 3), "label": int32 (64,)}
                state = train_step(state, batch)

    In a training of several processes each of them makes this call, with the same job and a sharding of the same mesh.

    Args:
        job: a job that `Service.job` returned.
        sharding: how the batch axis is sharded, for every field (entries of a NamedSharding beyond a field's axes are
            ignored for that field), or a dict with a sharding for each field. Replicated axes, any order of devices and
            several processes work.
        devices: instead of `sharding`, for functions of `jax.pmap` over these devices of the only process: arrays have
            the shape (devices, batch / devices, …).
        epochs: how many epochs to deliver, counting the one that `position` or `start` lies in; only the rest of that
            one is delivered. 0: without end. None: one.
        position: the bytes that `position()` returned, here or in `leat.Batches`; continue there, on any number of
            processes.
        start: epoch and step of the first batch, instead of a position; None: (0, 0).
        window: steps in flight, 1 … 64 (default 4).
        max_window_bytes: the window shrinks to stay below this size (default 4 GiB).
        row_timeout: seconds that a row may be overdue before the iterator fails (default 120).
        progress: shows a tqdm bar with img/s and the fraction of time spent waiting.
        fields: which arrays to place; None: all.
        epilogue: where normalize, cast and transpose at the pipeline's end run. "device": on these devices, in one
            compiled function; workers then send uint8, a quarter of the bytes of float32. Results and positions are
            identical bit for bit.
        source: as in `Job.batches`.

    Returns:
        An iterator of dicts of `jax.Array`, which have the dtypes of `Job.schema` and the shape (batch, …) of the
        global batch, also if this process holds only some of the rows. Jobs with last_batch="mask" or
        on_bad_sample="zero" have the array "valid", bool (batch,): which rows count.

    Raises:
        leat.InvalidArgument: the rows do not divide, a field is unknown, a field is int64 and JAX would make it int32,
            or a job with last_batch="partial" has a smaller last batch.
        leat.FailedPrecondition: the job needs a source, and none is given.

    `next` raises leat.Error: a bad sample under on_bad_sample="fail", leat.DataLoss when `max_bad` is exceeded,
    leat.Unavailable when no worker computed a row within `row_timeout`. This is final.

    docs/start/train-jax.md is a whole training, and docs/guide/hosts.md one on several hosts.
    """
    names = list(job.schema) if fields is None else list(fields)
    for name in names:
        if name not in job.schema:
            raise InvalidArgument(f"fields has {name!r}; job {job.name!r} has {', '.join(map(repr, job.schema))}")
    _placement.check_equal_batches(job)
    _check_wide(job, names)
    _epilogue.chosen(epilogue)
    _flag("progress", progress)
    if (sharding is None) == (devices is None):
        raise InvalidArgument("expected one of sharding and devices")
    sharding = _over(devices, job.batch) if devices is not None else _checked(sharding)
    rows, placements = _placement.place({name: job.schema[name].shape for name in names}, sharding, job.batch)
    if devices is not None:
        placements = {name: placement.stacked(len(devices)) for name, placement in placements.items()}

    shares = _jax_device.shares(placements, rows)

    def opened(rows: np.ndarray, **also: Any) -> Batches:
        whole = rows.size == job.batch
        return job._open(
            epochs,
            rows=None if whole else rows,
            position=position,
            start=start,
            window=window,
            max_window_bytes=max_window_bytes,
            row_timeout=row_timeout,
            epilogue=epilogue,
            ahead=True,
            source=source,
            **also,
        )

    host: Batches | _together.Together
    parts = _transport.open_on(
        [share.number for share in shares], lambda i, number: opened(shares[i].rows, device=number)
    )
    host = opened(rows) if parts is None else _together.Together(parts)
    try:
        place: _Place
        if parts is None:
            place = _HostPlacing(placements, host._epilogues)
        else:
            dtypes = {name: job.schema[name].dtype for name in names}
            place = _jax_device.DevicesPlacing(shares, host._epilogues, dtypes)
        if progress:
            host.show_progress()
    except BaseException:
        host.close()
        raise
    return GlobalBatches(rows, host, place)
