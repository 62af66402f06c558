# SPDX-License-Identifier: Apache-2.0
"""summary.py and budget.py on output that ctest, unittest and pytest give here; and on GoogleTest's, kept below."""

import contextlib
import importlib.util
import io
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import budget
import summary

TIMED = pathlib.Path(__file__).resolve().parent / "timed"

GOOGLE = """Running main() from ./googletest/src/gtest_main.cc
[==========] Running 5 tests from 2 test suites.
[ RUN      ] Codecs.Exact
tail without an end of line[       OK ] Codecs.Exact (3 ms)
[ RUN      ] Codecs.Wrong
codecs_test.cc:7: Failure
Expected equality
[  FAILED  ] Codecs.Wrong (1 ms)
[ RUN      ] Data/CodecsOf.Photos/Made
[       OK ] Data/CodecsOf.Photos/Made (20 ms)
[ RUN      ] Data/CodecsOf.Photos/Real
/a b/codecs_test.cc:388: Skipped
no imagenet-sample of real data:
LEAT_TEST_DATA is not set

[  SKIPPED ] Data/CodecsOf.Photos/Real (0 ms)
[ RUN      ] Data/CodecsOf.Odd/Real
/a b/codecs_test.cc:388: Skipped

[  SKIPPED ] Data/CodecsOf.Odd/Real (0 ms)
[==========] 5 tests from 2 test suites ran. (24 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] Data/CodecsOf.Photos/Real
[  SKIPPED ] Data/CodecsOf.Odd/Real
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Codecs.Wrong

 1 FAILED TEST
  YOU HAVE 3 DISABLED TESTS
"""

UNITTEST = """
import unittest
class Several(unittest.TestCase):
    def test_a(self): print("said by it")
    def test_b(self): self.skipTest("it's dark")
    @unittest.skip('a "quoted" reason')
    def test_c(self): pass
    def test_d(self):
        '''A sentence.'''
        print("begun")
        self.skipTest("after dark")
    @unittest.expectedFailure
    def test_e(self): self.fail()
class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("nothing for this class")
    def test_f(self): pass
    def test_g(self): pass
unittest.main()
"""

MODULE = """
import unittest
def setUpModule(): raise unittest.SkipTest("no server")
class Only(unittest.TestCase):
    def test_a(self): pass
unittest.main()
"""

PYTEST = """
import unittest
import pytest
def test_a(): pass
def test_b(): pytest.importorskip("no_such_package")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_c(n): raise unittest.SkipTest("no mnist: it is not set")
@pytest.mark.skip(reason="by mark")
def test_d(): pass
"""


def said(output):
    test = summary.Test("stage", "name", 1.0)
    summary.read_output(test, output)
    return test


