# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures in docs/architecture/components/: of folders, from the tables in docs/architecture/folders*.md,
and of Python modules, from their imports.

    python3 tests/lint/pictures.py --write     writes the pictures again; without it they are compared with the table

A page says in a comment which folders a picture shows, and everything up to the closing comment is made here:

    <!-- folders: worker; as one: worker/gpu worker/image -->
    <!-- end of folders -->

A picture has the named folders and all below them. Each folder under "as one" is a single box with all below it.
Folders beside each other are one box, too, if none has a folder below it and their arrows are alike. Each component
that these folders include is one box, except core, which every file may include. An arrow that follows from others is
left out: the table says whether the include itself is allowed.

A picture of Python modules has the boxes that its comment lists; each module is in one of them ("dali" is a package):

    <!-- modules: python_client/src/leat
    leat.jax: jax _ahead
    services: _client
    -->
    <!-- end of modules -->
"""

import argparse
import pathlib
import re
import sys

import common
import layering

PAGES = "docs/architecture/components"
MOST = 25  # boxes of a picture
_BLOCK = re.compile(r"(<!-- folders: ([^;>]+?)(?:; as one: ([^>]+?))? -->\n)(.*?)(<!-- end of folders -->)", re.S)
_MODULES = re.compile(r"(<!-- modules: (\S+)\n(.*?)-->\n)(.*?)(<!-- end of modules -->)", re.S)
_IMPORT = re.compile(r"^ *(?:from +([\w.]+) +import +(\([^)]*\)|[^\n]*)|import +([\w., ]+))", re.M)


def _below(folder, top):
    return folder == top or folder.startswith(top + "/")


def _inside(folder, tops):
    return any(_below(folder, top) for top in tops)


def box_of(folder, tops, groups):
    """Returns the name of the box that shows `folder`; None if the picture leaves it out."""
    if _inside(folder, tops):
        return next((group for group in groups if _below(folder, group)), folder)
    parts = folder.split("/")
    if parts[0] == "core":
        return None
    # The picture of a part of a component shows the component's other parts one by one.
    return "/".join(parts[:2]) if any(top.startswith(parts[0] + "/") for top in tops) else parts[0]


def edges_of(rules, tops, groups):
    """Returns {box: the boxes that its folders may include}, for the picture of `tops`."""
    edges = {}
    for folder, rule in rules.items():
        if not _inside(folder, tops):
            continue
        box = box_of(folder, tops, groups)
        named = {other for name in rule.folders
                 for other in ([f for f in rules if f.startswith("core/")] if name == "core/*" else [name])}
        others = {box_of(other, tops, groups) for other in named}
        edges.setdefault(box, set()).update(others - {None, box})
    for other in set().union(*edges.values()):
        edges.setdefault(other, set())
    return edges


def reduced(edges):
    """Returns `edges` without those that follow from two or more others. REQUIRES: no circle."""
    reach = {}

    def reached(box):
        if box not in reach:
            reach[box] = set().union(*({other} | reached(other) for other in edges[box]))
        return reach[box]

    return {box: {other for other in others if not any(other in reached(via) for via in others)}
            for box, others in edges.items()}


def merged(edges, leaves):
    """Returns (names by box, edges): those of `leaves` that lie beside each other and have the same arrows are one."""
    into = {box: {other for other, theirs in edges.items() if box in theirs} for box in edges}
    like = {box: (box.rpartition("/")[0], edges[box], into[box]) for box in edges}
    names, instead = {}, {}
    for box in sorted(edges):
        alike = next((first for first in names if {box, first} <= leaves and like[first] == like[box]), box)
        names.setdefault(alike, []).append(box)
        instead[box] = alike
    return names, {box: {instead[other] for other in edges[box]} for box in names}


def picture(rules, tops, groups):
    """Returns (the text of a picture, what is wrong with it)."""
    edges = edges_of(rules, tops, groups)
    findings = [f"there is no folder {name}" for name in (*tops, *groups) if not any(_below(f, name) for f in rules)]
    findings += [f"{', '.join(sorted(circle))} are a circle: choose other folders to be one"
                 for circle in layering.circles(edges)]
    if findings:
        return "", findings
    leaves = {box for box in edges if _inside(box, tops) and not any(f != box and _below(f, box) for f in rules)}
    names, arrows = merged(reduced(edges), leaves)
    labels = {}
    for box in names:
        several = box in groups or not _inside(box, tops) and any(
            f != box and _below(f, box) for f in rules)
        labels[box] = f"{box}/*" if several else "<br>".join(names[box])
    return _flowchart(labels, arrows)


def _flowchart(labels, arrows):
    """Returns (the text of a picture of boxes, what is wrong with it)."""
    number = {box: f"n{i}" for i, box in enumerate(sorted(labels))}
    lines = ["```mermaid", "flowchart TB"]
    lines += [f'  {number[box]}["{labels[box]}"]' for box in sorted(labels)]
    for box in sorted(arrows):
        lines += [f"  {number[box]} --> {number[other]}" for other in sorted(arrows[box])]
    crowded = [f"has {len(labels)} boxes, and {MOST} can be read"] if len(labels) > MOST else []
    return "\n".join(lines + ["```", ""]), crowded


def imports(package, source):
    """Returns the modules of `package` that a Python source imports, by the names of their files or folders."""
    found = set()
    for module, names, plain in _IMPORT.findall(source):
        named = [f"{module}.{name.split()[0]}" for name in names.strip("() \n").split(",") if name.strip()]
        for name in named if module else [name.split()[0] for name in plain.split(",") if name.strip()]:
            parts = name.split(".")
            if parts[0] == package and len(parts) > 1:
                found.add(parts[1])
    return found


def picture_of_modules(root, package, listed):
    """Returns (the text of a picture, what is wrong with it)."""
    boxes = {name: box.strip() for box, _, names in (line.partition(":") for line in listed.strip().splitlines())
             for name in names.split()}
    edges, findings, folder = {box: set() for box in boxes.values()}, [], root / package
    modules = {path.stem if path.is_file() else path.name for path in folder.iterdir()
               if path.suffix == ".py" or (path / "__init__.py").is_file()} - {"__init__"}
    for module in sorted(modules ^ set(boxes)):
        findings.append(f"{module} is in no box" if module in modules else f"there is no module {module}")
    for module in sorted(modules & set(boxes)):
        paths = sorted((folder / module).rglob("*.py")) or [folder / f"{module}.py"]
        used = set().union(*(imports(folder.name, path.read_text(encoding="utf-8")) for path in paths))
        edges[boxes[module]] |= {boxes[other] for other in used if other in boxes} - {boxes[module]}
    findings += [f"{', '.join(sorted(circle))} are a circle: choose other boxes" for circle in layering.circles(edges)]
    return ("", findings) if findings else _flowchart({box: box for box in edges}, reduced(edges))


def check(root, write=False):
    """Returns findings of the pages' pictures, and with `write` makes the pictures again."""
    root, findings, shown = pathlib.Path(root), [], set()
    rules = layering.read_rules(layering.tables(root))
    for path in sorted((root / PAGES).glob("*.md")):
        name, text = path.relative_to(root), path.read_text(encoding="utf-8")
        known = len(_BLOCK.findall(text)) + len(_MODULES.findall(text))
        if text.count("<!-- folders:") + text.count("<!-- modules:") != known:
            findings.append(f"{name}: a comment of a picture is not as tests/lint/pictures.py reads it")

        def with_picture(match, drawn, wrong):
            findings.extend(f"{name}: the picture of {match[2]}: {what}" for what in wrong)
            if not wrong and not write and match[4] != drawn:
                findings.append(f"{name}: the picture of {match[2]} is out of date: "
                                "python3 tests/lint/pictures.py --write")
            return match[1] + (match[4] if wrong else drawn) + match[5]

        def of_folders(match):
            tops, groups = match[2].split(), (match[3] or "").split()
            shown.update(f for f in rules if _inside(f, tops) and not _inside(f, groups))
            return with_picture(match, *picture(rules, tops, groups))

        def of_modules(match):
            return with_picture(match, *picture_of_modules(root, match[2], match[3]))

        drawn = _MODULES.sub(of_modules, _BLOCK.sub(of_folders, text))
        if write and drawn != text:
            path.write_text(drawn, encoding="utf-8")
    return findings + [f"{folder}: no picture in {PAGES} has a box for it" for folder in sorted(set(rules) - shown)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="make the pictures anew")
    args = parser.parse_args()
    findings = check(args.root, args.write)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
