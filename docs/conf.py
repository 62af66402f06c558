# SPDX-License-Identifier: Apache-2.0
"""Configures Sphinx for the site, which deploy/docs builds from the pages of this folder."""

import pathlib
import re
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE / "site"), str(_HERE.parent / "python_client" / "src")]

project = "Leat"
author = "The Leat authors"
release = version = re.search(r"project\(leat VERSION ([\d.]+)", (_HERE.parent / "CMakeLists.txt").read_text())[1]
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "leat_api",
    "leat_diagrams",
    "leat_findings",
    "leat_constants",
    "leat_functions",
    "leat_headers",
    "leat_links",
    "leat_peers",
    "leat_observed",
]
exclude_patterns = ["examples", "site"]

myst_enable_extensions = ["colon_fence"]
myst_fence_as_directive = ["mermaid"]  # GitHub draws these blocks, too
myst_heading_anchors = 5
myst_links_external_new_tab = False

default_role = "py:obj"  # `Service.job` in a docstring is a link where such an object is documented
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "separated"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
add_module_names = False

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = False

html_theme = "pydata_sphinx_theme"
html_title = f"Leat {release}"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = "The Leat authors. Apache License 2.0"  # noqa: A001 (Sphinx's name)
