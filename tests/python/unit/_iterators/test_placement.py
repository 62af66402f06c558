# SPDX-License-Identifier: Apache-2.0
"""Several hosts, as the placement sees them: a sharding that shows only some devices."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
from leat._iterators import placement  # noqa: E402

SHAPES = {"image": (8, 8, 3), "label": ()}


class Host:
    """A sharding as one process of several sees it: only some of the devices are addressable."""

    def __init__(self, sharding, devices):
        self.sharding = sharding
        self.devices = set(devices)

    def shard_shape(self, shape):
        return self.sharding.shard_shape(shape)

    def addressable_devices_indices_map(self, shape):
        indices = self.sharding.devices_indices_map(shape)
        return {device: index for device, index in indices.items() if device in self.devices}


def mesh_of(order, shape, names):
    return Mesh(np.array(jax.devices())[list(order)].reshape(shape), names)


@pytest.mark.parametrize(
    ("order", "shape", "names", "spec"),
    [
        (range(8), (8,), ("data",), P("data")),
        ([3, 1, 7, 5, 0, 2, 6, 4], (8,), ("data",), P("data")),
        (range(8), (4, 2), ("data", "model"), P("data")),
        ([0, 4, 1, 5, 2, 6, 3, 7], (4, 2), ("data", "model"), P("data")),
        (range(8), (2, 4), ("data", "model"), P(("data", "model"))),
        (range(8), (2, 4), ("data", "model"), P(("model", "data"))),
        (range(8), (4, 2), ("data", "model"), P("data", "model")),
        (range(8), (8,), ("data",), P()),
    ],
)
@pytest.mark.parametrize("hosts", [[range(8)], [range(4), range(4, 8)], [[0, 3, 5], [1, 2], [4, 6, 7]]])
def test_every_device_gets_what_jax_says_and_rows_are_pulled_once(order, shape, names, spec, hosts):
    sharding = NamedSharding(mesh_of(order, shape, names), spec)
    images = np.random.default_rng(1).integers(0, 255, (16, 8, 8, 3), np.uint8)
    seen = set()
    for host in hosts:
        devices = [jax.devices()[i] for i in host]
        rows, placements = placement.place({"image": (8, 8, 3)}, Host(sharding, devices), 16)
        assert (np.diff(rows.astype(int)) > 0).all()
        truth = sharding.devices_indices_map(images.shape)
        needed = {row for device in devices for row in range(16)[truth[device][0]]}
        assert set(rows.tolist()) == needed
        for piece in placements["image"].pieces:
            np.testing.assert_array_equal(piece.cut(images[rows]), images[truth[piece.device]])
            seen.add(piece.device)
    assert len(seen) == 8


def test_a_dict_may_cut_fields_differently():
    mesh = mesh_of(range(8), (8,), ("data",))
    shardings = {"image": NamedSharding(mesh, P("data")), "label": NamedSharding(mesh, P())}
    local = jax.devices()[2:4]
    rows, placements = placement.place(SHAPES, {name: Host(s, local) for name, s in shardings.items()}, 16)
    assert rows.tolist() == [*range(16)]
    assert [piece.rows for piece in placements["image"].pieces] == [slice(4, 6), slice(6, 8)]
    assert [piece.rows for piece in placements["label"].pieces] == [slice(0, 16)] * 2


def test_a_longer_spec_is_cut_to_the_fields_axes():
    mesh = mesh_of(range(8), (4, 2), ("data", "model"))
    _, placements = placement.place(SHAPES, NamedSharding(mesh, P("data", "model")), 8)
    assert placements["label"].sharding.spec == P("data")
    assert placements["image"].pieces[0].cut(np.zeros((8, 8, 8, 3))).shape == (2, 4, 8, 3)


def test_rows_that_do_not_divide_are_refused():
    sharding = NamedSharding(mesh_of(range(8), (8,), ("data",)), P("data"))
    with pytest.raises(leat.InvalidArgument, match=r"field 'image' of shape \(12, 8, 8, 3\).*divides the 12 rows"):
        placement.place(SHAPES, sharding, 12)


def test_a_dict_must_have_every_field():
    sharding = NamedSharding(mesh_of(range(8), (8,), ("data",)), P("data"))
    with pytest.raises(leat.InvalidArgument, match=r"one for each of the fields \['image', 'label'\]"):
        placement.place(SHAPES, {"image": sharding}, 16)
