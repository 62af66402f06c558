# SPDX-License-Identifier: Apache-2.0
import functools

import pytest
from leat.dali._conditionals import converted
from leat.errors import PipelineError


def test_variables_of_functions_around_it_have_the_value_of_the_time_of_the_call():
    def graph(x, *, plus=0):
        return [x + later + plus + each for each in (added,)]

    made, added = converted(graph), 100
    later = 1
    first = made(1)
    later = 10
    assert (first, made(1, plus=2)) == ([102], [113])


def test_a_decorator_whose_work_would_be_lost_is_refused():
    def twice(function):
        return functools.wraps(function)(lambda x: 2 * function(x))

    @twice
    def graph(x):
        return x

    with pytest.raises(PipelineError, match="graph, which a decorator has wrapped"):
        converted(graph)


def test_defaults_are_those_of_the_function_and_not_computed_again():
    size, made = 3, []

    def graph(x, by=size, *, plus=made.append(1)):
        return x * by, plus

    assert converted(graph)(2) == (6, None)
    assert converted(graph)(2, 4, plus=5) == (8, 5)
    assert made == [1]


def test_a_branch_may_define_and_import_names():
    found = []

    def graph(small):
        if small:
            import math as maths
            import os.path

            def note(x):
                found.append(x / 2)

            class Kind:
                name = "small"
        else:
            import cmath as maths
            import os

            def note(x):
                found.append(x * 2)

            class Kind:
                name = "large"

        note(4)
        return maths.__name__, os.path.basename("a/b"), Kind.name

    made = converted(graph)
    assert made(True) == ("math", "b", "small")
    assert made(False) == ("cmath", "b", "large")
    assert found == [2, 8]


each = 7


def test_variables_of_comprehensions_and_of_functions_in_a_branch_are_their_own():
    def graph(x):
        def pair(v):
            w = v + 1
            return v, w

        if x:
            found = [each for each in range(3)] + [pair(v) for v in [x]] + list(map(lambda w: w * 2, [x]))
        else:
            found = []
        return found, each

    assert converted(graph)(5) == ([0, 1, 2, (5, 6), 10], 7)
    assert converted(graph)(0) == ([], 7)


def test_a_variable_that_no_branch_assigned_is_unbound_whatever_is_asked_of_it():
    def graph(x):
        if x:
            y = x
        return y == 3

    assert converted(graph)(3)
    with pytest.raises(UnboundLocalError, match="y is assigned in one branch only"):
        converted(graph)(0)


def test_texts_of_several_lines_stay_as_they_are_and_errors_have_their_lines():
    def graph(x):
        text = """
first
    second
        third
"""
        if x:
            text += "end"
        return text if x < 9 else 1 / (x - 9)

    assert converted(graph)(1) == graph(1) == "\nfirst\n    second\n        third\nend"
    with pytest.raises(ZeroDivisionError) as caught:
        converted(graph)(9)
    assert caught.traceback[-1].lineno + 1 == graph.__code__.co_firstlineno + 8
