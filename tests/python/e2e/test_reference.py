# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference that repeat what programs print, and the operators' examples and pictures there."""

import os
import pathlib
import sys

import leat
import pytest
from leat import fn
from leat._graphs import compositions, operators

DOCS = pathlib.Path(__file__).parents[3] / "docs"
sys.path.insert(0, str(DOCS / "site"))
import operator_examples  # noqa: E402
import program_pages  # noqa: E402

MAX_PICTURE_BYTES = 15_000


def test_the_pages_of_programs_are_what_they_print():
    pages = program_pages.pages(os.environ["LEAT_NATIVE_DIR"])
    for name, text in pages.items():
        committed = (DOCS / "reference" / name).read_text(encoding="utf-8")
        assert committed == text, f"{name}: run python docs/site/program_pages.py"
    for folder in ("cli", "flags"):
        assert {f"{folder}/{path.name}" for path in (DOCS / "reference" / folder).glob("*.md")} <= {
            *pages, "flags/index.md"}


def test_every_operator_has_an_example():
    known = {info.name for info in operators.table()} | {each.__name__ for each in compositions.ALL}
    assert set(operator_examples.ALL) == known


def checked(name, finished):
    """Makes a pipeline of the example, which is checked then."""

    @leat.pipeline
    def pipeline():
        encoded, label = fn.readers.image_folder("/data/train")
        value = operator_examples.run(operator_examples.ALL[name], fn, encoded, label, fn.decode(encoded))
        return {"value": finished(value)}

    assert pipeline.outputs == ("value",)


@pytest.mark.parametrize("name", operator_examples.ALL)
def test_an_example_is_accepted(name):
    # A value whose size is open, and an encoded image, are no outputs.
    for finished in (lambda value: value, fn.length, fn.peek_shape):
        try:
            checked(name, finished)
            return
        except leat.Error as error:
            last = error
    raise last


def test_pictures_are_those_of_the_examples_and_small():
    pictures = list((DOCS / "images" / "operators").iterdir())
    assert {path.stem for path in pictures} == {*operator_examples.DRAWN, *operator_examples.RANDOM}
    assert all(path.stat().st_size <= MAX_PICTURE_BYTES for path in pictures)
