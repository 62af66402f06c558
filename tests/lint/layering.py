# SPDX-License-Identifier: Apache-2.0
"""Checks includes between folders against the tables of docs/architecture/folders*.md, which are the
rule."""

import dataclasses
import pathlib
import re

import common

PAGE = pathlib.Path("docs/architecture/folders.md")
TOPS = ("core", "cuda", "rpc", "server", "worker", "client")
# Remaining circles of folders. The list only shrinks.
CIRCLES = []

# Headers that the maths must not include: files and the network.
_FILES = {"fstream", "filesystem", "fcntl.h", "unistd.h", "sys/stat.h", "sys/socket.h", "sys/mman.h"}
_CLOSES = "fd.cc"  # owns descriptors, and does not open any
_PROTO = re.compile(r"^(leat/v1|leat/stored|externalscaler|opentelemetry)/.*\.pb\.h$")
_GRPC = re.compile(r"^grpcpp?/|^grpc\+\+/|\.grpc\.pb\.h$")
# Only one folder names the maker of GPUs; kernels are sources of the maker's compiler.
_NEUTRAL, _MAKERS = "worker/gpu/", "worker/gpu/cuda"
_MAKERS_WORD = re.compile(r"\w*(?i:cuda|nvjpeg|nvcc)\w*|\bcu[A-Z]\w*")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^\s*#\s*include[^\n]*', re.S | re.M)
_COMPILERS_OWN = {"__CUDA_ARCH__"}
_PYTHON = re.compile(r"^\s*(?:import|from)\s+(grpc|google\.protobuf)\b", re.M)


@dataclasses.dataclass
class Rule:
    """The includes that a folder's files may have besides their own folder and core/. `folders` may contain
    "core/*"."""

    folders: set
    messages: set

    def allows(self, folder):
        return folder == "core" or folder in self.folders or folder.startswith("core/") and "core/*" in self.folders


def tables(root):
    """Returns the text of the pages with the tables: PAGE and those whose names continue its name."""
    pages = sorted((root / PAGE.parent).glob(f"{PAGE.stem}*.md"))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def read_rules(page):
    """Returns the rows of the page's four-column tables, by the folder in the first column."""
    rules = {}
    for row in re.findall(r"^\| `([\w/]+)` \|(.*)\|$", page, re.M):
        cells = row[1].split("|")
        if len(cells) == 3:
            rules[row[0]] = Rule(set(re.findall(r"`([^`]+)`", cells[1])), set(re.findall(r"[\w/]+", cells[2])))
    return rules


def folder_of(root, path, name):
    """Returns our folder that has the header `name`, as `path` includes it; None if it is not ours."""
    top = name.split("/")[0]
    if top in TOPS or top == "tests":
        return str(pathlib.PurePath(name).parent)
    # The public client's headers are leat/*.h, included by that name everywhere, as users do.
    if top == "leat" and not _PROTO.match(name):
        return "client/leat"
    if name.startswith("grpc"):
        return None
    return str(path.parent) if (root / path.parent / name).is_file() else None


def _of_others(path, rule, name):
    """Returns what is wrong with including `name`, which is not ours, or None."""
    folder = str(path.parent)
    if _GRPC.search(name) and "gRPC" not in rule.messages:
        return "does not know gRPC"
    package = _PROTO.match(name)
    if package and package[1] not in rule.messages or name.startswith("google/protobuf/") and not rule.messages:
        return "may not see these messages"
    if folder.split("/")[0] == "core" and name in _FILES and path.name != _CLOSES:
        return "is maths: no files, no sockets"
    if re.match(r"cuda|nvjpeg|device_launch", name) and path.suffix != ".cu":
        return "needs no CUDA toolkit: cuda/driver.h and cuda/nvjpeg.h declare what we use"
    return None


def makers_words(source):
    """Returns (line, word) of the names in C++ code that belong to one maker's GPUs."""
    code = _NO_CODE.sub(lambda m: "\n" * m[0].count("\n"), source)
    return [(code.count("\n", 0, m.start()) + 1, m[0]) for m in _MAKERS_WORD.finditer(code)
            if m[0] not in _COMPILERS_OWN]


def only_includes(source):
    """True if a header contains nothing but one include of ours."""
    code = [line for line in _COMMENTS.sub("", source).splitlines() if line.strip() and "#pragma once" not in line]
    return len(code) == 1 and code[0].startswith('#include "')


def circles(edges):
    """Returns sets of folders that include each other, directly or through others."""
    def reached(start):
        seen, todo = set(), [start]
        while todo:
            for folder in edges.get(todo.pop(), ()):
                if folder not in seen:
                    seen.add(folder)
                    todo.append(folder)
        return seen

    reach = {folder: reached(folder) for folder in edges}
    found = []
    for folder in sorted(edges):
        circle = {other for other in reach[folder] if folder in reach.get(other, ())}
        if circle and circle not in found:
            found.append(circle)
    return found


def _table(rules, edges):
    """Returns what is wrong with the page itself, given the includes between folders."""
    findings = []
    for folder, rule in sorted(rules.items()):
        if folder not in edges:
            findings.append(f"{PAGE}: names {folder}, which has no sources")
            continue
        for unused in sorted(rule.folders - edges[folder] - {"core/*"}):
            findings.append(f"{PAGE}: {folder} does not include {unused}: take it out")
    found = circles(edges)
    findings += [f"circle of folders: {', '.join(sorted(circle))}" for circle in found if circle not in CIRCLES]
    findings += [f"{', '.join(sorted(circle))}: no circle any more; take it out of CIRCLES"
                 for circle in CIRCLES if circle <= set(rules) and circle not in found]
    return findings


def check(root):
    root, findings, edges = pathlib.Path(root), [], {}
    rules = read_rules(tables(root))
    for path in common.files(root, *common.CPP, ".cu"):
        folder, source = str(path.parent), common.text(root, path)
        if path.parts[0] not in TOPS:
            continue
        rule = rules.get(folder)
        if rule is None:
            findings.append(f"{path}: {folder} is not in {PAGE}")
            continue
        edges.setdefault(folder, set())
        if path.suffix == ".h" and only_includes(source):
            findings.append(f"{path}: does nothing but include another header")
        for line, _, name in common.includes(source):
            other = folder_of(root, path, name)
            if other is None:
                problem = _of_others(path, rule, name)
            elif other == folder or rule.allows(other):
                problem = None
            else:
                problem = "may include only " + (", ".join(sorted(rule.folders)) or "core")
            if problem:
                findings.append(f'{path}:{line}: includes "{name}", but {folder} {problem}')
            elif other and other != folder:
                edges[folder].add(other)
        if str(path).startswith(_NEUTRAL) and folder != _MAKERS and path.suffix != ".cu":
            findings += [f"{path}:{line}: {word}: only {_MAKERS} knows whose device it is"
                         for line, word in makers_words(source)]
    for path in common.files(root, ".py"):
        if path.parts[0] == "python_client":
            for match in _PYTHON.finditer(common.text(root, path)):
                findings.append(f"{path}: imports {match[1]}, but python_client speaks through leat.h only")
    findings += [f"{folder}: no README.md says what the folder is for" for folder in sorted(edges)
                 if not (root / folder / "README.md").is_file()]
    return findings + _table(rules, edges)


if __name__ == "__main__":
    common.main(check, __doc__)
