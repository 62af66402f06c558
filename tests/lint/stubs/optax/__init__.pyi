# SPDX-License-Identifier: Apache-2.0
"""What examples use of optax, which does not say that it has types."""

import jax
from optax._src.base import GradientTransformation as GradientTransformation
from optax._src.base import GradientTransformationExtraArgs as GradientTransformationExtraArgs

def adamw(learning_rate: float) -> GradientTransformationExtraArgs: ...
def softmax_cross_entropy_with_integer_labels(logits: jax.Array, labels: jax.Array) -> jax.Array: ...
