# SPDX-License-Identifier: Apache-2.0
"""Commands that pages and examples show: the programs have their subcommands and flags."""

import functools
import pathlib
import re
import subprocess
import unittest

from cluster import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Pages for users. Decisions and measurements show what was true when they were written.
PAGES = ("README.md", "docs/start/*.md", "docs/guide/*.md", "docs/run/*.md", "docs/see/*.md")
SCRIPTS = ("docs/examples/*/*.sh", "docs/examples/*/*.sbatch")
PROGRAMS = {"leat": "CLI", "leat-worker": "WORKER", "leat-coordinator": "COORDINATOR"}
WITH_ANY_FLAGS = ("help", "man", "version")  # they end before others are read


def blocks(text):
    """Returns the parts of a page in which commands stand: indented or fenced blocks, and spans of code."""
    fenced = re.compile(r"^```(?:sh|bash|console)?\n(.*?)^```", re.M | re.S)
    found = fenced.findall(text)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    found += re.findall(r"(?:^    .*\n)+", rest, re.M)
    rest = re.sub(r"^    .*\n", "", rest, flags=re.M)
    return found + re.findall(r"`(leat[^`\n]*)`", rest)


def commands(text):
    """Returns the words of each command of Leat in a block of shell lines."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*", "", line)
        line = re.sub(r"'[^']*'|\"[^\"]*\"", "X", line)
        for part in re.split(r"[|;&]|\$\(|\)| -- |<<<", line):
            words = part.split()
            while words and (re.fullmatch(r"[A-Z_]+=\S*|\d*>\S*|systemctl|exec|nice|time|env", words[0])):
                words = words[1:]
            if words and words[0].rpartition("/")[2] in PROGRAMS and "=" not in words[0]:
                yield [words[0].rpartition("/")[2], *words[1:]]


@functools.cache
def shown(name, *words):
    done = subprocess.run([program(PROGRAMS[name]), *words, "--help"], capture_output=True, text=True, timeout=60,
                          env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, f"{name} {words}: {done.stderr}"
    return done.stdout


def flags_of(text):
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))


class Commands(unittest.TestCase):
    def check(self, words):
        name, *rest = words
        known = flags_of(shown(name))
        if name == "leat":
            subcommands = set(re.findall(r"^  ([a-z-]+) {2,}\S", shown(name).partition("Subcommands:")[2], re.M))
            named = [word for word in rest if not word.startswith("-")]
            command = next((word for word in named if word in subcommands), None)
            if named and re.fullmatch(r"[a-z-]+", named[0]):
                self.assertIsNotNone(command, f"no such subcommand in: {' '.join(words)}")
            if command in WITH_ANY_FLAGS:
                return
            if command:
                known |= flags_of(shown(name, command))
        for word in rest:
            flag = re.match(r"--?[a-z][a-z-]*", word)
            if flag:
                self.assertIn(flag[0], known | {"--help"}, " ".join(words))

    def test_they_have_the_flags_of_the_programs(self):
        seen = 0
        for pattern in (*PAGES, *SCRIPTS):
            for path in sorted(ROOT.glob(pattern)):
                text = path.read_text()
                for block in blocks(text) if path.suffix == ".md" else [text]:
                    for words in commands(block):
                        with self.subTest(page=str(path.relative_to(ROOT)), command=" ".join(words)):
                            self.check(words)
                            seen += 1
        self.assertGreater(seen, 100)

    def test_scripts_are_shell(self):
        for pattern in SCRIPTS:
            for path in ROOT.glob(pattern):
                done = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
