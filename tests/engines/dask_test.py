# SPDX-License-Identifier: Apache-2.0
"""A training whose workers are beside those of a real Dask."""

import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "e2e"))
sys.path.append(str(HERE.parents[1] / "python_client/src"))
import cluster  # noqa: E402
import pages  # noqa: E402

try:
    import distributed
except ModuleNotFoundError:
    distributed = None

PATIENCE_S = 60


class Dask(cluster.PhotosTest):
    def setUp(self):
        if distributed is None:
            raise unittest.SkipTest("no distributed: deploy/install-dependencies --python engines build/venv-engines")
        super().setUp()
        self.start_coordinator()
        self.dask = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                             local_directory=str(self.folder / "dask"))
        self.addCleanup(self.dask.close)

    def ready(self):
        return {each["name"] for each in self.get("workers")["workers"] if each["state"] == "WORKER_STATE_READY"}

    def until_ready(self, count):
        end = time.monotonic() + PATIENCE_S
        while len(self.ready()) != count:
            self.assertLess(time.monotonic(), end, f"never {count} workers: {self.get('workers')}")
            time.sleep(0.2)

    def test_each_worker_of_dask_has_one_of_leat(self):
        client = pages.run("page_dask.py", {
            '"scheduler:8786"': repr(self.dask.scheduler_address), '"head:7411"': repr(self.coordinator.address),
            '"--allow=/data"': f'"--cache=64MiB", "--allow={cluster.photos()}"', "threads=2": "threads=1",
            "**files": ""})["client"]
        self.addCleanup(client.close)
        self.until_ready(2)
        consumer = self.consumer(self.spec(), "--paced")
        consumer.pull(2)
        self.dask.scale(3)
        self.until_ready(3)
        consumer.pull(2)
        self.dask.scale(1)
        self.until_ready(1)
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        client.unregister_worker_plugin("leat-cpu")
        self.until_ready(0)

