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
from cluster import node, test_data

EPOCHS, BATCH = 2, 500


def image_and_label(reader):
    """Returns a pipeline that consists of its reader."""
    return {"nodes": [reader],
            "outputs": [{"name": "image", "ref": {"node": 0}}, {"name": "label", "ref": {"node": 0, "output": 1}}]}


def text(value):
    return {"string_value": str(value)}


def texts(*values):
    return {"strings_value": {"values": [str(value) for value in values]}}


class ReadersTest(cluster.ClusterTest):

    def batches(self, graph, epochs=EPOCHS, **changes):
        """Pulls the epochs from the cluster, compares them with the oracle, and returns the consumer."""
        spec = self.spec(graph, batch=BATCH, **changes)
        expected = self.oracle_steps(spec, epochs)
        self.start_cluster(workers=2)
        consumer = self.consumer(spec, "--dump", self.folder, epochs=epochs).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, expected)
        return consumer

    def shapes(self):
        """Returns the shapes of the job's fields, from the service."""
        fields = self.get("jobs")["jobs"][0]["job"]["schema"]
        return [(f["name"], f["dtype"], [int(size) for size in f.get("shape", [])]) for f in fields]

    def test_mnist(self):
        mnist = test_data.made("mnist")
        images, labels = (mnist / f"t10k-{name}-ubyte.gz" for name in ("images-idx3", "labels-idx1"))
        self.batches(image_and_label(node("readers.idx", images=text(images), labels=text(labels))))
        self.assertEqual(self.shapes(), [("image", "D_TYPE_UINT8", [28, 28, 1]), ("label", "D_TYPE_INT32", [])])
        # Each image with its label, once per epoch.
        self.assertEqual(self.rows(0, 784), self.mnist_rows(mnist, "t10k"))
        self.assertEqual(self.rows(1, 784), self.mnist_rows(mnist, "t10k"))

    def mnist_rows(self, mnist, part):
        """Returns hashes of MNIST's images with their labels, sorted."""
        payload, classes = (gzip.open(mnist / f"{part}-{name}-ubyte.gz").read()[head:]
                            for name, head in (("images-idx3", 16), ("labels-idx1", 8)))
        return sorted(hashlib.sha256(payload[i * 784:(i + 1) * 784] + classes[i:i + 1]).digest()
                      for i in range(len(classes)))

    def converted_to_lmdb(self, mnist):
        subprocess.run([cluster.program("CLI"), "convert", mnist, self.folder / "db", "--to", "caffe2"], check=True)
        graph = {"nodes": [node("readers.caffe2", path=texts(self.folder / "db/training")),
                           node("decode", (0, 0), output=text("gray")),
                           node("crop", (1, 0), size={"ints_value": {"values": [28, 28]}})],
                 "outputs": [{"name": "image", "ref": {"node": 2}}, {"name": "label", "ref": {"node": 0, "output": 1}}]}
        expected = self.mnist_rows(mnist, "train")
        self.assertEqual(len(self.batches(graph, epochs=1).steps), len(expected) // BATCH)
        self.assertEqual(self.rows(0, 784), expected)

    def test_mnist_converted_to_lmdb(self):
        self.converted_to_lmdb(test_data.made("mnist"))

    def test_the_60000_of_mnist_converted_to_lmdb(self):
        self.converted_to_lmdb(test_data.real("mnist"))

    def test_plain_idx(self):
        file = self.folder / "images"
        file.write_bytes(struct.pack(">BBBBII", 0, 0, 12, 2, 1000, 3) + struct.pack(">3000i", *range(3000)))
        self.batches(image_and_label(node("readers.idx", images=text(file))))
        self.assertEqual(self.shapes()[0], ("image", "D_TYPE_INT32", [3]))

    def test_cifar(self):
        file = test_data.made("cifar10-bin") / "test_batch.bin"
        self.batches(image_and_label(node("readers.cifar10", paths=texts(file))))
        self.assertEqual(self.shapes(), [("image", "D_TYPE_UINT8", [32, 32, 3]), ("label", "D_TYPE_INT32", [])])
        records = [file.read_bytes()[i:i + 3073] for i in range(0, file.stat().st_size, 3073)]
        stored = sorted(
            hashlib.sha256(bytes(b for pixel in zip(r[1:1025], r[1025:2049], r[2049:]) for b in pixel) + r[:1]).digest()
            for r in records)
        self.assertEqual(self.rows(0, 3072), stored)

    def test_a_list_of_photos(self):
        photos = cluster.photos()
        names = [str(path.relative_to(photos)) for path in test_data.images(photos)[:50]]
        lines = [f"{name} {i % 1000}" for i, name in enumerate(names * (2 * BATCH // len(names)))]
        (self.folder / "list").write_text("\n".join(lines))
        graph = cluster.train_graph(photos, side=32)
        graph["nodes"][0] = node("readers.file_list", path=text(self.folder / "list"), root=text(photos))
        self.batches(graph)
        labels = b"".join(path.read_bytes() for path in self.folder.glob("1-*-label"))
        self.assertEqual(sorted(label for label, in struct.iter_unpack("<i", labels)), list(range(len(lines))))

    def test_boxes_of_photos(self):
        photos = cluster.photos()
        names = [str(path.relative_to(photos)) for path in test_data.images(photos)[:50]]
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
                node("readers.coco", annotations=text(file), root=text(photos)),
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
        """Returns hashes of an epoch's images with their labels, sorted."""
        hashes = []
        for image in sorted(self.folder.glob(f"{epoch}-*-image")):
            pixels = image.read_bytes()
            labels = image.with_name(image.name.replace("-image", "-label")).read_bytes()
            for i, (label,) in enumerate(struct.iter_unpack("<i", labels)):
                hashes.append(hashlib.sha256(pixels[i * image_bytes:(i + 1) * image_bytes] + bytes([label])).digest())
        return sorted(hashes)

    def parquet(self):
        """Returns pyarrow and its Parquet module; skips if it, or the Parquet reader, was not available to the
        build."""
        if "LEAT_PARQUET_LIBRARY" not in os.environ:
            self.skipTest("built without Parquet (LEAT_PARQUET)")
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            self.skipTest("no pyarrow here (deploy/packages/python-tests.txt)")
        return pyarrow, pyarrow.parquet

    def test_parquet(self):
        pyarrow, parquet = self.parquet()
        table = pyarrow.table({
            "id": pyarrow.array(range(2 * BATCH), pyarrow.int64()),
            "pixels": pyarrow.array([bytes((i + j) % 256 for j in range(12)) for i in range(2 * BATCH)]),
            "boxes": pyarrow.array([[float(i)] * (i % 4) for i in range(2 * BATCH)], pyarrow.list_(pyarrow.float32()))})
        codecs = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]
        self.assertTrue(all(codec == "none" or pyarrow.Codec.is_available(codec) for codec in codecs))
        (self.folder / "set").mkdir()
        part = 2 * BATCH // len(codecs) + 1
        for i, codec in enumerate(codecs):  # with a dictionary and without, several row groups, both versions of pages
            parquet.write_table(table.slice(i * part, part), self.folder / f"set/{i}.parquet", compression=codec,
                                row_group_size=50, use_dictionary=i % 2 == 0, write_page_index=i == 3,
                                data_page_version="2.0" if i > 2 else "1.0")
        graph = {
            "nodes": [node("readers.parquet", paths=texts(f"{self.folder}/set/"),
                           columns=texts("pixels", "id", "boxes"), types=texts("uint8[2,2,3]", "int64", "float32[?]")),
                      node("pad", (0, 2), shape={"ints_value": {"values": [3]}}, fill_value={"float_value": -1})],
            "outputs": [{"name": "pixels", "ref": {"node": 0}}, {"name": "id", "ref": {"node": 0, "output": 1}},
                        {"name": "boxes", "ref": {"node": 1}}]}
        self.batches(graph)
        self.assertEqual(self.shapes(), [("pixels", "D_TYPE_UINT8", [2, 2, 3]), ("id", "D_TYPE_INT64", []),
                                         ("boxes", "D_TYPE_FLOAT32", [3])])
        ids, pixels, boxes = (b"".join(path.read_bytes() for path in sorted(self.folder.glob(f"1-*-{name}")))
                              for name in ("id", "pixels", "boxes"))
        rows = [(i, pixels[12 * at:12 * at + 12], struct.unpack_from("<3f", boxes, 12 * at))
                for at, (i,) in enumerate(struct.iter_unpack("<q", ids))]
        read = parquet.read_table(self.folder / "set", use_threads=False).to_pydict()
        wanted = [(i, data, (*numbers, *[-1.0] * (3 - len(numbers))))
                  for i, data, numbers in zip(read["id"], read["pixels"], read["boxes"])]
        self.assertEqual(sorted(rows), wanted)

    def test_a_parquet_file_that_changes_ends_the_job_with_an_error_that_names_it(self):
        pyarrow, parquet = self.parquet()
        file = self.folder / "x.parquet"
        parquet.write_table(pyarrow.table({"id": pyarrow.array(range(2 * BATCH), pyarrow.int64())}), file)
        graph = {"nodes": [node("readers.parquet", paths=texts(file), columns=texts("id"), types=texts("int64"))],
                 "outputs": [{"name": "id", "ref": {"node": 0}}]}
        spec = self.spec(graph, batch=BATCH)
        self.start_cluster(workers=1)
        self.assertIsNone(self.consumer(spec, epochs=1).finish().error)
        parquet.write_table(pyarrow.table({"id": pyarrow.array(range(2 * BATCH + 1), pyarrow.int64())}), file)
        self.workers[0].close()
        self.start_worker()
        error = self.consumer(spec, epochs=1).finish().error
        self.assertIsNotNone(error)
        self.assertIn(str(file), error[1])
        self.assertIn("changed", error[1])

    def test_a_worker_without_arrow_owns_nothing_of_a_mixture_with_parquet(self):
        pyarrow, parquet = self.parquet()
        for name in ("a", "b"):
            (self.folder / name).mkdir()
            for part in range(8):
                parquet.write_table(pyarrow.table({"id": pyarrow.array(range(part * BATCH, (part + 1) * BATCH),
                                                                       pyarrow.int64())}),
                                    self.folder / f"{name}/{part}.parquet", row_group_size=16)
        sources = [{"name": name, "pipeline": {
            "nodes": [node("readers.parquet", paths=texts(f"{self.folder}/{name}/"), columns=texts("id"),
                           types=texts("int64"))],
            "outputs": [{"name": "id", "ref": {"node": 0}}]}} for name in ("a", "b")]
        path = self.folder / "mix.json"
        path.write_text(json.dumps({
            "name": "mix", "sources": sources, "shares": [{"weights": [3, 1]}], "mix_end": "MIX_END_ALL",
            "last_batch": "LAST_BATCH_DROP", "seed": 7, "batch": BATCH}))
        expected = self.oracle_steps(path, 1)
        self.start_coordinator()
        self.start_worker(name="without", env={"LEAT_PARQUET_LIBRARY": "/no/such/library.so"})
        refused = self.consumer(path, epochs=1).finish()
        self.assertIn("job mix needs \"parquet\", which none of 1 ready worker has (worker without: ", refused.error[1])
        self.assertIn("/no/such/library.so", refused.error[1])
        self.start_worker(name="with")
        self.assertEqual(self.consumer(path, epochs=1).finish().steps, expected)
        workers = {each["name"]: each for each in self.get("workers")["workers"]}
        self.assertEqual(workers["with"]["abilities"], ["parquet"])
        self.assertEqual(workers["without"].get("abilities", []), [])
        self.assertEqual(workers["without"]["lacked"][0]["name"], "parquet")
        self.assertEqual(int(workers["without"].get("shards_owned", 0)), 0)
        self.assertGreater(int(workers["with"]["shards_owned"]), 0)
        self.assertEqual(self.workers[1].stop(), 0)
        found = self.until("a finding", lambda: [each for each in self.get("status")["findings"]
                                                 if each["code"] == "NO_ABILITY"])
        self.assertIn("job mix needs \"parquet\"", found[0]["summary"])
        self.start_worker(name="again")
        self.until("no finding", lambda: not [each for each in self.get("status")["findings"]
                                              if each["code"] == "NO_ABILITY"])
        self.assertEqual(self.consumer(path, epochs=1).finish().steps, expected)

    def test_a_worker_without_arrow_says_what_is_missing(self):
        file = self.folder / "x.parquet"
        file.write_bytes(b"PAR1")
        graph = {"nodes": [node("readers.parquet", paths=texts(file), columns=texts("id"), types=texts("int64"))],
                 "outputs": [{"name": "id", "ref": {"node": 0}}]}
        done = subprocess.run([cluster.program("ORACLE"), self.spec(graph), "1"], capture_output=True, text=True,
                              env={**os.environ, "LEAT_PARQUET_LIBRARY": "/no/such/library.so"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/no/such/library.so", done.stderr)
        self.assertIn("pyarrow", done.stderr)

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
