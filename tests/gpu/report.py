# SPDX-License-Identifier: Apache-2.0
"""report.py [FILE…]: the tables of docs/measurements/gpu.md, in Markdown, from JSON files that tests/gpu/run has
written on one machine.

Without FILE: the same with "not measured" everywhere.
"""

import json
import sys
import textwrap

from findings import SKIPPED

NOTHING = "not measured"
# Figures that get a table of their own: name -> the step that measures it.
DETAILS = {"kernel": "handles", "engines": "handles", "device": "handles", "largest difference": "whole",
           "mean difference": "whole", "engines take it": "shapes", "mean difference to libjpeg-turbo": "shapes",
           "pixels that differ from the whole image's": "shapes",
           "nvJPEG's answer": "damage", "a batch": "damage", "nvJPEG alone, photos": "nvjpeg",
           "nvJPEG alone, whole photos": "nvjpeg", "nvJPEG's call, an image": "nvjpeg",
           "questions about an image": "nvjpeg",
           "nvJPEG alone, squares": "squares", "memory that nvJPEG asks for": "squares", "copy": "copies",
           "page-locking": "copies", "files to rows": "slots", "rows by decoder": "slots",
           "time with a group on the GPU": "slots", "groups on the GPU at once, while there are any": "slots",
           "a group, from its begin to its answer": "slots", "seconds to the first group": "slots",
           "files to rows, one handle of nvJPEG": "slots", "putting a group on its queue": "slots",
           "a slot's time": "slots", "copies of pageable memory": "slots",
           "cores used": "slots", "cores of a thread": "slots", "device memory": "slots",
           "device memory over time": "memory", "rows beside a trainer": "trainer", "rows to the trainer": "transports",
           "bytes to the trainer": "transports", "rows of a worker": "transports",
           "threads' time, a row of a worker": "transports"}


class Found:
    """The contents of a run's JSON."""

    def __init__(self, run):
        self.run = run
        self.steps = {step["step"]: step for step in run["steps"]}
        self.lines = [line for step in run["steps"] for line in step["lines"]]

    def figures(self, name, **of):
        return [line for line in self.lines if line.get("figure") == name and
                all(line.get("of", {}).get(key) == str(value) for key, value in of.items())]

    def value(self, name, **of):
        """Returns a figure; None: not measured."""
        found = self.figures(name, **of)
        return found[0]["value"] if found else None

    def checks(self, part):
        return [line for line in self.lines if part in line.get("check", "")]

    def verdict(self, part):
        """Returns "passed" if all checks with `part` in their name passed, or the notes of the others."""
        found = self.checks(part)
        bad = [f"{line['check']}: {line['note']}" for line in found if not line["ok"]]
        return "; ".join(bad) if bad else f"passed ({len(found)})" if found else None

    def step(self, *names):
        """Returns how whole steps ended."""
        said = [f"{name} {self.steps[name]['outcome']}" for name in names if name in self.steps]
        return ", ".join(said) or None


def number(value):
    if not isinstance(value, float):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def ratio(above, below, unit="times"):
    return None if above is None or not below else f"{above / below:.2f} {unit}"


def by(found, name, key, unit="", **of):
    """Returns "4:2:0 1.2, 4:4:4 0.8": a figure by one of its labels."""
    parts = [f"{line['of'][key]} {number(line['value'])}" for line in found.figures(name, **of) if key in line["of"]]
    return f"{', '.join(parts)} {unit}".strip() if parts else None


def _nvjpeg_rate(found):
    rate = found.value("files to rows", **{"class": "nvjpeg", "slots": 4})
    if rate is None:
        return None
    said = [f"{number(rate)} img/s", ratio(rate, found.value("nvJPEG alone, photos", part="as rows ask"))]
    return ", ".join(text for text in said if text)


def _utilisation(found):
    return by(found, "utilisation of the JPEG engines", "step", "%", which="95th percentile")


def _ways(found):
    """Returns nvJPEG's rates, each with its difference from the first way."""
    lines = found.figures("nvJPEG alone, whole photos")
    parts = []
    for line in lines:
        odd = [f"{key} {text}" for key, text in line["of"].items() if text != lines[0]["of"][key]]
        parts.append(f"{', '.join(odd) or 'mixed photos, 4 states on one handle'} {number(line['value'])}")
    return f"{'; '.join(parts)} img/s" if parts else None


def _losses(found):
    parts = []
    for what in ("what a trainer loses by rows", "what rows lose by a trainer"):
        for line in found.figures(what):
            of = line["of"]
            parts.append(f"{what}, class {of['class']}, {of['consumer']}, MPS {of['MPS']}: {number(line['value'])} %")
    return "; ".join(parts) or None


