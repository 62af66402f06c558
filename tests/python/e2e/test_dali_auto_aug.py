# SPDX-License-Identifier: Apache-2.0
"""Augmentations and policies of a script's own: leat.dali.auto_aug.core, .augmentations and the apply_… functions."""

import pathlib
import re
import warnings

import leat
import numpy as np
import pytest
from leat.dali import fn, pipeline_def, types
from leat.dali.auto_aug import augmentations as a
from leat.dali.auto_aug import auto_augment, rand_augment, trivial_augment
from leat.dali.auto_aug.core import Policy, augmentation, select, signed_bin

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "augmentations.txt"
BATCH = 32
IMAGES = np.random.default_rng(7).integers(0, 256, (BATCH, 20, 30, 3), dtype=np.uint8)


def outputs(function, seed=11, steps=1):
    """Returns the function's outputs for IMAGES, each of shape (BATCH, …); several steps are concatenated."""

    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, seed=seed)
    def pipeline():
        made = function(fn.external_source(lambda: IMAGES, batch=True, layout="HWC"))
        return made if isinstance(made, tuple) else (made,)

    built = pipeline()
    built.build()
    found = [[np.asarray(each.as_array()) for each in built.run()] for _ in range(steps)]
    return [np.concatenate(each) for each in zip(*found)]


def output(function, **options):
    (found,) = outputs(function, **options)
    return found


def which(found, candidates):
    """Returns for each sample the index of the one candidate that it equals."""
    equal = np.array([(found == each).all(axis=(1, 2, 3)) for each in candidates])
    assert (equal.sum(axis=0) == 1).all()
    return equal.argmax(axis=0)


@augmentation(mag_range=(0, 40), randomly_negate=True)
def turn(data, angle, fill_value=0):
    return fn.rotate(data, angle=angle, fill_value=fill_value, keep_size=True)


@augmentation(mag_range=(0, 100), mag_to_param=np.uint8)
def darker(data, by):
    return fn.cast((data > by) * (data - by), dtype=types.UINT8)


# --- Tables: the C++ tests compare the named operators with these ---------------------------------------------------


def numbers(one, bins, sign):
    magnitudes = one._get_magnitudes(bins) if one.mag_range is not None else []
    made = []
    for magnitude in magnitudes:
        parameter = np.asarray(one.mag_to_param(magnitude * sign), dtype=np.float64).ravel()
        made.append(float(parameter[0] if one.name == "sharpness" else parameter[np.abs(parameter).argmax()]))
    return made


def signs(one):
    return (1, -1) if one.randomly_negate else (1,)


def tables():
    suites = {
        "rand_augment": rand_augment.get_rand_augment_suite(),
        "rand_augment_non_monotonic": rand_augment.get_rand_augment_non_monotonic_suite(),
        "trivial_augment_wide": trivial_augment.get_trivial_augment_wide_suite(),
    }
    for suite, augmentations in suites.items():
        for one in augmentations:
            for sign in signs(one):
                yield [suite, one.name, str(sign), *numbers(one, 31, sign)]
    policies = {
        "image_net": auto_augment.get_image_net_policy(),
        "reduced_cifar10": auto_augment.get_reduced_cifar10_policy(),
        "reduced_image_net": auto_augment.get_reduced_image_net_policy(),
        "svhn": auto_augment.get_svhn_policy(),
    }
    for name, policy in policies.items():
        for i, steps in enumerate(policy.sub_policies):
            for stage, (one, probability, place) in enumerate(steps):
                for sign in signs(one):
                    found = numbers(one, policy.num_magnitude_bins, sign)
                    yield [name, str(i), str(stage), one.name, f"{probability:g}", str(sign), *found[place or 0 :][:1]]


def test_lists_and_policies_are_dalis():
    wanted = [line.split() for line in GOLDEN.read_text().splitlines() if line and not line.startswith("#")]
    found = list(tables())
    assert len(found) == len(wanted)
    for ours, dalis in zip(found, wanted):
        words = [each for each in ours if isinstance(each, str)]
        assert words == dalis[: len(words)]
        np.testing.assert_allclose(ours[len(words) :], [float(each) for each in dalis[len(words) :]], rtol=1e-6)


# --- Augmentations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", a.__all__)
def test_each_is_what_the_operator_makes_of_its_magnitude(name):
    one = getattr(a, name)
    more = {"shape": (20, 30)} if name in ("translate_x", "translate_y") else {}
    if one.mag_range is None:
        number = None
    else:
        parameter = np.ravel(one.parameter_of(one._get_magnitudes(11)[4])).astype(np.float64)
        number = float(parameter[np.abs(parameter).argmax()]) * {"translate_x": 30, "translate_y": 20}.get(name, 1)
    if name == "posterize":
        number = 8 - np.log2(256 - number)
    found = output(lambda x: one(x, magnitude_bin=signed(4), num_magnitude_bins=11, **more))
    operation = name.removesuffix("_no_shape")
    given = {} if number is None else {"magnitude": float(np.float32(number))}
    wanted = output(lambda x: x.like("augment", operation=operation, rule="dali", **given))
    np.testing.assert_array_equal(found, wanted)


