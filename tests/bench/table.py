# SPDX-License-Identifier: Apache-2.0
"""The benchmark table: what is measured, in which order, and what is printed."""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

import large_data
import loaders
import one_core
import packing
import photo_kinds
import sources
import streams
from peers import LIMIT, environment, photos, runner
from peers.runner import median
from service import HERE, ROOT, Service, cpu_seconds, puller, result_of

ONE_CORE_PEERS = tuple(dict.fromkeys(one_core.OPERATOR_PEERS + one_core.READER_PEERS))
SECTIONS = ("peers", "rates", "caches", "epochs", "kinds", "formats", "storage", "cluster", "trainers", "stream", "tls",
            "start", "faults", "overhead", "sources", "packing", "operators", "readers")
# The decoded forms of JPEG files that a worker keeps in memory from the second epoch on.
FORMS = ("none", "seek", "coefficients", "pixels", "all")

TITLES = {
    "epochs": "Ten epochs from a cold start, two workers to NumPy, with --forms all (the default) and none",
    "formats": "Six epochs of other formats from a cold start, two workers to NumPy, with --forms all and none",
    "storage": "Archives twice as large as the caches of two workers: from a server of 50 MB/s, and local files",
    "cluster": "Four workers with --forms pixels --cache 1GiB, over 3 GiB of files and pixels; one is killed",
    "trainers": "One trainer and four of one job, eight epochs from two workers with --forms none",
}


def install_peers(args):
    """Makes the environments of the peers that are measured."""
    packages = args.packages = environment.Environments(ROOT / "build")
    needed = (args.peers if {"peers", "rates"} & set(args.only) else []) + (
        args.one_core_peers if {"operators", "readers"} & set(args.only) else [])
    for section, peers in (("sources", sources.PEERS), ("packing", packing.PEERS)):
        if section in args.only:
            needed += [name for name in args.peers + args.one_core_peers if name in peers]
    try:
        packages.install(needed)
    except OSError as error:
        sys.exit(f"tests/bench/run: {error}")
    args.peers_python = packages.python(None)
    return runner.Peers(args.images, args.seconds, args.threads, packages.python, ROOT / "build/bench", packages.absent)


def measure_rates(args, out):
    """Measures rounds of: the yardstick, Leat in its forms, the peers."""
    rounds = out["rates"] = []
    for number in range(args.rounds):
        one = {LIMIT: args.measured.rate(LIMIT)} if args.yardstick else {}
        with Service(args, args.folder / f"rates{number}") as service:
            address = ("--address", service.coordinator.address)
            for name, flags in (("leat numpy", ("numpy", *address)), ("leat jax", ("jax", *address)),
                                ("leat jax 8 devices", ("jax", *address))):
                env = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"} if "8" in name else {}
                try:
                    measured = result_of(puller(args, *flags, **env))
                except RuntimeError as error:
                    one[name] = str(error)
                    continue
                one[name] = measured["img_per_s"]
                out.setdefault("client_cpu_s_per_gb", {}).setdefault(name, []).append(measured["cpu_s_per_gb"])
            out.setdefault("peak_mib", []).append(service.peak_mib())
        one["leat embedded"] = result_of(puller(args, "numpy"))["img_per_s"]
        for name in args.peers:
            one[name] = args.measured.rate(name)
        rounds.append(one)
        print(f"  round {number + 1} of {args.rounds}: "
              + ", ".join(f"{k} {v:.0f}" for k, v in one.items() if isinstance(v, float)), flush=True)


def measure_caches(args, out):
    """Measures later epochs with each decoded form of JPEG files, and first ones with seek indexes beside the dataset;
    with the yardstick of the same round."""
    rounds = out["caches"] = []
    indexed = args.folder / "indexed"
    shutil.copytree(args.images, indexed)
    subprocess.run([args.native / "leat-worker", "index", "--seek", indexed], check=True, stdout=subprocess.DEVNULL)
    for number in range(args.rounds):
        one = {LIMIT: args.measured.rate(LIMIT)} if args.yardstick else {}
        for forms in FORMS:
            folder = args.folder / f"caches{number}" / forms
            folder.mkdir()
            with Service(args, folder, flags=("--forms", forms, "--cache", "2GiB")) as service:
                one[f"later epochs, {forms}"] = result_of(
                    puller(args, "kept", "--address", service.coordinator.address))["img_per_s"]
        # Without a cache every epoch is like a first one.
        folder = args.folder / f"caches{number}" / "beside"
        folder.mkdir()
        with Service(args, folder, flags=("--forms", "seek", "--cache", "0")) as service:
            one["first epochs, seek"] = result_of(
                puller(args, "kept", "--address", service.coordinator.address, images=indexed))["img_per_s"]
        rounds.append(one)


