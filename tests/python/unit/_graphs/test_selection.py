# SPDX-License-Identifier: Apache-2.0
"""leat.Pipeline.select, and the specs that it makes."""

import itertools
import pathlib
import pickle

import numpy as np
import pytest

import leat
from leat import fn
from leat._graphs.pipeline import spec_of


@leat.pipeline
def pets():
    encoded, label = fn.readers.image_folder("/pets")
    return {"image": fn.decode(encoded), "label": label}


def test_a_selection_is_another_pipeline():
    balanced = pets.select(weights="balanced")
    assert spec_of(balanced) == {"pipeline": pets.to_dict(), "selection": {"balanced": True}}
    assert spec_of(pets) == {"pipeline": pets.to_dict()}
    assert balanced.outputs == pets.outputs
    assert "selected by balanced" in repr(balanced)
    again = pickle.loads(pickle.dumps(balanced))
    assert spec_of(again) == spec_of(balanced)


def test_shares_are_by_name_or_by_label():
    shares = pets.select(weights={"cat": 0.5, "*": np.float32(2)})
    assert spec_of(shares)["selection"] == {
        "shares": [{"name": "cat", "share": 0.5}, {"name": "*", "share": 2.0}]
    }
    labels = pets.select(weights={np.int64(3): 1, -1: 0})
    assert [each["name"] for each in spec_of(labels)["selection"]["shares"]] == ["3", "-1"]


def test_a_member_of_a_mixture_keeps_its_selection():
    mixed = leat.mix({"a": pets.select(weights="balanced"), "b": pets}, {"a": 1, "b": 1})
    first, second = mixed._spec()["sources"]
    assert first["selection"] == {"balanced": True}
    assert "selection" not in second


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ("balance", "weights = 'balance'; expected 'balanced', a dict from names of classes to their shares, or a num"),
        ("https://me:word@host/weights.txt", r"weights = 'https://\.\.\.'; expected 'balanced', a dict"),
        (5, "weights = 5; expected 'balanced', a dict"),
        ({1.0}, "weights = {1.0}; expected 'balanced', a dict"),
        (["cat"], r"weights\[0\] = 'cat'; expected a number of 0 or more"),
        ([1, -0.5], r"weights\[1\] = -0.5; expected a number of 0 or more"),
        ([1, float("inf")], r"weights\[1\] = inf; expected a number"),
        (np.ones((2, 2)), r"weights\[0\] = array\(\[1., 1.\]\); expected a number"),
        ([], "weights has no number over 0; expected one for each sample"),
        ([0, 0], "weights has no number over 0; expected one for each sample"),
        (itertools.repeat(1), "weights has more than 100,000 numbers; expected at most that many, or the place of a"),
        ({}, "weights has 0 classes; expected 1 to 65536"),
        ({"cat": -1}, r"weights\['cat'\] = -1; expected a number of 0 or more"),
        ({"cat": float("nan")}, r"weights\['cat'\] = nan"),
        ({"cat": "much"}, r"weights\['cat'\] = 'much'; expected a number"),
        ({"cat": np.str_("much")}, r"weights\['cat'\] = .*'much'.*; expected a number"),
        ({"cat": 0}, "weights are all 0; expected one over 0"),
        ({1.5: 1}, "weights has 1.5; expected the name of a class, or a label"),
        ({True: 1}, "weights has True; expected the name"),
        ({3: 1, "3": 2}, "weights has '3' twice"),
    ],
)
def test_what_no_dataset_can_mean_is_refused(weights, text):
    with pytest.raises(leat.InvalidArgument, match=text):
        pets.select(weights=weights)


def test_a_selection_stays_when_the_function_is_called_with_other_values():
    @leat.pipeline
    def sized(size=8):
        encoded, _ = fn.readers.image_folder("/pets")
        return fn.random_resized_crop(fn.decode(encoded), size=(size, size))

    other = sized.select(where="width >= 256")(16)
    assert spec_of(other) == {"pipeline": sized(16).to_dict(), "selection": {"where": "width >= 256"}}


def test_one_select_says_all():
    with pytest.raises(leat.InvalidArgument, match="expected one select with all arguments"):
        pets.select(weights="balanced").select(weights={"cat": 1})


