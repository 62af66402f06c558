# SPDX-License-Identifier: Apache-2.0
"""Batches as torch tensors.

They are in a GPU's memory with `device="cuda:0"`. Otherwise they are pinned copies if CUDA is available, or tensors
that borrow the library's buffer, as NumPy's arrays do.

    dataset = leat.torch.IterableDataset(job)            # in a process of DDP: its rows of each batch
    loader = StatefulDataLoader(dataset, batch_size=None)    # or torch's DataLoader, or the dataset itself
    for epoch in range(90):
        for batch in loader: ...
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

try:
    import torch
    import torch.utils.data
except ModuleNotFoundError as _error:
    if _error.name != "torch":
        raise
    raise ImportError("leat.torch needs PyTorch 1.12 or later: pip install 'leat-data[torch]'") from _error

from leat._arrays import torch_device as _torch_device, torch_tensors as _torch_tensors
from leat._iterators import epilogue as _epilogue, placement as _placement, transport as _transport
from leat._iterators.batches import BatchIterator, samples_of
from leat._library.buffer import Buffer, arrays, tensors
from leat.errors import FailedPrecondition, InvalidArgument

if TYPE_CHECKING:
    from leat._service.job import Job

__all__ = ["IterableDataset", "TensorBatches", "batches"]


_NO_LOADER_WORKERS = (
    "Leat's workers read, decode and augment, so that a loader needs none: expected DataLoader(…, num_workers=0)"
)

_NOT_IN_A_CAPTURE = (
    "a batch that comes through host memory cannot be taken while the current stream is being captured into a CUDA "
    "graph, since replays would read that memory when it is another batch's; take the batch before the capture, and "
    "copy it into a tensor that the graph reads"
)


class _TorchCuda:
    """Implements `_torch_device.Cuda` with torch on one of its CUDA devices; None: on the current one."""

    def __init__(self, device: torch.device | None) -> None:
        self.device = device

    def current_stream(self) -> int:
        return int(torch.cuda.current_stream(self.device).cuda_stream) or 1

    def is_capturing(self) -> bool:
        if torch.version.cuda is None:
            return False
        with torch.cuda.device(-1 if self.device is None else self.device):
            return bool(torch.cuda.is_current_stream_capturing())

    def view(self, tensor: Any) -> torch.Tensor:
        return torch.from_dlpack(tensor)

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()

    def shares(self, tensor: torch.Tensor, other: torch.Tensor) -> bool:
        return tensor.data_ptr() == other.data_ptr()


class TensorBatches(BatchIterator[dict[str, torch.Tensor]]):
    """Batches in order, each a dict of tensors; made by `leat.torch.batches`.

    Methods and attributes are those of `leat.Batches`.
    """

    def __init__(
        self,
        *opened: Any,
        device: int = -1,
        pin_memory: bool | None,
        target: torch.device | None,
        view: bool,
    ) -> None:
        super().__init__(*opened, device=device)
        self._pin_memory = pin_memory
        self._target = target
        self._on_cuda = target is not None and target.type == "cuda"
        where = torch.device("cuda", device) if device >= 0 else target
        self._cuda = _TorchCuda(where if self._on_cuda else None)
        if device >= 0:
            where = self._cuda.device
        where = torch.device("cpu") if where is None else where
        self._functions = {
            name: _torch_tensors.DeviceEpilogue(epilogue, where) for name, epilogue in self._epilogues.items()
        }
        self._handing = None
        if device >= 0:
            self._handing = _torch_device.Handing(self._cuda, self._functions, view=view)

    def _convert(self, buffer: Buffer) -> dict[str, torch.Tensor]:
        if self._handing is not None:  # it is on the device already
            return self._handing(tensors(buffer))
        if (self._on_cuda or self._pins()) and self._cuda.is_capturing():
            raise FailedPrecondition(_NOT_IN_A_CAPTURE)  # the batch stays the next one
        return {name: self._placed(name, _torch_tensors.tensor_of(array)) for name, array in arrays(buffer).items()}

    def _pins(self) -> bool:
        """Whether to pin. Page-locked memory belongs to a GPU's context; asking for it may create one on GPU 0."""
        if self._pin_memory is not None:
            return self._pin_memory
        on_gpu = self._target is not None and self._target.type == "cuda"
        return torch.cuda.is_available() and (on_gpu or torch.cuda.is_initialized())

    def _finished(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        function = self._functions.get(name)
        return function(tensor) if function else tensor

    def _placed(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        if self._target is None or self._target.type == "cpu":
            tensor = self._finished(name, tensor)
            return tensor.pin_memory() if self._pins() else tensor
        pins = self._pins()
        if pins:
            tensor = tensor.pin_memory()
        return self._finished(name, tensor.to(self._target, non_blocking=pins))


def batches(
    job: Job,
    epochs: int | None = None,
    *,
    rows: range | slice | np.ndarray | list[int] | None = None,
    position: bytes | None = None,
    start: tuple[int, int] | None = None,
    window: int | None = None,
    max_window_bytes: int | None = None,
    row_timeout: float | None = None,
    progress: bool = False,
    pin_memory: bool | None = None,
    device: torch.device | str | None = None,
    view: bool = False,
    epilogue: Literal["worker", "device"] = "worker",
    source: Any = None,
) -> TensorBatches:
    """Opens an iterator over batches of torch tensors.

    Args:
        job: a job that `Service.job` returned.
        epochs: this and the other arguments without a description are those of `Job.batches`.
        rows: as in `Job.batches`.
        position: as in `Job.batches`.
        start: as in `Job.batches`.
        window: as in `Job.batches`.
        max_window_bytes: as in `Job.batches`.
        row_timeout: as in `Job.batches`.
        progress: as in `Job.batches`.
        pin_memory: copy into page-locked memory, for asynchronous transfers; None: if this process uses CUDA, or
            `device` is a GPU.
        device: where the tensors go, such as "cuda:0"; None: they stay in host memory. A worker on the same GPU writes
            directly into that GPU's memory. Each batch is copied from there into torch's own, on the current stream.
        view: hand out the library's GPU memory itself, without that copy. The memory is reused when its last tensor
            dies, after the work that is then queued on the stream that was current when it was handed out. So use
            such tensors on that stream only (`Tensor.record_stream` does nothing for them), keep them while a CUDA
            graph that reads them is replayed, and pass them to no other process and no other GPU.
        epilogue: where normalize, cast and transpose at the pipeline's end run. "device": on `device`, by torch;
            workers then send uint8, a quarter of the bytes of float32. Results and positions are identical bit for bit.
        source: as in `Job.batches`.

    Returns:
        An iterator of dicts of tensors.
    """
    target = None if device is None else torch.device(device)
    _epilogue.chosen(epilogue)
    _torch_tensors.check_types(job.schema)
    numbers = []
    if target is not None and target.type == "cuda" and torch.version.cuda is not None:
        numbers = [torch.cuda.current_device() if target.index is None else target.index]
    make = functools.partial(TensorBatches, pin_memory=pin_memory, target=target, view=view)

    def opened(number: int) -> TensorBatches:
        return job._open(
            epochs,
            rows=rows,
            position=position,
            start=start,
            window=window,
            max_window_bytes=max_window_bytes,
            row_timeout=row_timeout,
            progress=progress,
            epilogue=epilogue,
            device=number,
            source=source,
            make=make,
        )

    on_device = _transport.open_on(numbers, lambda _, number: opened(number))
    return on_device[0] if on_device else opened(-1)


class IterableDataset(torch.utils.data.IterableDataset[dict[str, torch.Tensor]]):
    """The batches of a job for one process of a training: each pass is an epoch, the next pass is the next epoch.

    Each process gets only its own rows of a batch: the block of its rank, of `world_size` blocks. All processes have
    the same number of steps. Pass it to torch's DataLoader or torchdata's StatefulDataLoader with batch_size=None and
    num_workers=0, or iterate over it: Leat's own workers read ahead, between epochs too. A pass that is broken off is
    over: the next one is the next epoch, unless a state was loaded. After a look at one batch, `set_epoch(0)` starts
    epoch 0 from its first batch. A job with last_batch="stream" has one epoch: the next pass continues at the next
    step. There is one pass at a time: once another has begun, the previous one raises leat.FailedPrecondition.
    """

    def __init__(
        self,
        job: Job,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        pin_memory: bool | None = None,
        device: torch.device | str | None = None,
        view: bool = False,
        epilogue: Literal["worker", "device"] = "worker",
        window: int | None = None,
        max_window_bytes: int | None = None,
        row_timeout: float | None = None,
        source: Any = None,
    ) -> None:
        """Reads nothing yet.

        Args:
            job: a job that `Service.job` returned.
            rank: this process's rank, with world_size; None: from torch.distributed's process group, or else 0 of 1.
            world_size: how many processes there are.
            pin_memory: as in `batches`.
            device: as in `batches`.
            view: as in `batches`.
            epilogue: as in `batches`.
            window: as in `Job.batches`.
            max_window_bytes: as in `Job.batches`.
            row_timeout: as in `Job.batches`.
            source: as in `Job.batches`.

        Raises:
            leat.InvalidArgument: there is no such rank, the batch is not a multiple of world_size, or a job with
                last_batch="partial" has a smaller last batch, for several processes.
        """
        super().__init__()
        self.job = job
        self._given = rank, world_size
        self._open = functools.partial(
            batches,
            job,
            epochs=0,
            window=window,
            max_window_bytes=max_window_bytes,
            row_timeout=row_timeout,
            pin_memory=pin_memory,
            device=device,
            view=view,
            epilogue=epilogue,
            source=source,
        )
        self._rows()  # raises now if rank, world_size or the job is wrong
        self._streams = job.last_batch == "stream"
        self._at = 0, 0  # epoch and step of the next batch
        self._goes_on = False  # the next pass continues at self._at, even within an epoch
        self._passes = 0
        self._stream: TensorBatches | None = None
        self._stream_at = self._at
        self._last: tuple[int, int] | None = None  # epoch and step of the last batch handed out

    def __len__(self) -> int:
        """Returns the number of steps per epoch."""
        return len(self.job)

    def __repr__(self) -> str:
        rows = self._rows()
        return (
            f"<leat.torch dataset of job {self.job.name!r}: rows {rows.start} … {rows.stop - 1} of {self.job.batch}, "
            f"next epoch {self._at[0]} step {self._at[1]}>"
        )

    def samples(self) -> np.ndarray:
        """Returns the sample in each row of the last batch, as `leat.Batches.samples`."""
        return samples_of(self.job, self._last, np.asarray(self._rows(), np.uint32), None, None)

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        if torch.utils.data.get_worker_info() is not None:
            raise FailedPrecondition(_NO_LOADER_WORKERS)
        # A loader may make an iterator that it does not use, so a pass begins only with its first batch.
        return self._pass()

    def __reduce__(self) -> Any:
        raise TypeError(
            "a leat.torch.IterableDataset is neither copied nor pickled, since it holds a connection and a place in "
            f"the data: make another one of the same job. If a DataLoader did this: {_NO_LOADER_WORKERS}"
        )

    def _pass(self) -> Iterator[dict[str, torch.Tensor]]:
        self._passes += 1
        this = self._passes
        epoch, step = self._at
        if step and not self._goes_on and not self._streams:
            epoch, step = epoch + 1, 0
        self._at, self._goes_on = (epoch, step), False
        steps = self.job._steps
        while step < steps:
            if self._passes != this:
                raise FailedPrecondition(
                    f"{self!r}: another pass has begun, or set_epoch or load_state_dict was called, and a dataset has"
                    " one pass at a time; for a look at a batch meanwhile use leat.torch.batches(job)"
                )
            try:
                batch = next(self._stream_here())
            except BaseException:
                self.close()  # the next pass opens another iterator
                raise
            # No calls from here to the yield: an interrupt comes before (the batch is again the next one) or after.
            self._last = epoch, step
            step += 1
            self._at = self._stream_at = (epoch, step) if step < steps else (epoch + 1, 0)
            yield batch

    def _stream_here(self) -> TensorBatches:
        """Returns an iterator at self._at: the one of the previous pass, unless that was broken off."""
        if self._stream is None or self._stream_at != self._at:
            self.close()
            self._stream, self._stream_at = self._open(rows=self._rows(), start=self._at), self._at
        return self._stream

    def _rows(self) -> range:
        rank, world_size = self._given
        group = torch.distributed
        if rank is None and world_size is None:
            known = group.is_available() and group.is_initialized()
            rank, world_size = (group.get_rank(), group.get_world_size()) if known else (0, 1)
        if rank is None or world_size is None or not 0 <= rank < world_size:
            raise InvalidArgument(
                f"rank = {rank!r}, world_size = {world_size!r}; expected both, 0 <= rank < world_size"
            )
        if self.job.batch % world_size:
            raise InvalidArgument(
                f"job {self.job.name!r} has a batch of {self.job.batch} rows; expected a multiple of the {world_size} "
                "processes"
            )
        if world_size > 1:
            _placement.check_equal_batches(self.job)
        rows = self.job.batch // world_size
        return range(rank * rows, (rank + 1) * rows)

    def set_epoch(self, epoch: int) -> None:
        """The next pass is this epoch, from its beginning, or from the position of a state loaded within that epoch."""
        if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
            raise InvalidArgument(f"epoch = {epoch!r}; expected a whole number, 0 or more")
        if self._streams and epoch:
            raise InvalidArgument(
                f"epoch = {epoch}; expected 0: job {self.job.name!r} is a stream, whose one epoch has no end"
            )
        if not (self._goes_on and epoch == self._at[0]):
            self._at, self._goes_on = (epoch, 0), False
            self._passes += 1

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the last batch handed out; it is the same on every process at the same step."""
        return {"epoch": self._at[0], "step": self._at[1], "position": self._stream_here().position()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next pass continues at the position of `state_dict`, from any process of any number of processes.

        Raises:
            leat.InvalidArgument: the state is of another job, or is no state. The dataset's position is unchanged.
        """
        try:
            at, position = (state["epoch"], state["step"]), state["position"]
        except (TypeError, KeyError):
            raise InvalidArgument(f"state = {state!r:.80}; expected what state_dict() returned") from None
        stream = self._open(rows=self._rows(), position=position)
        self.close()
        self._stream, self._at, self._stream_at = stream, at, at
        self._goes_on = True
        self._passes += 1

    def stats(self) -> dict[str, Any]:
        """As `leat.Batches.stats`, for the current iterator; empty if there is none."""
        return self._stream.stats() if self._stream else {}

    def close(self) -> None:
        """Stops reading ahead. Idempotent; tensors handed out stay valid, and the next pass opens a new iterator."""
        if self._stream:
            self._stream.close()
        self._stream = None
