# SPDX-License-Identifier: Apache-2.0
"""Public names say that they are of `leat`: help, tracebacks and pickles name no private module."""

import pickle

import numpy as np
import pytest

import leat


@pytest.mark.parametrize("name", [name for name in leat.__all__ if name != "fn"])
def test_public_names_are_of_a_public_module(name):
    value = getattr(leat, name)
    assert value.__module__ in ("leat", "leat.errors")
    assert pickle.loads(pickle.dumps(value)) is value


def test_pickles_name_public_modules_alone(graph):
    for each in (graph.images, leat.Field(np.dtype("uint8"), (3,)), leat.InvalidArgument("no")):
        assert b"leat._" not in pickle.dumps(each, protocol=0)
