# SPDX-License-Identifier: Apache-2.0
"""Checks of leat.dali for sources and outputs before anything runs."""

import logging
import subprocess
import sys

import numpy as np
import pytest

from leat.dali import Pipeline, _operator, fn, types
from leat.dali._ways import Ways


def test_a_hint_whose_loss_costs_speed_is_a_warning_once(caplog, monkeypatch):
    monkeypatch.setattr(_operator, "_warned", set())
    with caplog.at_level(logging.WARNING, "leat.dali"):
        for _ in range(2):
            with Pipeline(batch_size=2, py_num_workers=8):
                fn.external_source(lambda i: np.zeros((2, 1)), parallel=True)
                fn.external_source(lambda i: np.zeros((2, 1)), parallel=False)
    assert len(caplog.messages) == 2
    assert "py_num_workers" in caplog.messages[0] and "parallel=True" in caplog.messages[1]


def test_a_pipeline_is_run_in_one_way():
    ways, way = Ways(), types.PipelineAPIType
    ways.use(way.BASIC)
    ways.use(way.BASIC)
    with pytest.raises(RuntimeError, match="used: PipelineAPIType.BASIC, but trying to use PipelineAPIType.ITERATOR"):
        ways.use(way.ITERATOR)
    ways.enable_check(False)
    ways.use(way.ITERATOR)


def test_outputs_are_where_the_script_has_them():
    with Pipeline(batch_size=2) as pipeline:
        x = fn.external_source(lambda i: np.zeros((2, 1)))
        pipeline.set_outputs(x, x.gpu(), fn.external_source(lambda i: np.zeros((2, 1)), device="gpu"))
    assert pipeline._on_gpu() == [False, True, True]


def test_modules_are_imported_in_one_direction():
    """No module imports, at any time, a module that imports it."""
    code = """
import ast, pathlib, leat
root = pathlib.Path(leat.__file__).parent
names = {}
for path in root.rglob("*.py"):
    parts = path.relative_to(root.parent).with_suffix("").parts
    names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path

def imported(name):
    for node in ast.walk(ast.parse(names[name].read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leat"):
            for each in node.names:
                full = f"{node.module}.{each.name}"
                yield full if full in names else node.module

graph = {name: {each for each in imported(name) if each in names and each != name} for name in names
         if names[name].name != "__init__.py"}
def reach(name, seen):
    for each in graph.get(name, ()):
        if each not in seen:
            seen.add(each)
            reach(each, seen)
    return seen
print([name for name in graph if name in reach(name, set())])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
