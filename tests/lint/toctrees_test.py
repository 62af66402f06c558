# SPDX-License-Identifier: Apache-2.0
"""The lint toctrees reports its bad samples, and accepts the good ones beside them."""

import pathlib
import tempfile
import unittest

import toctrees

INDEX = "# Site\n```{toctree}\nFirst <part/one>\n```\n:::{toctree}\n:glob:\n/some/*\n/deep/**\n:::\n"
LINKS = "[two](../some/two.md#there) `[none](none.md)` [far](https://example.com/none.md)\n"


class ToctreesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.write("docs/index.md", INDEX)
        self.write("docs/part/one.md", LINKS)
        self.write("docs/some/two.md", "```{literalinclude} ../code.py\n```\n")
        self.write("docs/deep/a/three.md", "# Three\n")
        self.write("docs/code.py", "")

    def write(self, path, content):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content)

    def assert_one(self, text):
        findings = toctrees.check(self.root)
        self.assertEqual(len(findings), 1, findings)
        self.assertIn(text, findings[0])

    def test_pages_in_toctrees_and_links_to_files_are_good(self):
        self.assertEqual(toctrees.check(self.root), [])

    def test_a_page_outside_all_toctrees_is_found(self):
        self.write("docs/part/three.md", "# Three\n")
        self.assert_one("docs/part/three.md is in no toctree")

    def test_a_star_matches_no_folders(self):
        self.write("docs/some/a/four.md", "# Four\n")
        self.assert_one("docs/some/a/four.md is in no toctree")

    def test_a_toctree_without_its_page_is_found(self):
        self.write("docs/part/one.md", "```{toctree}\nfour\n```\n")
        self.assert_one("docs/part/one.md: the toctree names four")

    def test_a_link_without_a_file_is_found(self):
        self.write("README.md", "See [here](docs/none.md).\n")
        self.assert_one("README.md: docs/none.md: no such file")

    def test_included_code_without_a_file_is_found(self):
        (self.root / "docs/code.py").unlink()
        self.assert_one("docs/some/two.md: ../code.py: no such file")


if __name__ == "__main__":
    unittest.main()
