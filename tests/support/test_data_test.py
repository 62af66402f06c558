# SPDX-License-Identifier: Apache-2.0
"""make_test_data.py with makers that are scripts, and test_data.py with folders made here."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import test_data

MAKER = pathlib.Path(__file__).with_name("make_test_data.py")
# Makes photos of two classes; a file beside the folder counts how often.
PHOTOS = """#!/bin/sh
set -e
mkdir -p "$1/first" "$1/second"
echo jpeg >"$1/first/0.jpg"
case "$1" in */imagenet-sample) echo once >>"$(dirname "$(dirname "$1")")/times" ;; esac
"""
SETS = '#!/bin/sh\nmkdir "$1/mnist"\n'


class Making(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="leat made ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.data = self.folder / "test-data"
        self.photos, self.sets = self.script("photos", PHOTOS), self.script("sets", SETS)

    def script(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def start(self):
        command = [sys.executable, "-B", MAKER, self.data, self.photos, self.sets]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def make(self):
        """Returns the exit code, and how often photos were made until now."""
        with self.start() as process:
            self.said = process.communicate(timeout=60)[0]
        times = self.folder / "times"
        return process.returncode, times.read_text().count("once") if times.exists() else 0

    def assert_nothing_is_left(self, *others):
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), sorted(["photos", "sets", *others]))

    def test_it_is_made_once_by_the_same_makers(self):
        self.assertEqual(self.make(), (0, 1), self.said)
        self.assertEqual(sorted(path.name for path in self.data.iterdir()),
                         [".made-by", "dogs-cats", "imagenet-sample", "mnist"])
        self.assertEqual(sorted(path.name for path in (self.data / "dogs-cats").iterdir()), ["cat", "dog"])
        self.assertEqual(self.make(), (0, 1))

    def test_other_makers_make_it_again(self):
        self.make()
        (self.data / "stale").touch()
        self.script("sets", SETS + "# changed\n")
        self.assertEqual(self.make(), (0, 2))
        self.assertFalse((self.data / "stale").exists())

    def test_a_maker_that_fails_leaves_nothing_and_no_half(self):
        self.script("sets", SETS + "exit 3\n")
        self.assertNotEqual(self.make()[0], 0)
        self.assertIn("exit code 3", self.said)
        self.assert_nothing_is_left("times")

    def test_a_maker_that_fails_keeps_what_was_made_before(self):
        self.make()
        self.script("sets", "#!/bin/sh\nexit 3\n")
        self.assertNotEqual(self.make()[0], 0)
        self.assertTrue((self.data / "mnist").is_dir())
        self.assert_nothing_is_left("times", "test-data")

    def test_who_is_stopped_leaves_nothing(self):
        os.mkfifo(self.folder / "reached")
        self.script("sets", f'#!/bin/sh\necho now >"{self.folder}/reached"\nexec sleep 600\n')
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.start() as process:
                (self.folder / "reached").read_text()
                process.send_signal(number)
                process.communicate(timeout=60)
            self.assertNotEqual(process.returncode, 0)
        (self.folder / "times").unlink(missing_ok=True)
        self.assert_nothing_is_left("reached")


class Finding(unittest.TestCase):
    def test_real_data_that_is_not_there_skips_and_made_data_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/mnist")
            for value in (None, "", f"{folder}/none", folder):
                with self.subTest(value=value), mock.patch.dict(os.environ):
                    for variable in (test_data.MADE, test_data.REAL):
                        os.environ.pop(variable, None)
                        if value is not None:
                            os.environ[variable] = value
                    if value == folder:
                        mnist = pathlib.Path(value, "mnist")
                        self.assertEqual((test_data.real("mnist"), test_data.made("mnist")), (mnist, mnist))
                    with self.assertRaisesRegex(unittest.SkipTest, "no cifar10-bin of real data: LEAT_TEST_DATA"):
                        test_data.real("cifar10-bin")
                    with self.assertRaisesRegex(AssertionError, "cifar10-bin: build the target test_data"):
                        test_data.made("cifar10-bin")


if __name__ == "__main__":
    unittest.main()
