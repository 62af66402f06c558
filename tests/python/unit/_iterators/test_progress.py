# SPDX-License-Identifier: Apache-2.0
from leat._iterators.progress import passes_text
from leat._service.facts import Pass


class Job:
    def __init__(self, *sources):
        self.sources = sources

    def passes(self, epoch, step):
        assert (epoch, step) == (1, 2)
        return {name: Pass(i, 0.25) for i, name in enumerate(self.sources)}


def test_the_bar_of_a_mixture_shows_its_passes():
    assert passes_text(Job("web", "books"), 1, 2) == ", books 1.25, web 0.25 passes"
    assert passes_text(Job(*"abcde"), 1, 2) == ", e 4.25, d 3.25, c 2.25, b 1.25 and 1 more passes"
    assert passes_text(Job(), 1, 2) == ""
