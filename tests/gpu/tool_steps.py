# SPDX-License-Identifier: Apache-2.0
"""Steps that examine the machine, or run other tools and tests on it."""

import json
import os
import pathlib
import re
import subprocess
import sys

import machine

HERE = pathlib.Path(__file__).resolve().parent
JPEG = (".jpg", ".jpeg", ".jpe")


def _run(words, context, **env):
    """Runs a program to its end; the runner bounds its time. Prints its output into the step's log."""
    done = subprocess.run([str(word) for word in words], env={**context.env, **env}, capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="\n", flush=True)
    return done


def gpu_check(context, name, lines, *flags):
    """Returns the command of a step of leat_gpu_check; None: it is not in the bundle."""
    program = context.program("leat_gpu_check")
    quick = ["--quick"] if context.quick else []
    return program and [program, name, "--data", context.photos, "--lines", lines, *flags, *quick]


def watched(name):
    """Runs a step of leat_gpu_check, and watches the utilisation of the JPEG engines meanwhile."""
    def step(context, lines):
        engines = machine.Engines(context.folder)
        done = subprocess.run([str(word) for word in gpu_check(context, name, lines.path)], env=context.env)
        utilisation(lines, engines, name)
        ends_as(done)
        if done.returncode != 0:
            sys.exit(done.returncode)
    return step


def ends_as(done):
    """Ends the step with the signal that ended its program."""
    if done.returncode < 0:
        sys.stdout.flush()
        os.kill(os.getpid(), -done.returncode)


def utilisation(lines, engines, of):
    found = sorted(engines.close())
    if not found:
        lines.missing(f"utilisation of the JPEG engines, {of}", engines.why)
        return
    for what, value in (("mean", sum(found) / len(found)), ("95th percentile", found[int(0.95 * (len(found) - 1))])):
        lines.figure("utilisation of the JPEG engines", value, "%", f"{len(found)} s", step=of, which=what)


def last(text):
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"


def describe(context, lines):
    facts = machine.describe()
    facts["packages"] = machine.packages("numpy", "torch", "torchvision", "jax")
    for name, value in facts.items():
        lines.fact(name, value)
    if "nvidia_smi" not in facts:
        lines.missing("nvidia-smi", "not on this machine; the driver itself was asked")
    if not facts["nvcuvid"]:
        lines.missing("the video capability", "no libnvcuvid here, without which nvJPEG finds no engines; "
                      f"NVIDIA_DRIVER_CAPABILITIES={facts['container'].get('NVIDIA_DRIVER_CAPABILITIES', '')}")
    if not machine.has_mig(facts):
        lines.missing("a MIG slice", "the GPU is whole: MIG is not enabled, and this changes no GPU's settings")
    for name in ("leat", "leat-coordinator", "leat-worker"):
        done = _run([context.top / "bin" / name, "--version"], context)
        lines.check(f"{name} starts on this glibc", done.returncode == 0, last(done.stderr or done.stdout))


def photos(context, lines):
    if not context.photos.exists():
        count, side = ("64", "256") if context.quick else ("512", "640")
        done = _run([context.program("leat_make_photos"), context.photos, count, "--max-side", side], context)
        if done.returncode != 0:
            raise RuntimeError(f"leat_make_photos: {last(done.stderr)}")
        lines.missing("photos of a camera", "none given (--data) or bundled: the files are drawn")
    files = [p for p in context.photos.rglob("*") if p.suffix.lower() in JPEG]
    lines.figure("JPEG files", len(files), "", f"{sum(p.stat().st_size for p in files) / 2**20:.1f} MiB")
    lines.check("there are photos", files, str(context.photos))


