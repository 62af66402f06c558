// SPDX-License-Identifier: Apache-2.0
//
// The page: shows the data of /live in its parts, and requests a job's history.

import { Charts, fromFirstRow } from "./charts.js";
import { $, h, say } from "./dom.js";
import { clock, count, duration } from "./format.js";
import { Jobs } from "./jobs.js";
import { Live } from "./live.js";
import { Events, show as showNotes } from "./notes.js";
import { show as showStages, startStages } from "./stages.js";
import { Sheet } from "./sheet.js";
import { Strip } from "./strip.js";
import { Workers } from "./workers.js";

const HISTORY_MS = 6000;
const WORDS = { live: "live", connecting: "connecting \u2026", apart: "not connected; trying again" };

$("#page").hidden = false;
$("#sign-out").hidden = document.body.dataset.signedIn !== "yes";
const charts = new Charts();
const strip = new Strip();
const workers = new Workers();
const events = new Events();
const sheet = new Sheet();
const jobs = new Jobs(() => look());
startStages();

// Periods are measured by performance.now(): a clock may be set back.
let asked = -Infinity;  // when the history was requested
let shown = 0;          // when a state was shown, for people

async function look() {
  const job = jobs.chosen;
  sheet.choose(job);
  $("#job").hidden = !job;
  if (!job) return;
  asked = performance.now();
  const query = new URLSearchParams({ job, minutes: $("#minutes").value });
  try {
    const answer = await fetch(`api/history?${query}`);
    // The job may be gone, or another one may be chosen, by now.
    if (!answer.ok || job !== jobs.chosen) return;
    const history = fromFirstRow(await answer.json());
    charts.show(history);
    strip.show(history);
  } catch {
    // The stream notices that there is no answer.
  }
}

function showAbout(state) {
  const { status, counts } = state;
  const since = (state.at_ms - Date.parse(status.started_at)) / 1000;
  say($("#about"), [status.cluster, status.address, `release ${status.version}`, `up ${duration(since)}`,
    `${count(counts.jobs_in_use)} of ${count(counts.jobs)} jobs in use`].filter(Boolean).join(" \u00b7 "));
  const loud = (status.findings ?? []).filter((finding) => !finding.muted);
  const worst = loud.some((finding) => finding.severity === "error") ? "bad" : loud.length ? "warn" : "good";
  const health = $("#health");
  health.className = `pill ${worst}`;
  const errors = loud.filter((finding) => finding.severity === "error").length;
  const counted = (number, what) => (number ? [`${number} ${what}${number === 1 ? "" : "s"}`] : []);
  say(health, loud.length === 0 ? "\u2713 healthy" : `${errors ? "\u2715" : "!"} ` +
    [...counted(errors, "error"), ...counted(loud.length - errors, "warning")].join(", "));
  document.title = `${loud.length ? `(${loud.length}) ` : ""}${status.cluster ? `${status.cluster} \u00b7 ` : ""}Leat`;
}

function show(state) {
  shown = Date.now();
  showAbout(state);
  jobs.show(state);
  showStages(state);
  workers.show(state);
  showNotes(state);
  if (performance.now() - asked > HISTORY_MS) look();
  if (!document.body.dataset.shown) performance.mark("shown");
  document.body.dataset.shown = state.at_ms;
}

$("#minutes").addEventListener("change", look);
new Live({
  state: show,
  happened: (told) => {
    events.add(told);
    charts.happened(events.events);
  },
  connection: (word) => {
    const element = $("#connection");
    element.className = `pill ${word}`;
    if (element.dataset.word === word) return;
    element.dataset.word = word;
    element.replaceChildren(h("i", { "aria-hidden": true }, word === "live" ? "\u25cf" : "\u25cb"),
      ` ${WORDS[word]}${word === "apart" && shown ? ` (as of ${clock(shown)})` : ""}`);
  },
});
