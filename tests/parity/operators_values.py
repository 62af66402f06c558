# SPDX-License-Identifier: Apache-2.0
"""Operators on values against DALI's on the CPU: the worst difference of each, as a table.

Both sides get the same pixels: photos that our worker has decoded and resized. Needs NumPy and nvidia.dali; computes
ours through the package's private service. By hand:

    LEAT_NATIVE_DIR=build/dev/native PYTHONPATH=python_client/src build/peers-venv/bin/python \
        tests/parity/operators_values.py PHOTOS
"""

import itertools
import pathlib
import shutil
import sys
import tempfile

import numpy as np
from nvidia.dali import fn as dali
from nvidia.dali import pipeline_def, types
from nvidia.dali import math as dali_math

import leat
from leat import fn

PHOTOS = 12
SIDE = 224
DTYPES = {"uint8": types.UINT8, "int32": types.INT32, "float32": types.FLOAT, "float16": types.FLOAT16}


def both(name, **args):
    """Returns the operator of one name in both, with the same arguments."""
    theirs = {key: DTYPES.get(value, value) if key == "dtype" else value for key, value in args.items()}
    return (lambda x: getattr(fn, name)(x, **args)), (lambda x: getattr(dali, name)(x, **theirs))


def space(source, target):
    names = {"rgb": types.RGB, "bgr": types.BGR, "gray": types.GRAY, "ycbcr": types.YCbCr}
    return (
        lambda x: fn.color_space_conversion(x, image_type=source, output_type=target),
        lambda x: dali.color_space_conversion(x, image_type=names[source], output_type=names[target]),
        (lambda x: fn.color_space_conversion(x, image_type="rgb", output_type="gray")) if source == "gray" else None,
    )


def floats(x):
    """Returns the image from 0 to 1, the same bits on both sides."""
    return fn.cast(x, dtype="float32") / 255


_TABLE = {"keys": list(range(0, 256, 3)), "values": [((i * 37) % 256) / 2 for i in range(86)], "default_value": 9.5}

_TWIST = {"brightness": 1.2, "contrast": 0.8, "hue": 33.0, "saturation": 1.5}
_HSV = {"hue": -110.0, "saturation": 0.6, "value": 1.2}


def pair(name, peer=None, given=None, **args):
    """Returns operators of two names with the same arguments."""
    return both(name, **args)[0], both(peer or name, **args)[1], given