def program(source):
    """Returns the output of a unittest script with -v."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "script.py")
        script.write_text(source)
        return subprocess.run([sys.executable, script, "-v"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True).stdout


class ReadingTest(unittest.TestCase):
    def test_google_test(self):
        test = said(GOOGLE)
        self.assertEqual((test.passed, test.failed, test.skips, test.state), (2, 1, 5, "failed"))
        self.assertEqual(test.skipped, [
            ("Data/CodecsOf.Photos/Real", "no imagenet-sample of real data: LEAT_TEST_DATA is not set", 1),
            ("Data/CodecsOf.Odd/Real", "no reason given", 1), ("", "its name begins with DISABLED_", 3)])

    def test_unittest(self):
        test = said(program(UNITTEST))
        passed = 1 if sys.version_info[:3] == (3, 12, 1) else 2  # only this version does not count test_c as run
        self.assertEqual((test.passed, test.failed, test.skips), (passed, 0, 4))
        self.assertEqual([reason for _, reason, _ in test.skipped],
                         ["it's dark", 'a "quoted" reason', "after dark", "nothing for this class"])
        self.assertEqual([place for place, _, _ in test.skipped],
                         ["Several.test_b", "Several.test_c", "Several.test_d", "a class or module"])

    def test_a_module_of_unittest_that_is_skipped(self):
        test = said(program(MODULE))
        self.assertEqual((test.passed, test.failed, test.state), (0, 0, "skipped"))
        self.assertEqual([(reason, count) for _, reason, count in test.skipped], [("no server", 1)])

    def test_unittest_with_failures(self):
        test = said("Ran 9 tests in 0.2s\n\nFAILED (failures=2, errors=1, skipped=1)\n")
        self.assertEqual((test.passed, test.failed), (5, 3))
        self.assertEqual(test.skipped, [("", "the reason is not in its output", 1)])

    @unittest.skipIf(importlib.util.find_spec("pytest") is None, f"{sys.executable} has no pytest")
    def test_pytest(self):
        with tempfile.TemporaryDirectory(suffix=" with a blank") as folder:
            script = pathlib.Path(folder, "test_several.py")
            script.write_text(PYTEST)
            output = subprocess.run([sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", script],
                                    stdout=subprocess.PIPE, text=True, cwd=folder).stdout
        test = said(output)
        self.assertEqual((test.passed, test.failed, test.skips), (1, 0, 5), output)
        reasons = {reason: count for _, reason, count in test.skipped}
        self.assertEqual(reasons.pop("no mnist: it is not set"), 3)
        self.assertEqual(reasons.pop("by mark"), 1)
        self.assertRegex(*reasons, "no_such_package")

    def test_pytest_with_failures(self):
        test = said("FAILED x.py::test - boom\n2 failed, 3 passed, 1 skipped, 4 warnings, 1 error in 0.12s\n")
        self.assertEqual((test.passed, test.failed), (3, 3))
        self.assertEqual(test.skipped, [("", "the reason is not in its output", 1)])

    def test_each_lost_skip_is_noticed(self):
        """Removing any line of a skip from the output does not lower the count."""
        for output, skips in ((GOOGLE, 5), (program(UNITTEST), 4)):
            for line in output.splitlines():
                if re.search(r"skipped ['\"]|SKIPPED \] Data.* ms", line):
                    self.assertEqual(said(output.replace(line, "?", 1)).skips, skips, line)


CTEST = """
add_test(passes "sh" "-c" "seq 1 3000")
add_test(google "cat" "{google}")
add_test(returns "sh" "-c" "echo no server here; exit 77")
set_tests_properties(returns PROPERTIES SKIP_RETURN_CODE 77)
add_test(disabled "true")
set_tests_properties(disabled PROPERTIES DISABLED ON)
"""


class SummaryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="leat-summary-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ctest(self, tests, *flags):
        """Runs tests of ctest; returns its file of results."""
        (self.folder / "CTestTestfile.cmake").write_text(tests)
        file = self.folder / "results.xml"
        subprocess.run(["ctest", "--output-junit", file, *flags], cwd=self.folder, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return file

    def summary(self, *arguments):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = summary.main([str(argument) for argument in arguments])
        return status, out.getvalue(), errors.getvalue()


class RunTest(SummaryTest):
    def whole(self, google=GOOGLE):
        (self.folder / "google").write_text(google)
        return self.ctest(CTEST.format(google=self.folder / "google"), "--test-output-size-passed", "1000000")

    def test_what_ctest_skips_is_counted_and_apart(self):
        google = GOOGLE.replace("[  FAILED  ] Codecs.Wrong (", "[       OK ] Codecs.Wrong (")
        status, out, _ = self.summary(f"dev={self.whole(google)}")
        self.assertEqual(status, 0)
        self.assertEqual(out.splitlines()[-1], "4 passed, 0 failed, 7 skipped")
        for words in ("1 × no server here", "1 × disabled", "dev: google Data/CodecsOf.Photos/Real"):
            self.assertIn(words, out)

    def test_equal_reasons_of_two_stages_are_joined(self):
        file = self.whole()
        status, out, _ = self.summary(f"one={file}", f"two={file}")
        self.assertEqual(status, 1)
        self.assertEqual(out.splitlines()[-1], "6 passed, 2 failed, 14 skipped")
        self.assertEqual(out.count("no imagenet-sample of real data: LEAT_TEST_DATA is not set"), 1)
        self.assertIn("one, two: google Data/CodecsOf.Photos/Real", out)

    def test_output_that_ctest_has_cut_is_a_failure(self):
        file = self.ctest('add_test(passes "sh" "-c" "seq 1 3000")\n')
        status, out, errors = self.summary(f"dev={file}")
        self.assertEqual(status, 1)
        self.assertIn("passes: its output is cut", errors)
        self.assertIn("--test-output-size-passed", errors)

    def test_what_fails_or_cannot_start_fails(self):
        for command in ('"false"', '"/nowhere/program"', '"sh" "-c" "kill -SEGV $$"'):
            with self.subTest(command=command):
                file = self.ctest(f'add_test(bad {command})\nadd_test(good "true")\n')
                status, out, _ = self.summary(f"dev={file}")
                self.assertEqual((status, out.splitlines()[-1]), (1, "1 passed, 1 failed, 0 skipped"))
                self.assertIn("dev: bad", out)

    def test_nothing_that_ran_is_no_success(self):
        skips = 'add_test(only "false")\nset_tests_properties(only PROPERTIES DISABLED ON)\n'
        for tests, last in (("", "0 passed, 0 failed, 0 skipped"), (skips, "0 passed, 0 failed, 1 skipped")):
            status, out, _ = self.summary(f"dev={self.ctest(tests)}")
            self.assertEqual((status, out.splitlines()[-1]), (1, last))

    def test_a_stage_without_results_fails(self):
        broken = self.folder / "broken.xml"
        broken.write_text("<testsuite><testcase")
        for file in (self.folder / "none.xml", broken):
            status, out, errors = self.summary(f"dev={self.whole()}", f"asan={file}")
            self.assertEqual(status, 1)
            self.assertIn(f"asan: {file}: no results", errors)

    def test_wrong_use(self):
        for arguments in ((), ("file.xml",), ("=file.xml",), ("dev=",)):
            with self.assertRaises(SystemExit) as ended:
                self.summary(*arguments)
            self.assertEqual(ended.exception.code, 2)


class BudgetTest(SummaryTest):
    def setUp(self):
        super().setUp()
        self.steps = self.folder / "steps.tsv"
        self.steps.write_text("building dev\t300\t0\npackages\t60\t0\nbuilding dev\t0\t500.5\npackages\t0\t40\n")
        self.budget = self.folder / "budget.tsv"
        self.addCleanup(setattr, budget, "FILE", budget.FILE)
        budget.FILE = self.budget

    def run_with(self, lines, *arguments):
        self.budget.write_text("# A comment.\n" + lines)
        file = self.ctest(f'add_test(busy "{TIMED}" "{sys.executable}" "-c" "sum(range(10**7))")\n'
                          f'add_test(none "{TIMED}" "sh" "-c" "echo no server here; exit 77")\n'
                          "set_tests_properties(none PROPERTIES SKIP_RETURN_CODE 77)\n")
        return self.summary("--steps", self.steps, *arguments, f"dev={file}")

    def test_the_longest_steps_are_told_with_processor_and_wall_time(self):
        status, out, _ = self.run_with("")
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"500\.5 s +9\d\.\d% +300\.0 s  building dev")
        busy = re.search(r"([\d.]+) s +\d+\.\d%  +[\d.]+ s  dev: busy", out)
        self.assertGreater(float(busy[1]), 0.05, out)
        self.assertIn("1 × no server here", out)

    def test_a_step_a_third_over_its_budget_is_told_and_one_two_thirds_over_fails(self):
        others = f"{budget.OTHERS}\t100\n"
        for may, status, word in ((400, 0, None), (370, 0, "warning"), (290, 1, "fails")):
            got, out, _ = self.run_with(f"building dev\t{may}\n{others}", "--compilation", 1)
            self.assertEqual(got, status, out)
            told = re.search(r"budget, (\w+): building dev took 50[01] compilations", out)
            self.assertEqual(told and told[1], word, out)

    def test_what_is_timed_ends_as_it_would_alone(self):
        for command, status in (("exit 0", 0), ("exit 77", 77), ("kill -SEGV $$", -signal.SIGSEGV)):
            ended = subprocess.run([TIMED, "sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.assertEqual(ended.returncode, status, command)

    def test_steps_without_a_line_share_one(self):
        status, out, _ = self.run_with(f"building dev\t500\n{budget.OTHERS}\t10\n", "--compilation", 1)
        self.assertEqual(status, 1)
        self.assertIn(f"budget, fails: {budget.OTHERS} took 4", out)

    def test_what_is_written_holds(self):
        status, out, _ = self.run_with(f"{budget.OTHERS}\t1\n", "--compilation", 2, "--write-budget")
        self.assertEqual(status, 0, out)
        self.assertEqual(self.budget.read_text().splitlines()[:3],
                         ["# A comment.", "building dev\t250", "packages\t20"])


if __name__ == "__main__":
    unittest.main()
