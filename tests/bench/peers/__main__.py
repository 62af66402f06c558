# SPDX-License-Identifier: Apache-2.0
"""The yardstick and the peers without Leat, in rounds that interleave them. Makes their environment, build/peers-venv.

    python3 tests/bench/peers [--images DIR] [--peers all|limit|NAME,…] [--rounds N] [--seconds S] [--json FILE]
"""

import argparse
import json
import os
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
from peers import LIMIT, environment, photos, runner  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(prog="tests/bench/peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=pathlib.Path)
    parser.add_argument("--peers", default="all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=BENCH.parents[1] / "build")
    args = parser.parse_args()
    try:
        args.names = runner.named(args.peers)
        maker = args.build / "release/tests/support/photos/leat_make_photos"
        args.images, args.what = photos.choose(args.images, maker, args.build / "bench")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return args


def main():
    args = parse()
    packages = environment.Environments(args.build)
    try:
        packages.install(args.names)
    except OSError as error:
        sys.exit(f"tests/bench/peers: {error}")
    rounds = []
    with runner.Peers(args.images, args.seconds, args.threads, packages.python, args.build / "bench",
                      packages.absent) as peers:
        for number in range(args.rounds):
            one = {}
            for name in [LIMIT, *args.names]:
                one[name] = peers.rate(name)
                shown = f"{one[name]:.0f} img/s" if isinstance(one[name], float) else f"absent: {one[name]}"
                print(f"  round {number + 1} of {args.rounds}, {name}: {shown}", flush=True)
            rounds.append(one)
    print(f"\n{args.what}, {args.threads} threads\n{'':24}{'img/s':>8}{'ratio':>8}   rounds")
    print("\n".join(runner.line(name, rounds) for name in rounds[0]))
    if args.json:
        out = {"images": args.what, "threads": args.threads, "rates": rounds}
        args.json.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
