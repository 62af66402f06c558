# SPDX-License-Identifier: Apache-2.0
"""Collects what Leat says to users from its sources: findings with their remedies, and errors.

Nothing is compiled or imported. `leat_cpp` evaluates the expressions that make a text.
"""

import ast
import dataclasses
import functools
import re

import leat_cpp as cpp

# Where findings are made. `leat doctor` shows those of the coordinator, too.
COORDINATOR = "server/observe/reports.cc"
DOCTOR = ("client/cli/diagnostics/diagnostics.cc", "client/cli/diagnostics/credential_files.cc",
          "client/cli/diagnostics/probes.cc", "client/cli/commands/top_commands.cc")
CODE_LIST = "server/observe/reports.h"
_CODE = re.compile(r"[A-Z](?:_?[A-Z]){2,}")
# The places of code, severity, evidence and remedy among the arguments, by how many there are.
_PLACES = {5: (0, 1, 3, 4), 4: (0, 1, 2, 3)}
_MAKERS = ("Add", "Bad")
_WELL = ("", "ok")
# Kinds of errors that callers meet; Internal ones are bugs.
STATUSES = ("Aborted", "AlreadyExists", "DataLoss", "DeadlineExceeded", "FailedPrecondition", "InvalidArgument",
            "NotFound", "OutOfRange", "PermissionDenied", "ResourceExhausted", "Unauthenticated", "Unavailable",
            "Unimplemented")
ANY = "several"
SOURCES = ("client", "core", "rpc", "server", "worker")
PACKAGE = "python_client/src/leat"
# Errors that only Leat's own programs meet: broken messages between them, and other uses of the word.
_INTERNAL = ("core/hash.cc", "core/log.cc", "core/status.cc", "core/status.h", "rpc/call/client_stream.h",
             "rpc/call/raw_frame.cc", "rpc/call/server_stream.h", "rpc/wire")


@dataclasses.dataclass(frozen=True)
class Case:
    """Describes one way in which a finding comes about."""

    code: str
    severities: tuple
    says: tuple
    remedies: tuple


@dataclasses.dataclass(frozen=True)
class Error:
    """A text of an error, and the name of its class in Python."""

    path: str
    kind: str
    says: str


def _case(parts, scope):
    """Yields the cases of (code, severity, evidence, remedy), four expressions; none, if the code is unknown."""
    code, severity, evidence, remedy = parts
    choice = cpp.conditional(code)
    scopes = [scope.assume(choice[0], truth) for truth in (True, False)] if choice else [scope]
    bad = cpp.conditional(severity)
    for where in scopes:
        codes = cpp.texts(code, where)
        if not all(_CODE.fullmatch(each) for each in codes):
            continue
        if bad:
            branches = [cpp.texts(each, where)[0] in _WELL for each in bad[1:]]
            if any(branches):  # a check, and whether all is well
                where = where.assume(bad[0], not branches[0])
        severities = [each for each in cpp.texts(severity, where) if each not in _WELL]
        if severities:
            remedies = [each for each in cpp.texts(remedy, where) if each and each != cpp.HOLE]
            yield Case(codes[0], tuple(severities), tuple(cpp.settled(cpp.texts(evidence, where))), tuple(remedies))


def _bound(path, tokens, functions, function, scope):
    """Yields the scope of a function for each call of it in its file."""
    for _, at in cpp.calls(tokens, function.name):
        caller = cpp.enclosing(functions, at)
        if caller is not None and caller is not function and at < caller.end:
            yield scope.local(caller).local(function, cpp.arguments(tokens, at))


def _made(path):
    """Yields the cases that calls of Add and Bad make."""
    tokens, scope = cpp.read(path), cpp.file_scope(path)
    functions = cpp.functions(tokens)
    for _, at in cpp.calls(tokens, *_MAKERS):
        function, given = cpp.enclosing(functions, at), cpp.arguments(tokens, at)
        if function is None or len(given) not in _PLACES:
            continue
        parts = [given[place] for place in _PLACES[len(given)]]
        found = list(_case(parts, scope.local(function)))
        named = {token.value for token in parts[0] if token.kind == "name"} & set(function.parameters)
        if not found and named:
            found = [case for where in _bound(path, tokens, functions, function, scope) for case in _case(parts, where)]
        yield from found


