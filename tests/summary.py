#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The results of a run of the tests: a table, the slowest tests, and all skips, also those within a test.

    ctest … --output-junit FILE --test-output-size-passed 100000000 --test-output-size-failed 100000000
    summary.py [--steps FILE] [--compilation SECONDS] NAME=FILE…

Each FILE is ctest's output for the stage NAME. A test of ctest is a program of many cases: those of GoogleTest, of
unittest (-v) and of pytest (-ra) are read from its output, which must therefore be complete; any other program counts
as one case. The last line counts cases, "N passed, N failed, N skipped". A program that has only skips is skipped.

--steps: the steps besides the tests, and the time they took (budget.py), for the list of the longest steps.
--compilation: the time of budget.py's compilation here; with it, a step that takes two thirds more than its budget
fails the run.

Exit status 0: nothing failed, something passed, and no step is far over its budget.
"""

import argparse
import ast
import dataclasses
import pathlib
import re
import sys
import xml.etree.ElementTree

import budget

PLACES = 6
CUT = "This part of the test output was removed"  # ctest's message
_REASON = re.compile(r"""skipped ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*$""")
_TIMES = r"(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n"
_PROCESSOR = re.compile(rf"^processor time:\n{_TIMES}{_TIMES}", re.M)  # printed by tests/timed
_PYTEST_END = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+|no tests ran) in [\d.]+s")


@dataclasses.dataclass
class Test:
    """A test of ctest. `skipped`: place within it ("" is all of it), reason and count. `processor`: seconds."""

    stage: str
    name: str
    seconds: float
    processor: float = 0
    passed: int = 0
    failed: int = 0
    skipped: list = dataclasses.field(default_factory=list)

    @property
    def skips(self):
        return sum(count for _, _, count in self.skipped)

    @property
    def state(self):
        return "failed" if self.failed else "passed" if self.passed or not self.skipped else "skipped"


def read_google(test, lines):
    """Reads output of GoogleTest: the reason is between RUN and SKIPPED."""
    reason, listed, found = [], 0, 0
    for line in lines:
        if "[ RUN      ]" in line:
            reason = None
        elif re.search(r": Skipped$", line):
            reason = []
        elif match := re.search(r"\[  SKIPPED \] (\S+) \(\d+ ms\)", line):
            test.skipped.append((match[1].rstrip(","), " ".join(reason or []).strip() or "no reason given", 1))
            found += 1
            reason = None
        elif match := re.match(r"\[  SKIPPED \] (\d+) tests?, listed below", line):
            listed += int(match[1])
        elif match := re.match(r"\s*YOU HAVE (\d+) DISABLED TEST", line):
            test.skipped.append(("", "its name begins with DISABLED_", int(match[1])))
        elif re.search(r"\[       OK \] \S+.* \(\d+ ms\)", line):
            test.passed += 1
        elif re.search(r"\[  FAILED  \] \S+.* \(\d+ ms\)", line):
            test.failed += 1
        elif reason is not None:
            reason.append(line.strip())
    return listed - found


def read_unittest(test, lines):
    """Reads output of unittest -v. A case's name and its reason may be lines apart, since the case itself may print. A
    class or module has no name before its reason, and its cases are not counted among those that ran."""
    name, ran, found, beside, lost = "", 0, 0, 0, 0
    for line in lines:
        if match := re.match(r"\s*(\w+) \(([\w.<>]+)\)", line):
            of = match[2].removeprefix("__main__").lstrip(".")
            name = of if of.endswith(match[1]) else f"{of}.{match[1]}"
        if match := _REASON.search(line):
            whole = not name or re.search(r"setUp(Class|Module)$", name)
            place = name or "a class or module"
            test.skipped.append((place, " ".join(ast.literal_eval(match[1]).split()), 1))
            found += 1
            beside += bool(whole)
            name = ""
        elif re.search(r"(ok|FAIL|ERROR|expected failure|unexpected success)$", line):
            name = ""
        elif match := re.match(r"Ran (\d+) tests? in ", line):
            ran = int(match[1])
        elif match := re.match(r"(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", line):
            counts = {kind: int(count) for kind, count in re.findall(r"([a-z]+(?: [a-z]+)*)=(\d+)", match[1] or "")}
            failed = sum(counts.get(kind, 0) for kind in ("failures", "errors", "unexpected successes"))
            skipped = counts.get("skipped", 0)
            lost += skipped - found
            test.failed += failed
            test.passed += max(0, ran - failed - max(0, skipped - beside))
            ran = found = beside = 0
    return lost


def read_pytest(test, lines):
    """Reads output of pytest -ra."""
    found, lost = 0, 0
    for line in lines:
        if match := re.match(r"SKIPPED \[(\d+)\] (.*?\.py(?::\d+)?): (.*)", line):
            test.skipped.append((re.sub(r"^.*/", "", match[2]), match[3], int(match[1])))
            found += int(match[1])
        elif match := _PYTEST_END.match(line):
            counts = {kind: int(count) for count, kind in re.findall(r"(\d+) ([a-z]+)", match[1])}
            test.passed += counts.get("passed", 0) + counts.get("xfailed", 0)
            test.failed += sum(counts.get(kind, 0) for kind in ("failed", "error", "errors", "xpassed"))
            lost += counts.get("skipped", 0) - found
            found = 0
    return lost


def read_output(test, output):
    """Adds the cases in a program's output."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", output.replace("[NON-XML-CHAR-0x1B]", "\x1b"))
    lines = [line.rstrip() for line in text.split("\n")]
    for read in (read_google, read_unittest, read_pytest):
        lost = read(test, lines)
        if lost > 0:
            test.skipped.append(("", "the reason is not in its output", lost))


