# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/run: every check and figure that a machine with an NVIDIA GPU can give. See there for its use."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import cluster  # noqa: E402
import machine  # noqa: E402
import service  # noqa: E402
from report import Report  # noqa: E402

NO_GPU = 3
DEFAULT_BUNDLE = HERE.parents[1] / "build/leat-bundle.tar.xz"


class NoTimeLeft(Exception):
    """The limit of the whole run is reached."""


class Run:
    def __init__(self, args, top, folder, report):
        self.args, self.top, self.folder, self.report = args, top, folder, report
        self.end = time.monotonic() + args.limit_s
        self.env = {name: value for name, value in os.environ.items() if name not in ("LEAT_COORDINATOR", "LEAT_PLANE")}
        self.batch = 16 if args.quick else 128
        self.rate_s = 1.0 if args.quick else 10.0
        self.jobs = []  # that the service has, and whose rates are worth a figure
        self._frameworks, self._site = {}, None

    def left(self, at_most):
        """Seconds that a step may take."""
        left = self.end - time.monotonic()
        if left < 5:
            raise NoTimeLeft(f"the limit of {self.args.limit_s} s is reached (--limit-s)")
        return min(left, at_most)

    def step(self, what, function):
        """A step that fails does not stop the others."""
        self.report.section(what)
        try:
            function()
        except NoTimeLeft as error:
            self.report.missing(what, str(error))
        except subprocess.TimeoutExpired as error:
            self.report.check(what, False, f"no end within {error.timeout:.0f} s")
        except Exception as error:  # noqa: BLE001  a table with a failed line says more than a traceback
            self.report.check(what, False, f"{type(error).__name__}: {error}"[:500])

    def program(self, name):
        path = self.top / "checks" / name
        return path if path.exists() else None

    # -- steps --

    def describe(self):
        facts = self.report.machine
        facts.update(machine.describe())
        facts["packages"] = machine.packages("numpy", "torch", "torchvision", "jax")
        for gpu in facts["gpus"]:
            self.report.figure(f"GPU {gpu['index']}: {gpu['name']}", gpu["memory_bytes"] / 2**30, "GiB")
        self.report.figure("CPU cores for this process", facts["cores"], "", facts["cpu"])
        if "nvidia_smi" in facts:
            print(f"nvidia-smi: {facts['nvidia_smi']}")
        else:
            self.report.missing("nvidia-smi", "not on this machine; the driver itself was asked")

    def find_photos(self):
        """Sets `photos`: --data, what the bundle has, or generated."""
        if self.args.data:
            self.photos = self.args.data
        elif (self.top / "photos").is_dir():
            self.photos = self.top / "photos"
        else:
            self.photos = self.folder / "photos"
            count, side = ("64", "256") if self.args.quick else ("512", "640")
            subprocess.run([self.top / "checks/leat_make_photos", self.photos, count, "--max-side", side],
                           check=True, timeout=self.left(120))
            self.report.missing("photos of a camera", "none given (--data) or bundled: the files are drawn")
        files = [p for p in self.photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".jpe")]
        if not files:
            raise RuntimeError(f"{self.photos} has no JPEG files")
        self.report.figure("JPEG files", len(files), "",
                           f"{sum(p.stat().st_size for p in files) / 2**20:.1f} MiB")

    def gpu_check(self):
        """leat_gpu_check: GPU against CPU in one process; its lines become lines here."""
        program = self.program("leat_gpu_check")
        if not program:
            self.report.missing("leat_gpu_check", "not in this bundle: it was built without nvcc")
            return
        answer = self.folder / "gpu_check.json"
        quick = ["--quick"] if self.args.quick else []
        done = subprocess.run([program, "--data", self.photos, "--json", answer, *quick], env=self.env,
                              capture_output=True, text=True, timeout=self.left(240))
        found = json.loads(answer.read_text()) if answer.exists() else {"results": []}
        for line in found["results"]:
            if "check" in line:
                self.report.check(line["check"], line["ok"], line["note"])
            elif "figure" in line:
                self.report.figure(line["figure"], line["value"], line["unit"], line["note"])
            else:
                self.report.missing(line["missing"], line["why"])
        note = "" if done.returncode == 0 else f"exit code {done.returncode}: {_last(done.stderr or done.stdout)}"
        self.report.check("leat_gpu_check: the GPU's rows against the CPU's", done.returncode == 0, note)

    def google_tests(self):
        """Tests that skip where there is no device: here a skipped one is said."""
        found = sorted((self.top / "checks").glob("*_device_test"))
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        (data / "imagenet-sample").symlink_to(self.photos.resolve())  # where those tests look
        if not found:
            self.report.missing("tests of the kernels on a device", "not in this bundle: it was built without nvcc")
        for program in found:
            done = subprocess.run([program], env={**self.env, "LEAT_TEST_DATA": str(data)}, capture_output=True,
                                  text=True, timeout=self.left(180))
            skipped = set(re.findall(r"^\[  SKIPPED \] (\w+\.\w+) \(", done.stdout, re.M))
            ran = set(re.findall(r"^\[       OK \] (\w+\.\w+)", done.stdout, re.M))
            reasons = re.findall(r": Skipped\n(.*)", done.stdout)
            if skipped:
                self.report.missing(f"{program.name}: {len(skipped)} tests", f"they skipped: {' '.join(reasons[:1])}")
            for line in done.stdout.splitlines():  # figures that they print
                if " us" in line or "GB/s" in line:
                    print(line)
            failed = re.findall(r"^\[  FAILED  \] (\w+\.\w+) \(", done.stdout, re.M)
            note = f"{len(ran)} tests" if not failed else ", ".join(failed)
            if ran or done.returncode != 0:
                self.report.check(program.name, done.returncode == 0, note or _last(done.stderr))

    def sanitizer(self):
        tool = machine.tool("compute-sanitizer")
        programs = [p for p in (self.program("leat_gpu_check"), self.program("gpu_fused_device_test")) if p]
        if self.args.fake:
            self.report.missing("compute-sanitizer", "the driver is a fake")
        elif not tool:
            self.report.missing("compute-sanitizer", "not on this machine (it comes with the CUDA toolkit)")
        elif not programs:
            self.report.missing("compute-sanitizer", "no GPU program in this bundle")
        else:
            program = programs[0]
            flags = ["--quick", "--data", self.photos] if program.name == "leat_gpu_check" else []
            for what, words in (("no bad access", ["--tool", "memcheck"]),
                                ("nothing leaked", ["--tool", "memcheck", "--leak-check", "full"])):
                done = subprocess.run([tool, *words, "--error-exitcode", "9", program, *flags], env=self.env,
                                      capture_output=True, text=True, timeout=self.left(150))
                refused = re.search(r"not supported|Unable to|No attachable process", done.stdout + done.stderr)
                if refused and done.returncode != 0 and "ERROR SUMMARY" not in done.stdout:
                    self.report.missing(f"compute-sanitizer: {what}", _last(done.stdout + done.stderr))
                    continue
                summary = re.findall(r"=+ (ERROR SUMMARY.*|LEAK SUMMARY.*)", done.stdout)
                self.report.check(f"compute-sanitizer: {what} ({program.name})", done.returncode == 0,
                                  "; ".join(summary))

    def planes(self):
        """One coordinator and one GPU worker: the same bytes however they travel."""
        epochs = 1 if self.args.quick else 2
        running = service.Service(self.top, self.folder, self.env)
        try:
            self.report.check("the worker took GPU 0", any("gpu.ready" in line or "gpu.open" in line
                                                           for line in running.said("gpu.")), _about(running))
            exact = service.spec(self.folder, "exact", self.photos, self.batch)
            wanted = service.oracle(self.top, exact, epochs, self.env, self.left(180))
            self.report.figure("batches the oracle computed on the CPU", len(wanted), "")
            self.compare(running, "exact", exact, epochs, wanted, "the oracle's")
            self.jobs.append("exact")
            self.nvjpeg(running, epochs)
            self.frameworks(running, "exact", epochs, wanted)
            self.gpu_rows(running)
            self.memory_and_rates(running)
            codes = running.stop()
            self.report.check("the daemons drain and exit with 0", codes == [0, 0], str(codes))
        finally:
            running.close()

    def gpu_rows(self, running):
        """The bytes above are the GPU's work only if it did some. The counts come with the next heartbeat."""
        wanted = {"exact"} | ({"hardware", "cuda"} if "nvjpeg" in self.jobs else set())
        end, counts = time.monotonic() + 15, {}
        while time.monotonic() < end and not (counts.get("exact") and (len(wanted) == 1 or counts["hardware"] +
                                                                       counts["cuda"])):
            counts = running.gpu_rows()
        by = ", ".join(f"{name} {count}" for name, count in counts.items())
        self.report.check("class exact: rows went through the GPU", counts.get("exact", 0) > 0, by)
        if "nvjpeg" in self.jobs:
            self.report.check("class nvjpeg: rows were decoded by the GPU", counts.get("hardware", 0) +
                              counts.get("cuda", 0) > 0, by)

    def nvjpeg(self, running, epochs):
        if running.said("gpu.no_nvjpeg"):
            self.report.missing("class nvjpeg", "no libnvjpeg: deploy/bundle --with-nvjpeg, or LEAT_NVJPEG_LIBRARY")
            return
        job = service.spec(self.folder, "nvjpeg", self.photos, self.batch, "NVJPEG")
        try:
            wanted, _ = service.consume(self.top, running, job, epochs, "grpc", self.env, self.left(120))
        except RuntimeError as error:
            self.report.check("class nvjpeg over plane grpc", False, str(error))
            return
        self.report.check("class nvjpeg over plane grpc", True, f"{len(wanted)} batches")
        self.jobs.append("nvjpeg")
        self.compare(running, "nvjpeg", job, epochs, wanted, "those of the first pass")

    def compare(self, running, name, job, epochs, wanted, whose):
        for plane in ("grpc", "shm", "cuda"):
            what = f"class {name}, plane {plane}: hashes are {whose}"
            try:
                hashes, end = service.consume(self.top, running, job, epochs, plane, self.env, self.left(120))
            except RuntimeError as error:
                self.report.check(what, False, str(error))
                continue
            self.report.check(what, hashes == wanted, f"{len(hashes)} batches" if hashes == wanted else _differ(
                hashes, wanted))
            if len(end) > 7:
                self.report.check(f"class {name}: the plane was {plane}", end[7] == plane, f"it says {end[7]}")

    def python(self):
        """Packages, and the environment with the bundle's; None without NumPy."""
        if not self.report.machine["packages"]["numpy"]:
            return None
        if self._site is None:
            self._site = service.site(self.top, self.folder)
        path = os.pathsep.join(p for p in (str(self._site), os.environ.get("PYTHONPATH", "")) if p)
        return {**self.env, "PYTHONPATH": path}

    def without_gpu(self, framework):
        """Why this Python's `framework` has no GPU; empty: it has one. Asked once."""
        if framework not in self._frameworks:
            test = {"torch": "import torch; assert torch.cuda.is_available(), 'torch sees no CUDA device'",
                    "jax": "import jax; jax.devices('gpu')"}[framework]
            if not self.report.machine["packages"][framework]:
                why = f"no {framework} in {sys.executable}"
            elif self.args.fake:
                why = "the driver is a fake"
            else:
                done = subprocess.run([sys.executable, "-c", test], capture_output=True, text=True,
                                      timeout=self.left(120))
                why = "" if done.returncode == 0 else _last(done.stderr)
            self._frameworks[framework] = why
        return self._frameworks[framework]

    def frameworks(self, running, job, epochs, wanted):
        env = self.python()
        for name in ("torch", "jax"):
            what = f"plane cuda, {name}: hashes are the oracle's"
            why = f"no numpy in {sys.executable}" if env is None else self.without_gpu(name)
            if why:
                self.report.missing(what, why)
                continue
            try:
                answer = service.pull(running, job, name, "cuda", env, self.left(180), "--epochs", epochs)
            except RuntimeError as error:
                self.report.check(what, False, str(error))
                continue
            same = answer["hashes"] == wanted
            self.report.check(what, same, f"{len(wanted)} batches" if same else _differ(answer["hashes"], wanted))
            plane = answer["stats"].get("plane")
            self.report.check(f"{name}: the plane was cuda", plane == "cuda", f"it says {plane}")

    def memory_and_rates(self, running):
        env = self.python()
        if env is None:
            self.report.missing("rates through the service", f"no numpy in {sys.executable}")
            return
        first = None
        for job in self.jobs:
            for plane, framework in (("grpc", "numpy"), ("shm", "numpy"), ("cuda", "torch"), ("cuda", "jax")):
                what = f"class {job}, plane {plane}, {framework}"
                if framework != "numpy" and self.without_gpu(framework):
                    continue  # said above
                try:
                    answer = service.pull(running, job, framework, plane, env, self.left(60 + self.rate_s), "--rate-s",
                                          self.rate_s)
                except RuntimeError as error:
                    self.report.check(what, False, str(error))
                    continue
                gigabytes = answer["rate"] * answer["batch_bytes"] / self.batch / 1e9
                self.report.figure(what, answer["rate"], "img/s", f"{gigabytes:.2f} GB/s of rows")
                self.report.machine.setdefault("stats", {})[what] = answer["stats"]
            gpus, _ = machine.probed()
            if gpus and first is None:
                first = gpus[0]["free_bytes"]
        if first is not None and len(self.jobs) > 1 and gpus:
            grown = first - gpus[0]["free_bytes"]
            self.report.figure("device memory taken by the later jobs", grown / 2**20, "MiB", "leat_gpu_check checks")

    def torchvision(self):
        if self.args.fake or not self.report.machine["packages"]["torchvision"]:
            why = "the driver is a fake" if self.args.fake else f"no torchvision in {sys.executable}"
            self.report.missing("torchvision decode_jpeg on the GPU", why)
            return
        done = subprocess.run([sys.executable, "-B", HERE / "torchvision_rate.py", self.photos, str(self.rate_s)],
                              env=self.env, capture_output=True, text=True, timeout=self.left(90))
        if done.returncode != 0:
            self.report.missing("torchvision decode_jpeg on the GPU", _last(done.stderr))
            return
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        self.report.figure("torchvision decode_jpeg on the GPU", answer["rate"], "img/s",
                           f"{answer['files']} files that it takes, full images")
        for plane, framework in (("shm", "numpy"), ("cuda", "torch")):
            ours = self.report.value(f"class nvjpeg, plane {plane}, {framework}")
            if ours:
                self.report.figure(f"Leat (nvjpeg, {plane}) over torchvision", ours / answer["rate"], "times",
                                   "goal: 2")

    def all(self):
        self.step("machine", self.describe)
        self.step("photos", self.find_photos)
        if not hasattr(self, "photos"):
            return
        self.step("GPU against CPU", self.gpu_check)
        self.step("kernels on the device", self.google_tests)
        self.step("service: the same bytes on every plane", self.planes)
        self.step("torchvision", self.torchvision)
        self.step("compute-sanitizer", self.sanitizer)


