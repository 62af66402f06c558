# SPDX-License-Identifier: Apache-2.0
"""The steps of tests/gpu/run, in their order: the first answers, in four minutes, and then the rest.

C++ steps are leat_gpu_check's (leat_gpu_check.cc); Python steps are functions of tool_steps.py and service_steps.py.
"""

import json
import pathlib
import sys

import machine
import tool_steps
from runner import Step

HERE = pathlib.Path(__file__).resolve().parent
NO_CHECKS = "leat_gpu_check is not in this bundle: it was built without nvcc"


def _gpu_check(name, *flags):
    def command(context, lines):
        return tool_steps.gpu_check(context, name, lines, *flags) or NO_CHECKS
    return command


def _watched(name):
    """Makes the same command, while the JPEG engines' utilisation is watched."""
    def command(context, lines):
        return _python(name)(context, lines) if context.program("leat_gpu_check") else NO_CHECKS
    return command


def _python(name):
    def command(context, lines):
        about = context.folder / f"{name}.context.json"
        about.write_text(json.dumps({"top": str(context.top), "folder": str(context.folder),
                                     "photos": str(context.photos), "quick": context.quick, "fake": context.fake}))
        return [sys.executable, "-B", HERE / "step.py", name, about, lines]
    return command


def _sanitizer(name):
    def command(context, lines):
        if context.fake:
            return "the driver is a fake"
        if not machine.tool("compute-sanitizer"):
            return "no compute-sanitizer on this machine (it comes with the CUDA toolkit)"
        return _python(name)(context, lines)
    return command


def _mps(context, lines):
    if context.fake:
        return "the driver is a fake"
    if not machine.tool("nvidia-cuda-mps-control"):
        return "no nvidia-cuda-mps-control on this machine"
    return _python("mps")(context, lines)


ALWAYS = [
    Step("machine", "what this machine is", 40, _python("machine"), 5),
    Step("photos", "the files for the others", 60, _python("photos"), 2),
]

# The first answers, in FIRST_S seconds: the steps that decide the goals.
FIRST = [
    Step("handles", "does nvJPEG open with each backend; engines; the kernels' registers, spills and occupancy", 30,
         _gpu_check("handles"), 8),
    Step("copies", "copies, page-locking, the fused kernel and the JPEG kernels alone", 40, _gpu_check("copies"), 12),
    Step("nvjpeg", "nvJPEG alone: photos whole and as rows ask, by sampling, states, handles, interpolation", 75,
         _watched("nvjpeg"), 28),
    Step("slots", "files to rows with 4 slots, by class; a slot's time; cores; memory", 60,
         _watched("slots"), 30),
    Step("whole", "whole images by the engines against nvJPEG's CUDA backend and libjpeg-turbo, by sampling", 45,
         _gpu_check("whole"), 10),
    Step("shapes", "regions, scales, both, gray: which the engines take, and their bytes, of few photos", 45,
         _gpu_check("shapes", "--first"), 15),
    Step("service", "the same bytes on transports shm and cuda, from real daemons, to C++, torch and JAX", 100,
         _python("service"), 40),
    Step("trainer", "rows and a trainer on the same GPU, and what each loses by the other, without and with MPS", 120,
         _python("trainer"), 55),
    Step("exact", "class exact: rows of the GPU are the CPU's, of few pipelines and photos", 40,
         _gpu_check("exact", "--first"), 12),
    Step("behind", "a kernel directly behind a batch sees all pixels; whether engines wait for their stream", 40,
         _gpu_check("behind", "--first"), 12),
]
FIRST_S = 230

# The rest run has these. Steps that may leave the device wedged come last; after them comes MPS, which starts a server.
REST = [
    Step("kernels", "the fused kernel's bytes and time on the device", 60, _python("kernels"), 20),
    Step("memcheck", "bad accesses and leaks of the kernels, by compute-sanitizer", 120, _sanitizer("memcheck"), 40),
    Step("initcheck", "reads of values that nobody wrote, by compute-sanitizer", 120, _sanitizer("initcheck"), 40),
    Step("torch_graph", "a torch trainer that captures CUDA graphs keeps them and its batches", 60,
         _python("torch_graph"), 20),
    Step("torch_streams", "batches that torch uses on a second stream are not overwritten", 60,
         _python("torch_streams"), 20),
    Step("sharing", "memory shared by two processes, of which either is killed", 75, _python("sharing"), 30),
    Step("exact_all", "exact, with more pipelines and all photos", 120, _gpu_check("exact"), 70),
    Step("shapes_all", "shapes, with all photos", 120, _gpu_check("shapes"), 40),
    Step("behind_all", "behind, 10,000 batches", 100, _gpu_check("behind"), 65),
    Step("squares", "nvJPEG alone: drawn squares by backend, way and size", 90, _gpu_check("squares"), 50),
    Step("few_slots", "files to rows with 1 and 2 slots", 75, _gpu_check("few_slots"), 35),
    Step("memory", "device memory over many groups", 60, _gpu_check("memory"), 28),
    Step("transports", "rows to the trainer by transport", 150, _python("transports"), 90),
    Step("torchvision", "its decode_jpeg on the GPU, to compare with", 45, _python("torchvision"), 20),
    Step("damage", "what truncated and bit-flipped files do to a batch", 45, _gpu_check("damage"), 15),
    Step("nulls", "whether nvJPEG opens without allocators, which Leat never asks of it", 30, _gpu_check("nulls"), 5),
    Step("mps", "worker and consumer under NVIDIA's multi-process service", 60, _mps, 20),
]
CHOSEN = [*FIRST, *REST]
PARTS = {"first": {step.name for step in FIRST}, "rest": {step.name for step in REST}}


def names():
    return [step.name for step in CHOSEN]


def chosen(only, skip, part=None):
    """Returns [(step, why it is left out, or "")]. ValueError: an unknown step is named."""
    for option, given in (("--only", only), ("--skip", skip)):
        for name in given or ():
            if name not in names():
                raise ValueError(f"{option} {name}: want one of {', '.join(names())}")

    def why(step):
        if only and step.name not in only:
            return "not in --only"
        if step.name in (skip or ()):
            return "--skip"
        return "" if part is None or step.name in PARTS[part] else f"not in --part {part}"
    return [(step, why(step)) for step in CHOSEN]
