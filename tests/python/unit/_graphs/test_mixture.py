# SPDX-License-Identifier: Apache-2.0
"""leat.mix: the specs that it makes, and the texts of what it refuses."""

import pickle

import numpy as np
import pytest

import leat
from leat import fn


@leat.pipeline
def photos(path):
    encoded, label = fn.readers.image_folder(path)
    return {"image": fn.decode(encoded), "label": label}


SOURCES = {name: photos(f"/{name}") for name in ("web", "books", "code")}
EVEN = dict.fromkeys(SOURCES, 1)


def test_a_mixture_is_its_sources_and_their_shares():
    mixed = leat.mix(SOURCES, {"code": 1, "web": 7, "books": np.float32(2)}, source_field="from")
    spec = mixed._spec()
    assert [each["name"] for each in spec["sources"]] == ["web", "books", "code"]
    assert spec["shares"] == [{"from_step": "0", "weights": [7.0, 2.0, 1.0]}], "in the order of the sources"
    assert (spec["mix_end"], spec["source_field"]) == ("MIX_END_STREAM", "from")
    assert mixed.outputs == ("image", "label", "from")
    assert repr(mixed) == "<leat.mix of 3: web 70.0%, books 20.0%, code 10.0%>"
    assert pickle.loads(pickle.dumps(mixed))._spec() == spec
    later = leat.mix(SOURCES, [(0, EVEN), (np.int64(10_000), {**EVEN, "web": 0})], ends="all")._spec()
    assert later["shares"][1] == {"from_step": "10000", "weights": [0.0, 1.0, 1.0]}
    assert later["mix_end"] == "MIX_END_ALL" and "source_field" not in later


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ({**EVEN, "books": float("nan")}, "weights['books'] = nan; expected a number of 0 or more"),
        ({**EVEN, "books": -1}, "weights['books'] = -1; expected a number of 0 or more"),
        ({**EVEN, "books": float("inf")}, "weights['books'] = inf; expected a number of 0 or more"),
        ({**EVEN, "books": "much"}, "weights['books'] = 'much'; expected a number of 0 or more"),
        ({"web": 1, "books": 1}, "weights has no 'code'; sources are web, books, code"),
        ({**EVEN, "cod": 1}, "weights has 'cod'; sources are web, books, code"),
        ([(0, EVEN), (5, {"web": 1})], "weights[1][1] has no 'books'; sources are web, books, code"),
        ([(0, EVEN), (5, {**EVEN, "code": -2})], "weights[1][1]['code'] = -2; expected a number of 0 or more"),
        ([(0, EVEN), (-5, EVEN)], "weights[1][0] = -5; expected a whole number from 0 to 1099511627775"),
        ([(0, EVEN), EVEN], "weights[1] = {'web': 1, 'books': 1, 'code': 1}; expected (step, dict from names"),
        ([(0, 7)], "weights[0][1] = 7; expected a dict from names of sources to weights"),
        ([], "weights = []; expected a dict from names to weights, or a list of (step, dict)"),
        (0.5, "weights = 0.5; expected a dict from names to weights, or a list of (step, dict)"),
    ],
)
def test_weights_that_are_wrong_are_named(weights, text):
    with pytest.raises(leat.InvalidArgument) as raised:
        leat.mix(SOURCES, weights)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("sources", "kind", "text"),
    [
        ([photos("/a")], leat.InvalidArgument, "expected a dict from names to pipelines"),
        ({"a": photos("/a")}, leat.InvalidArgument, "sources has 1; expected 2 to 1,000 pipelines"),
        ({"a": photos("/a"), 2: photos("/b")}, leat.InvalidArgument, "sources has the name 2; expected a str"),
        ({"a": photos("/a"), "b": photos}, leat.PipelineError, "@leat.pipeline, called with its arguments"),
        ({"a": photos("/a"), "b": "/b"}, leat.PipelineError, "sources['b'] = '/b'; expected a function with"),
        (
            {"a": photos("/a"), "b": leat.mix(SOURCES, EVEN)},
            leat.InvalidArgument,
            "sources['b'] is a mixture; expected a pipeline (multiply its weights instead)",
        ),
    ],
)
def test_sources_that_are_no_pipelines_are_named(sources, kind, text):
    with pytest.raises(kind) as raised:
        leat.mix(sources, {"a": 1, "b": 1})
    assert text in str(raised.value)


def test_a_name_without_a_letter_is_no_name():
    with pytest.raises(leat.InvalidArgument, match="source_field = ''; expected a name, or None"):
        leat.mix(SOURCES, EVEN, source_field="")


def test_other_options_that_are_wrong_are_named():
    with pytest.raises(leat.InvalidArgument, match="ends = 'frist'; expected one of 'first', 'all'; did you mean"):
        leat.mix(SOURCES, EVEN, ends="frist")
    with pytest.raises(leat.InvalidArgument, match="source_field = 3; expected a name, or None"):
        leat.mix(SOURCES, EVEN, source_field=3)
