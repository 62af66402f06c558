# SPDX-License-Identifier: Apache-2.0
"""README's chart as SVG: two bars per loader, its first epoch and its tenth."""

import html
import pathlib

_LEFT, _WIDE, _RIGHT, _ROW, _BAR, _TOP = 280, 420, 110, 36, 14, 34
# (first epoch, tenth epoch)
_OF_LEAT, _OF_OTHERS = ("#8fbbdb", "#1f77b4"), ("#cfd8de", "#8c9aa3")


def _text(x, y, words, anchor="start"):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{html.escape(words)}</text>'


def _bar(y, width, colour):
    return f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>'


def svg(rows):
    """Returns the chart. `rows`, in drawing order: (name, [img/s of the first epoch, of the tenth], their ratios to the
    yardstick, or None)."""
    most = max(max(rates) for _, rates, _ in rows)
    width, height = _LEFT + _WIDE + _RIGHT, _TOP + _ROW * len(rows) + 10
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" font-family="sans-serif" font-size="13" fill="#222222">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
             _text(10, 20, "images per second (ratio to bare libjpeg-turbo's full decode); "
                           "above: first epoch from a cold start, below: tenth epoch")]
    for number, (name, rates, ratios) in enumerate(rows):
        top = _TOP + _ROW * number
        lines.append(_text(_LEFT - 8, top + 20, name, "end"))
        for epoch, colour in enumerate(_OF_LEAT if name.startswith("Leat") else _OF_OTHERS):
            y, long = top + (_BAR + 1) * epoch, _WIDE * rates[epoch] / most
            ratio = "" if ratios[epoch] is None else f" ({ratios[epoch]:.2f})"
            lines += [_bar(y, long, colour), _text(f"{_LEFT + long + 5:.1f}", y + 12, f"{rates[epoch]:.0f}{ratio}")]
    return "\n".join([*lines, "</svg>"]) + "\n"


def draw(rows, target):
    pathlib.Path(target).write_text(svg(rows))
