# SPDX-License-Identifier: Apache-2.0
import pathlib
import unittest

import words


def found(content, path="a.cc"):
    return [f"{line}: {what}" for line, what in words.findings_of(pathlib.Path(path), content)]


class Words(unittest.TestCase):
    def assert_one(self, findings, *parts):
        self.assertEqual(len(findings), 1, findings)
        for part in parts:
            self.assertIn(part, findings[0])

    def test_a_paragraph_begins_with_its_subject(self):
        self.assertEqual(found("// The stream's end.\n//\n// Whatever follows is dropped.\nint a;  // Of it.\n"), [])
        self.assert_one(found("// A stream.\n//\n// Of one worker.\n"), "3: ", '"Of"')
        self.assert_one(found('"""A stream.\n\nWhat it holds.\n"""\n', "a.py"), "3: ", '"What"')
        self.assert_one(found('def a():\n    """Who calls."""\n', "a.py"), "2: ", '"Who"')

    def test_a_help_text_begins_with_its_subject(self):
        rows = "| --a |  | Time of a call. |\n| `--b x\\|y` | `1` | Of a call, or x. |\n|---|---|---|\n"
        self.assertEqual([line for line, _ in words.helps(rows)], [2])

    def test_phrases_that_hide_the_subject(self):
        self.assert_one(found("// The files are whole, but\n// for the last.\nint a;\n"), "1: ", "but for")
        self.assert_one(found("# It is not to be had.\n", "a.py"), "1: ", "be had")

    def test_texts_that_people_read_name_who_it_is(self):
        self.assert_one(found('Say("a pool without bounds: "\n    "nobody scales it");\n'), "1: ", '"nobody"')
        self.assert_one(found('f(\n    f"{n} parts, of "\n    f"which {m} are here; {n}, of which")\n', "a.py"), "3: ",
                        '"of which"')
        self.assertEqual(found('A = "nobody"\nf(\n    "whoever")\n', "tests/a.py"), [])

    def test_a_name_that_was_replaced_does_not_return(self):
        self.assert_one(found("size_t n = leat_batches_token(b, 0, 0);\n"), "1: ", "leat_batches_position")
        self.assertEqual(found("size_t n = leat_batches_token_ring(b);\nbool b = AccessTokenHash();\n"), [])


if __name__ == "__main__":
    unittest.main()
