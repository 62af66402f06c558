# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/run: every check and figure that a machine with an NVIDIA GPU can give. Its usage is described there."""

import argparse
import os
import pathlib
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import machine  # noqa: E402
import runner  # noqa: E402
import steps  # noqa: E402
from findings import LOST, NO_GPU, NOT_HERE, Findings  # noqa: E402

WRONG_USE = 2
BUDGET_S = 540.0
DEFAULT_BUNDLE = HERE.parents[1] / "build/leat-bundle.tar.xz"
LOG_BYTES = 256 << 10  # kept of one log


def unpacked(bundle, folder):
    """Returns the top folder of the bundle: this one, or `bundle` unpacked. ValueError: there is none."""
    here = HERE.parents[1]
    if bundle is None and (here / "MANIFEST").exists() and (here / "bin/leat-worker").exists():
        return here
    bundle = bundle or DEFAULT_BUNDLE
    if bundle.is_dir():
        return bundle
    if not bundle.exists():
        raise ValueError(f"no bundle {bundle}: make one with deploy/bundle, or name it with --bundle")
    with tarfile.open(bundle) as tar:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(folder / "bundle", **safe)
    (top,) = (folder / "bundle").iterdir()
    return top


def environment(top, fake):
    """Returns the environment that every step's process gets, without the caller's Leat settings."""
    env = {name: value for name, value in os.environ.items() if name not in ("LEAT_COORDINATOR", "LEAT_TRANSPORT")}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    # Wheels put libnvjpeg there.
    env.setdefault("LEAT_SITE_PACKAGES", os.pathsep.join(p for p in sys.path if p.endswith("-packages")))
    env["LEAT_CONSUMER_BIN"] = str(top / "checks/e2e_consumer")
    if fake:
        env.update(LEAT_CUDA_LIBRARY=str(fake / "libcuda.so.1"), LEAT_NVJPEG_LIBRARY=str(fake / "libnvjpeg.so.13"))
        env.setdefault("LEAT_FAKE_CUDA_REFUSE_PINNED", "0")  # page-locked memory is measured
    for bundled in sorted((top / "lib").glob("libnvjpeg.so.*"))[:1]:
        env.setdefault("LEAT_NVJPEG_LIBRARY", str(bundled))
    return env


def keep_logs(done, step, context, path):
    """Appends the output of a step and its daemons to the file `path`."""
    with open(path, "ab") as out:
        for log in (runner.log_of(step, context), *sorted((context.folder / step.name).glob("*.log"))):
            if log.exists():
                out.write(f"\n==== {done.name} ({done.outcome}): {log.name}\n".encode())
                out.write(log.read_bytes()[-LOG_BYTES:])


def run_all(plan, context, found, end, log_path):
    """Runs the steps of `plan`: [(step, why it is left out, or "")]."""
    for step, left_out in plan:
        done = runner.skipped(step, left_out) if left_out else runner.run(step, context, end, found.budget_s)
        found.add(done)
        if done.outcome in LOST:
            keep_logs(done, step, context, log_path)


def parse(words):
    parser = argparse.ArgumentParser(prog="tests/gpu/run")
    listed = lambda text: [name for name in text.split(",") if name]  # noqa: E731
    folder = lambda text: pathlib.Path(text).resolve()  # noqa: E731
    parser.add_argument("--json", type=folder)
    parser.add_argument("--data", type=folder)
    parser.add_argument("--bundle", type=folder)
    parser.add_argument("--only", type=listed, default=[])
    parser.add_argument("--skip", type=listed, default=[])
    parser.add_argument("--part", choices=list(steps.PARTS))
    parser.add_argument("--budget", type=float, default=BUDGET_S)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--fake", type=folder, help="for tests of this script: a folder with libraries that compute on "
                                                    "the CPU")
    args = parser.parse_args(words)
    if args.data and not args.data.is_dir():
        parser.error(f"--data {args.data}: no such folder")
    if not 10 <= args.budget <= 86_400:
        parser.error(f"--budget {args.budget:g}: want 10 to 86400 seconds")
    try:
        args.plan = [(step, "") for step in steps.ALWAYS] + steps.chosen(args.only, args.skip, args.part)
    except ValueError as error:
        parser.error(str(error))
    return args


def main(words):
    """Runs the command and returns the exit code."""
    started = time.monotonic()
    args = parse(words)
    if args.list:
        for step, left_out in args.plan:
            print(f"{step.name:<13} {step.takes_s:3.0f} s, at most {step.limit_s:3.0f} s  {step.about}"
                  f"{' (left out)' if left_out else ''}")
        return 0
    log_path = pathlib.Path(f"{args.json}.log" if args.json else "gpu-run.log").resolve()
    log_path.unlink(missing_ok=True)
    found = Findings(sys.stdout, args.budget, args.json)
    with tempfile.TemporaryDirectory(prefix="leat-gpu-run-") as folder:
        folder = pathlib.Path(folder)
        if args.fake:
            os.environ["LEAT_CUDA_LIBRARY"] = str(args.fake / "libcuda.so.1")
        gpus, why = machine.probed()
        if not gpus:
            print(f"tests/gpu/run: no NVIDIA GPU can be used here, so nothing was checked: {why}", file=sys.stderr)
            found.machine["gpus"] = []
            found.add(runner.Done("gpu", "an NVIDIA GPU", NOT_HERE, why))
            return NO_GPU
        try:
            top = unpacked(args.bundle, folder)
        except ValueError as error:
            print(f"tests/gpu/run: {error}", file=sys.stderr)
            return WRONG_USE
        found.machine.update(gpus=gpus, fake=bool(args.fake), quick=args.quick, bundle=top.name)
        photos = args.data or (top / "photos" if (top / "photos").is_dir() else folder / "drawn")
        context = runner.Context(top, folder, photos, environment(top, args.fake), args.quick, bool(args.fake))
        run_all(args.plan, context, found, started + args.budget, log_path)
    print(f"\n==== {', '.join(gpu['name'] for gpu in gpus)}, {time.monotonic() - started:.0f} s\n{found.summary()}")
    if log_path.exists():
        print(f"logs of what did not pass: {log_path}")
    return found.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
