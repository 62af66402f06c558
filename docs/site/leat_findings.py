# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: directives that show findings and errors from the sources, and a check that all are there.

    ```{finding} NO_WORKERS
    A note on when it comes, in Markdown.
    ```

    ```{errors} client/coordinator rpc/tls
    * no coordinator at … => A note in Markdown on the texts that begin so.
    ```

A finding becomes a section with its severities, texts and remedies. `errors` becomes a table of the texts of the
sources and folders that it names, except those `:without:`, and with `:kinds:` only errors of these classes.
"""

import re

import leat_cpp as cpp
import leat_texts
import sphinx.util.logging
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

_log = sphinx.util.logging.getLogger(__name__)


def plain(text):
    """Returns a text whose quotation marks and dashes stay as they are."""
    return nodes.inline(text, text, support_smartquotes=False)


def table(titles, rows, widths):
    """Returns a table; a cell is a list of nodes, and each is a paragraph of it."""
    made = nodes.table(classes=["leat-generated"])
    group = nodes.tgroup(cols=len(titles))
    made += group
    group += [nodes.colspec(colwidth=width) for width in widths]

    def row_of(cells):
        row = nodes.row()
        for cell in cells:
            entry = nodes.entry()
            entry += [nodes.paragraph("", "", each) for each in cell]
            row += entry
        return row

    group += nodes.thead("", row_of([[plain(title)] for title in titles]))
    group += nodes.tbody("", *[row_of(row) for row in rows])
    return made


def section(directive, name):
    """Returns a section that Markdown may link to by its name in lower case."""
    made = nodes.section(ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)])
    made += nodes.title("", "", nodes.literal(name, name))
    directive.state.document.note_implicit_target(made, made)
    found = directive.env.current_document if hasattr(directive.env, "current_document") else directive.env.temp_data
    found.setdefault("leat_slugs", {})[name.lower()] = (directive.lineno, made["ids"][0], name)
    return made


def _shown(env, key):
    if not hasattr(env, key):
        setattr(env, key, {})
    return getattr(env, key)


class Finding(SphinxDirective):
    """Shows one finding, with the note that is its content."""

    required_arguments = 1
    has_content = True

    def run(self):
        code = self.arguments[0]
        for path in (leat_texts.COORDINATOR, *leat_texts.DOCTOR):
            self.env.note_dependency(str(cpp.ROOT / path))
        cases = leat_texts.findings().get(code)
        if cases is None:
            raise self.error(f"the sources make no finding {code}")
        _shown(self.env, "leat_findings").setdefault(self.env.docname, set()).add(code)
        made = section(self, code)
        made += self.parse_content_to_nodes()
        merged = {}
        for case in cases:
            known = merged.setdefault((case.says, case.remedies), [])
            known += [each for each in sorted(case.severities) if each not in known]
        rows = []
        for (says, remedies), severities in merged.items():
            known = [nodes.literal(text, text) for text in says if text != cpp.HOLE]
            advice = [plain(text) for text in remedies]
            rows.append([[plain(" or ".join(severities))], known or [nodes.emphasis("", "the cause")],
                         advice or [nodes.emphasis("", "as the text says")]])
        made += table(["Severity", "It says", "What to do"], rows, [10, 50, 40])
        return [made]


class Errors(SphinxDirective):
    """Shows the errors of sources and folders, with notes on some of them."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {"without": directives.unchanged, "kinds": directives.unchanged}

    def _errors(self):
        shows = leat_texts.selection(self.arguments[0], self.options.get("without", ""), self.options.get("kinds", ""))
        for path in self.arguments[0].split():
            found = leat_texts.errors(path)
            if not found:
                raise self.error(f"{path} makes no errors")
            yield from filter(shows, found)

    def _notes(self, rows):
        """Returns the notes by the beginnings of texts."""
        notes = {}
        for item in re.split(r"^\* ", "\n".join(self.content), flags=re.M)[1:]:
            begin, arrow, note = " ".join(item.split()).partition(" => ")
            if not arrow or not any(says.startswith(begin) for says, _ in rows):
                raise self.error(f"no text of {self.arguments[0]} begins with {begin!r}: want * BEGINNING => NOTE")
            notes[begin] = note
        return notes

    def run(self):
        errors = list(self._errors())
        _shown(self.env, "leat_errors").setdefault(self.env.docname, set()).update(errors)
        rows = list(dict.fromkeys((error.says, error.kind) for error in errors))
        notes, cells = self._notes(rows), []
        rows.sort(key=lambda row: not any(row[0].startswith(begin) for begin in notes))  # those with notes first
        for says, kind in rows:
            text = [nodes.literal(says, says)]
            for begin, note in notes.items():
                if says.startswith(begin):
                    text.append(nodes.inline("", "", *self.parse_inline(note)[0], classes=["leat-note"]))
            cells.append([text, [nodes.literal(kind, kind) if kind != leat_texts.ANY else plain(kind)]])
        return [table(["Text", "Class"], cells, [80, 20])]


