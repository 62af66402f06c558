# SPDX-License-Identifier: Apache-2.0
"""Reads texts for users from C++ sources without a compiler.

The reader knows just enough of the language for Leat's own style: string literals, fmt::format, conditional
expressions, local constants, lambdas and functions of the same file. A value that only a run can know is `…`:

    fmt::format("worker {} cannot read {}", worker.name, root)      "worker … cannot read …"
"""

import dataclasses
import functools
import itertools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOLE = "…"
_MOST = 4  # alternatives of one text; more become HOLE
_DEEP = 12  # nested calls and constants
_OPENS, _CLOSES = "([{", ")]}"
_STATEMENTS = ("if", "for", "while", "switch", "catch", "return")
_TOKEN = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^#(?:[^\n\\]|\\.)*$)'
    r'|(?P<raw>R"(?P<mark>\w*)\((?P<body>.*?)\)(?P=mark)")'
    r'|(?P<text>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<char>'(?:[^'\\\n]|\\.)+')"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w'.]*)"
    r"|(?P<sign>::|->|\+=|==|!=|<=|>=|&&|\|\||\.\.\.|.)", re.S | re.M)
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0"}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # "text", "name", "sign", "number", "char"
    value: str
    line: int


@dataclasses.dataclass
class Function:
    """A function or a lambda: its name, the names of its parameters, and its body's tokens."""

    name: str
    parameters: list
    body: list
    begin: int = 0  # of the body, in the file's tokens
    end: int = 0


def tokens_of(text):
    """Returns the tokens of a source; adjacent string literals are one token."""
    found, line = [], 1
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup, match[0]
        if match["raw"]:
            kind, value = "text", match["body"]
        elif kind == "text":
            value = re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), value[1:-1])
        if kind == "text" and found and found[-1].kind == "text":
            found[-1] = Token("text", found[-1].value + value, found[-1].line)
        elif kind != "skip":
            found.append(Token(kind, value, line))
        line += match[0].count("\n")
    return found


@functools.lru_cache(maxsize=None)
def read(path):
    """Returns the tokens of a source file, whose path is from the repository's root."""
    return tokens_of((ROOT / path).read_text(encoding="utf-8"))


def sources(*folders):
    """Returns the C++ sources of folders and single files, in order."""
    found = []
    for folder in folders:
        path = ROOT / folder
        found += [path] if path.is_file() else [*path.rglob("*.cc"), *path.rglob("*.h")]
    return sorted({str(path.relative_to(ROOT)) for path in found})


def is_sign(token, *values):
    return token.kind == "sign" and token.value in values


def closing(tokens, at):
    """Returns where the bracket that opens at `at` closes."""
    depth = 0
    for i in range(at, len(tokens)):
        if is_sign(tokens[i], *_OPENS):
            depth += 1
        elif is_sign(tokens[i], *_CLOSES):
            depth -= 1
            if depth == 0:
                return i
    return len(tokens) - 1


def split(tokens, *signs):
    """Returns the parts of an expression between signs that are in no brackets of it."""
    parts, depth = [[]], 0
    for token in tokens:
        if is_sign(token, *_OPENS):
            depth += 1
        elif is_sign(token, *_CLOSES):
            depth -= 1
        if depth == 0 and is_sign(token, *signs):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if parts != [[]] else []


def arguments(tokens, at):
    """Returns the arguments of the call, or the members of the list, whose bracket opens at `at`."""
    return split(tokens[at + 1:closing(tokens, at)], ",")


def calls(tokens, *names):
    """Yields (name, place of the bracket) of each call of a function or a member with one of these names."""
    for i in range(len(tokens) - 1):
        if tokens[i].kind == "name" and tokens[i].value in names and is_sign(tokens[i + 1], "("):
            yield tokens[i].value, i + 1


def words(tokens):
    return " ".join(token.value for token in tokens)


def _parameters(tokens, at):
    """Returns the names of the parameters in the brackets that open at `at`."""
    named = [[token.value for token in each if token.kind == "name"] for each in arguments(tokens, at)]
    return [each[-1] if each else "" for each in named]


def functions(tokens):
    """Returns the functions that are defined in a file's tokens."""
    found = []
    for i in range(len(tokens) - 1):
        if tokens[i].kind != "name" or not is_sign(tokens[i + 1], "("):
            continue
        if tokens[i].value in _STATEMENTS or (i and is_sign(tokens[i - 1], ".", "->")):
            continue
        end = closing(tokens, i + 1) + 1
        while end < len(tokens) and tokens[end].value in ("const", "noexcept", "override"):
            end += 1
        if end < len(tokens) and is_sign(tokens[end], "{"):
            close = closing(tokens, end)
            found.append(Function(tokens[i].value, _parameters(tokens, i + 1), tokens[end + 1:close], end, close))
    return found