@pytest.mark.parametrize(
    ("samples", "numbers"),
    [
        (range(3, 10, 2), {"begin": "3", "end": "10", "step": "2"}),
        ([5, 2, 9], {"gaps": ["5", "-3", "7"]}),
        (np.array([1, 0]), {"gaps": ["1", "-1"]}),
        ("s3://bucket/train.npy", {"uri": "s3://bucket/train.npy"}),
        (pathlib.Path("/data/train.npy"), {"uri": "/data/train.npy"}),
        ("train.npy", {"uri": str(pathlib.Path.cwd() / "train.npy")}),
    ],
)
def test_samples_are_a_range_a_list_or_a_file(samples, numbers):
    chosen = pets.select(samples=samples)
    assert spec_of(chosen)["selection"] == {"samples": numbers}
    assert "selected by samples" in repr(chosen)


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        (range(5, 5), r"samples = range\(5, 5\) is empty"),
        (range(9, 0, -1), r"samples = range\(9, 0, -1\); expected a step of 1 or more"),
        (range(-1, 5), r"samples = range\(-1, 5\); expected numbers of 0 or more"),
        ([], "samples is empty; expected samples"),
        ([1, 2, 1], "samples has 1 twice; expected each number once"),
        ([1, -2], r"samples\[1\] = -2; expected a whole number of 0 or more"),
        ([1, 2.5], r"samples\[1\] = 2.5; expected a whole number"),
        ([True], r"samples\[0\] = True; expected numbers; of a mask, numpy.flatnonzero"),
        (np.array([True, False]), r"samples is a mask of bool; expected integers, as numpy.flatnonzero\(mask\)"),
        (np.array([0.0, 1.0]), r"samples is an array of float64; expected integers, as samples.astype\('int64'\)"),
        (np.array([1], "<f2"), "samples is an array of float16; expected integers"),
        (np.array([1j]), "samples is an array of complex128; expected integers"),
        (np.array(["1"]), "samples is an array of str32; expected integers"),
        (np.zeros(2, [("a", "i4"), ("b", "f4")]), "samples is an array of void64; expected integers"),
        (np.zeros((3, 2), np.int64), r"samples is an array of shape \(3, 2\); expected integers along one axis"),
        (np.int64(5), r"samples = .*5.*; expected a range, a list of numbers"),
        (np.array([2**63], np.uint64), r"samples\[0\] = .*9223372036854775808.*; expected a whole number"),
        ("train.txt", "samples = 'train.txt'; expected the place of a .npy file"),
        ("https://me:word@host/train.txt", r"samples = 'https://\.\.\.'; expected the place of a .npy file"),
        (5, "samples = 5; expected a range, a list of numbers, or the place of a .npy file"),
        (b"a.npy", "samples = b'a.npy'; expected a range, a list of numbers, or the place of a .npy file"),
        ({3, 5}, "samples = {3, 5}; expected a range, a list of numbers"),
        ({3: "a"}, "samples = {3: 'a'}; expected a range, a list of numbers"),
        (itertools.count(), "samples has more than 100,000 numbers; expected at most that many, a range"),
    ],
)
def test_samples_that_no_dataset_has_are_refused(samples, text):
    with pytest.raises(leat.InvalidArgument, match=text):
        pets.select(samples=samples)


def test_a_select_says_something():
    with pytest.raises(leat.InvalidArgument, match="select: nothing is selected"):
        pets.select()


def test_a_condition_is_text():
    chosen = pets.select(samples=range(10), where="width >= 256")
    assert spec_of(chosen)["selection"] == {
        "samples": {"begin": "0", "end": "10", "step": "1"},
        "where": "width >= 256",
    }
    for where in ("", "  ", 5):
        with pytest.raises(leat.InvalidArgument, match="expected a condition"):
            pets.select(where=where)


@pytest.mark.parametrize(
    ("weights", "made"),
    [
        ([1, 0, 0.25], {"list": [1.0, 0.0, 0.25]}),
        (np.array([0.5, 2], np.float32), {"list": [0.5, 2.0]}),
        ("s3://bucket/weights.npy", {"uri": "s3://bucket/weights.npy"}),
        (pathlib.Path("/data/weights.npy"), {"uri": "/data/weights.npy"}),
        ("weights.npy", {"uri": str(pathlib.Path.cwd() / "weights.npy")}),
    ],
)
def test_weights_are_of_single_samples(weights, made):
    weighed = pets.select(weights=weights, where="width >= 256")
    assert spec_of(weighed)["selection"] == {"weights": made, "where": "width >= 256"}
    assert "selected by weights" in repr(weighed)


def test_classes_are_the_values_of_a_column():
    chosen = pets.select(by="label", weights={3: 1, "*": 2}, samples=range(10))
    assert spec_of(chosen)["selection"] == {
        "samples": {"begin": "0", "end": "10", "step": "1"},
        "by": "label",
        "shares": [{"name": "3", "share": 1.0}, {"name": "*", "share": 2.0}],
    }


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"by": "label"}, "by = 'label'; expected weights with it: 'balanced', or shares by value"),
        ({"by": "label", "weights": [1.0]}, "by = 'label'; expected weights with it"),
        ({"by": " ", "weights": "balanced"}, "by = ' '; expected the name of a column, as 'label'"),
        ({"by": 5, "weights": "balanced"}, "by = 5; expected the name of a column"),
    ],
)
def test_a_column_without_shares_has_no_meaning(arguments, text):
    with pytest.raises(leat.InvalidArgument, match=text):
        pets.select(**arguments)
