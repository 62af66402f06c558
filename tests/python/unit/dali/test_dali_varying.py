# SPDX-License-Identifier: Apache-2.0
"""Outputs whose samples have several shapes: their forms, and their values in a batch of a job."""

import numpy as np
import pytest
from leat.dali._varying import Form, Outputs
from leat.errors import InvalidArgument

FILE = 'output "a" is an encoded image, want a tensor: decode it'
VARIES = 'output "a" is uint8 (?,), whose size differs from sample to sample; want one size: resize, crop or pad it'
PLANE = 'output "b" is float32 (?, 3, ?), whose size differs from sample to sample'


def made(outputs, *texts):
    """Returns the forms that a maker accepts after raising errors with these texts."""
    left = list(texts)

    def make(forms):
        if left:
            raise InvalidArgument(left.pop(0))
        return dict(forms)

    return outputs.made(make)


def test_an_output_gets_the_form_that_its_error_asks_for():
    assert made(Outputs()) == {} and not Outputs().vary
    outputs = Outputs()
    forms = made(outputs, FILE, VARIES, PLANE)
    assert forms == {"a": Form(True, (None,)), "b": Form(False, (None, 3, None))}
    assert outputs.vary


@pytest.mark.parametrize("texts", [("batch 0: want more",), (VARIES, VARIES), (FILE, FILE), (VARIES, FILE)])
def test_an_error_that_no_form_mends_is_raised(texts):
    with pytest.raises(InvalidArgument) as error:
        made(Outputs(), *texts)
    assert str(error.value) == texts[-1]


def batch_of(form, samples):
    """Returns samples as a job gives them: cut to its room, and padded with 9."""
    rows = np.full((len(samples), form.room), 9, np.float32)
    for row, sample in zip(rows, samples):
        cut = sample.ravel()[: form.room]
        row[: len(cut)] = cut
    batch = {"b": rows, "c": np.arange(len(samples))}
    for axis in (0, 2):
        batch[f"b, size of axis {axis}"] = np.int32([sample.shape[axis] for sample in samples])
    return batch


def test_samples_are_cut_out_of_their_rows_and_large_ones_get_another_job():
    outputs = Outputs()
    form = made(outputs, PLANE)["b"]
    small = [np.ones((2, 3, 2)), np.zeros((0, 3, 4)), np.arange(12.0).reshape(1, 3, 4)]
    given = outputs.values(batch_of(form, small), ["b", "c"])
    assert [each.tolist() for each in given["b"]] == [each.tolist() for each in small]
    assert given["c"].tolist() == [0, 1, 2]
    alike = outputs.values(batch_of(form, small[:1] * 2), ["b"])["b"]
    assert alike.shape == (2, 2, 3, 2) and (alike == 1).all()

    large = [*small, np.arange(15000.0).reshape(100, 3, 50)]
    assert outputs.values(batch_of(form, large), ["b", "c"]) is None
    wider = made(outputs, PLANE)["b"]
    assert wider.room == 16384
    assert outputs.values(batch_of(form, large), ["b"]) is None  # a batch of the previous job
    np.testing.assert_array_equal(outputs.values(batch_of(wider, large), ["b"])["b"][3], large[3])
