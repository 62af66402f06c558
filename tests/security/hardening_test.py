# SPDX-License-Identifier: Apache-2.0
"""The shipped programs are hardened by their compiler and linker: random addresses, read-only tables, no executable
stack, guards on stacks, and checks of copies.

The test examines the programs of this tree and its library. If this is not the release tree, its flags are those of
daily work, so a small program is also built with the release's flags for each of them.

LEAT_PROGRAMS: paths of the tree's programs and its library, with colons between them; LEAT_BUILD_TYPE: the tree's.
Set by CMake.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The programs' names in a tree's build.ninja.
LIBRARY = "leat_shared"
TARGETS = ("leat-coordinator", "leat-worker", "leat-private", "leat_program", LIBRARY)
# A copy of unknown length to a buffer of known length, which has a guard.
PROGRAM = """#include <cstdio>
#include <cstring>
int main(int argc, char** argv) {
  char to[16];
  std::strcpy(to, argv[argc - 1]);
  return std::puts(to) < 0;
}
"""


def readelf(*flags):
    return subprocess.run(["readelf", "--wide", *flags], capture_output=True, text=True, check=True).stdout


def weaknesses(program, release, library=False):
    """Returns what the file lacks, in words. Without `release`, properties of release builds only are not checked."""
    headers, dynamic = readelf("--file-header", "--program-headers", program), readelf("--dynamic", program)
    symbols = readelf("--dyn-syms", program)
    lacks = []
    if not re.search(r"Type:\s+DYN", headers) or ("PIE" not in dynamic and not library):
        lacks.append("a random address (PIE)")
    if "GNU_RELRO" not in headers:
        lacks.append("tables that become read-only (RELRO)")
    stack = re.search(r"GNU_STACK.*", headers)
    if stack is None or "RWE" in stack[0]:
        lacks.append("a stack that does not run")
    if release:
        if "BIND_NOW" not in dynamic and not re.search(r"FLAGS_1.*\bNOW\b", dynamic):
            lacks.append("tables that are filled at the start (BIND_NOW)")
        if "__stack_chk_fail" not in symbols:
            lacks.append("guards on stacks")
        if not re.search(r"__\w+_chk\b(?!_fail)", symbols.replace("__stack_chk_fail", "")):
            lacks.append("checks of copies (FORTIFY)")
    return lacks


class Hardening(unittest.TestCase):
    def test_programs_of_this_tree(self):
        programs = os.environ["LEAT_PROGRAMS"].split(":")
        self.assertEqual(len(programs), len(TARGETS))
        for program in programs:
            with self.subTest(program=program):
                self.assertEqual(weaknesses(program, os.environ["LEAT_BUILD_TYPE"] == "Release", ".so" in program), [])

    def test_a_program_without_it_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = pathlib.Path(folder, "weak.cc"), pathlib.Path(folder, "weak")
            source.write_text(PROGRAM)
            subprocess.run(["c++", "-O2", "-U_FORTIFY_SOURCE", "-fno-stack-protector", "-fno-pie", "-no-pie",
                            "-Wl,-z,norelro", "-Wl,-z,lazy", "-Wl,-z,execstack", source, "-o", program], check=True)
            self.assertEqual(len(weaknesses(program, True)), 6)

    @unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "no cmake or ninja to look at flags with")
    def test_flags_of_the_release(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder, "release")
            done = subprocess.run(["cmake", "--preset", "release", "-B", tree, "-DLEAT_GPU=OFF", "-DLEAT_PARQUET=OFF"],
                                  cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            ninja = (tree / "build.ninja").read_text()
            source = pathlib.Path(folder, "program.cc")
            source.write_text(PROGRAM)
            for target in TARGETS:
                compiled = re.search(rf"^build \S*/{target}\.dir/\S+\.o: CXX_COMPILER.*\n((?:  .*\n)+)", ninja, re.M)
                linked = re.search(rf"^build \S+.*: CXX_(?:EXECUTABLE|SHARED_LIBRARY)_LINKER__{target}_\S* .*\n"
                                   r"((?:  .*\n)+)", ninja, re.M)
                self.assertTrue(compiled and linked, target)
                flags = [re.search(rf"^  {name} = (.*)$", lines[1], re.M)[1].split()
                         for name, lines in (("FLAGS", compiled), ("LINK_FLAGS", linked))]
                program = pathlib.Path(folder, target)
                subprocess.run(["c++", *flags[0], "-c", source, "-o", f"{program}.o"], check=True)
                library = ["-shared"] if target == LIBRARY else []
                subprocess.run(["c++", *flags[1], *library, f"{program}.o", "-o", program], check=True)
                with self.subTest(program=target):
                    self.assertEqual(weaknesses(program, True, bool(library)), [], flags)


if __name__ == "__main__":
    unittest.main()
