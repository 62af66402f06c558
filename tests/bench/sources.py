# SPDX-License-Identifier: Apache-2.0
"""The section of the table about mixtures: four ratios, each with its bound, and how well shares are kept."""

import os
import re
import shutil
import subprocess
import sys

from peers.runner import median
from service import HERE, ROOT, Service, result_of

SOURCES = 1000
PEERS = ("grain_pil", "tfdata")  # whose shares are measured, if they are named or were installed before
# Each ratio: what is printed, its bound, and whether that is the least.
BOUNDS = {
    "three folders, rows/s to one": (0.97, True),
    "1,000 sources, first batch to one": (2, False),
    "1,000 sources, worker's memory to one": (1.2, False),
    "1,000 sources, worker's descriptors": (4096, False),
    "planning a row of 3 to one": (2, False),
    "planning a row of 1,000 to one": (4, False),
}


def _make_thirds(args):
    """Deals the images out to three folders."""
    folder = args.folder / "thirds"
    files = sorted(path for path in args.images.rglob("*") if path.is_file())
    for number, file in enumerate(files):
        under = folder / f"third{number % 3}" / file.parent.name
        under.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, under)
    return folder


def _make_many(args):
    """Makes folders of two files."""
    folder = args.folder / "many"
    file = next(path for path in sorted(args.images.rglob("*")) if path.is_file())
    for number in range(SOURCES):
        under = folder / f"source{number:04}" / "all"
        under.mkdir(parents=True)
        for copy in range(2):
            shutil.copy(file, under / f"{copy}{file.suffix}")
    return folder


def _pull(args, service, kind, folder):
    argv = [sys.executable, str(HERE / "source_puller.py"), kind, str(folder), "--address",
            service.coordinator.address, "--seconds", str(args.seconds)]
    environment = {**os.environ, "LEAT_NATIVE_DIR": str(args.native), "PYTHONPATH": str(ROOT / "python_client/src")}
    environment.pop("LEAT_COORDINATOR", None)
    return result_of(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment))


def _planning(args):
    """Returns the most that a row of so many sources costs, in rows of one source."""
    lines = subprocess.run([args.bench_bin / "permutation_bench", "mixtures"], check=True, capture_output=True,
                           text=True).stdout
    ratios = {}
    for sources, ratio in re.findall(r"sources=(\d+) .* ratio=([\d.]+)", lines):
        ratios[int(sources)] = max(ratios.get(int(sources), 0), float(ratio))
    return ratios


def measure(args, out):
    rounds = out["sources"] = []
    thirds, many = _make_thirds(args), _make_many(args)
    for number in range(args.rounds):
        one = {}
        opened, memory = {}, {}
        folder = args.folder / f"sources{number}" / "folders"
        folder.mkdir(parents=True)
        with Service(args, folder) as service:
            one["three folders, rows/s to one"] = _pull(args, service, "folders", thirds)["ratio"]
        for kind in ("opened", "many"):
            folder = args.folder / f"sources{number}" / kind
            folder.mkdir(parents=True)
            with Service(args, folder, workers=1) as service:
                opened[kind] = _pull(args, service, kind, many)
                memory[kind] = service.peak_mib()["worker0"]
                descriptors = len(os.listdir(f"/proc/{service.workers[0].process.pid}/fd"))
        one["1,000 sources, first batch to one"] = opened["many"]["first_batch_s"] / opened["opened"]["first_batch_s"]
        one["1,000 sources, worker's memory to one"] = memory["many"] / memory["opened"]
        one["1,000 sources, worker's descriptors"] = descriptors
        planned = _planning(args)
        one["planning a row of 3 to one"], one["planning a row of 1,000 to one"] = planned[3], planned[1000]
        one["1,000 sources, seconds to create the job"] = opened["many"]["created_s"]
        rounds.append(one)
    folder = args.folder / "shares"
    folder.mkdir()
    with Service(args, folder, workers=1) as service:
        shares = {"leat": _pull(args, service, "shares", thirds)["worst_rows"]}
    if os.path.exists(args.peers_python):
        argv = [args.peers_python, str(HERE / "source_shares.py")]
        shares |= result_of(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
    out["shares"] = shares


def show(out):
    rounds = out.get("sources", [])
    if not rounds:
        return
    print("\nMixtures: ratios to a job of one source in the same round")
    for name in rounds[0]:
        values = [one[name] for one in rounds]
        verdict = ""
        if name in BOUNDS:
            bound, least = BOUNDS[name]
            kept = median(values) >= bound if least else median(values) <= bound
            verdict = f"   {'at least' if least else 'at most'} {bound}: {'kept' if kept else 'NOT KEPT'}"
        print(f"{name:44}{median(values):8.2f}{verdict}   " + ", ".join(f"{value:.2f}" for value in values))
    print("Shares of 0.7, 0.2 and 0.1: rows by which a source is off its share after a batch of 64, at worst of 400")
    for name, error in out["shares"].items():
        print(f"{name:24}" + (f"{error:8.2f}" if isinstance(error, float) else f"  {error}"))
