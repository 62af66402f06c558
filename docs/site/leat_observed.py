# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: tables of metrics, events, log lines and alerts, as the sources have them.

    ```{metrics} coordinator
    ```
    ```{events}
    ```
    ```{loglines} server worker
    ```
    ```{alert} LeatWorkerDown
    ```

Each alert of deploy/prometheus/alerts.yaml must be shown by a page.
"""

import dataclasses
import functools
import re

import leat_cpp as cpp
import sphinx.util.logging
from docutils import nodes
from leat_findings import plain, table
from sphinx.util.docutils import SphinxDirective

_log = sphinx.util.logging.getLogger(__name__)
_SHARED = ("rpc/http/daemon_metrics.h", "rpc/http/daemon_metrics.cc")
_METRICS = {"coordinator": ("server/metrics.cc",), "worker": ("worker/metrics.cc",), "both": _SHARED}
_ALERTS = cpp.ROOT / "deploy" / "prometheus" / "alerts.yaml"
# The first ending that fits counts.
_UNITS = {"_timestamp_seconds": "seconds since 1970", "_start_time_seconds": "seconds since 1970",
          "_seconds_total": "seconds", "_seconds": "seconds", "_bytes_total": "bytes", "_bytes": "bytes",
          "_ratio": "0 to 1", "_rows_per_second": "rows/s"}


@dataclasses.dataclass
class Metric:
    name: str
    kind: str
    help: str
    labels: dict  # of names, to the values that the sources have


def _members(tokens, names):
    """Returns the members of a list {…} by their names."""
    found = {}
    for place, each in enumerate(cpp.arguments(tokens, 0)):
        if len(each) > 3 and cpp.is_sign(each[0], ".") and cpp.is_sign(each[2], "="):
            found[each[1].value] = each[3:]
        elif place < len(names):
            found[names[place]] = each
    return found


def _text(tokens, scope):
    found = cpp.texts(tokens, scope) if tokens else [""]
    return found[0] if len(found) == 1 else cpp.HOLE


def _metric(members, scope):
    """Returns the metric of a list's members; None: the field is none, or the list repeats another metric."""
    name = _text(members.get("name"), scope)
    if not name.startswith("leat_"):
        return None
    kind = cpp.words(members["kind"]) if "kind" in members else "kGauge"
    label = _text(members.get("label"), scope)
    return Metric(name, re.search(r"k(\w+)$", kind)[1].lower(), _text(members.get("help"), scope),
                  {label: [_text(members.get("value"), scope)]} if label else {})


def _declared(path):
    """Yields (constant, metrics) of each table and each single metric that a source defines."""
    tokens, scope = cpp.read(path), cpp.file_scope(path)
    for i, token in enumerate(tokens):
        if token.kind != "name" or token.value not in ("Metric", "FieldMetric") or tokens[i + 1].kind != "name":
            continue
        constant, at = tokens[i + 1].value, i + 2
        many = cpp.is_sign(tokens[at], "[")
        at = cpp.closing(tokens, at) + 1 if many else at
        if not cpp.is_sign(tokens[at], "=") or not cpp.is_sign(tokens[at + 1], "{"):
            continue
        if not many:
            members = _members(tokens[at + 1:cpp.closing(tokens, at + 1) + 1], ("name", "kind", "help"))
            yield constant, [_metric(members, scope)]
            continue
        found = []
        for each in cpp.arguments(tokens, at + 1):
            where = scope
            if each and each[0].kind == "name" and each[0].value != "NoMetric":  # a function that returns a list
                function = scope.look(each[0].value)
                where, each = scope.local(function, cpp.arguments(each, 1)), cpp.returned(function.body)[0]
            if each and cpp.is_sign(each[0], "{"):
                found.append(_metric(_members(each, ("field", "name", "kind", "help", "label", "value")), where))
        yield constant, [each for each in found if each]


