# SPDX-License-Identifier: Apache-2.0
"""Functions that the lints share: the files of the tree, their includes, and how a lint reports."""

import argparse
import functools
import pathlib
import re
import subprocess
import sys

FOLDERS = ("core", "rpc", "server", "worker", "client", "tests")
CPP = (".h", ".cc", ".c")
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def files(root, *suffixes):
    """Returns the files of the tree, relative to root, that git does not ignore (all files without git)."""
    root = pathlib.Path(root)
    if (root / ".git").exists():
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True, text=True).stdout.split("\0")
        paths = [pathlib.Path(p) for p in listed if p]
    else:
        paths = [p.relative_to(root) for p in root.rglob("*") if "build" not in p.relative_to(root).parts]
    return sorted(p for p in paths if (root / p).is_file() and (not suffixes or p.suffix in suffixes))


def text(root, path):
    return (pathlib.Path(root) / path).read_text(encoding="utf-8")


def includes(source):
    """Returns (line, quoted, name) of the #include directives in a source text."""
    return [(source.count("\n", 0, m.start(2)) + 1, m[1] == '"', m[2]) for m in _INCLUDE.finditer(source)]


@functools.cache
def direct_includes(root, path):
    """Returns the files of the tree that `path` includes, and the names of the other files. Remembers it: forget()."""
    own, others = [], []
    for _, _, name in includes(text(root, path)):
        candidates = (pathlib.Path(name), pathlib.Path("client") / name, path.parent / name)
        found = next((candidate for candidate in candidates if (root / candidate).is_file()), None)
        if found is None:
            others.append(name)
        else:
            own.append(found)
    return own, others


def forget():
    """Files may have changed since direct_includes was called."""
    direct_includes.cache_clear()


def own_includes(root, path):
    """Returns `path` and every file of the tree that it includes, at any depth."""
    seen, pending = set(), [path]
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += direct_includes(pathlib.Path(root), path)[0]
    return seen


def reaches_grpc(root, path):
    return any(name.startswith(("grpcpp/", "grpc/")) or name.endswith(".grpc.pb.h")
               for own in own_includes(root, path) for name in direct_includes(pathlib.Path(root), own)[1])


def main(check, doc, build=False):
    """Runs check(root[, build]) -> list of findings; prints them; exits 1 if there are any."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    if build:
        parser.add_argument("--build", required=True, type=pathlib.Path, help="where compile_commands.json is")
    args = parser.parse_args()
    findings = check(args.root, args.build) if build else check(args.root)
    for finding in findings:
        print(finding)
    if findings:
        sys.exit(f"{len(findings)} finding(s)")
