# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the program leat and of the daemons' flags, from what the built programs print:

    LEAT_NATIVE_DIR=build/dev/native python docs/site/program_pages.py

The pages are committed, so that the site needs no compiled library. tests/python/e2e/test_reference.py compares them
with the programs.
"""

import os
import pathlib
import re
import subprocess
import tempfile

REFERENCE = pathlib.Path(__file__).parents[1] / "reference"
NOTE = "<!-- Written by docs/site/program_pages.py. Change the program, and run it again. -->"

# The commands by what they are for; each group is a page.
GROUPS = {
    "look": ("Look at a service", "status get describe top bottleneck events health wait doctor report"),
    "rows": ("Look at rows and steps", "sheet why trace"),
    "change": ("Change a service", "delete refresh drain undrain log-level access pool slurm state"),
    "data": ("Datasets and files", "index inspect convert"),
    "local": ("The program itself", "context completion man version help"),
}

# The flags without which a daemon does not print its configuration.
DAEMONS = {
    "leat-coordinator": ("--state", "/var/lib/leat"),
    "leat-worker": ("--coordinator", "127.0.0.1:7411"),
    "leat-private": None,  # has no --print-config
}


def _printed(*command):
    """Returns what a program prints in an environment without variables."""
    return subprocess.run(command, env={}, capture_output=True, text=True, check=True).stdout


def _cell(text):
    """Returns text for a cell of a table: what looks like a flag, a variable or a word in capitals is code."""
    text = re.sub(r"(?<![\w`/-])(--?[a-z][a-z-]*(?:=[A-Z]+)?|LEAT_[A-Z_]+|[A-Z_]+:[A-Z]+\w*)(?![\w`])", r"`\1`", text)
    text = re.sub(r"(?<!`)<|\*", r"\\\g<0>", text)
    return text.replace("|", "\\|")


def _sentence(text):
    text = text[0].upper() + text[1:] if re.match(r"[a-z]+ (?!or |\()|[a-z]+$", text) else text
    return text if text.endswith(".") else text + "."


class Manual:
    """A manual page that `leat man` wrote: its sections, and the entries of a section."""

    def __init__(self, text):
        parts = re.split(r"^\.SH (.*)\n", text, flags=re.M)
        self.sections = {title: self._plain(body) for title, body in zip(parts[1::2], parts[2::2], strict=True)}

    @staticmethod
    def _plain(text):
        text = re.sub(r"\\f([BIR])", lambda font: {"B": "\1", "I": "\2", "R": "\3"}[font[1]], text)
        named = {"\\e": "\\", "\\-": "-", "\\(aq": "'", "\\(ga": "`", "\\(ha": "^", "\\(ti": "~", "\\&": ""}
        return re.sub(r"\\(?:e|-|&|\(aq|\(ga|\(ha|\(ti)", lambda name: named[name[0]], text)

    @staticmethod
    def without_fonts(text):
        return re.sub("[\1\2\3]", "", text)

    def entries(self, title):
        """Returns the pairs of heading and text of a section."""
        found = re.findall(r"^\.TP\n(.*)\n((?:(?!\.).*\n)*)", self.sections.get(title, ""), re.M)
        return [(self.without_fonts(head), self.without_fonts(" ".join(text.split()))) for head, text in found]

    def text(self, title):
        return self.without_fonts(re.split(r"^\.TP\n", self.sections[title], flags=re.M)[0]).strip()

    def examples(self):
        lines = self.without_fonts(self.sections.get("EXAMPLES", "")).replace(".nf\n", "").replace(".fi\n", "")
        return re.sub(r"^  ", "", lines, flags=re.M).strip("\n")


def _table(title, entries):
    lines = ["", f"| {title} | meaning |", "|---|---|"]
    for head, text in entries:
        heads = ", ".join(f"`{each}`" for each in head.split(", "))
        lines.append(f"| {heads} | {_cell(_sentence(text))} |")
    return lines


def _command(name, manual, shared):
    lines = [f"## leat {name}", "", manual.text("DESCRIPTION"), "", "```text", manual.text("SYNOPSIS"), "```"]
    own = [each for each in manual.entries("OPTIONS") if each[0] != "-h, --help" and each not in shared]
    common = [each for each in manual.entries("OPTIONS") if each in shared]
    arguments = manual.entries("DESCRIPTION") + own
    if arguments:
        lines += _table("argument", arguments)
    if common:
        flags = ", ".join(f"`{head.split(', ')[-1].split()[0]}`" for head, _ in common)
        lines += ["", f"It also takes {flags} of [commands that print](index.md#commands-that-print)."]
    if manual.examples():
        lines += ["", "```bash", manual.examples(), "```"]
    return "\n".join(lines)


def command_pages(leat):
    """Returns the pages of the program by their path below docs/reference."""
    with tempfile.TemporaryDirectory() as folder:
        _printed(leat, "man", folder)
        manuals = {path.stem: Manual(path.read_text()) for path in pathlib.Path(folder).iterdir()}
    root = manuals.pop("leat")
    commands = {name.removeprefix("leat-"): manual for name, manual in manuals.items()}
    grouped = [name for _, names in GROUPS.values() for name in names.split()]
    if sorted(grouped) != sorted(commands):
        raise SystemExit(f"GROUPS has not the program's commands: {sorted(set(grouped) ^ set(commands))}")
    every = [entry for manual in commands.values() for entry in manual.entries("OPTIONS")]
    shared = [each for each in dict.fromkeys(every) if every.count(each) > 4 and each[0] != "-h, --help"]
    pages = {}
    for page, (title, names) in GROUPS.items():
        parts = [_command(name, commands[name], shared) for name in names.split()]
        pages[f"cli/{page}.md"] = f"# {title}\n\n{NOTE}\n\n" + "\n\n".join(parts) + "\n"
    lines = ["# The program leat", "", NOTE, "", root.text("DESCRIPTION"), "", "```bash", root.examples(), "```", ""]
    lines += ["```{toctree}", ":hidden:", "", *GROUPS, "```", ""]
    lines += ["## Commands", "", "| command | purpose |", "|---|---|"]
    for page, (_, names) in GROUPS.items():
        for name in names.split():
            lines.append(f"| [`leat {name}`]({page}.md#leat-{name}) | {_cell(commands[name].text('DESCRIPTION'))} |")
    lines += ["", "## Options of every command", *_table("option", root.entries("OPTIONS"))]
    lines += ["", "## Commands that print", "", "Commands that print a table take these options:"]
    lines += _table("option", shared)
    lines += ["", "## Exit codes", *_table("code", root.entries("EXIT STATUS"))]
    lines += ["", "## Variables", "", root.text("ENVIRONMENT"), *_table("variable", root.entries("ENVIRONMENT"))]
    lines += ["", "## Files", *_table("file", root.entries("FILES"))]
    pages["cli/index.md"] = "\n".join(lines) + "\n"
    return pages


def _flags(text):
    """Returns flag, value and meaning of each entry of a daemon's --help."""
    found = []
    for line in text.partition("Options:\n")[2].splitlines():
        entry = re.match(r"  (?:-\w,)?(--[a-z][a-z-]*)(.*)", line)
        if entry:
            value, _, meaning = entry[2].partition("  ") if "  " in entry[2] else (entry[2], "", "")
            found.append([entry[1], re.sub(r" \[[^-]*\]$", "", value.strip()), meaning.strip()])
        elif line.strip():
            found[-1][2] = f"{found[-1][2]} {line.strip()}".strip()
    return [each for each in found if each[0] not in ("--help", "--version")]


