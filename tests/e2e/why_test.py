# SPDX-License-Identifier: Apache-2.0
"""`leat why` compared with batches: file, place and draws of every row, of a running and of a finished job."""

import io
import json
import os
import struct
import subprocess
import tarfile
import unittest

import cluster
from cluster import PATIENCE_S, node, program

SAMPLES, BATCH, STEPS, SIDE = 44, 8, 6, 6  # the last batch has 4 rows


def picture(number):
    """Makes a BMP whose left half has the colour `number` and whose right half is black."""
    row = bytes([number, number, number] * (SIDE // 2) + [0, 0, 0] * (SIDE // 2))
    pixels = (row + bytes(-len(row) % 4)) * SIDE
    head = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + len(pixels), 0, 0, 54, 40, SIDE, SIDE, 1, 24, 0, len(pixels),
                       2835, 2835, 0, 0)
    return head + pixels


def colour(sample):
    return 100 + sample


class WhyTest(cluster.ClusterTest):
    def graph(self, reader):
        """Flips at random; the pixels show whether, and colour and label give each row's sample."""
        return {
            "nodes": [reader, node("decode", (0, 0)),
                      node("random_resized_crop", (1, 0), size={"ints_value": {"values": [SIDE, SIDE]}},
                           area={"floats_value": {"values": [1, 1]}}, aspect={"floats_value": {"values": [1, 1]}}),
                      node("coin_flip", probability={"float_value": 0.5}),
                      node("flip", (2, 0), horizontal={"ref": {"node": 3, "output": 0}}),
                      node("uniform")],
            "outputs": [{"name": "image", "ref": {"node": 4}}, {"name": "label", "ref": {"node": 0, "output": 1}},
                        {"name": "number", "ref": {"node": 5}}]}

    def why(self, *flags, code=0):
        done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "why", *map(str, flags)],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def rows(self, epoch, step, *flags):
        return json.loads(self.why("job", "--epoch", epoch, "--step", step, "-o", "json", *flags))["rows"]

    def held(self, epoch, step):
        """Returns the contents of a dumped batch, by row: colour, whether it is flipped, label, number."""
        image, label, number = ((self.folder / f"{epoch}-{step}-{name}").read_bytes()
                                for name in ("image", "label", "number"))
        rows = []
        count = len(image) // (SIDE * SIDE * 3)
        wide = len(label) // count  # bytes per label
        for row in range(count):
            pixels = image[row * SIDE * SIDE * 3:(row + 1) * SIDE * SIDE * 3]
            left, right = pixels[0], pixels[(SIDE - 1) * 3]
            rows.append((max(left, right), right > left, int.from_bytes(label[wide * row:][:wide], "little"),
                         struct.unpack_from("<f", number, 4 * row)[0]))
        return rows

    def compare(self, epoch, step, content, label):
        """`content(record)`: returns the bytes that are stored there."""
        held, rows = self.held(epoch, step), self.rows(epoch, step)
        self.assertEqual([row["row"] for row in rows], list(range(BATCH)))
        full = [row for row in rows if "record" in row]
        self.assertEqual(len(full), len(held))
        for row, (bright, flipped, labelled, number) in zip(full, held):
            sample = row["record"]["sample"]
            self.assertEqual(colour(sample), bright)
            self.assertTrue(content(row["record"]).startswith(picture(colour(sample))), row["record"])
            self.assertEqual(label(sample), labelled)
            draws = {draw["name"] or draw["op"]: draw for draw in row["draws"]}
            self.assertEqual(draws["flip.horizontal"]["values"], [float(flipped)])
            self.assertEqual(draws["number"]["values"], [number])
            self.assertEqual(draws["random_resized_crop"]["values"], [])
        return full

    def check(self, reader, content, label):
        """Follows a job from its first batch to after its end, and beyond the coordinator's."""
        spec = self.spec(self.graph(reader), batch=BATCH, last_batch="LAST_BATCH_PARTIAL",
                         order="ORDER_GLOBAL_SHUFFLE")
        self.start_cluster(workers=2)
        consumer = self.consumer(spec, "--paced", "--window", 1, "--dump", self.folder, epochs=2)
        consumer.pull(2)
        running = self.compare(0, 1, content, label)
        consumer.finish()
        self.assertIsNone(consumer.error)
        for epoch, step in ((0, 0), (0, STEPS - 1), (1, 3)):
            self.compare(epoch, step, content, label)
        flips = {draw["values"][0] for row in running for draw in row["draws"] if draw["op"] == "coin_flip"}
        self.assertEqual(flips, {0.0, 1.0}, "a seed that flips some and others not")
        one, = self.rows(0, 1, "--row", 5)
        windows = [draw["values"] for draw in one["draws"] if draw["op"] == "random_resized_crop"]
        self.assertEqual(windows, [[0, 0, SIDE, SIDE]], "a row that is named is read")
        self.assertEqual(one["record"], running[5]["record"])

        self.coordinator.kill9()
        self.restart_coordinator()
        self.until("the workers are back", lambda: len(
            [w for w in self.get("workers")["workers"] if w["state"] == "WORKER_STATE_READY"]) == 2)
        self.assertEqual(self.compare(0, 1, content, label), running)
        return running

    def test_a_folder_of_images(self):
        root = self.folder / "images"
        for sample in range(SAMPLES):
            path = root / "ab"[sample * 2 // SAMPLES] / f"{sample:02}.bmp"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(picture(colour(sample)))
        rows = self.check(node("readers.image_folder", path={"string_value": str(root)}),
                          lambda record: (root / record["file"]).read_bytes(), lambda sample: sample * 2 // SAMPLES)
        self.assertEqual({row["record"]["root"] for row in rows}, {str(root)})

        text = self.why("job", "--step", 1, "--row", 5)
        self.assertIn(f"{root}/{rows[5]['record']['file']}", text)
        self.assertIn("flip.horizontal", text)
        self.assertIn("did you mean", self.why("jib", "--step", 1, code=3).lower())
        self.assertIn(f"steps 0 to {STEPS - 1}", self.why("job", "--step", STEPS, code=2))
        self.assertIn(f"rows 0 to {BATCH - 1}", self.why("job", "--step", 0, "--row", BATCH, code=2))

    def test_an_archive(self):
        for part in range(2):
            with tarfile.open(self.folder / f"{part}.tar", "w") as archive:
                for sample in range(part * SAMPLES // 2, (part + 1) * SAMPLES // 2):
                    for name, data in ((f"{sample:02}.bmp", picture(colour(sample))),
                                       (f"{sample:02}.cls", str(3 * sample).encode())):
                        info = tarfile.TarInfo(name)
                        info.size = len(data)
                        archive.addfile(info, io.BytesIO(data))

        def content(record):
            with open(self.folder / record["file"], "rb") as file:
                file.seek(record["offset"])
                return file.read(record["size"])

        texts = [{"strings_value": {"values": list(values)}} for values in
                 ([f"{self.folder}/0.tar", f"{self.folder}/1.tar"], ["bmp", "cls"], ["encoded", "int32"])]
        reader = node("readers.webdataset", paths=texts[0], ext=texts[1], types=texts[2])
        rows = self.check(reader, content, lambda sample: 3 * sample)
        for row in rows:
            record = row["record"]
            self.assertEqual(record["index"], record["sample"] % (SAMPLES // 2))
            self.assertEqual(record["file"], f"{record['sample'] * 2 // SAMPLES}.tar")

    def converted(self, form):
        """Converts the pictures to another form, by `leat convert`; returns its folder."""
        for sample in range(SAMPLES):
            path = self.folder / "images" / "ab"[sample * 2 // SAMPLES] / f"{sample:02}.bmp"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(picture(colour(sample)))
        done = subprocess.run([program("CLI"), "convert", self.folder / "images", self.folder / form, "--to", form],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.folder / form

    def check_records(self, reader, root, file):
        """Checks a form in which a record contains its picture: place and size are those of the record."""
        def content(record):
            self.assertEqual((record["root"], record["file"]), (str(root), file))
            with open(root / file, "rb") as stream:
                stream.seek(record["offset"])
                stored = stream.read(record["size"])
            self.assertEqual(stored.count(picture(0)[:54]), 1, "one picture: no record beside it")
            return stored[stored.index(picture(0)[:54]):]

        rows = self.check(reader, content, lambda sample: sample * 2 // SAMPLES)
        for row in rows:
            self.assertEqual(row["record"]["index"], row["record"]["sample"])
        text = self.why("job", "--step", 1, "--row", 5)
        self.assertIn(f"{root}/{file}", text)
        self.assertIn(str(rows[5]["record"]["offset"]), text)

    def test_records_of_a_tfrecord_file(self):
        root = self.converted("tfrecord")
        texts = [{"strings_value": {"values": values}} for values in
                 ([str(root)], ["image/encoded", "image/class/label"], ["encoded", "int64"])]
        self.check_records(node("readers.tfrecord", paths=texts[0], features=texts[1], types=texts[2]), root,
                           "part-00000.tfrecord")

    def test_values_of_an_lmdb(self):
        root = self.converted("caffe2")
        self.check_records(node("readers.caffe2", path={"strings_value": {"values": [str(root)]}}), root, "data.mdb")


if __name__ == "__main__":
    os.chdir(cluster.tempfile.gettempdir())
    unittest.main()
