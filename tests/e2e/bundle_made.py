# SPDX-License-Identifier: Apache-2.0
"""The bundle of a build tree, for the tests that need one.

As a program it packs the tree LEAT_BUILD_DIR into the file LEAT_BUNDLE: once for several tests. A test that is started
without that file packs one for itself.
"""

import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build_dir():
    folder = os.environ.get("LEAT_BUILD_DIR")
    if not folder:
        raise unittest.SkipTest("LEAT_BUILD_DIR names no build tree")
    return pathlib.Path(folder)


def pack(out):
    """Packs everything that a bundle may have. NVIDIA's nvJPEG is left out if it cannot be fetched."""
    words = [ROOT / "deploy/bundle", "--build-dir", build_dir(), "-o", out]
    packed = subprocess.run([*words, "--with-nvjpeg"], capture_output=True, text=True, timeout=600)
    if "cannot be fetched" in packed.stderr:
        packed = subprocess.run(words, capture_output=True, text=True, timeout=600)
    if packed.returncode != 0:
        raise AssertionError(f"deploy/bundle: {packed.stdout}{packed.stderr}")
    return out


@functools.cache
def bundle():
    """Returns the path of LEAT_BUNDLE, or of a bundle that is removed when this process ends."""
    given = os.environ.get("LEAT_BUNDLE")
    if given and os.path.exists(given):
        return pathlib.Path(given)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-bundle-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return pack(folder / "leat.tar")


if __name__ == "__main__":
    pack(pathlib.Path(os.environ["LEAT_BUNDLE"]))
