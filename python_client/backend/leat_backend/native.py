# SPDX-License-Identifier: Apache-2.0
"""Gathers programs of a build tree, and the shared libraries that they need, so that they run on other machines.

Libraries go to lib/ under names of our own (leat-libgrpc.so.29). Every file is changed to need those names, which are
found by $ORIGIN. So another copy of, say, libprotobuf in a Python process is never taken for ours, nor ours for it.
glibc stays the machine's; so does libstdc++, unless `runtime` includes it. left_out.py lists what is left out.
"""

from __future__ import annotations

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import sys

from leat_backend import elf, left_out
from leat_backend.errors import BuildError

# This library links to Arrow, taken from the package pyarrow beside it.
PARQUET = re.compile(r"^libleat_parquet-(\d+)\.so$")
_LIBLEAT = re.compile(r"(^|/)libleat\.so(\.|$)")


def built(tree: pathlib.Path) -> dict[str, pathlib.Path]:
    """Returns the files of a build tree for the wheel's leat/_native/: name -> file (from
    python_client/CMakeLists.txt)."""
    listed = tree / "python_client" / "native-files.txt"
    if not listed.is_file():
        raise BuildError(f"{tree}: no build tree of Leat that has the Python package ({listed.name} is not there)")
    files = {}
    for line in listed.read_text().splitlines():
        name, _, path = line.partition("=")
        files[name] = pathlib.Path(path)
        if not files[name].exists():
            raise BuildError(f"{path} is not built: cmake --build {tree} --target leat_wheel")
    return files


class Gathered:
    """Fills `folder` with the files at their places, and lib/."""

    def __init__(self, folder: pathlib.Path, files: dict[str, pathlib.Path], runtime: bool = False) -> None:
        """`files`: place in `folder` -> file as built."""
        self.folder = folder
        self.runtime = runtime
        self.libraries: dict[str, pathlib.Path] = {}  # copied libraries: name -> source
        self._files = files
        self._users: dict[str, list[pathlib.Path]] = collections.defaultdict(list)  # of left-out libraries
        self._places: dict[str, pathlib.Path] = {}
        for name, file in files.items():
            if not PARQUET.match(pathlib.Path(name).name):
                self._places.update(elf.where(file))
        self._close()
        self._copy()
        self._patch_all()
        self._check()

    def _close(self) -> None:
        waiting = [file for name, file in self._files.items() if not PARQUET.match(pathlib.Path(name).name)]
        while waiting:
            file = waiting.pop()
            for name in elf.needs(file).libraries:
                if elf.GLIBC.match(name) or name in self.libraries or _LIBLEAT.match(name):
                    continue
                if name in elf.RUNTIME and not self.runtime:
                    continue
                if name not in self._places:
                    raise BuildError(f"{file}: needs {name}, which is not on this machine")
                if left_out.is_left_out(name):
                    self._users[name].append(file)
                    continue
                self.libraries[name] = self._places[name]
                waiting.append(self._places[name])

    def _copy(self) -> None:
        lib = self.folder / "lib"
        lib.mkdir(parents=True)
        for name, file in self._files.items():
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.resolve(), target)
            elf.run("strip", target)
        for name, file in self.libraries.items():
            shutil.copy(file.resolve(), lib / self._name_here(name))
            os.chmod(lib / self._name_here(name), 0o644)
        for name, users in self._users.items():
            left_out.make(self._places[name], users, lib / left_out.stand_in_of(name))

    def _name_here(self, name: str) -> str:
        if _LIBLEAT.match(name):
            return "libleat.so"
        if left_out.is_left_out(name):
            return left_out.stand_in_of(name)
        if name in self.libraries and name not in elf.RUNTIME:
            return f"leat-{name}"
        return name

    def _patch_all(self) -> None:
        # One change per call: patchelf 0.14, of Debian 12, mixes up the strings of several.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self._patch, [*map(self.folder.joinpath, self._files),
                                        *(self.folder / "lib" / self._name_here(name) for name in self.libraries)]))

    def _patch(self, file: pathlib.Path) -> None:
        if file.name.startswith("leat-lib") or file.name == "libleat.so":
            elf.run("patchelf", "--set-soname", file.name, file)
        elf.run("patchelf", "--set-rpath", self._rpath(file), file)
        for name in elf.needs(file).libraries:
            if self._name_here(name) != name:
                elf.run("patchelf", "--replace-needed", name, self._name_here(name), file)

    def _rpath(self, file: pathlib.Path) -> str:
        """Returns where the loader looks for the libraries of a file: in lib/ and beside libleat.so."""
        if PARQUET.match(file.name):
            folders = [file.parent, file.parent / "../../pyarrow"]
        else:
            folders = [self.folder / "lib"]
            if file.parent != folders[0]:
                folders += [(self.folder / name).parent for name in self._files if _LIBLEAT.search(name)]
        places = dict.fromkeys(os.path.relpath(folder, file.parent) for folder in folders)
        return ":".join("$ORIGIN" if place == "." else f"$ORIGIN/{place}" for place in places)

    def _check(self) -> None:
        files = self.elf_files()
        left_out.check(files)
        loaded = [file for file in files if not PARQUET.match(file.name)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for file, lines in zip(loaded, pool.map(elf.unresolved, loaded), strict=True):
                for line in lines:
                    raise BuildError(f"{file.relative_to(self.folder)} would not load: {line}")

    def elf_files(self) -> list[pathlib.Path]:
        return [p for p in sorted(self.folder.rglob("*")) if p.is_file() and elf.is_elf(p)]


if __name__ == "__main__":
    # python3 -m leat_backend.native TREE FOLDER: makes the contents of the wheel's leat/_native/, for tests.
    Gathered(pathlib.Path(sys.argv[2]), built(pathlib.Path(sys.argv[1])))
