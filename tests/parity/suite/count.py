# SPDX-License-Identifier: Apache-2.0
"""Runs NVIDIA DALI's own Python tests on leat.dali, and counts them by group.

    count.py CHECKOUT --results FOLDER [--data FOLDER] [--groups NAME…] [--files NAME…] [--control FOLDER]
    count.py CHECKOUT --results FOLDER --library nvidia.dali …

CHECKOUT is a checkout of DALI; its dali/test/python is copied with `leat.dali` for `nvidia.dali`, and the folder of
--data stands for DALI_EXTRA_PATH. Each file is a process of its own, and so are the cases after one that takes longer
than --seconds. Each file's outcomes are a file of --results; a file that exists is not run again. Prints a row for each
group: cases run, those that are not applicable, the others, and how many of these pass.

A case that does not pass is not applicable if it is for a framework that Leat has no plugin for; if its arguments say
"gpu" or "mixed" (except in the JAX plugin, where they are JAX's devices); if it is skipped; or, with --control, if it
fails likewise on the library whose outcomes are there.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
# The files of a group, and the most cases of a function that are run; 0: all.
GROUPS: dict[str, tuple[int, str]] = {
    "JAX plugin": (0, "jax_plugin/test_*.py"),
    "framework iterators": (24, "test_fw_iterators.py test_fw_iterators_detection.py"),
    "conditionals": (16, "conditionals/test_*.py"),
    "pipelines and sources": (
        16,
        "test_pipeline.py test_pipeline_decorator.py test_pipeline_inputs.py test_functional_api.py "
        "test_external_source_dali.py test_external_source_numpy.py test_external_source_multiple_sources.py "
        "test_external_source_parallel.py test_dali_cpu_only.py test_pytorch_operator.py "
        "test_dali_variable_batch_size.py test_random_state_arg.py",
    ),
    "automatic augmentation": (12, "auto_aug/test_*.py"),
    "checkpoints": (16, "checkpointing/test_dali_checkpointing.py"),
    "decoder and readers": (
        16,
        "decoder/test_image.py reader/test_file.py reader/test_caffe.py reader/test_coco.py reader/test_index.py "
        "reader/test_numpy.py reader/test_shuffling.py reader/test_webdataset_corner.py "
        "reader/test_webdataset_requirements.py",
    ),
    "operators": (
        12,
        " ".join(
            f"operator_1/test_{name}.py"
            for name in "arithmetic_ops batch_permute brightness_contrast cast coin_flip color_twist constant "
            "constant_value copy crop crop_mirror_normalize erase expand_dims flip gaussian_blur input_promotion join "
            "jpeg_compression_distortion lookup_table noise_gaussian noise_salt_and_pepper noise_shot "
            "normal_distribution normalize one_hot operator_exception pad peek_image_shape slice".split()
        )
        + " "
        + " ".join(
            f"operator_2/test_{name}.py"
            for name in "enum_types equalize python_function random_beta random_choice random_crop_generator "
            "random_resized_crop reshape resize resize_crop_mirror rotate split_merge squeeze subscript transpose "
            "uniform warp".split()
        ),
    ),
}
_GPU = re.compile(r"'(gpu|mixed)'")


class _Child:
    """A process that runs one file, and the lines that it writes."""

    def __init__(self, arguments: list[str], log: Any, environment: dict[str, str]) -> None:
        read, write = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "case.py"), *arguments, str(write)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=environment,
            pass_fds=[write],
            start_new_session=True,
            cwd=arguments[1],  # the tests call the checkout's tools by relative paths
        )
        os.close(write)
        self._lines = os.fdopen(read, "rb", buffering=0)
        self._selector = selectors.DefaultSelector()
        self._selector.register(read, selectors.EVENT_READ)
        self._rest = b""

    def line(self, seconds: float) -> dict[str, Any] | None:
        """Returns the next line; None: the process has ended. TimeoutError: there is none in time."""
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            if not self._selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError
            more = self._lines.read(65536)
            if not more:
                return None
            self._rest += more
        first, self._rest = self._rest.split(b"\n", 1)
        return json.loads(first)

    def end(self) -> int:
        """Ends the process and all processes in its session; returns its exit status."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        status = self._process.wait()
        self._selector.close()
        self._lines.close()
        return status