def signed(place, sign=0):
    return signed_bin(place, random_sign=types.Constant(np.int32(sign)))


def test_a_magnitude_that_is_negated():
    found = output(lambda x: turn(x, magnitude_bin=signed(2, 1), num_magnitude_bins=5, fill_value=9))
    np.testing.assert_array_equal(found, output(lambda x: fn.rotate(x, angle=-20.0, fill_value=9, keep_size=True)))


def test_a_sign_is_drawn_for_each_sample():
    both = [
        output(lambda x, angle=angle: fn.rotate(x, angle=angle, fill_value=0, keep_size=True))
        for angle in (20.0, -20.0)
    ]
    drawn = which(output(lambda x: turn(x, magnitude_bin=2, num_magnitude_bins=5)), both)
    assert set(drawn) == {0, 1}


def test_a_bin_may_vary_from_sample_to_sample():
    def made(x):
        place = fn.random.uniform(values=[0, 1, 2], dtype=types.INT32)
        return darker(x, magnitude_bin=place, num_magnitude_bins=3), place

    found, places = outputs(made)
    wanted = np.maximum(IMAGES.astype(np.int32) - places.reshape(-1, 1, 1, 1) * 50, 0)
    np.testing.assert_array_equal(found, wanted)
    assert set(places) == {0, 1, 2}


def test_a_bin_may_come_from_a_source_whose_shape_nobody_says():
    places = np.arange(BATCH, dtype=np.int32) % 3

    def made(x):
        return darker(x, magnitude_bin=fn.external_source(lambda: places, batch=True), num_magnitude_bins=3)

    found = output(made)
    np.testing.assert_array_equal(found, np.maximum(IMAGES.astype(np.int32) - places.reshape(-1, 1, 1, 1) * 50, 0))


@pytest.mark.parametrize("place", [-1, 3])
@pytest.mark.parametrize("one", [darker, turn])
def test_a_bin_of_a_node_that_is_out_of_range_is_no_other_magnitude(one, place):
    places = np.full(BATCH, place, np.int32)

    def made(x):
        return one(x, magnitude_bin=fn.external_source(lambda: places, batch=True), num_magnitude_bins=3)

    with pytest.raises(leat.InvalidArgument, match=r"slice of the elements .* of axis 0, which has [36]"):
        output(made)


def test_magnitudes_may_be_listed_and_replaced():
    listed = darker.augmentation(mag_range=np.array([3, 90]), name="listed")
    assert (listed.name, darker.name, listed.op) == ("listed", "darker", darker.op)
    found = output(lambda x: listed(x, magnitude_bin=1))
    np.testing.assert_array_equal(found, np.maximum(IMAGES.astype(np.int32) - 90, 0))


def test_a_parameter_may_be_a_vector():
    @augmentation(mag_range=(0, 4), mag_to_param=lambda magnitude: np.float32([magnitude, 2 * magnitude, 0]))
    def tinted(data, by):
        return fn.cast(data + by, dtype=types.FLOAT)

    def made(x):
        place = fn.random.uniform(values=[3, 3], dtype=types.INT32)
        return tinted(x, magnitude_bin=place, num_magnitude_bins=5)

    np.testing.assert_array_equal(output(made), IMAGES + np.float32([3, 6, 0]))


def test_one_of_no_magnitude_takes_no_bin():
    @augmentation
    def upside_down(data, parameter):
        assert parameter is None
        return fn.flip(data, horizontal=0, vertical=1)

    np.testing.assert_array_equal(output(lambda x: upside_down(x, magnitude_bin=3)), IMAGES[:, ::-1])


def test_a_shape_that_is_not_the_images_is_refused():
    def image():
        return fn.crop(fn.external_source(lambda: IMAGES, batch=True, layout="HWC", dtype=types.UINT8), crop=(10, 12))

    right = [(10, 12), [10, 12, 3], np.array([10, 12]), types.Constant([10, 12, 3]), None]
    wrong = [(12, 10), np.array([500, 375, 3]), types.Constant([10, 13])]
    for apply in (
        lambda shape: rand_augment.rand_augment(image(), 1, 2, shape=shape),
        lambda shape: trivial_augment.trivial_augment_wide(image(), shape=shape),
        lambda shape: auto_augment.auto_augment(image(), shape=shape),
    ):
        for shape in right:
            apply(shape)
        apply(image().shape())
        apply([image().shape()[0], 12])
        for shape in wrong:
            with pytest.raises(leat.InvalidArgument, match="shape = .* and its input has (height|width).*expected the"):
                apply(shape)


