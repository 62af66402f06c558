# SPDX-License-Identifier: Apache-2.0
"""The build tree that the wheel is made from: build/release, which deploy/demo builds too, or LEAT_BUILD_DIR.

A configured tree is used as it is, so that nothing is compiled again for the wheel.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata, util

from leat_backend import needs
from leat_backend.errors import BuildError
from leat_backend.wheel import ROOT

# Releases of pyarrow whose headers worker/source/parquet compiles with.
ARROW_MAJORS = (25, 26)
_MIB = 1 << 20
_SPACE_MIB = 1500  # size of a tree built from scratch


def folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("LEAT_BUILD_DIR") or ROOT / "build/release").absolute()


def _cache(tree: pathlib.Path) -> dict[str, str]:
    """Returns CMake's variables of a tree; none if it is not configured."""
    file = tree / "CMakeCache.txt"
    if not file.is_file():
        return {}
    return dict(re.findall(r"^([\w-]+):\w+=(.*)$", file.read_text(), re.M))


def _pyarrow_wanted() -> int:
    """Returns the release of pyarrow in the environment that pip builds for, else the newest for its Python."""
    newest = ARROW_MAJORS[-1] if sys.version_info >= (3, 11) else 25
    places = {sysconfig.get_path("platlib"), sysconfig.get_path("purelib")}
    for found in metadata.distributions(name="pyarrow", path=list(places)):
        major = int(found.version.partition(".")[0])
        if major in ARROW_MAJORS:
            return major
    return newest


def _staged(tree: pathlib.Path) -> list[pathlib.Path]:
    """Returns the folders of pyarrow that the tree is configured with."""
    return [pathlib.Path(p) for p in _cache(tree).get("LEAT_PYARROW", "").split(";") if p and pathlib.Path(p).is_dir()]


def _major(pyarrow: pathlib.Path) -> int:
    config = (pyarrow / "include/arrow/util/config.h").read_text()
    found = re.search(r"ARROW_VERSION_MAJOR (\d+)", config)
    return int(found[1]) if found else 0


def requirements() -> list[str]:
    """Returns what pip installs for the build: pyarrow, with Arrow's headers and libraries, unless the tree has it."""
    tree = folder()
    if "LEAT_BUILD_DIR" in os.environ and _cache(tree) or os.environ.get("LEAT_PARQUET") == "OFF":
        return []
    wanted = _pyarrow_wanted()
    if wanted in map(_major, _staged(tree)):
        return []
    return [f"pyarrow=={wanted}.*"]


def _stage_pyarrow() -> pathlib.Path | None:
    """Copies Arrow's headers and libraries from the pyarrow that pip has installed to build/, and keeps them there."""
    spec = util.find_spec("pyarrow")
    if spec is None or not spec.submodule_search_locations:
        return None
    source = pathlib.Path(next(iter(spec.submodule_search_locations)))
    target = folder().parent / f"pyarrow-{metadata.version('pyarrow')}" / "pyarrow"
    if not target.exists():
        partial = target.with_name("pyarrow.partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(source / "include", partial / "include")
        for library in source.glob("lib*.so.*"):
            if re.match(r"lib(arrow|parquet)\.so\.\d+$", library.name):
                shutil.copy(library, partial)
        for info in source.parent.glob("pyarrow-*.dist-info"):  # its licence, for deploy/bundle
            shutil.copytree(info, target.parent / info.name, dirs_exist_ok=True)
        partial.rename(target)
    return target


@contextlib.contextmanager
def _alone(tree: pathlib.Path) -> Iterator[None]:
    """Holds the tree's lock: one build at a time."""
    tree.mkdir(parents=True, exist_ok=True)
    with open(tree / ".leat-build.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(tree: pathlib.Path, step: str, *argv: str | os.PathLike[str]) -> None:
    """Runs a step of the build. Its output is shown; an error has the end of it."""
    said = []
    with subprocess.Popen([str(word) for word in argv], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    if process.returncode == 0:
        return
    log = "".join(said)
    if "No space left on device" in log:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tree))
    missing = needs.of_cmake(log) if step == "configure" else ""
    raise BuildError(missing or f"the {step} step of the build in {tree} failed (exit code {process.returncode}); "
                     f"the end of what it said:\n{''.join(said[-30:])}")


def _configure(tree: pathlib.Path) -> None:
    cache = _cache(tree)
    home = cache.get("CMAKE_HOME_DIRECTORY", str(ROOT))
    if pathlib.Path(home).resolve() != ROOT:
        raise BuildError(f"{tree} is a build of other sources, {home}: remove it, or set LEAT_BUILD_DIR to another one")
    if cache and "LEAT_BUILD_DIR" in os.environ:
        return
    options = []
    if not cache:
        free = shutil.disk_usage(tree).free // _MIB
        if free < _SPACE_MIB:
            raise BuildError(f"{tree}: {free} MiB are free, want {_SPACE_MIB}; LEAT_BUILD_DIR names another place")
        options += ["-DLEAT_BENCH=OFF"]
    elif cache.get("LEAT_GPU") == "OFF":  # made by deploy/demo on a machine without a GPU
        options += ["-DLEAT_GPU=AUTO"]
    staged = _staged(tree)
    pyarrow = None if os.environ.get("LEAT_PARQUET") == "OFF" else _stage_pyarrow()
    if pyarrow and _major(pyarrow) not in map(_major, staged):
        folders = sorted([*staged, pyarrow], key=_major)
        options += ["-DLEAT_PARQUET=AUTO", f"-DLEAT_PYARROW={';'.join(map(str, folders))}"]
    elif not cache:  # not with a pyarrow that CMake happens to find: pip removes its build environment
        options += ["-DLEAT_PARQUET=OFF"]
    if options:
        _run(tree, "configure", "cmake", "--preset", "release", "-B", tree, *options)


def build() -> pathlib.Path:
    """Builds the contents of the wheel; returns the tree."""
    tree = folder()
    needs.check(tree)
    jobs = os.environ.get("LEAT_BUILD_JOBS") or str(len(os.sched_getaffinity(0)))
    try:
        with _alone(tree):
            _configure(tree)
            _run(tree, "compile", "cmake", "--build", tree, "--target", "leat_wheel", "-j", jobs)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise BuildError(f"{tree}: no space is left there; make some and run this again: it goes on where it "
                             "stopped, or set LEAT_BUILD_DIR to another folder") from error
        raise
    return tree