def _last(text):
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"


def _about(running):
    lines = running.said("gpu.")
    return lines[0][:300] if lines else "its log says nothing of a GPU"


def _differ(hashes, wanted):
    if len(hashes) != len(wanted):
        return f"{len(hashes)} batches, not {len(wanted)}"
    return f"{sum(a != b for a, b in zip(hashes, wanted))} of {len(wanted)} batches differ"


def unpacked(bundle, folder):
    """The top folder of the bundle: this one, or `bundle` unpacked."""
    here = HERE.parents[1]
    if bundle is None and (here / "MANIFEST").exists() and (here / "bin/leat-worker").exists():
        return here
    bundle = bundle or DEFAULT_BUNDLE
    if not bundle.exists():
        sys.exit(f"tests/gpu/run: no bundle {bundle}: make one with deploy/bundle, or name it with --bundle")
    with tarfile.open(bundle) as tar:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(folder / "bundle", **safe)
    (top,) = (folder / "bundle").iterdir()
    return top


def parse():
    parser = argparse.ArgumentParser(prog="tests/gpu/run")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--data", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--bundle", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--limit-s", type=float, default=540)
    parser.add_argument("--fake", type=lambda text: pathlib.Path(text).resolve(),
                        help="for tests of this script: a folder with libraries that compute on the CPU")
    args = parser.parse_args()
    if args.data and not args.data.is_dir():
        parser.error(f"--data {args.data}: no such folder")
    return args