def test_parameters_have_the_types_of_dalis_constants():
    @augmentation(mag_range=np.array([3, 90]))
    def parameter_alone(data, parameter):
        return fn.reshape(parameter, shape=(1,))

    def drawn():
        return fn.random.uniform(values=[1, 1], dtype=types.INT32)

    kinds = {np.asarray: np.int32, np.float16: np.float16, np.float64: np.float32, np.uint8: np.uint8}
    for made, wanted in kinds.items():
        one = parameter_alone.augmentation(mag_to_param=made)
        constant = output(lambda x, one=one: one(x, magnitude_bin=1))
        varying = output(lambda x, one=one: one(x, magnitude_bin=drawn()))
        assert (constant.dtype, varying.dtype) == (wanted, wanted)
        assert constant.ravel().tolist() == varying.ravel().tolist() == [90] * BATCH


# --- Choosing -------------------------------------------------------------------------------------------------------


def test_select_takes_the_one_at_each_samples_index():
    def made(x):
        place = fn.random.uniform(values=[0, 1, 2], dtype=types.INT32)
        return select([a.invert, a.identity, turn], place, x, magnitude_bin=signed(1), num_magnitude_bins=2), place

    found, places = outputs(made)
    turned = output(lambda x: fn.rotate(x, angle=40.0, fill_value=0, keep_size=True))
    np.testing.assert_array_equal(which(found, [255 - IMAGES, IMAGES, turned]), places.reshape(-1))
    assert set(places.reshape(-1)) == {0, 1, 2}


def test_trivial_augment_draws_an_augmentation_and_a_magnitude():
    found = output(lambda x: trivial_augment.apply_trivial_augment([a.invert, darker], x, 3), steps=3)
    candidates = [255 - IMAGES, *(np.maximum(IMAGES.astype(np.int32) - by, 0) for by in (0, 50, 100))]
    counts = np.bincount(which(found, [np.tile(each, (3, 1, 1, 1)) for each in candidates]), minlength=4)
    assert counts[0] > 30 and counts[1:].min() > 5


def test_rand_augment_draws_n_of_the_same_magnitude():
    half = np.maximum(IMAGES.astype(np.int32) - 50, 0).astype(np.uint8)
    twice = np.maximum(IMAGES.astype(np.int32) - 100, 0).astype(np.uint8)
    both = (255 - half, np.maximum(205 - IMAGES.astype(np.int32), 0))
    found = output(lambda x: rand_augment.apply_rand_augment([a.invert, darker], x, n=2, m=1, num_magnitude_bins=3))
    assert set(which(found, [IMAGES, twice, *both])) == {0, 1, 2, 3}


def test_a_policy_draws_a_sequence_and_does_its_steps_in_order():
    policy = Policy("mine", 3, [[(darker, 1.0, 1), (a.invert, 1, None)], [(a.invert, 1.0, None), (darker, 0.5, 2)]])
    half = np.maximum(IMAGES.astype(np.int32) - 50, 0)
    candidates = [255 - half, 255 - IMAGES, np.maximum(155 - IMAGES.astype(np.int32), 0)]
    assert set(which(output(lambda x: auto_augment.apply_auto_augment(policy, x)), candidates)) == {0, 1, 2}


@pytest.mark.parametrize("shape", [None, (20, 30)])
def test_the_known_lists_and_policies_run(shape):
    use, more = shape is not None, {} if shape is None else {"shape": shape}

    def made(x):
        return (
            rand_augment.apply_rand_augment(rand_augment.get_rand_augment_suite(use), x, 1, 17, **more),
            trivial_augment.apply_trivial_augment(trivial_augment.get_trivial_augment_wide_suite(use), x, **more),
            auto_augment.apply_auto_augment(auto_augment.get_svhn_policy(use), x, fill_value=None, **more),
        )

    once, again = outputs(made), outputs(made)
    for first, second in zip(once, again):
        assert first.shape == IMAGES.shape and first.dtype == np.uint8
        np.testing.assert_array_equal(first, second)
        assert (first != IMAGES).any(axis=(1, 2, 3)).sum() > BATCH // 2


def test_a_seed_changes_what_is_drawn():
    def made(seed):
        return output(lambda x: trivial_augment.apply_trivial_augment([a.invert, a.identity], x, seed=seed))

    assert (made(1) != made(2)).any()


