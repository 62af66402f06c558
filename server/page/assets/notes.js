// SPDX-License-Identifier: Apache-2.0
//
// The textual parts: findings, events, caches and datasets.

import { $, data, h, keyed, say } from "./dom.js";
import { ago, bytes, clock, count, number, percent } from "./format.js";

const SIGNS = { error: "\u2715", warn: "!", info: "\u00b7" };
const MAX_EVENTS = 200;
const MAX_LINES = 10;  // per code of findings
const STATES = { failed: "bad", replaced: "dim", indexing: "warn" };

// Groups findings with the same code: the findings, and their remedy.
function grouped(findings) {
  const groups = new Map();
  for (const each of findings) {
    const group = groups.get(each.code) ??
      { code: each.code, severity: each.severity, muted: true, what: [], remedies: [] };
    if (each.severity === "error") group.severity = "error";
    group.muted &&= Boolean(each.muted);
    group.what.push(each.summary ?? "");
    if (each.remedy && !group.remedies.includes(each.remedy)) group.remedies.push(each.remedy);
    groups.set(each.code, group);
  }
  return [...groups.values()];
}

function showFindings(findings) {
  $("#findings").hidden = findings.length === 0;
  keyed($("#findings .findings"), grouped(findings), (group) => group.code, () => h("li", {},
    h("i", { class: "sign", "aria-hidden": true }), h("b", {}), h("div", {}), h("div", { class: "remedy" })),
  (item, group) => {
    item.className = `${group.severity}${group.muted ? " muted" : ""}`;
    say(item.children[0], SIGNS[group.severity] ?? "!");
    say(item.children[1], group.code + (group.muted ? " (muted)" : ""));
    const more = group.what.length - MAX_LINES;
    item.children[2].replaceChildren(...group.what.slice(0, more === 1 ? MAX_LINES + 1 : MAX_LINES)
      .map((text) => h("p", {}, text)), more > 1 ? h("p", {}, `and ${count(more)} more: leat status`) : "");
    const remedies = group.remedies.slice(0, MAX_LINES);
    item.children[3].replaceChildren(...remedies.map((text, i) => h("p", {}, i === 0 ? `Remedy: ${text}` : text)));
  });
}

function ratio(hits, misses) {
  return hits + misses > 0 ? percent(hits / (hits + misses)) : "\u2013";
}

const right = (title, value, text) => h("td", { class: "right", "data-title": title }, data(value, text(value)));

function showStorage(state) {
  const of = (field) => number(state.total[field]);
  const counted = (field) => data(of(field), count(of(field)));
  const facts = [
    ["Memory cache", ratio(of("cache_hits_total"), of("cache_misses_total")), "hits",
      h("span", {}, counted("cache_hits_total"), " hits, ", counted("cache_misses_total"), " misses, ",
        data(of("cache_bytes"), bytes(of("cache_bytes"))), " of ", bytes(of("cache_limit_bytes")))],
    ["Disk cache", ratio(of("disk_cache_hits_total"), of("disk_cache_misses_total")), "hits",
      h("span", {}, counted("disk_cache_hits_total"), " hits, ", counted("disk_cache_misses_total"), " misses, ",
        data(of("disk_cache_bytes"), bytes(of("disk_cache_bytes"))))],
    ["Object storage", count(of("storage_requests_total")), "requests",
      h("span", {}, counted("storage_retries_total"), " after a failure, ",
        counted("storage_hedges_total"), " for late ranges")],
    ["Read ahead", count(of("rows_ahead")), "rows", h("span", {}, bytes(of("bytes_ahead")))],
  ];
  $("#storage").hidden = state.counts.workers === 0 && state.datasets.length === 0;
  $("#storage .numbers").replaceChildren(...facts.map(([title, value, unit, more]) =>
    h("div", {}, h("dt", {}, title), h("dd", {}, h("strong", {}, value), ` ${unit}`, h("small", {}, more)))));
  const table = $("#storage .datasets");
  table.hidden = state.datasets.length === 0;
  const rest = number(state.status.datasets) - state.datasets.length;
  say($("#storage .none"), rest > 0 ? `${count(rest)} more datasets are not shown: leat get datasets` : "");
  table.replaceChildren(
    h("thead", {}, h("tr", {}, ["Dataset", "State", "Samples", "Size", "Listed", "Looked at"].map((title, i) =>
      h("th", { scope: "col", class: i === 2 || i === 3 ? "right" : null }, title)))),
    h("tbody", {}, state.datasets.flatMap((each) => [h("tr", {}, h("th", { scope: "row" }, each.dataset.name ?? ""),
      h("td", { class: STATES[each.state] }, each.state ?? ""),
      right("Samples", number(each.dataset.shards?.num_samples), count),
      right("Size", number(each.dataset.bytes), bytes),
      h("td", { "data-title": "Listed", title: each.indexed_at ?? null }, ago(each.indexed_at, state.at_ms)),
      h("td", { "data-title": "Looked at", class: each.changes?.length ? "warn" : null,
        title: each.changes?.join("; ") ?? each.looked_at },
        ago(each.looked_at, state.at_ms) + (each.changes?.length ? ": has changed" : ""))),
    each.failure ? h("tr", { class: "why" }, h("td", { class: "bad", colspan: 6 }, each.failure)) : null])
      .filter(Boolean)));
}

export function show(state) {
  showFindings(state.status.findings ?? []);
  showStorage(state);
}

function line(event) {
  return h("li", { class: event.severity }, h("i", { class: "sign", "aria-hidden": true }, SIGNS[event.severity] ?? ""),
    h("time", { datetime: event.at, title: event.at }, clock(Date.parse(event.at))), h("code", {}, event.type),
    h("span", {}, event.message));
}

// The newest events, each once, since one start of the coordinator.
export class Events {
  constructor() {
    this.events = [];
    this.instance = undefined;
  }

  add(told) {
    if (told.instance !== this.instance) this.events = [];
    this.instance = told.instance;
    const last = number(this.events[0]?.sequence);
    for (const event of told.events ?? []) if (number(event.sequence) > last) this.events.unshift(event);
    this.events.length = Math.min(this.events.length, MAX_EVENTS);
    keyed($("#events .events"), this.events, (event) => `${this.instance}-${event.sequence}`, line, () => {});
  }
}
