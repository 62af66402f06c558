# SPDX-License-Identifier: Apache-2.0
"""The iterators of leat.dali over real workers: the documentation's trainings, and values that DALI's scripts rely on.

Uses the package of this build (LEAT_NATIVE_DIR, PYTHONPATH) with a private service, on eight emulated CPU devices.
"""

import gzip
import importlib.util
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
for variable in ("LEAT_COORDINATOR", "LEAT_ACCESS_TOKEN", "LEAT_ACCESS_TOKEN_FILE"):
    os.environ.pop(variable, None)

import cluster  # noqa: E402
from ports import free_port  # noqa: E402  (of tests/support, which cluster has added)

LACKS = [name for name in ("numpy", "jax") if importlib.util.find_spec(name) is None]
if not LACKS:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P
    from leat.dali import fn, types
    from leat.dali.plugin.base_iterator import LastBatchPolicy
    from leat.dali.plugin.jax import data_iterator
    from leat.dali.plugin.jax.clu import peekable_data_iterator
    from leat.dali.plugin.jax.fn import jax_function

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples"
TIMEOUT_S = 5 * cluster.PATIENCE_S



def two_pixels(left, right):
    """Makes a BMP file of gray pixels."""
    pixels = bytes([left] * 3 + [right] * 3 + [0, 0])
    header = struct.pack("<IiiHHIIiiII", 40, 2, 1, 1, 24, 0, len(pixels), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + header + pixels


def batch_axis(devices=2):
    return NamedSharding(Mesh(np.array(jax.devices()[:devices]), ("batch",)), P("batch"))


def rows(array):
    return np.asarray(array).tolist()


@unittest.skipIf(LACKS, f"{sys.executable} has no {' and no '.join(LACKS)}")
class DaliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-dali-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)

    def program(self, name, *arguments, devices=2):
        """Starts an example."""
        process = subprocess.Popen(
            [sys.executable, "-B", str(EXAMPLES / name), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # NPROC: XLA's threads, more than the devices that wait for each other in a step.
            env={**os.environ, "NPROC": "8", "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"},
        )
        self.addCleanup(self.killed, process)
        return process

    def killed(self, process):
        process.kill()
        process.communicate()

    def finished(self, process):
        out, error = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0, error[-4000:])
        self.assertNotIn("Exception ignored", error, "at the interpreter's end")
        return out


