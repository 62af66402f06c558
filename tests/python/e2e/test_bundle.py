# SPDX-License-Identifier: Apache-2.0
"""The contents of the wheel, installed from the build tree to a folder of its own: it needs nothing else of the
machine."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import make_folder

import leat

NATIVE = pathlib.Path(os.environ["LEAT_NATIVE_DIR"])
OF_THE_MACHINE = re.compile(r"^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so")
OF_PYARROW = re.compile(r"^lib(arrow|parquet)\.so\.")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    tree = NATIVE.resolve().parent
    if not (tree / "python_client/native-files.txt").is_file():
        pytest.skip(f"{tree} is no build tree")
    if not shutil.which("patchelf"):
        pytest.skip("no patchelf")
    folder = tmp_path_factory.mktemp("bundle")
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[3] / "python_client/backend")}
    command = [sys.executable, "-m", "leat_backend.native", tree, folder]
    subprocess.run(command, check=True, capture_output=True, timeout=120, env=environment)
    return folder


def test_every_library_is_found_in_the_bundle(bundle):
    files = [path for path in bundle.rglob("*") if path.is_file()]
    assert {"libleat.so", "leat", "leat-coordinator", "leat-worker"} <= {path.name for path in files}
    for path in files:
        lines = subprocess.run(["ldd", path], check=True, capture_output=True, text=True, timeout=60).stdout
        for name, _, where in (line.strip().partition(" => ") for line in lines.splitlines()):
            if name == "statically linked" or OF_THE_MACHINE.match(pathlib.Path(name.split()[0]).name):
                continue
            if path.name.startswith("libleat_parquet-") and OF_PYARROW.match(name):
                continue  # a library of the package pyarrow, which is installed beside ours
            assert where.startswith(str(bundle)), f"{path.name}: {name} => {where}"
            assert name.startswith("leat-"), f"{path.name} asks for {name}"


def test_libleat_shows_its_own_names_only(bundle):
    command = ["nm", "-D", "-C", "--defined-only", bundle / "libleat.so"]
    names = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    shown = {line.split(" ", 2)[2] for line in names.splitlines()}
    assert "leat_connect" in {name.partition("@")[0] for name in shown}
    ours = re.compile(r"(leat_|LEAT_|leat::|(vtable|typeinfo|typeinfo name) for leat::)")
    strangers = {name for name in shown if not ours.match(name)}
    assert not strangers


def test_it_runs_without_an_environment(bundle, tmp_path):
    folder = make_folder(tmp_path, 20)
    code = f"""
import leat
from leat import fn
with leat.connect() as service:
    pipeline = leat.pipeline(lambda: fn.resize(fn.decode(fn.readers.image_folder({str(folder)!r})[0]), size=8))
    assert len(list(service.job("a", pipeline, batch=10).batches())) == 2
maps = open("/proc/self/maps").read()
assert "{bundle}/libleat.so" in maps and "{bundle}/lib/leat-libgrpc.so" in maps and "/libgrpc.so" not in maps
"""
    source = str(pathlib.Path(leat.__file__).parents[1])
    environment = {"LEAT_NATIVE_DIR": str(bundle), "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=environment)
    version = subprocess.run([bundle / "leat", "--version"], check=True, capture_output=True, text=True, env={})
    assert version.stdout.strip() == f"leat {leat.__version__}"
