# SPDX-License-Identifier: Apache-2.0
"""A source and its test have matching names: tests/core/plan/plan_test.cc tests core/plan/plan.cc.

A longer test name also matches: fetcher_waits_test.cc tests fetcher.cc. mirror.txt beside this file lists the sources
without such a test and the tests without such a source. The list only shrinks.
"""

import pathlib

import common

TOPS = ("core", "cuda", "rpc", "server", "worker", "client")
EXCEPTIONS = pathlib.Path("tests/lint/mirror.txt")
_TEST = "_test.cc"


def alone(root):
    """Returns the sources without a test, and the tests without a source."""
    paths = [str(path) for path in common.files(root, ".cc", ".h")]
    sources = {path[:-3] for path in paths if path.endswith(".cc") and path.split("/")[0] in TOPS}
    # A header without a source may have a test, but needs none.
    known = sources | {path[:-2] for path in paths if path.endswith(".h") and path.split("/")[0] in TOPS}
    tests = {path[len("tests/"):-len(_TEST)] for path in paths
             if path.endswith(_TEST) and path.startswith("tests/") and path.split("/")[1] in TOPS}
    tested = {_source_of(test, known) for test in tests}
    return ({f"{source}.cc" for source in sources - tested}
            | {f"tests/{test}{_TEST}" for test in tests if _source_of(test, known) is None})


def _source_of(test, known):
    """Returns the source with the test's name, or with its longest beginning; None if there is none."""
    while test not in known:
        test, underscore, _ = test.rpartition("_")
        if not underscore or "/" not in test:
            return None
    return test


def check(root):
    root = pathlib.Path(root)
    listed = set()
    if (root / EXCEPTIONS).exists():
        listed = {line for line in common.text(root, EXCEPTIONS).splitlines() if not line.startswith("#")}
    found = alone(root)
    findings = [f"{path}: no source of its name: name it after what it tests" if path.startswith("tests/") else
                f"{path}: no test of its name: want tests/{path[:-3]}{_TEST}" for path in sorted(found - listed)]
    return findings + [f"{EXCEPTIONS}: take {path} away: the list only shrinks" for path in sorted(listed - found)]


if __name__ == "__main__":
    common.main(check, __doc__)
