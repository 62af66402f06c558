# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: the reference of C and C++ from the public headers, client/leat/*.h.

    .. leat-header:: client/leat/client.h
       :names: Service, SampleField ... Batches, leat_job_*

It shows these names of the header with their comments. `...` stands for all names between two. Without `:names:` it
shows the header's own comment. A comment belongs
to the declaration after it, and to those after that which it names, up to an empty line. Each public name must be on a
page and have a comment; fields may be without.

Doxygen is not used. Its comments have a markup of their own, and it does not know that one comment covers several
declarations, so a filter would need this reader anyway. The site also builds with pip alone. Sphinx parses each
declaration strictly, so this reader only has to split the headers, whose layout clang-format fixes.
"""

import dataclasses
import fnmatch
import functools
import itertools
import pathlib
import re

import sphinx.util.logging
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = tuple(f"client/leat/{name}.h" for name in ("client", "pipeline", "admin", "leat"))

_log = sphinx.util.logging.getLogger(__name__)


@dataclasses.dataclass
class Item:
    """A declaration: its text on one line without comments, its comment, and the members of a type."""

    text: str
    comment: str = ""
    members: list = dataclasses.field(default_factory=list)

    @property
    def kind(self):
        if re.match(r"(typedef )?(struct|class) ", self.text):
            return "type"
        if self.text.startswith("enum "):
            return "enum"
        if self.text.startswith("using "):
            return "alias"
        if self.text.startswith("#define "):
            return "macro"
        return "function" if "(" in self.text.partition(" = ")[0] else "member"

    @property
    def name(self):
        if self.kind == "function":
            return re.search(r"(operator\S+|[~\w]+)\s*\(", self.text)[1]
        if self.kind == "macro":
            return self.text.split()[1].partition("(")[0]
        if self.kind == "alias":
            return self.text.split()[1]
        if self.kind in ("type", "enum"):
            words = re.sub(r"^(typedef )?(struct|class|enum class|enum) ", "", self.text)
            return re.match(r"\w+", words)[0]
        return re.search(r"(\w+)\s*(?:\[\w*\])?\s*(?:= .*)?$", self.text)[1]

    @property
    def shown(self):
        """Whether users call or read it: constructors from a State and the like are no interface."""
        return not re.search(r"\bState\b|^friend |~|&&\)|\boperator\b", self.text)


def _lines(text):
    """Returns the pairs of code and comment of each line."""
    text = re.sub(r"/\*(.*?)\*/", lambda c: "\n".join("//" + re.sub(r"^ *\* ?", " ", part)
                                                 for part in c[1].split("\n")), text, flags=re.S)
    for line in text.split("\n"):
        code, mark, comment = line.partition("//")
        if mark and code.count('"') % 2:  # a text with two slashes
            code, mark, comment = line, "", ""
        yield code, comment if mark else None


class Reader:
    """Splits a header."""

    def __init__(self, path):
        text = (ROOT / path).read_text(encoding="utf-8")
        self.is_c = path.endswith("leat.h")
        text = re.sub(r"LEAT_EXPORT(?! __attribute__) ", "", text)
        text = re.sub(r"^#(?!define LEAT_ABI).*\n", "", text, flags=re.M)
        text = re.sub(r'^(extern "C" \{|namespace leat \{|\}  // namespace leat)$', "", text, flags=re.M)
        text = re.sub(r"^namespace \w+ \{.*?^\}", "", text, flags=re.M | re.S)
        self._all = list(_lines(text))
        self._at = 0
        self.about = self._head()
        self.items = self._block(0)

    def _head(self):
        """Returns the header's own comment, without the licence."""
        lines = []
        while self._at < len(self._all) and not self._all[self._at][0].strip() and self._all[self._at][1] is not None:
            lines.append(self._all[self._at][1].removeprefix(" "))
            self._at += 1
        return "\n".join(lines[1:]).strip("\n")

    def _block(self, indent):
        """Reads declarations up to the end of a type."""
        items, before, public = [], [], True
        covers = covered = ""  # the last comment, and the same once a declaration has it
        while self._at < len(self._all):
            code, comment = self._all[self._at]
            stripped = code.strip()
            if not stripped:
                self._at += 1
                if comment is None:
                    before, covers = [], ""
                else:
                    before.append(comment.removeprefix(" "))
                continue
            if stripped.startswith("}"):
                return items
            if re.match(r"(public|private|protected):$", stripped):
                public = stripped == "public:"
                self._at += 1
                continue
            if before:
                covers, before = "\n".join(before), []
            item = self._item(code)
            first = covers is not None and covers != covered
            named = covers and item.text and re.search(rf"\b{re.escape(item.name)}\b", covers)
            if item.comment:
                covers = ""
            elif first or named:
                item.comment, covered = covers, covers
            if public and item.text:
                items += self._each(item)
        return items

    @staticmethod
    def _each(item):
        """Returns a declaration of several fields as one each."""
        several = re.match(r"([\w:]+) (\w+ = \w+(?:, \w+ = \w+)+)$", item.text)
        if not several:
            return [item]
        fields = [Item(f"{several[1]} {each}") for each in several[2].split(", ")]
        fields[0].comment = item.comment
        return fields

    def _item(self, first):
        """Reads one declaration, its trailing comment, and its members."""
        indent = len(first) - len(first.lstrip())
        words, trailing, members, depth = [], [], [], 0
        while self._at < len(self._all):
            code, comment = self._all[self._at]
            stripped = code.strip()
            self._at += 1
            opens = re.match(r"(typedef )?(struct|class|enum)\b[^;(]*\{$", stripped) and not words
            if opens:
                kind = "enum" if stripped.startswith("enum") else ""
                members = self._enumerators() if kind else self._block(indent + 2)
                code = self._all[self._at][0]
                self._at += 1
                return Item(stripped.rstrip("{ "), (comment or "").strip(), members)
            words.append(stripped)
            if comment is not None:
                trailing.append(comment.strip())
            depth += stripped.count("(") + stripped.count("{") - stripped.count(")") - stripped.count("}")
            if depth == 0 and (stripped.endswith((";", "{}")) or stripped.startswith("#")):
                break
        while trailing and self._at < len(self._all):  # lines of the comment after the declaration
            code, comment = self._all[self._at]
            if code.strip() or comment is None or len(code) <= indent:
                break
            trailing.append(comment.strip())
            self._at += 1
        text = re.sub(r"\s+", " ", " ".join(words)).rstrip(";").replace(" = 0;", "")
        text = re.sub(r"\( ", "(", text)
        if text.startswith(("struct ", "class ", "namespace ")) and not members:  # a forward declaration
            text = ""
        return Item(text, "\n".join(each for each in trailing if each), members)

    def _enumerators(self):
        items, before = [], []
        while not self._all[self._at][0].strip().startswith("}"):
            code, comment = self._all[self._at]
            self._at += 1
            if code.strip():
                text = code.strip().rstrip(",").partition(" = ")[0]
                items.append(Item(text, "\n".join(before) or (comment or "").strip()))
                before = []
            elif comment is not None:
                before.append(comment.strip())
        return items


