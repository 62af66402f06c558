# SPDX-License-Identifier: Apache-2.0
"""The examples in the comments of the public C++ headers compile.

An example is a block of lines that begin with "//" and five blanks or more.
"""

import pathlib
import re
import subprocess
import textwrap

import common

FOLDER = pathlib.Path("client/leat")
# The examples use these names without defining them.
_READERS = """
const std::string spec_json;
template <typename... T>
void Train(const T&...) {}
"""
_LINE = re.compile(r"^\s*//( {5,}\S.*)$")


def examples(text):
    """Returns (line, source) of each block of such lines."""
    found, at_end = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        match = _LINE.match(line)
        if match:
            if number != at_end:
                found.append((number, []))
            found[-1][1].append(match[1])
            at_end = number + 1
    return [(number, textwrap.dedent("\n".join(lines))) for number, lines in found]


def _source(root):
    """Returns one source with every example in a function of its own, with the line numbers of the header."""
    headers = sorted(path for path in common.files(root, ".h") if path.parent == FOLDER)
    parts = [f'#include "leat/{path.name}"\n' for path in headers] + ["#include <string>\n", _READERS]
    for at, path in enumerate(headers):
        for line, source in examples(common.text(root, path)):
            parts.append(f'void Example{at}_{line}() {{\n#line {line} "{path}"\n{source}\n}}\n')
    return "".join(parts)


def check(root):
    root = pathlib.Path(root)
    argv = ["clang++-14", "-fsyntax-only", "-std=c++20", "-Wno-unused", f"-I{root / 'client'}", f"-I{root}",
            "-x", "c++", "-"]
    run = subprocess.run(argv, input=_source(root), capture_output=True, text=True, cwd=root)
    return [line for line in run.stderr.splitlines() if ": error: " in line] or ([run.stderr] if run.returncode else [])


if __name__ == "__main__":
    common.main(check, __doc__)