def _listed(path):
    """Yields the cases of lists {code, severity, evidence, remedy}."""
    tokens, scope = cpp.read(path), cpp.file_scope(path)
    functions = cpp.functions(tokens)
    for at, token in enumerate(tokens):
        if cpp.is_sign(token, "{") and (function := cpp.enclosing(functions, at)):
            given = cpp.arguments(tokens, at)
            if len(given) == 4:
                yield from _case(given, scope.local(function))


def _filled(path):
    """Yields the cases of a Diagnosis whose members are assigned one after the other."""
    scope = cpp.file_scope(path)
    for function in cpp.functions(cpp.read(path)):
        body, where = function.body, scope.local(function)
        code, severity, evidence = None, [], []
        for i in range(2, len(body) - 1):
            if not cpp.is_sign(body[i - 1], ".") or not cpp.is_sign(body[i + 1], "=", "+="):
                continue
            value = cpp.split(body[i + 2:], ";")[0]
            member = body[i].value
            if member == "code" and body[i + 2].kind == "text":
                code = body[i + 2].value
            elif member == "severity" and body[i + 2].kind == "text":
                severity = [body[i + 2].value]
            elif member == "evidence":
                found = cpp.settled(cpp.texts(value, where))
                evidence = [a + b for a in evidence for b in found] if body[i + 1].value == "+=" else found
            elif member == "remedy" and code:
                yield Case(code, tuple(severity), tuple(evidence), tuple(cpp.texts(value, where)))


@functools.lru_cache(maxsize=None)
def findings():
    """Returns the cases of all findings, by code, in the order of the sources."""
    found = {}
    for path in (COORDINATOR, *DOCTOR):
        for case in [*_made(path), *_listed(path), *_filled(path)]:
            found.setdefault(case.code, []).append(case)
    return found


def codes():
    """Returns all codes, which are searched for without an understanding of how findings are made."""
    listed = cpp.assigned(cpp.read(CODE_LIST))["kFindingCodes"][0]
    found = {token.value for token in listed if token.kind == "text"}
    for path in (COORDINATOR, *DOCTOR):
        found |= {token.value for token in cpp.read(path) if token.kind == "text" and _CODE.fullmatch(token.value)
                  and not token.value.startswith("LEAT_")}
    return found - {"CODE", "STATE", "EVIDENCE", "WORKER_STATE_READY", "UTC"}


PROBES = "rpc/tls/tls_probe.cc"
COMMAND = "client/cli/run.cc"


@functools.lru_cache(maxsize=None)
def probes():
    """Returns (text, remedy) of each fault that a handshake with a server shows."""
    tokens, scope, found = cpp.read(PROBES), cpp.file_scope(PROBES), {}
    functions = cpp.functions(tokens)
    for at, token in enumerate(tokens):
        function, given = cpp.enclosing(functions, at), cpp.arguments(tokens, at) if cpp.is_sign(token, "{") else []
        if function is None or len(given) not in (2, 3):
            continue
        where = scope.local(function)
        says, remedies = cpp.settled(cpp.texts(given[0], where)), cpp.texts(given[1], where)
        if _useful(says[0]) and _useful(remedies[0]):
            found[says[0], remedies[0]] = None
    return list(found)


@functools.lru_cache(maxsize=None)
def command_remedies():
    """Returns (name of the status, remedies) that the command-line program adds to errors."""
    function = next(each for each in cpp.functions(cpp.read(COMMAND)) if each.name == "Remedy")
    body, scope, found = function.body, cpp.file_scope(COMMAND).local(function), []
    for i, token in enumerate(body):
        if token.value == "case":
            status = next(each.value[1:] for each in body[i:] if re.match("k[A-Z]", each.value))
            found.append((status, [text for text in cpp.texts(cpp.returned(body[i:])[0], scope) if text]))
    return found


