# SPDX-License-Identifier: Apache-2.0
"""What scripts call of DALI's module of this name, to make a `jax.Array` of a tensor that `Pipeline.run` gave."""

from __future__ import annotations

import jax
import numpy as np

from leat import _pipeline_placing as _placing
from leat.dali._tensors import TensorCPU


def _to_jax_array(dali_tensor: TensorCPU, copy: bool) -> jax.Array:
    """The tensor on the device of its pipeline, if the script has it on the GPU there; else on the CPU.

    Args:
        dali_tensor: what `as_tensor` of a batch gives, or a sample.
        copy: accepted; JAX copies where the memory is not the device's.
    """
    return jax.device_put(np.asarray(dali_tensor), _placing.local_device(dali_tensor._target))


def _jax_device(jax_array: jax.Array) -> jax.Device:
    """The device of an array that is on one."""
    return next(iter(jax_array.devices()))