# name -> ours, DALI's (the same, if there is none), and the input of both if it is not the image.
CASES = {
    "brightness": pair("brightness", brightness=1.37, brightness_shift=0.06),
    "brightness, to float32": pair("brightness", brightness=1.37, brightness_shift=-0.1, dtype="float32"),
    "brightness, of float32": pair("brightness", given=floats, brightness=0.6, brightness_shift=0.2),
    "contrast": pair("contrast", contrast=1.8),
    "contrast, centre 60": pair("contrast", contrast=0.4, contrast_center=60.0),
    "contrast, of float32": pair("contrast", given=floats, contrast=1.8),
    "brightness_contrast": pair("brightness_contrast", brightness=0.8, brightness_shift=0.1, contrast=1.3),
    "brightness_contrast, to int32": pair("brightness_contrast", brightness=2.5, contrast=3.0, dtype="int32"),
    "hue": pair("hue", hue=47.0),
    "saturation": pair("saturation", saturation=1.7),
    "hsv": pair("hsv", **_HSV),
    "hsv, to float32": pair("hsv", **_HSV, dtype="float32"),
    "hsv, of float32": pair("hsv", given=floats, **_HSV, dtype="float32"),
    "color_twist": pair("color_twist", **_TWIST),
    "color_twist, to float32": pair("color_twist", **_TWIST, dtype="float32"),
    "color_twist, of float32": pair("color_twist", given=floats, **_TWIST, dtype="float32"),
    **{
        f"color_space_conversion, {a} to {b}": space(a, b)
        for a, b in itertools.permutations(("rgb", "bgr", "gray", "ycbcr"), 2)
    },
    "lookup_table": pair("lookup_table", **_TABLE),
    "lookup_table, to uint8": pair("lookup_table", **_TABLE, dtype="uint8"),
    "one_hot": pair("one_hot", given=lambda x: fn.crop(x, size=(4, 5)), num_classes=256, on_value=3.0, off_value=-1.0),
    "standardize, all axes": pair("standardize", "normalize"),
    "standardize, by channel": pair("standardize", "normalize", axes=[0, 1], ddof=1, epsilon=0.5),
    "standardize, by row": pair("standardize", "normalize", axes=[1, 2], scale=3.0, shift=1.0),
    "standardize, mean given": (
        lambda x: fn.standardize(x, axes=[0, 1], mean=100),
        lambda x: dali.normalize(x, axes=[0, 1], mean=100.0),
    ),
    "standardize, to uint8": pair("standardize", "normalize", scale=50.0, shift=128.0, dtype="uint8"),
    "add, sub, mul": (lambda x: x * 3 + x - 7,),
    "add of uint8, wrapping": (lambda x: x + x,),
    "mul by float32": (lambda x: x * 1.7 - 0.3,),
    "div": (lambda x: x / 7,),
    "div by itself": (lambda x: x / (x + 1),),
    "floordiv": (lambda x: x // 7,),
    "neg": (lambda x: -x,),
    "comparisons": (lambda x: (x > 99) & (x <= 200.5) | (x == 3) ^ (x != 9),),
    "bitwise": (lambda x: (x & 0x5A) ^ (x | 3),),
    "channels broadcast": (
        lambda x: x * [1.5, 0.5, 2],
        lambda x: x * types.Constant(np.array([1.5, 0.5, 2], np.float32)),
    ),
    "min, max": (
        lambda x: fn.min(fn.max(x, 30), 200),
        lambda x: dali_math.min(dali_math.max(x, 30), 200),
    ),
    "abs": (lambda x: abs(x - 100), lambda x: dali_math.abs(x - 100)),
}


def ours(folder, cases):
    """Returns name -> (input, output), arrays of PHOTOS rows."""

    @leat.pipeline
    def all_cases():
        encoded, _ = fn.readers.image_folder(folder)
        image = fn.resize(fn.decode(encoded), size=SIDE)
        outputs = {}
        for i, (compute, _, given) in enumerate(cases.values()):
            start = given(image) if given else image
            outputs[f"in{i}"] = start
            outputs[f"out{i}"] = compute(start)
        return outputs

    with leat.connect() as service:
        batch = next(iter(service.job("parity", all_cases, batch=PHOTOS, seed=1).batches()))
        return {name: (np.array(batch[f"in{i}"]), np.array(batch[f"out{i}"])) for i, name in enumerate(cases)}


def theirs(compute, given):
    layout = "HWC" if given.ndim == 4 else None

    @pipeline_def(batch_size=len(given), num_threads=1, device_id=None)
    def one():
        return compute(dali.external_source(source=itertools.repeat(list(given)), layout=layout))

    pipeline = one()
    pipeline.build()
    return np.stack([np.array(row) for row in pipeline.run()[0]])


def main():
    classes = sorted(path for path in pathlib.Path(sys.argv[1]).iterdir() if path.is_dir())
    cases = {name: (*case, None, None)[:3] for name, case in CASES.items()}
    photos = itertools.islice(itertools.chain(*(sorted(folder.iterdir())[:1] for folder in classes)), PHOTOS)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "photos").mkdir()
        for i, path in enumerate(photos):
            shutil.copy(path, pathlib.Path(folder, "photos", f"{i:03}.jpg"))
        results = ours(folder, cases)
    print("| operator | result | worst difference | differing |\n|---|---|--:|--:|")
    failed = False
    for name, (compute, peer, _) in cases.items():
        given, got = results[name]
        want = theirs(peer or compute, given)
        assert (got.shape, got.dtype) == (want.shape, want.dtype), (name, got.shape, got.dtype, want.shape, want.dtype)
        wide = np.float64 if got.dtype.kind == "f" else np.int64
        difference = np.abs(got.astype(wide) - want.astype(wide))
        if got.dtype.kind == "f":  # relative to the largest value, if that is over 1
            difference = difference / max(1, np.abs(want.astype(wide)).max())
        worst = difference.max()
        failed |= worst > (1e-5 if got.dtype.kind == "f" else 1)
        print(f"| {name} | {got.dtype} | {worst:.2g} | {np.mean(difference > 0):.2%} |")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
