# SPDX-License-Identifier: Apache-2.0
from . import _jax as _jax
