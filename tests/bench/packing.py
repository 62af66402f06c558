# SPDX-License-Identifier: Apache-2.0
"""The section of the table about sequences: reading tokens, packing and selecting, each as a ratio in the same round.

Reading and packing are measured on one core, in processor time, through the worker's sources and without a network
(packing_bench, packing_peers.py). Selections are measured as jobs, beside a job of all samples.
"""

import contextlib
import os
import subprocess
import sys

import token_files
from asking import Program
from peers.runner import median
from service import HERE, ROOT, Service, result_of

PEERS = ("grain_pil",)  # Grain's environment
# For each ratio: a case of Leat, a program and its case that it is divided by, and the least that is wanted.
RATIOS = {
    "token rows to np.memmap": ("token rows", "numpy", "token rows", 0.7),
    "token rows, shuffled, to np.memmap": ("token rows, shuffled", "numpy", "token rows, shuffled", 0.7),
    "packed rows, shuffled, to Grain (64 bins)": (
        "packed rows, fit, shuffled", "grain", "packed rows, fit, shuffled, 64", 2),
    "packed rows, shuffled, to Grain (256 bins)": (
        "packed rows, fit, shuffled", "grain", "packed rows, fit, shuffled, 256", 2),
}
CASES = ("packed rows, fit", "packed rows, cut", "packed rows, cut, shuffled")  # that have no peer
SELECTIONS = {"where": "photos that a condition chooses", "tokens": "token rows that a condition chooses",
              "balanced": "photos in balance"}
SELECTED_LEAST = 0.97


def _of_readers(args, out, folder):
    """Measures rounds in which the programs take turns with each case, on the last core."""
    core = max(os.sched_getaffinity(0))
    seconds = 0.15 if args.quick else 0.5
    programs = {"leat": [args.bench_bin / "packing_bench", folder],
                "numpy": [sys.executable, HERE / "packing_peers.py", "numpy", folder]}
    if os.path.exists(args.peers_python):
        programs["grain"] = [args.peers_python, HERE / "packing_peers.py", "grain", folder]
    with contextlib.ExitStack() as stack:
        started = {name: stack.enter_context(Program(argv, core)) for name, argv in programs.items()}
        for number in range(args.rounds):
            rates = {}
            pairs = [("leat", case) for case in CASES]
            for ours, peer, theirs, _ in RATIOS.values():
                pairs += [("leat", ours), (peer, theirs)] if peer in started else []
            for name, case in dict.fromkeys(pairs if number % 2 == 0 else reversed(pairs)):
                rates[f"{name}: {case}"] = started[name].rate(case, seconds)
            out["packing"].append(rates)
            print(f"  round {number + 1} of {args.rounds}: "
                  + ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()), flush=True)
        out["fill"] = [line for program in started.values() for line in program.said if line.startswith("fill ")]


def measure(args, out):
    out["packing"], out["selections"] = [], []
    folder = args.folder / "tokens"
    folder.mkdir()
    token_files.make(folder, rows=20_000 if args.quick else 100_000, documents=10_000 if args.quick else 40_000)
    _of_readers(args, out, folder)
    environment = {**os.environ, "LEAT_NATIVE_DIR": str(args.native), "PYTHONPATH": str(ROOT / "python_client/src")}
    environment.pop("LEAT_COORDINATOR", None)
    for number in range(args.rounds):
        one = {}
        for kind in SELECTIONS:
            place = args.folder / f"selections{number}" / kind
            place.mkdir(parents=True)
            path = folder / "rows.bin" if kind == "tokens" else args.images
            with Service(args, place) as service:
                argv = [sys.executable, str(HERE / "selection_puller.py"), kind, str(path), "--address",
                        service.coordinator.address, "--seconds", str(args.seconds)]
                one[kind] = result_of(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment))
        out["selections"].append(one)


def _line(title, values, least):
    verdict = "kept" if median(values) >= least else "NOT KEPT"
    print(f"{title:46}{median(values):8.2f}   at least {least}: {verdict}   "
          + ", ".join(f"{value:.2f}" for value in values))


def show(out):
    rounds = out.get("packing", [])
    if not rounds:
        return
    print("\nSequences: rows of 2,048 tokens a second of processor time, one core")
    for name in rounds[0]:
        values = [one[name] for one in rounds]
        print(f"{name:46}" + ", ".join(f"{value:.0f}" for value in values))
    print("\n".join(out["fill"]))
    print("Ratios in the same round")
    for title, (ours, peer, theirs, least) in RATIOS.items():
        if f"{peer}: {theirs}" in rounds[0]:
            _line(title, [one[f"leat: {ours}"] / one[f"{peer}: {theirs}"] for one in rounds], least)
    for kind, title in SELECTIONS.items():
        _line(f"{title}, rows/s to all", [one[kind]["ratio"] for one in out["selections"]], SELECTED_LEAST)
