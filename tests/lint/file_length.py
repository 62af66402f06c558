# SPDX-License-Identifier: Apache-2.0
"""Files stay small: a note from 400 lines on, an error over 500."""

import common

NOTE, LIMIT = 400, 500


def check(root):
    findings = []
    for path in common.files(root, *common.CPP, ".py", ".proto", ".cmake"):
        lines = common.text(root, path).count("\n")
        if lines > LIMIT:
            findings.append(f"{path}: {lines} lines, at most {LIMIT}: split it by what it does")
        elif lines > NOTE:
            print(f"note: {path}: {lines} lines; look twice from {NOTE} on")
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
