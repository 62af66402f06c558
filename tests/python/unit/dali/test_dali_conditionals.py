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
