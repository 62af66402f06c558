# SPDX-License-Identifier: Apache-2.0
"""An iterator's position in Orbax checkpoints, beside the model.

    manager.save(step, args=ocp.args.Composite(
        model=ocp.args.StandardSave(state), data=leat.orbax.CheckpointSave(batches)))
    manager.restore(step, args=ocp.args.Composite(
        model=ocp.args.StandardRestore(state), data=leat.orbax.CheckpointRestore(batches)))

`save` takes the position when it is called, also where Orbax writes the model in the background. The position is the
same on every process at the same step, so one file is written whatever their number, and it may be restored on another
number of processes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from leat._arrays import jax_version as _jax_version  # noqa: F401  # isort: skip (it says what to install)

import jax

try:
    import orbax.checkpoint as ocp
except ModuleNotFoundError as _error:
    if not (_error.name or "").startswith("orbax"):
        raise
    raise ImportError("leat.orbax needs Orbax: pip install 'leat-data[orbax]'") from _error

from leat.errors import NotFound

__all__ = ["CheckpointHandler", "CheckpointRestore", "CheckpointSave"]

_FILE = "leat_position"


class CheckpointHandler(ocp.CheckpointHandler):
    """Saves and restores an object with `get_state` and `set_state`, as `leat.Batches` and `leat.jax.GlobalBatches`.

        ocp.Checkpointer(leat.orbax.CheckpointHandler()).save(path, args=leat.orbax.CheckpointSave(batches))

    A `CheckpointManager` takes it for `CheckpointSave` and `CheckpointRestore` by itself.
    """

    def save(self, directory: Any, item: Any = None, args: Any = None) -> None:
        """Writes the iterator's position, on the first process."""
        iterator = item if args is None else args.item
        if jax.process_index() == 0:
            (directory / _FILE).write_bytes(iterator.get_state())

    def restore(self, directory: Any, item: Any = None, args: Any = None) -> Any:
        """Moves the iterator to the saved position, and returns it.

        Raises:
            leat.NotFound: nothing was saved there.
            leat.InvalidArgument: the state is of another job.
        """
        iterator = item if args is None else args.item
        path = directory / _FILE
        if not path.exists():
            raise NotFound(f"{path}: no such file; expected a checkpoint that leat.orbax.CheckpointSave was part of")
        iterator.set_state(path.read_bytes())
        return iterator


@ocp.args.register_with_handler(CheckpointHandler, for_save=True)
@dataclasses.dataclass
class CheckpointSave(ocp.args.CheckpointArgs):
    """Saves the position of `item`."""

    item: Any


@ocp.args.register_with_handler(CheckpointHandler, for_restore=True)
@dataclasses.dataclass
class CheckpointRestore(ocp.args.CheckpointArgs):
    """Moves `item` to the saved position."""

    item: Any
