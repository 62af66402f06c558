# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

jax = pytest.importorskip("jax")
ocp = pytest.importorskip("orbax.checkpoint")

from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402
import leat.orbax  # noqa: E402


@pytest.fixture
def opened(service, graph):
    job = service.job("images", graph.images, batch=16)
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
    return lambda: leat.jax.batches(job, sharding=sharding)


def test_the_place_is_saved_beside_the_model(opened, tmp_path):
    weights = {"w": np.arange(3.0)}
    it = opened()
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        for step in range(3):
            next(it)
            args = ocp.args.Composite(model=ocp.args.StandardSave(weights), data=leat.orbax.CheckpointSave(it))
            manager.save(step, args=args)
        manager.wait_until_finished()
    rest = [int(batch["label"][0]) for batch in it]

    again = opened()
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        assert manager.latest_step() == 2
        args = ocp.args.Composite(model=ocp.args.StandardRestore(weights), data=leat.orbax.CheckpointRestore(again))
        restored = manager.restore(2, args=args)
    np.testing.assert_array_equal(restored["model"]["w"], weights["w"])
    assert restored["data"] is again
    assert [int(batch["label"][0]) for batch in again] == rest


def test_a_checkpoint_without_a_position_is_named(opened, tmp_path):
    with pytest.raises(leat.NotFound, match="leat_position: no such file"):
        leat.orbax.CheckpointHandler().restore(tmp_path, args=leat.orbax.CheckpointRestore(opened()))
