// SPDX-License-Identifier: Apache-2.0
//
// A banner for each job: its limit, the numbers behind that, and the one thing
// to change. The charts show the chosen job.

import { $, data, h, keyed, say } from "./dom.js";
import { count, lastName, number, percent, quoted, rate, seconds } from "./format.js";

// Titles of GetBottleneck's limits, a sign for each, and whether all is well.
const LIMITS = {
  trainer: ["the trainer", "\u2713", "good"],
  network: ["network", "\u21c4", "warn"],
  storage: ["storage", "\u26c1", "warn"],
  decode_cpu: ["decode and augment", "\u2699", "warn"],
  decode_gpu: ["decode and augment (GPU)", "\u25a6", "warn"],
  straggler: ["one straggler", "\u2691", "warn"],
  window: ["too small a window", "\u25ad", "warn"],
  source: ["the script's own source", "\u270e", "warn"],
  workers: ["no workers", "\u2715", "bad"],
  unknown: ["not known yet", "?", "dim"],
};
const ADVICE = { good: "Nothing to do: ", dim: "Remedy: " };
const IDLE = ["no consumer", "\u2013", "dim"];

const nameOf = (job) => job.job.spec.name;

function figure(each) {
  const value = number(each.value);
  const unit = each.unit ?? "";
  const share = unit.startsWith("%") ? Math.min(1, value / 100) : null;
  // "the trainer waits for batches" "0 %" "of its time"
  return h("li", {}, h("span", {}, each.what),
    h("p", {}, h("strong", {}, data(value, unit.startsWith("%") ? `${value.toFixed(0)} %` : rate(value))),
      ` ${unit.replace(/^% ?/, "")}`),
    share === null ? null : h("i", { class: "meter", "aria-hidden": true },
      h("i", { style: { width: `${100 * share}%` } })));
}

// Whether the job's epoch does not end: it has as many steps as positions can count.
const STREAM_STEPS = 2 ** 40;
const endless = (job) => number(job.steps_per_epoch) >= STREAM_STEPS;

// "web 80 %, books 20 %": the sources of a mixture, with their shares at its step.
function sources(job) {
  const named = job.job.spec.sources ?? [];
  const weights = job.job.spec.shares?.[0]?.weights ?? [];
  const more = (job.job.datasets?.length ?? 0) - named.length;
  return named.map((each, i) => `${each.name} ${(100 * number(weights[i])).toFixed(1)} %`).join(", ")
    + (more > 0 ? ` and ${count(more)} more` : "");
}

function facts(job) {
  const steps = number(job.steps_per_epoch);
  const step = number(job.step);
  const bad = number(job.bad_samples_total);
  if (number(job.consumers) === 0)
    return [h("div", {}, h("dt", {}, "Steps an epoch"), h("dd", {}, endless(job) ? "without end"
      : data(steps, count(steps))))];
  const list = [
    ["Rate", h("span", {}, data(number(job.rows_per_s), rate(number(job.rows_per_s))), " rows/s")],
    ["Waits", data(number(job.stall_fraction), percent(number(job.stall_fraction)))],
    ["Epoch", data(number(job.epoch), count(number(job.epoch)))],
    ["Step", h("span", {}, data(step, count(step)), steps > 0 && !endless(job) ? ` of ${count(steps)}` : "")],
    sources(job) ? ["Sources", h("span", {}, sources(job))] : null,
    ["Consumers", data(number(job.consumers), count(number(job.consumers)))],
    bad > 0 ? ["Bad samples", h("span", { class: "warn" }, data(bad, count(bad)))] : null,
  ];
  return list.filter(Boolean).map(([title, value]) => h("div", {}, h("dt", {}, title), h("dd", {}, value)));
}

function create(choose) {
  return h("article", { class: "banner" },
    h("button", { class: "choose", onclick: (event) => choose(event.currentTarget.parentElement.dataset.key) },
      h("i", { class: "sign", "aria-hidden": true }), h("span", { class: "name" }), h("span", { class: "limit" })),
    h("p", { class: "summary" }), h("ul", { class: "figures" }), h("p", { class: "advice" }),
    h("dl", { class: "facts" }),
    h("progress", { class: "progress", max: 1, "aria-label": "of the epoch" }));
}