def run_file(arguments: list[str], seconds: float, log: Any, environment: dict[str, str]) -> dict[str, Any]:
    """Returns the outcomes of all cases of a file.

    Args:
        arguments: those of case.py, before the number of the first case.
    """
    result: dict[str, Any] = {"total": 0, "cases": []}
    first = 0
    while True:
        child = _Child([*arguments, str(first)], log, environment)
        case: dict[str, Any] | None = None
        try:
            while (line := child.line(seconds if case else 60 + seconds)) is not None:
                if line["kind"] == "no import":
                    return {**result, "no import": line["reason"]}
                if line["kind"] == "cases":
                    result["total"] = line["total"]
                elif line["kind"] == "begins":
                    case = line
                elif case is not None:
                    result["cases"].append({**case, **line})
                    case = None
            reason = "the process ended"
        except TimeoutError:
            reason = f"over {seconds:g} s"
        status = child.end()
        if case is None:
            if reason != "the process ended":
                return {**result, "no import": reason}
            return result
        reason += f", status {status}" if reason == "the process ended" else ""
        result["cases"].append({**case, "outcome": "failed", "reason": reason})
        first = case["number"] + 1


def _files(tests: pathlib.Path, patterns: str) -> Iterator[str]:
    for pattern in patterns.split():
        for path in sorted(tests.glob(pattern)):
            yield str(path.relative_to(tests))


def _copied(checkout: pathlib.Path, library: str, folder: pathlib.Path) -> pathlib.Path:
    """Copies the tests, with the imports of the library."""
    tests = folder / "dali" / "test" / "python"
    shutil.copytree(checkout / "dali" / "test" / "python", tests)
    shutil.copytree(checkout / "tools", folder / "tools", dirs_exist_ok=True)
    for path in tests.rglob("*.py") if library != "nvidia.dali" else ():
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"\bnvidia\.dali\b", library, text), encoding="utf-8")
    return tests


def _name(file: str) -> str:
    return file.replace("/", ".").removesuffix(".py") + ".json"


def outcome(group: str, case: dict[str, Any], control: dict[str, str]) -> str:
    """ Returns "passed", "failed", or "not applicable"."""
    if case["outcome"] == "passed":
        return "passed"
    if case["outcome"] == "skipped" or control.get(case["name"]) == "failed":
        return "not applicable"
    if group != "JAX plugin" and _GPU.search(case["arguments"]):
        return "not applicable"
    return "failed"


def _loaded(path: pathlib.Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {"total": 0, "cases": []}


def report(tests: pathlib.Path, results: pathlib.Path, control: pathlib.Path | None, by_file: bool) -> None:
    """Prints the table."""
    print("| group | run | not applicable | applicable | passed |\n|---|--:|--:|--:|--:|")
    sums: collections.Counter[str] = collections.Counter()
    for group, (_, patterns) in GROUPS.items():
        counts: collections.Counter[str] = collections.Counter()
        for file in _files(tests, patterns):
            found = _loaded(results / _name(file))
            controls = _loaded(control / _name(file))["cases"] if control else []
            before = {each["name"]: each["outcome"] for each in controls}
            mine = collections.Counter(outcome(group, each, before) for each in found["cases"])
            counts += mine
            if by_file:
                why = f" ({found['no import'][:150]})" if "no import" in found else ""
                _row(f"  {file} of {found['total']}{why}", mine)
        _row(group, counts)
        sums += counts
    _row("all", sums)


def _row(name: str, counts: collections.Counter[str]) -> None:
    run, out = sum(counts.values()), counts["not applicable"]
    print(f"| {name} | {run} | {out} | {run - out} | {counts['passed']} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--library", default="leat.dali", choices=["leat.dali", "nvidia.dali"])
    parser.add_argument("--groups", nargs="*", default=list(GROUPS), choices=list(GROUPS), metavar="NAME")
    parser.add_argument("--files", nargs="*", default=[""], help="parts of the names of the files that are run")
    parser.add_argument("--control", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--by-file", action="store_true")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tests = _copied(options.checkout, options.library, pathlib.Path(folder))
        environment = {**os.environ, "DALI_EXTRA_PATH": str(options.data.resolve()), "TMPDIR": folder}
        for group in options.groups:
            most, patterns = GROUPS[group]
            for file in _files(tests, patterns):
                path = options.results / _name(file)
                if path.exists() or not any(each in file for each in options.files):
                    continue
                with open(path.with_suffix(".log"), "wb") as log:
                    arguments = [options.library, str(tests), file, str(most)]
                    found = run_file(arguments, options.seconds, log, environment)
                path.write_text(json.dumps(found, indent=1))
                passed = sum(each["outcome"] == "passed" for each in found["cases"])
                print(f"{file}: {passed} of {len(found['cases'])} pass", file=sys.stderr, flush=True)
        report(tests, options.results, options.control, options.by_file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
