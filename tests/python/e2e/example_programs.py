# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of docs/examples, for test_examples.py and test_examples_rows.py."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import test_data

EXAMPLES = pathlib.Path(__file__).parents[3] / "docs" / "examples"


def data(name):
    return str(test_data.made(name))


def started(name, *arguments, folder=None, **environment):
    # It gets its own devices: it sets XLA_FLAGS itself.
    inherited = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**inherited, **environment},
    )


def finished(process):
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error[-4000:]
    return out


def rest(process):
    """Returns what a program that ends prints after lines that were read. `communicate` alone would lose what such a
    read has buffered."""
    out = process.stdout.read()
    process.communicate(timeout=60)
    return out


def run(*arguments, **environment):
    return finished(started(*arguments, **environment))


def numbers(pattern, text):
    return [float(found) for found in re.findall(pattern, text)]


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Makes a folder of 25 classes with four photos each."""
    root = tmp_path_factory.mktemp("few")
    for folder in sorted(test_data.made("imagenet-sample").iterdir())[:25]:
        shutil.copytree(folder, root / folder.name)
    return str(root)
