# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: reads the docstrings of the Python package without a compiled library, and checks that the
reference has every public name.

`leat.fn` is fn.pyi, since the operators come from the library otherwise; a test keeps the two equal. JAX and PyTorch
are replaced by Sphinx's mocks, and the library by the few functions that the imports call.
"""

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import pathlib
import re
import sys
import types

import operator_examples
import sphinx.util.logging
from sphinx.ext.autodoc.mock import mock

# Modules with pages; the names in their __all__ are public.
MODULES = ("leat", "leat.fn", "leat.jax", "leat.torch", "leat.orbax", "leat.ray", "leat.dask")
_MOCKED = ["jax", "torch", "ray", "distributed"]
# Programs with an example of each name, under comments such as "# [leat.Job.batches]".
EXAMPLES = ("api.py", "api_jax.py", "api_torch.py")
_SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:", "Yields:")

_log = sphinx.util.logging.getLogger(__name__)


def _stubs():
    """Loads fn.pyi as the module leat.fn."""
    path = pathlib.Path(importlib.util.find_spec("leat").origin).with_name("fn.pyi")
    loader = importlib.machinery.SourceFileLoader("leat.fn", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("leat.fn", loader))
    sys.modules["leat.fn"] = module
    source = path.read_text(encoding="utf-8")
    exec(compile(source, str(path), "exec"), module.__dict__)
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == "leat.fn":
            value.__doc__ = f"The {name}."  # a group of operators
    names = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == "leat.fn"]
    module.__all__ = [*names, "cutmix", "mixup"]
    module.__doc__ = None
    return module


def _load():
    """Imports all modules that have pages."""
    with mock(_MOCKED):
        # A mock does not work here: ctypes.cast would ask it for its _as_parameter_ forever.
        sys.modules["leat._library.native"] = native = types.ModuleType("leat._library.native")
        native.quick = types.SimpleNamespace(
            leat_version=lambda: b"", leat_dlpack_capsule_free=ctypes.CFUNCTYPE(None)(lambda: None))
        sys.modules["leat._arrays.jax_version"] = types.ModuleType("leat._arrays.jax_version")
        # A mock's decorator would replace the classes that it decorates.
        sys.modules["orbax"] = sys.modules["orbax.checkpoint"] = orbax = types.ModuleType("orbax.checkpoint")
        orbax.checkpoint, orbax.CheckpointHandler = orbax, type("CheckpointHandler", (), {})
        orbax.args = types.SimpleNamespace(
            CheckpointArgs=type("CheckpointArgs", (), {}), register_with_handler=lambda *_, **__: lambda kind: kind)
        stubs = _stubs()
        for name in MODULES:
            importlib.import_module(name)
        sys.modules["leat"].fn = stubs


@functools.lru_cache(maxsize=None)
def _examples():
    """Returns the lines of the programs by the names that they show."""
    found = {}
    for program in EXAMPLES:
        text = (pathlib.Path(__file__).parents[1] / "examples" / program).read_text(encoding="utf-8")
        for names, lines in re.findall(r"^# \[([\w. ]+)\]\n(.*?)(?=^# \[|\Z)", text, re.M | re.S):
            for name in names.split():
                found[name] = lines.strip("\n").split("\n")
    return found


def _has_code(text):
    """Returns whether a docstring has an example of its own."""
    about = re.split(rf"^(?:{'|'.join(_SECTIONS)})$", inspect.cleandoc(text or ""), maxsplit=1, flags=re.M)[0]
    return bool(re.search(r"\n\n    \S", about))


def examples(app, what, name, obj, options, lines):
    """Adds the example of a name after the first paragraph."""
    code = _examples().get(name)
    if code is None or _has_code("\n".join(lines)):
        return
    end = lines.index("") if "" in lines else len(lines)
    lines[end:end] = ["", *("    " + line for line in code), ""]


def _indent(line):
    return len(line) - len(line.lstrip())


def _markup(line, name):
    """Returns a line with what reStructuredText would misread escaped: `jax.Array`s, and * and _ of operators. The
    names of pages become links."""
    line = re.sub(r"`([^`]+)`(?=\w)", r"`\1`\\ ", line)
    line = re.sub(r"\bdocs/([\w/-]+)\.md", r":doc:`/\1`", line)
    if name.startswith("leat.fn."):
        line = re.sub(r"(?<!^)\*|_(?=\W|$)", r"\\\g<0>", line)
    return line


def code_blocks(app, what, name, obj, options, lines):
    """Turns the indented examples of a docstring, which are no sections of napoleon's, into blocks of code."""
    lines[:] = [_markup(line, name) for line in lines]
    result, at = [], 0
    section = ""
    while at < len(lines):
        line = lines[at]
        if line and not line[0].isspace():
            section = line.strip()
        opens = _indent(line) >= 4 and line.strip() and at > 0 and not lines[at - 1].strip()
        if not opens or section in _SECTIONS:
            result.append(line)
            at += 1
            continue
        result += [".. code-block:: python", ""]
        while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) >= 4):
            result.append(lines[at])
            at += 1
        if result[-1].strip():
            result.append("")
    lines[:] = result


