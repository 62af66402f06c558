# SPDX-License-Identifier: Apache-2.0
"""folder_tests.py on a table made here, and on the sources of this tree."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import folder_tests

SOURCES = {
    "tests/server/jobs/a_test.cc": "TEST(Jobs, AreMade) {}\nTEST_F(Ledger,\n       IsKept) {}\n",
    "tests/server/jobs/deep/b_test.cc": "TEST_P(Orders, AreKept) {}\nTYPED_TEST(Lists, Grow) {}\n",
    "tests/server/jobs/fixture.cc": "void Helper() {}\n",
    "tests/server/jobs_more/c_test.cc": "TEST(More, IsNotChosen) {}\n",
    "tests/core/d_test.cc": "// TEST(Comment, IsNone)\nTEST(Core, Works) {}\n",
}
TABLE = ("server_test\ttests/server/jobs/a_test.cc\nserver_test\ttests/core/d_test.cc\n"
         "deep_test\ttests/server/jobs/deep/b_test.cc\nhelped_test\ttests/server/jobs/fixture.cc\n"
         "more_test\ttests/server/jobs_more/c_test.cc\n")


def select(folder):
    return folder_tests.select(TABLE, folder, SOURCES.__getitem__)


class SelectTest(unittest.TestCase):
    def test_programs_with_a_test_below_the_folder_and_its_suites_alone(self):
        self.assertEqual(select("server/jobs"), (["deep_test", "server_test"],
                                                 ["*/Orders.*", "Jobs.*", "Ledger.*", "Lists/*"]))
        self.assertEqual(select("core"), (["server_test"], ["Core.*"]))
        self.assertEqual(select("client"), ([], []))

    def test_folders_are_those_of_the_table_of_folders(self):
        folders = folder_tests.folders(folder_tests.ROOT)
        for folder in ("core", "server/jobs", "worker/source/parquet/arrow"):
            self.assertIn(folder, folders)
            self.assertEqual(folder_tests.main(["--is", folder + "/"]), 0)
        for name in ("core_graph", "e2e", "server/job", "."):
            self.assertEqual(folder_tests.main(["--is", name]), 1)

    def test_every_source_of_tests_has_suites(self):
        found = 0
        for folder in ("core", "rpc", "server", "worker", "client"):
            for path in (folder_tests.ROOT / "tests" / folder).rglob("*_test.cc"):
                found += 1
                self.assertTrue(folder_tests.suites_of(path.read_text(encoding="utf-8")), path)
        self.assertGreater(found, 100)

    def test_a_folder_without_tests_is_an_error_that_names_it(self):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder, "test-sources.tsv")
            table.write_text(TABLE, encoding="utf-8")
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(folder_tests.main([str(table), "client/examples"]), 1)
            self.assertIn("tests/run client/examples: ", said.getvalue())


if __name__ == "__main__":
    unittest.main()
