# SPDX-License-Identifier: Apache-2.0
"""Readers of arrays and lists through coordinator and two workers: every batch has the oracle's bytes."""

import gzip
import hashlib
import json
import os
import struct
import subprocess
import unittest

import cluster
from cluster import node

MNIST = cluster.DATA / "mnist"
CIFAR = cluster.DATA / "cifar10-bin"
EPOCHS, BATCH = 2, 500


def image_and_label(reader):
    """A pipeline that is its reader."""
    return {"nodes": [reader],
            "outputs": [{"name": "image", "ref": {"node": 0}}, {"name": "label", "ref": {"node": 0, "output": 1}}]}


def text(value):
    return {"string_value": str(value)}


def texts(*values):
    return {"strings_value": {"values": [str(value) for value in values]}}


class ReadersTest(cluster.ClusterTest):

    def batches(self, graph, **changes):
        """Pulls the epochs from the cluster, compares them with the oracle, and returns the consumer."""
        spec = self.spec(graph, batch=BATCH, **changes)
        done = subprocess.run([cluster.program("ORACLE"), str(spec), str(EPOCHS)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = [(int(e), int(s), sha) for e, s, sha in (line.split() for line in done.stdout.splitlines())]
        self.start_cluster(workers=2)
        consumer = self.consumer(spec, "--dump", self.folder, epochs=EPOCHS).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, expected)
        return consumer

    def shapes(self):
        """Of the job's fields, as the service says them."""
        fields = self.get("jobs")["jobs"][0]["job"]["schema"]
        return [(f["name"], f["dtype"], [int(size) for size in f.get("shape", [])]) for f in fields]

    def test_mnist(self):
        if not MNIST.is_dir():
            self.skipTest(f"no MNIST at {MNIST} (LEAT_TEST_DATA)")
        images, labels = (MNIST / f"t10k-{name}-ubyte.gz" for name in ("images-idx3", "labels-idx1"))
        self.batches(image_and_label(node("readers.idx", images=text(images), labels=text(labels))))
        self.assertEqual(self.shapes(), [("image", "D_TYPE_UINT8", [28, 28, 1]), ("label", "D_TYPE_INT32", [])])
        # Each image with its label, once an epoch.
        payload, classes = gzip.open(images).read()[16:], gzip.open(labels).read()[8:]
        stored = sorted(hashlib.sha256(payload[i * 784:(i + 1) * 784] + classes[i:i + 1]).digest()
                        for i in range(len(classes)))
        self.assertEqual(self.rows(0, 784), stored)
        self.assertEqual(self.rows(1, 784), stored)

    def test_plain_idx(self):
        file = self.folder / "images"
        file.write_bytes(struct.pack(">BBBBII", 0, 0, 12, 2, 1000, 3) + struct.pack(">3000i", *range(3000)))
        self.batches(image_and_label(node("readers.idx", images=text(file))))
        self.assertEqual(self.shapes()[0], ("image", "D_TYPE_INT32", [3]))

    def test_cifar(self):
        if not CIFAR.is_dir():
            self.skipTest(f"no CIFAR-10 at {CIFAR} (LEAT_TEST_DATA)")
        file = CIFAR / "test_batch.bin"
        self.batches(image_and_label(node("readers.cifar10", paths=texts(file))))
        self.assertEqual(self.shapes(), [("image", "D_TYPE_UINT8", [32, 32, 3]), ("label", "D_TYPE_INT32", [])])
        records = [file.read_bytes()[i:i + 3073] for i in range(0, file.stat().st_size, 3073)]
        stored = sorted(
            hashlib.sha256(bytes(b for pixel in zip(r[1:1025], r[1025:2049], r[2049:]) for b in pixel) + r[:1]).digest()
            for r in records)
        self.assertEqual(self.rows(0, 3072), stored)

    def test_a_list_of_photos(self):
        if not cluster.PHOTOS.is_dir():
            self.skipTest(f"no photos at {cluster.PHOTOS} (LEAT_TEST_DATA)")
        names = sorted(str(path.relative_to(cluster.PHOTOS)) for path in cluster.PHOTOS.rglob("*")
                       if path.suffix.lower() in (".jpg", ".jpeg"))[:50]
        lines = [f"{name} {i % 1000}" for i, name in enumerate(names * (2 * BATCH // len(names)))]
        (self.folder / "list").write_text("\n".join(lines))
        graph = cluster.train_graph(cluster.PHOTOS, side=32)
        graph["nodes"][0] = node("readers.file_list", path=text(self.folder / "list"), root=text(cluster.PHOTOS))
        self.batches(graph)
        labels = b"".join(path.read_bytes() for path in self.folder.glob("1-*-label"))
        self.assertEqual(sorted(label for label, in struct.iter_unpack("<i", labels)), list(range(len(lines))))

    def test_boxes_of_photos(self):
        if not cluster.PHOTOS.is_dir():
            self.skipTest(f"no photos at {cluster.PHOTOS} (LEAT_TEST_DATA)")
        names = sorted(str(path.relative_to(cluster.PHOTOS)) for path in cluster.PHOTOS.rglob("*")
                       if path.suffix.lower() in (".jpg", ".jpeg"))[:50]
        images = [{"id": 1000 - i, "file_name": names[i % len(names)]} for i in range(BATCH)]
        objects = [{"image_id": 1000 - i, "category_id": 5 + j, "bbox": [i, j, 2.5, 1 + j]}
                   for i in range(BATCH) for j in range(i % 5)]
        file = self.folder / "instances.json"
        file.write_text(json.dumps({"images": images, "annotations": objects,
                                    "categories": [{"id": 5 + j} for j in range(4)]}))

        def ints(*values):
            return {"ints_value": {"values": values}}

        graph = {
            "nodes": [
                node("readers.coco", annotations=text(file), root=text(cluster.PHOTOS)),
                node("decode", (0, 0)),
                node("resize", (1, 0), size=ints(16, 16)),
                node("pad", (0, 1), axes=ints(0), shape=ints(6)),
                node("pad", (0, 2), shape=ints(6), fill_value={"float_value": -1}),
                node("length", (0, 1)),
            ],
            "outputs": [{"name": name, "ref": {"node": at}}
                        for name, at in (("image", 2), ("boxes", 3), ("labels", 4), ("count", 5))]}
        self.batches(graph)
        self.assertEqual(self.shapes(), [("image", "D_TYPE_UINT8", [16, 16, 3]), ("boxes", "D_TYPE_FLOAT32", [6, 4]),
                                         ("labels", "D_TYPE_INT32", [6]), ("count", "D_TYPE_INT32", [])])
        boxes, labels, counts = (b"".join(path.read_bytes() for path in sorted(self.folder.glob(f"1-*-{name}")))
                                 for name in ("boxes", "labels", "count"))
        rows = [(count, struct.unpack_from("<24f", boxes, 96 * i), struct.unpack_from("<6i", labels, 24 * i))
                for i, (count,) in enumerate(struct.iter_unpack("<i", counts))]
        wanted = []
        for i in range(BATCH):
            count = i % 5
            mine = [number for j in range(count) for number in (i, j, 2.5, 1 + j)]
            wanted.append((count, (*mine, *[0] * (24 - len(mine))), (*range(1, count + 1), *[-1] * (6 - count))))
        self.assertEqual(sorted(rows), sorted(wanted))

    def rows(self, epoch, image_bytes):
        """Hashes of an epoch's images with their labels, sorted."""
        hashes = []
        for image in sorted(self.folder.glob(f"{epoch}-*-image")):
            pixels = image.read_bytes()
            labels = image.with_name(image.name.replace("-image", "-label")).read_bytes()
            for i, (label,) in enumerate(struct.iter_unpack("<i", labels)):
                hashes.append(hashlib.sha256(pixels[i * image_bytes:(i + 1) * image_bytes] + bytes([label])).digest())
        return sorted(hashes)

    def test_a_file_that_is_none_is_an_error_that_names_it(self):
        file = self.folder / "noise"
        file.write_bytes(b"\x89PNG\r\n\x1a\n")
        self.start_cluster(workers=1)
        consumer = self.consumer(self.spec(image_and_label(node("readers.idx", images=text(file))))).finish()
        self.assertIsNotNone(consumer.error)
        self.assertIn(str(file), consumer.error[1])


if __name__ == "__main__":
    os.chdir(cluster.tempfile.gettempdir())
    unittest.main()
