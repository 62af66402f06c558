# SPDX-License-Identifier: Apache-2.0
import pathlib

import leat
from leat._graphs import stubs


def test_the_stubs_are_those_of_the_library():
    committed = pathlib.Path(leat.__file__).with_name("fn.pyi").read_text(encoding="utf-8")
    assert committed == stubs.text(), "run: python -m leat._graphs.stubs > python_client/src/leat/fn.pyi"

