# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: the Mermaid blocks of the pages are pictures, in the colours of the text around them. What cannot
be drawn is a warning.
"""

import mermaid
import sphinx.util.logging
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

_log = sphinx.util.logging.getLogger(__name__)


class Mermaid(SphinxDirective):
    """A picture, as a part of the page itself."""

    has_content = True

    def run(self):
        text = "\n".join(self.content)
        try:
            svg = mermaid.svg_of(text)
        except mermaid.DiagramError as error:
            _log.warning("mermaid: %s", error, location=self.get_location())
            return [nodes.literal_block(text, text)]
        return [nodes.raw("", f'<div style="margin:1.5em 0;text-align:center">{svg}</div>', format="html")]


def setup(app):
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
