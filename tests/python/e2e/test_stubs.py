# SPDX-License-Identifier: Apache-2.0
import pathlib

import leat
from leat._graphs import reference, stubs


def test_the_stubs_are_those_of_the_library():
    committed = pathlib.Path(leat.__file__).with_name("fn.pyi").read_text(encoding="utf-8")
    assert committed == stubs.text(), "run: python -m leat._graphs.stubs > python_client/src/leat/fn.pyi"


def test_the_page_of_operators_is_that_of_the_library():
    page = pathlib.Path(__file__).parents[3] / "docs" / "OPERATORS.md"
    committed = page.read_text(encoding="utf-8")
    assert committed == reference.text(), "run: python -m leat._graphs.reference > docs/OPERATORS.md"
