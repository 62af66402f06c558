# SPDX-License-Identifier: Apache-2.0
"""Pipelines, as in `amd.rocal.pipeline`."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from leat import fn
from leat._graphs.pipeline import Pipeline as _Graph
from leat._graphs.operators import nearest
from leat._graphs.options import whole
from leat._service import shared as _shared
from leat.errors import FailedPrecondition, InvalidArgument, Unimplemented
from leat.rocal import types
from leat.rocal._checked import HINTS, check_hint, refuse_unknown
from leat.rocal._feed import Feed, Member, OutputTensor, Taken
from leat.rocal._tensor import Tensor

if TYPE_CHECKING:
    from leat._service.job import Job
    from leat.rocal._source import Source

__all__ = ["Pipeline", "pipeline_def"]

_LABEL = "label"
# The constructor's hints, with rocAL's defaults.
_HINTS: dict[str, Any] = {
    "num_threads": 0,
    "exec_pipelined": True,
    "prefetch_queue_depth": 2,
    "exec_async": True,
    "bytes_per_sample": 0,
    "rocal_cpu": False,
    "max_streams": -1,
    "default_cuda_stream_priority": 0,
    "tensor_layout": types.NCHW,
    "reverse_channels": False,
    "mean": None,
    "std": None,
    "tensor_dtype": types.FLOAT,
    "output_memory_type": None,
}
HINTS["Pipeline"] = tuple(_HINTS)
# Methods of rocAL without a counterpart: the data they would return is not kept.
_REFUSED = (
    "copyToExternalTensor",
    "copy_encoded_boxes_and_lables",
    "define_graph",
    "get_ascii_datas",
    "get_bounding_box_cords",
    "get_bounding_box_count",
    "get_bounding_box_labels",
    "get_encoded_boxes_and_lables",
    "get_image_id",
    "get_image_name",
    "get_image_name_length",
    "get_img_sizes",
    "get_mask_coordinates",
    "get_mask_count",
    "get_matched_indices",
    "get_roi_img_sizes",
    "serialize",
    "timing_info",
)


_making = threading.local()  # each thread may make a pipeline of its own


def _current() -> Pipeline | None:
    return getattr(_making, "pipeline", None)


class Pipeline:
    """A reader and the operators on its samples, for one device; its batches are those of one shard.

    Operators are called within `with pipeline:`, and `set_outputs` sets what it hands out. Nothing is computed here:
    workers compute the batches.
    """

    def __init__(
        self,
        batch_size: int = -1,
        num_threads: int = 0,
        device_id: int = 0,
        seed: int = 1,
        exec_pipelined: bool = True,
        prefetch_queue_depth: Any = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        rocal_cpu: bool = False,
        max_streams: int = -1,
        default_cuda_stream_priority: int = 0,
        tensor_layout: Any = types.NCHW,
        reverse_channels: bool = False,
        mean: Any = None,
        std: Any = None,
        tensor_dtype: Any = types.FLOAT,
        output_memory_type: Any = None,
        deserialized_pipeline_handle: Any = None,
    ) -> None:
        """Makes an empty pipeline.

        Args:
            batch_size: rows of a batch of this pipeline, which is for one device.
            device_id: the device in `jax.local_devices()` that its batches are for.
            seed: the seed of the order and of the random operators; -1 is 0, since every process must agree. Pipelines
                with the same seed share a job.

        The other arguments are accepted without effect: docs/guide/move-from-rocal.md has the reasons.
        """
        if deserialized_pipeline_handle is not None:
            raise Unimplemented("Pipeline: deserialized_pipeline_handle; Leat reads no serialized pipelines of rocAL")
        given = locals()
        for name, default in _HINTS.items():
            if name != "prefetch_queue_depth":  # a number, or a dict of two
                check_hint(f"Pipeline: {name}", given[name], default)
        self._batch_size = whole("Pipeline: batch_size", batch_size, -1, 2**20)
        self._device_id = whole("Pipeline: device_id", device_id, 0, 2**20)
        self._seed = whole("Pipeline: seed", seed, -1, 2**64 - 1)
        self._num_threads = num_threads
        self._prefetch_queue_depth = prefetch_queue_depth
        self._rocal_cpu = rocal_cpu
        self._tensor_layout = tensor_layout
        self._tensor_dtype = tensor_dtype
        default_memory = types.HOST_MEMORY if rocal_cpu else types.DEVICE_MEMORY
        self._output_memory_type = default_memory if output_memory_type is None else output_memory_type
        self._reverse_channels = reverse_channels
        self._multiplier = [1 / each for each in std] if std else [1.0, 1.0, 1.0]
        self._offset = [-m / s for m, s in zip(mean, std)] if mean and std else [0.0, 0.0, 0.0]
        self._name: str | None = None
        self._num_classes: int | None = None
        self._one_hot_encoding = False
        self._is_external_source_operator = False
        self._source: Source | None = None
        self._outputs: tuple[Tensor, ...] = ()
        self._outer: list[Pipeline | None] = []
        self._job: Job | None = None
        self._feed: Feed | None = None
        self._number = 0  # its index among the pipelines of the feed

    def __enter__(self) -> Pipeline:
        self._outer.append(_current())
        _making.pipeline = self
        return self

    def __exit__(self, *_: object) -> None:
        _making.pipeline = self._outer.pop()

    def __repr__(self) -> str:
        read = "nothing" if self._source is None else self._source.where
        return f"<leat.rocal pipeline for device {self._device_id}: {read}, batches of {self._batch_size}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name in _REFUSED:
            raise Unimplemented(f"Pipeline.{name}: Leat keeps nothing that it could give")
        known = [each for each in dir(type(self)) if not each.startswith("_")]
        raise AttributeError(f"Pipeline has no attribute {name!r}{nearest(name, known)}")

    # For the functions of fn.

    @classmethod
    def current(cls, where: str) -> Pipeline:
        """Returns the pipeline that is being made. Raises FailedPrecondition outside of `with pipeline:`."""
        pipeline = _current()
        if pipeline is None:
            raise FailedPrecondition(f"{where} outside of a pipeline; expected it within `with pipeline:`")
        return pipeline

    def read(self, source: Source) -> None:
        """Sets the reader. Raises Unimplemented for a second one."""
        if self._source is not None:
            raise Unimplemented(f"{source.where} after {self._source.where}: a pipeline of Leat has one reader")
        self._source = source

    def one_hot(self, num_classes: int) -> None:
        """Makes labels vectors from now on."""
        self._num_classes = num_classes
        self._one_hot_encoding = True

    @property
    def _reader(self) -> str | None:
        return None if self._source is None else self._source.name

    @property
    def _last_batch_policy(self) -> types.LastBatchPolicy | None:
        return None if self._source is None else self._source.sharding.policy

    # Making a pipeline.

    def set_outputs(self, *output_list: Any) -> None:
        """Sets the contents of a batch, in this order. Raises InvalidArgument for a value that is no operator's
        output."""
        for i, output in enumerate(output_list):
            if not isinstance(output, Tensor):
                encoded = ": it is encoded; fn.decoders.image decodes it" if hasattr(output, "decoded") else ""
                raise InvalidArgument(f"set_outputs: output {i} is {output!r:.80}; expected a tensor of fn's{encoded}")
        if self._job is not None:
            raise FailedPrecondition("set_outputs after build: the pipeline is made")
        self._outputs = output_list

    def build(self) -> Pipeline:
        """Makes the job, or attaches to that of an equal pipeline. Idempotent.

        Raises:
            leat.InvalidArgument: no batch size, no reader or no outputs, or an output that cannot be a batch.
            leat.Error: the service cannot be reached, or cannot read the data.
        """
        if self._job is not None:
            return self
        if self._batch_size < 1:
            raise InvalidArgument(f"Pipeline: batch_size = {self._batch_size}; expected 1 or more")
        if self._source is None:
            raise InvalidArgument(
                "build: the pipeline has no reader; expected one of fn.readers within `with pipeline:`"
            )
        if not self._outputs:
            raise InvalidArgument("build: the pipeline has no outputs; expected set_outputs before")
        nodes = {f"output{i}": output.output() for i, output in enumerate(self._outputs)}
        if self._source.has_labels:
            nodes[_LABEL] = self._labels()
        graph = _Graph(lambda: nodes, (), {})
        seed = max(self._seed, 0)
        self._job = _shared.job(graph, seed=seed, **self._source.sharding.spec(self._batch_size))
        return self

    def _labels(self) -> Any:
        assert self._source is not None
        label = self._source.label()
        if not self._one_hot_encoding or self._num_classes is None:
            return label
        return fn.one_hot(label, num_classes=self._num_classes, dtype="int32")

    # Running a pipeline.

    def _member(self) -> Member:
        """Builds the pipeline and returns the facts that a feed needs."""
        self.build()
        assert self._job is not None and self._source is not None
        return Member(
            self._job,
            self._batch_size,
            len(self._outputs),
            self._one_hot_encoding,
            self._source.sharding,
            self._source.where,
            repr(self),
        )

    def _run_by(self, feed: Feed, number: int) -> None:
        """Makes it pipeline `number` of a feed from here on."""
        self._feed, self._number = feed, number

    def _own_feed(self) -> Feed:
        if self._feed is None:
            self._run_by(Feed([self._member()]), 0)
        assert self._feed is not None
        return self._feed

    def _last(self) -> Taken:
        return self._own_feed().last(self._number)

    def _alone(self, what: str) -> Feed:
        feed = self._own_feed()
        if len(feed.members) != 1:
            raise FailedPrecondition(
                f"{what}: an iterator runs this pipeline together with {len(feed.members) - 1} others"
            )
        return feed

    def rocal_run(self) -> int:
        """Takes the next batch; returns 0, or another number at the end of the epoch."""
        feed = self._alone("rocal_run")
        found, ok = feed.find(), types.OK
        if found is None:
            return types.RUNTIME_ERROR
        # No calls from here on: see Feed.
        feed.standing = found.after
        return ok

    def run(self) -> list[Any]:
        """Returns the outputs of the next batch. Raises StopIteration at the end of the epoch."""
        feed = self._alone("run")
        found = feed.find()
        if found is None:
            raise StopIteration
        outputs = [OutputTensor(array) for array in found.parts[0].outputs]
        # No calls from here on: see Feed.
        feed.standing = found.after
        return outputs

    def get_output_tensors(self) -> list[Any]:
        """Returns the outputs of the last batch."""
        return [OutputTensor(array) for array in self._last().outputs]

    def get_image_labels(self) -> np.ndarray:
        """Returns the labels of the last batch: int32, one per row, or one-hot."""
        labels = self._last().labels
        if labels is None:
            raise InvalidArgument(f"get_image_labels: {self._reader} gives no labels")
        return labels

    def get_one_hot_encoded_labels(self, array: np.ndarray, dest_device_type: Any = types.HOST_MEMORY) -> None:
        """Copies the last batch's one-hot labels into a NumPy int32 array of the same size."""
        if not isinstance(array, np.ndarray):
            raise InvalidArgument("get_one_hot_encoded_labels: expected a NumPy array, not an address")
        np.copyto(array.reshape(-1), self.get_image_labels().reshape(-1))

    def get_remaining_images(self) -> int:
        """Returns the samples that are left of the epoch, in whole batches."""
        feed = self._own_feed()
        return (feed.length - feed.taken) * self._batch_size

    def get_last_batch_padded_size(self) -> int:
        """Returns the rows missing in the last batch under LAST_BATCH_PARTIAL, or those that fill it under
        LAST_BATCH_MASK."""
        last = self._last()
        filled = 0 if last.valid is None else int(np.count_nonzero(~last.valid))
        return self._batch_size - last.rows + filled

    def is_empty(self) -> bool:
        """Returns True if the epoch is over."""
        return self.get_remaining_images() == 0

    def rocal_reset_loaders(self) -> None:
        """Begins the next epoch, even in the middle of one."""
        self._alone("rocal_reset_loaders").reset()

    def rocal_release(self) -> None:
        """Ends its stream of batches. Idempotent."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()

    def get_handle(self) -> Pipeline:
        """Returns itself: there is no other handle."""
        return self

    @classmethod
    def deserialize(cls, *_: Any, **__: Any) -> NoReturn:
        """Not in Leat: raises leat.Unimplemented."""
        raise Unimplemented("Pipeline.deserialize: Leat reads no serialized pipelines of rocAL")


_CONSTRUCTOR = tuple(inspect.signature(Pipeline.__init__).parameters)[1:]


def pipeline_def(fn: Callable[..., Any] | None = None, **pipeline_kwargs: Any) -> Any:
    """Turns a function that returns its outputs into one that returns a `Pipeline`; with or without arguments.

    Args:
        fn: calls operators and returns a tensor, or a tuple of them.
        **pipeline_kwargs: arguments of `Pipeline`; those of a call override them. Arguments that both the function and
            `Pipeline` take go to the function.

    Raises:
        TypeError: an argument that neither takes, or a function with variadic keyword arguments.
    """
    refuse_unknown("pipeline_def", pipeline_kwargs, _CONSTRUCTOR)

    def decorate(function: Callable[..., Any]) -> Callable[..., Pipeline]:
        parameters = inspect.signature(function).parameters
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            raise TypeError(f"pipeline_def: {function.__qualname__} takes variadic keyword arguments; name them")

        @functools.wraps(function)
        def create(*args: Any, **kwargs: Any) -> Pipeline:
            refuse_unknown(function.__qualname__, kwargs, (*parameters, *_CONSTRUCTOR))
            own = {name: value for name, value in kwargs.items() if name in parameters}
            rest = {name: value for name, value in kwargs.items() if name not in parameters}
            pipeline = Pipeline(**{**pipeline_kwargs, **rest})
            with pipeline:
                outputs = function(*args, **own)
                if outputs is not None:
                    pipeline.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
            return pipeline

        create._is_pipeline_def = True  # type: ignore[attr-defined]
        return create

    return decorate if fn is None else decorate(fn)
