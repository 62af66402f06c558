# SPDX-License-Identifier: Apache-2.0
import sys

import numpy as np
import pytest

from leat._library import dtypes


@pytest.fixture
def without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    dtypes.of.cache_clear()
    yield
    dtypes.of.cache_clear()


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_every_name_is_a_dtype_that_has_it(name):
    pytest.importorskip("ml_dtypes")
    assert dtypes.of(name).name == name == dtypes.name_of(dtypes.of(name))
    assert not dtypes.is_bits(dtypes.of(name))


def test_names_are_taken_as_numpy_takes_them():
    assert dtypes.name_of(np.uint16) == dtypes.name_of("uint16") == dtypes.name_of("<u2") == "uint16"
    assert dtypes.name_of("bfloat16") == "bfloat16"
    with pytest.raises(TypeError):
        dtypes.name_of("token")


def test_without_ml_dtypes_bits_know_their_name(without_ml_dtypes):
    with pytest.warns(UserWarning, match="pip install ml_dtypes"):
        bits = dtypes.of("bfloat16")
    assert bits == np.uint16 and dtypes.name_of(bits) == "bfloat16" and dtypes.is_bits(bits)
    array = np.zeros(3, np.uint16).view(bits)
    assert dtypes.name_of(array.dtype) == dtypes.name_of(array[1:].dtype) == "bfloat16"
    assert dtypes.name_of(np.dtype(np.uint16)) == "uint16"