def main():
    args = parse()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    if args.fake:
        os.environ["LEAT_CUDA_LIBRARY"] = str(args.fake / "libcuda.so.1")
        os.environ["LEAT_NVJPEG_LIBRARY"] = str(args.fake / "libnvjpeg.so.13")
    # Where wheels put libnvjpeg.
    os.environ.setdefault("LEAT_SITE_PACKAGES", os.pathsep.join(p for p in sys.path if p.endswith("-packages")))
    gpus, why = machine.probed()
    report = Report(sys.stdout if gpus else open(os.devnull, "w"))
    if not gpus:
        print(f"tests/gpu/run: no NVIDIA GPU can be used here, so nothing was checked: {why}", file=sys.stderr)
        report.missing("an NVIDIA GPU", why)
        if args.json:
            report.write_json(args.json)
        sys.exit(NO_GPU)
    report.machine.update(gpus=gpus, fake=bool(args.fake))
    with tempfile.TemporaryDirectory(prefix="leat-gpu-run-") as folder:
        folder = pathlib.Path(folder)
        top = unpacked(args.bundle, folder)
        bundled = sorted((top / "lib").glob("libnvjpeg.so.*"))
        if bundled:
            os.environ.setdefault("LEAT_NVJPEG_LIBRARY", str(bundled[0]))
        run = Run(args, top, folder, report)
        run.all()
        if not report.passed:
            logs = pathlib.Path("gpu-run-logs" if args.json is None else f"{args.json}.logs")
            shutil.rmtree(logs, ignore_errors=True)
            logs.mkdir(parents=True)
            for log in folder.glob("*.log"):
                shutil.copy(log, logs)
            print(f"\nlogs of the daemons: {logs}")
    print(f"\n==== {', '.join(gpu['name'] for gpu in gpus)}\n{report.summary()}")
    if args.json:
        report.write_json(args.json)
    sys.exit(0 if report.passed else 1)


if __name__ == "__main__":
    main()
