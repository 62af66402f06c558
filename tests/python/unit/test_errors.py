# SPDX-License-Identifier: Apache-2.0
"""Errors' texts contain paths and names that people chose: whatever these are, a text is one line."""

import ast
import copy
import pathlib
import pickle
import sys
import unicodedata

import pytest
from leat.dali import check

import leat
from leat import errors

KINDS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, leat.Error)]
UNSEEN = [chr(i) for i in range(sys.maxunicode + 1) if unicodedata.category(chr(i)) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_one_line_whatever_it_names(kind):
    error = kind("/data/a\nb\x1b[31m\udce9/c: no such file")
    assert str(error) == f"{error}" == r"/data/a\nb\x1b[31m\udce9/c: no such file"
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error)), kind(f"{error}")):
        assert type(other) is kind and str(other) == str(error)
    error.lines = ("  node 1 is fn.flip at a\nb.py:3", "  node 2 is fn.cast")
    assert str(error).splitlines()[1:] == [r"  node 1 is fn.flip at a\nb.py:3", "  node 2 is fn.cast"]
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(kind()) == ""


def test_what_a_terminal_would_not_show_is_written_out():
    assert errors.one_line("Ünïcode, 日本 and 🦊 stay: \t") == r"Ünïcode, 日本 and 🦊 stay: \t"
    for each in UNSEEN:
        shown = errors.one_line(f"a{each}b")
        assert shown.isprintable() and ast.literal_eval(f'"{shown}"') == f"a{each}b"


def test_the_services_text_is_one_line():
    for code in range(1, 17):
        assert len(str(errors.from_status(code, "job a\nb: no file c\r\nd")).splitlines()) == 1


def test_the_check_of_scripts_is_a_line_a_finding(tmp_path, capsys):
    script = tmp_path / "a\nb.py"
    script.write_text("from nvidia.dali import fn\nfn.readers.mxnet(path='x')\n")
    assert check.main([str(script)]) == 1
    assert check.main([str(tmp_path / "none\n.py")]) == 2
    said = capsys.readouterr()
    assert [len(each.splitlines()) for each in (said.out, said.err)] == [1, 1]
    assert r"a\nb.py:2: " in said.out and r"none\n.py: cannot be read" in said.err
