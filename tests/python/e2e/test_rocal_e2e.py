# SPDX-License-Identifier: Apache-2.0
"""leat.rocal over a private service: values, shards and epochs; the CIFAR-10 training of docs/examples."""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
from conftest import make_folder, test_data
from ports import free_port

import leat
from leat._library import native
from leat.rocal import _source, fn, types
from leat.rocal.pipeline import Pipeline

MEAN, STD = [120.0, 110.0, 100.0], [60.0, 50.0, 40.0]
EXAMPLE = pathlib.Path(__file__).parents[3] / "docs" / "examples" / "rocal_cifar10.py"
RECORDS = np.random.default_rng(3).integers(0, 256, (2, 50, 3073), np.uint8)
RECORDS[..., 0] %= 10
IMAGES, LABELS = RECORDS.reshape(100, 3073)[:, 1:].reshape(100, 3, 32, 32), RECORDS.reshape(100, 3073)[:, 0]


@pytest.fixture(scope="module")
def cifar(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cifar")
    for i, records in enumerate(RECORDS):
        (folder / f"data_batch_{i + 1}.bin").write_bytes(records.tobytes())
    return str(folder)


def read(cifar, *steps, batch_size=10, outputs=None, **reading):
    """Makes a pipeline of CIFAR-10: `steps` are functions from a tensor to a tensor, each an output of its own."""
    with Pipeline(batch_size=batch_size) as pipeline:
        image = fn.readers.cifar10(file_root=cifar, **reading)
        pipeline.set_outputs(*[step(image) for step in steps or [fn.nop]])
    return pipeline.build()


def arrays(pipeline):
    return [np.asarray(output) for output in pipeline.run()]


def cmn(**arguments):
    return lambda image: fn.crop_mirror_normalize(image, **arguments)


def test_cifar10_is_planar_bytes(cifar):
    pipeline = read(cifar)
    (images,) = arrays(pipeline)
    assert images.dtype == np.uint8
    np.testing.assert_array_equal(images, IMAGES[:10])
    assert pipeline.get_image_labels().tolist() == LABELS[:10].tolist()


def test_epochs_of_a_shuffled_shard(cifar):
    """Each is another order of the same samples; without random_shuffle they are in the order of files and records."""
    pipeline = read(cifar, shard_id=1, num_shards=3, random_shuffle=True, batch_size=11)
    expected = sorted(image.tobytes() for image in IMAGES[33:66])
    orders = []
    for _ in range(2):
        images = np.concatenate([arrays(pipeline)[0] for _ in range(3)])
        orders.append([image.tobytes() for image in images])
        assert sorted(orders[-1]) == expected
        assert not pipeline.is_empty()  # the longest shard has 34: its last one comes with ten repetitions
        pipeline.rocal_reset_loaders()
    assert orders[0] != orders[1]
    again = read(cifar, shard_id=1, num_shards=3, random_shuffle=True, batch_size=11)
    assert arrays(again)[0].tobytes() == b"".join(orders[0][:11])
    again.rocal_reset_loaders()  # in the middle
    assert arrays(again)[0].tobytes() == b"".join(orders[1][:11])


@pytest.mark.parametrize(
    "policy, pad, last",
    [
        (types.LAST_BATCH_FILL, True, [45, 46, 47, 48, 49, *[49] * 15]),
        (types.LAST_BATCH_FILL, False, [45, 46, 47, 48, 49, *range(15)]),
        (types.LAST_BATCH_PARTIAL, True, [45, 46, 47, 48, 49]),
        (types.LAST_BATCH_MASK, True, [45, 46, 47, 48, 49, *[49] * 10]),
        (types.LAST_BATCH_DROP, True, None),
    ],
)
def test_the_last_batch(cifar, policy, pad, last):
    pipeline = read(cifar, num_shards=2, batch_size=20, last_batch_policy=policy, pad_last_batch=pad, shard_id=0)
    for step in range(2):
        np.testing.assert_array_equal(arrays(pipeline)[0], IMAGES[20 * step : 20 * step + 20])
    if last is None:
        assert pipeline.rocal_run() != types.OK
        return
    (images,) = arrays(pipeline)
    expected = [40, 41, 42, 43, 44, *last]
    np.testing.assert_array_equal(images, IMAGES[expected[: len(images)]])
    sizes = {types.LAST_BATCH_FILL: (20, 0), types.LAST_BATCH_PARTIAL: (10, 10), types.LAST_BATCH_MASK: (20, 10)}
    assert (len(images), pipeline.get_last_batch_padded_size()) == sizes[policy]


# 33 - 32 = 1: half of it rounds to 0 in rocAL, and to 1 in DALI.
@pytest.mark.parametrize("side, first", [(32, 0), (31, 0), (29, 2), (27, 2), (25, 4)])
def test_a_window_in_the_middle(cifar, side, first):
    floats, mirrored, half, planar = arrays(
        read(
            cifar,
            cmn(crop=(side, 32), mirror=0, mean=MEAN, std=STD, output_dtype=types.FLOAT),
            cmn(crop=(32, side), output_layout=types.NCHW),
            cmn(crop=(side, side), mirror=0, mean=[5], std=[2], output_dtype=types.FLOAT16),
            lambda image: fn.crop(image, crop=(side, side), output_layout=types.NCHW),
        )
    )
    images = IMAGES[:10].transpose(0, 2, 3, 1).astype(np.float64)
    window = slice(first, first + side)
    np.testing.assert_allclose(floats, images[:, window] / STD - np.divide(MEAN, STD), rtol=0, atol=2e-6)
    np.testing.assert_array_equal(mirrored, IMAGES[:10, :, :, window][..., ::-1])
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, images[:, window, window] / 2 - 2.5, rtol=1e-3)
    np.testing.assert_array_equal(planar, IMAGES[:10, :, window, window])


