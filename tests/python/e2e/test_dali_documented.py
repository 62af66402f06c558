# SPDX-License-Identifier: Apache-2.0
"""Calls that leat.dali computes as DALI documents them, or refuses."""

import functools

import leat
import numpy as np
import pytest
from leat.dali import fn, pipeline_def, types
from leat.dali.types import Constant


def outputs_of(function, batch_size=2):
    return [np.array(each) for each in pipeline_def(batch_size=batch_size)(function)().run()]


def given(array, **arguments):
    return fn.external_source(lambda: array, **arguments)


def floats(*shape):
    return np.arange(2 * np.prod(shape), dtype=np.float32).reshape(2, *shape)


def refused(function, words):
    with pytest.raises(leat.Error, match=words):
        outputs_of(function)


@pytest.mark.parametrize(
    ("join", "words"),
    [
        (lambda: fn.cat(fn.zeros(shape=(2, 3)), fn.zeros(shape=(2, 1))), "fn.cat: inputs are .*same sizes"),
        (lambda: fn.stack(fn.zeros(shape=(2, 3)), fn.zeros(shape=(1, 3))), "fn.stack: inputs are .*same sizes"),
        (lambda: fn.cat(fn.zeros(shape=2), fn.zeros(shape=2, dtype=types.FLOAT)), "fn.cat: inputs are .*one type"),
    ],
)
def test_values_of_other_sizes_or_types_are_not_joined(join, words):
    refused(join, words)


@pytest.mark.parametrize("arguments", [{}, {"shape": (6,)}, {"rel_shape": (1.0, 1.0)}])
def test_a_layout_names_all_axes_of_a_reshaped_value(arguments):
    refused(lambda: fn.reshape(fn.zeros(shape=(2, 3)), layout="HWC", **arguments), "layout = 'HWC' of . axes; expected")


def test_values_of_other_sizes_along_the_axis_are_joined():
    joined = outputs_of(lambda: fn.cat(fn.ones(shape=(2, 3)), fn.zeros(shape=(1, 3))))[0]
    assert joined[0].tolist() == [[1] * 3, [1] * 3, [0] * 3]


def test_a_value_whose_axes_are_not_known_is_not_left_without_padding(tmp_path):
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.ones((i + 1, 2), np.float32))

    def padded(**arguments):
        return fn.pad(fn.readers.numpy(file_root=str(tmp_path)), **arguments)

    for arguments in ({}, {"align": 4}, {"shape": (4, -1)}):
        refused(functools.partial(padded, **arguments), "fn.pad: the number of axes of .* is not known.*expected shape")
    assert outputs_of(functools.partial(padded, shape=(3, 3)))[0].shape == (2, 3, 3)


def test_a_blur_of_a_value_without_a_layout_is_refused():
    """DALI blurs all its axes, also channels."""
    refused(lambda: fn.gaussian_blur(given(floats(4, 4, 3)), sigma=1.0), "fn.gaussian_blur: a value without a layout")
    blurred = outputs_of(lambda: fn.gaussian_blur(given(floats(4, 4, 3), layout="HWC"), sigma=1.0))[0]
    assert blurred.shape == (2, 4, 4, 3)


@pytest.mark.parametrize("layout", ["WHC", "HCW", "CWH"])
@pytest.mark.parametrize(
    "use",
    [
        fn.flip,
        lambda x: fn.resize(x, size=(2, 2)),
        lambda x: fn.rotate(x, angle=90.0),
        lambda x: fn.crop(x, crop=(2, 2)),
        lambda x: fn.crop_mirror_normalize(x, crop=(2, 2)),
        lambda x: fn.hue(x, hue=90.0),
    ],
)
def test_an_image_whose_axes_are_in_another_order_is_refused(use, layout):
    refused(lambda: use(given(floats(3, 3, 3), layout=layout, dtype=types.FLOAT)), f"the layout '{layout}'; expected")