def _useful(text):
    """Returns whether a text has words of its own."""
    return len(re.sub(r"[^A-Za-z]", "", text)) >= 10


@functools.lru_cache(maxsize=None)
def cpp_errors(path):
    """Returns the errors that a C++ source makes."""
    tokens, scope, found = cpp.read(path), cpp.file_scope(path), {}
    functions = cpp.functions(tokens)
    for kind, at in cpp.calls(tokens, *STATUSES, "MakeStatus"):
        function, given = cpp.enclosing(functions, at), cpp.arguments(tokens, at)
        if kind == "MakeStatus" and given:
            named = [each.value[1:] for each in given[0] if each.value[1:] in STATUSES]
            kind, given = named[0] if named else ANY, given[1:]
        if not given or len(given[0]) != 1 or given[0][0].kind != "text":
            continue
        where = scope.local(function) if function else scope
        values = [cpp.texts(each, where) for each in given[1:]]
        for text in cpp.formatted(given[0][0].value, values):
            if _useful(text):
                found[Error(path, kind, " ".join(text.split()))] = None
    return tuple(found)


def _python_text(node, constants):
    """Returns the text of an expression, with HOLE for values; None: it is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(each.value if isinstance(each, ast.Constant) else cpp.HOLE for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_python_text(each, constants) for each in (node.left, node.right)]
        return "".join(each or cpp.HOLE for each in parts) if any(parts) else None
    if isinstance(node, ast.Name) and node.id in constants:
        return _python_text(constants[node.id], {})
    return None


@functools.lru_cache(maxsize=None)
def python_errors(path):
    """Returns the errors that a Python source raises."""
    tree, found = ast.parse((cpp.ROOT / path).read_text(encoding="utf-8")), {}
    constants = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign)
                 for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call) or not node.exc.args:
            continue
        name = node.exc.func
        kind = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
        text = _python_text(node.exc.args[0], constants)
        if kind[:1].isupper() and text and _useful(text):
            found[node.lineno, Error(path, kind, " ".join(text.split()))] = None
    return tuple(error for _, error in sorted(found, key=lambda each: each[0]))


def classes():
    """Returns (name, built-in exceptions that it derives from, meaning) of the exceptions of Python."""
    found = []
    for node in ast.parse((cpp.ROOT / PACKAGE / "errors.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name not in ("Error", "DatasetChanged"):
            bases = ", ".join(ast.unparse(base) for base in node.bases if ast.unparse(base) != "Error")
            found.append((node.name, bases, ast.get_docstring(node)))
    return found


def errors(*paths):
    """Returns the errors of sources and folders of C++, and of Python, in order."""
    found = {}
    for path in paths:
        if (cpp.ROOT / path).suffix == ".py" or path.startswith("python_client"):
            whole = cpp.ROOT / path
            files = [whole] if whole.is_file() else sorted(whole.rglob("*.py"))
            each = [error for file in files for error in python_errors(str(file.relative_to(cpp.ROOT)))]
        else:
            each = [error for file in cpp.sources(path) for error in cpp_errors(file)]
        found |= dict.fromkeys(each)
    return list(found)


def below(path, folders):
    """Returns whether a path is one of these files or folders, or in one of them."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def selection(paths, without="", kinds=""):
    """Returns a function: whether an error is of these paths and kinds, all as lists of words."""
    paths, without, kinds = paths.split(), without.split(), kinds.split()
    return lambda error: (below(error.path, paths) and not below(error.path, without)
                          and (not kinds or error.kind in kinds))


def missing_errors(is_shown):
    """Returns, for each source, its errors that users meet and for which is_shown(error) is false."""
    found = {}
    for error in errors(*SOURCES, PACKAGE):
        if not below(error.path, _INTERNAL) and not is_shown(error):
            found.setdefault(error.path, []).append(error)
    return found
