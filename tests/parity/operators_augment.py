# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation beside DALI's on the CPU: its tables, and each operation at given magnitudes.

    LEAT_NATIVE_DIR=build/dev/native PYTHONPATH=python_client/src build/parity-venv/bin/python \
        tests/parity/operators_augment.py PHOTOS

Prints a table: for each case the worst difference, and the share of the bytes that differ. Exit status 1: a byte
differs by more than 1, or DALI's magnitudes and policies are no longer those of tests/golden/augmentations.txt, with
which the C++ tests compare ours. `--write-tables` writes that file.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import leat
import numpy as np
from leat import fn
from nvidia.dali import fn as dali
from nvidia.dali import pipeline_def, types
from nvidia.dali.auto_aug import augmentations as ops
from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import test_data  # noqa: E402

HEIGHT, WIDTH = 200, 260
BINS = 31
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "augmentations.txt"


# --- Tables ---------------------------------------------------------------------------------------------------------


def numbers(augmentation: Any, bins: int, sign: int) -> list[float]:
    """Returns the parameter of each bin: the first element of matrices, the nonzero one of pairs (x, y)."""
    magnitudes = augmentation._get_magnitudes(bins)
    if magnitudes is None:
        return []
    made = []
    for magnitude in magnitudes:
        parameter = np.asarray(augmentation._map_mag_to_param(magnitude * sign), dtype=np.float64).ravel()
        made.append(float(parameter[0] if augmentation.name == "sharpness" else parameter[np.abs(parameter).argmax()]))
    return made


def tables() -> Iterator[str]:
    """Yields lines: `suite operation sign numbers…` and `policy position stage operation probability sign number`."""
    suites = {
        "rand_augment": rand_augment.get_rand_augment_suite(),
        "rand_augment_non_monotonic": rand_augment.get_rand_augment_non_monotonic_suite(),
        "trivial_augment_wide": trivial_augment.get_trivial_augment_wide_suite(),
    }
    for suite, augmentations in suites.items():
        for each in augmentations:
            for sign in (1, -1) if each.randomly_negate else (1,):
                yield " ".join([suite, each.name, str(sign), *(f"{x:.9g}" for x in numbers(each, BINS, sign))])
    for policy, make in {
        "image_net": auto_augment.get_image_net_policy,
        "reduced_cifar10": auto_augment.get_reduced_cifar10_policy,
        "reduced_image_net": auto_augment.get_reduced_image_net_policy,
        "svhn": auto_augment.get_svhn_policy,
    }.items():
        made = make()
        for i, sub_policy in enumerate(made.sub_policies):
            for stage, (each, probability, place) in enumerate(sub_policy):
                for sign in (1, -1) if each.randomly_negate else (1,):
                    found = numbers(each, made.num_magnitude_bins, sign)
                    number = [f"{found[place]:.9g}"] if found else []
                    yield " ".join([policy, str(i), str(stage), each.name, f"{probability:g}", str(sign), *number])


# --- Images ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Case:
    operator: str
    what: str
    ours: Callable[[Any], Any]
    dalis: tuple[Callable[[Any], Any], ...]  # an image may equal the result of any of them
    gray: bool = False


def at(name: str, magnitude: float, **more: Any) -> Callable[[Any], Any]:
    """Returns DALI's augmentation with that parameter."""
    factors = {"mag_to_param": None} if name in ("brightness", "contrast", "color") else {}
    if name == "sharpness":
        factors = {"mag_to_param": ops.sharpness_kernel_shifted}
    base = getattr(ops, name + "_no_shape" if name.startswith("translate") else name)
    if base.mag_range is None:
        return lambda x: base(x, **more)
    made = base.augmentation(mag_range=(magnitude, magnitude), randomly_negate=False, **factors)
    return lambda x: made(x, magnitude_bin=0, num_magnitude_bins=1, **more)


BY = {"fixed": "", "dali": ", rule dali"}


