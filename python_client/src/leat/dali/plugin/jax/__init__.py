# SPDX-License-Identifier: Apache-2.0
"""Batches of pipelines as `jax.Array`s. The iterators for CLU's training loops are in `leat.dali.plugin.jax.clu`."""

from leat._arrays import jax_version as _jax_version  # noqa: F401  # isort: skip (it says what to install)

from leat.dali.plugin.jax import fn, integration
from leat.dali.plugin.jax._iterator import DALIGenericIterator, data_iterator

__all__ = ["DALIGenericIterator", "data_iterator", "fn", "integration"]
