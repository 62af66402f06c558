# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/run as it is used: a checkout and a bundle on a machine that has only Python and a driver.

The machine is a root with none of our packages and no network (empty_root.py). Its driver computes on the CPU.
"""

import json
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile
import unittest

import bundle_made
import empty_root

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKOUT = ("tests/gpu/run", "tests/gpu/*.py", "tests/e2e/cluster.py", "tests/support/test_data.py")
sys.path.insert(0, str(ROOT / "tests/gpu"))

import report  # noqa: E402
import steps  # noqa: E402

WITHOUT_NVCC = os.environ.get("LEAT_GPU_BUILD") == "0"
# Checks of a whole run that must never be left out.
CHECKED = ("the worker took GPU 0", "class exact, transport grpc: hashes are the oracle's",
           "class exact, transport shm: hashes are the oracle's", "class exact: the transport was shm",
           "class exact, transport cuda: hashes are the oracle's", "class exact: the transport was cuda",
           "class nvjpeg, transport shm: hashes are those of the first pass", "class exact: rows went through the GPU",
           "class nvjpeg: rows were decoded by the GPU", "the daemons drain and exit with 0",
           "a kernel directly behind a batch sees all of its pixels",
           "transport cuda: a worker is killed, and every batch has the oracle's hash",
           "transport shm: no slot is held for them", "the kernels load")


class GpuRootTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="leat-gpu-root-"))
        cls.addClassCleanup(shutil.rmtree, scratch, ignore_errors=True)
        cls.root = empty_root.EmptyRoot(scratch / "root")
        cls.source = cls.root.folder / "src"
        bundle = bundle_made.bundle()
        with tarfile.open(bundle) as tar:
            cls.with_nvjpeg = any("/lib/libnvjpeg.so." in name for name in tar.getnames())
        for pattern in CHECKOUT:
            for file in ROOT.glob(pattern):
                (cls.source / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, cls.source / file.relative_to(ROOT))
        cls.bundle = pathlib.Path("/src/build") / bundle.name
        (cls.source / "build").mkdir()
        shutil.copy(bundle, cls.source / "build")
        cls.root.take_lookalikes(bundle_made.build_dir() / "fake_cuda", "driver")

    def test_it_has_neither_our_packages_nor_a_network(self):
        done = self.root.run("/usr/bin/python3", "-c", "import socket, os; print(os.listdir('/'))\n"
                             "socket.create_connection(('192.0.2.1', 80), 1)", timeout=60)
        self.assertIn("Network is unreachable", done.stderr)
        found = {path.name for path in self.root.folder.rglob("*.so*") if "driver" not in path.parts}
        self.assertEqual([name for name in found if name.startswith(("libgrpc", "libprotobuf", "libabsl", "libjpeg",
                                                                     "libstdc++", "libcuda", "libnvjpeg"))], [])

    @unittest.skipIf(WITHOUT_NVCC, "this build has no GPU support: there was no nvcc")
    def test_every_check_passes_there(self):
        done = self.root.run("/src/tests/gpu/run", "--bundle", self.bundle, "--quick", "--json", "/src/gpu.json",
                             "--fake", "/driver", timeout=540)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads((self.source / "gpu.json").read_text())
        outcomes = {step["step"]: step["outcome"] for step in found["steps"]}
        self.assertEqual(list(outcomes), ["machine", "photos", *steps.names()])
        not_here = {name for name, outcome in outcomes.items() if outcome == "not here"}
        self.assertEqual(not_here, {"memcheck", "initcheck", "torch_graph", "torch_streams", "torchvision",
                                    "mps"}, done.stdout)
        self.assertEqual(set(outcomes.values()), {"passed", "not here"})
        lines = {line.get("check"): line for step in found["steps"] for line in step["lines"]}
        for what in CHECKED:
            self.assertIs(lines[what]["ok"], True, done.stdout)
        # A step that cannot be run here is reported with a reason, never left out.
        for step in found["steps"]:
            self.assertTrue(step["outcome"] == "passed" or step["why"], step)
        self.assertNotRegex(done.stdout, r"(?<!_)FAILED")  # EXECUTION_FAILED is an answer of nvJPEG's
        self.tables_have_every_figure(found)
        self.what_is_held_is_counted_by_address(report.Found(found))
        self.codes_are_decoded_on_the_gpu(report.Found(found))

    def tables_have_every_figure(self, found):
        """All measurements appear in tables; only figures that a fake cannot have are missing."""
        text = report.tables(found)
        left = [line.split("|")[1].strip() for line in text.splitlines() if f"| {report.NOTHING} |" in line]
        self.assertEqual(left, ["utilisation of the JPEG engines, 95th percentile, by step",
                                "class `nvjpeg` on transport `cuda`, ratio to torchvision's CUDA `decode_jpeg`",
                                "what rows and a trainer on the same GPU cost each other"])
        self.assertNotIn("Tables that are", text)

    def what_is_held_is_counted_by_address(self, found):
        """The fake driver passes no size when it frees."""
        for backend in ("HYBRID", "GPU_HYBRID"):
            held = found.value("memory that nvJPEG asks for", backend=backend, memory="of the device")
            self.assertLess(held, 0.5, backend)
            self.assertGreater(held, 0.1, backend)

    def codes_are_decoded_on_the_gpu(self, found):
        of = {"slots": 4, "class": "exact"}
        self.assertGreater(found.value("rows by decoder", **of, by="rows_codes_total"), 0)

    def test_without_a_driver_it_says_so(self):
        done = self.root.run("/src/tests/gpu/run", "--bundle", self.bundle, timeout=60)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("no NVIDIA driver could be loaded", done.stderr)

    def test_nvjpeg_of_the_bundle_loads_there(self):
        if not self.with_nvjpeg:
            self.skipTest("nvidia-nvjpeg could not be fetched")
        script = ("import ctypes, glob, tarfile\n"
                  f"with tarfile.open({str(self.bundle)!r}) as tar:\n"
                  "    for name in tar.getnames():\n"
                  "        if '/lib/libnvjpeg.so.' in name or '/lib/libgcc_s.so.1' in name:\n"
                  "            tar.extract(name, '/tmp')\n"
                  "libgcc, = glob.glob('/tmp/leat-*/lib/libgcc_s.so.1')  # a worker has it before\n"
                  "nvjpeg, = glob.glob('/tmp/leat-*/lib/libnvjpeg.so.*')\n"
                  "ctypes.CDLL(libgcc, ctypes.RTLD_GLOBAL)\n"
                  "value = ctypes.c_int(-1)\n"
                  "print(ctypes.CDLL(nvjpeg).nvjpegGetProperty(0, ctypes.byref(value)), value.value)\n")
        done = self.root.run("/usr/bin/python3", "-c", script, timeout=120)
        self.assertEqual(done.stdout.split(), ["0", "13"], done.stderr)


if __name__ == "__main__":
    unittest.main()
