# SPDX-License-Identifier: Apache-2.0
"""Sizes: a job of 10⁹ samples starts like a small one, and a decompression bomb is a bad sample like any other."""

import shutil
import time
import unittest

import cluster
from cluster import train_graph

RESOURCE_EXHAUSTED = 8


def resized_header(jpeg, width, height):
    """Returns the same file, claiming to be `width` × `height`."""
    position = 2
    while jpeg[position + 1] not in (0xC0, 0xC1, 0xC2):
        position += 2 + int.from_bytes(jpeg[position + 2:position + 4], "big")
    size = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return jpeg[:position + 5] + size + jpeg[position + 9:]


class LargeTest(cluster.ClusterTest):
    def test_a_job_of_a_thousand_million_samples_starts_at_once(self):
        self.start_cluster(workers=2)
        photos = len(cluster.test_data.images(cluster.photos()))
        spec = self.spec(train_graph(cluster.photos(), side=32, repeat=10**9 // photos))
        start = time.monotonic()
        consumer = self.consumer(spec, "--stop-after", 2, epochs=1).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual([step[:2] for step in consumer.steps], [(0, 0), (0, 1)])
        # Iterating over 10⁹ of anything would take longer than this; tests/bench/run has the figure.
        self.assertLess(time.monotonic() - start, 10)

    def test_a_pixel_bomb_is_refused_before_it_is_decoded(self):
        images = self.folder / "images" / "class"
        images.mkdir(parents=True)
        photos = cluster.test_data.images(cluster.photos())[:4]
        for number, photo in enumerate(photos):
            shutil.copy(photo, images / f"{number}.jpg")
        (images / "bomb.jpg").write_bytes(resized_header(photos[0].read_bytes(), 60000, 60000))
        self.start_cluster(workers=1)
        for policy in ("FAIL", "REPLACE", "ZERO"):
            spec = self.spec(train_graph(images.parent, side=32), name=policy, batch=5,
                             on_bad_sample=f"BAD_SAMPLE_POLICY_{policy}")
            consumer = self.consumer(spec, epochs=1).finish()
            if policy == "FAIL":
                self.assertEqual(consumer.error[0], RESOURCE_EXHAUSTED, consumer.error)
                self.assertIn("bomb.jpg", consumer.error[1])
                self.assertIn("60000", consumer.error[1])
            else:
                self.assertIsNone(consumer.error)
                self.assertEqual(len(consumer.steps), 1)


if __name__ == "__main__":
    unittest.main()