class SamplesTest(DaliTest):
    """Files with one pixel value each, so that a row shows its sample."""

    COUNT = 47

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = []
        for i in range(cls.COUNT):
            cls.files.append(str(cls.folder / f"{i:03}.bmp"))
            pathlib.Path(cls.files[-1]).write_bytes(two_pixels(i, 255 - i))

    def labels(self, decorator=None, files=None, **options):
        """Returns a function that makes iterators over the labels, which are the samples' numbers."""
        files = self.files if files is None else files
        given = {
            name: options.pop(name)
            for name in ("pad_last_batch", "stick_to_shard", "random_shuffle")
            if name in options
        }

        def pipeline(shard_id=0, num_shards=1):
            _, labels = fn.readers.file(files=files, name="reader", shard_id=shard_id, num_shards=num_shards, **given)
            return labels

        return (decorator or data_iterator)(pipeline, output_map=["labels"], reader_name="reader", **options)

    def test_labels_follow_one_another(self):
        it = self.labels()(batch_size=3)
        self.assertEqual((len(it), it.size), (16, 48))
        for step, batch in enumerate(it):
            self.assertEqual(rows(batch["labels"]), [[(3 * step + row) % 47] for row in range(3)])
            self.assertEqual(batch["labels"].devices(), {jax.devices()[0]})
        self.assertEqual(step, 15)

    def test_two_devices_have_two_shards(self):
        for decorator in (data_iterator, peekable_data_iterator):
            for placement, first in (
                ({"sharding": batch_axis()}, [[0], [1], [23], [24]]),
                ({"devices": jax.devices()[:2]}, [[[0], [1]], [[23], [24]]]),
            ):
                make = self.labels(decorator, last_batch_policy=LastBatchPolicy.DROP, **placement)
                it = make(batch_size=4)
                self.assertEqual((it.size, len(it)), (23, 11))
                batches = [rows(batch["labels"]) for batch in it]
                self.assertEqual((batches[0], len(batches)), (first, 11))

    def test_a_mesh_with_a_model_axis_has_a_shard_for_each_block_of_rows(self):
        mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("batch", "model"))
        it = self.labels(sharding=NamedSharding(mesh, P("batch")))(batch_size=8)
        self.assertEqual(rows(next(it)["labels"]), [[0], [1], [11], [12], [23], [24], [35], [36]])

    def test_a_rest_carries_over(self):
        it = self.labels(files=self.files[:7])(batch_size=2)
        epochs = [[rows(batch["labels"]) for batch in it] for _ in range(4)]
        self.assertEqual([len(epoch) for epoch in epochs], [4, 3, 4, 3])
        self.assertEqual((epochs[0][-1], epochs[1][0]), ([[6], [0]], [[1], [2]]))

    def test_last_batches_of_real_readers(self):
        for policy, pad, last, first in (
            ("FILL", True, [6, 6], [0, 1]),
            ("FILL", False, [6, 0], [1, 2]),
            ("DROP", True, [4, 5], [0, 1]),
            ("DROP", False, [4, 5], [1, 2]),
        ):
            make = self.labels(files=self.files[:7], pad_last_batch=pad, last_batch_policy=LastBatchPolicy[policy])
            it = make(batch_size=2)
            self.assertEqual([rows(batch["labels"].ravel()) for batch in it][-1], last, (policy, pad))
            self.assertEqual(rows(next(iter(it))["labels"].ravel()), first, (policy, pad))

    def test_shards_of_real_readers_rotate_unless_they_stick(self):
        for stick, second in ((True, [0, 1, 4, 5]), (False, [4, 5, 0, 1])):
            it = self.labels(files=self.files[:8], stick_to_shard=stick, sharding=batch_axis())(batch_size=4)
            epochs = [[rows(batch["labels"].ravel()) for batch in it] for _ in range(3)]
            self.assertEqual([epoch[0] for epoch in epochs], [[0, 1, 4, 5], second, [0, 1, 4, 5]], stick)
            self.assertEqual([len(epoch) for epoch in epochs], [2, 2, 2])

    def test_a_shuffled_epoch_has_every_sample_once(self):
        it = self.labels(files=self.files[:40], random_shuffle=True, sharding=batch_axis())(batch_size=8, seed=3)
        epochs = [[row for batch in it for row in rows(batch["labels"].ravel())] for _ in range(2)]
        for epoch in epochs:
            self.assertEqual(sorted(epoch), [*range(40)])
        self.assertNotEqual(epochs[0], epochs[1])

    def test_checkpoints_of_real_readers(self):
        make = self.labels(random_shuffle=True, sharding=batch_axis())
        it = make(batch_size=6, enable_checkpointing=True, seed=3)
        before = it.checkpoints()
        everything = [rows(next(it)["labels"]) for _ in range(5)]
        checkpoints = it.checkpoints()
        rest = [rows(next(it)["labels"]) for _ in range(len(it) - 5)]
        again = make(batch_size=6, enable_checkpointing=True, seed=3, checkpoints=checkpoints)
        self.assertEqual([rows(batch["labels"]) for batch in again], rest)
        self.assertEqual(len(again), len(it))
        anew = make(batch_size=6, enable_checkpointing=True, seed=3, checkpoints=before)
        self.assertEqual([rows(next(anew)["labels"]) for _ in range(5)], everything)
        for wrong in ({"batch_size": 4}, {"batch_size": 6, "seed": 4}):
            with self.assertRaisesRegex(Exception, "another"):
                make(enable_checkpointing=True, checkpoints=checkpoints, **{"seed": 3, **wrong})

    def test_the_rows_of_all_devices_come_by_one_iterator(self):
        it = self.labels(sharding=batch_axis())(batch_size=4)
        next(it)
        stats = it._pulling._batches._batches.stats()
        self.assertEqual(stats["rows"] % 4, 0)
        it._pipes[0].enable_api_check(False)
        it._pipes[0].run()  # moves the pipeline, not the iterator
        undisturbed = self.labels(sharding=batch_axis())(batch_size=4)
        next(undisturbed)
        for _ in range(3):
            jax.tree_util.tree_map(np.testing.assert_array_equal, next(it), next(undisturbed))

    def test_unknown_readers_are_told(self):
        with self.assertRaisesRegex(Exception, "nobody"):
            data_iterator(
                lambda: fn.readers.file(files=self.files, name="reader")[1], output_map=["labels"], reader_name="nobody"
            )(batch_size=2)

    def images(self):
        encoded, labels = fn.readers.file(files=self.files, name="reader")
        images = fn.decoders.image(encoded, device="mixed", output_type=types.GRAY)
        return fn.crop(images, crop=(1, 2)), labels

    def test_a_jax_function_stands_between_workers(self):
        """Its inputs come from workers, and its results go back to workers."""

        @jax_function
        @jax.jit
        @jax.vmap
        def doubled(image):
            return 2 * image

        @data_iterator(output_map=["plain", "flipped"], reader_name="reader")
        def make():
            images, _ = self.images()
            return images, fn.flip(doubled(fn.flip(images, horizontal=1)), horizontal=1)

        steps = 0
        for batch in make(batch_size=5):
            plain = np.asarray(batch["plain"])
            np.testing.assert_array_equal(np.asarray(batch["flipped"]), 2 * plain)
            np.testing.assert_array_equal(
                plain[:, 0, :, 0].T,
                [[(5 * steps + row) % 47 for row in range(5)], [255 - (5 * steps + row) % 47 for row in range(5)]],
            )
            steps += 1
        self.assertEqual(steps, 10)

    def test_a_jax_function_without_outputs_runs(self):
        seen = []

        @data_iterator(output_map=["labels"], reader_name="reader")
        def make():
            images, labels = self.images()
            jax_function(lambda batch: seen.append(batch.shape), num_outputs=0)(images)
            return labels

        next(make(batch_size=5))
        self.assertEqual(seen[0], (5, 1, 2, 1))

    def test_what_a_jax_function_does_wrong_is_told(self):
        for function, text in ((lambda a: a[1:], "current batch size of 5"), (lambda a: (a, a), "but returned 2")):

            def pipeline(function=function):
                images, _ = self.images()
                return jax_function(function)(images)

            with self.assertRaisesRegex(RuntimeError, text):
                data_iterator(pipeline, output_map=["x"], reader_name="reader")(batch_size=5)

    def test_a_source_ends_the_epoch(self):
        @data_iterator(output_map=["x", "y"], auto_reset=True)
        def make():
            def source(step):
                if step == 3:
                    raise StopIteration
                return np.full((4, 2), step, np.float32)

            x = fn.external_source(source=source)
            return x, x * 2

        it = make(batch_size=4)
        for _ in range(2):
            self.assertEqual([(batch["x"][0, 0], batch["y"][3, 1]) for batch in it], [(0, 0), (1, 2), (2, 4)])


