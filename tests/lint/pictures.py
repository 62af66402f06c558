# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of folders in docs/architecture/components/ from the table in docs/architecture/folders.md.

    tests/lint/pictures.py --write     writes the pictures again; without it they are compared with the table

A page says in a comment which folders a picture shows, and everything up to the closing comment is made here:

    <!-- folders: worker; as one: worker/gpu worker/image -->
    <!-- end of folders -->

A picture has the named folders and all below them. Each folder under "as one" is a single box with all below it.
Folders beside each other are one box, too, if none has a folder below it and their arrows are alike. Each component
that these folders include is one box, except core, which every file may include. An arrow that follows from others is
left out: the table says whether the include itself is allowed.
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
    if len(names) > MOST:
        findings.append(f"has {len(names)} boxes, and {MOST} can be read")
    number = {box: f"n{i}" for i, box in enumerate(sorted(names))}
    lines = ["```mermaid", "flowchart TB"]
    for box in sorted(names):
        several = box in groups or not _inside(box, tops) and any(
            f != box and _below(f, box) for f in rules)
        label = f"{box}/*" if several else "<br>".join(names[box])
        lines.append(f'  {number[box]}["{label}"]')
    for box in sorted(arrows):
        lines += [f"  {number[box]} --> {number[other]}" for other in sorted(arrows[box])]
    return "\n".join(lines + ["```", ""]), findings


def check(root, write=False):
    """Returns findings of the pages' pictures, and with `write` makes the pictures again."""
    root, findings, shown = pathlib.Path(root), [], set()
    rules = layering.read_rules(common.text(root, layering.PAGE))
    for path in sorted((root / PAGES).glob("*.md")):
        name, text = path.relative_to(root), path.read_text(encoding="utf-8")
        if text.count("<!-- folders:") != len(_BLOCK.findall(text)):
            findings.append(f"{name}: a comment of a picture is not as tests/lint/pictures.py reads it")

        def redrawn(match):
            tops, groups = match[2].split(), (match[3] or "").split()
            drawn, wrong = picture(rules, tops, groups)
            findings.extend(f"{name}: the picture of {match[2]}: {what}" for what in wrong)
            shown.update(f for f in rules if _inside(f, tops) and not _inside(f, groups))
            if not wrong and not write and match[4] != drawn:
                findings.append(f"{name}: the picture of {match[2]} is not the table's: tests/lint/pictures.py --write")
            return match[1] + (match[4] if wrong else drawn) + match[5]

        drawn = _BLOCK.sub(redrawn, text)
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
