# SPDX-License-Identifier: Apache-2.0
"""The errors of leat.jax, leat.orbax and leat.torch if the framework is missing or old. None of them is needed here."""

import subprocess
import sys

import pytest

def importing(module, absent=(), jax=""):
    code = f"""
import sys, types
class Absent:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {tuple(absent)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent)
if {jax!r}:
    sys.modules["jax"] = types.ModuleType("jax")
    sys.modules["jax"].__version__ = {jax!r}
import leat
try:
    import {module}
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["leat.jax", "leat.orbax", "leat.dali.plugin.jax", "leat.dali.plugin.jax.clu"])
def test_without_jax_it_is_said_what_to_install(module):
    assert importing(module, ["jax"]) == "ImportError leat.jax needs JAX 0.4.30 or later: pip install 'leat-data[jax]'"


@pytest.mark.parametrize("version", ["0.4.29", "0.3.25", "0.4.9.dev20230101"])
def test_a_jax_that_is_too_old_is_named_with_the_oldest_that_will_do(version):
    said = f"leat.jax needs JAX 0.4.30 or later, and this is {version}: pip install --upgrade jax jaxlib"
    assert importing("leat.jax", jax=version) == f"ImportError {said}"


def test_without_orbax_it_is_said_what_to_install():
    pytest.importorskip("jax")
    assert importing("leat.orbax", ["orbax"]) == "ImportError leat.orbax needs Orbax: pip install 'leat-data[orbax]'"


def test_without_torch_it_is_said_what_to_install():
    said = "leat.torch needs PyTorch 1.12 or later: pip install 'leat-data[torch]'"
    assert importing("leat.torch", ["torch"]) == f"ImportError {said}"


def test_leat_itself_needs_numpy_only():
    assert importing("leat.fn", ["jax", "jaxlib", "torch", "orbax", "tqdm"]) == ""


def test_without_torch_the_dali_plugin_says_what_to_install():
    said = "leat.dali.plugin.pytorch needs PyTorch: pip install 'leat-data[torch]'"
    assert importing("leat.dali.plugin.pytorch", ["torch"]) == f"ImportError {said}"