def _first_use(found):
    ready = found.value("seconds from start to gpu.ready")
    first = by(found, "seconds to the first group", "class", "s", slots=4)
    parts = [] if ready is None else [f"gpu.ready after {number(ready)} s"]
    return ", ".join([*parts, *([f"the first group after {first}"] if first else [])]) or None


def _backends(found):
    """Returns which of the backends without engines is faster one by one, by size."""
    best = []
    for line in found.figures("nvJPEG alone, squares", backend="HYBRID", way="one by one, 4 threads"):
        other = found.value("nvJPEG alone, squares", **{**line["of"], "backend": "GPU_HYBRID"})
        if other:
            best.append(f"{line['of']['side']}: {'HYBRID' if line['value'] > other else 'GPU_HYBRID'}")
    return ", ".join(best) or None


def _parts(found):
    whole = found.value("nvJPEG alone, photos", part="whole")
    parts = [(name, ratio(found.value("nvJPEG alone, photos", part=name), whole))
             for name in ("a quarter of each", "at 1/2")]
    return ", ".join(f"{name} {text}" for name, text in parts if text) or None


def _kernel(found):
    values = {name: found.value("kernel", kernel="leat_fused_3", attribute=name)
              for name in ("registers", "local bytes", "threads a multiprocessor")}
    if None in values.values():
        return None
    rate = found.value("fused kernel, bytes read and written")
    copied = found.value("copy", way="within the device", KiB=64 << 10)
    text = ", ".join(f"{number(value)} {name}" for name, value in values.items())
    return text if rate is None else f"{text}, {number(rate)} GB/s; a copy reads and writes {number(2 * (copied or 0))}"


def _damage(found):
    sound = found.value("a batch", damage="none")
    worst = max((line["value"] for line in found.figures("a batch")), default=None)
    cut = [line for line in found.figures("a batch") if line["of"]["damage"].startswith(("cut ", "an end marker"))]
    unseen = sum("decoded" in line.get("note", "") for line in cut)
    return None if sound is None else f"{ratio(worst, sound)}; {unseen} of {len(cut)}"


def _held(found):
    said, taken = (found.value("device memory", slots=4, what=what)
                   for what in ("said to be held", "taken after the measurement"))
    return None if said is None or taken is None else f"{number(said)} MiB said, {number(taken)} MiB taken"


def _spinning(found):
    lines = [line["value"] for line in found.figures("cores of a thread", **{"class": "nvjpeg", "slots": 4})]
    return f"{number(sum(lines))} cores" if lines else None


