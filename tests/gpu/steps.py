# SPDX-License-Identifier: Apache-2.0
"""The steps of tests/gpu/run, in their order: what decides most comes first, and what costs most last.

C++ steps are leat_gpu_check's (leat_gpu_check.cc); Python steps are functions of tool_steps.py and service_steps.py.
"""

import json
import pathlib
import sys

import machine
from runner import Step

HERE = pathlib.Path(__file__).resolve().parent


def _gpu_check(name):
    def command(context, lines):
        program = context.program("leat_gpu_check")
        if not program:
            return "leat_gpu_check is not in this bundle: it was built without nvcc"
        quick = ["--quick"] if context.quick else []
        return [program, name, "--data", context.photos, "--lines", lines, *quick]
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


FIRST = [  # of every run
    Step("machine", "what this machine is", 40, _python("machine")),
    Step("photos", "the files for the others", 60, _python("photos")),
]

CHOSEN = [
    Step("handles", "does nvJPEG open with each backend; engines; the kernels' registers, spills and occupancy", 40,
         _gpu_check("handles")),
    Step("kernels", "the fused kernel's bytes and time on the device", 60, _python("kernels")),
    Step("memcheck", "bad accesses and leaks of the kernels, by compute-sanitizer", 60, _sanitizer("memcheck")),
    Step("racecheck", "races within the kernels, by compute-sanitizer", 60, _sanitizer("racecheck")),
    Step("exact", "class exact: rows of the GPU are the CPU's", 45, _gpu_check("exact")),
    Step("whole", "whole images by the engines against nvJPEG's CUDA backend and libjpeg-turbo, by sampling", 45,
         _gpu_check("whole")),
    Step("shapes", "regions, scales, both, gray: which the engines take, and their bytes", 45, _gpu_check("shapes")),
    Step("behind", "a kernel directly behind a batch sees all pixels; whether engines wait for their stream", 60,
         _gpu_check("behind")),
    Step("damage", "what truncated and bit-flipped files do to a batch", 45, _gpu_check("damage")),
    Step("service", "the same bytes on every plane, from real daemons", 100, _python("service")),
    Step("sharing", "memory shared by two processes, of which either is killed", 75, _python("sharing")),
    Step("torch_graph", "a torch trainer that captures CUDA graphs keeps them and its batches", 60,
         _python("torch_graph")),
    Step("torch_streams", "batches that torch uses on a second stream are not overwritten", 60,
         _python("torch_streams")),
    Step("nvjpeg", "nvJPEG alone: images a second by backend and size", 90, _gpu_check("nvjpeg")),
    Step("copies", "copies, page-locking, the fused kernel and the JPEG kernels alone", 40, _gpu_check("copies")),
    Step("slots", "files to rows with 1, 2 and 4 slots; cores used; memory against what is said to be held", 75,
         _gpu_check("slots")),
    Step("memory", "device memory over many groups", 45, _gpu_check("memory")),
    Step("planes", "rows to the trainer by plane", 150, _python("planes")),
    Step("torchvision", "its decode_jpeg on the GPU, to compare with", 45, _python("torchvision")),
    Step("mps", "worker and consumer under NVIDIA's multi-process service", 60, _mps),
]


def names():
    return [step.name for step in CHOSEN]


def chosen(only, skip):
    """[(step, why it is left out, or "")]. ValueError: names a step that there is not."""
    for option, given in (("--only", only), ("--skip", skip)):
        for name in given or ():
            if name not in names():
                raise ValueError(f"{option} {name}: want one of {', '.join(names())}")
    return [(step, "not in --only" if only and step.name not in only else "--skip" if step.name in (skip or ()) else "")
            for step in CHOSEN]
