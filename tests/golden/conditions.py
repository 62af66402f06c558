# SPDX-License-Identifier: Apache-2.0
"""The language of `where` once more, for generate.py: canonical texts, and which rows they choose.

It rewrites tokens to a Python expression, where the C++ one keeps a tree, and compares fractions, where that one
compares whole parts. A value is None, an int, a float or a str.
"""

import fractions
import re

TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`(?P<odd>(?:[^`\\]|\\.)*)`"""
    r"""|(?P<name>[A-Za-z_][\w.]*)|(?P<number>[-+.\d](?:[eE][-+]|[\w.])*)|(?P<sign>[=!<>]=|.))""",
    re.ASCII,
)
WORDS = ("and", "or", "not", "in", "like", "true", "false")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

ROWS = [
    {"width": 256, "label": 3, "name": "cats/1_dup.jpg", "score": 0.5},
    {"width": 255, "label": 7, "name": "cats/2.jpg", "score": 0.25},
    {"width": None, "label": 3, "name": "", "score": float("nan")},
    {"width": 2**53 + 1, "label": -1, "name": 'a "quoted" \\ name', "score": 2.0**53},
    {"width": 0, "label": None, "name": None, "score": 1e300},
    {"width": 2**63 - 1, "label": 3, "name": "*", "score": 2.0**63},
    {"width": -(2**63), "label": 0, "name": "dogs/dup_dup", "score": -(2.0**63)},
    {"width": 7, "label": "three", "name": 5, "score": 3},
]
COLUMNS = ("width", "label", "name", "score")
OPERANDS = ("width", "label", "name", "score", "256", "3", "0.5", "9007199254740992.0", "9007199254740993", '"cats/2.jpg"',
            "'*'", "true", "1e300", "-0.0", "2.5e-3")  # fmt: skip


def unescaped(text):
    return re.sub(r"\\(.)", r"\1", text)


def compare(sign, left, right):
    for value in (left, right):
        if value is None or value != value:
            return False
    if isinstance(left, str) != isinstance(right, str):
        return False
    if not isinstance(left, str):
        left, right = fractions.Fraction(left), fractions.Fraction(right)
    else:
        left, right = left.encode(), right.encode()
    return {"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right,
            ">=": left >= right}[sign]  # fmt: skip


def like(value, pattern):
    rule = ".*".join(re.escape(part) for part in pattern.split("*"))
    return isinstance(value, str) and re.fullmatch(rule, value, re.DOTALL) is not None


def literal_text(value):
    if isinstance(value, str):
        return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
    return repr(value)


class Language:
    """One condition: `text` is canonical, and `holds(row)` says whether the condition holds."""

    def __init__(self, text):
        self.tokens = [(m.lastgroup, m.group(m.lastgroup)) for m in TOKEN.finditer(text) if m.lastgroup]
        _, self.text, self.holds = self.parts("or")[:3]
        assert not self.tokens, text

    def next_is(self, word):
        return bool(self.tokens) and self.tokens[0] in (("name", word), ("sign", word))

    def take(self, word):
        assert self.next_is(word), (word, self.tokens)
        self.tokens.pop(0)

    def parts(self, word):
        """Returns the kind, the text and the function of parts that `word` joins."""
        below = (lambda: self.parts("and")) if word == "or" else self.term
        parts = [below()]
        while self.next_is(word):
            self.take(word)
            parts.append(below())
        if len(parts) == 1:
            return parts[0]
        texts = [f"({t})" if word == "and" and kind == "or" else t for kind, t, *_ in parts]
        both = any if word == "or" else all
        return word, f" {word} ".join(texts), lambda row: both(holds(row) for _, _, holds, *_ in parts)

    def negated(self, part):
        kind, text, holds = part[:3]
        if kind == "not":
            return part[3]
        shown = f"({text})" if kind in ("or", "and") else text
        return "not", "not " + shown, lambda row: not holds(row), part

    def term(self):
        if self.next_is("not"):
            self.take("not")
            return self.negated(self.term())
        if self.next_is("("):
            self.take("(")
            part = self.parts("or")
            self.take(")")
            return part
        return self.comparison()

    def operand(self):
        kind, text = self.tokens.pop(0)
        if kind == "odd" or (kind == "name" and text not in WORDS):
            name = unescaped(text) if kind == "odd" else text
            plain = re.fullmatch(r"[A-Za-z_][\w.]*", name, re.ASCII) and name not in WORDS
            return True, name if plain else "`" + re.sub(r"([`\\])", r"\\\1", name) + "`", lambda row: row[name]
        if kind == "text":
            value = unescaped(text[1:-1])
        elif kind == "name":
            value = int(text == "true")
        elif re.fullmatch(r"[-+]?\d+", text) and -(2**63) <= int(text) < 2**63:
            value = int(text)
        else:
            value = float(text)
            value = int(value) if value == int(value) and abs(value) < 2.0**63 else value
        return False, value, lambda row: value

    def comparison(self):
        is_column, left, get_left = self.operand()
        negated = self.next_is("not")
        if negated:
            self.take("not")
        sign = self.tokens.pop(0)[1]
        if sign == "in":
            self.take("[")
            values = set()
            while not self.next_is("]"):
                values.add(self.operand()[1])
                if self.next_is(","):
                    self.take(",")
            self.take("]")
            ordered = sorted(v for v in values if not isinstance(v, str))
            ordered += sorted((v for v in values if isinstance(v, str)), key=str.encode)
            text = f"{left} in [{', '.join(map(literal_text, ordered))}]"
            part = "leaf", text, lambda row: any(compare("==", get_left(row), value) for value in ordered)
        elif sign == "like":
            pattern = self.operand()[1]
            part = "leaf", f"{left} like {literal_text(pattern)}", lambda row: like(get_left(row), pattern)
        else:
            other_is_column, right, get_right = self.operand()
            if not is_column:
                sign, left, right, get_left, get_right = MIRRORED[sign], right, left, get_right, get_left
                is_column, other_is_column = other_is_column, is_column
            shown = right if other_is_column else literal_text(right)
            part = "leaf", f"{left} {sign} {shown}", lambda row: compare(sign, get_left(row), get_right(row))
        return self.negated(part) if negated else part


WRITTEN = [
    'width >= 256 and label in [3, 7] and not name like "*_dup*"',
    "256 <= width",
    "not not (((width < 3)))",
    "(width < 3 or label == 3) and (score > .5 and (label == 0 and width != 1))",
    "width not in [7, 7.0, +7, 256, 1e2]",
    "label in ['three', \"three\", 3, true]",
    "name not like '*'",
    "name like ''",
    "name like '*a*a*'",
    'name == "a \\"quoted\\" \\\\ name"',
    "`width` > `label`",
    "not width >= 5 or not (label == 3 and score < 1)",
    "width > score",
    "score == 9007199254740993",
    "width == 9007199254740992.0",
    "score >= 9223372036854775807",
    "score <= -9223372036854775808 or score > 1e299",
    "label > 2 and name >= 'cats'",
]


def random_conditions(count, word):
    """`word(i)` gives the i-th of 64-bit words."""
    at = [0]

    def choose(things):
        at[0] += 1
        return things[word(at[0]) % len(things)]

    def condition(depth):
        kind = choose(["or", "and", "not", "()", "leaf", "leaf"]) if depth else "leaf"
        if kind in ("or", "and"):
            return f"{condition(depth - 1)} {kind} {condition(depth - 1)}"
        if kind == "not":
            return "not " + condition(depth - 1)
        if kind == "()":
            return f"({condition(depth - 1)})"
        left = choose(COLUMNS)
        way = choose(["in", "like", "sign", "sign", "mirror"])
        if way == "in":
            return f"{left} {choose(['', 'not '])}in [{choose(OPERANDS[4:])},{choose(OPERANDS[4:])}]"
        if way == "like":
            return f"{left} {choose(['', 'not '])}like {choose(['1', '*dup*', 'cats/*', '*.jpg', '*a*d*', '*'])!r}"
        sign = choose(list(MIRRORED))
        right = choose(OPERANDS[4:]) if way == "mirror" else choose(OPERANDS)
        return f"{right}{sign}{left}" if way == "mirror" else f"{left} {sign} {right}"

    return [condition(4) for _ in range(count)]


def lines(word):
    yield "# condition TAB canonical text TAB whether it holds for each row of condition_test.cc"
    for text in WRITTEN + random_conditions(150, word):
        language = Language(text)
        assert Language(language.text).text == language.text
        yield "\t".join([text, language.text, "".join("01"[language.holds(row)] for row in ROWS)])
