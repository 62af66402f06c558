# SPDX-License-Identifier: Apache-2.0
import pathlib

import leat
from leat import _reference, _stubs


def test_the_stubs_are_those_of_the_library():
    committed = pathlib.Path(leat.__file__).with_name("fn.pyi").read_text(encoding="utf-8")
    assert committed == _stubs.text(), "run: python -m leat._stubs > python_client/src/leat/fn.pyi"


def test_the_page_of_operators_is_that_of_the_library():
    page = pathlib.Path(__file__).parents[3] / "docs" / "OPERATORS.md"
    assert page.read_text(encoding="utf-8") == _reference.text(), "run: python -m leat._reference > docs/OPERATORS.md"