def test_a_window_larger_than_the_image_is_cut_to_it(cifar):
    cut, mirrored = arrays(read(cifar, cmn(crop=(40, 30), mirror=0), cmn(crop=(30, 40), output_dtype=types.FLOAT)))
    images = IMAGES[:10].transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(cut[:, :32], images[:, :, 1:31])
    assert cut.shape == (10, 40, 30, 3) and not cut[:, 32:].any()
    np.testing.assert_array_equal(mirrored[:, :, :32], images[:, 1:31, ::-1])
    assert mirrored.shape == (10, 30, 40, 3) and not mirrored[:, :, 32:].any()


def test_windows_of_images_whose_size_is_not_known(tmp_path):
    """The same windows, computed for each sample."""
    make_folder(tmp_path, 20)  # 32 × 24 pixels
    with Pipeline(batch_size=5) as pipeline:
        jpegs, labels = fn.readers.file(file_root=tmp_path)
        images = fn.decoders.image(jpegs, file_root=str(tmp_path), shard_id=1, num_shards=4)
        whole = fn.resize(images, resize_width=32, resize_height=24)
        sizes = [(21, 29), (24, 32), (40, 25), (13, 50)]
        for_each = [fn.crop_mirror_normalize(images, crop=size, output_layout=types.NCHW) for size in sizes]
        known = [fn.crop_mirror_normalize(whole, crop=size, output_layout=types.NCHW) for size in sizes]
        pipeline.set_outputs(*for_each, *known, labels)
    got = arrays(pipeline)
    for size, a, b in zip(sizes, got[:4], got[4:8]):
        assert a.shape == (5, 3, *size)
        np.testing.assert_array_equal(a, b)
    assert got[8].tolist() == pipeline.get_image_labels().tolist() == [1] * 5