def _daemon_page(program, path, needed):
    text = _printed(path, "--help")
    defaults = {}
    if needed is not None:
        printed = _printed(path, *needed, "--print-config")
        defaults = {f"--{name}": value.strip('"') for name, value in re.findall(r"^#([a-z-]+): (.+)$", printed, re.M)}
    about = text.partition("\n")[0].removeprefix(f"{program}: ")
    lines = [f"# {program}", "", NOTE, "", about[0].upper() + about[1:], ""]
    lines += ["| flag | default | meaning |", "|---|---|---|"]
    for flag, value, meaning in _flags(text):
        value = {"TEXT": "", "TEXT ...": " …", "BOOLEAN": " true|false"}.get(value, f" {value}" if value else "")
        value = re.sub(r":INT in \[(\d+) - (\d+)\]", r" \1 to \2", value).replace("UINT", "N").replace("INT", "N")
        default = f"`{defaults[flag]}`" if flag in defaults else ""
        shown = f"{flag}{value}".replace("|", "\\|")
        lines.append(f"| `{shown}` | {default} | {_cell(_sentence(meaning)) if meaning else ''} |")
    return "\n".join(lines) + "\n"


def flag_pages(folder):
    """Returns the pages of the daemons by their path below docs/reference."""
    return {
        f"flags/{program}.md": _daemon_page(program, os.path.join(folder, program), needed)
        for program, needed in DAEMONS.items()
    }


def pages(folder):
    """Returns all pages, from the programs of a folder."""
    return {**command_pages(os.path.join(folder, "leat")), **flag_pages(folder)}


if __name__ == "__main__":
    for name, text in pages(os.environ["LEAT_NATIVE_DIR"]).items():
        (REFERENCE / name).parent.mkdir(exist_ok=True)
        (REFERENCE / name).write_text(text)
        print(f"{name}: {len(text.split())} words")