function update(banner, job, verdict, chosen) {
  const name = nameOf(job);
  const [title, sign, tone] = job.failure ? ["given up", "\u2715", "bad"]
    : verdict ? LIMITS[verdict.limit] ?? [verdict.limit, "?", "dim"] : IDLE;
  banner.className = `banner ${tone}${chosen ? " chosen" : ""}`;
  $(".choose", banner).setAttribute("aria-pressed", chosen);
  say($(".sign", banner), sign);
  say($(".name", banner), name);
  const age = verdict ? ` (${Math.floor(seconds(verdict.seen))} s)` : "";
  const known = verdict && verdict.limit !== "unknown" && !job.failure;
  say($(".limit", banner), `${known ? "limited by " : ""}${title}${job.failure ? "" : age}`);
  say($(".summary", banner), job.failure || (verdict ? sentence(verdict) : ""));
  $(".figures", banner).replaceChildren(...(verdict?.figures ?? []).map(figure));
  const advice = $(".advice", banner);
  advice.replaceChildren(...(verdict?.advice ? [h("b", {}, ADVICE[tone] ?? "Change: "),
    verdict.advice.replace(/^nothing here: /, "")] : []));
  $(".facts", banner).replaceChildren(...facts(job));
  const steps = number(job.steps_per_epoch);
  $(".progress", banner).hidden = number(job.consumers) === 0 || endless(job);
  $(".progress", banner).value = steps > 0 ? Math.min(1, number(job.step) / steps) : 0;
}

function sentence(verdict) {
  const text = verdict.summary ?? "";
  const about = verdict.subject && !text.includes(verdict.subject) ? ` (${verdict.subject})` : "";
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${about}.`;
}

// Returns the job that the page's address names; empty: it names none. People
// write addresses, too, so that its escapes may be none.
function named(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

export class Jobs {
  // chosen(name): another job was chosen.
  constructor(chosen) {
    this.told = chosen;
    this.chosen = named(location.hash);
  }

  choose(name) {
    if (this.chosen === name) return;
    this.chosen = name;
    history.replaceState(null, "", `#${encodeURIComponent(name)}`);
    if (this.state) this.show(this.state);
    this.told(name);
  }

  show(state) {
    this.state = state;
    const jobs = state.status.jobs ?? [];
    const verdicts = new Map(state.verdicts.map((each) => [each.job, each]));
    if (!jobs.some((job) => nameOf(job) === this.chosen)) {
      const first = jobs.find((job) => verdicts.has(nameOf(job))) ?? jobs[0];
      if (first || this.chosen) return this.choose(first ? nameOf(first) : "");
    }
    keyed($("#jobs .banners"), jobs, nameOf, () => create((name) => this.choose(name)),
      (banner, job) => update(banner, job, verdicts.get(nameOf(job)), nameOf(job) === this.chosen));
    const more = number(state.counts.jobs) - jobs.length;
    $("#jobs .none").replaceChildren(...(jobs.length > 0 ? [] : ["A training makes them: ",
      h("code", {}, `leat.connect("${state.status.address ?? ""}").job(...)`)]));
    say($("#jobs-title"), jobs.length === 0 ? "Jobs: there are none"
      : more > 0 ? `Jobs (${count(more)} more are not shown)` : "Jobs");
    say($("#job-title"), this.chosen ? `${this.chosen} over time` : "Over time");
    this.commands(state.status.address ?? "", jobs.find((job) => nameOf(job) === this.chosen));
  }

  // The commands that make the contact sheet, and explain its rows.
  commands(address, job) {
    const to = $("#sheet .commands");
    $("#sheet").hidden = job === undefined;
    if (job === undefined) return;
    const where = `leat --coordinator ${quoted(address)}`;
    const at = `--epoch ${number(job.epoch)} --step ${number(job.step)}`;
    const name = lastName(nameOf(job));
    const lines = [`${where} sheet ${at} --rows 64 -o sheet.png ${name}`, `${where} why ${at} --row 0 ${name}`];
    keyed(to, lines.map((text, i) => ({ text, i })), (line) => String(line.i), () => h("div", { class: "command" },
      h("code", {}), h("button", { onclick: copy }, "Copy")), (element, line) => say($("code", element), line.text));
  }
}

async function copy(event) {
  const button = event.currentTarget;
  const code = $("code", button.parentElement);
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    // Without TLS a page may not write to the clipboard.
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
}
