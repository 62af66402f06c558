# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/run's own machinery, with steps that stand in for real ones: no GPU, no driver, nothing built."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import findings  # noqa: E402
import gpu_run  # noqa: E402
import machine  # noqa: E402
import report  # noqa: E402
import runner  # noqa: E402
import step as step_program  # noqa: E402
import steps  # noqa: E402
from runner import Step  # noqa: E402

WRITES = """
import json, os, signal, subprocess, sys, time
sys.path.insert(0, {here!r})
from findings import Lines
lines = Lines(sys.argv[1])
"""


def step(name, code, limit_s=30.0):
    """Makes a step that runs `code` in Python."""
    return Step(name, f"about {name}", limit_s, lambda context, lines: [
        sys.executable, "-B", "-c", WRITES.format(here=str(HERE)) + code, lines])


PASSES = step("passes", """
lines.check('right', True, 'so')
lines.fact('place', 'here')
lines.figure('rate', 2.5, 'img/s', of_what='x')
""")
FAILS = step("fails", """
lines.check('right', True)
lines.check('wrong', False, 'it differs')
print('said before')
""")
CRASHES = step("crashes", "lines.check('until then', True); os.kill(os.getpid(), signal.SIGSEGV)")
HANGS = step("hangs", """
lines.check('until then', True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(15, 1); time.sleep(1000)'])
lines.fact('child', child.pid)
time.sleep(1000)
""", 1.0)


class RunnerTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="leat-runner-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.json = self.folder / "gpu.json"
        self.context = runner.Context(self.folder, self.folder, self.folder, dict(os.environ))

    def run_one(self, one, left_s=60.0):
        return runner.run(one, self.context, time.monotonic() + left_s, 60)

    def run_all(self, *chosen, left_s=60.0, left_out=()):
        """Returns (exit code, the JSON, the printed text)."""
        out = io.StringIO()
        found = findings.Findings(out, 60, self.json)
        plan = [(one, "--skip" if one.name in left_out else "") for one in chosen]
        gpu_run.run_all(plan, self.context, found, time.monotonic() + left_s, self.folder / "gpu.json.log")
        kept = json.loads(self.json.read_text())
        self.assertEqual(kept["exit_code"], found.exit_code)
        return found.exit_code, kept, out.getvalue() + found.summary()

    def test_a_step_that_passes(self):
        code, kept, said = self.run_all(PASSES)
        self.assertEqual(code, 0)
        self.assertEqual(kept["machine"], {"place": "here"})
        self.assertEqual([one["outcome"] for one in kept["steps"]], ["passed"])
        self.assertIn({"figure": "rate", "value": 2.5, "unit": "img/s", "note": "", "of": {"of_what": "x"}},
                      kept["steps"][0]["lines"])
        self.assertIn("1 checks passed, 0 failed; steps: 1 passed", said)

    def test_a_check_that_fails_fails_its_step_alone(self):
        code, kept, said = self.run_all(FAILS, PASSES)
        self.assertEqual(code, 1)
        self.assertEqual([one["outcome"] for one in kept["steps"]], ["failed", "passed"])
        self.assertEqual(kept["steps"][0]["why"], "1 of its checks")
        self.assertIn("it differs", said)
        self.assertIn("said before", (self.folder / "gpu.json.log").read_text())

    def test_a_step_that_crashes_keeps_what_it_found(self):
        code, kept, _ = self.run_all(CRASHES, PASSES)
        self.assertEqual(code, 1)
        self.assertEqual((kept["steps"][0]["outcome"], kept["steps"][0]["why"]), ("crashed", "ended by SIGSEGV"))
        self.assertEqual(kept["steps"][0]["lines"][0]["check"], "until then")
        self.assertEqual(kept["steps"][1]["outcome"], "passed")

    def test_a_step_that_hangs_ends_with_all_that_it_started(self):
        started = time.monotonic()
        code, kept, _ = self.run_all(HANGS, PASSES)
        self.assertLess(time.monotonic() - started, 20)
        self.assertEqual(code, 1)
        self.assertEqual((kept["steps"][0]["outcome"], kept["steps"][0]["why"]), ("hung", "no end within 1 s"))
        self.assertEqual(kept["steps"][1]["outcome"], "passed")
        end = time.monotonic() + 10
        while self.state_of(kept["machine"]["child"]) not in (None, "Z"):  # SIGKILL takes its moment
            self.assertLess(time.monotonic(), end)

    @staticmethod
    def state_of(process):
        """Returns a process's state; None: it is gone."""
        try:
            return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return None

    def test_ways_to_fail_without_a_failed_check(self):
        for code, why in (("", "it found nothing"),
                          ("lines.check('x', True); sys.exit('no such file')", "no such file"),
                          ("raise KeyError('x')", "exit code 1: KeyError: 'x'")):
            with self.subTest(code=code):
                done = self.run_one(step("s", code))
                (self.folder / "s.lines").unlink(missing_ok=True)
                self.assertEqual(done.outcome, "failed")
                self.assertIn(why, done.why)
                self.assertTrue(done.said or not code)

    def test_what_is_not_here_is_no_failure(self):
        done = self.run_one(Step("tool", "", 5, lambda context, lines: "no such tool"))
        self.assertEqual((done.outcome, done.why), ("not here", "no such tool"))
        done = self.run_one(step("only", "lines.missing('torch', 'not installed')"))
        self.assertEqual((done.outcome, done.why), ("not here", "not installed"))

    def test_a_line_that_a_crash_has_cut_is_left_out(self):
        done = self.run_one(step("cut", "lines.check('a', True)\nlines._file.write('{\"chec')\nlines._file.flush()\n"
                                        "os.abort()"))
        self.assertEqual((done.outcome, [line["check"] for line in done.lines]), ("crashed", ["a"]))

    def test_a_budget_that_ends_within_a_step_is_not_that_steps_fault(self):
        code, kept, said = self.run_all(PASSES, step("slow", "lines.check('a', True); time.sleep(1000)"), PASSES,
                                        left_s=runner.LEAST_S + 2)
        self.assertEqual(code, 4)
        self.assertEqual([one["outcome"] for one in kept["steps"]], ["passed", "unfinished", "skipped"])
        self.assertIn("the budget of 60 s was used up (--budget)", kept["steps"][2]["why"])
        self.assertIn("the budget of 60 s ended before: slow, passes", said)

    def test_what_the_user_left_out_is_named_and_costs_nothing(self):
        code, kept, _ = self.run_all(PASSES, HANGS, left_out=["hangs"])
        self.assertEqual(code, 0)
        self.assertEqual((kept["steps"][1]["outcome"], kept["steps"][1]["why"]), ("skipped", "--skip"))

    def test_a_failure_weighs_more_than_a_budget(self):
        code, _, _ = self.run_all(FAILS, step("slow", "time.sleep(1000)"), PASSES, left_s=runner.LEAST_S + 1)
        self.assertEqual(code, 1)