def test_one_region_varies_and_several_do_not():
    def erased(anchor, shape):
        corner = given(np.tile(np.float32(anchor), (2, 1)))
        return fn.erase(given(floats(4, 4, 1), layout="HWC"), anchor=corner, shape=shape, fill_value=-1.0)

    assert (outputs_of(lambda: erased((1, 2), (2, 1)))[0][0, 1:3, 2] == -1).all()
    for shape in ((1, 1, 1, 1), (1,), ()):
        refused(lambda: erased((1, 2), shape), "fn.erase: shape = .*expected two numbers")  # noqa: B023
    with pytest.raises(leat.Error, match="4 elements"):
        outputs_of(lambda: erased((0, 0, 2, 2), (1, 1)))


def test_whole_numbers_of_a_source_are_no_shares_of_the_size():
    def parts(dtype, **arguments):
        anchor = given(np.array([[0, 0], [1, 0]], dtype), **arguments)
        return fn.slice(given(floats(2, 2, 1), layout="HWC"), anchor, Constant([1, 1]), axes=(0, 1))

    assert outputs_of(lambda: parts(np.int64))[0].ravel().tolist() == [0.0, 6.0]

    @pipeline_def(batch_size=2)
    def fed():
        anchor = fn.external_source(name="anchor")
        return fn.slice(given(floats(2, 2, 1), layout="HWC"), anchor, anchor, axes=(0, 1))

    with pytest.raises(leat.InvalidArgument, match="gave int64 without saying so, and the values of fn.slice: the "):
        fed().run(anchor=np.array([[0, 0], [1, 1]]))


def test_as_many_places_as_axes_are_given():
    refused(
        lambda: fn.slice(given(floats(2, 2, 1), layout="HWC"), fn.random.uniform(shape=3), Constant([0.5, 0.5])),
        "fn.slice: the anchor has 3 numbers; expected 2",
    )


def test_filters_of_triangles_are_antialiased_as_the_script_says():
    def resized():
        x = given((floats(8, 8, 1) % 7).astype(np.uint8) * 30, layout="HWC", dtype=types.UINT8)
        return tuple(
            fn.resize(x, size=(3, 3), antialias=antialias, interp_type=filter, **more)
            for antialias in (False, True)
            for filter, more in (
                (types.INTERP_LINEAR, {}),
                (types.INTERP_TRIANGULAR, {}),
                (types.INTERP_CUBIC, {}),
                (types.INTERP_CUBIC, {"mag_filter": types.INTERP_TRIANGULAR}),
            )
        )

    found = outputs_of(resized)
    for linear, triangular, cubic, mixed in (found[:4], found[4:]):
        assert (linear == triangular).all() and (cubic == mixed).all()
    assert (found[0] != found[4]).any() and (found[2] != found[6]).any()


@pytest.mark.parametrize("resize", [fn.resize, fn.random_resized_crop])
def test_pixels_of_a_type_that_is_not_known_are_bytes_where_bytes_are_asked_for(resize):
    def resized(array):
        return resize(given(array, layout="HWC"), size=(2, 2), dtype=types.UINT8)

    assert outputs_of(lambda: resized(floats(4, 4, 1).astype(np.uint8)))[0].dtype == np.uint8
    refused(lambda: resized(floats(4, 4, 1)), "gave float32 without saying so, and the values of fn.*dtype = .*UINT8")


@pytest.mark.parametrize(
    "call",
    [
        lambda: fn.readers.file(files={"/a.jpg", "/b.jpg"}),
        lambda: fn.readers.numpy(files={"/a.npy", "/b.npy"}),
        lambda: fn.readers.tfrecord(path={"/a", "/b"}, features={}),
        lambda: fn.readers.webdataset(paths=["/a.tar"], ext={"jpg", "cls"}),
        lambda: fn.readers.coco(annotations_file="/a", images={"a.jpg"}),
    ],
)
def test_a_set_has_no_order_of_files(call):
    with pytest.raises(leat.InvalidArgument, match="is a set, which has no order; expected a list"):
        call()


def test_an_odd_value_is_told_without_the_secrets_of_an_address():
    with pytest.raises(leat.InvalidArgument, match="expected values of other kinds") as caught:
        fn.readers.numpy(file_root="https://me:word@host/a", files=5)
    assert "word" not in str(caught.value)
