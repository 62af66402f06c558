# SPDX-License-Identifier: Apache-2.0
"""The HTML that notebooks show: a job as a table, a sample as pictures."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Iterable, Mapping

import numpy as np

_MAX_SIDE = 512  # longest side of a picture, in pixels
_MAX_TEXT = 200  # longest text of an array that is not a picture


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th style=\"text-align: left\">{name}</th><td>{value}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"


def facts(named: Mapping[str, str]) -> str:
    """Returns a table of texts, which may contain anything."""
    return _table((name, html.escape(value)) for name, value in named.items())


def _pixels(array: np.ndarray) -> np.ndarray | None:
    """Returns a picture's bytes as (height, width, channels); None: the array is not a picture."""
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or 0 in array.shape or array.dtype == bool:
        return None
    if array.shape[2] not in (1, 3) and array.shape[0] in (1, 3):
        array = array.transpose(1, 2, 0)
    if array.shape[2] not in (1, 3) or min(array.shape[:2]) < 2:
        return None
    stride = -(-max(array.shape[:2]) // _MAX_SIDE)
    array = array[::stride, ::stride]
    if array.dtype != np.uint8:
        array = np.nan_to_num(array.astype(np.float64))
        low, high = array.min(), array.max()
        array = ((array - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8)
    return array


def _png(pixels: np.ndarray) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter's number, 0: none
    rows[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">2I5B", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows.tobytes())), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _value(array: np.ndarray) -> str:
    pixels = _pixels(array)
    if pixels is None:
        text = np.array2string(array, threshold=16)
        return html.escape(text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + " …")
    return f"<img src=\"data:image/png;base64,{base64.b64encode(_png(pixels)).decode()}\">"


def sample(fields: Mapping[str, np.ndarray]) -> str:
    """Returns a table of the fields; those that can be are shown as pictures, scaled to their range unless uint8."""
    return _table(
        (f"{html.escape(name)}<br><small>{array.dtype} {array.shape}</small>", _value(np.asarray(array)))
        for name, array in fields.items()
    )
