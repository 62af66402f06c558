# SPDX-License-Identifier: Apache-2.0
"""clang-format 14 would change nothing; every Python file compiles."""

import ast
import pathlib
import re
import subprocess

import common

_LINE = re.compile(r"^(.*?):(\d+):\d+: (?:error|warning): ", re.M)


def check(root):
    findings = []
    sources = [str(p) for p in common.files(root, *common.CPP, ".cu")]
    if sources:
        style = pathlib.Path(__file__).resolve().parents[2] / ".clang-format"
        run = subprocess.run(["clang-format-14", "--dry-run", "-Werror", f"--style=file:{style}", *sources],
                             cwd=root, capture_output=True, text=True)
        if run.returncode:
            lines = {}
            for path, line in _LINE.findall(run.stderr):
                lines.setdefault(path, line)
            findings += [f"{path}:{line}: clang-format-14 -i {path}" for path, line in lines.items()] or [run.stderr]
    for path in common.files(root, ".py"):
        try:
            ast.parse(common.text(root, path), str(path))
        except SyntaxError as error:
            findings.append(f"{path}:{error.lineno}: {error.msg}")
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
