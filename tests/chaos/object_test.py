# SPDX-License-Identifier: Apache-2.0
"""Objects over http: stores that fail, keys that expire, and a disk cache whose disk is full."""

import errno
import threading
import unittest

import faults
import web
from faults import ChaosTest, cluster


class ObjectTest(ChaosTest):
    def setUp(self):
        super().setUp()
        self.photos = self.folder / "objects"
        self.photos.mkdir()
        names = []
        for number, photo in enumerate(cluster.test_data.images(cluster.photos())):
            names.append(f"{number:03}.jpg")
            (self.photos / names[-1]).write_bytes(photo.read_bytes())
        (self.photos / "list.txt").write_text("".join(f"{name} {i % 10}\n" for i, name in enumerate(names)))
        self.web = self._keep(web.Web(self.photos))

    def spec_of(self, root):
        graph = cluster.train_graph("", faults.SIDE)
        graph["nodes"][0] = cluster.node("readers.file_list", path={"string_value": f"{root}/list.txt"})
        return self.spec(graph)

    def train_objects(self):
        return self.train(spec=self.spec_of(self.web.url))

    def finish_objects(self, consumer, longest_s):
        """Compares with the oracle, which reads the same files without http."""
        self.finish(consumer, longest_s, spec=self.spec_of(self.photos))


class Stores(ObjectTest):
    def fails(self, longest_s=20, **shares):
        self.start_coordinator()
        for _ in range(2):
            self.start_worker("--cache", "0")
        consumer = self.train_objects()
        consumer.pull(2)
        self.web.set(**shares)
        consumer.pull(10)
        self.web.set()
        self.finish_objects(consumer, longest_s)
        for fault in shares:
            self.assertGreater(self.web.counts[fault], 0, fault)

    def test_a_store_that_slows_down_and_fails(self):
        self.fails(busy=0.2, error=0.1)

    def test_bodies_that_end_early(self):
        self.fails(short=0.1, reset=0.1)

    def test_answers_of_another_range(self):
        self.fails(wrong_range=0.05)

    def test_answers_that_are_late(self):
        self.fails(late=0.05)

    def test_all_of_it_at_once(self):
        self.fails(busy=0.05, error=0.05, short=0.05, reset=0.05, wrong_range=0.02, late=0.05)

    def test_keys_that_expire_for_a_while(self):
        """403 is the workers' fault, never the sample's: rows wait until the keys are good again."""
        self.start_coordinator()
        for _ in range(2):
            self.start_worker("--cache", "0")
        consumer = self.train_objects()
        consumer.pull(2)
        self.web.set(denied=1.0)
        timer = threading.Timer(2, self.web.set)
        timer.start()
        self.addCleanup(timer.cancel)
        self.finish_objects(consumer, longest_s=20)
        self.assertGreater(self.web.counts["denied"], 0)


class DiskCache(ObjectTest):
    def test_its_disk_is_full(self):
        (self.folder / "kept").mkdir()
        full = self.file_faults(self.folder / "kept")
        self.start_coordinator()
        for number in range(2):
            self.start_worker("--cache", "0", "--disk-cache", str(self.folder / "kept" / str(number)),
                              "--disk-cache-bytes", "64MiB", env=full.env)
        consumer = self.train_objects()
        consumer.pull(3)
        full.set(write=errno.ENOSPC)
        consumer.pull(5)
        self.assertGreater(full.hits("write"), 0)
        full.clear()
        self.finish_objects(consumer, longest_s=10)


if __name__ == "__main__":
    faults.os.chdir(cluster.tempfile.gettempdir())
    unittest.main()
