# SPDX-License-Identifier: Apache-2.0
"""Draws the part of Mermaid that the pages use as SVG: flowcharts of boxes, stores, arrows with labels and subgraphs,
which Graphviz's dot lays out, and sequence diagrams, which are drawn here.

    flowchart LR                                sequenceDiagram
        subgraph host["A host"]                     autonumber
            a["text<br/><b>bold</b>"]               participant T as Trainer
            s[("a store")]                          T->>E: a call
        end                                         E-->>T: an answer
        a & b -->|"label"| s
"""

import html
import re
import shutil
import subprocess
import textwrap

_NODE = re.compile(r'(\w+)(?:\[\("([^"]*)"\)\]|\["([^"]*)"\])?')
_ARROW = re.compile(r'\s+(<?)(--|-\.-)>(?:\|"([^"]*)"\|)?\s+')
_SUBGRAPH = re.compile(r'subgraph (\w+)\["([^"]*)"\]')
_PARTICIPANT = re.compile(r"participant (\w+) as (.+)")
_MESSAGE = re.compile(r"(\w+)(--?)>>(\w+): (.+)")

_SHOWN = 'style="max-width:100%;height:auto" role="img"'
_FONT = "Helvetica,Arial,sans-serif"
_LABEL_COLUMNS = 17  # a longer label of an arrow is broken into lines
_COLUMN, _LINE, _LETTER = 152, 44, 7  # of a sequence diagram, in pixels


class DiagramError(ValueError):
    """A line that the converter does not know."""


def _text(label):
    """Returns a label as dot's HTML: Mermaid's <br>, <br/> and <b> stay, and everything else is text."""
    parts = re.split(r"(<br/?>|</?b>)", label)
    escaped = "".join("<br/>" if part.startswith("<br") else part if part in ("<b>", "</b>") else html.escape(part)
                      for part in parts)
    return f"<{escaped.replace('</b> ', '</b>&#160;')}>"  # dot drops a space there


def _wrapped(label):
    return "<br/>".join(textwrap.wrap(label, _LABEL_COLUMNS, break_long_words=False))


def dot_of(text):
    """Returns a flowchart in dot's language. Raises DiagramError for a line that it does not know."""
    lines = [line.strip() for line in text.strip().splitlines()]
    head = re.fullmatch(r"flowchart (LR|TB)", lines[0])
    if not head:
        raise DiagramError(f"{lines[0]!r}: want flowchart LR or flowchart TB")
    dot = ["digraph {",
           f'graph [rankdir={head[1]} bgcolor=none nodesep=0.2 ranksep=0.35 fontname="{_FONT}" fontsize=13]',
           f'node [shape=box style="rounded" margin="0.12,0.06" height=0.35 fontname="{_FONT}" fontsize=13]',
           f'edge [arrowsize=0.7 fontname="{_FONT}" fontsize=12]']
    depth = 0

    def names(group):
        """Adds the boxes that a side of an arrow declares; returns the names of all of them."""
        found = [_NODE.fullmatch(one) for one in re.split(r"\s+&\s+", group)]
        if not all(found):
            raise DiagramError(f"{group!r}: want names, or names with texts, between &")
        for name, store, box in (one.groups() for one in found):
            if store:
                dot.append(f"{name} [shape=cylinder style=solid label={_text(store)}]")
            elif box:
                dot.append(f"{name} [label={_text(box)}]")
        return [one[1] for one in found]

    for line in filter(None, lines[1:]):
        if found := _SUBGRAPH.fullmatch(line):
            depth += 1
            dot.append(f"subgraph cluster_{found[1]} {{ label={_text(found[2])} style=\"rounded,dashed\"")
        elif line == "end" and depth > 0:
            depth -= 1
            dot.append("}")
        elif _NODE.fullmatch(line):
            names(line)
        elif len(parts := _ARROW.split(line)) == 5:
            sources, both, stroke, label, targets = parts
            options = [f"label={_text(_wrapped(label))}"] if label else []
            options += ["dir=both"] if both else []
            options += ["style=dashed"] if stroke == "-.-" else []
            dot += [f"{source} -> {target} [{' '.join(options)}]"
                    for source in names(sources) for target in names(targets)]
        else:
            raise DiagramError(f"{line!r}: want a box, an arrow, a subgraph or its end")
    if depth:
        raise DiagramError("a subgraph without its end")
    return "\n".join([*dot, "}", ""])