@unittest.skipIf(LACKS, f"{sys.executable} has no {' and no '.join(LACKS)}")
class MnistData(DaliTest):
    """`mnist` has MNIST's four files, `data` the same as databases."""

    find_data = staticmethod(cluster.test_data.made)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mnist, cls.data = cls.find_data("mnist"), cls.folder / "mnist"
        leat = pathlib.Path(os.environ["LEAT_NATIVE_DIR"]) / "leat"
        convert = [leat, "convert", cls.mnist, cls.data, "--to", "caffe2", "--encoding", "jpeg"]
        subprocess.run(convert, check=True, capture_output=True)

    def assert_learns(self, by, batches, accuracy):
        out = self.finished(self.program("dali_mnist.py", self.data, "--by", by, "--epochs", 1))
        self.assertIn(f"{batches} batches of training, 50 of validation", out)
        self.assertAlmostEqual(float(out.split("accuracy")[1]), accuracy, delta=0.02)


@unittest.skipIf(LACKS, f"{sys.executable} has no {' and no '.join(LACKS)}")
class MnistTest(MnistData):
    def iterator(self, part, **options):
        def pipeline(num_shards=1, shard_id=0):
            jpegs, labels = fn.readers.caffe2(
                path=str(self.data / part), name="mnist", num_shards=num_shards, shard_id=shard_id
            )
            images = fn.decoders.image(jpegs, device="mixed", output_type=types.GRAY)
            images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, std=[255.0], output_layout="CHW")
            images = fn.reshape(images, shape=[784])
            labels = labels.gpu()
            return images, fn.one_hot(labels, num_classes=10), labels, fn.reshape(labels, shape=[])

        names = ["images", "hot", "labels", "scalars"]
        return data_iterator(pipeline, output_map=names, reader_name="mnist", **options)

    def test_iterators_have_the_lengths_of_their_data(self):
        for placement in ({}, {"sharding": batch_axis()}, {"devices": jax.devices()[:2]}):
            lengths = {}
            for batch in (200, 50):
                training = self.iterator("training", prepare_first_batch=False, **placement)(batch_size=batch)
                testing = self.iterator("testing", prepare_first_batch=False)(batch_size=batch)
                lengths[batch] = (len(training), len(testing))
            self.assertEqual(lengths, {200: (100, 50), 50: (400, 200)}, placement)
        self.assertEqual(testing.size, 10000)

    def test_labels_have_the_shapes_of_dali(self):
        batch = next(self.iterator("training", sharding=batch_axis())(batch_size=200))
        shapes = {name: array.shape for name, array in batch.items()}
        self.assertEqual(shapes, {"images": (200, 784), "hot": (200, 10), "labels": (200, 1), "scalars": (200,)})
        stored = gzip.open(self.mnist / "train-labels-idx1-ubyte.gz").read()[8:]
        expected = [*stored[:100], *stored[10000:10100]]  # two devices, each on its half
        self.assertEqual(rows(batch["scalars"]), expected)
        self.assertEqual(rows(batch["hot"].argmax(axis=1)), expected)
        stored = gzip.open(self.mnist / "train-images-idx3-ubyte.gz").read()[16:]
        pixels = np.frombuffer(stored, np.uint8).reshape(-1, 784)
        difference = np.abs(np.asarray(batch["images"][100:]) - pixels[10000:10100] / 255)
        self.assertLess(difference.mean(), 0.02, "the JPEGs of these images")

    def test_the_training_learns(self):
        for by in ("sharding", "devices"):
            self.assert_learns(by, batches=100, accuracy=0.766)

    def test_a_training_that_is_killed_goes_on_with_the_same_bits(self):
        data = self.folder / "small"  # 50 batches an epoch
        data.mkdir()
        for part in ("training", "testing"):
            (data / part).symlink_to(self.data / "testing")

        def started(name):
            files = ("--checkpoint", self.folder / f"{name}.npz", "--losses", self.folder / name)
            return self.program("dali_mnist.py", data, "--epochs", 2, "--steps", 70, "--every", 8, *files)

        whole, killed = started("whole"), started("killed")
        losses = self.folder / "killed"
        end = time.monotonic() + TIMEOUT_S
        # After the checkpoint of step 40, before an epoch's end.
        while not (losses.exists() and losses.read_text().count("\n") >= 42) and killed.poll() is None:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        self.killed(killed)
        self.finished(whole)
        before = losses.read_text().count("\n")
        self.finished(started("killed"))
        lines, expected = (file.read_text().splitlines() for file in (losses, self.folder / "whole"))
        self.assertEqual(len(expected), 70)
        again = lines[before:]
        self.assertIn(len(again), range(1, 31), "it goes on at the last checkpoint, not from the start")
        self.assertEqual(again, expected[-len(again) :])
        self.assertEqual(lines[:before], expected[:before])


