# SPDX-License-Identifier: Apache-2.0
"""Runs a clang tool over the domain code (core, cuda, server and worker, but what reaches gRPC), in parallel.

A file that passed is not looked at again until it, a header of ours that it includes, its command or the tool's
settings change: the hash of all that is kept in the build folder.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess

import common

FOLDERS = ("core", "cuda", "server", "worker")


def domain_sources(root, build):
    """{path relative to root: compiler arguments} of the files that the lint looks at."""
    commands = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    found = {}
    for entry in commands:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(root):
            continue
        path = path.relative_to(root)
        wanted = path.parts[0] in FOLDERS and (root / path).is_file()
        if wanted and not common.reaches_grpc(root, path):
            found[path] = clang_arguments(entry["command"])
    return found


def clang_arguments(command):
    """The include paths, definitions and language of a gcc command: what clang needs to read the file."""
    kept, words = [], iter(shlex.split(command))
    for word in words:
        if word in ("-isystem", "-I", "-D", "-include"):
            kept += [word, next(words)]
        elif word.startswith(("-I", "-D", "-std=", "-isystem", "-m")) and word not in ("-MD", "-MMD"):
            kept.append(word)
    return kept


def fingerprint(root, path, salt):
    digest = hashlib.sha256(salt.encode())
    for own in sorted(common.own_includes(root, path)):
        digest.update(str(own).encode() + b"\0" + (root / own).read_bytes() + b"\0")
    return digest.hexdigest()


def run(root, build, name, sources, command, salt=""):
    """Runs command(path, arguments) -> argv over the sources; returns the output of each that fails."""
    root, store = pathlib.Path(root), pathlib.Path(build) / "lint" / name
    store.mkdir(parents=True, exist_ok=True)

    def one(item):
        path, arguments = item
        argv = command(path, arguments)
        passed = store / fingerprint(root, path, salt + "\0".join(map(str, argv)))
        if passed.exists():
            return None
        done = subprocess.run(argv, cwd=root, capture_output=True, text=True)
        if done.returncode == 0:
            passed.touch()
            return None
        return (done.stdout + done.stderr).strip() or f"{path}: {argv[0]} ended with {done.returncode}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [finding for finding in pool.map(one, sorted(sources.items())) if finding]
