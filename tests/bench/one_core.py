# SPDX-License-Identifier: Apache-2.0
"""Sections of the table that are measured on one core, without a network: operators, and readers of small records.

Programs of Leat and of others wait for their turn (asking.py). In a round each measures a case for a moment, one right
after the other, and ratios are within a round. Rates are items per second of processor time.
"""

import contextlib
import os
import pathlib
import statistics

from asking import Program

HERE = pathlib.Path(__file__).resolve().parent
OPERATOR_PEERS = ("pillow", "dali", "torchvision")
READER_PEERS = ("dali", "tfdata")
YARDSTICKS = {"read": "read()", "blocks": "in blocks"}
WANTED = {"read": 0.8}  # the goal for a ratio, otherwise 1; "blocks" is only for comparison


def _rounds(programs, rounds, seconds):
    """Returns case -> program -> rates of the rounds, or the reason why there are none. Leat's program has the
    cases."""
    results = {}
    for case in programs["leat"].cases:
        rates = results[case] = {}
        names = [name for name, program in programs.items() if case in program.cases or program.absent]
        for number in range(rounds):
            first = number % len(names)  # a different one in each round
            for name in names[first:] + names[:first]:
                if isinstance(rates.setdefault(name, []), list):
                    rate = programs[name].rate(case, seconds)
                    rates[name] = [*rates[name], rate] if isinstance(rate, float) else rate
        print(f"  {case}: " + ", ".join(f"{name} {statistics.median(r):.0f}" for name, r in rates.items()
                                        if isinstance(r, list)), flush=True)
    return results


def _measure(args, out, section, programs):
    """`programs`: name -> command line. All run on the last core; the load from other processes is recorded."""
    core = max(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        started = {name: stack.enter_context(Program(argv, core)) for name, argv in programs.items()}
        if started["leat"].absent:
            raise SystemExit(f"{section}: {started['leat'].absent}")
        load = os.getloadavg()[0]
        out[section] = _rounds(started, args.rounds, 0.15 if args.quick else 0.3)
        out.setdefault("load", {})[section] = [load, os.getloadavg()[0]]


def measure_operators(args, out):
    folder = args.folder / "operators"
    folder.mkdir()
    programs = {"leat": [args.bench_bin / "operator_bench", args.images, folder]}
    for peer in OPERATOR_PEERS:
        if peer in args.one_core_peers:
            programs[peer] = [args.peers_python, HERE / "operator_peers.py", peer, folder]
    _measure(args, out, "operators", programs)


def measure_readers(args, out):
    folder = args.folder / "readers"
    folder.mkdir()
    programs = {name: [args.bench_bin / "reader_bench", name, folder] for name in ("leat", *YARDSTICKS)}
    for peer in READER_PEERS:
        if peer in args.one_core_peers:
            programs[peer] = [args.peers_python, HERE / "reader_peers.py", peer, folder]
    _measure(args, out, "readers", programs)


def _show(results, title, unit):
    names = list(dict.fromkeys(name for rates in results.values() for name in rates if name != "leat"))
    print(f"\n{title}\n{'':32}{unit:>10}" + "".join(f"{YARDSTICKS.get(name, name):>13}" for name in names))
    short = []
    for case, rates in results.items():
        line = f"{case:32}{statistics.median(rates['leat']):10.0f}"
        for name in names:
            if not isinstance(rates.get(name), list):
                line += f"{'-':>13}"
                continue
            ratio = statistics.median(ours / its for ours, its in zip(rates["leat"], rates[name]))
            line += f"{ratio:13.2f}"
            if name != "blocks" and ratio < WANTED.get(name, 1):
                short.append(f"{case}: {ratio:.2f} x {YARDSTICKS.get(name, name)}, want {WANTED.get(name, 1)}")
        print(line)
    for name, reason in {name: rates[name] for rates in results.values() for name in rates
                         if isinstance(rates[name], str)}.items():
        print(f"{name}: absent: {reason}")
    if names:
        print("below what is wanted: " + ("\n  ".join(["", *short]) if short else "nothing"))


def show(out):
    if "operators" in out:
        _show(out["operators"], "Operators on one core, processor time; ratios of Leat's rate to the others'",
              "images/s")
    if "readers" in out:
        _show(out["readers"], "100,000 records of about 1 KiB on one core, processor time; ratios of Leat's rate to: "
              "read() or pread() of each record,\nread() of whole files in blocks, other readers "
              "(shuffled: Leat all records, the others among 1,024)", "records/s")
    for section, (before, after) in out.get("load", {}).items():
        print(f"{section}: load average {before:.1f} before, {after:.1f} after")