class ChoiceTest(unittest.TestCase):
    def left_out(self, only=(), skip=()):
        return [(one.name, why) for one, why in steps.chosen(only, skip) if why]

    def test_only_and_skip(self):
        self.assertEqual(self.left_out(), [])
        self.assertEqual(self.left_out(skip=["copies"]), [("copies", "--skip")])
        self.assertEqual({name for name, _ in self.left_out(only=["copies", "slots"])},
                         set(steps.names()) - {"copies", "slots"})
        self.assertIn(("slots", "--skip"), self.left_out(only=["copies", "slots"], skip=["slots"]))

    def test_wrong_use_names_what_there_is(self):
        for words, said in ((["--only", "copies,slot"], "--only slot: want one of handles, "),
                            (["--budget", "5"], "--budget 5: want 10 to 86400 seconds"),
                            (["--data", "/nowhere"], "--data /nowhere: no such folder")):
            with self.subTest(words=words):
                errors = io.StringIO()
                with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as ended:
                    gpu_run.parse(words)
                self.assertEqual(ended.exception.code, 2)
                self.assertIn(said, errors.getvalue())


    def test_the_first_answers_fit_four_minutes_and_decide_most(self):
        first = steps.FIRST
        self.assertLessEqual(sum(step.takes_s for step in [*steps.ALWAYS, *first]), steps.FIRST_S)
        self.assertEqual([step.name for step in first][:4], ["handles", "copies", "nvjpeg", "slots"])
        self.assertEqual(self.names_left_out("rest"), [step.name for step in first])
        self.assertEqual(self.names_left_out("first"), [step.name for step in steps.REST])
        left_out = {one.name: why for one, why in steps.chosen((), (), "first")}
        self.assertEqual(left_out["kernels"], "not in --part first")

    @staticmethod
    def names_left_out(part):
        return [one.name for one, why in steps.chosen((), (), part) if why]

    def test_every_limit_leaves_room_for_what_its_step_takes(self):
        for one in [*steps.ALWAYS, *steps.CHOSEN]:
            with self.subTest(step=one.name):
                self.assertGreater(one.takes_s, 0)
                self.assertGreaterEqual(one.limit_s, 1.4 * one.takes_s)

    def test_what_may_wedge_the_device_comes_last(self):
        self.assertEqual(steps.names()[-3:], ["damage", "nulls", "mps"])

    def test_every_python_step_is_there(self):
        for one in [*steps.ALWAYS, *steps.CHOSEN]:
            with self.subTest(step=one.name), mock.patch.object(machine, "tool", lambda name: name):
                folder = pathlib.Path(tempfile.gettempdir())
                words = one.command(runner.Context(folder, folder, folder, {}), "lines")
                if not isinstance(words, str):
                    self.assertIn(words[3], step_program.STEPS)


class ReportTest(unittest.TestCase):
    RUN = {"machine": {"gpus": [{"name": "A GPU"}]}, "steps": [
        {"step": "exact", "outcome": "failed", "lines": [
            {"check": "class exact: photos have the CPU's bytes", "ok": False, "note": "3 of 9 rows differ"}]},
        {"step": "nvjpeg", "outcome": "passed", "lines": [
            {"figure": "nvJPEG alone, squares", "value": rate, "unit": "img/s", "note": "",
             "of": {"backend": backend, "way": "one by one, 4 threads", "side": side}}
            for backend, side, rate in (("HYBRID", "256", 900.0), ("HYBRID", "2048", 90.0),
                                        ("GPU_HYBRID", "256", 500.0), ("GPU_HYBRID", "2048", 150.0))]}]}

    def test_what_was_found_is_in_the_tables(self):
        text = report.tables(self.RUN)
        self.assertIn("| what | goal | A GPU |", text)
        self.assertIn("| 0 | class exact: photos have the CPU's bytes: 3 of 9 rows differ |", text)
        self.assertIn("| 256: HYBRID, 2048: GPU_HYBRID |", text)
        self.assertIn("**nvJPEG alone, squares**, img/s, by side", text)
        self.assertIn("| GPU_HYBRID | one by one, 4 threads | 500 | 150 |", text)
        self.assertIn("| not measured |", text)

    def test_two_parts_are_one_run(self):
        steps_ = self.RUN["steps"]
        skipped = {"outcome": "skipped", "lines": []}
        first = {**self.RUN, "steps": [steps_[0], {**skipped, "step": "nvjpeg"}]}
        rest = {**self.RUN, "steps": [{**skipped, "step": "exact"}, steps_[1]]}
        self.assertEqual(report.together([first, rest]), self.RUN)
        self.assertIsNone(report.together([]))

    def test_the_page_has_every_row(self):
        page = (HERE.parents[1] / "docs/measurements/gpu.md").read_text()
        for what, goal, _ in report.GOALS:
            self.assertIn(f"| {what} | {goal} |", page)
        if "Nothing yet" in page:
            self.assertIn(report.tables(None), page)

    def test_every_table_is_of_a_step(self):
        self.assertLessEqual(set(report.DETAILS.values()), set(steps.names()))


if __name__ == "__main__":
    unittest.main()
