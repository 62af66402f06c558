# SPDX-License-Identifier: Apache-2.0
"""Every operator of leat.dali with every type, beside nvidia.dali on the CPU: a table of operator and type.

    LEAT_NATIVE_DIR=build/dev/native PYTHONPATH=python_client/src build/parity-venv/bin/python \
        tests/parity/dali_types.py [OPERATOR…]

Each row of INPUTS gives the operator values of each type, with both ends of the type's range among them; each row of
RESULTS requests a result of each type. A pair is one of

    same      the values are DALI's within the tolerance: 1 for integers, 1e-5 of the greatest value for floats, 2e-3
              for float16; the type is DALI's, or the wider one that workers compute it in
    wider     the values are DALI's after a cast to its type: workers compute in a wider one, which does not wrap
    refused   Leat raises an error that names what it does not take, whatever DALI does
    alone     DALI refuses, and Leat gives a value
    DIFFERS   anything else

Exit status 1: a pair differs, or an operator of leat.dali.fn is in no row and not in UNTYPED.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import leat
import leat.dali
import numpy as np
import nvidia.dali

BATCH = 2
SHAPE = (12, 10, 3)
TYPES = "bool uint8 int8 uint16 int16 int32 uint32 int64 uint64 float16 float32 float64".split()
WIDER = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "float64": "float32"}
# Operators without a type: their inputs or outputs always have the same type, or they do not affect it. "x.*" means all
# of a group.
UNTYPED = {
    "decoders.*": "take image files",
    "readers.*": "read files, of whatever type these are",
    "external_source": "its values are the rows of this table",
    "noise.shot": "draws, and DALI does so without an end where a value is many times the factor",
    "peek_image_shape": "takes image files",
    "python_function": "calls the script's function",
    "permute_batch": "is refused",
    "random_resized_crop": "draws its window; resize has the arithmetic",
    "reinterpret": "is reshape, of one type",
}
Case = Callable[[Any, Any], Any]

INPUTS: dict[str, Case] = {
    "abs": lambda d, x: d.math.abs(x),
    "add": lambda d, x: x + 3,
    "add float": lambda d, x: x + 0.25,
    "brightness": lambda d, x: d.fn.brightness(x, brightness=1.5, brightness_shift=0.1),
    "brightness_contrast": lambda d, x: d.fn.brightness_contrast(x, brightness=0.75, contrast=1.5),
    "cast": lambda d, x: d.fn.cast(x, dtype=d.types.FLOAT),
    "cast to bytes": lambda d, x: d.fn.cast(x, dtype=d.types.UINT8),
    "cast to int32": lambda d, x: d.fn.cast(x, dtype=d.types.INT32),
    "cast to bool": lambda d, x: d.fn.cast(x, dtype=d.types.BOOL),
    "cast_like": lambda d, x: d.fn.cast_like(x, d.types.Constant(np.int32([1]))),
    "cat": lambda d, x: d.fn.cat(d.fn.crop(x, crop=(6, 5)), d.fn.crop(x, crop=(6, 5), crop_pos_x=1.0), axis=1),
    "color_space_conversion": lambda d, x: d.fn.color_space_conversion(
        x, image_type=d.types.RGB, output_type=d.types.YCbCr
    ),
    "color_twist": lambda d, x: d.fn.color_twist(x, brightness=1.25, contrast=0.5, hue=20.0, saturation=0.75),
    "compare": lambda d, x: (x > 5) | (x == 1),
    "contrast": lambda d, x: d.fn.contrast(x, contrast=0.5),
    "copy": lambda d, x: d.fn.copy(x),
    "crop": lambda d, x: d.fn.crop(x, crop=(6, 5), crop_pos_x=0.2),
    "crop padded": lambda d, x: d.fn.crop(x, crop=(14, 5), out_of_bounds_policy="pad", fill_values=7.0),
    "crop_mirror_normalize": lambda d, x: d.fn.crop_mirror_normalize(x, mean=[3.0], std=[2.0], mirror=1),
    "div": lambda d, x: x / 4,
    "equalize": lambda d, x: d.fn.experimental.equalize(x) if d is nvidia.dali else d.fn.equalize(x),
    "erase": lambda d, x: d.fn.erase(x, anchor=(2, 3), shape=(4, 4), fill_value=9.0),
    "erase by axes": lambda d, x: d.fn.erase(x, anchor=(1, 2), shape=(3, 5), axes=(0, 1), fill_value=9.0),
    "expand_dims": lambda d, x: d.fn.expand_dims(d.fn.crop(x, crop=(6, 5)), axes=0),
    "ceil": lambda d, x: d.math.ceil(x),
    "floor": lambda d, x: d.math.floor(x),
    "flip": lambda d, x: d.fn.flip(x, horizontal=1, vertical=1),
    "floordiv": lambda d, x: x // 3,
    "floordiv exactly": lambda d, x: ((x // 3) & 1) * 100,
    "full": lambda d, x: d.fn.full(d.types.Constant(3), shape=(2, 2)),
    "full_like": lambda d, x: d.fn.full_like(x, d.types.Constant(3)),
    "gaussian_blur": lambda d, x: d.fn.gaussian_blur(x, window_size=5),
    "hsv": lambda d, x: d.fn.hsv(x, hue=30.0, saturation=0.5),
    "hue": lambda d, x: d.fn.hue(x, hue=30.0),
    "jpeg_compression_distortion": lambda d, x: d.fn.jpeg_compression_distortion(x, quality=90),
    "lookup_table": lambda d, x: d.fn.lookup_table(x, keys=[0, 1, 2, 7], values=[5, 6, 7, 8.5], default_value=2.0),
    "max": lambda d, x: d.math.max(x, 4),
    "mul": lambda d, x: d.fn.crop(x, crop=(1, 1), crop_pos_x=0, crop_pos_y=0) * 2,
    "mul float": lambda d, x: x * 0.5,
    "neg": lambda d, x: -d.fn.crop(x, crop=(1, 1), crop_pos_x=0, crop_pos_y=0),
    "noise.gaussian": lambda d, x: d.fn.noise.gaussian(x, mean=20.0, stddev=0.0),
    "noise.salt_and_pepper": lambda d, x: d.fn.noise.salt_and_pepper(x, prob=1.0, salt_vs_pepper=1.0),
    "noise.salt_and_pepper pepper": lambda d, x: d.fn.noise.salt_and_pepper(x, prob=1.0, salt_vs_pepper=0.0),
    "normalize": lambda d, x: d.fn.normalize(x, mean=4.0, stddev=2.0),
    "normalize itself": lambda d, x: d.fn.normalize(x),
    "one_hot": lambda d, x: d.fn.one_hot(d.fn.crop(x, crop=(1, 1), crop_pos_x=0, crop_pos_y=0), num_classes=256),
    "ones": lambda d, x: d.fn.ones(shape=(2,)),
    "ones_like": lambda d, x: d.fn.ones_like(x),
    "pad": lambda d, x: d.fn.pad(d.fn.crop(x, crop=(6, 5)), axes=(0, 1), shape=(8, 9), fill_value=3.0),
    "power": lambda d, x: d.fn.crop(x, crop=(1, 1), crop_pos_x=0, crop_pos_y=0) ** 2,
    "reshape": lambda d, x: d.fn.reshape(x, shape=(10, 12, 3)),
    "resize": lambda d, x: d.fn.resize(x, size=(7, 8)),
    "resize nearest": lambda d, x: d.fn.resize(x, size=(7, 8), interp_type=d.types.INTERP_NN),
    "resize_crop_mirror": lambda d, x: d.fn.resize_crop_mirror(x, size=(9, 8), crop=(6, 5), mirror=1),
    "rotate": lambda d, x: d.fn.rotate(x, angle=30.0, size=(12, 10), fill_value=5.0),
    "saturation": lambda d, x: d.fn.saturation(x, saturation=0.5),
    "shapes": lambda d, x: d.fn.shapes(x),
    "slice": lambda d, x: d.fn.slice(x, start=(2, 1), shape=(4, 5), axes=(0, 1)),
    "slice by names": lambda d, x: d.fn.slice(x, start=(2, 1), shape=(4, 5), axis_names="WH"),
    "slice padded": lambda d, x: d.fn.slice(
        x, start=(-2, 1), shape=(4, 5), axes=(0, 1), out_of_bounds_policy="pad", fill_values=7.0
    ),
    "squeeze": lambda d, x: d.fn.squeeze(d.fn.crop(x, crop=(1, 5)), axes=0),
    "stack": lambda d, x: d.fn.stack(d.fn.crop(x, crop=(6, 5)), d.fn.crop(x, crop=(6, 5), crop_pos_x=1.0), axis=1),
    "sub": lambda d, x: d.fn.crop(x, crop=(1, 1), crop_pos_x=0, crop_pos_y=0) - 2,
    "subscript": lambda d, x: x[1:5, 2],
    "transpose to names": lambda d, x: d.fn.transpose(x, output_layout="CHW"),
    "transpose": lambda d, x: d.fn.transpose(x, perm=(2, 0, 1)),
    "warp_affine": lambda d, x: d.fn.warp_affine(x, matrix=[0.9, 0.1, 0.5, -0.1, 0.9, 0.5], fill_value=5.0),
    "zeros": lambda d, x: d.fn.zeros(shape=(2,)),
    "zeros_like": lambda d, x: d.fn.zeros_like(x),
}

# Called with a dtype; x is uint8.
RESULTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "brightness": lambda d, x, t: d.fn.brightness(x, brightness=2.0, dtype=t),
    "brightness_contrast": lambda d, x, t: d.fn.brightness_contrast(x, contrast=3.0, brightness_shift=0.1, dtype=t),
    "cast": lambda d, x, t: d.fn.cast(x * 300.5 - 40000.0, dtype=t),
    "color_twist": lambda d, x, t: d.fn.color_twist(x, brightness=1.5, dtype=t),
    "Constant": lambda d, x, t: d.types.Constant(np.int64([1, 0, 77]), dtype=t),
    "constant": lambda d, x, t: d.fn.constant(idata=[1, 0, 77, -3, 300], dtype=t),
    "constant of floats": lambda d, x, t: d.fn.constant(fdata=[1.5, 0.0, 77.25, -2.5, 300.5], dtype=t),
    "contrast": lambda d, x, t: d.fn.contrast(x, contrast=3.0, dtype=t),
    "crop": lambda d, x, t: d.fn.crop(x, crop=(6, 5), dtype=t),
    "crop_mirror_normalize": lambda d, x, t: d.fn.crop_mirror_normalize(x, mean=[30.0], std=[0.25], dtype=t),
    "gaussian_blur": lambda d, x, t: d.fn.gaussian_blur(x, window_size=3, dtype=t),
    "hsv": lambda d, x, t: d.fn.hsv(x, value=1.5, dtype=t),
    "hue": lambda d, x, t: d.fn.hue(x, hue=70.0, dtype=t),
    "lookup_table": lambda d, x, t: d.fn.lookup_table(x, keys=[0, 255], values=[2.5, 77.0], default_value=1.5, dtype=t),
    "normalize": lambda d, x, t: d.fn.normalize(x, mean=100.0, stddev=0.5, dtype=t),
    "one_hot": lambda d, x, t: d.fn.one_hot(d.fn.crop(x, crop=(1, 1)), num_classes=256, on_value=77.0, dtype=t),
    "ones": lambda d, x, t: d.fn.ones(shape=(2,), dtype=t),
    "random.beta": lambda d, x, t: d.fn.random.beta(alpha=2.0, beta=3.0, dtype=t) * 0,
    "random.choice": lambda d, x, t: d.fn.random.choice(d.types.Constant(np.int64([77, 77]), dtype=t)),
    "random.coin_flip": lambda d, x, t: d.fn.random.coin_flip(probability=1.0, dtype=t),
    "random.normal": lambda d, x, t: d.fn.random.normal(mean=300.7, stddev=0.0, dtype=t),
    "random.uniform": lambda d, x, t: d.fn.random.uniform(values=[-2.7], dtype=t),
    "resize": lambda d, x, t: d.fn.resize(x, size=(7, 8), dtype=t),
    "rotate": lambda d, x, t: d.fn.rotate(x, angle=30.0, size=(12, 10), dtype=t),
    "saturation": lambda d, x, t: d.fn.saturation(x, saturation=2.0, dtype=t),
    "slice": lambda d, x, t: d.fn.slice(x, start=(2, 1), shape=(4, 5), axes=(0, 1), dtype=t),
    "warp_affine": lambda d, x, t: d.fn.warp_affine(x, matrix=[0.9, 0.1, 0.5, -0.1, 0.9, 0.5], dtype=t),
    "shapes": lambda d, x, t: d.fn.shapes(x, dtype=t),
    "zeros": lambda d, x, t: d.fn.zeros(shape=(2,), dtype=t),
    "zeros_like": lambda d, x, t: d.fn.zeros_like(x, dtype=t),
}


def values(name: str) -> np.ndarray:
    """Returns a batch of images of a type: small numbers first, then the ends of the range, then the whole range."""
    rng, dtype, shape = np.random.default_rng(7), np.dtype(name), (BATCH, *SHAPE)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "f":
        found = rng.uniform(-300, 300, shape).astype(dtype)
        ends = [0.0, 0.5, 1.5, -0.5, 2.5, -2.5, 254.5, 255.5]
    else:
        info = np.iinfo(dtype)
        found = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        ends = [7, 1, 0, info.max, info.min]
        # Beyond 2**24 float32 rounds, equally on both sides only if the same numbers are added up.
        small = rng.integers(max(-120, info.min), 120, shape, dtype=np.int64).astype(dtype)
        found = np.where(rng.random(shape) < (0.5 if dtype.itemsize < 4 else 1.0), small, found)
    flat = found.reshape(BATCH, -1)
    flat[:, 0] = 3
    flat[:, 3 : 3 + len(ends)] = ends
    return found


def run(d: Any, array: np.ndarray, case: Case) -> np.ndarray:
    with d.Pipeline(batch_size=len(array), num_threads=1, device_id=None) as pipeline:
        x = d.fn.external_source(source=lambda: list(array), layout="HWC", dtype=_word(d, array.dtype.name))
        x = d.fn.reshape(x, shape=SHAPE, layout="HWC")
        pipeline.set_outputs(case(d, x))
    pipeline.build()
    (output,) = pipeline.run()
    return np.stack([np.array(output.at(i)) for i in range(BATCH)])


def judged(array: np.ndarray, case: Case) -> tuple[str, str]:
    theirs: Any = None
    try:
        theirs = run(nvidia.dali, array, case)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if "rror" in line or "supported" in line]
        reason = (lines or [str(error)])[-1][:90]
    try:
        ours = run(leat.dali, array, case)
    except (leat.errors.Error, TypeError, ValueError, NotImplementedError) as error:
        return "refused", str(error).splitlines()[0][:150]
    if theirs is None:
        return "alone", reason
    if ours.shape != theirs.shape:
        return "DIFFERS", f"shape {ours.shape}, DALI's is {theirs.shape}"
    if ours.dtype.name not in (theirs.dtype.name, WIDER.get(theirs.dtype.name)):
        return "DIFFERS", f"{ours.dtype}, DALI's is {theirs.dtype}"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    difference = np.abs(a - b)
    tolerance = 1.0
    if theirs.dtype.kind == "f":
        finite = np.abs(b[np.isfinite(b)])
        tolerance = (2e-3 if theirs.dtype == np.float16 else 1e-5) * max(1.0, float(finite.max(initial=0.0)))
        difference[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
    elif theirs.dtype.itemsize >= 4:  # float32 has 24 bits
        tolerance = np.maximum(1.0, np.abs(b) * 2.0**-23)
    elif theirs.dtype.kind == "b":
        tolerance = 0
    beyond = ~(difference <= tolerance)
    if beyond.any() and ours.dtype != theirs.dtype and np.array_equal(ours.astype(theirs.dtype), theirs):
        return "wider", f"{int(beyond.sum())} of {beyond.size} would wrap"
    if beyond.any():
        at = tuple(int(each[0]) for each in np.nonzero(beyond))
        return "DIFFERS", f"{int(beyond.sum())} of {beyond.size}, {ours[at]!r} for {theirs[at]!r} at {at[1:]}"
    return "same", f"{float(np.nanmax(difference, initial=0.0)):.3g}"


def operators() -> set[str]:
    """Returns all operators of leat.dali.fn, those of its groups as "group.name"."""
    found = set()
    for name in leat.dali.fn.__all__:
        value = getattr(leat.dali.fn, name)
        if callable(value):
            found.add(name)
            continue
        # Operators are made by a decorator; other attributes of a group's module are not.
        found |= {f"{name}.{each}" for each, made in vars(value).items() if hasattr(made, "__wrapped__")}
    return found


def main() -> int:
    asked = sys.argv[1:]
    untyped = {name for name in operators() if name in UNTYPED or name.partition(".")[0] + ".*" in UNTYPED}
    missing = sorted(operators() - {each.split()[0] for each in (*INPUTS, *RESULTS)} - untyped)
    counts: dict[str, int] = {}
    print("| operator | type | outcome | worst difference, or reason |\n|---|---|---|---|")

    def row(name: str, what: str, array: np.ndarray, case: Case) -> None:
        outcome, detail = judged(array, case)
        counts[outcome] = counts.get(outcome, 0) + 1
        print(f"| {name} | {what} | {outcome} | {detail} |", flush=True)

    for name, case in INPUTS.items():
        for dtype in TYPES if not asked or name in asked else ():
            row(name, f"of {dtype}", values(dtype), case)
    for name, made in RESULTS.items():
        for dtype in TYPES if not asked or name in asked else ():
            row(name, f"to {dtype}", values("uint8"), lambda d, x: made(d, x, _word(d, dtype)))
    print("\n" + ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())))
    for name in missing:
        print(f"fn.{name} stands in no row")
    return int(bool(missing) or "DIFFERS" in counts)


_WORDS = {"float32": "FLOAT"}


def _word(d: Any, dtype: str) -> Any:
    return getattr(d.types, _WORDS.get(dtype, dtype.upper()))


if __name__ == "__main__":
    sys.exit(main())
