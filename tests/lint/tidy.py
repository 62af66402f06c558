# SPDX-License-Identifier: Apache-2.0
"""clang-tidy 14 with the tree's .clang-tidy over the domain code, and in it clang's thread-safety analysis."""

import common
import compiled


def check(root, build):
    settings = (root / ".clang-tidy").read_text()

    def command(file, unit):
        return ["clang-tidy-14", "--quiet", f"--config-file={root / '.clang-tidy'}", str(file), "--",
                "-Wthread-safety", *unit.arguments]

    return compiled.run(root, build, "tidy", compiled.domain_units(root, build), command, settings)


if __name__ == "__main__":
    common.main(check, __doc__, build=True)
