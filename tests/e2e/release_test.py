# SPDX-License-Identifier: Apache-2.0
"""deploy/release, over a small repository; stand-ins make its bundle, packages and bill of materials."""

import hashlib
import importlib.machinery
import importlib.util
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("leat_release", str(ROOT / "deploy/release"))
spec = importlib.util.spec_from_loader("leat_release", loader)
leat_release = importlib.util.module_from_spec(spec)
loader.exec_module(leat_release)

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A mill.\n\n## 0.1.0\n\nThe first version.\n"
MAKER = '#!/bin/sh\nset -e\nwhile [ "$1" != -o ]; do shift; done\n'


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="leat release ")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.root, self.out = pathlib.Path(folder, "a clone"), pathlib.Path(folder, "files")
        for name, before, after in leat_release.PLACES:
            self.write(name, f"x\n{before}0.1.0{after}\nx\n")
        self.write("CHANGELOG.md", CHANGELOG)
        self.write(".gitignore", "/build/\n")
        self.write("deploy/bundle", f'{MAKER}grep -q "VERSION 0.2.0" CMakeLists.txt\necho bundle >"$2"\n')
        self.write("deploy/debian/build", f'{MAKER}echo deb >"$2/leat_0.2.0-1_amd64.deb"\n')
        self.write("python_client/backend/leat_backend/__init__.py", "")
        self.write("python_client/backend/leat_backend/wheel.py", "def write(build, out):\n"
                   "    (out / 'leat_data-0.2.0-py3-none-any.whl').write_text('wheel')\n")
        self.write("deploy/sbom.py", "import sys\nopen(sys.argv[4], 'w').write(' '.join(sys.argv[5:]))\n")
        shutil.copy(ROOT / "deploy/release", self.root / "deploy/release")
        self.git("init", "-q", "-b", "main")
        for key, value in (("user.name", "A"), ("user.email", "a@example.com")):
            self.git("config", key, value)
        self.commit()

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def git(self, *words):
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def release(self, version="0.2.0"):
        return subprocess.run([str(self.root / "deploy/release"), version, "-o", str(self.out)], capture_output=True,
                              text=True, timeout=100)

    def assert_fails(self, *said, version="0.2.0"):
        """The release fails, and leaves nothing behind."""
        head = self.git("rev-parse", "HEAD")
        done = self.release(version)
        self.assertEqual(done.returncode, 1, done.stdout)
        for words in ("deploy/release: ", *said):
            self.assertIn(words, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(sorted(path.name for path in self.out.parent.iterdir()), ["a clone"])
        self.assertEqual((self.git("rev-parse", "HEAD"), self.git("tag")), (head, ""))
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)

    def test_a_release_is_a_commit_a_tag_and_all_files(self):
        done = self.release()
        self.assertEqual(done.returncode, 0, done.stderr)
        names = sorted(path.name for path in self.out.iterdir())
        self.assertEqual(len(names), 7, names)
        sums = dict(reversed(line.split("  ")) for line in (self.out / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(sorted([*sums, "SHA256SUMS"]), names)
        for name, digest in sums.items():
            self.assertEqual(hashlib.sha256((self.out / name).read_bytes()).hexdigest(), digest)
        self.assertIn("- A mill.", (self.out / "RELEASE_NOTES.md").read_text())
        # The bill is made from all files before it.
        self.assertEqual(len((self.out / "sbom.cdx.json").read_text().split(".whl")), 2)
        # No file of the repository has changed, and the tag has the version and the changelog.
        self.assertEqual((self.git("status", "--porcelain"), self.git("tag")), ("", "v0.2.0"))
        self.assertIn("VERSION 0.1.0 ", (self.root / "CMakeLists.txt").read_text())
        for name, before, after in leat_release.PLACES:
            self.assertIn(f"{before}0.2.0{after}", self.git("show", f"v0.2.0:{name}"))
        changelog = self.git("show", "v0.2.0:CHANGELOG.md")
        self.assertRegex(changelog, r"## \[Unreleased\]\n\n## 0\.2\.0 - \d{4}-\d\d-\d\d\n\n### Added\n\n- A mill\.\n\n"
                         r"## 0\.1\.0")
        self.git("merge", "-q", "--ff-only", "v0.2.0")
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)

    def test_a_step_that_fails_leaves_nothing(self):
        for name in ("deploy/bundle", "deploy/debian/build"):
            before = (self.root / name).read_text()
            self.write(name, "#!/bin/sh\nexit 3\n")
            self.commit()
            self.assert_fails(name, "exit code 3")
            self.write(name, before)
            self.commit()

    def test_what_is_not_committed_is_not_released(self):
        self.write("new", "x")
        self.assert_fails("not committed", "new")

    def test_versions_only_rise(self):
        for version in ("0.1.0", "0.0.9"):
            self.assert_fails("has 0.1.0 already", version=version)
        self.assert_fails("want X.Y.Z", version="0.2")

    def test_a_section_without_a_date_is_released_as_it_stands(self):
        self.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## 0.2.0\n\n- A mill.\n\n"
                   "## 0.1.0 - 2020-01-02\n\nThe first version.\n")
        self.commit()
        done = self.release()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.out / "RELEASE_NOTES.md").read_text(), "# Leat 0.2.0\n\n- A mill.\n")
        self.assertRegex(self.git("show", "v0.2.0:CHANGELOG.md"),
                         r"## \[Unreleased\]\n\n## 0\.2\.0 - \d{4}-\d\d-\d\d\n\n- A mill\.\n\n"
                         r"## 0\.1\.0 - 2020-01-02\n")

    def test_there_must_be_something_new(self):
        empty = CHANGELOG.replace("### Added\n\n- A mill.\n\n", "")
        self.write("CHANGELOG.md", empty.replace("0.1.0", "0.1.0 - 2020-01-02"))
        self.commit()
        self.assert_fails("nothing to release")
        self.assert_fails("has 0.1.0 already", version="0.1.0")

    def test_the_sources_must_have_one_version(self):
        self.write("rpc/call/auth.h", 'kLeatVersion = "0.1.1";\n')
        self.commit()
        self.assert_fails("0.1.0, 0.1.1")

    def test_what_exists_is_kept(self):
        self.out.mkdir()
        (self.out / "mine").write_text("x")
        done = self.release()
        self.assertEqual((done.returncode, (self.out / "mine").read_text()), (1, "x"))

    def test_this_repository_says_its_version_where_a_release_looks(self):
        for name, _, _ in leat_release.PLACES:
            (self.root / name).write_bytes((ROOT / name).read_bytes())
        leat_release.set_version(self.root, "9.8.7")
        for name, _, _ in leat_release.PLACES:
            self.assertIn("9.8.7", (self.root / name).read_text())
        changelog = (ROOT / "CHANGELOG.md").read_text()
        version = re.search(r"project\(leat VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertRegex(changelog, rf"\n## {re.escape(version)}( - \d{{4}}-\d\d-\d\d)?\n")
        heading = f"{leat_release.UNRELEASED}\n"
        leat_release.cut_changelog(changelog.replace(heading, f"{heading}\n- A mill.\n"), "9.8.7", "2030-01-01")


if __name__ == "__main__":
    unittest.main()
