# SPDX-License-Identifier: Apache-2.0
"""Operators on position and shape, and resampling, beside DALI's on the CPU: the same parameters, the same photos.

    LEAT_NATIVE_DIR=build/dev/native PYTHONPATH=python_client/src build/peers-venv/bin/python \
        tests/parity/operators_geometry.py --data PHOTOS [--only rotate]

Prints a table: for each case the worst difference, and the share of the elements that differ (integers at all, floats
by more than 1e-5 of the greatest magnitude). Operators with two rules are compared by both: "dali" within 1 for
integers and 1e-5 for floats everywhere, the default within the difference of its own arithmetic. Exit status 1: a case
exceeds its tolerance. Decoding is compared on the files themselves, everything else on their decoded middles, so that
no case inherits another's difference.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import leat
import numpy as np
from geometry_cases import HEIGHT, WIDTH, Case, by_dali, crops, decoding, places, resampling, resize_crop_mirror, warps
from leat import fn as ours
from nvidia.dali import fn as dali
from nvidia.dali import pipeline_def
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import test_data  # noqa: E402


def run_ours(service: leat.Service, name: str, folder: pathlib.Path, count: int, make: Callable[[Any], Any]) -> Any:
    @leat.pipeline
    def pipe() -> dict[str, Any]:
        encoded, _ = ours.readers.image_folder(str(folder))
        return {"x": make(encoded)}

    job = service.job(name, pipe, batch=count, shuffle=False)
    with job.batches(epochs=1) as batches:
        return np.array(next(iter(batches))["x"])


def run_dali(arrays: list[np.ndarray], layout: str, make: Callable[[Any], Any]) -> list[np.ndarray]:
    class Samples:
        def __call__(self) -> list[np.ndarray]:
            return arrays

    @pipeline_def(batch_size=len(arrays), num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe() -> Any:
        return make(dali.external_source(source=Samples(), layout=layout or None))

    made = pipe()
    made.build()
    (result,) = made.run()
    return [np.array(result.at(i)) for i in range(len(arrays))]


def compare(case: Case, mine: list[np.ndarray], theirs: list[np.ndarray]) -> tuple[str, bool]:
    """Returns a line of the table, and True if it is within its tolerance."""
    for a, b in zip(mine, theirs, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            shapes = f"{a.dtype} {a.shape}, DALI {b.dtype} {b.shape}"
            return f"| {case.operator} | {case.what} | {case.rule} | {shapes} | | no |", False
    a, b = (np.concatenate([x.ravel() for x in side]).astype(np.float64) for side in (mine, theirs))
    difference = np.abs(a - b)
    integers = mine[0].dtype.kind in "iu"
    if not integers:
        difference /= np.abs(b).max()
    worst = difference.max()
    differing = (difference > (0 if integers else 1e-5)).mean()
    beyond = (difference > case.worst).mean()
    good = bool(beyond <= case.share)
    shown = f"{worst:.0f}" if integers else f"{worst:.1e}"
    tail = "yes" if good and beyond == 0 else f"{beyond:.4%} beyond {case.worst:g}" + ("" if good else ": NO")
    return f"| {case.operator} | {case.what} | {case.rule} | {shown} | {differing:.4%} | {tail} |", good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of photos")
    parser.add_argument("--photos", type=int, default=8)
    parser.add_argument("--only", default="", help="cases whose operator contains this")
    options = parser.parse_args()
    files = test_data.images(options.data)
    files = [f for f in files if Image.open(f).mode == "RGB" and min(Image.open(f).size) >= 270]
    files = files[:: max(1, len(files) // options.photos)][: options.photos]
    count = len(files)
    print(f"{count} photos of {options.data}\n")
    print("| operator | case | rule | worst difference | differing | within tolerance |\n|---|---|---|--:|--:|---|")
    good = True
    with tempfile.TemporaryDirectory() as temp, leat.connect() as service:
        photos, middles = pathlib.Path(temp, "photos"), pathlib.Path(temp, "middles")
        photos.mkdir()
        middles.mkdir()
        pixels = []
        for i, file in enumerate(files):
            (photos / f"{i}.jpg").write_bytes(file.read_bytes())
            image = Image.open(file)
            left, top = (image.width - WIDTH) // 2, (image.height - HEIGHT) // 2
            middle = image.crop((left, top, left + WIDTH, top + HEIGHT))
            with open(middles / f"{i}.jpg", "wb") as out:
                middle.save(out, "PNG")
            pixels.append(np.asarray(middle))
        sides = [Image.open(f).size for f in files]
        canvas = (max(h for _, h in sides), max(w for w, _ in sides))
        for number, each in enumerate(c for c in decoding() if options.only in c.operator):

            def padded(encoded: Any, each: Case = each) -> Any:
                value = each.ours(encoded)
                return value if each.operator == "peek_shape" else ours.pad(value, axes=(0, 1), shape=canvas)

            mine = list(run_ours(service, f"file-{number}", photos, count, padded))
            theirs = run_dali([np.frombuffer(f.read_bytes(), np.uint8) for f in files], "", each.dali)
            if each.operator != "peek_shape":
                theirs = [np.pad(t, [(0, c - n) for c, n in zip((*canvas, 3), t.shape)]) for t in theirs]
            line, within = compare(each, mine, theirs)
            print(line, flush=True)
            good &= within
        cases = places() + crops()
        for make, default in ((warps, "fixed"), (resampling, "pillow"), (resize_crop_mirror, "pillow")):
            cases += by_dali(make(default), lambda make=make: make("dali"))
        cases = [c for c in cases if options.only in c.operator]
        for number, each in enumerate(cases):

            def mine_of(encoded: Any, each: Case = each) -> Any:
                image = ours.crop(ours.decode(encoded), size=(HEIGHT, WIDTH))  # the whole image: gives the graph a size
                return each.ours(ours.cast(image, dtype="float32") if each.floats else image)

            mine = run_ours(service, f"case-{number}", middles, count, mine_of)
            arrays = [p.astype(np.float32) if each.floats else p for p in pixels]
            line, within = compare(each, list(mine), run_dali(arrays, "HWC", each.dali))
            print(line, flush=True)
            good &= within
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