def test_operators(cifar):
    """One value of each; the operators themselves are tested elsewhere."""
    outputs = arrays(
        read(
            cifar,
            lambda x: fn.flip(x, horizontal=1, vertical=1, output_layout=types.NCHW),
            lambda x: fn.brightness(x, brightness=0.5, brightness_shift=10.0, output_layout=types.NCHW),
            lambda x: fn.contrast(x, contrast=2.0, contrast_center=100.0, output_layout=types.NCHW),
            lambda x: fn.exposure(x, exposure=1.0, output_layout=types.NCHW),
            lambda x: fn.gamma_correction(x, gamma=2.0, output_layout=types.NCHW),
            lambda x: fn.blend(x, fn.flip(x, horizontal=1), ratio=0.25, output_layout=types.NCHW),
            lambda x: fn.resize_crop_mirror(x, resize_width=32, resize_height=32, crop_w=20, crop_h=10, mirror=0),
            lambda x: fn.warp_affine(x, matrix=[1, 0, 0, 1, 3, 2], output_layout=types.NCHW),
            lambda x: fn.resize(x, resize_shorter=16, interpolation_type=types.NEAREST_NEIGHBOR_INTERPOLATION),
            lambda x: fn.color_twist(x, output_dtype=types.FLOAT, output_layout=types.NCHW),
            lambda x: fn.snp_noise(x, p_noise=1.0, p_salt=1.0, salt_val=1.0),
        )
    )
    image = IMAGES[:10].astype(np.float64)

    def bytes_of(values):
        return np.clip(np.rint(values), 0, 255)

    expected = [
        image[:, :, ::-1, ::-1],
        bytes_of(image * 0.5 + 10),
        bytes_of((image - 100) * 2 + 100),
        bytes_of(image * 2),
        bytes_of(255 * (image / 255) ** 2),
        bytes_of(image * 0.25 + image[..., ::-1] * 0.75),
        image.transpose(0, 2, 3, 1)[:, 11:21, 6:26],
        np.pad(image[:, :, 2:, 3:], ((0, 0), (0, 0), (0, 2), (0, 3))),
        image.transpose(0, 2, 3, 1)[:, 1::2, 1::2],
        image,
        np.full((10, 32, 32, 3), 255.0),
    ]
    for i, (got, wanted) in enumerate(zip(outputs, expected)):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-3, err_msg=f"output {i}")
    assert outputs[9].dtype == np.float32


@pytest.mark.parametrize("decoder", ["image_slice", "image_random_crop"])
def test_the_jax_sample_of_rocal(tmp_path, decoder):
    make_folder(tmp_path, 24)
    pipeline = Pipeline(batch_size=6, seed=5, rocal_cpu=True, tensor_layout=types.NHWC, tensor_dtype=types.FLOAT16)
    with pipeline:
        jpegs, labels = fn.readers.file(file_root=str(tmp_path))
        images = getattr(fn.decoders, decoder)(
            jpegs, output_type=types.RGB, file_root=str(tmp_path), shard_id=0, num_shards=2, random_shuffle=True
        )
        images = fn.resize(images, resize_width=20, resize_height=10, output_dtype=types.UINT8)
        images = fn.rotate(images, angle=fn.uniform(range=[-5.0, 5.0]))
        images = fn.crop_mirror_normalize(
            images,
            output_layout=types.NHWC,
            output_dtype=types.FLOAT16,
            crop=(10, 20),
            mirror=fn.random.coin_flip(probability=0.5),
            mean=MEAN,
            std=STD,
        )
        fn.one_hot(labels, num_classes=4)
        pipeline.set_outputs(images)
    (images,), labels = arrays(pipeline), pipeline.get_image_labels()
    assert images.shape == (6, 10, 20, 3) and images.dtype == np.float16
    assert labels.shape == (1, 6, 4) and labels.dtype == np.int32 and labels.sum() == 6 and not labels[..., 2:].any()


def test_images_of_different_sizes_are_no_output(tmp_path):
    make_folder(tmp_path, 4)
    with Pipeline(batch_size=2) as pipeline:
        pipeline.set_outputs(fn.decoders.image(fn.readers.file(file_root=str(tmp_path))[0]))
    with pytest.raises(leat.InvalidArgument, match='output "output0"'):
        pipeline.build()