class ErrorClasses(SphinxDirective):
    """Shows the exceptions of Python, with the codes and the built-in exceptions that they derive from."""

    def run(self):
        rows = [[[nodes.literal(name, name)], [plain(bases)], [plain(meaning)]]
                for name, bases, meaning in leat_texts.classes()]
        return [table(["Class", "Is also", "Means"], rows, [20, 20, 60])]


class Remedies(SphinxDirective):
    """Shows what a handshake finds wrong (`tls`), or what the command-line program adds to errors (`command`)."""

    required_arguments = 1

    def run(self):
        if self.arguments[0] == "tls":
            rows = [[[nodes.literal(says, says)], [plain(remedy)]] for says, remedy in leat_texts.probes()]
            return [table(["Text", "What to do"], rows, [50, 50])]
        rows = [[[nodes.literal(status, status)], [plain(text) for text in remedies]]
                for status, remedies in leat_texts.command_remedies()]
        return [table(["Class", "What the program adds"], rows, [25, 75])]


def read_sources(app):
    """Reads the sources before Sphinx forks, so that its processes share the result."""
    leat_texts.findings()
    leat_texts.errors(*leat_texts.SOURCES, leat_texts.PACKAGE)


def keep_slugs(app, doctree):
    """Makes the sections of directives known to Markdown's links, as headings are."""
    found = getattr(app.env, "current_document", app.env.temp_data).get("leat_slugs", {})
    if found:
        app.env.metadata[app.env.docname].setdefault("myst_slugs", {}).update(found)


def check(app, env):
    """Warns about findings and errors that no page shows, and about findings that could not be read."""
    shown = set().union(*_shown(env, "leat_findings").values())
    for code in sorted(leat_texts.codes() - set(leat_texts.findings())):
        _log.warning("the code %s is in the sources, and leat_texts.py does not find how its finding is made", code)
    for code in sorted((leat_texts.codes() | set(leat_texts.findings())) - shown):
        _log.warning("no page shows the finding %s: want a {finding} directive in docs/see/findings.md", code)
    told = set().union(*_shown(env, "leat_errors").values())
    for path, missing in sorted(leat_texts.missing_errors(told.__contains__).items()):
        _log.warning("no page shows the %d errors of %s, such as %r: want an {errors} directive in docs/see",
                     len(missing), path, missing[0].says)


def _forget(app, env, docname):
    for key in ("leat_findings", "leat_errors"):
        _shown(env, key).pop(docname, None)


def _merge(app, env, docnames, other):
    for key in ("leat_findings", "leat_errors"):
        _shown(env, key).update({name: value for name, value in _shown(other, key).items() if name in docnames})


def setup(app):
    app.add_directive("finding", Finding)
    app.add_directive("errors", Errors)
    app.add_directive("errors-classes", ErrorClasses)
    app.add_directive("remedies", Remedies)
    app.connect("builder-inited", read_sources)
    app.connect("doctree-read", keep_slugs)
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
