# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/run from a bundle, with a driver that computes on the CPU (tests/support/fake_cuda), or fails.

A run of all steps is in gpu_root_test.py.
"""

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import bundle_made

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "tests/gpu/run"
sys.path.insert(0, str(RUN.parent))

import gpu_run  # noqa: E402
import machine  # noqa: E402
import steps  # noqa: E402

WITHOUT_NVCC = os.environ.get("LEAT_GPU_BUILD") == "0"


class GpuRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-gpu-run-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.fake = bundle_made.build_dir() / "fake_cuda"
        (cls.folder / "once").mkdir()
        cls.top = gpu_run.unpacked(bundle_made.bundle(), cls.folder / "once")

    def setUp(self):
        self.answer = self.folder / "answer.json"
        self.answer.unlink(missing_ok=True)

    def found(self):
        return json.loads(self.answer.read_text()) if self.answer.exists() else {"steps": []}

    def run_it(self, *flags, **env):
        """Returns (exit code, lines by their subject, steps by name, the whole output)."""
        words = [RUN, "--bundle", self.top, "--quick", "--json", self.answer, *flags]
        done = subprocess.run(words, capture_output=True, text=True, timeout=540, env={**os.environ, **env})
        found = self.found()
        lines = {line.get("check") or line.get("missing") or line.get("figure"): line
                 for step in found["steps"] for line in step["lines"]}
        return done.returncode, lines, {step["step"]: step for step in found["steps"]}, done.stdout + done.stderr

    def run_shortened(self, name, limit_s, fail):
        """The same in this process, with one step, which has another time limit."""
        plan = [dataclasses.replace(step, limit_s=limit_s) if step.name == name else step for step in steps.CHOSEN]
        words = ["--bundle", str(self.top), "--quick", "--json", str(self.answer), "--fake", str(self.fake), "--only",
                 f"{name},copies"]
        out = io.StringIO()
        with mock.patch.object(steps, "CHOSEN", plan), mock.patch.dict(os.environ, LEAT_FAKE_CUDA_FAIL=fail), \
                contextlib.redirect_stdout(out):
            code = gpu_run.main(words)
        return code, {step["step"]: step for step in self.found()["steps"]}, out.getvalue()

    def test_without_a_gpu_it_says_so_and_exits_with_3(self):
        code, _, steps_, said = self.run_it(LEAT_CUDA_LIBRARY="/nowhere/libcuda.so.1")
        self.assertEqual(code, 3, said)
        self.assertIn("no NVIDIA GPU can be used here, so nothing was checked", said)
        self.assertIn("/nowhere/libcuda.so.1", steps_["gpu"]["why"])
        self.assertEqual(self.found()["exit_code"], 3)

    def test_wrong_use_exits_with_2(self):
        for flags in (["--data", "/nowhere"], ["--jsom", "x"], ["--budget", "soon"], ["--only", "nothing"]):
            with self.subTest(flags=flags):
                self.assertEqual(self.run_it(*flags)[0], 2)

    @unittest.skipIf(WITHOUT_NVCC, "this build has no GPU support: there was no nvcc")
    def test_a_gpu_that_does_not_work_fails_the_run_and_the_other_steps_go_on(self):
        code, _, steps_, said = self.run_it("--fake", self.fake, "--only", "handles,service,memcheck",
                                            LEAT_FAKE_CUDA_FAIL="cuModuleLoadData:1+:209")
        self.assertEqual(code, 1, said)
        self.assertEqual((steps_["handles"]["outcome"], steps_["service"]["outcome"], steps_["memcheck"]["outcome"]),
                         ("failed", "failed", "not here"), said)
        self.assertEqual(steps_["copies"]["why"], "not in --only")
        self.assertIn("no kernel image", pathlib.Path(f"{self.answer}.log").read_text())

    @unittest.skipIf(WITHOUT_NVCC, "this build has no GPU support: there was no nvcc")
    def test_what_the_backends_answer_is_known_where_the_worker_cannot_open_them(self):
        code, lines, steps_, said = self.run_it("--fake", self.fake, "--only", "handles",
                                                LEAT_FAKE_CUDA_FAIL="nvjpegCreateExV2:4+:2")  # three are the step's
        self.assertEqual(code, 1, said)
        self.assertIs(lines["the worker's slots and nvJPEG open"]["ok"], False, said)
        self.assertEqual(self.found()["machine"]["nvJPEG HARDWARE with allocators"], "opens")
        self.assertEqual(lines["the kernels load"]["ok"], True)
        kernels = {line["of"]["kernel"] for line in steps_["handles"]["lines"] if line.get("figure") == "kernel"}
        self.assertLessEqual({"leat_fused_3", "leat_jpeg_samples", "leat_jpeg_pixels", "leat_stage_map"}, kernels)

    @unittest.skipIf(WITHOUT_NVCC, "this build has no GPU support: there was no nvcc")
    def test_a_call_that_never_returns_costs_its_step_only(self):
        code, steps_, said = self.run_shortened("exact", 5, "cuLaunchKernel:20:-1")
        self.assertEqual(code, 1, said)
        self.assertEqual((steps_["exact"]["outcome"], steps_["exact"]["why"]), ("hung", "no end within 5 s"))
        self.assertEqual(steps_["copies"]["outcome"], "passed", said)

    @unittest.skipIf(WITHOUT_NVCC, "this build has no GPU support: there was no nvcc")
    def test_a_driver_that_aborts_costs_its_step_only(self):
        code, steps_, said = self.run_shortened("behind", 60, "nvjpegDecodeBatchedEx:3:-2")
        self.assertEqual(code, 1, said)
        self.assertEqual((steps_["behind"]["outcome"], steps_["behind"]["why"]), ("crashed", "ended by SIGABRT"))
        self.assertGreater(len(steps_["behind"]["lines"]), 0)
        self.assertEqual(steps_["copies"]["outcome"], "passed", said)

    def test_a_gpu_that_is_here_is_found_by_its_driver(self):
        with mock.patch.dict(os.environ, LEAT_CUDA_LIBRARY=str(self.fake / "libcuda.so.1")):
            gpus, why = machine.probed()
        self.assertEqual([gpu["name"] for gpu in gpus], ["Fake GPU"], why)
        self.assertGreater(gpus[0]["free_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
