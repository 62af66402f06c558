# SPDX-License-Identifier: Apache-2.0
"""A page of docs/see shows each finding, and each error that a user can meet.

The site makes the texts from the sources (docs/site/leat_texts.py), so a page only names findings, and the sources and
folders of errors. deploy/docs checks the same, and needs Sphinx.
"""

import pathlib
import re
import sys

import common

_FINDING = re.compile(r"^```\{finding\} (\S+)$", re.M)
_ERRORS = re.compile(r"^```\{errors\} (.+)\n((?::.*\n)*)", re.M)


def named(page):
    """Returns a function for each errors directive of a page: whether it shows an error."""
    import leat_texts

    found = []
    for paths, lines in _ERRORS.findall(page):
        options = dict(re.findall(r"^:(\w+): (.*)$", lines, re.M))
        found.append(leat_texts.selection(paths, options.get("without", ""), options.get("kinds", "")))
    return found


def check(root):
    sys.path.insert(0, str(pathlib.Path(root).resolve() / "docs" / "site"))
    import leat_texts

    paths = [path for path in common.files(root, ".md") if path.parts[:2] == ("docs", "see")]
    pages = "".join(common.text(root, path) for path in paths)
    selections = named(pages)
    shown, made, codes = set(_FINDING.findall(pages)), set(leat_texts.findings()), leat_texts.codes()
    missing = leat_texts.missing_errors(lambda error: any(shows(error) for shows in selections))
    return [
        *(f"docs/site/leat_texts.py does not find how {code} is made" for code in sorted(codes - made)),
        *(f"docs/see has no {{finding}} directive for {code}" for code in sorted((made | codes) - shown)),
        *(f"docs/see has a {{finding}} directive for {code}, which no source makes" for code in sorted(shown - made)),
        *(f"{path}: no {{errors}} directive of docs/see shows {errors[0].says!r}"
          for path, errors in sorted(missing.items())),
    ]


if __name__ == "__main__":
    common.main(check, __doc__)
