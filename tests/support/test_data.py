# SPDX-License-Identifier: Apache-2.0
"""Finds pictures and labelled sets for tests. Two folders have the same parts: imagenet-sample/ (500 photos),
dogs-cats/, mnist/, cifar10-bin/ and image-variants/. One is made by the build (target test_data; CMake passes its path
in LEAT_MADE_DATA), always exists, and has image-damaged/ too. The other is real data that LEAT_TEST_DATA may name.
test_data.h is the same in C++.
"""

import os
import pathlib
import unittest

MADE, REAL = "LEAT_MADE_DATA", "LEAT_TEST_DATA"


def folder(variable, name):
    """Returns the folder `name` of the data that `variable` names. Missing real data skips the test, under unittest and
    pytest alike; missing made data fails it."""
    root = os.environ.get(variable)
    path = pathlib.Path(root or "", name)
    if root and path.is_dir():
        return path
    if variable == REAL:
        why = f"has no such folder ({root})" if root else "is not set"
        raise unittest.SkipTest(f"no {name} of real data: {REAL} {why}")
    raise AssertionError(f"no {path}: build the target test_data, and let ctest set {MADE} (BUILD/test-data)")


def made(name):
    return folder(MADE, name)


def real(name):
    return folder(REAL, name)


def best(name):
    """Returns real data if it exists, or else made data; for tests that need only one."""
    try:
        return real(name)
    except unittest.SkipTest:
        return made(name)


def images(root):
    """Returns the JPEG files under a folder, sorted."""
    return sorted(path for path in pathlib.Path(root).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
