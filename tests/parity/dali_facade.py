# SPDX-License-Identifier: Apache-2.0
"""leat.dali beside nvidia.dali: the same functions, run under both modules, on the same photos, on the CPU.

    LEAT_NATIVE_DIR=build/dev/native PYTHONPATH=python_client/src build/parity-venv/bin/python \
        tests/parity/dali_facade.py PHOTOS [NAME…]

Prints, for each function and output, the worst difference and the share of the elements that differ; then the
arguments and defaults that differ from DALI's. Exit status 1: a case exceeds its tolerance, or an argument is missing.
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import sys
import types as python_types
from collections.abc import Callable
from typing import Any

import leat.dali
import leat.dali.auto_aug
import numpy as np
import nvidia.dali

BATCH = 8
STEPS = 2
# Tolerances: the worst difference (for floats relative to the greatest magnitude), or a share of elements beyond it.
EXACT = (0, 0.0)
ROUNDED = (1, 0.01)
FLOATS = (1e-5, 0.0)

CASES: dict[str, tuple[Callable[..., Any], tuple[float, float]]] = {}


def case(tolerance: tuple[float, float]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = (function, tolerance)
        return function

    return register


def photos(d: Any, root: str, **options: Any) -> Any:
    """Returns decoded photos of one size."""
    jpegs, _ = d.fn.readers.file(file_root=root, name="reader")
    return d.fn.crop(d.fn.decoders.image(jpegs, **options), crop=(120, 160))


@case(EXACT)
def labels(d: Any, root: str) -> Any:
    _, label = d.fn.readers.file(file_root=root, num_shards=3, shard_id=1, name="reader")
    return label, d.fn.one_hot(label, num_classes=1000), d.fn.reshape(label, shape=[]), label * 2 + 1, label / 2 > 3


@case(EXACT)
def padded(d: Any, root: str) -> Any:
    files = sorted(str(each) for each in pathlib.Path(root).rglob("*.*"))[:11]
    _, label = d.fn.readers.file(files=files, num_shards=2, shard_id=1, pad_last_batch=True, stick_to_shard=True)
    return label


@case(EXACT)
def decoded(d: Any, root: str) -> Any:
    jpegs, _ = d.fn.readers.file(file_root=root)
    gray = d.fn.decoders.image(jpegs, output_type=d.types.GRAY)
    place = {"crop": (100, 90), "crop_pos_x": 0.3, "crop_pos_y": 0.9}
    return (
        d.fn.decoders.image_crop(jpegs, **place),
        d.fn.crop(gray, **place),
        d.fn.decoders.image_slice(jpegs, start=(17, 31), shape=(60, 70), axis_names="HW"),
        d.fn.peek_image_shape(jpegs),
    )


@case(ROUNDED)
def resized(d: Any, root: str) -> Any:
    jpegs, _ = d.fn.readers.file(file_root=root)
    image = d.fn.decoders.image(jpegs)
    crop = {"crop": (64, 64)}
    return (
        d.fn.resize(image, size=(90, 117)),
        d.fn.resize(image, resize_x=150, resize_y=140, interp_type=d.types.INTERP_CUBIC),
        d.fn.crop(d.fn.resize(image, resize_shorter=100), **crop),
        d.fn.crop(d.fn.resize(image, resize_longer=222.0), **crop),
        d.fn.crop(d.fn.resize(image, size=(111, 0), mode="not_smaller", interp_type=d.types.INTERP_LANCZOS3), **crop),
        d.fn.resize(image, size=(50, 60), roi_start=(0.1, 0.2), roi_end=(0.9, 0.7), roi_relative=True),
        d.fn.resize(image, size=(90, 117), antialias=False),
        d.fn.resize(image, size=(600, 700)),
        d.fn.resize_crop_mirror(image, resize_shorter=80, crop=(70, 75), mirror=1),
    )


@case(FLOATS)
def normalized(d: Any, root: str) -> Any:
    image = photos(d, root)
    mean, std = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
    return (
        d.fn.crop_mirror_normalize(image, mean=mean, std=std, crop=(77, 88), mirror=1),
        d.fn.crop_mirror_normalize(image, std=[255.0], output_layout="HWC", scale=2.0, shift=0.25),
        d.fn.crop_mirror_normalize(image, crop=(33, 33), crop_pos_x=0.11, crop_pos_y=0.77, pad_output=True),
        d.fn.normalize(image, mean=np.float32(mean).reshape(1, 1, 3), stddev=np.float32(std).reshape(1, 1, 3)),
        d.fn.normalize(d.fn.cast(image, dtype=d.types.FLOAT)[:8, :8], axes=[0, 1], ddof=1),
        d.fn.cast(image, dtype=d.types.FLOAT) * 0.5 - 3,
        d.fn.normalize(d.types.Constant(np.arange(6, dtype=np.float32).reshape(1, 2, 3))),
    )


@case(FLOATS)
def decoded_floats(d: Any, root: str) -> Any:
    return photos(d, root, dtype=d.types.FLOAT)


@case(ROUNDED)
def warped(d: Any, root: str) -> Any:
    image = photos(d, root)
    matrix = [0.9, 0.2, -3.5, -0.15, 1.1, 8.25]
    return (
        d.fn.rotate(image, angle=12.5, keep_size=True),
        d.fn.rotate(image, angle=-33.0, keep_size=True, fill_value=42, interp_type=d.types.INTERP_NN),
        d.fn.rotate(image, angle=90.0, size=(150, 150)),
        d.fn.warp_affine(image, matrix=matrix, fill_value=7),
        d.fn.warp_affine(image, matrix=matrix, size=(100, 110), inverse_map=False),
    )


@case(EXACT)
def moved(d: Any, root: str) -> Any:
    image = photos(d, root)
    return (
        d.fn.flip(image),
        d.fn.flip(image, horizontal=0, vertical=1),
        d.fn.transpose(image, perm=[2, 0, 1]),
        d.fn.slice(image, 0.25, 0.5, axis_names="W"),
        d.fn.slice(image, start=(10, 20), end=(40, 60), axis_names="HW"),
        d.fn.slice(image, rel_start=(0.1, 0.2), rel_shape=(0.5, 0.3), axis_names="HW"),
        d.fn.crop(image, crop=(200, 100), out_of_bounds_policy="pad", fill_values=[9.0]),
        d.fn.pad(image, axis_names="HW", shape=(130, 170), fill_value=3),
        d.fn.pad(image, axes=(0, 1), align=(64, 64)),
        d.fn.erase(image, anchor=(10, 20), shape=(30, 40), axis_names="HW", fill_value=5),
        image[10:20, -30:, 1],
        image[:, :, 0],
        image.shape(),
        d.fn.reshape(image, shape=[-1, 3]),
        d.fn.expand_dims(image, axes=[0]),
        d.fn.stack(image[0], image[1]),
        d.fn.cat(image, image, axis=1),
    )


@case(ROUNDED)
def colored(d: Any, root: str) -> Any:
    image = photos(d, root)
    return (
        d.fn.brightness(image, brightness=1.3, brightness_shift=0.05),
        d.fn.contrast(image, contrast=0.7),
        d.fn.contrast(image, contrast=1.7, contrast_center=30.0),
        d.fn.brightness_contrast(image, brightness=0.8, contrast=1.2),
        d.fn.hue(image, hue=37.0),
        d.fn.saturation(image, saturation=0.4),
        d.fn.hsv(image, hue=-20.0, saturation=1.5, value=0.9),
        d.fn.color_twist(image, brightness=1.1, contrast=0.9, hue=15.0, saturation=1.2),
        d.fn.color_space_conversion(image, image_type=d.types.RGB, output_type=d.types.YCbCr),
        d.fn.color_space_conversion(image, image_type=d.types.RGB, output_type=d.types.GRAY),
        d.fn.gaussian_blur(image, sigma=1.7),
        d.fn.gaussian_blur(image, window_size=5),
    )


@case(EXACT)
def looked_up(d: Any, root: str) -> Any:
    _, label = d.fn.readers.file(file_root=root)
    return (
        d.fn.lookup_table(label, keys=[0, 1, 2], values=[5.0, 6.0, 7.0], default_value=-1.0),
        d.fn.one_hot(label, num_classes=1000, on_value=0.9, off_value=0.1),
        d.math.clamp(label, 1, 2),
        -label,
        abs(label - 3),
    )


@case(EXACT)
def made(d: Any, root: str) -> Any:
    x = d.types.Constant(np.arange(6, dtype=np.float32).reshape(1, 2, 3))
    return (
        d.fn.zeros(shape=[2, 3]),
        d.fn.ones(dtype=d.types.FLOAT16, shape=[4]),
        d.fn.full(7, shape=[2]),
        d.types.Constant([1, 2, 3]),
        d.types.Constant(2.5, shape=[2]),
        d.fn.squeeze(x, axes=[0]),
        x[0, :, 1:],
        x[:, -1] * 2,
        x[:, d.newaxis],
        d.fn.cat(x, x, axis=-1),
        d.fn.stack(x, x, axis=1),
        d.fn.reinterpret(x, shape=[3, 2]),
        d.fn.cast(x, dtype=d.types.INT64) // 2,
        d.fn.cast_like(x, d.types.Constant(np.uint8([1]))),
        d.math.max(x, 2.5),
    )


@case(EXACT)
def conditional(d: Any, root: str) -> Any:
    _, label = d.fn.readers.file(file_root=root)
    label = d.fn.reshape(label, shape=[])
    if label > 1 and label < 4:
        result = label * 10
    elif label == 0:
        result = label - 1
    else:
        result = label
    return result


def _five_more(angle: float) -> Any:
    return np.float32(angle + 5)


@case(ROUNDED)
def augmented(d: Any, root: str) -> Any:
    a = importlib.import_module(f"{d.__name__}.auto_aug.augmentations")
    core = importlib.import_module(f"{d.__name__}.auto_aug.core")
    jpegs, label = d.fn.readers.file(file_root=root)
    image = d.fn.crop(d.fn.decoders.image(jpegs), crop=(120, 160))

    @core.augmentation(mag_range=(0, 40), randomly_negate=True, mag_to_param=_five_more)
    def turn(data: Any, angle: Any, fill_value: Any = 0) -> Any:
        return d.fn.rotate(data, angle=angle, fill_value=fill_value, keep_size=True)

    def at(sign: int) -> dict[str, Any]:
        place = core.signed_bin(3, random_sign=d.fn.random.uniform(values=[sign, sign], dtype=d.types.INT32))
        return {"magnitude_bin": place, "num_magnitude_bins": 11}

    exact = [a.posterize, a.solarize, a.solarize_add, a.invert, a.auto_contrast, a.identity, turn]
    moved = [a.shear_x, a.shear_y, a.translate_x_no_shape, a.translate_y_no_shape, a.rotate]
    valued = [a.brightness, a.contrast, a.color, a.sharpness, a.equalize]
    return (
        *(one(image, **at(0)) for one in [*exact, *moved, *valued]),
        *(one(image, **at(1)) for one in [turn, *moved, *valued[:4]]),
        a.translate_x(image, shape=(120, 160), fill_value=None, **at(1)),
        core.select([a.invert, turn, a.shear_x], d.fn.reshape(label, shape=[]) % 3, image, fill_value=7, **at(1)),
    )


@case(EXACT)
def sourced(d: Any, root: str) -> Any:
    def batch(info: Any) -> Any:
        if info.iteration == STEPS:
            raise StopIteration
        return np.full((BATCH, 4, 5, 1), info.iteration, np.uint8), np.arange(BATCH, dtype=np.int32)

    image, number = d.fn.external_source(batch, num_outputs=2, batch_info=True, layout=["HWC", ""])
    return d.fn.flip(image), number + 1


def run(d: Any, function: Callable[..., Any], root: str) -> list[list[np.ndarray]]:
    conditionals = function.__name__ in ("augmented", "conditional")
    decorate = d.pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, enable_conditionals=conditionals)
    pipeline = decorate(function)(d, root)
    pipeline.build()
    return [[np.array(each.as_array()) for each in pipeline.run()] for _ in range(STEPS)]


def compared(name: str, root: str) -> bool:
    function, (most, share) = CASES[name]
    good = True
    ours, theirs = run(leat.dali, function, root), run(nvidia.dali, function, root)
    for output in range(len(theirs[0])):
        a = np.stack([step[output] for step in ours])
        b = np.stack([step[output] for step in theirs])
        text = f"{name:12} {output:3}  {b.dtype!s:8} {b.shape[2:]!s:16}"
        if a.shape != b.shape or a.dtype != b.dtype:
            print(f"{text} ours is {a.dtype} {a.shape[2:]}")
            good = False
            continue
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
        if b.dtype.kind == "f":
            difference /= max(float(np.abs(b).max()), 1e-30)
        worst, differing = float(difference.max()), float((difference > most).mean())
        within = worst <= most or differing <= share
        print(f"{text} worst {worst:<10.3g} share {float((difference > 0).mean()):.5f}{'' if within else '  BEYOND'}")
        good = good and within
    return good


def operators(module: Any) -> dict[str, Any]:
    """Returns the functions of fn and its groups, by DALI's names."""
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, python_types.ModuleType) and name in ("readers", "decoders", "random", "noise"):
            found |= operators(value)
        elif not name.startswith("_") and getattr(value, "__module__", "") == "leat.dali.fn":
            found[value.__qualname__] = value
    return found