def _keys(tokens, body):
    """Returns the labels in an argument {{"name", value}, …}, or in the variable that it names, with known values."""
    if len(tokens) == 1 and tokens[0].kind == "name":
        assigned = cpp.assigned(body)
        tokens = assigned[tokens[0].value][0] if tokens[0].value in assigned else []
    return [(tokens[i + 1].value, [tokens[i + 3].value] if tokens[i + 3].kind == "text" else [])
            for i in range(len(tokens) - 3) if cpp.is_sign(tokens[i], "{") and tokens[i + 1].kind == "text"]


def _labels(path):
    """Returns the labels that calls of Add give to each constant, with the values that are known."""
    tokens, found = cpp.read(path), {}
    functions = cpp.functions(tokens)
    for _, at in cpp.calls(tokens, "Add", "AddHistogram"):
        given, function = cpp.arguments(tokens, at), cpp.enclosing(functions, at)
        if not given or len(given[0]) != 1 or function is None:
            continue
        for each in given[1:]:
            for key, values in _keys(each, function.body):
                known = found.setdefault(given[0][0].value, {}).setdefault(key, [])
                known += values
    return found


@functools.lru_cache(maxsize=None)
def metrics(daemon):
    """Returns the metrics of a daemon, or those of both, by name."""
    found = {}
    for path in _METRICS[daemon]:
        labels = _labels(path)
        for constant, declared in _declared(path):
            for metric in declared:
                known = found.setdefault(metric.name, metric)
                for label, values in [*labels.get(constant, {}).items(), *metric.labels.items()]:
                    of = known.labels.setdefault(label, [])
                    of += [each for each in values if each not in of]
    if daemon == "both":  # its callers and AddDaemon itself give these
        found["leat_build_info"].labels |= {"cluster": [], "daemon": ["coordinator", "worker"], "version": []}
    return dict(sorted(found.items()))


def _unit(metric):
    for ending, unit in _UNITS.items():
        if metric.name.endswith(ending):
            return unit
    return ""


def _label(name, values):
    return f"{name}: {', '.join(values)}" if values else name


class Metrics(SphinxDirective):
    """Shows the metrics of a daemon."""

    required_arguments = 1

    def run(self):
        rows = []
        for each in metrics(self.arguments[0]).values():
            labels = [_label(*item) for item in each.labels.items()]
            rows.append([[nodes.literal(each.name, each.name)], [plain(each.kind)], [plain(_unit(each))],
                         [nodes.literal(text, text) for text in labels], [plain(each.help)]])
        return [table(["Metric", "Type", "Unit", "Labels", "What it counts"], rows, [30, 9, 9, 15, 37])]


def events():
    """Returns (type, severities, kinds of subjects, texts) of the coordinator's events, by type."""
    found = {}
    for path in cpp.sources("server/coordinator"):
        tokens, scope = cpp.read(path), cpp.file_scope(path)
        functions = cpp.functions(tokens)
        for _, at in cpp.calls(tokens, "Tell"):
            function = cpp.enclosing(functions, at)
            if function is None or not cpp.is_sign(tokens[at + 1], "{"):
                continue
            given, where = cpp.arguments(tokens, at + 1), scope.local(function)
            choice = cpp.conditional(given[0])
            for inner in [where.assume(choice[0], truth) for truth in (True, False)] if choice else [where]:
                subjects = [text for each in cpp.arguments(given[2], 0) for text in cpp.texts(each, inner)]
                kinds = [text.rpartition("/")[0] for text in subjects]
                entry = found.setdefault(cpp.texts(given[0], inner)[0], ([], [], []))
                for into, values in zip(entry, (cpp.texts(given[1], inner), kinds, cpp.texts(given[3], inner))):
                    into += [each for each in values if each and each not in into]
    return {kind: found[kind] for kind in sorted(found) if cpp.HOLE not in kind}


