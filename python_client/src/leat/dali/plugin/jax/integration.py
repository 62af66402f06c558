# SPDX-License-Identifier: Apache-2.0
"""The functions of DALI's module of this name, which make a `jax.Array` from a tensor of `Pipeline.run`."""

from __future__ import annotations

import jax
import numpy as np

from leat._arrays import pipeline_placing as _placing
from leat.dali._tensors import TensorCPU


def _to_jax_array(dali_tensor: TensorCPU, copy: bool) -> jax.Array:
    """Places the tensor on the device of its pipeline, if the script has it on the GPU there; else on the CPU.

    Args:
        dali_tensor: a result of `as_tensor` of a batch, or a sample.
        copy: accepted; JAX copies where the memory is not the device's.
    """
    return jax.device_put(np.asarray(dali_tensor), _placing.local_device(dali_tensor._target))


def _jax_device(jax_array: jax.Array) -> jax.Device:
    """Returns the device of an array that is on one."""
    return next(iter(jax_array.devices()))