@unittest.skipIf(LACKS, f"{sys.executable} has no {' and no '.join(LACKS)}")
class RealMnistTest(MnistData):
    find_data = staticmethod(cluster.test_data.real)

    def test_the_tutorials_training_learns_as_it_does(self):
        self.assert_learns("sharding", batches=300, accuracy=0.674)


class MixupTest(DaliTest):
    def test_mixup_crosses_the_border_of_processes(self):
        folders = [cluster.test_data.made("dogs-cats") / kind for kind in ("dog", "cat")]
        if not hasattr(jax, "shard_map"):
            self.skipTest(f"JAX {jax.__version__} has no jax.shard_map")
        address = f"127.0.0.1:{free_port()}"
        processes = [
            self.program(
                "dali_mixup.py", *folders, i, "--address", address, "--save", self.folder / f"{i}.npz", devices=1
            )
            for i in range(2)
        ]
        out = [self.finished(process) for process in processes]
        self.assertIn("3 batches of (16, 244, 244, 3), (8, 244, 244, 3) here", out[1])
        first, second = (np.load(self.folder / f"{i}.npz") for i in range(2))
        self.assertGreater(np.abs(np.float32(first["images"]) - second["images"]).mean(), 20, "dogs, and cats")
        expected = (0.5 * first["images"] + 0.5 * second["images"]).astype(np.uint8)
        np.testing.assert_array_equal(first["mixed"], expected)
        np.testing.assert_array_equal(second["mixed"], expected)


if __name__ == "__main__":
    unittest.main()
