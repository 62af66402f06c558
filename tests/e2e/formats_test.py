# SPDX-License-Identifier: Apache-2.0
"""Workers that do not decode all formats (--formats) and images that are decoded at smaller scales: the bytes of a
batch depend neither on the worker that computes a row nor on the decoded forms that are kept."""

import pathlib
import struct
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import cluster  # noqa: E402

PHOTOS, BMPS, BATCH = 12, 4, 8
FEW = ("--formats", "jpeg,png")


def bmp(side, seed):
    """Makes a BMP of 24 bits per pixel, whose rows are multiples of four bytes."""
    pixels = bytes((x * (seed + 3) + y * 7) % 256 for y in range(side) for x in range(3 * side))
    return struct.pack("<2sIHHI IiiHHIIiiII", b"BM", 54 + len(pixels), 0, 0, 54, 40, side, side, 1, 24, 0, len(pixels),
                       0, 0, 0, 0) + pixels


class Formats(cluster.ClusterTest):

    def setUp(self):
        super().setUp()
        images = self.folder / "images" / "class"
        images.mkdir(parents=True)
        for i, photo in enumerate(cluster.test_data.images(cluster.photos())[:PHOTOS]):
            (images / f"{i:02}.jpg").write_bytes(photo.read_bytes())
        for i in range(BMPS):
            (images / f"{3 * i:02}-drawn.bmp").write_bytes(bmp(64, i))
        self.start_coordinator()

    def job(self, policy):
        return self.spec(cluster.train_graph(self.folder / "images", side=32), name=f"formats-{policy}", batch=BATCH,
                         on_bad_sample=f"BAD_SAMPLE_POLICY_{policy}")

    def test_rows_of_a_format_that_is_off_are_other_workers(self):
        self.start_worker(*FEW, threads=2)
        self.start_worker(threads=2)
        for policy in ("FAIL", "ZERO", "REPLACE"):
            with self.subTest(policy=policy):
                spec = self.job(policy)
                consumer = self.consumer(spec).finish()
                self.assertIsNone(consumer.error)
                self.assertEqual(consumer.steps, self.oracle_steps(spec, 2))
        self.assertEqual(sum(int(job.get("bad_samples_total", 0)) for job in self.get("jobs")["jobs"]), 0)

    def test_where_no_worker_decodes_it_the_error_names_format_and_flag(self):
        worker = self.start_worker(*FEW)
        for policy in ("FAIL", "ZERO", "REPLACE"):
            with self.subTest(policy=policy):
                error = self.consumer(self.job(policy), "--row-timeout-s", 3).finish().error
                self.assertIsNotNone(error)
                self.assertRegex(error[1], r"-drawn\.bmp: .*a BMP image, which this worker does not decode: "
                                           r"want bmp in its --formats jpeg,png")
        self.assertIn("formats=jpeg,png", pathlib.Path(worker.log).read_text())

    def reducing(self, reduce, **changes):
        graph = cluster.train_graph(self.folder / "images", side=48)
        graph["nodes"][1]["args"] = {"reduce": {"string_value": reduce}}
        return self.spec(graph, name=f"formats-{reduce}", batch=BATCH, **changes)

    def test_reduced_decodes_are_the_oracles_whatever_is_kept(self):
        workers = [self.start_worker("--forms", forms, threads=2) for forms in ("all", "pixels", "none")]
        full = self.oracle_steps(self.reducing("none"), 4)
        for reduce in ("auto", "none", "auto"):  # also with forms that another job has left
            with self.subTest(reduce=reduce):
                spec = self.reducing(reduce)
                consumer = self.consumer(spec, epochs=4).finish()
                self.assertIsNone(consumer.error)
                self.assertEqual(consumer.steps, self.oracle_steps(spec, 4))
                self.assertEqual(consumer.steps == full, reduce == "none")
        logs = "".join(pathlib.Path(worker.log).read_text() for worker in workers)
        self.assertIn("decode.not_reduced format=bmp", logs)

    def test_a_scale_that_is_none_is_named_with_those_that_are(self):
        self.start_worker()
        error = self.consumer(self.reducing("half")).finish().error
        self.assertRegex(error[1], r'node 1 \(decode\): argument "reduce": "half" .*none, auto')

    def test_a_flag_that_is_wrong_is_one_line(self):
        for given, want in (("jpeg,gif", '"gif" is no image format'), ("png", "want jpeg among them")):
            done = subprocess.run([cluster.program("WORKER"), "--coordinator", "127.0.0.1:1", "--formats", given],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(want, done.stderr)


if __name__ == "__main__":
    unittest.main()
