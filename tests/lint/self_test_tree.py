# SPDX-License-Identifier: Apache-2.0
"""A folder for each test of a lint, in which the test writes what the lint looks at."""

import pathlib
import tempfile
import unittest

import common

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


class Tree(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = pathlib.Path(self._folder.name).resolve()

    def write(self, path, content):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content)
        common.forget()

    def assert_one(self, findings, *words):
        self.assertEqual(len(findings), 1, findings)
        for word in words:
            self.assertIn(word, findings[0])
