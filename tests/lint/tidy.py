# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy with the tree's .clang-tidy over the domain code, including clang's thread-safety analysis.

It is the clang-tidy of the tests' Python environment (deploy/packages/python-tests.txt), which skips the system's
headers and takes half the time of Debian's.
"""

import pathlib
import sys

import common
import compiled

PROGRAM = pathlib.Path(sys.executable).with_name("clang-tidy")


def check(root, build):
    settings = (root / ".clang-tidy").read_text()
    if not PROGRAM.exists():
        return [f"no {PROGRAM}: deploy/install-dependencies --python tests VENV"]

    def command(file, unit):
        return [PROGRAM, "--quiet", f"--config-file={root / '.clang-tidy'}", str(file), "--",
                "-Wthread-safety", *unit.arguments]

    return compiled.run(root, build, "tidy", compiled.domain_units(root, build), command, settings)


if __name__ == "__main__":
    common.main(check, __doc__, build=True)