def enclosing(all_functions, at):
    """Returns the innermost of the functions around a place; None: there is none."""
    around = [each for each in all_functions if each.begin < at < each.end]
    return max(around, key=lambda each: each.begin, default=None)


def _lambda_of(tokens):
    """Returns the lambda that an expression is; None: it is none."""
    if not tokens or not is_sign(tokens[0], "["):
        return None
    at = closing(tokens, 0) + 1
    parameters = []
    if at < len(tokens) and is_sign(tokens[at], "("):
        parameters = _parameters(tokens, at)
        at = closing(tokens, at) + 1
    while at < len(tokens) and not is_sign(tokens[at], "{"):
        at += 1
    return Function("", parameters, tokens[at + 1:closing(tokens, at)]) if at < len(tokens) else None


def assigned(tokens):
    """Returns, for each name, the expressions that a body or a file assigns to it, in order."""
    found = {}
    for i in range(1, len(tokens) - 1):
        if tokens[i].kind != "name" or (i and is_sign(tokens[i - 1], ".", "->")):
            continue
        at = i + 1
        while is_sign(tokens[at], "[") and is_sign(tokens[at + 1], "]"):  # an array of char
            at += 2
        if not is_sign(tokens[at], "="):
            continue
        value, depth = [], 0
        for token in tokens[at + 1:]:
            if is_sign(token, *_OPENS):
                depth += 1
            elif is_sign(token, *_CLOSES):
                depth -= 1
            if depth < 0 or (depth == 0 and is_sign(token, ";", ",")):
                break
            value.append(token)
        found.setdefault(tokens[i].value, []).append(value)
    return found


def returned(body):
    """Returns the expressions that a body returns."""
    found = []
    for i, token in enumerate(body):
        if token.kind == "name" and token.value == "return":
            found.append(split(body[i + 1:], ";")[0])
    return found


class Scope:
    """Names and what they stand for: expressions with the scope that they are evaluated in, functions and lambdas.

    `assumed` has conditions, as text, that are known to be true or false.
    """

    def __init__(self, names=None, above=None, assumed=None):
        self.names = names or {}
        self.above = above
        self.assumed = {**(above.assumed if above else {}), **(assumed or {})}

    def look(self, name):
        scope = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.above
        return None

    def local(self, function, given=None):
        """Returns the scope within a function that is called with `given`, expressions of the scope `self`."""
        names = {name: [(value, self) for value in values] for name, values in assigned(function.body).items()}
        for name, value in zip(function.parameters, given or []):
            names[name] = [(value, self)]
        scope = Scope(names, self)
        for name, values in names.items():
            names[name] = [(value, scope if name not in function.parameters else where) for value, where in values]
        return scope

    def assume(self, condition, truth):
        """Returns a scope where a condition is true or false."""
        known = {words(condition): truth}
        if truth:
            known |= {words(part): True for part in split(condition, "&&")}
        return Scope({}, self, known)


def file_scope(path):
    """Returns the scope of a file: its constants and functions."""
    tokens = read(path)
    scope = Scope()
    scope.names = {name: [(value, scope) for value in values] for name, values in assigned(tokens).items()
                   if name.startswith("k")}
    for function in functions(tokens):
        scope.names.setdefault(function.name, function)
    return scope


def _unwrapped(tokens):
    """Returns an expression without brackets, casts and moves around it."""
    while True:
        while tokens and is_sign(tokens[0], "*"):
            tokens = tokens[1:]
        names = words(tokens[:3])
        inner = 3 if names in ("std :: string", "std :: string_view", "std :: move") else 0
        if len(tokens) > inner and is_sign(tokens[inner], "(") and closing(tokens, inner) == len(tokens) - 1:
            tokens = tokens[inner + 1:-1]
        else:
            return tokens


def conditional(tokens):
    """Returns (condition, if true, if false) of a conditional expression; None: it is another one."""
    tokens, depth, nested, question = _unwrapped(tokens), 0, 0, None
    for i, token in enumerate(tokens):
        if is_sign(token, *_OPENS):
            depth += 1
        elif is_sign(token, *_CLOSES):
            depth -= 1
        elif depth == 0 and is_sign(token, "?"):
            question = i if question is None else question
            nested += 1
        elif depth == 0 and question is not None and is_sign(token, ":"):
            nested -= 1
            if nested == 0:
                return tokens[:question], tokens[question + 1:i], tokens[i + 1:]
    return None


