# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on nodes, computed by a worker and by NumPy."""

import numpy as np
import pytest

import leat
from leat import fn


def test_arithmetic_on_nodes_is_that_of_numpy(service, folder):
    @leat.pipeline
    def values():
        encoded, label = fn.readers.image_folder(str(folder))
        image = fn.decode(encoded)
        image = fn.crop(image, size=(24, 32))
        chance = fn.uniform()
        return {
            "image": image,
            "label": label,
            "chance": chance,
            "linear": image * 2 + 1,
            "ratio": (image + 1) / (label + 1),
            "channels": 255 - image * [1.0, 0.5, 2.0],
            "bright": (image > 99) & (image <= 200),
            "chosen": fn.where(chance > 0.5, image, 0.25),
            "hot": fn.one_hot(label, num_classes=4),
            "varied": fn.brightness(image, brightness=chance),
        }

    batch = next(iter(service.job("values", values, batch=16, seed=3).batches()))
    image, label, chance = batch["image"], batch["label"], batch["chance"]
    column = np.array(label).reshape(-1, 1, 1, 1)
    draws = np.array(chance).reshape(-1, 1, 1, 1)
    expected = {
        "linear": image.astype(np.int32) * 2 + 1,
        "ratio": (image.astype(np.int32) + 1).astype(np.float32) / (column + 1).astype(np.float32),
        "channels": 255 - image * np.array([1, 0.5, 2], np.float32),
        "bright": (image > 99) & (image <= 200),
        "chosen": np.where(draws > 0.5, image.astype(np.float32), np.float32(0.25)),
        "hot": np.eye(4, dtype=np.float32)[label],
        "varied": np.rint(image * draws).astype(np.uint8),
    }
    for name, array in expected.items():
        assert batch[name].dtype == array.dtype and np.array_equal(batch[name], array), name


def test_a_class_out_of_range_is_a_bad_sample_that_names_it(service, folder):
    @leat.pipeline
    def hot():
        return fn.one_hot(fn.readers.image_folder(str(folder))[1], num_classes=2)

    with pytest.raises(leat.Error, match="class [23], want 0 to 1"):
        for _ in service.job("hot", hot, batch=100, seed=3).batches():
            pass


def _mixed_batch(service, folder, name, mix, **args):
    """Returns a batch of images, their partners and the results of `mix`."""

    @leat.pipeline
    def mixed():
        encoded, label = fn.readers.image_folder(str(folder))
        image = fn.noise_gaussian(fn.crop(fn.decode(encoded), size=(24, 32)), stddev=40)  # no two are alike
        blend, share = mix(image, label, num_classes=4, **args)
        other, other_label = fn.partner(image), fn.partner(label)
        return {"a": image, "b": other, "x": label, "y": other_label, "blend": blend, "share": share}

    batch = next(iter(service.job(name, mixed, batch=16, seed=3).batches()))
    rows = [row.tobytes() for row in batch["a"]]
    shift = rows.index(batch["b"][0].tobytes())
    assert shift > 0
    assert np.array_equal(batch["b"], np.roll(batch["a"], -shift, axis=0))
    assert np.array_equal(batch["y"], np.roll(batch["x"], -shift))
    return {name: np.array(array) for name, array in batch.items()}


@pytest.mark.parametrize("per", ["batch", "sample"])
def test_mixup_blends_partners(service, folder, per):
    batch = _mixed_batch(service, folder, f"mixup-{per}", fn.mixup, alpha=0.8, per=per)
    a, b = batch["a"].astype(np.float64), batch["b"].astype(np.float64)
    apart = ((a - b) ** 2).sum(axis=(1, 2, 3))
    lam = ((batch["blend"] - b) * (a - b)).sum(axis=(1, 2, 3)) / apart
    assert np.all((lam > -1e-6) & (lam < 1 + 1e-6))
    assert lam.std() < 1e-5 if per == "batch" else lam.std() > 0.05
    column = lam.reshape(-1, 1, 1, 1)
    assert batch["blend"].dtype == np.float32
    np.testing.assert_allclose(batch["blend"], column * a + (1 - column) * b, atol=1e-3)
    hot = np.eye(4)
    expected = lam[:, None] * hot[batch["x"]] + (1 - lam[:, None]) * hot[batch["y"]]
    np.testing.assert_allclose(batch["share"], expected, atol=1e-5)


@pytest.mark.parametrize("per", ["batch", "sample"])
def test_cutmix_puts_a_box_of_the_partner(service, folder, per):
    batch = _mixed_batch(service, folder, f"cutmix-{per}", fn.cutmix, per=per)
    boxes = set()
    for row, blend in enumerate(batch["blend"]):
        from_other = np.any(blend != batch["a"][row], axis=-1)
        ys, xs = np.nonzero(from_other)
        box = np.zeros_like(from_other)
        if len(ys):
            box[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1] = True
            boxes.add((ys.min(), ys.max(), xs.min(), xs.max()))
        assert np.array_equal(blend[box], batch["b"][row][box])
        assert np.array_equal(blend[~box], batch["a"][row][~box])
        hot = np.eye(4)
        keep = 1 - box.mean()
        expected = keep * hot[batch["x"][row]] + (1 - keep) * hot[batch["y"][row]]
        np.testing.assert_allclose(batch["share"][row], expected, atol=1e-5)
    assert batch["blend"].dtype == np.uint8
    assert len(boxes) > 4 or per == "batch"


def test_of_a_chosen_value_only_one_side_is_computed(service, folder):
    @leat.pipeline
    def chosen():
        encoded, label = fn.readers.image_folder(str(folder))
        hot = fn.one_hot(label, num_classes=2)
        return {"hot": fn.where(label < 2, hot, [0.0, 0.0]), "label": label}

    batch = next(iter(service.job("chosen", chosen, batch=16, seed=3).batches()))
    assert np.array_equal(batch["hot"], np.vstack([np.eye(2), np.zeros((2, 2))])[batch["label"]])
