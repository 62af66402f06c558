# SPDX-License-Identifier: Apache-2.0
"""JAX functions as operators of a pipeline: they run in the training's processes, between what workers compute."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import jax

from leat._arrays import pipeline_placing as _placing
from leat.dali import _current, _node
from leat.errors import InvalidArgument

__all__ = ["jax_function"]


def _check_arguments(num_outputs: Any, output_layouts: Any, device: Any) -> None:
    if isinstance(num_outputs, bool) or not isinstance(num_outputs, int) or num_outputs < 0:
        raise ValueError(f"`num_outputs` = {num_outputs!r}; expected a whole number, 0 or more")
    if device not in (None, "cpu", "gpu"):
        raise ValueError(f"`device` = {device!r}; expected 'cpu', 'gpu' or None")
    if output_layouts is None or isinstance(output_layouts, str):
        return
    layouts = list(output_layouts) if isinstance(output_layouts, (list, tuple)) else None
    if layouts is None or any(not isinstance(layout, str) for layout in layouts) or len(layouts) > num_outputs:
        raise ValueError(
            f"`output_layouts` = {output_layouts!r}; expected a text, or a tuple of them for the {num_outputs} outputs"
        )


def _check_sharding(sharding: Any) -> None:
    if jax.local_device_count() != 1:
        raise NotImplementedError(
            "`jax_function` supports only global sharding: each process must have exactly one device, and this one has "
            f"{jax.local_device_count()}"
        )
    if not isinstance(sharding, jax.sharding.Sharding):
        raise ValueError(
            "The value passed as `sharding` must be an instance of `NamedSharding` or `PositionalSharding`, or another "
            f"`jax.sharding.Sharding`; got value of a type {type(sharding)}"
        )


def _target(device: str | None) -> jax.Device:
    """Returns the device on which the function of the pipeline that is being defined runs."""
    if device == "cpu":
        return jax.local_devices(backend="cpu")[0]
    pipeline = _current.pipeline()
    return _placing.local_device(None if pipeline is None else pipeline.device_id)


class _Call:
    """The function on batches: takes arrays of any kind, returns checked arrays on one device."""

    def __init__(
        self, function: Callable[..., Any], num_outputs: int, layouts: Any, sharding: Any, device: Any
    ) -> None:
        self._function = function
        self._name = getattr(function, "__name__", repr(function))
        self._outputs = num_outputs
        self._layouts = [layouts] * num_outputs if isinstance(layouts, str) else list(layouts or ())
        self._global = None
        self._device = _target(device)
        if sharding is not None:
            _check_sharding(sharding)
            self._device = next(iter(sharding.addressable_devices), self._device)
            self._global = _placing.Global(sharding, [None])
        pipeline = _current.pipeline()
        self._batch = None if pipeline is None else pipeline.max_batch_size

    def __call__(self, arrays: Sequence[Any]) -> list[jax.Array]:
        for i, array in enumerate(arrays):
            if not hasattr(array, "shape"):
                raise InvalidArgument(
                    f"{self._name} takes batches of one shape, and its input {i} is a batch of samples with different "
                    "shapes; resize, crop or pad them first"
                )
        rows = arrays[0].shape[0] if arrays else self._batch
        if self._global is not None:
            inputs = [self._global([array]) for array in arrays]
        else:
            inputs = jax.device_put(list(arrays), self._device)
        try:
            returned = self._function(*inputs)
        except StopIteration as error:  # otherwise it would mean the end of the data
            raise RuntimeError(f"{self._name} raised StopIteration") from error
        outputs = self._as_list(returned)
        return [self._checked(i, output, rows) for i, output in enumerate(outputs)]

    def _as_list(self, returned: Any) -> list[Any]:
        if returned is None:
            outputs = []
        else:
            outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(outputs) != self._outputs:
            raise RuntimeError(
                f"{self._name} should return (a tuple of) `num_outputs={self._outputs}` outputs, but returned "
                f"{len(outputs)}."
            )
        return outputs

    def _checked(self, i: int, output: Any, rows: int | None) -> jax.Array:
        if not isinstance(output, jax.Array):
            raise TypeError(f"{self._name}: output at index {i} is {type(output).__name__}; expected a jax.Array")
        output = self._on_one_device(i, output)
        if output.ndim == 0 or rows is not None and output.shape[0] != rows:
            shape = " x ".join(map(str, output.shape)) or "()"
            raise RuntimeError(
                f"{self._name} was called with the current batch size of {rows}, but the output at index {i} has the "
                f"shape {shape}; expected {rows} samples along its first axis"
            )
        layout = self._layouts[i] if i < len(self._layouts) else ""
        if layout and len(layout) != output.ndim - 1:
            raise InvalidArgument(
                f"{self._name}: the layout {layout!r} of the output at index {i} has {len(layout)} axes, and its "
                f"samples {output.ndim - 1}"
            )
        return output

    def _on_one_device(self, i: int, output: jax.Array) -> jax.Array:
        if self._global is not None:
            shards = [shard.data for shard in output.addressable_shards]
            if len(shards) != 1:
                raise InvalidArgument(
                    f"{self._name} returned multiple shards as output {i}: expected exactly one, got {len(shards)}."
                )
            output = shards[0]
        devices = list(output.devices())
        if len(devices) != 1:
            raise InvalidArgument(
                f"{self._name} returned array split across multiple devices ({len(devices)}) as output {i}; expected "
                "an array on a single device."
            )
        if devices[0].platform != self._device.platform:
            raise InvalidArgument(
                f"{self._name} returned array residing on the device of kind `{devices[0].platform}`, expected "
                f"`{self._device.platform}` (output {i})."
            )
        return output


@overload
def jax_function(
    function: Callable[..., Any],
    num_outputs: Literal[1] = 1,
    output_layouts: str | tuple[str, ...] | None = None,
    sharding: jax.sharding.Sharding | None = None,
    device: str | None = None,
    preserve: bool = True,
) -> Callable[..., _node.DataNode]: ...
@overload
def jax_function(
    function: None = None,
    num_outputs: Literal[1] = 1,
    output_layouts: str | tuple[str, ...] | None = None,
    sharding: jax.sharding.Sharding | None = None,
    device: str | None = None,
    preserve: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., _node.DataNode]]: ...
@overload
def jax_function(
    function: Callable[..., Any] | None = None,
    num_outputs: int = 1,
    output_layouts: str | tuple[str, ...] | None = None,
    sharding: jax.sharding.Sharding | None = None,
    device: str | None = None,
    preserve: bool = True,
) -> Any: ...
def jax_function(
    function: Callable[..., Any] | None = None,
    num_outputs: int = 1,
    output_layouts: str | tuple[str, ...] | None = None,
    sharding: jax.sharding.Sharding | None = None,
    device: str | None = None,
    preserve: bool = True,
) -> Any:
    """Turns a function of `jax.Array`s into an operator of pipelines.

        @jax_function
        @jax.jit
        @jax.vmap
        def flip_horizontal(image):
            return image[:, ::-1, :]

    Workers compute the function's inputs, and everything that depends on its outputs; the function runs in this
    process, once per batch. It must not keep its input arrays after it returns. May be used with arguments,
    `@jax_function(num_outputs=2)`.

    Args:
        function: takes and returns batches: arrays whose first axis is the batch. Its inputs must have one shape for
            all samples.
        num_outputs: 0: it returns None. 1: an array. More: a tuple of them.
        output_layouts: names of the axes of a sample, such as "HWC": for all outputs, or a tuple with one for each.
            None: those of the input at the same index.
        sharding: the function is called with global arrays, made from the batches of all processes, so that a
            `shard_map` in it may exchange rows between them. Each process must have exactly one device.
        device: "cpu": on the CPU. Otherwise on the pipeline's device.
        preserve: whether it runs even if the pipeline's outputs need nothing that it returns.

    Returns:
        A function of nodes: it returns None, a node, or a tuple of nodes.

    Raises:
        ValueError: an argument is wrong.

    When the pipeline is defined, NotImplementedError: `sharding` is given, and this process has several devices;
    ValueError: `sharding` is not a sharding. When it runs, RuntimeError: the function returned a wrong number of
        outputs or
    of samples; leat.InvalidArgument, which is also a ValueError: its input samples have several shapes, or it returned
    arrays on several devices, on another kind of device, or with another number of axes than their layout has.
    """
    _check_arguments(num_outputs, output_layouts, device)

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def operator(*nodes: Any) -> Any:
            call = _Call(function, num_outputs, output_layouts, sharding, device)
            layouts = [output_layouts] * num_outputs if isinstance(output_layouts, str) else output_layouts
            outputs = tuple(_node.consumer_call(call, nodes, num_outputs, layouts, preserve))
            return outputs if num_outputs > 1 else outputs[0] if outputs else None

        return operator

    return decorator if function is None else decorator(function)
