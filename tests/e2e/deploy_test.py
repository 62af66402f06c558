# SPDX-License-Identifier: Apache-2.0
"""deploy/'s scripts report what is missing, and leave nothing behind: with stand-ins for cmake, apt-get and pip, in a
checkout whose path has a space."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("bash", "cat", "cut", "date", "df", "dirname", "dpkg-query", "env", "find", "grep", "id", "mkdir", "mktemp",
         "mv", "nproc", "realpath", "rm", "sed", "sha256sum", "sleep", "tail", "touch", "tr")


class DeployTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="leat deploy ")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.root, self.bin = pathlib.Path(folder, "a clone"), pathlib.Path(folder, "bin")
        shutil.copytree(ROOT / "deploy", self.root / "deploy")
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))

    def stand_in(self, name, script):
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f"#!/bin/bash\n{script}\n")
        (self.bin / name).chmod(0o755)

    def run_script(self, *argv, path="", cwd=None, **environment):
        return subprocess.run([str(self.root / argv[0]), *map(str, argv[1:])], capture_output=True, text=True,
                              timeout=100, cwd=cwd,
                              env={"PATH": path or str(self.bin), "HOME": str(self.root), **environment})

    def assert_says(self, done, code, *texts):
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    # docs

    def docs(self, *argv):
        """Runs deploy/docs with a Python that stands in for Sphinx and the server; returns whether it built."""
        python = self.root / "build/docs-venv/bin/python"
        if not python.exists():
            python.parent.mkdir(parents=True)
            python.write_text('#!/bin/bash\ncase "$2" in\n  sphinx) [ ! -e fails ] && echo site >"${@: -1}" ;;\n'
                              '  http.server) cat build/docs/html ;;\nesac\n')
            python.chmod(0o755)
            (self.root / "deploy/install-dependencies").write_text("#!/bin/bash\n")
        done = self.run_script("deploy/docs", *argv)
        self.assertIn("site", (self.root / "build/docs/html").read_text())
        return "building the site" in done.stdout, done

    def test_the_site_is_served_as_it_is_until_a_file_changes(self):
        page = self.root / "docs" / "page.md"
        page.parent.mkdir()
        page.write_text("one")
        self.assertTrue(self.docs("--serve")[0])
        built, done = self.docs("--serve")
        self.assertFalse(built, done.stdout)
        self.assertIn("nothing has changed", done.stdout)
        self.assertTrue(self.docs()[0], "without --serve it always builds")
        page.write_text("two")
        self.assertTrue(self.docs("--serve")[0])
        page.unlink()
        self.assertTrue(self.docs("--serve")[0])

    def test_a_site_with_warnings_leaves_the_earlier_one(self):
        self.docs()
        (self.root / "fails").touch()
        self.assert_says(self.docs()[1], 1, "they are errors")

    # build-tree

    def test_a_build_shows_how_far_it_is_and_names_its_tree(self):
        self.stand_in("cmake", 'echo "$@" >>"$HOME/calls"; case "$1" in --build) echo "@7/9 Building x" ;; esac')
        done = self.run_script("deploy/build-tree", "dev", "-DA=b c", "all")
        self.assert_says(done, 0)
        self.assertIn("build/dev: built in", done.stdout)
        self.assertIn("--preset dev -DA=b c", (self.root / "calls").read_text())

    def test_the_tests_take_the_python_of_the_environment_unless_another_is_named(self):
        self.stand_in("cmake", 'echo "$@" >>"$HOME/calls"')
        python = self.root / "build/venv/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text("")
        python.chmod(0o755)
        for preset, option in (("dev", ""), ("dev", "-DPython3_EXECUTABLE=other"), ("release", "")):
            self.assert_says(self.run_script("deploy/build-tree", preset, *option.split(), "all"), 0)
        configured = [line for line in (self.root / "calls").read_text().splitlines() if "--preset" in line]
        self.assertEqual(configured, [f"--preset dev -DPython3_EXECUTABLE={python}",
                                      "--preset dev -DPython3_EXECUTABLE=other", "--preset release"])

    def test_a_failing_build_says_which_error_and_where_the_log_is(self):
        self.stand_in("cmake", 'case "$1" in --build) echo "a.cc:1: error: no semicolon"; exit 1 ;; esac')
        done = self.run_script("deploy/build-tree", "dev", "all")
        self.assert_says(done, 1, "no semicolon", f"{self.root}/build/dev.build.log")

    def test_a_failing_configuration_is_said(self):
        self.stand_in("cmake", 'echo "CMake Error: no gRPC"; exit 1')
        self.assert_says(self.run_script("deploy/build-tree", "dev", "all"), 1, "no gRPC", "configuring dev failed")

    def test_without_cmake_the_command_that_installs_it_is_named(self):
        self.assert_says(self.run_script("deploy/build-tree", "dev", "all"), 1, "deploy/install-dependencies build")

    def test_a_tree_that_was_configured_elsewhere_is_made_anew(self):
        tree = self.root / "build/dev"
        for home, stays in ((self.root, True), ("/elsewhere", False)):
            tree.mkdir(parents=True, exist_ok=True)
            (tree / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n")
            self.stand_in("cmake", "exit 0")
            self.assert_says(self.run_script("deploy/build-tree", "dev", "all"), 0)
            self.assertEqual((tree / "CMakeCache.txt").exists(), stays)

    def test_a_full_disk_is_named(self):
        self.stand_in("cmake", 'case "$1" in --build) exit 1 ;; esac')
        self.stand_in("df", "echo Avail; echo 512")
        self.assert_says(self.run_script("deploy/build-tree", "dev", "all"), 1, "the disk of", "is full")

    # install-dependencies

    def test_packages_are_named_where_they_cannot_be_installed(self):
        (self.bin / "dpkg-query").unlink()
        self.assert_says(self.run_script("deploy/install-dependencies", "build"), 1, "not Debian", "libgrpc++-dev")
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 1000")
        done = self.run_script("deploy/install-dependencies", "demo")
        self.assert_says(done, 1, "not root", "apt-get install python3 ")

    def test_apts_own_words_are_shown(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", 'echo "E: Unable to fetch some archives" >&2; exit 100')
        done = self.run_script("deploy/install-dependencies", "demo")
        self.assert_says(done, 1, "Unable to fetch", "Is there a network")

    def test_lists_that_name_what_is_gone_are_asked_for_again(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", 'case "$*" in *update*) : >"$0.updated" ;; *) [ -e "$0.updated" ] ;; esac')
        self.assert_says(self.run_script("deploy/install-dependencies", "demo"), 0)

    def test_nothing_is_done_when_all_is_there(self):
        self.stand_in("dpkg-query", "echo -n installed")
        self.stand_in("apt-get", "exit 100")
        done = self.run_script("deploy/install-dependencies", "build", "tests", "bench", "parity", "demo")
        self.assert_says(done, 0)
        self.assertEqual(done.stdout, "")

    def test_a_package_of_two_architectures_is_there(self):
        for states, code in (("installed installed", 0), ("config-files installed", 0), ("not-installed", 1)):
            self.stand_in("dpkg-query", 'format=${2#-f=}\n'
                          f'for state in {states}; do printf "${{format//"\\${{db:Status-Status}}"/$state}}"; done')
            self.stand_in("id", "echo 1000")
            done = self.run_script("deploy/install-dependencies", "demo")
            self.assertEqual(done.returncode, code, done.stderr)

    def test_an_environment_that_pip_does_not_finish_is_not_left(self):
        venv = self.root / "a venv"
        done = self.run_script("deploy/install-dependencies", "--python", "demo", venv, path=os.environ["PATH"],
                               PIP_NO_INDEX="1", PIP_FIND_LINKS="")
        self.assert_says(done, 1, f"{venv} was not made")
        self.assertFalse(venv.exists())

    def test_wrong_use_is_said(self):
        for words in ((), ("nothing",), ("--python", "demo"), ("--python", "nothing", "x"), ("--what",)):
            done = self.run_script("deploy/install-dependencies", *words)
            self.assert_says(done, 2, "install-dependencies: ")
        for words in (("/nowhere",), ("--what",), (self.root, self.root)):
            self.assert_says(self.run_script("deploy/demo", *words), 2, "demo: ")

    def test_the_demo_writes_below_the_folder_that_it_is_called_in(self):
        python = self.root / "build/demo-venv/bin/python"
        python.parent.mkdir(parents=True)
        for script, text in ((python, 'printf "%s\\n" "$@"'), (self.root / "deploy/install-dependencies", ""),
                             (self.root / "deploy/build-tree", "")):
            script.write_text(f"#!/bin/bash\n{text}\n")
            script.chmod(0o755)
        done = self.run_script("deploy/demo", "--epochs", "1", "--out", "my sheet", cwd=self.bin)
        self.assert_says(done, 0)
        self.assertIn(f"--epochs\n1\n--out\n{self.bin.resolve()}/my sheet\n", done.stdout)

    @unittest.skipUnless(os.getuid() == 0, "only root can become somebody who may not write")
    def test_a_checkout_that_may_not_be_written_to_is_said(self):
        for parent in (self.root, self.root.parent):
            parent.chmod(0o755)
        for words in (("deploy/demo",), ("deploy/build-tree", "dev", "all")):
            done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", str(self.root / words[0]), *words[1:]],
                                  capture_output=True, text=True, timeout=100)
            self.assert_says(done, 1, "cannot be written to")


if __name__ == "__main__":
    unittest.main()
