# SPDX-License-Identifier: Apache-2.0
"""Writes the page of all operators from the library's table: `python -m leat._graphs.reference > docs/OPERATORS.md`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from leat._graphs import compositions, operators

_HEAD = """\
# Operators

Written by `python -m leat._graphs.reference` from the library's table; a test compares the two.
`fn.NAME(inputs, arguments)` builds a node of a pipeline; arguments marked *per sample* also take a node that gives a
value for each sample. Types and shapes are checked when a job is created; where only the stored data knows them, when
it has been indexed.

A value whose size differs from sample to sample (a `?` in messages: boxes of `readers.coco`, `int64[?]` of records) is
an output when `pad` has given it one size; `length` says how much of it is the sample's own:

```python
encoded, boxes, labels = fn.readers.coco("instances_train2017.json", "train2017")
image = fn.resize(fn.decode(encoded, orient=False), size=640)
return {"image": image, "count": fn.length(boxes), "boxes": fn.pad(boxes, axes=0, shape=100),
        "labels": fn.pad(labels, shape=100, fill_value=-1)}
```

A sample of more than 100 is a bad one, whose error says so. To have the first 100 instead, pad by
`fn.slice(boxes, axes=0, shape=100, out_of_bounds_policy="pad")` and count by `fn.min(fn.length(boxes), 100)`.
"""


# Operators that have another name here, or that combine several of ours, which a worker computes in one pass.
_COMPOSED = """\
## Operators of DALI's that are several of these

A worker computes a chain of a decode, `random_crop`, `window`, `crop`, `resize` or `random_resized_crop`, and `flip` in
one pass: of a JPEG it decodes no more than the chain looks at, and the bytes are those of one operator after the other.
Of a damaged JPEG, a sample is bad if something that is used of it is made of lost rows; what is lost below all crops
costs nothing. That is the same whatever a worker computes in one pass
([decision 25](decisions/0025-one-meaning-of-damage.md)).

| DALI | here |
|---|---|
| `decoders.image_crop` | `crop(decode(x), size=…, pos_y=…, pos_x=…)` |
| `decoders.image_random_crop` | `random_crop(decode(x), area=…, aspect=…, attempts=…)` |
| `decoders.image_slice` | `window(decode(x), y=…, x=…, height=…, width=…, normalized_anchor=…, normalized_shape=…)` |
| `peek_image_shape` | `peek_shape(x)` |
| `resize(resize_x=…)` | `resize(x, size=(0, …), mode="default")` |
| `resize(resize_shorter=…)`, `resize(resize_longer=…)` | `resize(x, shorter=…)`, `resize(x, longer=…)` |
| `resize_crop_mirror` | `flip(crop(resize(x, …), size=…, pos_y=…, pos_x=…), horizontal=…)` |

DALI's `subpixel_scale` is on by default, ours off. A negative size, and a region whose end is before its start, mirror
in DALI: here `flip` does.
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _default(arg: operators.Arg) -> str:
    return "required" if arg.default is inspect.Parameter.empty else f"`{arg.default!r}`"


def _range(arg: operators.Arg) -> str:
    if arg.choices:
        return ", ".join(f"`{choice}`" for choice in arg.choices)
    return f"{arg.range[0]:g} … {arg.range[1]:g}" if arg.range else ""


def _entry(info: operators.OperatorInfo) -> str:
    inputs = ", ".join(info.input_names)
    lines = [f"### fn.{info.name}({inputs})", "", _cell(info.doc) + "."]
    if info.random:
        lines[-1] += " Draws anew for each sample and epoch."
    if info.outputs_of:
        one = f"(x,) = fn.{info.name}(…)"
        lines[-1] += f" Returns a tuple, one node for each of `{info.outputs_of}`; of one, too: `{one}`."
    if info.args:
        lines += ["", "| argument | type | default | range | meaning |", "|---|---|---|---|---|"]
    for arg in info.args:
        kind = arg.type + (", per sample" if arg.per_sample else "")
        lines.append(f"| `{arg.name}` | {kind} | {_cell(_default(arg))} | {_cell(_range(arg))} | {_cell(arg.doc)} |")
    return "\n".join(lines) + "\n"


def _composition(function: Callable[..., Any]) -> str:
    about, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\nArgs:\n")
    arguments, _, returns = rest.partition("\n\nReturns:\n")
    bullets = [f"- {line.strip()}" for line in arguments.splitlines()]
    signature = re.sub(r": '([^']*)'", r": \1", str(inspect.signature(function)).rpartition(" -> ")[0])
    return "\n".join([f"### fn.{function.__name__}{signature}", "", about, "", *bullets, "", returns.strip()]) + "\n"


def text() -> str:
    """Returns the whole page."""
    readers = [info for info in operators.table() if info.name.startswith("readers.")]
    others = [info for info in operators.table() if not info.name.startswith("readers.")]
    parts = [_HEAD, "## Readers\n", *map(_entry, readers), "## Operators on samples\n", *map(_entry, others)]
    parts += ["## Made of several operators\n", *map(_composition, compositions.ALL)]
    parts += [_COMPOSED]
    return "\n".join(parts)


if __name__ == "__main__":
    print(text(), end="")
