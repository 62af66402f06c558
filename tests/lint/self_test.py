# SPDX-License-Identifier: Apache-2.0
"""Each lint reports its bad sample, and accepts the good one beside it."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

import common
import compiled
import example_types
import format as format_lint
import header_examples
import headers
import hygiene
import kernels
import lengths
import mirror
import page
import proto_style
import tidy
from self_test_layering import Layering, LayeringOfPython  # noqa: F401: unittest runs what is here
from self_test_tree import SPDX, Tree

ROOT = pathlib.Path(__file__).resolve().parents[2]

GOOD_PROTO = SPDX + """syntax = "proto3";
package leat.v1;
// Grinds.
service MillService {
  // Grinds once. Errors: none.
  rpc Grind(GrindRequest) returns (GrindResponse);
}
message GrindRequest {}
message GrindResponse {}
enum Stone {
  STONE_UNSPECIFIED = 0;
  STONE_HARD = 1;
}
"""

GOOD_MUTEX = SPDX + """#include "core/mutex.h"
class Counter {
 public:
  void Add() {
    leat::MutexLock lock(&mu_);
    ++count_;
  }

 private:
  leat::Mutex mu_;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
};
void Use() { Counter().Add(); }
"""


class Lengths(Tree):
    LONG = "void Long(int a) {\n" + "  if (a) {\n  }\n" * 35 + "}\n"

    def allow(self, text):
        self.write("tests/lint/lengths.txt", text)

    def test_files(self):
        self.write("core/a.cc", "\n" * 400)
        self.assertEqual(lengths.check(self.root), [])
        self.write("core/a.cc", "\n" * 401)
        self.assert_one(lengths.check(self.root), "core/a.cc:", "401 lines, at most 400")

    def test_functions(self):
        self.write("core/a.cc", "namespace leat {\nclass A {\n  int b_ = 1;\n};\n\n" + self.LONG + "}\n")
        self.assert_one(lengths.check(self.root), "core/a.cc:6", "Long has 72 lines, at most 70")
        self.write("core/a.cc", 'TEST(Suite, Name) {\n  Use("{", \'{\');  // {\n' + "  a();\n" * 69 + "}\n")
        self.assert_one(lengths.check(self.root), "core/a.cc:1", "Suite.Name has 72")
        self.write("core/a.cc", "const Table kTable = {\n" + "    {1},\n" * 80 + "};\n")
        self.assertEqual(lengths.check(self.root), [])

    def test_functions_of_python(self):
        self.write("a.py", 'def f():\n    """Long.\n' + "\n" * 70 + '    """\n    return 1\n')
        self.assertEqual(lengths.check(self.root), [])
        self.write("a.py", "class A:\n    def f():\n" + "        a()\n" * 70)
        self.assert_one(lengths.check(self.root), "a.py:2", "f has 71")

    def test_the_list_of_exceptions_only_shrinks(self):
        self.write("core/a.cc", self.LONG)
        self.allow("# path, function, lines\ncore/a.cc Long 72\n")
        self.assertEqual(lengths.check(self.root), [])
        self.allow("core/a.cc Long 71\n")
        self.assert_one(lengths.check(self.root), "at most 71")
        self.allow("core/a.cc Long 90\n")
        self.assert_one(lengths.check(self.root), "may have 90 lines and has 72")
        self.allow("core/a.cc Long 72\ncore/b.cc 420\n")
        self.assert_one(lengths.check(self.root), "core/b.cc is no longer too long")


class Mirror(Tree):
    def test_sources_and_tests_find_each_other(self):
        for path in ("core/a.cc", "core/a.h", "tests/core/a_test.cc", "core/b.h", "core/c.cc",
                     "tests/core/c_late_test.cc"):
            self.write(path, "")
        self.assertEqual(mirror.check(self.root), [])
        self.write("core/d.cc", "")
        self.assert_one(mirror.check(self.root), "core/d.cc: no test", "tests/core/d_test.cc")
        self.write("tests/lint/mirror.txt", "# why\ncore/d.cc\n")
        self.assertEqual(mirror.check(self.root), [])
        self.write("tests/core/e_test.cc", "")
        self.assert_one(mirror.check(self.root), "tests/core/e_test.cc: no source")
        self.write("core/e.h", "")
        self.write("tests/core/d_test.cc", "")
        self.assert_one(mirror.check(self.root), "take core/d.cc away")


class HeaderExamples(Tree):
    def test_what_does_not_compile_is_named(self):
        self.write("client/leat/a.h", "// A:\n//\n//     int a = 1;\n//     Train(a);\n")
        self.assertEqual(header_examples.check(self.root), [])
        self.write("client/leat/a.h", "// A:\n//\n//     int a = 1;\n//     Train(b);\n")
        self.assert_one(header_examples.check(self.root), "client/leat/a.h:4:", "'b'")


class Text(Tree):
    def found(self, content, path="core/a.cc"):
        self.write(path, content)
        return hygiene.check(self.root)

    def test_licence_first(self):
        self.assertEqual(self.found(SPDX + "int a;\n"), [])
        self.assert_one(self.found("int a;\n"), "core/a.cc:1", "SPDX")
        self.assert_one(self.found("#!/bin/sh\necho\n", "core/a.cc"), "core/a.cc:2")

    def test_nothing_left_for_later(self):
        self.assert_one(self.found(SPDX + "// TO" + "DO: later\n"), "core/a.cc:2")

    def test_no_folder_of_one_machine(self):
        self.assert_one(self.found(SPDX + 'Open("/wo' + 'rk/a");\n'), "core/a.cc:2")
        self.assertEqual(self.found(SPDX + 'Include("${A}/wo' + 'rk/a");\n'), [])

    def test_blanks_long_lines_and_the_last_newline(self):
        self.assert_one(self.found(SPDX + "int a; \n"), "blanks")
        self.assert_one(self.found(SPDX + "//" + "x" * 119 + "\n"), "121 characters")
        self.assert_one(self.found(SPDX + "int a;"), "newline")

    def test_format(self):
        self.write("core/a.cc", SPDX + "int a;\n")
        self.write("a.py", "a = 1\n")
        self.assertEqual(format_lint.check(self.root), [])
        self.write("core/a.cc", SPDX + "int   a ;\n")
        self.assert_one(format_lint.check(self.root), "core/a.cc:2")
        self.write("core/a.cc", SPDX + "int a;\n")
        self.write("a.py", "a = = 1\n")
        self.assert_one(format_lint.check(self.root), "a.py:1")


class Pages(unittest.TestCase):
    def found(self, name, content):
        return page.check_text(pathlib.Path(name), f"{SPDX}{content}")

    def test_scripts_make_no_markup_and_stay_at_their_place(self):
        self.assertEqual(self.found("a.js", 'fetch("api/state");  // not "/api"\nconst text = "a";\n'), [])
        for line in ("a.innerHTML = b;", 'eval("a");', 'new Function("a");', 'setTimeout("a()", 1);', 'fetch("/api");',
                     'new EventSource("/live");', 'fetch("https://a.example");', "const a = `//a.example`;", "var a;",
                     "debugger;", "x" * 121):
            self.assertEqual(len(self.found("a.js", line + "\n")), 1, line)
        self.assertEqual(len(self.found("a.js", "\n" * 400)), 1)

    def test_markup_and_styles_load_nothing_of_others(self):
        self.assertEqual(self.found("a.html", '<script src="a.js"></script><form action="b"></form>\n'), [])
        for line in ('<p style="a">', "<style>", '<p onclick="a">', "<script>", '<img src="/a">', '<a href="b:c">'):
            self.assertEqual(len(self.found("a.html", line + "\n")), 1, line)
        self.assertEqual(self.found("a.css", "p { color: red; }\n"), [])
        for line in ('@import "a";', "p { background: url(a); }"):
            self.assertEqual(len(self.found("a.css", line + "\n")), 1, line)


class Protos(Tree):
    def found(self, old="", new="", path="proto/leat/v1/mill.proto"):
        self.assertIn(old, GOOD_PROTO)
        self.write(path, GOOD_PROTO.replace(old, new) if old else GOOD_PROTO)
        return proto_style.check(self.root)

    def test_good_style_passes(self):
        self.assertEqual(self.found(), [])

    def test_package_is_the_folder(self):
        self.assert_one(self.found("package leat.v1", "package leat.v2"), "want leat.v1")

    def test_an_interface_of_another_program_keeps_its_names(self):
        source = GOOD_PROTO.replace("package leat.v1", "package externalscaler").replace("MillService", "Mill")
        self.write("proto/externalscaler/mill.proto", source.replace("GrindResponse", "Flour"))
        self.assertEqual(proto_style.check(self.root), [])
        self.write("proto/externalscaler/mill.proto", source.replace("  // Grinds once. Errors: none.\n", ""))
        self.assert_one(proto_style.check(self.root), "rpc Grind: want a comment")

    def test_services_end_in_service(self):
        self.assert_one(self.found("MillService", "Mill"), "ends in Service")

    def test_rpcs_have_comments(self):
        self.assert_one(self.found("  // Grinds once. Errors: none.\n", ""), "rpc Grind: want a comment")

    def test_requests_and_responses_have_the_rpcs_name(self):
        findings = self.found("(GrindRequest) returns (GrindResponse)", "(GrindRequest) returns (GrindRequest)")
        self.assertIn("want GrindResponse", findings[0])

    def test_no_message_serves_two_rpcs(self):
        second = "  rpc Mill(GrindRequest) returns (GrindResponse);\n  // Again.\n  rpc Grind("
        findings = self.found("  rpc Grind(", second)
        self.assertTrue(any("is also of rpc" in f for f in findings), findings)

    def test_enums_have_prefixes_and_an_unspecified(self):
        self.assert_one(self.found("STONE_HARD", "HARD"), "want the prefix STONE_")
        self.assert_one(self.found("STONE_UNSPECIFIED", "STONE_SOFT"), "STONE_UNSPECIFIED = 0")


@unittest.skipIf(importlib.util.find_spec("pyright") is None, f"{sys.executable} has no pyright")
class Types(Tree):
    def setUp(self):
        super().setUp()
        self.write("docs/examples/pyrightconfig.json", (ROOT / "docs/examples/pyrightconfig.json").read_text())
        self.write("docs/examples/good.py", "def twice(number: int) -> int:\n    return 2 * number\n")

    def test_each_type_is_known_and_each_name_has_a_value(self):
        self.write("docs/examples/bare.py", "def twice(number) -> int:\n    return 2\n")
        self.write("docs/examples/unbound.py", "for number in range(int(input())):\n    pass\nprint(number)\n")
        self.write("docs/examples/guessed.py",
                   "def numbers() -> int:\n    values = []\n    values.append(1)\n    return len(values)\n")
        findings = "\n".join(example_types.check(self.root))
        self.assertIn("docs/examples/bare.py:1", findings)
        for rule in ("reportUnknownMemberType", "reportUnknownArgumentType"):
            self.assertRegex(findings, rf"guessed\.py:\d: .*{rule}")
        self.assertIn("docs/examples/unbound.py:3", findings)
        self.assertNotIn("good.py", findings)

    def test_nothing_in_the_public_interface_is_left_to_guess(self):
        self.write("python_client/src/mill/py.typed", "")
        self.write("python_client/src/mill/__init__.py",
                   "class Mill:\n    def __init__(self, stones: int) -> None:\n        self.stones: int = stones\n")
        self.assertEqual(list(example_types.unknown(self.root, "mill")), [])
        self.write("python_client/src/mill/__init__.py",
                   "class Mill:\n    def __init__(self, stones: int) -> None:\n        self.stones = int(stones)\n")
        self.assert_one(list(example_types.unknown(self.root, "mill")), "mill/__init__.py:3", "mill.Mill.stones")

    def test_an_example_goes_to_the_first_interpreter_that_has_its_packages(self):
        self.write("docs/examples/more.py", "import json\nimport leat.torch\n\nif json:\n    import pip.more\n")
        self.write("docs/examples/none.py", "from no_such_package import one\n")
        paths = {name: pathlib.Path(f"docs/examples/{name}.py") for name in ("good", "more", "none")}
        lacks = {"a": {"pip", "no_such_package"}, "b": {"no_such_package"}}
        with mock.patch.object(example_types, "lacking", lambda python, names: lacks[python]):
            given, left_out = example_types.shared_out(self.root, ["a", "b"])
        self.assertEqual(given, {"a": {paths["good"]}, "b": {paths["more"]}})
        self.assertEqual(left_out, {paths["none"]: {"no_such_package"}})

    def test_an_example_also_wants_the_packages_of_examples_that_it_imports(self):
        self.write("docs/examples/base.py", "import pip\n")
        self.write("docs/examples/more.py", "import wheel\nfrom base import pip\n")
        self.write("docs/examples/most.py", "from more import pip\n")
        wants = {path.stem: names for path, names in example_types.wanted(self.root).items()}
        self.assertEqual(wants, {"good": set(), "base": {"pip"}, "more": {"pip", "wheel"}, "most": {"pip", "wheel"}})


class Kernels(unittest.TestCase):
    SAID = ("ptxas info    : Compiling entry function '{0}' for 'sm_90'\n"
            "ptxas info    : Function properties for {0}\n"
            "    {2} bytes stack frame, {3} bytes spill stores, 9 bytes spill loads\n"
            "ptxas info    : Used {1} registers, used 0 barriers\n")

    def test_a_kernel_that_takes_more_is_found_in_the_page_that_is_written(self):
        by_arch = {arch: kernels.resources(self.SAID.format("leat_a", 72, 0, 0) +
                                           self.SAID.format("leat_b", arch, 16, 4)) for arch in kernels.ARCHES}
        release, listed = kernels.of_page(kernels.page("13.0.88", by_arch))
        self.assertEqual((release, listed), ("13.0.88", {"leat_a": (72, 0, 0), "leat_b": (90, 16, 4)}))
        self.assertEqual(kernels.differences(listed, by_arch[90]), [])
        found = kernels.differences(listed, {"leat_a": (73, 0, 0)})
        self.assertIn("leat_a: registers, stack, spilled are (73, 0, 0)", found[0])
        self.assertIn("leat_b: registers, stack, spilled are gone", found[1])

    def test_threads_follow_from_registers(self):
        self.assertEqual([kernels.threads(registers) for registers in (16, 32, 40, 56, 64, 72, 80)],
                         [2048, 2048, 1536, 1152, 1024, 896, 768])


class Compiled(Tree):
    def setUp(self):
        super().setUp()
        for header in ("mutex.h", "clock.h"):
            self.write(f"core/{header}", (ROOT / "core" / header).read_text())
        self.write(".clang-tidy", (ROOT / ".clang-tidy").read_text())
        self.write("core/a.cc", GOOD_MUTEX)
        entry = {"directory": str(self.root), "file": str(self.root / "core/a.cc"),
                 "command": f"g++ -I{self.root} -std=gnu++20 -c core/a.cc"}
        self.write("build/compile_commands.json", json.dumps([entry]))

    def test_thread_safety(self):
        self.assertEqual(tidy.check(self.root, self.root / "build"), [])
        self.write("core/a.cc", GOOD_MUTEX.replace("    leat::MutexLock lock(&mu_);\n", ""))
        self.assert_one(tidy.check(self.root, self.root / "build"), "core/a.cc", "count_")

    def test_a_header_compiles_alone(self):
        self.write("core/b.h", SPDX + "std::string name();\n")
        self.assert_one(headers.check(self.root, self.root / "build"), "core/b.h")

    def test_what_is_read_before_hides_nothing_that_a_header_fails_to_include(self):
        self.write("core/base.h", SPDX + "#include <map>\n#include <string>\n#include <vector>\n")
        for name in "cdefg":  # enough headers to make precompiling base.h worthwhile
            self.write(f"core/{name}.h", SPDX + '#include "core/base.h"\ninline std::vector<int> %s;\n' % name)
        self.write("core/h.h", SPDX + "inline std::vector<int> h;\n")
        self.assert_one(headers.check(self.root, self.root / "build"), "core/h.h")
        arguments = [f"-I{self.root}", "-std=c++20"]
        reads = headers.Reads(self.root, {
            path: common.own_includes(self.root, path) for path in common.files(self.root, ".h")}, arguments)
        chains = [[path.name for path in chain] for chain in headers.chains(reads)]
        self.assertIn(["base.h", "c.h"], chains)
        self.assertIn(["h.h"], chains)
        shared = headers.Precompiled(self.root, self.root, reads, list(reads.of), arguments)
        self.assertEqual(shared.options(pathlib.Path("core/h.h")), [])
        option, file = shared.options(pathlib.Path("core/d.h"))
        self.assertEqual(option, "-include-pch")
        self.assertTrue(pathlib.Path(file).is_file())

    def test_what_the_tree_precompiles_is_not_read(self):
        command = "g++ -DONE -include /build/cmake_pch.hxx -include /src/kernel.h -Winvalid-pch -c core/a.cc"
        self.assertEqual(compiled.clang_arguments(command), ["-DONE", "-include", "/src/kernel.h"])

    def test_tidy(self):
        self.write("core/a.cc", SPDX + "int Twice(int number) { return 2 * number; }\n")
        self.assertEqual(tidy.check(self.root, self.root / "build"), [])
        self.write("core/a.cc", SPDX + "int Twice(int BadName) { return 2 * BadName; }\n")
        self.assert_one(tidy.check(self.root, self.root / "build"), "readability-identifier-naming")

    def test_each_source_of_a_unit_is_looked_at(self):
        self.write("core/b.cc", SPDX + "int Twice(int BadName) { return 2 * BadName; }\n")
        unit = self.root / "build/Unity/unity_0_cxx.cxx"
        self.write("build/Unity/unity_0_cxx.cxx",
                   "".join(f'#include "{self.root}/core/{name}.cc"\n' for name in "ab"))
        entry = {"directory": str(self.root), "file": str(unit), "command": f"g++ -I{self.root} -std=gnu++20 -c {unit}"}
        self.write("build/compile_commands.json", json.dumps([entry]))
        self.assert_one(tidy.check(self.root, self.root / "build"), "core/b.cc", "BadName")

    def test_what_has_not_changed_is_left_alone_if_that_is_asked(self):
        def git(*words):
            subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                           capture_output=True)

        self.write("core/a.cc", SPDX + "int Twice(int BadName) { return 2 * BadName; }\n")
        with mock.patch.dict(os.environ, LEAT_LINT="changed"):
            git("init", "-q", "-b", "main")
            git("add", "core", ".clang-tidy")
            git("commit", "-q", "-m", "a")
            self.assertEqual(len(tidy.check(self.root, self.root / "build")), 1)  # main follows no other branch
            git("checkout", "-q", "-b", "work", "--track", "main")
            self.assertEqual(tidy.check(self.root, self.root / "build"), [])
            self.write("core/a.cc", SPDX + "int Thrice(int BadName) { return 3 * BadName; }\n")
            self.assertEqual(len(tidy.check(self.root, self.root / "build")), 1)
        self.assertEqual(len(tidy.check(self.root, self.root / "build")), 1)

    def test_what_failed_is_looked_at_again(self):
        self.write("core/a.cc", SPDX + "int Twice(int BadName) { return 2 * BadName; }\n")
        for _ in range(2):
            self.assertEqual(len(tidy.check(self.root, self.root / "build")), 1)


if __name__ == "__main__":
    unittest.main()