def measure_trainers(args, out):
    """Measures the cost of one and of four trainers of one job for the workers, which keep no decoded form of a
    photo."""
    rounds = out["trainers"] = []
    for number in range(args.rounds):
        one = {}
        for count in (1, 4):
            folder = args.folder / f"trainers{number}" / str(count)
            folder.mkdir(parents=True)
            with Service(args, folder, flags=("--forms", "none")) as service:
                pullers = [puller(args, "together", "--address", service.coordinator.address, stdin=subprocess.PIPE)
                           for _ in range(count)]
                for each in pullers:
                    if each.stdout.readline() != "ready\n":
                        raise RuntimeError(f"a trainer did not begin; exit code {each.wait()}")
                before = sum(cpu_seconds(worker.process) for worker in service.workers)
                for each in pullers:
                    each.stdin.write("\n")
                    each.stdin.flush()
                one[f"{count} img_per_s each"] = statistics.mean(result_of(each)["img_per_s"] for each in pullers)
                one[f"{count} workers_cpu_s"] = sum(cpu_seconds(worker.process) for worker in service.workers) - before
        one["workers' CPU, 4 to 1"] = one["4 workers_cpu_s"] / one["1 workers_cpu_s"]
        rounds.append(one)


def measure_start(args, out):
    out["start_ms"] = []
    for number in range(args.rounds):
        with Service(args, args.folder / f"start{number}") as service:
            one = {"coordinator": service.start_ms["coordinator"], "worker": service.start_ms["worker0"]}
        embedded = result_of(puller(args, "start"))
        one |= {"embedded service": embedded["connect_ms"], "embedded, first batch": embedded["first_batch_ms"]}
        out["start_ms"].append(one)


def measure_overhead(args, out):
    """Measures the cost of a step for the training thread while the data is ready."""
    environment = {**os.environ, "LEAT_NATIVE_DIR": str(args.native), "PYTHONPATH": str(ROOT / "python_client/src"),
                   "JAX_PLATFORMS": "cpu"}
    out["overhead_us"] = []
    for number in range(args.rounds):
        with Service(args, args.folder / f"overhead{number}") as service:
            argv = [sys.executable, str(HERE / "overhead.py"), "--images", str(args.images), "--address",
                    service.coordinator.address]
            out["overhead_us"].append(result_of(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True,
                                                                 env=environment)))


def measure_faults(args, out):
    """Kills (-9) one of two workers of a trainer that takes batches at half speed."""
    out["kill_worker"] = []
    for number in range(args.rounds):
        with Service(args, args.folder / f"fault{number}") as service:
            process = puller(args, "paced", "--address", service.coordinator.address)
            if process.stdout.readline().strip() == "warm":
                service.workers[number % 2].kill9()
            out["kill_worker"].append(result_of(process))


