# SPDX-License-Identifier: Apache-2.0
"""What was found: checks, figures, and what this machine does not have. A table as it grows, and JSON."""

import json

PASSED, FAILED, MISSING, FIGURE = "passed", "FAILED", "missing", ""


class Report:
    """Lines in the order in which they were found; each is printed at once."""

    def __init__(self, out):
        self.machine, self.lines, self._out, self._section = {}, [], out, None

    def section(self, name):
        self._section = name
        print(f"\n== {name}", file=self._out, flush=True)

    def _add(self, status, what, value=None, unit="", note=""):
        line = {"section": self._section, "what": what, "status": status or "figure"}
        if value is not None:
            line.update(value=value, unit=unit)
        if note:
            line["note"] = note
        self.lines.append(line)
        print(_shown(line), file=self._out, flush=True)

    def check(self, what, passed, note=""):
        self._add(PASSED if passed else FAILED, what, note=note)
        return passed

    def missing(self, what, why):
        self._add(MISSING, what, note=why)

    def figure(self, what, value, unit, note=""):
        self._add(FIGURE, what, value, unit, note)

    def value(self, what):
        """A figure's value, or None."""
        return next((line["value"] for line in self.lines if line["what"] == what and "value" in line), None)

    def count(self, status):
        return sum(line["status"] == status for line in self.lines)

    @property
    def passed(self):
        return self.count(FAILED) == 0 and self.count(PASSED) > 0

    def summary(self):
        """The failed checks once more, and how many of each there were."""
        failed = [_shown(line) for line in self.lines if line["status"] == FAILED]
        total = (f"{self.count(PASSED)} checks passed, {self.count(FAILED)} failed, "
                 f"{self.count(MISSING)} could not be made here")
        return "\n".join([*failed, total])

    def write_json(self, path):
        with open(path, "w") as file:
            json.dump({"machine": self.machine, "passed": self.passed, "lines": self.lines}, file, indent=1)
            file.write("\n")


def _shown(line):
    value = line.get("value")
    if isinstance(value, float):
        value = f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    figure = "" if value is None else f"{value} {line['unit']}".strip()
    status = "" if line["status"] == "figure" else line["status"]
    return f"{line['what']:<54} {status or figure:<14} {line.get('note', '')}".rstrip()
