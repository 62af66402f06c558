# SPDX-License-Identifier: Apache-2.0
"""leat.dali: what an `if` on a node leaves behind, besides the names that both of its branches assign."""

import collections

import numpy as np
import pytest
from leat.dali import fn, pipeline_def, types
from leat.errors import PipelineError

ROWS = 8
NUMBERS = np.arange(ROWS, dtype=np.int32)
Pair = collections.namedtuple("Pair", "value half")


def numbers():
    return fn.external_source(lambda: NUMBERS, dtype=types.INT32, ndim=0)


def traced(function):
    return pipeline_def(function, batch_size=ROWS, enable_conditionals=True)()


def values_of(function):
    return [np.asarray(each).tolist() for each in traced(function)._next()]


class Kept:
    value = None


def into_a_dictionary():
    x = numbers()
    found = {"value": x}
    if x > 3:
        found["value"] = x * 10
    return found["value"]


def into_an_object():
    x, kept = numbers(), Kept()
    if x > 3:
        kept.value = x * 10
    else:
        kept.value = x
    return kept.value


def a_number_into_a_dictionary():
    x, options = numbers(), {"by": 1}
    if x > 3:
        options["by"] += 9
    return x * options["by"]


def out_of_a_dictionary():
    x = numbers()
    found = {"value": x}
    if x > 3:
        del found["value"]
    return found.get("value", x)


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (into_a_dictionary, r"found\['value'\]"),
        (into_an_object, r"kept\.value"),
        (a_number_into_a_dictionary, r"options\['by'\]"),
        (out_of_a_dictionary, r"found\['value'\]"),
    ],
)
def test_a_part_of_an_object_is_not_assigned_for_some_samples(function, place):
    with pytest.raises(PipelineError, match=f"an `if` on a node assigns {place}: .* after the `if`"):
        traced(function)


def appended():
    x, found = numbers(), []
    if x > 3:
        found.append(x * 10)
    else:
        found.append(x + 1)
    return found[0]


def extended():
    x = numbers()
    found = [x]
    if x > 3:
        found += [x * 10]
    return found[-1] + 1


def used_by_the_other_branch():
    x, found = numbers(), []
    if x > 3:
        found.append(x * 10)
        y = x
    else:
        y = found[0]
    return y


def appended_within():
    x, found = numbers(), []
    if x > 1:
        if x > 3:
            found.append(x * 10)
        y = x + found[0]
    else:
        y = x
    return y


def called():
    x, found = numbers(), []
    if x > 3:
        found.append(x * 10)
    fn.python_function(found[0], function=print, num_outputs=0)
    return x


@pytest.mark.parametrize("function", [appended, extended, used_by_the_other_branch, appended_within, called])
def test_a_value_of_one_branch_is_not_that_of_all_samples(function):
    with pytest.raises(PipelineError, match=r"conditionals\.py:\d+> is made in a branch of an `if` on a node, and"):
        traced(function)


def test_what_a_branch_makes_for_itself_and_what_is_drawn_may_be_kept_anywhere():
    drawn = {}

    def number():
        if not drawn:
            drawn["one"] = fn.random.uniform(values=[5.0, 5.0]) * 2
        return drawn["one"]

    def kept():
        drawn.clear()
        x = numbers()
        if x > 3:
            parts = [x]
            parts.append(x * 10)
            parts[0] = parts[1] + fn.cast(number(), dtype=types.INT32)
            y = parts[0]
        else:
            y = x
        return y, number()

    found, tens = values_of(kept)
    assert found == [each * 10 + 10 if each > 3 else each for each in range(ROWS)]
    assert tens == [10.0] * ROWS


def test_a_branch_may_have_functions_of_its_own():
    def scaled(after=False):
        x = numbers()
        if x > 3:

            def scale(y):
                return y * 10

            z = scale(x)
        else:

            def scale(y):
                return y + 1

            z = scale(x)
        return scale(z) if after else z

    assert values_of(scaled) == [[each * 10 if each > 3 else each + 1 for each in range(ROWS)]]
    with pytest.raises(UnboundLocalError, match="scale is defined by each branch .* for itself, and used after it"):
        pipeline_def(scaled, batch_size=ROWS, enable_conditionals=True)(after=True)


def test_containers_and_named_tuples_are_chosen_part_by_part():
    def pairs():
        x = numbers()
        if x > 3:
            pair, parts = Pair(x * 10, half=x / 2), {"all": [x, x + 1]}
        else:
            pair, parts = Pair(x, half=x / 4), {"all": [x + 1, x]}
        return pair.value, pair.half, parts["all"][0]

    value, half, first = values_of(pairs)
    assert value == [each * 10 if each > 3 else each for each in range(ROWS)]
    assert half == [each / 2 if each > 3 else each / 4 for each in range(ROWS)]
    assert first == [each if each > 3 else each + 1 for each in range(ROWS)]


def test_values_of_two_shapes_are_not_chosen_from():
    def gray(channels):
        x = fn.external_source(lambda: np.zeros((ROWS, 4, 4, 3), np.uint8), dtype=types.UINT8, layout="HWC")
        x = fn.crop(fn.color_space_conversion(x, image_type=types.RGB, output_type=types.BGR), crop=(2, 2))
        if fn.random.coin_flip(dtype=types.BOOL):
            x = fn.color_space_conversion(x, image_type=types.BGR, output_type=channels)
        return x

    for channels in (types.RGB, types.YCbCr):
        pipeline_def(gray, batch_size=ROWS, enable_conditionals=True)(channels)
    with pytest.raises(PipelineError, match=r"give x in the shapes \(2, 2, 1\) and \(2, 2, 3\); expected one shape"):
        pipeline_def(gray, batch_size=ROWS, enable_conditionals=True)(types.GRAY)


def test_a_chosen_value_is_on_the_gpu_if_that_of_a_branch_is():
    def placed():
        x = numbers()
        if x > 3:
            y = x
        else:
            y = x.gpu()
        return x, y, y if x > 3 else x

    assert traced(placed)._on_gpu() == [False, True, True]


def test_a_function_of_this_process_in_a_branch_is_called_with_all_samples_and_a_warning_says_so():
    seen = []

    def function(x):
        seen.append(int(x))
        return x * 10

    def called():
        x = numbers()
        if x > 3:
            y = fn.python_function(x, function=function)
        else:
            y = x
        return fn.python_function(y, function=lambda y: y + 1)

    with pytest.warns(Warning, match="in a branch of an `if` on a node .* gets all samples of the batch") as caught:
        (found,) = values_of(called)
    assert found == [each * 10 + 1 if each > 3 else each + 1 for each in range(ROWS)]
    assert seen[:ROWS] == NUMBERS.tolist()
    assert sum("in a branch of" in str(each.message) for each in caught) == 1