def _line(x, y, to_x, to_y, more=""):
    return f'<path d="M{x:g} {y:g} L{to_x:g} {to_y:g}" stroke="currentColor" fill="none" {more}/>'


def _head(x, y, step):
    return f'<path d="M{x:g} {y:g} l{-8 * step} -4 v8 z" fill="currentColor"/>'


def _words(x, y, text, anchor="middle", more=""):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="12" {more}>{html.escape(text)}</text>'


def sequence_of(text):
    """Returns a sequence diagram as SVG. Raises DiagramError for a line that it does not know."""
    lines = [line.strip() for line in text.strip().splitlines()]
    if lines[0] != "sequenceDiagram":
        raise DiagramError(f"{lines[0]!r}: want sequenceDiagram")
    numbered, titles, messages = False, {}, []
    for line in filter(None, lines[1:]):
        if line == "autonumber":
            numbered = True
        elif found := _PARTICIPANT.fullmatch(line):
            titles[found[1]] = found[2]
        elif (found := _MESSAGE.fullmatch(line)) and found[1] in titles and found[3] in titles:
            messages.append(found.groups())
        else:
            raise DiagramError(f"{line!r}: want autonumber, a participant, or a message between two of them")
    at = {name: _COLUMN * (number + 0.5) for number, name in enumerate(titles)}
    height = _LINE * (len(messages) + 1.6)
    drawn = []
    for name, title in titles.items():
        drawn += [_line(at[name], 30, at[name], height, 'opacity="0.35"'),
                  f'<rect x="{at[name] - _COLUMN / 2 + 6:g}" y="1" width="{_COLUMN - 12}" height="29" rx="5" '
                  'fill="none" stroke="currentColor"/>', _words(at[name], 20, title)]
    for number, (source, stroke, target, what) in enumerate(messages, 1):
        y = 30 + _LINE * number
        words = f"{number}. {what}" if numbered else what
        begin, end = at[source], at[target]
        dashes = 'stroke-dasharray="5 4"' if stroke == "--" else ""
        if source == target:
            drawn += [f'<path d="M{begin:g} {y - 8} h22 v14 h-22" stroke="currentColor" fill="none" {dashes}/>',
                      _head(begin, y + 6, -1)]
        else:
            drawn += [_line(begin, y, end, y, dashes), _head(end, y, 1 if end > begin else -1)]
        half = len(words) * _LETTER / 2
        middle = min(max((begin + end) / 2, half), _COLUMN * len(titles) - half)
        drawn.append(_words(middle, y - (14 if source == target else 6), words))
    return (f'<svg viewBox="0 0 {_COLUMN * len(titles)} {height:g}" width="{_COLUMN * len(titles)}" '
            f'font-family="{_FONT}" fill="currentColor" {_SHOWN}>\n'
            + "\n".join(drawn) + "\n</svg>")


def _by_dot(dot):
    """Returns what dot draws, as SVG without identifiers, in the colour of the text around it."""
    program = shutil.which("dot")
    if program is None:
        raise DiagramError("no program dot draws it: deploy/install-dependencies docs installs Graphviz")
    done = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, text=True, timeout=60)
    if done.returncode != 0 or done.stderr.strip():
        raise DiagramError(f"dot: {done.stderr.strip()}")
    svg = done.stdout[done.stdout.index("<svg"):]
    svg = re.sub(r"<!--.*?-->\s*|<title>.*?</title>\s*", "", svg, flags=re.S)
    svg = re.sub(r' (?:id|class|xmlns|xmlns:xlink)="[^"]*"', "", svg)
    svg = re.sub(r'(fill|stroke)="black"', r'\1="currentColor"', svg)
    return re.sub(r'width="(\d+)pt" height="\d+pt"', rf'width="\1" fill="currentColor" {_SHOWN}', svg, count=1)


def svg_of(text):
    """Returns a Mermaid block as SVG. Raises DiagramError."""
    return sequence_of(text) if text.lstrip().startswith("sequenceDiagram") else _by_dot(dot_of(text))
