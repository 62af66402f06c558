# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: the directive `leat-peers`, which writes a list of the code into a page.

    ```{leat-peers} dali-refused
    ```

`dali-operators` lists the functions of leat.dali.fn, `dali-hints` and `rocal-hints` the arguments that are accepted
without effect, and `dali-refused` and `rocal-refused` the names that raise an error.
"""

from sphinx.util.docutils import SphinxDirective


def _dali_operators():
    from leat.dali import fn

    for prefix, module in (("fn", fn), *((f"fn.{name}", getattr(fn, name))
                                         for name in ("readers", "decoders", "random", "noise"))):
        names = [name for name, value in sorted(vars(module).items())
                 if not name.startswith("_") and callable(value) and f"{prefix}.{name}" not in _dali_refusals()
                 and value.__module__ in ("leat.dali.fn", "leat.dali._sources")]
        yield f"* `{prefix}`: " + ", ".join(names)


def _dali_refusals():
    from leat.dali import _refused

    return _refused.NAMES


def _dali_hints():
    from leat.dali._operator import HINTS

    reasons = {}
    for name, hint in sorted(HINTS.items()):
        reasons.setdefault(hint.why, []).append(f"`{name}`")
    yield from ("| arguments | reason |", "|---|---|")
    yield from (f"| {', '.join(names)} | {why} |" for why, names in reasons.items())


def _dali_refused():
    from leat.dali import _refused

    yield from _refused.table().splitlines()


def _rocal():
    import leat.rocal.fn
    import leat.rocal.pipeline
    import leat.rocal.plugin.generic
    from leat.rocal import _checked

    return _checked


def _rocal_hints():
    yield from ("| function | arguments |", "|---|---|")
    for function, names in sorted(_rocal().HINTS.items()):
        if names:
            yield f"| `{function}` | {', '.join(f'`{name}`' for name in names)} |"


def _rocal_refused():
    yield ", ".join(f"`{name}`" for name in sorted(_rocal().REFUSED)) + "."


_LISTS = {
    "dali-hints": _dali_hints,
    "dali-operators": _dali_operators,
    "dali-refused": _dali_refused,
    "rocal-hints": _rocal_hints,
    "rocal-refused": _rocal_refused,
}


class LeatPeers(SphinxDirective):
    """Parses one of the lists above as Markdown of the page."""

    required_arguments = 1

    def run(self):
        made = _LISTS.get(self.arguments[0])
        if made is None:
            raise self.error(f"there is no list {self.arguments[0]!r}; expected one of {', '.join(_LISTS)}")
        lines = list(made())
        if len(lines) < 1 + 2 * lines[0].startswith("|"):
            raise self.error(f"the list {self.arguments[0]} is empty")
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app):
    app.setup_extension("leat_api")  # makes leat importable
    app.add_directive("leat-peers", LeatPeers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