def operators(app, what, name, obj, options, lines):
    """Adds the example and the picture of an operator, and leaves out what is the same for all operators."""
    operator = name.removeprefix("leat.fn.")
    code = operator_examples.ALL.get(operator)
    if operator == name or code is None:
        return
    text = "\n".join(lines)
    text = re.sub(r"\nRaises:\n    leat.InvalidArgument: an unknown argument, .*\n", "\n", text)
    text = re.sub(r"\nReturns:\n    A node\.\n", "\n", text)
    text = re.sub(r"    input\d?: a node[^(]* \(positional\)\n", "", text)
    text = re.sub(r"\nArgs:\n(?=\n|$)", "\n", text)
    about, _, rest = text.partition("\n\n")
    about = about[0].upper() + about[1:] if re.match(r"[a-z]{2,} [a-z,]", about) else about
    shown = about.split("\n") + ["", *("    " + line for line in code.split("\n")), ""]
    if operator not in operator_examples.PLAIN:
        what = "three draws" if operator in operator_examples.RANDOM else "the result"
        shown += [f".. image:: /images/operators/{operator}.webp", f"   :alt: a photo, and {what} of {operator}", ""]
    lines[:] = shown + rest.split("\n")


def check_names(app, env):
    """Warns about public names that no page of the reference has, and about names without a docstring."""
    documented = set(env.domains["py"].objects)
    for operator in operator_examples.ALL:
        if f"leat.fn.{operator}" not in documented:
            _log.warning("leat.fn.%s is public, and no page of docs/reference/operators has it", operator)
    for module_name in MODULES:
        module = sys.modules[module_name]
        for name in module.__all__:
            full, value = f"{module_name}.{name}", getattr(module, name)
            if isinstance(value, types.ModuleType) or full == "leat.fn.readers":
                continue
            if full not in documented:
                _log.warning("%s is public, and no page of docs/reference has it", full)
            if not getattr(value, "__doc__", None):
                _log.warning("%s is public, and has no docstring", full)
            _check_examples(full, value, module, documented)


def _check_examples(full, value, module, documented):
    """Warns about functions, classes and methods that a page has without an example."""
    if full.startswith("leat.fn.") or isinstance(value, type) and issubclass(value, BaseException):
        return
    names = {full: value}
    if isinstance(value, type):
        members = inspect.getmembers(value, lambda member: inspect.isfunction(member) or inspect.ismethod(member))
        names |= {f"{full}.{name}": member for name, member in members
                  if f"{full}.{name}" in documented and name not in ("__init__", "__new__")}
    for name, each in names.items():
        shown = re.search(rf"\b{name.rpartition('.')[2]}\(", module.__doc__ or "")  # in the module's own example
        if name not in _examples() and not _has_code(each.__doc__) and not shown:
            _log.warning("%s is public, and has no example: add one to docs/examples/api*.py", name)


def setup(app):
    _load()
    app.connect("autodoc-process-docstring", examples, priority=80)
    app.connect("autodoc-process-docstring", operators, priority=90)
    # Runs before napoleon's, which would parse the examples.
    app.connect("autodoc-process-docstring", code_blocks, priority=100)
    app.connect("env-check-consistency", check_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