@functools.lru_cache(maxsize=None)
def read(path):
    return Reader(path)


@functools.lru_cache(maxsize=None)
def _known():
    """Returns the names that comments may link to, with their role."""
    names = {}
    for path in HEADERS:
        for item in read(path).items:
            c = read(path).is_c
            if not item.shown:
                continue
            role = {"function": "c:func", "type": "c:struct", "macro": "c:macro"}.get(item.kind) if c else "cpp:any"
            names[item.name] = f":{role}:`{item.name}`" if c else f":cpp:any:`{item.name} <leat::{item.name}>`"
            for member in item.members if not c else ():
                full = f"{item.name}::{member.name}"
                names[full] = f":cpp:any:`{full} <leat::{full}>`"
    return names


def prose(comment):
    """Returns a comment as reStructuredText: indented lines are code, and known names are links."""

    def marked(found):
        text = found[0]
        plain = text.strip("`").removeprefix("leat::").removesuffix("()")
        link = _known().get(plain)
        if link and ("_" in plain or "::" in plain or len(plain) > 5):
            return link + ("\\ " if found.string[found.end() : found.end() + 1].isalnum() else "")
        if text.startswith("`"):
            return f"`{text}`"
        if re.match(r"k[A-Z]|leat_|[A-Z][A-Z_]{3,}$", text) or "::" in text:
            return f"``{text}``"
        return re.sub(r"([*_|\\])", r"\\\1", text)

    paragraphs, lines = [], comment.split("\n")
    while lines:
        code = lines[0].startswith("    ")
        block = []
        while lines and (lines[0].startswith("    ") == code or (code and not lines[0].strip())):
            block.append(lines.pop(0))
            if not code and not block[-1].strip():
                break
        text = "\n".join(block).strip("\n")
        if code:
            paragraphs.append(".. code-block:: c++\n\n" + "\n".join("   " + line for line in text.split("\n")))
        elif text.strip():
            text = re.sub(r"`[^`]+`|\w+(?:::\w+)*(?:\(\))?|[*|\\]", marked, text)
            paragraphs.append(text)
    return "\n\n".join(paragraphs)


