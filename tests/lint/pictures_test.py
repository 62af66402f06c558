# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile
import unittest

import layering
import pictures

TABLE = """
| folder | what it is for | may include | messages |
|---|---|---|---|
| `core` | all | | |
| `core/plan` | plans | `core/random` | |
| `core/random` | draws | | |
| `mill` | a program | `mill/ears` `mill/grain` `mill/oats` `mill/rye` `rpc/call` | |
| `mill/ears` | ears | `core/*` `rpc/call` | |
| `mill/grain` | grain | `mill/ears` `mill/grain/bran` | |
| `mill/grain/bran` | bran | | |
| `mill/oats` | oats | `mill/ears` | |
| `mill/rye` | rye | `mill/ears` | |
| `rpc/call` | calls | | |
"""
PAGE = "# The mill\n\n<!-- folders: {} -->\n<!-- end of folders -->\n\nIt grinds.\n"


class Pictures(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = pathlib.Path(self._folder.name)
        self.table(TABLE)
        self.page("core", PAGE.format("core"))
        self.page("rpc", PAGE.format("rpc"))
        self.page("mill", PAGE.format("mill"))
        self.assertEqual(pictures.check(self.root, write=True), [])

    def table(self, text):
        (self.root / layering.PAGE).parent.mkdir(parents=True, exist_ok=True)
        (self.root / layering.PAGE).write_text(text)

    def page(self, name, text=None):
        path = self.root / pictures.PAGES / f"{name}.md"
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return path.read_text()

    def boxes(self, tops, groups=()):
        text, findings = pictures.picture(layering.read_rules(TABLE), list(tops), list(groups))
        self.assertEqual(findings, [])
        lines = [line.strip() for line in text.splitlines()]
        names = dict(line[:-2].split('["') for line in lines if '["' in line)
        arrows = {tuple(names[end] for end in line.split(" --> ")) for line in lines if "-->" in line}
        return set(names.values()), arrows

    def test_a_picture_that_was_written_is_accepted_and_the_rest_of_the_page_stays(self):
        self.assertEqual(pictures.check(self.root), [])
        self.assertIn("flowchart", self.page("mill"))
        self.assertTrue(self.page("mill").startswith("# The mill\n"))
        self.assertTrue(self.page("mill").endswith("<!-- end of folders -->\n\nIt grinds.\n"))

    def test_arrows_that_follow_from_others_are_left_out_and_like_folders_are_one_box(self):
        names, arrows = self.boxes(["mill"])
        self.assertEqual(names, {"mill", "mill/ears", "mill/grain", "mill/grain/bran", "mill/oats<br>mill/rye",
                                 "rpc/*"})
        self.assertEqual(arrows, {("mill", "mill/grain"), ("mill", "mill/oats<br>mill/rye"),
                                  ("mill/grain", "mill/ears"), ("mill/grain", "mill/grain/bran"),
                                  ("mill/oats<br>mill/rye", "mill/ears"), ("mill/ears", "rpc/*")})

    def test_folders_that_are_to_be_one_are_one_box(self):
        names, arrows = self.boxes(["mill"], ["mill/grain"])
        self.assertIn("mill/grain/*", names)
        self.assertNotIn("mill/grain/bran", names)
        self.assertIn(("mill/grain/*", "mill/ears"), arrows)

    def test_a_picture_of_a_part_shows_the_parts_beside_it(self):
        names, arrows = self.boxes(["mill/grain"])
        self.assertEqual(arrows, {("mill/grain", "mill/ears"), ("mill/grain", "mill/grain/bran")})

    def test_a_table_that_changed_is_found(self):
        self.table(TABLE.replace("| `mill/rye` | rye | `mill/ears` |", "| `mill/rye` | rye | |"))
        findings = pictures.check(self.root)
        self.assertEqual(len(findings), 1, findings)
        self.assertIn("mill.md: the picture of mill is out of date", findings[0])

    def test_a_picture_that_was_edited_is_found(self):
        self.page("mill", self.page("mill").replace("mill/ears", "mill/legs"))
        self.assertEqual(len(pictures.check(self.root)), 1)

    def test_a_folder_without_a_box_of_its_own_is_found(self):
        self.page("mill", PAGE.format("mill; as one: mill/grain"))
        findings = pictures.check(self.root, write=True)
        self.assertEqual([finding.split(":")[0] for finding in findings], ["mill/grain", "mill/grain/bran"])

    def test_circles_many_boxes_and_unknown_folders_are_refused(self):
        self.table(TABLE.replace("| `mill/grain/bran` | bran | |", "| `mill/grain/bran` | bran | `mill/grain` |"))
        self.assertIn("are a circle", pictures.check(self.root)[0])
        many = "".join(f"| `mill/a{i}` | a | `mill/a{i - 1}` | |\n" for i in range(1, pictures.MOST + 1))
        rules = layering.read_rules(TABLE + "| `mill/a0` | a | | |\n" + many)
        self.assertIn("boxes", pictures.picture(rules, ["mill"], [])[1][0])
        self.assertIn("no folder mil", pictures.picture(rules, ["mil"], [])[1][0])

    def test_a_picture_of_python_modules_follows_their_imports(self):
        for path, source in (("jar.py", "from leat import _lid\n\ndef f():\n    import leat._glass\n"),
                             ("_lid.py", "from leat._glass import (\n    Glass,\n    sand)\nimport os\n"),
                             ("_glass.py", "import collections\n"), ("cup/__init__.py", ""),
                             ("cup/_rim.py", "from leat.jar import Jar\n"), ("__init__.py", "import leat.jar\n")):
            (self.root / "python/leat" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / "python/leat" / path).write_text(source)
        comment = "<!-- modules: python/leat\ncups: cup\njars: jar _lid\nglass: _glass\n-->\n<!-- end of modules -->\n"
        self.page("python", comment)
        self.assertEqual(pictures.check(self.root, write=True), [])
        arrows = [line.strip() for line in self.page("python").splitlines() if "-->" in line][1:-1]
        self.assertEqual(arrows, ["n0 --> n2", "n2 --> n1"])  # cups --> jars --> glass
        (self.root / "python/leat/_lid.py").write_text("")
        self.assertEqual(pictures.check(self.root), [])  # jar imports _glass, too
        (self.root / "python/leat/jar.py").write_text("")
        self.assertIn("python.md: the picture of python/leat is out of date", pictures.check(self.root)[0])
        (self.root / "python/leat/pot.py").write_text("")
        self.assertIn("pot is in no box", pictures.check(self.root)[0])
        (self.root / "python/leat/_glass.py").write_text("from leat import cup\n")
        self.page("python", comment.replace("_glass", "_glass pot"))
        (self.root / "python/leat/jar.py").write_text("from leat import _glass\n")
        self.assertIn("are a circle", pictures.check(self.root)[0])

    def test_a_comment_that_is_not_understood_is_found(self):
        self.page("mill", self.page("mill") + "<!-- folders: mill -->\n")
        self.assertIn("is not as", pictures.check(self.root)[0])


if __name__ == "__main__":
    unittest.main()
