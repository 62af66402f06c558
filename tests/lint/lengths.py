# SPDX-License-Identifier: Apache-2.0
"""Files have at most 400 lines, functions at most 70.

lengths.txt beside this file lists the exceptions: a line has the path, the function if it is one, and its number of
lines. The list only shrinks: a line with too large a number, or that nothing needs, fails.
"""

import ast
import pathlib
import re

import common

FILE, FUNCTION = 400, 70
EXCEPTIONS = pathlib.Path("tests/lint/lengths.txt")
_CPP = (*common.CPP, ".cu", ".cuh")
# Comments, strings and directives, whose braces and semicolons are ignored; and the braces and semicolons that count.
_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
                     r'|^[ \t]*#(?:\\\n|[^\n])*|[{};]', re.S | re.M)
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*', re.S | re.M)
_SCOPE = re.compile(r'\s*(?:(?:inline\s+)?namespace\b|extern\s+"|(?:template\s*<.*>\s*)?(?:typedef\s+)?'
                    r'(?:class|struct|union|enum)\b)', re.S)
_FUNCTION_END = re.compile(r"\)\s*(?:const|override|noexcept|\s)*$")
_NAME = re.compile(r"([\w:~]+)\s*\(([^)]*)")
_TESTS = ("TEST", "TEST_F", "TEST_P", "TYPED_TEST")


def _name(head):
    """Returns the name of the function that `head` declares; for a test, its suite and its own name."""
    found = _NAME.search(head)
    if found is None:
        return "?"
    return re.sub(r"\s*,\s*", ".", found[2].strip()) if found[1] in _TESTS else found[1]


def cpp_functions(text):
    """Returns (line, lines, name) of each function of a C++ source; a lambda counts for the function that it is in."""
    found, head, scopes, depth, begin, name = [], 0, 0, 0, None, ""
    for token in _TOKENS.finditer(text):
        kind = token[0]
        if kind not in "{};":
            continue
        if depth:  # in a function or an initialiser
            depth += (kind == "{") - (kind == "}")
            if depth:
                continue
            if begin is not None:
                first = text.count("\n", 0, begin) + 1
                found.append((first, text.count("\n", 0, token.start()) + 2 - first, name))
        elif kind == "{":
            before = _NO_CODE.sub(lambda match: " " * len(match[0]), text[head:token.start()])
            if _SCOPE.match(before) and not _FUNCTION_END.search(before):
                scopes += 1
            else:
                depth = 1
                begin = head + len(before) - len(before.lstrip()) if "(" in before else None
                name = _name(before)
                continue
        elif kind == "}":
            scopes -= 1
        head = token.end()
    return found


def python_functions(text):
    """Returns (line, lines, name) of each function of a Python source, without its docstring."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0]
            docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
            found.append((node.lineno, node.end_lineno - node.lineno + 1 - docstring, node.name))
    return found


def too_long(root):
    """Yields (path, function or "", line, lines, bound) of all files and functions over their bounds."""
    for path in common.files(root, *_CPP, ".py", ".proto", ".cmake"):
        text = common.text(root, path)
        lines = text.count("\n")
        if lines > FILE:
            yield str(path), "", 1, lines, FILE
        functions = cpp_functions if path.suffix in _CPP else python_functions if path.suffix == ".py" else None
        for line, lines, name in functions(text) if functions else ():
            if lines > FUNCTION:
                yield str(path), name, line, lines, FUNCTION


def _exceptions(root):
    allowed = {}
    if (root / EXCEPTIONS).exists():
        for line in common.text(root, EXCEPTIONS).splitlines():
            if line and not line.startswith("#"):
                path, *function, lines = line.split()
                allowed[path, " ".join(function)] = int(lines)
    return allowed


def check(root):
    root, findings = pathlib.Path(root), []
    allowed = _exceptions(root)
    for path, function, line, lines, bound in too_long(root):
        listed = allowed.pop((path, function), bound)
        what = f"{path}:{line}: {function} has" if function else f"{path}:"
        if lines > listed:
            findings.append(f"{what} {lines} lines, at most {listed}: split it by what it does")
        elif lines < listed:
            findings.append(f"{EXCEPTIONS}: {path} {function}".rstrip() + f" may have {listed} lines and has {lines}: "
                            f"write {lines}, the list only shrinks")
    findings += [f"{EXCEPTIONS}: {path} {function}".rstrip() + " is no longer too long: take the line away"
                 for path, function in allowed]
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
