# SPDX-License-Identifier: Apache-2.0
import pathlib
import unittest

import hygiene


class Threads(unittest.TestCase):
    def found(self, line, path="core/a.cc"):
        return hygiene.check_text(pathlib.Path(path), f"// SPDX-License-Identifier: Apache-2.0\n{line}\n")

    def test_threads_that_throw(self):
        self.assertIn("core/a.cc:2: std::thread throws", self.found("a = std::thread([] {});")[0])
        self.assertEqual(self.found("new std::thread(std::move(a));"), [])
        self.assertEqual(self.found("a = std::thread([] {});", "tests/a_test.cc"), [])
        self.assertEqual(self.found("a = std::thread([] {});", "core/thread.cc"), [])


if __name__ == "__main__":
    unittest.main()