def test_names_of_a_policys_augmentations_differ():
    other = darker.augmentation(mag_range=(1, 2))
    policy = Policy("mine", 4, [[(darker, 0.1, 0)], [(other, 0.2, 1), (darker, 1, 3)]])
    assert policy.augmentations == {"darker": darker, "darker_2": other}
    assert "('darker_2', 0.2, 1)" in repr(policy)


# --- Wrong use ------------------------------------------------------------------------------------------------------


SECOND = {"magnitude_bin": 1, "num_magnitude_bins": 3}


def varying():
    return {"magnitude_bin": fn.random.uniform(values=[0, 1], dtype=types.INT32), "num_magnitude_bins": 2}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: darker(x, num_magnitude_bins=3), "darker: it has magnitudes, and no magnitude_bin"),
        (lambda x: darker(x, magnitude_bin=3, num_magnitude_bins=3), "magnitude_bin = 3; .* from 0 to 2"),
        (lambda x: darker(x, magnitude_bin=0), "num_magnitude_bins = None; expected a whole number 1 or more"),
        (lambda x: a.translate_x(x, **SECOND), "translate_x: it needs shape"),
        (lambda x: a.sharpness.augmentation(mag_to_param=lambda m: np.eye(3) * m)(x, **SECOND), "a filter of its own"),
        (lambda x: a.solarize_add.augmentation((100, 200))(x, **SECOND), "shift = .*150.*0 to 127"),
        (lambda x: darker.augmentation(mag_to_param=lambda m: fn.random.uniform())(x, **SECOND), "gives a node"),
        (
            lambda x: darker.augmentation(mag_to_param=lambda m: np.zeros(65))(x, **varying()),
            "65 numbers; expected 1 to 64",
        ),
        (lambda x: darker.augmentation(mag_to_param=lambda m: np.zeros(int(m) + 1))(x, **varying()), "one type and"),
        (lambda x: darker.augmentation(mag_range=3)(x, **SECOND), "mag_range = 3; expected"),
        (lambda x: darker.augmentation(mag_range=np.arange(4))(x, **SECOND), "num_magnitude_bins = 3; expected 4"),
        (lambda x: signed_bin(1, signed(0).random_sign, seed=3), "random_sign is given, and seed"),
        (lambda x: select([], fn.random.coin_flip(), x), "select: no operations"),
        (lambda x: rand_augment.apply_rand_augment([], x, 1, 1), "augmentations is empty"),
        (lambda x: rand_augment.apply_rand_augment([a.invert], x, 1, 31), "m = 31; .* from 0 to 30"),
        (lambda x: rand_augment.apply_rand_augment([a.invert], x, -1, 1), "n = -1; expected a whole number 0 or more"),
        (lambda x: trivial_augment.apply_trivial_augment([a.invert], x, 3, fill=3), "no augmentation takes fill"),
        (lambda x: auto_augment.apply_auto_augment(Policy("mine", 3, []), x), "the policy mine is empty"),
    ],
)
def test_wrong_use_is_named_with_the_line(wrong, words):
    with pytest.raises(leat.InvalidArgument) as caught:
        output(wrong)
    assert re.search(words, str(caught.value)), caught.value
    assert "test_dali_auto_aug.py:" in str(caught.value)


def test_a_policy_that_is_wrong_is_named():
    for steps, words in [
        ([(darker, 1.5, 1)], "probability of darker is 1.5"),
        ([(darker, 0.5, 3)], "bin of darker = 3"),
        ([(darker, 0.5, None)], "darker has magnitudes"),
        ([(len, 0.5, 1)], "is no augmentation"),
        ([(darker, 0.5)], "a step is"),
    ]:
        with pytest.raises(leat.InvalidArgument, match=words):
            Policy("mine", 3, [steps])
    with pytest.raises(leat.InvalidArgument, match="sub_policies = 3"):
        Policy("mine", 3, 3)
    with pytest.warns(UserWarning, match="its bin 1 decides nothing"):
        Policy("mine", 3, [[(a.invert, 0.5, 1)]])


def test_a_function_that_is_no_augmentation_is_named():
    with pytest.raises(leat.InvalidArgument, match="takes 1 positional"):
        augmentation(lambda data: data)
    with pytest.raises(leat.InvalidArgument, match="darker: it is one already"):
        augmentation(darker)
    with pytest.raises(leat.InvalidArgument, match="param_device = 'disk'"):
        augmentation(param_device="disk")(lambda data, parameter: data)
    with pytest.raises(leat.InvalidArgument, match="max_translate_abs is given with use_shape = True"):
        rand_augment.get_rand_augment_suite(True, max_translate_abs=3)


def test_no_augmentation_of_none():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = output(lambda x: rand_augment.apply_rand_augment([], x, 0, 1))
    np.testing.assert_array_equal(found, IMAGES)
    assert any("n is 0" in str(each.message) for each in caught)
