# SPDX-License-Identifier: Apache-2.0
"""The build without GPU support (-DLEAT_GPU=OFF, or no nvcc): configured only. What it compiles is in every tree."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class WithoutGpuTest(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp(prefix="leat-without-gpu-"))
        self.addCleanup(shutil.rmtree, self.tree, ignore_errors=True)

    def configure(self, *flags):
        return subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", self.tree, "-DLEAT_TESTS=OFF",
                               "-DLEAT_BENCH=OFF", *flags], capture_output=True, text=True, timeout=300)

    def worker_commands(self):
        """Returns the commands that building leat-worker would run."""
        done = subprocess.run(["ninja", "-C", self.tree, "-t", "commands", "leat-worker"], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_worker_without_gpus_is_built_from_the_stand_in_and_needs_no_nvcc(self):
        configured = self.configure("-DLEAT_GPU=OFF")
        self.assertEqual(configured.returncode, 0, configured.stdout + configured.stderr)
        commands = self.worker_commands()
        self.assertIn("leat_worker_no_gpu.dir", commands)
        self.assertNotIn("leat_worker_gpu.dir", commands)
        self.assertNotIn("nvcc", commands)

    def test_without_nvcc_the_build_has_no_gpu_support_by_itself(self):
        configured = self.configure("-DLEAT_NVCC=/nowhere/nvcc")
        self.assertEqual(configured.returncode, 0, configured.stdout + configured.stderr)
        self.assertIn("leat_worker_no_gpu.dir", self.worker_commands())

    def test_gpu_support_that_is_asked_for_and_cannot_be_had_is_an_error(self):
        configured = self.configure("-DLEAT_GPU=ON", "-DLEAT_NVCC=/nowhere/nvcc")
        self.assertNotEqual(configured.returncode, 0)
        self.assertIn("LEAT_GPU is ON", configured.stderr)


if __name__ == "__main__":
    unittest.main()
