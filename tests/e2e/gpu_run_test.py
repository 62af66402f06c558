# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/run from a bundle, over a driver that computes on the CPU (tests/support/fake_cuda)."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "tests/gpu/run"
sys.path.insert(0, str(RUN.parent))

import machine  # noqa: E402


class GpuRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-gpu-run-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        build = os.environ.get("LEAT_BUILD_DIR")
        if not build:
            raise unittest.SkipTest("LEAT_BUILD_DIR names no build tree")
        cls.fake = pathlib.Path(build) / "fake_cuda"
        cls.bundle = pathlib.Path(os.environ.get("LEAT_BUNDLE") or cls.folder / "leat.tar.gz")
        if not cls.bundle.exists():
            packed = subprocess.run([ROOT / "deploy/bundle", "--build-dir", build, "-o", cls.bundle,
                                     "--without-parquet"], capture_output=True, text=True)
            assert packed.returncode == 0, packed.stderr

    def run_it(self, *flags, **env):
        """(exit code, lines of the JSON by what they are about, everything that was printed)"""
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        done = subprocess.run([RUN, "--bundle", self.bundle, "--quick", "--json", answer, *flags], capture_output=True,
                              text=True, timeout=300, env={**os.environ, **env})
        found = json.loads(answer.read_text()) if answer.exists() else {"lines": []}
        return done.returncode, {line["what"]: line for line in found["lines"]}, done.stdout + done.stderr

    def test_without_a_gpu_it_says_so_and_exits_with_3(self):
        code, lines, said = self.run_it(LEAT_CUDA_LIBRARY="/nowhere/libcuda.so.1")
        self.assertEqual(code, 3, said)
        self.assertIn("no NVIDIA GPU can be used here, so nothing was checked", said)
        self.assertIn("/nowhere/libcuda.so.1", said)
        self.assertEqual([line["status"] for line in lines.values()], ["missing"])

    def test_wrong_use_exits_with_2(self):
        for flags in (["--data", "/nowhere"], ["--jsom", "x"], ["--limit-s", "soon"]):
            with self.subTest(flags=flags):
                self.assertEqual(self.run_it(*flags)[0], 2)

    @unittest.skipIf(os.environ.get("LEAT_GPU_BUILD") == "0", "this build has no GPU support: there was no nvcc")
    def test_every_check_passes_on_a_gpu_that_works(self):
        code, lines, said = self.run_it("--fake", self.fake)
        self.assertEqual(code, 0, said)
        for what in ("the worker took GPU 0", "class exact, plane grpc: hashes are the oracle's",
                     "class exact, plane shm: hashes are the oracle's", "class exact: the plane was shm",
                     "class exact, plane cuda: hashes are the oracle's", "class exact: the plane was cuda",
                     "class nvjpeg, plane shm: hashes are those of the first pass",
                     "class exact: rows went through the GPU", "class nvjpeg: rows were decoded by the GPU",
                     "the daemons drain and exit with 0"):
            self.assertEqual(lines[what]["status"], "passed", said)
        # What cannot be checked here is said, never left out.
        for what in ("compute-sanitizer", "torchvision decode_jpeg on the GPU",
                     "plane cuda, torch: hashes are the oracle's"):
            self.assertEqual(lines[what]["status"], "missing", said)
            self.assertTrue(lines[what]["note"])
        self.assertNotIn("FAILED", said)

    def test_a_gpu_that_does_not_work_fails_the_run_and_the_other_checks_go_on(self):
        code, lines, said = self.run_it("--fake", self.fake, LEAT_FAKE_CUDA_FAIL="cuModuleLoadData:1+:209")
        self.assertEqual(code, 1, said)
        self.assertIn("FAILED", said)
        self.assertIn("compute-sanitizer", lines)
        self.assertTrue(pathlib.Path(f"{self.folder}/answer.json.logs").is_dir())

    def test_a_gpu_that_is_here_is_found_by_its_driver(self):
        os.environ["LEAT_CUDA_LIBRARY"] = str(self.fake / "libcuda.so.1")
        self.addCleanup(os.environ.pop, "LEAT_CUDA_LIBRARY")
        gpus, why = machine.probed()
        self.assertEqual([gpu["name"] for gpu in gpus], ["Fake GPU"], why)
        self.assertGreater(gpus[0]["free_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
