# SPDX-License-Identifier: Apache-2.0
"""Leat for scripts that were written for `amd.rocal`: replace that name by `leat.rocal`.

    from leat.rocal.pipeline import Pipeline
    from leat.rocal.plugin.jax import ROCALJaxIterator
    import leat.rocal.fn as fn
    import leat.rocal.types as types

docs/guide/move-from-rocal.md lists what works, what is accepted without effect, what is refused, and where Leat differs
on purpose.
"""

from leat.rocal import decoders, fn, noise, pipeline, random, readers, types
from leat.rocal.pipeline import Pipeline, pipeline_def

__all__ = ["Pipeline", "decoders", "fn", "noise", "pipeline", "pipeline_def", "random", "readers", "types"]