def test_arrays_of_numpy_files(tmp_path):
    for i in range(5):
        np.save(tmp_path / f"{i}.npy", np.full((2, 3), i, np.float32))
    with Pipeline(batch_size=2) as pipeline:
        pipeline.set_outputs(fn.readers.numpy(file_root=str(tmp_path), last_batch_policy=types.LAST_BATCH_DROP))
    assert [arrays(pipeline)[0][:, 0, 0].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(StopIteration):
        pipeline.run()
    with pytest.raises(leat.InvalidArgument, match="gives no labels"):
        pipeline.get_image_labels()


def test_values_of_arrays_are_kept(tmp_path):
    """Their type is not known when the pipeline is made."""
    for value in (np.uint8(7), np.float32(0.25)):
        np.save(tmp_path / f"{value.dtype}.npy", np.full((4, 5, 3), value))
        with Pipeline(batch_size=1) as pipeline:
            x = fn.readers.numpy(files=[str(tmp_path / f"{value.dtype}.npy")])
            windows = [crop(x, crop=(2, 2), output_dtype=types.FLOAT) for crop in (fn.crop, fn.center_crop)]
            pipeline.set_outputs(*windows, fn.brightness(x, brightness=1, brightness_shift=9, output_dtype=types.FLOAT))
        assert [output.max() for output in arrays(pipeline)] == [value, value, value + 9]


KEYS = {name: name for name in ("image/encoded", "image/class/label", "image/filename")}


def tfrecords(path):
    features = fn.readers.tfrecord(path=path, reader_type=0, user_feature_key_map=KEYS, features=dict.fromkeys(KEYS))
    return features["image/encoded"]


FORMS = {
    "tfrecord": tfrecords,
    "caffe2": lambda path: fn.readers.caffe2(path=path)[0],
    "webdataset": lambda path: fn.readers.webdataset(path, "", [{"jpg", "cls"}]),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_photos_in_other_forms(tmp_path, form):
    make_folder(tmp_path / "photos", 12)
    command = [str(native.folder / "leat"), "convert", str(tmp_path / "photos"), str(tmp_path / form), "--to", form]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    got = []
    for reader, path in ((lambda path: fn.readers.file(file_root=path)[0], "photos"), (FORMS[form], form)):
        with Pipeline(batch_size=6) as pipeline:
            encoded = reader(str(tmp_path / path))
            images = fn.decoders.image(encoded, user_feature_key_map=KEYS, shard_id=1, num_shards=2)
            pipeline.set_outputs(fn.resize(images, resize_width=16, resize_height=16))
        got.append((arrays(pipeline)[0], pipeline.get_image_labels()))
    np.testing.assert_array_equal(got[0][0], got[1][0])
    assert got[0][1].tolist() == got[1][1].tolist() == [2, 2, 2, 3, 3, 3] and got[1][1].dtype == np.int32


def test_devices_share_a_job_and_their_rows_are_their_shards(cifar):
    jax = pytest.importorskip("jax")
    from leat.rocal.plugin.jax import ROCALJaxIterator

    sharding = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.array(jax.devices()), ("batch",)), jax.sharding.PartitionSpec("batch")
    )
    reading = {"num_shards": 8, "batch_size": 5, "stick_to_shard": False, "last_batch_policy": types.LAST_BATCH_DROP}
    pipelines = [read(cifar, shard_id=i, **reading) for i in range(8)]
    assert len({pipeline._job.name for pipeline in pipelines}) == 1
    it = ROCALJaxIterator(pipelines, sharding)
    for epoch in range(3):
        firsts = [100 * ((k + epoch) % 8) // 8 for k in range(8)]
        for step in range(1 if epoch == 1 else 2):  # the second is left in the middle
            images, labels = next(it)
            rows = [first + 5 * step + i for first in firsts for i in range(5)]
            np.testing.assert_array_equal(np.asarray(images), IMAGES[rows])
            assert labels.tolist() == LABELS[rows].tolist()
        it.reset()


def test_one_hot_labels_have_an_axis_more(cifar):
    jax = pytest.importorskip("jax")
    from leat.rocal.plugin.jax import ROCALJaxIterator

    pipelines = []
    for i in range(2):
        with Pipeline(batch_size=5, device_id=i) as pipeline:
            images = fn.readers.cifar10(file_root=cifar, shard_id=i, num_shards=2)
            fn.one_hot(_source.Label(pipeline._source), num_classes=10)
            pipeline.set_outputs(images)
        pipelines.append(pipeline)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    (_, labels) = next(ROCALJaxIterator(pipelines[0]))
    assert labels.shape == (1, 5, 10) and labels.dtype == np.int32
    (_, labels) = next(ROCALJaxIterator(pipelines, sharding))
    assert labels.shape == (2, 5, 10)
    assert labels.argmax(-1).tolist() == [LABELS[:5].tolist(), LABELS[50:55].tolist()]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def field(number, data):
    """Returns a protobuf field of fewer than 16,384 bytes."""
    size = bytes([len(data)]) if len(data) < 128 else bytes([len(data) & 127 | 128, len(data) >> 7])
    return bytes([number << 3 | 2]) + size + data


def test_raw_pixels_of_records(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (4, 4, 5, 3), np.uint8)
    with open(tmp_path / "raw", "wb") as file:
        for i, image in enumerate(pixels):
            features = {
                "image/encoded": field(1, field(1, image.tobytes())),
                "image/class/label": field(3, field(1, bytes([i]))),
            }
            entries = [field(1, field(1, name.encode()) + field(2, value)) for name, value in features.items()]
            record = field(1, b"".join(entries))
            size = struct.pack("<Q", len(record))
            file.write(size + crc32c(size) + record + crc32c(record))
    with Pipeline(batch_size=4) as pipeline:
        encoded = tfrecords(str(tmp_path / "raw"))
        pipeline.set_outputs(fn.decoders.image_raw(encoded, max_decoded_width=5, max_decoded_height=4))
    np.testing.assert_array_equal(arrays(pipeline)[0], pixels)
    assert pipeline.get_image_labels().tolist() == [0, 1, 2, 3]


def test_images_of_a_list_and_of_annotations(tmp_path):
    make_folder(tmp_path / "photos", 6)
    names = sorted(str(path.relative_to(tmp_path / "photos")) for path in (tmp_path / "photos").rglob("*.jpg"))
    (tmp_path / "list").write_text("".join(f"{name} {7 + i}\n" for i, name in enumerate(names)))
    images = [{"id": i, "file_name": name} for i, name in enumerate(names)]
    (tmp_path / "boxes.json").write_text(json.dumps({"images": images, "annotations": [], "categories": []}))
    got = []
    for annotated in (False, True):
        with Pipeline(batch_size=6) as pipeline:
            if annotated:
                encoded, _, _ = fn.readers.coco(annotations_file=str(tmp_path / "boxes.json"))
            else:
                encoded, _ = fn.readers.file(file_root=str(tmp_path / "photos"), file_list=str(tmp_path / "list"))
            decoded = fn.decoders.image(encoded, file_root=str(tmp_path / "photos"))
            pipeline.set_outputs(fn.center_crop(decoded, crop=(10, 10)))
        got.append(arrays(pipeline)[0])
        if not annotated:
            assert pipeline.get_image_labels().tolist() == list(range(7, 13))
    np.testing.assert_array_equal(*got)


def train(devices, *arguments):
    return subprocess.Popen(
        [sys.executable, str(EXAMPLE), str(test_data.made("cifar10-bin")), "--epochs", "2", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"},
    )


def trained(process):
    """Returns its output; the accuracy has risen."""
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error[-4000:]
    first, second = (float(found) for found in re.findall(r"accuracy ([\d.]+)", out))
    assert 0.15 < first < second
    return out


def test_the_cifar10_training_on_eight_devices():
    pytest.importorskip("jax")
    out = trained(train(8, "--steps", "16"))
    assert "8 devices, 78 and 125 batches of 16 rows a device" in out
    assert "a batch: (128, 3, 32, 32) float32, labels (128,) int32" in out


def test_the_cifar10_training_on_two_devices_of_one_process_or_of_two():
    """They learn the same, digit by digit."""
    jax = pytest.importorskip("jax")
    out = trained(train(2, "--steps", "30"))
    assert "2 devices, 312 and 125 batches of 16 rows a device" in out
    if jax.__version_info__ < (0, 5):
        pytest.skip("this JAX's CPU devices compute within one process only")
    arguments = ("--steps", "30", "--processes", "2", "--coordinator", f"127.0.0.1:{free_port()}", "--process")
    for process in [train(1, *arguments, str(i)) for i in range(2)]:
        assert re.findall("epoch .*", trained(process)) == re.findall("epoch .*", out)