GOALS = [  # (what, goal, text of what was found, or None)
    ("class `exact` on the GPU: rows that differ from the CPU's", "0", lambda f: f.verdict("have the CPU's bytes")),
    ("class `nvjpeg` against libjpeg-turbo: mean difference of the photos, by chroma sampling", "≤ 2 of 255",
     lambda f: by(f, "mean difference", "sampling", between="class nvjpeg and libjpeg-turbo, photos")),
    ("engines against nvJPEG's CUDA backend: mean difference, by chroma sampling", "≤ 2 of 255",
     lambda f: by(f, "mean difference", "sampling", between="engines and CUDA backend")),
    ("class `nvjpeg`, 4 slots, ratio to nvJPEG alone over the same files in the same shapes", "≥ 0.9", _nvjpeg_rate),
    ("utilisation of the JPEG engines, 95th percentile, by step", "says whether they are the limit", _utilisation),
    ("files to rows of 224 pixels, 4 slots, by class", "≥ 19,000 img/s of such photos, or what limits it",
     lambda f: by(f, "files to rows", "class", "img/s", slots=4)),
    ("nvJPEG alone over whole photos: what one handle, one state, one sampling, one size, no interpolation and "
     "page-locked files change", "says how to call it", _ways),
    ("class `nvjpeg` on transport `cuda`, ratio to torchvision's CUDA `decode_jpeg`", "none: both use the same engines",
     lambda f: ratio(f.value("rows to the trainer", **{"class": "nvjpeg", "transport": "cuda", "consumer": "C++"}),
                     f.value("torchvision decode_jpeg on the GPU"))),
    ("nvJPEG's engines: photos whose region differs from the whole image, where it is read", "0",
     lambda f: f.verdict("regions have the whole image's bytes")),
    ("the same at ½, ¼, ⅛: near the mean of the pixels", "≤ 3 of 255", lambda f: f.verdict("is near the mean of")),
    ("gray, odd sides, the right and bottom edge: what the engines take is near libjpeg-turbo", "all",
     lambda f: f.verdict(": near libjpeg-turbo")),
    ("nvJPEG alone, a quarter of each image and all at ½, ratio to full images",
     "above 1, or regions and scales save memory only", _parts),
    ("the faster backend without engines, by side in pixels", "decides the backend by size", _backends),
    ("a kernel directly behind a batch sees all pixels", "10,000 batches", lambda f: f.verdict("directly behind")),
    ("batches that did not wait for earlier work on their stream", "any: Leat does not rely on it",
     lambda f: (lambda x: None if x is None else number(x))(
         f.value("batches that did not wait for earlier work on their stream"))),
    ("a batch with a damaged file, ratio to a sound one, at most; cut files that go unseen", "≤ 2; 0", _damage),
    ("fused kernel: registers, spills, occupancy, bytes a second", "no local bytes; its instructions limit it",
     _kernel),
    ("device memory over 10,000 groups", "flat", lambda f: f.verdict("device memory is flat")),
    ("device memory said to be held and taken, 4 slots", "equal", _held),
    ("cores that the GPU's threads use, class `nvjpeg`, 4 slots", "≤ 1: they sleep", _spinning),
    ("rows to the trainer by transport, class `exact`, GB/s", "`shm` ≥ 2 × `grpc`",
     lambda f: by(f, "bytes to the trainer", "transport", "GB/s", **{"class": "exact", "consumer": "C++"})),
    ("memory shared by processes, either of which is killed", "every check", lambda f: f.step("sharing")),
    ("what rows and a trainer on the same GPU cost each other", "≤ 10 % of the trainer's time", _losses),
    ("a torch trainer's CUDA graphs and second stream", "every check",
     lambda f: f.step("torch_graph", "torch_streams")),
    ("first use: a worker's GPU, and the first group by class", "seconds", _first_use),
    ("compute-sanitizer: bad accesses, leaks, reads of what nobody wrote", "none",
     lambda f: f.step("memcheck", "initcheck")),
    ("worker and consumer under MPS", "the oracle's hashes", lambda f: f.step("mps")),
]


def detail(name, lines):
    """Returns rows by all labels except the last, columns by the last one."""
    keys = list(lines[0]["of"])
    *row_keys, column_key = keys or ["value"]
    columns = list(dict.fromkeys(line["of"].get(column_key, "") for line in lines))
    rows = {}
    for line in lines:
        row = tuple(line["of"].get(key, "") for key in row_keys)
        cell = line["note"] if line["unit"] == "code" else number(line["value"])
        rows.setdefault(row, {})[line["of"].get(column_key, "")] = cell
    unit = f", {lines[0]['unit']}" if lines[0]["unit"] else ""
    text = [f"**{name}**{unit}, by {column_key}", "", f"| {' | '.join([*row_keys, *columns])} |",
            "|" + "---|" * (len(row_keys) + len(columns))]
    text += [f"| {' | '.join([*row, *(values.get(column, '') for column in columns)])} |"
             for row, values in rows.items()]
    return text


def tables(run):
    """`run`: the contents of the JSON, or None."""
    found = Found(run or {"machine": {}, "steps": []})
    gpus = ", ".join(gpu["name"] for gpu in found.run["machine"].get("gpus", [])) or "GPU"
    text = [f"| what | goal | {gpus} |", "|---|---|---|"]
    text += [f"| {what} | {goal} | {answer(found) or NOTHING} |" for what, goal, answer in GOALS]
    left = []
    for name, step in DETAILS.items():
        lines = found.figures(name)
        if lines:
            text += ["", *detail(name, lines)]
        else:
            left.append(f"{name} (`{step}`)")
    if left:
        prose = f"Tables that are {NOTHING}, each with its step of `tests/gpu/run`: {', '.join(left)}."
        text += ["", *textwrap.wrap(prose, 100, break_long_words=False, break_on_hyphens=False)]
    return "\n".join(text) + "\n"


def together(runs):
    """Combines several runs, or returns None for none: each fills in what another left out."""
    if not runs:
        return None
    return {**runs[0], "steps": [step for run in runs for step in run["steps"] if step["outcome"] != SKIPPED]}


def main():
    runs = []
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8") as file:
                runs.append(json.load(file))
        except (OSError, ValueError) as error:
            sys.exit(f"report.py: {path}: {error}")
    print(tables(together(runs)), end="")


if __name__ == "__main__":
    main()
