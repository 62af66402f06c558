# SPDX-License-Identifier: Apache-2.0
"""Another project on PyPI has the import name `leat` too: if it is installed, importing ours fails with that reason."""

import pathlib
import shutil
import subprocess
import sys

import pytest

import leat

SOURCE = pathlib.Path(leat.__file__).parents[1]


def importing(code, *path):
    program = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}\n{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    return done.stderr.strip().splitlines()[-1] if done.returncode else "imported"


@pytest.fixture
def site(tmp_path):
    """Makes a site-packages with our package."""
    folder = tmp_path / "site packages"
    shutil.copytree(SOURCE / "leat", folder / "leat", ignore=shutil.ignore_patterns("__pycache__", "_native"))
    (folder / "leat_data-0.2.0.dist-info").mkdir()
    return folder


def stranger(folder):
    """Installs what the other project installs: a package of the same name."""
    (folder / "leat-0.1.1.dist-info").mkdir(parents=True)
    (folder / "leat").mkdir(exist_ok=True)
    (folder / "leat/__init__.py").write_text("__version__ = '0.1.1'\n")
    return folder


def test_alone_it_is_imported(site):
    assert importing("import leat; assert leat.__file__.startswith(sys.path[0])", site) == "imported"


def test_installed_over_the_stranger(site):
    ours = (site / "leat/__init__.py").read_text()
    stranger(site)
    (site / "leat/__init__.py").write_text(ours)
    said = importing("import leat", site)
    assert said.startswith(f"ImportError: another project's package `leat` is installed in '{site}' ('leat-0.1.1.dist")
    assert said.endswith("pip uninstall leat leat-data, then pip install leat-data")


@pytest.mark.parametrize("module", ["fn", "dali", "_service.client"])
def test_the_stranger_installed_over_ours(site, module):
    stranger(site)
    said = importing(f"import leat.{module}", site)
    said_first = f"ImportError: '{site}/leat/__init__.py' is another project's package, and files of leat-data"
    assert said.startswith(said_first)


@pytest.mark.parametrize("before", [True, False])
def test_the_stranger_in_another_folder(site, tmp_path, before):
    other = stranger(tmp_path / "other")
    said = importing("import leat.fn", *((other, site) if before else (site, other)))
    if before:  # the other package is imported, which has no fn
        assert said == "ModuleNotFoundError: No module named 'leat.fn'"
    else:
        assert f"is installed in '{other}'" in said


def test_a_library_that_cannot_be_loaded_says_what_it_wants(site, tmp_path, monkeypatch):
    (tmp_path / "libleat.so").write_bytes(b"no library")
    monkeypatch.setenv("LEAT_NATIVE_DIR", str(tmp_path))
    said = importing("import leat", site)
    assert said.startswith(f"ImportError: {tmp_path}/libleat.so: ")
    assert said.endswith("libleat.so wants the glibc and libstdc++ of its build, or newer ones")
