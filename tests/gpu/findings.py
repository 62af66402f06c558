# SPDX-License-Identifier: Apache-2.0
"""The findings of a step, as lines of JSON in a file that survives a crash of the step; and the findings of all steps.

A line is one of these, told apart by its first key:
  {"check": WHAT, "ok": BOOL, "note": TEXT}                            right or wrong
  {"figure": WHAT, "value": NUMBER, "unit": TEXT, "note": TEXT, "of": {NAME: TEXT}}  measured, for the case `of`
  {"missing": WHAT, "why": TEXT}                                       cannot be found out on this machine
  {"fact": NAME, "value": ANYTHING}                                    about the machine, for readers of the figures
"""

import json
import os

PASSED, FAILED, CRASHED, HUNG = "passed", "failed", "crashed", "hung"
UNFINISHED, SKIPPED, NOT_HERE = "unfinished", "skipped", "not here"
LOST = (FAILED, CRASHED, HUNG)
NO_GPU, BUDGET_ENDED = 3, 4  # exit codes


class Lines:
    """Writes a step's lines; each is in the file before the call returns."""

    def __init__(self, path):
        self.path = path
        self._file = open(path, "a", encoding="utf-8")

    def close(self):
        self._file.close()

    def _add(self, **line):
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def check(self, what, ok, note=""):
        self._add(check=what, ok=bool(ok), note=note)
        return ok

    def figure(self, what, value, unit, note="", **of):
        self._add(figure=what, value=value, unit=unit, note=note, of={name: str(text) for name, text in of.items()})

    def missing(self, what, why):
        self._add(missing=what, why=why)

    def fact(self, name, value):
        self._add(fact=name, value=value)


def read(path):
    """Returns the whole lines of a file; one that a crash has cut short is left out."""
    found = []
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for text in file:
                try:
                    found.append(json.loads(text))
                except ValueError:
                    continue
    except FileNotFoundError:
        pass
    return found


class Findings:
    """The findings of a whole run: printed as they come, and kept as JSON."""

    def __init__(self, out, budget_s, json_path=None):
        self.machine, self.steps, self.budget_s = {}, [], budget_s
        self._out, self._json_path = out, json_path

    def add(self, done):
        """Takes a runner.Done, prints it and rewrites the JSON."""
        self.steps.append(done)
        seconds = f", {done.seconds:.1f} s" if done.seconds else ""
        why = f": {done.why}" if done.why else ""
        print(f"\n== {done.name}: {done.outcome}{seconds}{why}", file=self._out)
        for line in done.lines:
            if "fact" in line:
                self.machine[line["fact"]] = line["value"]
            print(shown(line), file=self._out)
        self._out.flush()
        self.write()

    def count(self, *outcomes):
        return sum(done.outcome in outcomes for done in self.steps)

    def checks(self, ok):
        return sum(line.get("ok") is ok for done in self.steps for line in done.lines)

    @property
    def cut_short(self):
        """Returns the steps that did not finish because of the budget."""
        return [done.name for done in self.steps if done.outcome == UNFINISHED or done.by_budget]

    @property
    def exit_code(self):
        """0: all passed; 1: something did not; 3: no GPU; 4: nothing failed, but the budget ended before every step."""
        if self.machine.get("gpus") == []:
            return NO_GPU
        if self.count(*LOST) > 0:
            return 1
        if self.cut_short:
            return BUDGET_ENDED
        return 0 if self.count(PASSED) > 0 else 1

    def summary(self):
        """Returns everything that did not pass once more, and the counts of each outcome."""
        bad = []
        for done in self.steps:
            bad += [shown(line) for line in done.lines if line.get("ok") is False]
            if done.outcome in (*LOST, UNFINISHED) and done.why:
                bad.append(f"step {done.name} {done.outcome}: {done.why}")
        by = ", ".join(f"{self.count(outcome)} {outcome}"
                       for outcome in (PASSED, *LOST, UNFINISHED, SKIPPED, NOT_HERE) if self.count(outcome))
        text = [*bad, f"{self.checks(True)} checks passed, {self.checks(False)} failed; steps: {by}"]
        if self.cut_short:
            text.append(f"the budget of {self.budget_s:g} s ended before: {', '.join(self.cut_short)}")
        return "\n".join(text)

    def write(self):
        if self._json_path is None:
            return
        partial = f"{self._json_path}.partial"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump({"machine": self.machine, "exit_code": self.exit_code, "budget_s": self.budget_s,
                       "steps": [done.as_json() for done in self.steps]}, file, indent=1)
            file.write("\n")
        os.replace(partial, self._json_path)


def shown(line):
    """Returns a line for people."""
    if "fact" in line:
        return f"{line['fact']}: {line['value']}"
    if "missing" in line:
        return f"{line['missing']:<60} missing: {line['why']}"
    if "check" in line:
        return f"{line['check']:<60} {'passed' if line['ok'] else 'FAILED'} {line.get('note', '')}".rstrip()
    case = ", ".join(f"{name} {text}" for name, text in line.get("of", {}).items())
    what = f"{line['figure']}{' (' + case + ')' if case else ''}"
    value = line["value"]
    if isinstance(value, float):
        value = f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{what:<60} {value} {line['unit']} {line.get('note', '')}".rstrip()