class Events(SphinxDirective):
    """Shows the coordinator's events, other than those of findings."""

    def run(self):
        rows = []
        for kind, (severities, kinds, texts) in events().items():
            said = [nodes.literal(text, text) for text in texts if text != cpp.HOLE]
            rows.append([[nodes.literal(kind, kind)], [plain(", ".join(severities))], [plain(", ".join(kinds))],
                         said or [nodes.emphasis("", "the cause")]])
        return [table(["Event", "Severity", "About", "Text"], rows, [25, 10, 15, 50])]


def log_lines(folder):
    """Returns (event, level, text) of the warnings and errors that a folder's sources log, in order."""
    found = []
    for path in cpp.sources(folder):
        tokens = cpp.read(path)
        for name, at in cpp.calls(tokens, "LOG_WARN", "LOG_ERROR"):
            given = cpp.arguments(tokens, at)
            if given and given[0] and given[0][0].kind == "text":
                event, _, rest = given[0][0].value.partition(" ")
                if re.fullmatch(r"[a-z_]+\.[a-z_]+", event):
                    found.append((event, name[4:].lower(), re.sub(r"\{[^{}]*\}", cpp.HOLE, rest)))
    return sorted(dict.fromkeys(found))


class LogLines(SphinxDirective):
    """Shows the warnings and errors that the sources of folders log."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        found = sorted({line for folder in self.arguments[0].split() for line in log_lines(folder)})
        rows = [[[nodes.literal(event, event)], [plain(level)], [nodes.literal(text, text)] if text else []]
                for event, level, text in found]
        return [table(["Event", "Level", "Fields"], rows, [30, 10, 60])]


def alerts():
    """Returns the alerts by name. Parsed by its fixed layout, so that no package is needed."""
    found, key = {}, None
    for line in _ALERTS.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if match := re.match(r"- alert: (\w+)$", text):
            alert = found[match[1]] = {"expr": ""}
        elif found and (match := re.match(r"(expr|for|severity|summary|runbook_url): (.*)$", text)):
            key, value = match.groups()
            alert[key] = "" if value == ">-" else value.strip('"')
        elif found and key == "expr":
            alert["expr"] += (" " if alert["expr"] else "") + text
    return found


class Alert(SphinxDirective):
    """Shows when an alert fires."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        alert = alerts().get(name)
        if alert is None:
            raise self.error(f"{_ALERTS.name} has no alert {name}")
        self.env.note_dependency(str(_ALERTS))
        if not hasattr(self.env, "leat_alerts"):
            self.env.leat_alerts = {}
        self.env.leat_alerts.setdefault(self.env.docname, set()).add(name)
        block = nodes.literal_block(alert["expr"], alert["expr"], language="text")
        when = "at once" if alert["for"] == "0m" else f"after {alert['for']}"
        return [nodes.paragraph("", "", plain(f"Severity {alert['severity']}, {when}:")), block]


def check(app, env):
    """Warns about alerts that no page shows, and about metrics that could not be read."""
    shown = set().union(*getattr(env, "leat_alerts", {}).values())
    for name in sorted(set(alerts()) - shown):
        _log.warning("no page shows the alert %s: want an {alert} directive in docs/see/alerts.md", name)
    known = {name for daemon in _METRICS for name in metrics(daemon)}
    for path in (path for paths in _METRICS.values() for path in paths):
        for token in cpp.read(path):
            if token.kind == "text" and re.fullmatch(r"leat_[a-z0-9_]+", token.value) and token.value not in known:
                if token.value != "leat_job":  # a label
                    _log.warning("%s:%d: leat_observed.py does not find the metric %s", path, token.line, token.value)


def _forget(app, env, docname):
    getattr(env, "leat_alerts", {}).pop(docname, None)


def _merge(app, env, docnames, other):
    mine = env.leat_alerts = getattr(env, "leat_alerts", {})
    mine.update({name: value for name, value in getattr(other, "leat_alerts", {}).items() if name in docnames})


def setup(app):
    app.add_directive("metrics", Metrics)
    app.add_directive("events", Events)
    app.add_directive("loglines", LogLines)
    app.add_directive("alert", Alert)
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