def show(out):
    loaders.show(out)
    rounds = out.get("rates", [])
    if rounds:
        print("\nRandom-resized-crop 224 + flip, JPEG files to uint8 batches of 64, all on the same cores")
        print(out["images"])
        print(f"{'':24}{'img/s':>8}{'ratio':>8}   rounds")
        print("\n".join(runner.line(name, rounds) for name in rounds[0]))
    rounds = out.get("caches", [])
    if rounds:
        print("\nThe same from the fifth epoch on, two workers to NumPy, by --forms of the workers, --cache 2GiB; "
              "and first epochs by seek indexes beside the photos")
        print(out["images"])
        print(f"{'':24}{'img/s':>8}{'ratio':>8}   rounds")
        print("\n".join(runner.line(name, rounds) for name in rounds[0]))
    for section, title in TITLES.items():
        rounds = out.get(section, [])
        if rounds:
            print(f"\n{title}\n{out['images']}")
        width = max(map(len, rounds[0]), default=0) if rounds else 0
        for name in rounds[0] if rounds else []:
            values = [r[name] for r in rounds]
            print(f"{name:{width}}{median(values):10.2f}   {', '.join(f'{value:.2f}' for value in values)}")
    for name, values in out.get("client_cpu_s_per_gb", {}).items():
        print(f"client CPU, {name:18} {median(values):6.2f} s/GB")
    for name in out.get("peak_mib", [{}])[0]:
        print(f"peak memory, {name:17} {max(r.get(name, 0) for r in out['peak_mib']):6.0f} MiB")
    for name in out.get("start_ms", [{}])[0]:
        values = [r[name] for r in out["start_ms"]]
        print(f"start of {name:22}{median(values):7.0f} ms   {', '.join(f'{v:.0f}' for v in values)}")
    for one in out.get("kill_worker", []):
        print(f"kill -9 of one of two workers: longest wait of a step {one['longest_ms']:.0f} ms, usually "
              f"{one['median_ms']:.0f} ms ({one['steps']} steps)")
    rounds = out.get("overhead_us", [])
    if rounds:
        print("\nThe training thread inside a call, data ready, 8 emulated devices, 2 arrays: microseconds")
    for name in rounds[0] if rounds else []:
        ratio = median([r[name] / r["make_array_from_single_device_arrays"] for r in rounds])
        print(f"{name:52}{median([r[name] for r in rounds]):7.1f}{ratio:8.2f}   "
              + ", ".join(f"{r[name]:.1f}" for r in rounds))
    photo_kinds.show(out)
    sources.show(out)
    packing.show(out)
    one_core.show(out)
    streams.show(out)


def parse():
    parser = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    parser.add_argument("--write", action="store_true",
                        help="put the table of section peers into docs/measurements/cpu.md, and draw README's chart")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--peers", default=LIMIT, help="all, limit (the yardstick only), none, or names")
    parser.add_argument("--images", type=pathlib.Path,
                        help="a folder of JPEG files; else LEAT_TEST_DATA's imagenet-sample, else drawn ones")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections: " + ", ".join(SECTIONS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds = 1, 3
    args.only = args.only.split(",")
    if args.write and "peers" not in args.only:
        parser.error("--write: want section peers in --only, which makes what is written")
    for name in set(args.only) - set(SECTIONS):
        parser.error(f"--only {name}: want some of {', '.join(SECTIONS)}")
    args.native, args.bench_bin = args.build.resolve() / "native", args.build.resolve() / "tests/bench"
    args.threads = len(os.sched_getaffinity(0))
    args.yardstick = args.peers != "none"
    try:
        wanted = runner.named(args.peers, ONE_CORE_PEERS)
        maker = args.build.resolve() / "tests/support/photos/leat_make_photos"
        args.photo_maker = maker
        args.images, args.what = photos.choose(args.images, maker, ROOT / "build/bench")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    args.peers = [name for name in wanted if name in runner.PEERS]
    args.one_core_peers = [name for name in wanted if name in ONE_CORE_PEERS]
    return args


def main():
    args = parse()
    args.measured = install_peers(args)
    machine = {"cores": args.threads, "processor": platform.processor() or platform.machine(),
               "system": platform.platform()}
    out = {"images": args.what, "machine": machine, "rounds": args.rounds, "seconds": args.seconds}
    sections = {"peers": loaders.measure,
                "rates": measure_rates, "caches": measure_caches, "kinds": photo_kinds.measure,
                "formats": photo_kinds.measure_formats,
                "epochs": large_data.measure_epochs, "storage": large_data.measure_storage,
                "cluster": large_data.measure_cluster,
                "trainers": measure_trainers, "stream": streams.measure_stream, "tls": streams.measure_tls,
                "start": measure_start,
                "faults": measure_faults, "overhead": measure_overhead, "sources": sources.measure,
                "packing": packing.measure,
                "operators": one_core.measure_operators, "readers": one_core.measure_readers}
    with tempfile.TemporaryDirectory(prefix="leat-bench-") as folder, args.measured:
        args.folder = pathlib.Path(folder)
        for name in args.only:
            print(f"measuring {name}", flush=True)
            for number in range(args.rounds):
                for prefix in ("rates", "caches", "start", "fault", "overhead"):
                    (args.folder / f"{prefix}{number}").mkdir(exist_ok=True)
            sections[name](args, out)
    show(out)
    if args.write:
        loaders.write(out["peers"])
    if args.json:
        args.json.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