def _indent(text):
    return "\n".join("   " + line if line else "" for line in text.split("\n"))


def _grouped(items):
    """Yields lists of neighbouring functions that share a comment, and of every other item alone."""
    for _, group in itertools.groupby(items, lambda item: (item.kind == "function" and item.comment) or id(item)):
        yield list(group)


def _declared(item):
    """Returns the directive's name and the declaration for Sphinx's C++ domain."""
    text = re.sub(r"^virtual ", "", item.text)
    text = re.sub(r" = 0$", "", text) if item.kind == "function" else text
    text = re.sub(r" \{\}$", "", text)
    if item.kind == "type":
        kind, _, rest = text.partition(" ")
        return f"cpp:{kind}", rest
    if item.kind == "enum":
        return ("cpp:enum-class", text.removeprefix("enum class "))
    if item.kind == "alias":
        return "cpp:type", text.removeprefix("using ")
    return f"cpp:{item.kind}", text


def _rest_cpp(items):
    """Returns the text of items that share a comment."""
    item = items[0]
    directive, first = _declared(item)
    lines = [f".. {directive}:: {first}"]
    lines += [" " * len(f".. {directive}:: ") + _declared(other)[1] for other in items[1:]]
    lines.append("")
    if item.comment:
        lines += [_indent(prose(item.comment)), ""]
    if item.kind == "enum":
        for value in item.members:
            lines += [_indent(f".. cpp:enumerator:: {value.name}\n\n" + _indent(prose(value.comment))), ""]
    else:
        for members in _grouped([member for member in item.members if member.shown]):
            lines += [_indent(_rest_cpp(members)), ""]
    return "\n".join(lines)


def _rest_c(items):
    """Returns the text of items that share a comment."""
    item = items[0]
    directive = {"macro": "c:macro", "type": "c:struct"}.get(item.kind, f"c:{item.kind}")
    texts = [each.text if each.kind == "function" else each.name for each in items]
    lines = [f".. {directive}:: {texts[0]}", *(" " * len(f".. {directive}:: ") + text for text in texts[1:])]
    lines += ["", _indent(prose(item.comment)), ""]
    for member in item.members:
        lines += [_indent(f".. c:member:: {member.text}\n\n" + _indent(prose(member.comment))), ""]
    return "\n".join(lines)


class Header(Directive):
    """The directive leat-header."""

    required_arguments = 1
    option_spec = {"names": directives.unchanged}

    def run(self):
        env = self.state.document.settings.env
        path = self.arguments[0]
        env.note_dependency(str(ROOT / path))
        header = read(path)
        if "names" not in self.options:
            text = prose(header.about)
        else:
            one = _rest_c if header.is_c else _rest_cpp
            text = "\n".join(one(items) for items in _grouped(self._chosen(header)))
            if not header.is_c:
                text = ".. cpp:namespace:: leat\n\n" + text
        container = nodes.Element()
        self.state.nested_parse(StringList(text.split("\n"), path), self.content_offset, container)
        return container.children


    def _chosen(self, header):
        """Returns the items that `:names:` lists."""
        items = [item for item in header.items if item.shown]
        every, chosen = [item.name for item in items], []
        for entry in self.options["names"].replace("\n", " ").split(","):
            first, _, last = (part.strip() for part in entry.partition("..."))
            found = fnmatch.filter(every, first)
            if last:
                found = every[every.index(first) : every.index(last) + 1]
            if not found:
                raise self.error(f"{self.arguments[0]} has no {entry.strip()}")
            chosen += [item for item in items if item.name in found and item not in chosen]
        return chosen


def check_names(app, env):
    """Warns about public names that no page has, and about names without a comment."""
    cpp = {name for name, *_ in env.domains["cpp"].get_objects()}
    c = {name for name, *_ in env.domains["c"].get_objects()}
    for path in HEADERS:
        header = read(path)
        for item in header.items:
            if not item.shown:
                continue
            full = item.name if header.is_c else f"leat::{item.name}"
            if full not in (c if header.is_c else cpp):
                _log.warning("%s: %s is public, and no page of docs/reference has it", path, item.name)
            if not item.comment:
                _log.warning("%s: %s has no comment", path, item.name)
            for member in item.members:
                # The fields of a struct may be clear from its comment and their names.
                if member.shown and not member.comment and member.kind != "member":
                    _log.warning("%s: %s::%s has no comment", path, item.name, member.name)


def setup(app):
    app.add_directive("leat-header", Header)
    app.connect("env-check-consistency", check_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
