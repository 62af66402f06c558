# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: links of pages to folders and to Markdown outside docs/, and a check that the site loads nothing
from other hosts.

The pages are also read in the repository, where such links work. The site has the text without the link. A link to
another file, such as a header, becomes a download of that file; a link to a folder of pages leads to its index.
"""

import pathlib
import re

import sphinx.util.logging
from sphinx import addnodes

_INDEXES = ("index", "README")
_LOADS = (
    re.compile(r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^\"'>\s]+", re.I),
    re.compile(r"<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preload|icon|preconnect))"
               r"[^>]*\bhref=[\"']?(?:https?:)?//[^>]+", re.I),
    re.compile(r"(?:url\(|@import\s+)[\"']?(?:https?:)?//[^\"')\s]+", re.I),
)

_log = sphinx.util.logging.getLogger(__name__)


def _index_of(env, folder):
    """Returns the page that a link to a folder leads to; None: the folder has none."""
    for name in _INDEXES:
        docname = env.path2doc(str(folder / f"{name}.md"))
        if docname in env.found_docs:
            return docname
    return None


def resolve(app, doctree):
    """Replaces the links of a page that the site cannot follow."""
    env = app.env
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("reftype") != "myst":
            continue
        target = node["reftarget"]
        if node.get("refdomain") == "doc":
            if target not in env.found_docs:  # it exists, outside docs/
                node.replace_self(node.children)
            continue
        path = target.partition("#")[0]
        folder = pathlib.Path(env.relfn2path(path, env.docname)[1]) if path else None
        if folder is None or not folder.is_dir():
            continue
        docname = _index_of(env, folder)
        if docname is None:
            node.replace_self(node.children)
        else:
            node["refdomain"], node["reftarget"], node["reftargetid"] = "doc", docname, None


def check_hosts(app, error):
    """Warns about each reference of the built pages and styles that a browser would load from another host."""
    if error is not None or app.builder.name != "html":
        return
    out = pathlib.Path(app.outdir)
    for path in [*out.rglob("*.html"), *out.rglob("*.css")]:
        text = path.read_text(encoding="utf-8", errors="replace")
        for pattern in _LOADS:
            for found in pattern.findall(text):
                _log.warning("%s loads from another host: %s", path.relative_to(out), found[:160])


def setup(app):
    app.connect("doctree-read", resolve)
    app.connect("build-finished", check_hosts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
