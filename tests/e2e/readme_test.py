# SPDX-License-Identifier: Apache-2.0
"""The ten lines of the README run as they stand there, over any folder of photos."""

import importlib.util
import os
import re
import subprocess
import sys
import unittest

import cluster


class ReadmeTest(cluster.ClusterTest):
    def test_the_ten_lines_give_batches(self):
        for package in ("numpy", "jax", "tqdm"):
            if importlib.util.find_spec(package) is None:
                self.skipTest(f"{sys.executable} has no {package}")
        root = cluster.pathlib.Path(__file__).resolve().parents[2]
        blocks = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.S)
        script = next(block for block in blocks if "@leat.pipeline" in block)
        (self.folder / "photos").symlink_to(cluster.photos())
        native = self.daemon_dir()
        (native / "libleat.so").symlink_to(os.environ["LEAT_LIBRARY"])
        environment = {**os.environ, "LEAT_NATIVE_DIR": str(native), "PYTHONPATH": str(root / "python_client/src"),
                       "JAX_PLATFORMS": "cpu"}
        environment.pop("LEAT_COORDINATOR", None)
        done = subprocess.run([sys.executable, "-c", script], cwd=self.folder, env=environment, capture_output=True,
                              text=True, timeout=2 * cluster.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.assertEqual(done.stdout.count("(32, 224, 224, 3)"), 500 // 32, done.stdout)


if __name__ == "__main__":
    unittest.main()
