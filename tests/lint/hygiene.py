# SPDX-License-Identifier: Apache-2.0
"""Every source begins with its licence, leaves nothing "for later", and names no folder of one machine.

Threads of the product are started by StartThread (core/thread.h): std::thread throws where the system refuses one.
"""

import re

import common

_CODE = {".h", ".cc", ".c", ".cu", ".cuh", ".py", ".proto", ".cmake", ".sh", ".toml"}
_WORDS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
_MACHINE = re.compile(r"(?<![\w.$}])/(?:work|root|farm|home/\w+)/|/tmp/bash_" r"jobs")
_THREAD = re.compile(r"\bstd::thread\s*\((?!std::move|\))")
_SPDX = "SPDX-License-Identifier: Apache-2.0"


def check_text(path, content):
    findings = []
    lines = content.split("\n")
    script = lines[0].startswith("#!")
    if script or path.suffix in _CODE or path.name == "CMakeLists.txt":
        first = lines[1] if script and len(lines) > 1 else lines[0]
        if content.strip() and _SPDX not in first:
            findings.append(f"{path}:{2 if script else 1}: want the line with {_SPDX} here")
    for number, line in enumerate(lines, 1):
        if _WORDS.search(line):
            findings.append(f"{path}:{number}: {_WORDS.search(line)[0]}: do it, or write it down in docs/decisions/")
        if _MACHINE.search(line):
            findings.append(f"{path}:{number}: {_MACHINE.search(line)[0]} is a folder of one machine")
        if _THREAD.search(line) and path.parts[0] != "tests" and path.name != "thread.cc":
            findings.append(f"{path}:{number}: std::thread throws: want StartThread (core/thread.h)")
        if line != line.rstrip() and path.suffix != ".md":
            findings.append(f"{path}:{number}: blanks at the end of the line")
        if len(line) > 120 and path.suffix in _CODE:
            findings.append(f"{path}:{number}: {len(line)} characters, at most 120")
    if content and not content.endswith("\n"):
        findings.append(f"{path}: no newline at the end")
    return findings


def check(root):
    findings = []
    for path in common.files(root):
        if path.name == "LICENSE" or {"golden", "corpus"} & set(path.parts):
            continue
        try:
            content = common.text(root, path)
        except UnicodeDecodeError:
            continue  # a picture or a fixture
        findings += check_text(path, content)
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