# Arguments that we accept beyond DALI's, or whose default means the same in another form.
SAME = [("min_filter", None), ("mag_filter", None), ("file_filters", None), ("contrast_center", None)]


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(plain(each) for each in value)
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)


def signatures() -> bool:
    missing, other = [], []
    for name, ours in sorted(operators(leat.dali.fn).items()):
        theirs: Any = nvidia.dali.fn
        for part in name.split("."):
            theirs = getattr(theirs, part)
        a, b = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
        for argument, parameter in b.items():
            if parameter.kind is not parameter.KEYWORD_ONLY:
                continue
            if argument not in a:
                missing.append(f"{name}({argument})")
            elif parameter.default is not parameter.empty and (argument, a[argument].default) not in SAME:
                want, have = plain(parameter.default), plain(a[argument].default)
                if want != have and not (want in (None, (), "") and have in (None, (), "")):
                    other.append(f"{name}({argument}): {have!r}, DALI has {want!r}")
    print("\n".join(f"argument missing  {each}" for each in missing))
    print("\n".join(f"other default     {each}" for each in other))
    words = [each for each in dir(leat.dali.types) if each.isupper() and hasattr(nvidia.dali.types, each)]
    ours, theirs = ({each: getattr(m.types, each) for each in words} for m in (leat.dali, nvidia.dali))
    for each in words:
        same = theirs[each] == ours[each] if isinstance(ours[each], str) else int(theirs[each]) == int(ours[each])
        if not same:
            missing.append(each)
            print(f"types.{each} is {ours[each]!r}, DALI has {theirs[each]!r}")
    return not missing and not other


def main() -> int:
    root, names = sys.argv[1], sys.argv[2:] or [*CASES, "signatures"]
    good = True
    for name in names:
        good = (signatures() if name == "signatures" else compared(name, root)) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
