# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: the functions of Python modules that follow another library, with the arguments that they take.

    .. leat-functions:: leat/dali/fn/colors.py
       :prefix: fn

The modules are read, not imported. Functions with a decorator such as `operator` have the name that it gives.
"""

import ast
import pathlib

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "python_client" / "src"


def _signature(function):
    """Returns the arguments without their types."""
    arguments = function.args
    for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if each is not None:
            each.annotation = None
    return ast.unparse(arguments)


def _operator(function):
    """Returns the name that a decorator gives, as @operator("readers.file") does; None: there is no such decorator."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and decorator.args and isinstance(decorator.args[0], ast.Constant):
            return decorator.args[0].value
    return None


def functions(path, prefix):
    """Yields name, arguments and summary of each function of a module: of the decorated ones, if there are any."""
    tree = ast.parse((SOURCES / path).read_text(encoding="utf-8"))
    public = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    decorated = [node for node in public if _operator(node)]
    for node in decorated or public:
        about = (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
        name = _operator(node) or node.name
        if not about.startswith("Refused"):
            yield f"fn.{name}" if "." in name else f"{prefix}.{name}", _signature(node), about


class Functions(SphinxDirective):
    """The directive leat-functions."""

    required_arguments = 1
    option_spec = {"prefix": directives.unchanged, "only": directives.unchanged}

    def run(self):
        path = self.arguments[0]
        self.env.note_dependency(str(SOURCES / path))
        lines = []
        for name, arguments, about in functions(path, self.options["prefix"]):
            if self.options.get("only") not in (None, name.rpartition(".")[2]):
                continue
            lines += [f".. py:function:: {name}({arguments})", "   :no-index:", "   :no-contents-entry:", "",
                      f"   {about}", ""]
        container = nodes.Element()
        self.state.nested_parse(StringList(lines, path), self.content_offset, container)
        return container.children


def setup(app):
    app.add_directive("leat-functions", Functions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