def operations() -> Iterator[Case]:
    magnitudes: dict[str, tuple[float, ...]] = {
        "shear_x": (0.3, -0.99),
        "shear_y": (0.12, -0.6),
        "translate_x": (100, -33.3333),
        "translate_y": (-250, 7.5),
        "rotate": (30, -17.5, 135),
        "brightness": (0.1, 1.45, 1.9),
        "contrast": (0.1, 0.73, 1.9),
        "color": (0.1, 1.63),
        "sharpness": (0.1, 0.55, 1.9),
        "posterize": (0, 1, 4, 6.4, 8),
        "solarize": (0, 76.8, 128, 256),
        "solarize_add": (33, 110),
        "invert": (0,),
        "equalize": (0,),
        "auto_contrast": (0,),
        "identity": (0,),
    }
    for name, values in magnitudes.items():
        for value in values:
            what = name if len(values) == 1 else f"{name} {value:g}"
            mine = {"operation": name, "magnitude": value}
            for rule in ("fixed", "dali") if name.startswith(("shear", "translate", "rotate")) else ("fixed",):
                mine["rule"] = rule
                yield Case("augment", what + BY[rule], lambda x, m=dict(mine): fn.augment(x, **m), (at(name, value),))
    for (name, value), rule in itertools.product((("rotate", 40), ("shear_x", 0.4), ("translate_y", -20.25)), BY):
        mine = {"operation": name, "magnitude": value, "rule": rule}
        yield Case(
            "augment",
            f"{name} {value:g}, edge{BY[rule]}",
            lambda x, m=mine: fn.augment(x, **m, border="edge"),
            (at(name, value, fill_value=None),),
        )
        yield Case(
            "augment",
            f"{name} {value:g}, nearest{BY[rule]}",
            lambda x, m=mine: fn.augment(x, **m, interpolation="nearest", fill_value=7),
            (at(name, value, fill_value=7, interp_type=types.INTERP_NN),),
        )
    for name, value in (("contrast", 1.7), ("equalize", 0), ("auto_contrast", 0), ("sharpness", 1.9), ("rotate", 12.0)):
        yield Case(
            "augment",
            f"{name}, gray",
            lambda x, n=name, v=value: fn.augment(x, operation=n, magnitude=v),
            (at(name, value),),
            gray=True,
        )
    yield Case("equalize", "", lambda x: fn.equalize(x), (lambda x: dali.equalize(x),))
    yield Case("equalize", "gray", lambda x: fn.equalize(x), (lambda x: dali.equalize(x),), gray=True)


def signs(suite: list[Any], name: str, place: int) -> tuple[Callable[[Any], Any], ...]:
    """Returns DALI's augmentation of that name in the suite, at a bin, with either sign."""
    (found,) = (each for each in suite if each.name == name)
    magnitudes = found._get_magnitudes(BINS)
    if magnitudes is None:
        return (found,)
    both = (float(magnitudes[place]), -float(magnitudes[place])) if found.randomly_negate else (magnitudes[place],)
    made = [found.augmentation(mag_range=(value, value), randomly_negate=False) for value in both]
    return tuple(lambda x, one=one: one(x, magnitude_bin=0, num_magnitude_bins=1) for one in made)


def policies() -> Iterator[Case]:
    """Yields one operation of a suite at a time: all others are excluded."""
    for monotonic in (True, False):
        make = rand_augment.get_rand_augment_suite if monotonic else rand_augment.get_rand_augment_non_monotonic_suite
        suite = make()
        for each in suite:
            others = [other.name for other in suite if other.name != each.name]
            mine = {"n": 1, "m": 17, "excluded": others, "monotonic_mag": monotonic}
            yield Case(
                "rand_augment" if monotonic else "rand_augment, not monotonic",
                f"{each.name}, bin 17 of {BINS}",
                lambda x, mine=mine: fn.rand_augment(x, **mine),
                signs(suite, each.name, 17),
            )


