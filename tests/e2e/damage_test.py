# SPDX-License-Identifier: Apache-2.0
"""Damaged files have one meaning (docs/decisions/0025): a CPU worker, a GPU worker (on the fake CUDA driver), a worker
whose slots are too small for most rows, and all of them together give the oracle's bytes under every policy.

LEAT_FAKE_CUDA_LIB, LEAT_FAKE_NVJPEG_LIB: the fakes, set by CMake.
"""

import unittest

import cluster
from cluster import node

PHOTOS, BATCH, EPOCHS = 60, 12, 2
DATA_LOSS = 15
END_OF_IMAGE = b"\xff\xd9"


def ints(*values):
    return {"ints_value": {"values": list(values)}}


def number(value):
    return {"float_value": value}


def views(path, *nodes):
    """Returns a graph with one decode and `nodes`, each a view of it and an output; the label is the last output."""
    graph = [node("readers.image_folder", path={"string_value": str(path)}), node("decode", (0, 0)), *nodes]
    outputs = [{"name": f"view{i}", "ref": {"node": 2 + i}} for i in range(len(nodes))]
    return {"nodes": graph, "outputs": [*outputs, {"name": "label", "ref": {"node": 0, "output": 1}}]}


def random_views(path):
    def crop(size, least, most):
        area = {"floats_value": {"values": [least, most]}}
        return node("random_resized_crop", (1, 0), size=ints(size, size), area=area)
    return views(path, crop(64, 0.1, 0.4), crop(64, 0.1, 0.4), crop(24, 0.02, 0.1))


def top_views(path):
    def crop(side, pos_x):
        return node("crop", (1, 0), size=ints(side, side), pos_y=number(0), pos_x=number(pos_x))
    return views(path, crop(48, 0.0), crop(32, 1.0))


class DamageTest(cluster.FakeGpuTest):

    def setUp(self):
        super().setUp()
        self.images, self.with_tops = self.folder / "damaged", self.folder / "with-tops"
        for folder in (self.images, self.with_tops):
            (folder / "class").mkdir(parents=True)
        for i, photo in enumerate(cluster.test_data.images(cluster.photos())[:PHOTOS]):
            data = photo.read_bytes()
            header = data.partition(b"\xff\xda")[0]
            if i % 3:  # the last rows are lost: from a half to almost none
                data = data[:len(data) * (50 + 49 * i // PHOTOS) // 100] + END_OF_IMAGE
            (self.images / "class" / f"{i:02}.jpg").write_bytes(data)
            # Files that are neither turned nor progressive have sound first rows.
            if b"Exif" not in header and b"\xff\xc2" not in header:
                (self.with_tops / "class" / f"{i:02}.jpg").write_bytes(data)
        self.start_coordinator()

    def job(self, graph, policy):
        return self.spec(graph, name=f"{graph['nodes'][2]['op']}-{policy}", batch=BATCH,
                         on_bad_sample=f"BAD_SAMPLE_POLICY_{policy}")

    def fleets(self):
        """Returns functions that start one of each kind of worker, and all of them together."""
        cpu = lambda: [self.start_worker("--devices", "none", threads=2)]  # noqa: E731
        gpu = lambda: [self.start_gpu_worker(threads=2)]  # noqa: E731
        # 1 MiB: the windows of two or three photos.
        full = lambda: [self.start_gpu_worker("--gpu-slot-bytes", str(1 << 20), threads=2)]  # noqa: E731
        return {"cpu": cpu, "gpu": gpu, "full": full, "all": lambda: cpu() + gpu() + full()}

    def test_every_worker_makes_the_same_rows_of_damaged_files(self):
        self.assertGreater(len(list(self.with_tops.glob("*/*"))), PHOTOS // 2)
        jobs = {"zero": self.job(random_views(self.images), "ZERO"),
                "replace": self.job(random_views(self.images), "REPLACE"),
                "fail": self.job(top_views(self.with_tops), "FAIL")}
        expected = {key: self.oracle_steps(spec, EPOCHS) for key, spec in jobs.items()}
        for fleet, start in self.fleets().items():
            workers = start()
            for key, spec in jobs.items():
                with self.subTest(workers=fleet, job=key):
                    consumer = self.consumer(spec, epochs=EPOCHS).finish()
                    self.assertIsNone(consumer.error)
                    self.assertEqual(consumer.steps, expected[key])
            if fleet != "cpu":
                self.until("a GPU had a part", lambda: any(self.gpu_rows(worker) > 0 for worker in workers))
            for worker in workers:
                self.assertEqual(worker.stop(), 0)

    def gpu_rows(self, worker):
        view = next(each for each in self.get("workers")["workers"] if each["name"] == worker.name)
        return int(view["stats"].get("devices", [{}])[0].get("rows_exact_total", 0)) if view.get("devices") else 0

    def test_a_lost_row_fails_the_job_on_every_worker(self):
        spec = self.job(random_views(self.images), "FAIL")
        for fleet, start in self.fleets().items():
            workers = start()
            with self.subTest(workers=fleet):
                error = self.consumer(spec, epochs=EPOCHS).finish().error
                self.assertIsNotNone(error)
                self.assertEqual(error[0], DATA_LOSS, error)
                self.assertRegex(error[1], r"\.jpg.*damaged JPEG: ")
            for worker in workers:
                self.assertEqual(worker.stop(), 0)


if __name__ == "__main__":
    unittest.main()
