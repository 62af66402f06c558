# SPDX-License-Identifier: Apache-2.0
"""The tests of a folder of the sources, for `tests/run FOLDER`.

    folder_tests.py --is FOLDER     exits 0 if FOLDER is a row of docs/architecture/folders.md
    folder_tests.py TABLE FOLDER    prints the test programs that have a source under tests/FOLDER, and in a second line
                                    a filter of GoogleTest that chooses the tests of these sources

TABLE is test-sources.tsv of a build tree: a program and a source per line. A program may have sources of several
folders, so the filter leaves out those of other folders. It names test suites: if a suite has tests in another folder
too, these run as well.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
_ROW = re.compile(r"^\| `([\w/]+)` \|", re.M)
_SUITE = re.compile(r"^\s*(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+)\s*,", re.M)
# GoogleTest's names of suites: parameterized suites have the name of their instance in front, typed suites a number at
# the end.
_NAMES = {"TEST_P": "*/{}.*", "TYPED_TEST": "{}/*", "TYPED_TEST_P": "*/{}/*"}


def folders(root):
    """Returns the folders in the tables of folders."""
    pages = (root / "docs/architecture").glob("folders*.md")
    return {folder for page in pages for folder in _ROW.findall(page.read_text(encoding="utf-8"))}


def suites_of(text):
    """Returns patterns of GoogleTest's filter for the tests of one source, sorted."""
    found = _SUITE.findall(text)
    return sorted({_NAMES.get(kind, "{}.*").format(suite) for kind, suite in found})


def select(table, folder, read):
    """Returns programs, and patterns for their tests, sorted. `table`: the text of test-sources.tsv; `read`: path ->
    text."""
    programs, patterns = set(), set()
    for line in table.splitlines():
        program, source = line.split("\t")
        if not source.startswith(f"tests/{folder}/"):
            continue
        found = suites_of(read(source))
        if found:
            programs.add(program)
            patterns.update(found)
    return sorted(programs), sorted(patterns)


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = arguments[1].rstrip("/")
    if arguments[0] == "--is":
        return 0 if folder in folders(ROOT) else 1
    table = pathlib.Path(arguments[0])
    programs, patterns = select(table.read_text(encoding="utf-8"), folder,
                                lambda path: (ROOT / path).read_text(encoding="utf-8"))
    if not programs:
        print(f"tests/run {folder}: {table} names no test program with a source under tests/{folder}: want another "
              "folder of docs/architecture/folders.md, or a regular expression of tests' names", file=sys.stderr)
        return 1
    print(" ".join(programs))
    print(":".join(patterns))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
