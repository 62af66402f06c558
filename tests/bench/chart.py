# SPDX-License-Identifier: Apache-2.0
"""Draws README's chart from the table of rates in docs/measurements/cpu.md. Wants matplotlib.

    chart.py docs/measurements/cpu.md docs/images/rates.svg
"""

import pathlib
import re
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

_ROW = re.compile(r"^\| ([^|]+) \| (\d+) \| (\d+\.\d\d) \|$", re.M)


def rates(page):
    """[(name, img/s, ratio)] of the first table of rates; the longest bar first."""
    table = page[page.index("| img/s | ratio to"):].split("\n\n")[0]
    found = [(name, int(rate), float(ratio)) for name, rate, ratio in _ROW.findall(table)]
    if len(found) < 2:
        sys.exit("chart: no rows like \"| name | 1701 | 1.00 |\" under \"| img/s | ratio to …\"")
    return sorted(found, key=lambda row: row[1])


def draw(rows, target):
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "leat", "font.family": "sans-serif", "font.size": 11})
    figure, axes = plt.subplots(figsize=(7, 0.36 * len(rows) + 0.8))
    colours = ["#1f77b4" if name.startswith("Leat") else "#555555" if name.startswith("bare") else "#b8c4ce"
               for name, _, _ in rows]
    bars = axes.barh([name.replace("`", "") for name, _, _ in rows], [rate for _, rate, _ in rows], color=colours)
    axes.bar_label(bars, [f"{rate}  ({ratio:.2f})" for _, rate, ratio in rows], padding=4)
    axes.set_xlim(0, 1.22 * rows[-1][1])
    axes.set_xlabel("images per second, and the ratio to bare libjpeg-turbo's full decode")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, bbox_inches="tight", metadata={"Date": None})
    drawn = pathlib.Path(target)
    drawn.write_text("".join(f"{line.rstrip()}\n" for line in drawn.read_text().splitlines()))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    draw(rates(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2])
