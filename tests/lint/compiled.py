# SPDX-License-Identifier: Apache-2.0
"""Runs a clang tool over the domain code (core, cuda, server and worker, except what reaches gRPC), in parallel.

The build compiles several sources together (leat_units in the root's CMakeLists.txt). So does a lint, which then reads
the headers once per unit. A unit that passed is not checked again until one of its files, a header of ours that they
include, its command or the tool's settings change: the hash of all that is kept in the build folder.
"""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess

import common

FOLDERS = ("core", "cuda", "server", "worker")
_MEMBER = re.compile(r'^#include "(.+)"$', re.M)


@dataclasses.dataclass
class Unit:
    """Sources that are compiled together, relative to root, and the compiler's arguments."""

    sources: list
    arguments: list


def domain_units(root, build):
    """Returns the units that the lint checks; a source in several targets is checked once."""
    root, units, seen = pathlib.Path(root), [], set()
    for entry in json.loads((pathlib.Path(build) / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"])
        members = [path]
        if path.parent.name == "Unity":
            members = [pathlib.Path(member) for member in _MEMBER.findall(path.read_text())]
        sources = []
        for member in members:
            member = member.resolve()
            if not member.is_relative_to(root.resolve()) or not member.is_file():
                continue
            member = member.relative_to(root.resolve())
            if member.parts[0] in FOLDERS and member not in seen and not common.reaches_grpc(root, member):
                seen.add(member)
                sources.append(member)
        if sources:
            units.append(Unit(sources, clang_arguments(entry["command"])))
    return units


def clang_arguments(command):
    """Returns the include paths, definitions and language of a gcc command, which clang needs to read the file. Leaves
    out precompiled headers: a source has to include what it needs itself."""
    kept, words = [], iter(shlex.split(command))
    for word in words:
        if word in ("-isystem", "-I", "-D", "-include"):
            option = [word, next(words)]
            if not option[1].endswith("/cmake_pch.hxx"):
                kept += option
        elif word.startswith(("-I", "-D", "-std=", "-isystem", "-m")) and word not in ("-MD", "-MMD"):
            kept.append(word)
    return kept


def fingerprint(root, paths, salt):
    digest = hashlib.sha256(salt.encode())
    for own in sorted(set().union(*(common.own_includes(root, path) for path in paths))):
        digest.update(str(own).encode() + b"\0" + (root / own).read_bytes() + b"\0")
    return digest.hexdigest()


def changed_files(root):
    """With LEAT_LINT=changed: returns the files, relative to root, that this branch has changed; else None."""
    if os.environ.get("LEAT_LINT", "all") == "all":
        return None

    def git(*words):
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)

    for upstream in ("@{upstream}", "origin/HEAD"):
        base = git("merge-base", "HEAD", upstream)
        if base.returncode == 0:
            names = git("diff", "--name-only", base.stdout.strip()).stdout
            names += git("ls-files", "--others", "--exclude-standard").stdout
            changed = {pathlib.Path(name) for name in names.splitlines()}
            return None if pathlib.Path(".clang-tidy") in changed else changed
    return None


def run(root, build, name, units, command, salt=""):
    """Runs command(file, unit) -> argv over the units; returns the output of each that fails."""
    root, store = pathlib.Path(root).resolve(), pathlib.Path(build) / "lint" / name
    changed = changed_files(root)
    if changed is not None:
        units = [unit for unit in units
                 if any(changed & common.own_includes(root, source) for source in unit.sources)]
        print(f"{len(units)} unit(s) to look at: those with changes, as LEAT_LINT=changed asks")
    store.mkdir(parents=True, exist_ok=True)

    def one(unit):
        passed = store / fingerprint(root, unit.sources, salt + "\0".join([name, *map(str, unit.arguments)]))
        if passed.exists():
            return None
        file = passed.with_suffix(".cc")
        file.write_text("".join(f'#include "{root / source}"  // NOLINT(bugprone-suspicious-include)\n'
                                for source in unit.sources))
        argv = command(file, unit)
        done = subprocess.run(argv, cwd=root, capture_output=True, text=True)
        file.unlink()
        if done.returncode == 0:
            passed.touch()
            return None
        said = (done.stdout + done.stderr).strip()
        return said or f"{' '.join(map(str, unit.sources))}: {argv[0]} ended with {done.returncode}"

    # The largest first, so that no core is idle at the end.
    units = sorted(units, key=lambda unit: -len(unit.sources))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [finding for finding in pool.map(one, units) if finding]