def images(service: leat.Service, folder: pathlib.Path, count: int, cases: list[Case]) -> dict[str, np.ndarray]:
    @leat.pipeline
    def pipe() -> dict[str, Any]:
        encoded, _ = fn.readers.image_folder(str(folder))
        rgb = fn.crop(fn.decode(encoded), size=(HEIGHT, WIDTH))  # the whole image: gives the graph a size
        gray = fn.crop(fn.decode(encoded, output="gray"), size=(HEIGHT, WIDTH))
        made = {f"case{i}": case.ours(gray if case.gray else rgb) for i, case in enumerate(cases)}
        return {"rgb": rgb, "gray": gray, **made}

    job = service.job(f"augment-{cases[0].operator}-{len(cases)}", pipe, batch=count, shuffle=False)
    with job.batches() as batches:
        return {name: np.array(value) for name, value in next(iter(batches)).items()}


def of_dali(make: Callable[[Any], Any], given: np.ndarray) -> np.ndarray:
    @pipeline_def(batch_size=len(given), num_threads=1, device_id=None)
    def pipe() -> Any:
        return make(dali.external_source(source=itertools.repeat(list(given)), layout="HWC"))

    made = pipe()
    made.build()
    (result,) = made.run()
    return np.stack([np.array(result.at(i)) for i in range(len(given))])


def compare(case: Case, given: np.ndarray, got: np.ndarray) -> bool:
    """Prints a line of the table. For each image the nearest candidate counts."""
    differences = []
    for make in case.dalis:
        want = of_dali(make, given)
        assert (want.shape, want.dtype) == (got.shape, got.dtype), (case, want.shape, want.dtype, got.shape)
        differences.append(np.abs(want.astype(np.int64) - got))
    stacked = np.stack(differences)
    nearest = stacked.sum(axis=(2, 3, 4)).argmin(axis=0)
    difference = stacked[nearest, np.arange(len(given))]
    beyond = np.mean(difference > 1)
    # Nearest: DALI adds up positions as floats along a row, and may take the other one of two pixels.
    within = beyond <= (1e-3 if "nearest" in case.what and "rule" not in case.what else 0)
    tail = "yes" if beyond == 0 else f"{beyond:.4%} beyond 1" + ("" if within else ": NO")
    differing = np.mean(difference > 0)
    print(f"| {case.operator} | {case.what} | {difference.max()} | {differing:.4%} | {tail} |", flush=True)
    return bool(within)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, nargs="?")
    parser.add_argument("--photos", type=int, default=8)
    parser.add_argument("--write-tables", action="store_true")
    options = parser.parse_args()
    text = "".join(line + "\n" for line in tables())
    if options.write_tables:
        GOLDEN.write_text(text)
        return 0
    good = GOLDEN.read_text() == text
    print(f"{text.count(chr(10))} lines of magnitudes and policies: {'the same' if good else 'DIFFERENT'}\n")
    files = test_data.images(options.data)
    files = [f for f in files if Image.open(f).mode == "RGB" and min(Image.open(f).size) >= WIDTH]
    files = files[:: max(1, len(files) // options.photos)][: options.photos]
    print("| operator | case | worst difference | differing | within tolerance |\n|---|---|--:|--:|---|")
    with tempfile.TemporaryDirectory() as name, leat.connect() as service:
        for i, path in enumerate(files):
            picture = Image.open(path)
            left, top = (picture.width - WIDTH) // 2, (picture.height - HEIGHT) // 2
            with open(pathlib.Path(name, f"{i:03}.jpg"), "wb") as out:  # the reader's names; nothing is lost
                picture.crop((left, top, left + WIDTH, top + HEIGHT)).save(out, "PNG")
        for cases in (list(operations()), list(policies())):
            results = images(service, pathlib.Path(name), len(files), cases)
            for i, case in enumerate(cases):
                good &= compare(case, results["gray" if case.gray else "rgb"], results[f"case{i}"])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
