# SPDX-License-Identifier: Apache-2.0
"""The HTML that a notebook shows for a job and for a sample."""

import base64
import re
import struct
import zlib

import numpy as np
import pytest

import leat
from leat._service import show


def decoded(text):
    """Returns pixels of the PNG in an HTML text, decoded strictly by its standard."""
    (data,) = re.findall(r"data:image/png;base64,([^\"]*)", text)
    data = base64.b64decode(data)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + body)
        chunks[name], at = body, at + 12 + size
    width, height, depth, kind = struct.unpack(">2I2B", chunks[b"IHDR"][:10])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert depth == 8 and not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, {0: 1, 2: 3}[kind])


def test_a_sample_is_shown_as_a_picture(job):
    sample = job.sample(3)
    text = sample._repr_html_()
    np.testing.assert_array_equal(decoded(text), sample["image"])
    assert "label" in text and "<td>3</td>" in text


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (1, 5, 7), (3, 5, 7), (5, 7, 3)])
def test_floats_are_scaled_to_their_range(shape):
    array = np.linspace(-2, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    pixels = decoded(show.sample({"x": array}))
    assert pixels.shape[:2] == (5, 7) and pixels.min() == 0 and pixels.max() == 255


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros((0, 4, 3)), np.zeros((4, 4, 3), bool), np.zeros((2, 2, 2, 3)), np.float32(1)]
)
def test_what_is_no_picture_is_text(array):
    assert "<img" not in show.sample({"x": array})


def test_a_large_picture_is_made_smaller():
    assert decoded(show.sample({"x": np.zeros((2000, 30, 3), np.uint8)})).shape == (500, 8, 3)


def test_constant_floats_and_nan_are_shown():
    assert not decoded(show.sample({"x": np.full((4, 4), np.nan, np.float32)})).any()


def test_a_job_is_a_table(job):
    text = job._repr_html_()
    for fact in ("100", "10 rows, 10 steps an epoch", "image: uint8 (8, 8, 3)", "0123456789ab"):
        assert fact in text, fact


def test_names_are_no_markup():
    text = show.sample({"<script>": np.zeros(1)})
    assert "<script>" not in text and "&lt;script&gt;" in text


def test_a_sample_is_a_dict(job):
    assert isinstance(job.sample(0), dict) and dict(job.sample(0)).keys() == {"image", "label"}
    assert isinstance(leat.Job.sample.__annotations__["return"], str)
