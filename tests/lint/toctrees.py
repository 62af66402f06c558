# SPDX-License-Identifier: Apache-2.0
"""Every page of docs/ is in a table of contents of the site, and relative links of Markdown lead to files that exist.

deploy/docs builds the site and checks more, such as the headings that links name. This lint needs no Sphinx.
"""

import os
import pathlib
import re

import common

DOCS = pathlib.Path("docs")
_FENCED = re.compile(r"^(`{3,}|~{3,}|:{3,})(.*?)\n(.*?)^\1[ \t]*$", re.M | re.S)
_INLINE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")
_TITLED = re.compile(r".*<([^>]+)>")


def toctrees(text):
    """Yields (whether it has patterns, entries) of each table of contents of a page."""
    for _, info, body in _FENCED.findall(text):
        if info.strip() == "{toctree}":
            lines = [line.strip() for line in body.splitlines() if line.strip()]
            entries = [line for line in lines if not line.startswith(":")]
            yield ":glob:" in lines, [titled[1] if (titled := _TITLED.match(line)) else line for line in entries]


def included(text):
    """Returns the files whose text a page includes as blocks of code."""
    return re.findall(r"^[`~:]{3,}\{literalinclude\} +(\S+)", text, re.M)


def linked(text):
    """Returns the targets of the relative links of a page, without those in blocks and spans of code."""
    text = _INLINE.sub("", re.sub(r"^(`{3,}|~{3,}).*?^\1[ \t]*$", "", text, flags=re.M | re.S))
    return [target for target in _LINK.findall(text) if not re.match(r"[a-z][a-z0-9+.-]*:|#|//", target)]


def _path(page, target):
    """Returns the path, from the root of the tree, that a page names."""
    target = target.partition("#")[0]
    base = DOCS / target.lstrip("/") if target.startswith("/") else page.parent / target
    return pathlib.Path(os.path.normpath(base))


def _matching(pattern, pages):
    """Returns the pages that match a pattern of Sphinx's: * matches a name, and ** also matches folders."""
    expression = re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    return {page for page in pages if re.fullmatch(expression, str(page))}


def check(root):
    paths = common.files(root, ".md")
    texts = {path: common.text(root, path) for path in paths}
    pages = {path for path in paths if path.parts[0] == "docs"}
    findings, entered = [], {DOCS / "index.md"}
    for path in paths:
        for target in [*linked(texts[path]), *included(texts[path])]:
            if not (root / _path(path, target)).exists():
                findings.append(f"{path}: {target}: no such file")
        for has_patterns, entries in toctrees(texts[path]) if path in pages else ():
            for entry in entries:
                wanted = f"{_path(path, entry)}.md"
                found = _matching(wanted, pages) if has_patterns else {pathlib.Path(wanted)} & pages
                if not found:
                    findings.append(f"{path}: the toctree names {entry}, and there is no page {wanted}")
                entered |= found - {path}
    return findings + [f"{page} is in no toctree of the site (docs/howto/page.md)" for page in sorted(pages - entered)]


if __name__ == "__main__":
    common.main(check, __doc__)
