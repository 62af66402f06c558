# SPDX-License-Identifier: Apache-2.0
"""Which package of Python may import which: the last table of docs/architecture/folders.md, which is the rule.

A package is a folder of python_client/src/leat with everything below it, or the modules in leat/ itself. An import
counts wherever it is written, in a function or for type checkers alone, too.
"""

import ast
import importlib.util
import pathlib
import re

import common
from layering import PAGE, circles, tables

SOURCES = pathlib.Path("python_client/src")
_TOP = "leat"
_FOR_ALL = "leat.errors"
_ROW = re.compile(r"^\| `(leat[.\w]*)` \|[^|\n]*\|([^|\n]*)\|$", re.M)


def read_rules(page):
    """Returns {package: the packages that it may import} from the rows of three columns."""
    return {match[1]: set(re.findall(r"`([^`]+)`", match[2])) for match in _ROW.finditer(page)}


def module_of(path):
    """Returns leat.jax for python_client/src/leat/jax.py; a package has the name of its folder."""
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module, packages):
    """Returns the package that a module, or a name in a module, belongs to."""
    package = ".".join(module.split(".")[:2])
    return package if package in packages else _TOP


def imported(source, path):
    """Yields (line, dotted name) for each import of a module of Leat."""
    own = module_of(path) if path.stem == "__init__" else module_of(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), own)
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == _TOP)


def _table(rules, edges):
    """Returns the findings about the table itself, given who imports whom."""
    findings = [f"{PAGE}: names {package}, which has no sources" for package in sorted(set(rules) - set(edges))]
    for package in sorted(set(rules) & set(edges)):
        findings += [f"{PAGE}: {package} does not import {unused}: take it out"
                     for unused in sorted(rules[package] - edges[package])]
    return findings + [f"circle of packages: {', '.join(sorted(circle))}" for circle in circles(edges)]


def check(root):
    root, findings, edges = pathlib.Path(root), [], {}
    rules = read_rules(tables(root))
    paths = [path for path in common.files(root, ".py", ".pyi") if path.is_relative_to(SOURCES / _TOP)]
    packages = {".".join(path.relative_to(SOURCES).parts[:2]) for path in paths
                if len(path.relative_to(SOURCES).parts) > 2}
    for path in paths:
        package, source = package_of(module_of(path), packages), common.text(root, path)
        if package not in rules:
            findings.append(f"{path}: {package} is not in {PAGE}")
            continue
        edges.setdefault(package, set())
        if path.name == "__init__.py" and module_of(path) == package and not ast.get_docstring(ast.parse(source)):
            findings.append(f"{path}: no docstring says what the package is for")
        for line, name in imported(source, path):
            other = package_of(name, packages)
            if module_of(path) == _FOR_ALL:
                findings.append(f"{path}:{line}: imports {name}, but {_FOR_ALL} may import nothing of ours")
            elif other == package or f"{name}.".startswith(f"{_FOR_ALL}."):
                continue
            elif other in rules[package]:
                edges[package].add(other)
            else:
                allowed = ", ".join(sorted(rules[package])) or _FOR_ALL
                findings.append(f"{path}:{line}: imports {name}, but {package} may import only {allowed}")
    return findings + _table(rules, edges)


if __name__ == "__main__":
    common.main(check, __doc__)