def kernels(context, lines):
    """Runs tests that skip without a device: here a skip is reported."""
    program = context.program("gpu_fused_device_test")
    if not program:
        lines.missing("tests of the kernels on a device", "not in this bundle: it was built without nvcc")
        return
    data = context.folder / "kernels"
    data.mkdir()
    (data / "imagenet-sample").symlink_to(context.photos.resolve())  # where those tests look for photos
    # Kernels that the fake driver runs on the CPU have no rate.
    words = ["--gtest_filter=FusedDevice.*"] if context.fake else []
    report = data / "report.json"
    done = _run([program, *words, f"--gtest_output=json:{report}"], context, LEAT_TEST_DATA=data)
    found = json.loads(report.read_text()) if report.exists() else {"testsuites": []}
    for test in (test for suite in found["testsuites"] for test in suite["testsuite"]):
        name = f"{test['classname']}.{test['name']}"
        if test["result"] == "SKIPPED":
            lines.missing(name, "it skipped: see the log")
            continue
        lines.check(name, "failures" not in test, test.get("failures", [{}])[0].get("failure", "")[:300])
        for key, unit in (("us", "us"), ("bytes", "bytes"), ("times_memory_limit", "times"), ("registers", ""),
                          ("threads_per_multiprocessor", "")):
            if key in test:
                lines.figure(f"fused kernel, {key}", float(test[key]), unit, test=name)
    ends_as(done)
    lines.check(program.name, done.returncode == 0, "" if done.returncode == 0 else f"exit code {done.returncode}")


def _sanitize(context, lines, *tools):
    program = context.program("gpu_fused_device_test")
    if not program:
        lines.missing("compute-sanitizer", "no GPU program in this bundle")
        return
    for what, words in tools:
        # The slowest tests of the kernels would take minutes under the sanitizer.
        tests = ("--gtest_filter=FusedDevice.ResamplesByAnyScale:FusedDevice.CastsToEveryTypeAtAnyAddress:"
                 "FusedDevice.PixelsOfCoefficientsAndCodesAreLibjpegs")
        done = _run([machine.tool("compute-sanitizer"), *words, "--error-exitcode", "9", program, tests], context)
        said = done.stdout + done.stderr
        if re.search("device not supported", said, re.I):  # as in some virtual machines
            lines.missing(f"compute-sanitizer: {what}", "it does not support this device")
            continue
        if "ERROR SUMMARY" not in said and done.returncode != 0:
            lines.missing(f"compute-sanitizer: {what}", last(said))
            continue
        summary = re.findall(r"=+ ((?:ERROR|LEAK) SUMMARY.*)", said)
        lines.check(f"compute-sanitizer: {what}", done.returncode == 0, "; ".join(summary))


def memcheck(context, lines):
    _sanitize(context, lines, ("no bad access, nothing leaked", ["--tool", "memcheck", "--leak-check", "full"]))


def initcheck(context, lines):
    """Runs initcheck, not racecheck: that checks shared memory, which the kernels do not use."""
    _sanitize(context, lines, ("no value is read that nobody wrote", ["--tool", "initcheck"]))


def without_gpu(framework, context):
    """Returns why this Python's `framework` has no GPU; empty: it has one."""
    if not machine.packages(framework)[framework]:
        return f"no {framework} in {sys.executable}"
    if context.fake:
        return "the driver is a fake"
    test = {"torch": "import torch; assert torch.cuda.is_available(), 'torch sees no CUDA device'",
            "jax": "import jax; jax.devices('gpu')"}[framework]
    done = _run([sys.executable, "-c", test], context)
    return "" if done.returncode == 0 else last(done.stderr)


def torchvision(context, lines):
    what = "torchvision decode_jpeg on the GPU"
    if not machine.packages("torchvision")["torchvision"]:
        lines.missing(what, f"no torchvision in {sys.executable}")
        return
    if why := without_gpu("torch", context):
        lines.missing(what, why)
        return
    done = _run([sys.executable, "-B", HERE / "torchvision_rate.py", context.photos, "1" if context.quick else "10"],
                context)
    if done.returncode != 0:
        lines.missing(what, last(done.stderr))
        return
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    lines.figure(what, answer["rate"], "img/s", f"{answer['files']} files that it takes, full images")
