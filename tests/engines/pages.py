# SPDX-License-Identifier: Apache-2.0
"""The programs that docs/run/ray.md shows."""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def run(name, replaced):
    """Runs a program after the replacement of its names and sizes by those of a test. Returns its variables."""
    text = (HERE / name).read_text()
    for old, new in replaced.items():
        assert old in text, f"{name}: no {old}"
        text = text.replace(old, new)
    variables = {}
    exec(compile(text, name, "exec"), variables)
    return variables