def _truth(condition, scope):
    """Returns whether a condition is true; None: a run decides. Texts are in the plural, and limits are finite."""
    text = words(condition)
    if text in scope.assumed:
        return scope.assumed[text]
    if text.startswith("! ") and text[2:] in scope.assumed:
        return not scope.assumed[text[2:]]
    return False if text == "one" or text.endswith("== 1") or "== ~" in text else None


def _joined(parts):
    """Returns the alternatives of a text whose parts have alternatives."""
    return [re.sub(f"{HOLE}+", HOLE, "".join(each)) for each in itertools.product(*parts)]


def settled(found):
    """Returns alternatives without repetitions; HOLE alone, if one of them is unknown or there are too many."""
    found = list(dict.fromkeys(found))
    return [HOLE] if HOLE in found or len(found) > _MOST else found


def _part(found):
    """Returns the alternatives of a part of a text. A part that may be missing is in brackets."""
    found = settled(found)
    if "" not in found or len(found) == 1:
        return found
    return [f"[{each}]" if re.search(r"\w|…", each) else each for each in found if each]


def formatted(template, values):
    """Returns the alternatives of fmt::format."""
    parts, at, count = [], 0, 0
    for match in re.finditer(r"\{\{|\}\}|\{(\d*)(?::[^{}]*)?\}", template):
        parts.append([template[at:match.start()]])
        at = match.end()
        if match[0] in ("{{", "}}"):
            parts.append([match[0][0]])
            continue
        place = int(match[1]) if match[1] else count
        count += 1
        parts.append(_part(values[place]) if place < len(values) else [HOLE])
    return _joined([*parts, [template[at:]]])


def _function(name, scope):
    """Returns the function or lambda that a name stands for, and the scope where it was written; None: neither."""
    found = scope.look(name)
    for _ in range(_DEEP):
        if not isinstance(found, list):
            break
        value, scope = found[-1]
        if (made := _lambda_of(value)) is not None:
            return made, scope
        found = scope.look(words(value))
    return (found if isinstance(found, Function) else None), scope


def _called(tokens, scope, depth):
    """Returns the alternatives of a call; None: the expression is no call whose result is known."""
    at = next((i for i, token in enumerate(tokens) if is_sign(token, "(")), None)
    if at is None or closing(tokens, at) != len(tokens) - 1:
        return None
    name, given = words(tokens[:at]), arguments(tokens, at)
    if name.endswith("fmt :: format") and given:
        template = given[0]
        if len(template) == 1 and template[0].kind == "text":
            return formatted(template[0].value, [texts(each, scope, depth + 1) for each in given[1:]])
    if name == "Counted" and len(given) == 2:
        return [f"{HOLE} {noun}s" for noun in texts(given[1], scope, depth + 1)]
    function, where = _function(name, scope)
    if function is None:
        return None
    inner = where.local(function)
    for parameter, value in zip(function.parameters, given):
        inner.names[parameter] = [(value, scope)]
    found = [text for value in returned(function.body) for text in texts(value, inner, depth + 1)]
    return found or None


def texts(tokens, scope, depth=0):
    """Returns the alternatives of an expression whose value is a text, with HOLE for what a run decides."""
    return _texts(tokens, scope, depth)[0]


def _texts(tokens, scope, depth):
    """Returns `texts`, and whether an assumption chose between them."""
    tokens = _unwrapped(tokens)
    if not tokens or depth > _DEEP:
        return [HOLE], False
    if choice := conditional(tokens):
        truth = _truth(choice[0], scope)
        if truth is not None:
            return _texts(choice[1 if truth else 2], scope, depth + 1)[0], True
        left, right = (_texts(each, scope, depth + 1) for each in choice[1:])
        if left[1] != right[1]:
            return (left if left[1] else right)[0], True
        return list(dict.fromkeys(left[0] + right[0])), left[1]
    terms = split(tokens, "+")
    if len(terms) > 1:
        return _joined([_part(texts(each, scope, depth + 1)) for each in terms]), False
    if len(tokens) == 1 and tokens[0].kind == "text":
        return [tokens[0].value], False
    found = _called(tokens, scope, depth)
    if found is None and len(tokens) == 1 and tokens[0].kind == "name":
        known = scope.look(tokens[0].value)
        if isinstance(known, list):
            found = [text for value, where in known for text in texts(value, where, depth + 1)]
    return (list(dict.fromkeys(found)) if found else [HOLE]), False
