# SPDX-License-Identifier: Apache-2.0
"""Facts about ELF files, read with binutils."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess

from leat_backend.errors import BuildError

# A process has one glibc, the machine's.
GLIBC = re.compile(r"^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util))\.so")
# A Python process already has a C++ runtime, so it is bundled only where programs run on their own.
RUNTIME = ("libstdc++.so.6", "libgcc_s.so.1")


def run(*argv: str | os.PathLike[str]) -> str:
    """Returns the output of a program; BuildError with all its output if it fails."""
    words = [str(word) for word in argv]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode != 0:
        raise BuildError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@dataclasses.dataclass(frozen=True)
class Needs:
    libraries: tuple[str, ...]  # names of shared libraries, in their order
    versions: frozenset[str]  # versions of their symbols: "GLIBC_2.34", "GLIBCXX_3.4.30"


def needs(file: pathlib.Path) -> Needs:
    text = run("objdump", "-p", file)
    # Versions that a library defines itself are above "Version References:".
    references = text.partition("Version References:")[2]
    return Needs(tuple(re.findall(r"^\s+NEEDED\s+(\S+)$", text, re.M)),
                 frozenset(re.findall(r"^\s+0x\w+ 0x\w+ \d+ (\S+)$", references, re.M)))


def where(file: pathlib.Path) -> dict[str, pathlib.Path]:
    """Returns the path of every library that the loader would load with `file`, at any depth."""
    found = {}
    for line in run("ldd", file).splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and not rest.startswith("not found"):
            found[name] = pathlib.Path(rest.split(" (")[0])
    return found


def unresolved(file: pathlib.Path) -> list[str]:
    """Returns the libraries and symbols that the loader does not find for `file`."""
    done = subprocess.run(["ldd", "-r", file], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    lines = (done.stdout + done.stderr).splitlines()
    return [line.strip() for line in lines if "undefined symbol" in line or "not found" in line or "no version" in line]


@dataclasses.dataclass(frozen=True)
class Symbol:
    name: str
    version: str  # "" for none
    bytes: int  # size of data; 0 for a function


def _symbols(file: pathlib.Path, which: str) -> list[tuple[str, str, str, int]]:
    found = []
    for line in run("nm", "-D", "-S", which, file).splitlines():
        # [value [size]] letter name[@version]
        match = re.match(r"^\s*(?:[0-9a-f]+\s+)?(?:([0-9a-f]+)\s+)?([A-Za-z]) ([^@\s]+)(?:@+(\S+))?$", line)
        if match:
            found.append((match[3], match[4] or "", match[2], int(match[1] or "0", 16)))
    return found


def undefined(file: pathlib.Path) -> set[tuple[str, str]]:
    """Returns (name, version) of the symbols that a file takes from others; version is "" for none."""
    return {(name, version) for name, version, letter, _ in _symbols(file, "--undefined-only")}


def defined(file: pathlib.Path) -> dict[str, Symbol]:
    return {name: Symbol(name, version, 0 if letter in "TtWi" else size)
            for name, version, letter, size in _symbols(file, "--defined-only") if letter != "A"}


def is_elf(file: pathlib.Path) -> bool:
    with open(file, "rb") as stream:
        return stream.read(4) == b"\x7fELF"