def read_case(stage, case):
    """Reads a testcase of ctest's file."""
    test = Test(stage, case.get("name", "?"), float(case.get("time") or 0))
    status, output = case.get("status"), case.findtext("system-out") or ""
    if said := list(_PROCESSOR.finditer(output)):
        numbers = [float(number) for number in said[-1].groups()]
        test.processor = 60 * sum(numbers[0::2]) + sum(numbers[1::2])
        output = _PROCESSOR.sub("", output)
    why = case.find("skipped")
    message = why.get("message", "") if why is not None else ""
    if status == "disabled":
        test.skipped.append(("", "disabled", 1))
    elif status == "notrun" and message.startswith("SKIP_"):
        said = [line.strip() for line in output.split("\n") if line.strip()]
        test.skipped.append(("", said[-1] if said else message, 1))
    elif status == "run":
        read_output(test, output)
        if CUT in output:
            print(f"{stage}: {test.name}: its output is cut, and skips may be lost: give ctest "
                  "--test-output-size-passed", file=sys.stderr)
            test.failed += 1
        if not test.passed and not test.skipped:
            test.passed = 1
    else:  # it failed, or could not be started
        read_output(test, output)
        test.failed = max(1, test.failed)
    return test


def read_stage(stage, file):
    """Returns the tests of a file, and their total time."""
    try:
        suite = xml.etree.ElementTree.parse(file).getroot()
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(f"{stage}: {file}: no results of ctest: {error}", file=sys.stderr)
        return [Test(stage, "(no results)", 0, failed=1)], 0
    return [read_case(stage, case) for case in suite.iter("testcase")], float(suite.get("time") or 0)


def print_table(stages):
    width = max([len("stage"), *map(len, stages)])
    print(f"{'stage':{width}}  {'seconds':>7}  {'programs':>26}  {'cases':>26}")
    print(f"{'':{width}}  {'':>7}  " + "  ".join([f"{'passed':>8} {'failed':>8} {'skipped':>8}"] * 2))
    for stage, (tests, seconds) in stages.items():
        programs = [sum(test.state == state for test in tests) for state in ("passed", "failed", "skipped")]
        cases = [sum(test.passed for test in tests), sum(test.failed for test in tests),
                 sum(test.skips for test in tests)]
        numbers = "  ".join(" ".join(f"{number:8}" for number in three) for three in (programs, cases))
        print(f"{stage:{width}}  {seconds:7.0f}  {numbers}")


def print_skipped(tests):
    """Prints each reason once, with all places that have it."""
    reasons = {}
    for test in tests:
        for place, reason, count in test.skipped:
            total, places = reasons.setdefault(reason, [0, {}])
            reasons[reason][0] = total + count
            stages = places.setdefault(f"{test.name} {place}".rstrip(), [])
            if test.stage not in stages:
                stages.append(test.stage)
    print(f"\nskipped, {sum(total for total, _ in reasons.values())}:")
    for reason, (total, places) in sorted(reasons.items(), key=lambda item: -item[1][0]):
        print(f"{total:5} × {reason}")
        for place, stages in list(places.items())[:PLACES]:
            print(f"        {', '.join(stages)}: {place}")
        if len(places) > PLACES:
            print(f"        and {len(places) - PLACES} more")


def read_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", metavar="FILE")
    parser.add_argument("--compilation", type=float, metavar="SECONDS")
    parser.add_argument("--write-budget", action="store_true", help="write what this run took to budget.tsv")
    parser.add_argument("stages", nargs="+", metavar="NAME=FILE")
    read = parser.parse_args(arguments)
    if not all(name and file for name, _, file in (stage.partition("=") for stage in read.stages)):
        parser.error("want NAME=FILE")
    return read


def check_budget(read, tests):
    """Prints the longest steps. Returns the steps that are far over their budget."""
    steps = [budget.Step(f"{test.stage}: {test.name}", test.seconds, test.processor) for test in tests]
    if read.steps:
        # The stages of tests are listed test by test instead.
        steps += [step for step in budget.read_steps(read.steps) if step.processor]
    budget.print_longest(steps)
    if read.write_budget:
        budget.write(steps, read.compilation)
    return budget.check(steps, budget.read_budget(), read.compilation) if read.compilation else []


def main(arguments):
    read = read_arguments(arguments)
    pairs = [stage.partition("=") for stage in read.stages]
    stages = {name: read_stage(name, pathlib.Path(file)) for name, _, file in pairs}
    tests = [test for tests, _ in stages.values() for test in tests]
    print_table(stages)
    over = check_budget(read, tests)
    if any(test.skipped for test in tests):
        print_skipped(tests)
    failed = [test for test in tests if test.failed]
    if failed:
        print("\nfailed:")
        for test in failed:
            print(f"        {test.stage}: {test.name}")
    passed, skipped = sum(test.passed for test in tests), sum(test.skips for test in tests)
    print(f"\n{passed} passed, {sum(test.failed for test in failed)} failed, {skipped} skipped")
    return 0 if passed and not failed and not over else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
