# SPDX-License-Identifier: Apache-2.0
"""What examples and leat.orbax use of Orbax, which has no types."""

from typing import Any

args: Any
CheckpointHandler: Any
CheckpointManager: Any
CheckpointManagerOptions: Any
