# SPDX-License-Identifier: Apache-2.0
"""The cases of operators_geometry.py: operators with our arguments, and with DALI's, and the tolerated difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from leat import fn as ours
from nvidia.dali import fn as dali
from nvidia.dali import types

HEIGHT, WIDTH = 200, 260  # of the middles
MATRIX = [0.9, 0.2, -3.5, -0.15, 1.1, 8.25]


@dataclasses.dataclass(frozen=True)
class Case:
    operator: str
    what: str
    ours: Callable[[Any], Any]
    dali: Callable[[Any], Any]
    worst: float = 1  # tolerated: absolute for integers, relative to the greatest magnitude for floats
    share: float = 1  # tolerated share of elements that differ by more than `worst`
    floats: bool = False  # the input is cast to float32
    rule: str = ""  # for the operators that have one


def case(operator: str, what: str, mine: dict[str, Any], theirs: dict[str, Any], **more: Any) -> Case:
    """Returns the case of an operator with the same name in both."""
    return Case(
        operator,
        what,
        lambda x: getattr(ours, operator)(x, **mine),
        lambda x: getattr(dali, operator)(x, **theirs),
        **more,
    )


def by_dali(cases: list[Case], make: Callable[[], list[Case]]) -> list[Case]:
    """Returns `cases`, and after each the same by rule "dali", without exceptions."""
    both = []
    for one, other in zip(cases, make(), strict=True):
        both += [one, dataclasses.replace(other, worst=1e-5 if other.floats else 1, share=0)]
    return both


def ruled(
    rule: str, operator: str, what: str, mine: dict[str, Any], theirs: dict[str, Any], **more: Any
) -> Case:
    """Returns the case of an operator with the same name in both, by a rule of ours."""
    return case(operator, what, mine | {"rule": rule}, theirs, rule=rule, **more)


def resampling(rule: str) -> list[Case]:
    cases = []

    def case(operator: str, what: str, mine: dict[str, Any], theirs: dict[str, Any], share: float) -> Case:
        return ruled(rule, operator, what, mine, theirs, share=share)

    filters = {
        "linear": types.INTERP_LINEAR,
        "cubic": types.INTERP_CUBIC,
        "lanczos3": types.INTERP_LANCZOS3,
        "nearest": types.INTERP_NN,
        "gaussian": types.INTERP_GAUSSIAN,
    }
    for name, dalis in filters.items():
        for size in ((90, 117), (300, 333)):
            for antialias in (True, False) if size[0] < HEIGHT and name != "nearest" else (True,):
                what = f"{name}, {'smaller' if size[0] < HEIGHT else 'larger'}{'' if antialias else ', no antialias'}"
                mine = {"size": size, "interpolation": name, "antialias": antialias}
                theirs = {"size": size, "interp_type": dalis, "antialias": antialias}
                # The border: Pillow leaves out pixels outside the image, DALI repeats the edge. Nearest: a position
                # midway between two pixels belongs to the second one, in DALI's floats to either.
                cases.append(case("resize", what, mine, theirs, share=0.2 if name == "nearest" else 0.05))
    # Sizes: without an antialiasing filter there is no border that could differ.
    for what, mine, theirs in (
        ("one side", {"size": (0, 117), "mode": "default"}, {"size": (0, 117)}),
        ("one side, stretched", {"size": (90, 0)}, {"size": (90, 0), "mode": "stretch"}),
        ("not_smaller, one side", *[{"size": (111, 0), "mode": "not_smaller"}] * 2),
        ("not_smaller", *[{"size": (100, 100), "mode": "not_smaller"}] * 2),
        ("not_larger", *[{"size": (100, 100), "mode": "not_larger"}] * 2),
        ("not_smaller, max_size", *[{"size": (100, 100), "mode": "not_smaller", "max_size": 120}] * 2),
        ("max_size", {"size": (100, 300), "max_size": (90, 280)}, {"size": (100, 300), "max_size": (90, 280)}),
        ("shorter", {"shorter": 77}, {"resize_shorter": 77}),
        ("shorter, a fraction", {"shorter": 77.4}, {"resize_shorter": 77.4}),
        ("shorter, max_size", {"shorter": 150, "max_size": 190}, {"resize_shorter": 150, "max_size": 190}),
        ("longer", {"longer": 333}, {"resize_longer": 333}),
    ):
        for subpixel in (True, False):
            more = {"subpixel_scale": subpixel, "antialias": False}
            cases.append(case("resize", what + (", subpixel" if subpixel else ""), mine | more, theirs | more, share=0))
    region = {"roi_start": (21.5, 30), "roi_end": (150.25, 222)}
    shares = {"roi_start": (0.1, 0.2), "roi_end": (0.85, 0.75), "roi_relative": True}
    for name, dalis in filters.items():
        mine = {"size": (80, 101), "interpolation": name}
        theirs = {"size": (80, 101), "interp_type": dalis}
                # Cubic and lanczos3 overshoot; Pillow clips that between its passes, and DALI does not. DALI takes its
                # Gaussian from a table of 65 points.
        share = {"cubic": 0.01, "lanczos3": 0.01, "gaussian": 1e-3}.get(name, 0)
        cases.append(case("resize", f"a region, {name}", mine | region, theirs | region, share=share))
    both = {"size": (280, 351), "antialias": False} | shares
    cases.append(case("resize", "a region by shares, larger", both, both, share=0))
    cases.append(
        case(
            "resize",
            "a region, shorter, subpixel",
            {"shorter": 63, "subpixel_scale": True} | region,
            {"resize_shorter": 63} | region,
            share=0,
        )
    )
    cases.append(
        case(
            "resize",
            "smaller by cubic, larger by linear",
            {"size": (90, 300), "min_filter": "cubic", "antialias": False},
            {"size": (90, 300), "min_filter": types.INTERP_CUBIC, "antialias": False},
            share=0.01,
        )
    )
    cases.append(
        case(
            "resize",
            "smaller by linear, larger by cubic",
            {"size": (90, 300), "mag_filter": "cubic", "antialias": False},
            {"size": (90, 300), "mag_filter": types.INTERP_CUBIC, "antialias": False},
            share=0.01,
        )
    )
    return cases


def warps(rule: str) -> list[Case]:
    cases = []

    def case(operator: str, what: str, mine: dict[str, Any], theirs: dict[str, Any], **more: Any) -> Case:
        return ruled(rule, operator, what, mine, theirs, **more)

    for name, dalis in (("linear", types.INTERP_LINEAR), ("nearest", types.INTERP_NN)):
        # DALI adds up positions as floats along a row: it may take the other one of two pixels, and its weights are off
        # by thousandths.
        share = 0 if name == "linear" else 1e-3
        for floats in (False, True):
            more = {"floats": floats, "worst": 2e-3 if floats else 1, "share": share}
            for angle in (12.5, 90, -133):
                mine = {"angle": angle, "interpolation": name, "keep_size": True}
                theirs = {"angle": angle, "interp_type": dalis, "keep_size": True}
                what = f"{angle}°, {name}{', float32' if floats else ''}"
                cases.append(case("rotate", what, mine, theirs, **more))
                mine, theirs = mine | {"fill_value": 77}, theirs | {"fill_value": 77}
                cases.append(case("rotate", what + ", filled", mine, theirs, **more))
            for inverse in (True, False):
                mine = {"matrix": MATRIX, "inverse_map": inverse, "size": (180, 240), "interpolation": name}
                theirs = {"matrix": MATRIX, "inverse_map": inverse, "size": (180, 240), "interp_type": dalis}
                what = f"{'inverse' if inverse else 'forward'}, {name}{', float32' if floats else ''}"
                cases.append(case("warp_affine", what, mine, theirs, **more))
                mine, theirs = mine | {"fill_value": 42}, theirs | {"fill_value": 42}
                cases.append(case("warp_affine", what + ", filled", mine, theirs, **more))
    cases.append(
        Case(
            "rotate",
            "30°, canvas",
            lambda x: ours.pad(ours.rotate(x, angle=30, rule=rule), axes=(0, 1), shape=(310, 330)),
            lambda x: dali.pad(dali.rotate(x, angle=30), axes=(0, 1), shape=(310, 330)),
            share=0,
            rule=rule,
        )
    )
    return cases


def crops() -> list[Case]:
    crop = {"crop": (128, 100)}
    norm = {"mean": [123.7, 116.3, 103.5], "std": [58.4, 57.1, 57.4]}
    cases = []
    for what, mine, theirs in (
        ("CHW", {}, {"output_layout": "CHW"}),
        ("HWC, mirrored", {"output_layout": "HWC", "mirror": True}, {"output_layout": "HWC", "mirror": 1}),
        (
            "a corner, scale, shift",
            {"pos_x": 0.9, "pos_y": 0.13, "scale": 2.0, "shift": 0.5},
            {"crop_pos_x": 0.9, "crop_pos_y": 0.13, "scale": 2.0, "shift": 0.5, "output_layout": "CHW"},
        ),
        ("4 channels", {"pad_output": True}, {"pad_output": True, "output_layout": "CHW"}),
        ("float16", {"dtype": "float16"}, {"dtype": types.FLOAT16, "output_layout": "CHW"}),
    ):
        tolerance = 1e-3 if what == "float16" else 1e-5
        cases.append(
            case("crop_mirror_normalize", what, crop | norm | mine, crop | norm | theirs, worst=tolerance, share=0)
        )
    larger = {"crop": (230, 270), "out_of_bounds_policy": "pad", "fill_values": [1.0, 2.0, 3.0]}
    cases.append(
        case(
            "crop_mirror_normalize",
            "larger than the image",
            larger,
            larger | {"output_layout": "CHW"},
            worst=0,
            share=0,
        )
    )
    bytes_of = {"crop": (128, 100), "scale": 0.77, "output_layout": "HWC"}
    cases.append(
        case(
            "crop_mirror_normalize",
            "uint8",
            bytes_of | {"dtype": "uint8"},
            bytes_of | {"dtype": types.UINT8},
            share=0,
        )
    )
    for y, x in ((0.5, 0.5), (0.0, 1.0), (0.37, 0.81)):
        cases.append(
            case(
                "crop",
                f"at ({y}, {x})",
                {"size": (101, 97), "pos_y": y, "pos_x": x},
                {"crop": (101, 97), "crop_pos_y": y, "crop_pos_x": x},
                worst=0,
                share=0,
            )
        )
    # DALI's positions are floats: 0.7 of the remaining 5 pixels is less than 3.5.
    y, x = float(np.float32(0.7)), float(np.float32(0.1))
    cases.append(
        case(
            "crop",
            "at positions as floats",
            {"size": (195, 255), "pos_y": y, "pos_x": x},
            {"crop": (195, 255), "crop_pos_y": 0.7, "crop_pos_x": 0.1},
            worst=0,
            share=0,
        )
    )
    cases.append(case("flip", "horizontal", {}, {}, worst=0, share=0))
    both = {"horizontal": True, "vertical": True}
    cases.append(case("flip", "both", both, {"horizontal": 1, "vertical": 1}, worst=0, share=0))
    cases.append(
        Case(
            "normalize",
            "by channel",
            lambda x: ours.normalize(x, **norm),
            lambda x: dali.normalize(
                x,
                mean=np.array(norm["mean"], np.float32).reshape(1, 1, 3),
                stddev=np.array(norm["std"], np.float32).reshape(1, 1, 3),
            ),
            worst=1e-5,
            share=0,
        )
    )
    return cases


def decoding() -> list[Case]:
    """Returns the cases of operators on files."""
    exact = {"worst": 0, "share": 0}
    place = {"y": 17, "x": 101, "height": 133, "width": 97}
    shares = {"y": 0.13, "x": 0.25, "height": 0.6, "width": 0.3333}
    normalized = {"normalized_anchor": True, "normalized_shape": True}
    return [
        Case("decode", "JPEG", ours.decode, dali.decoders.image, share=0),
        Case("peek_shape", "JPEG", ours.peek_shape, dali.peek_image_shape, **exact),
        Case(
            "window",
            "slice of a decode",
            lambda e: ours.window(ours.decode(e), **place),
            lambda e: dali.decoders.image_slice(e, start=(17, 101), shape=(133, 97), axes=(0, 1)),
            **exact,
        ),
        Case(
            "window",
            "slice of a decode, by shares",
            lambda e: ours.window(ours.decode(e), **shares, **normalized),
            lambda e: dali.decoders.image_slice(e, rel_start=(0.13, 0.25), rel_shape=(0.6, 0.3333), axes=(0, 1)),
            **exact,
        ),
        Case(
            "crop",
            "of a decode",
            lambda e: ours.crop(ours.decode(e), size=(224, 200), pos_y=0.3, pos_x=0.8),
            lambda e: dali.decoders.image_crop(e, crop=(224, 200), crop_pos_y=0.3, crop_pos_x=0.8),
            **exact,
        ),
    ]


def resize_crop_mirror(rule: str) -> list[Case]:
    cases = []
    antialias = rule == "dali"  # Pillow's border differs
    for what, mine, theirs in (
        ("shorter", {"shorter": 150}, {"resize_shorter": 150}),
        ("one side", {"size": (0, 300), "mode": "default"}, {"resize_x": 300}),
        ("stretched", {"size": (160, 170)}, {"size": (160, 170)}),
    ):
        for mirror in (False, True):

            def composed(x: Any, mine: dict[str, Any] = mine, mirror: bool = mirror) -> Any:
                resized = ours.resize(x, subpixel_scale=True, antialias=antialias, rule=rule, **mine)
                return ours.flip(ours.crop(resized, size=(128, 140), pos_y=0.2, pos_x=0.6), horizontal=mirror)

            def fused(x: Any, theirs: dict[str, Any] = theirs, mirror: bool = mirror) -> Any:
                crop = {"crop": (128, 140), "crop_pos_y": 0.2, "crop_pos_x": 0.6}
                return dali.resize_crop_mirror(x, antialias=antialias, mirror=int(mirror), **crop, **theirs)

            what_now = f"resize ({what}), crop{', flip' if mirror else ''}"
            cases.append(Case("resize_crop_mirror", what_now, composed, fused, share=0, rule=rule))
    return cases


def places() -> list[Case]:
    exact = {"worst": 0, "share": 0}
    cases = [
        case("pad", "align", *[{"axes": (0, 1), "align": (64, 64), "fill_value": 9}] * 2, **exact),
        case("pad", "shape", *[{"axes": (0, 1), "shape": (211, 300)}] * 2, **exact),
        case("reshape", "-1", *[{"shape": (-1, 13)}] * 2, **exact),
        case("slice", "start, shape", *[{"start": (3, 5), "shape": (20, 30), "axes": (0, 1)}] * 2, **exact),
        case("slice", "start, end", *[{"start": (3, 5), "end": (20, 30), "axes": (1, 0)}] * 2, **exact),
        case(
            "slice",
            "outside, filled",
            {"start": (-5, 200), "shape": (90, 90), "axes": (0, 1), "out_of_bounds_policy": "pad", "fill_values": 7},
            {"start": (-5, 200), "shape": (90, 90), "axes": (0, 1), "out_of_bounds_policy": "pad", "fill_values": [7]},
            **exact,
        ),
    ]
    for start, shape in (((0.15, 0.05), (0.35, 0.9)), ((0.333, 0.125), (0.4567, 0.77)), ((0.0025, 0.0), (0.5, 1.0))):
        both = {"rel_start": start, "rel_shape": shape, "axes": (0, 1)}
        cases.append(case("slice", f"shares {start} {shape}", both, both, **exact))
    for what, both in (
        ("one region", {"anchor": (10, 20), "shape": (50, 60.7)}),
        ("two, colour", {"anchor": (10, 20, 90.5, 99.9), "shape": (50, 60, 30.5, 80), "fill_value": (1, 2, 3)}),
        ("normalized", {"anchor": (0.29, 0.1), "shape": (0.29, 0.7), "normalized": True}),
        (
            "normalized, centred",
            {"anchor": (0.3, 0.7), "shape": (0.41, 0.7), "normalized": True, "centered_anchor": True},
        ),
    ):
        cases.append(case("erase", what, both, both, **exact))
    for what, both in (
        ("sigma 1.7", {"sigma": 1.7}),
        ("window 7", {"window_size": 7}),
        ("sigma 0.5, window 9", {"sigma": 0.5, "window_size": 9}),
        ("sigma 12", {"sigma": 12.0}),
    ):
        cases.append(case("gaussian_blur", what, both, both, share=0))
        cases.append(case("gaussian_blur", what + ", float32", both, both, share=0, worst=1e-5, floats=True))
    for quality in (1, 10, 50, 95, 100):
        both = {"quality": quality}
        cases.append(case("jpeg_compression_distortion", f"quality {quality}", both, both, share=0))
    return cases
