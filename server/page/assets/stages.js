// SPDX-License-Identifier: Apache-2.0
//
// The stages as bars of their activity, and the queues between them.

import { $, data, h, keyed, say, svg } from "./dom.js";
import { count, number, percent, rate, WAITS } from "./format.js";

const STAGES = {
  STAGE_LIST: ["list", "a dataset's records are listed"],
  STAGE_OPEN: ["open", "a file or an object is opened"],
  STAGE_READ: ["read", "a record comes from storage, or from a cache"],
  STAGE_DECODE: ["decode", "on the CPU, with the operators that are fused with it"],
  STAGE_AUGMENT: ["augment", "the other operators on the CPU"],
  STAGE_DEVICE: ["GPU", "groups on GPUs"],
  STAGE_GROUP: ["group", "a group gets its memory, and becomes messages"],
  STAGE_SEND: ["send", "from a finished group to its last byte in the socket"],
  STAGE_RECEIVE: ["receive", "rows are copied to their places"],
  STAGE_TRAIN: ["train", "the trainer has a batch"],
};
const PARTS = [
  ["busy", "busy", "busy_ns_total"],
  ["input", "waits for its input", "input_ns_total"],
  ["output", "waits for room behind it", "output_ns_total"],
  ["idle", "nothing is asked for", "idle_ns_total"],
];

function bar(stage, seconds) {
  const all = Math.max(1, number(stage.places)) * seconds * 1e9;
  const parts = PARTS.map(([name, title, field]) => [name, title, Math.min(1, number(stage[field]) / all)]);
  const text = parts.filter(([, , share]) => share >= 0.005)
    .map(([, title, share]) => `${title}: ${percent(share)}`).join(", ");
  return [h("div", { class: "stack", title: text, "aria-hidden": true },
    parts.map(([name, , share]) => h("i", { class: name, style: { width: `${100 * share}%` } }))), text];
}

const someWait = (state) => (state.status.jobs ?? []).some((job) => number(job.stall_fraction) >= WAITS);

function showStages(state) {
  const seconds = number(state.stages_s);
  const table = $("#stages .waterfall");
  const stages = state.stages.filter((stage) => STAGES[stage.stage] && number(stage.places) > 0);
  table.hidden = stages.length === 0 || seconds === 0;
  $("#stages .legend").hidden = table.hidden;
  say($("#stages .none"), table.hidden ? "No worker has told what it does yet." : "");
  // Waits of stages matter while a trainer waits.
  $("#stages").classList.toggle("waits", someWait(state));
  if (table.hidden) return;
  const head = h("tr", {}, ["Stage", "Places", "Its time", "Busy", "Items/s"].map((title, i) =>
    h("th", { scope: "col", class: i === 1 || i > 2 ? "right" : null }, title)));
  table.replaceChildren(h("thead", {}, head), h("tbody", {}, stages.map((stage) => {
    const [name, what] = STAGES[stage.stage];
    const [stack, text] = bar(stage, seconds);
    const share = number(stage.busy_ns_total) / (Math.max(1, number(stage.places)) * seconds * 1e9);
    return h("tr", {}, h("th", { scope: "row", title: what }, name),
      h("td", { class: "right" }, data(number(stage.places), count(number(stage.places)))),
      h("td", {}, stack, h("span", { class: "unseen" }, text)),
      h("td", { class: "right" }, percent(Math.min(1, share))),
      h("td", { class: "right" }, rate(number(stage.items_total) / seconds)));
  })));
}

const READY = "steps that are ready";
const GPUS = "GPUs' slots in use";

// Rungs, from storage to the trainer: title, content, capacity (0: no bound of
// its own), and how full it was.
function rungs(state) {
  const queue = (title, name) => {
    const stage = state.stages.find((each) => each.stage === name) ?? {};
    return [title, number(stage.queue_depth), number(stage.queue_capacity), state.queues[name] ?? []];
  };
  const total = state.total;
  return [
    queue("records to be read", "STAGE_READ"),
    queue("rows to be decoded", "STAGE_DECODE"),
    ["groups' buffers in use", number(total.buffers_in_use), number(total.buffers_total),
      state.queues.STAGE_GROUP ?? []],
    queue(GPUS, "STAGE_DEVICE"),
    queue("groups to be sent", "STAGE_SEND"),
    queue("rows on their way", "STAGE_RECEIVE"),
    queue(READY, "STAGE_TRAIN"),
  ].filter(([title, depth, room]) => title !== GPUS || room > 0 || depth > 0);
}

const LEAST = 10;  // points across the drawing's width
const HEADROOM = 1.4;  // above the maximum of a queue without a bound
const WIDE = 150;
const BOTTOM = 25;

// Draws an area over the known time: the first seconds are as wide as the last
// five minutes. null: unknown, so the previous value continues.
function sparkline(levels, bounded) {
  const known = levels.slice(Math.max(0, levels.findIndex((level) => level !== null)));
  known.forEach((level, i) => (known[i] = level ?? known[i - 1] ?? 0));
  const most = bounded ? 1 : HEADROOM * Math.max(1, ...known);
  const step = WIDE / Math.max(LEAST, known.length - 1);
  const high = (level) => (BOTTOM - (BOTTOM - 2) * (level / most)).toFixed(1);
  const points = known.map((each, i) => `${(i * step).toFixed(1)},${high(each)}`);
  const end = (Math.max(0, known.length - 1) * step).toFixed(1);
  return [svg("polygon", { points: `0,${BOTTOM} ${points.join(" ")} ${end},${BOTTOM}` }),
    svg("polyline", { points: points.join(" ") })];
}

function newRung() {
  return h("li", {}, h("span", { class: "title" }),
    svg("svg", { viewBox: `0 0 ${WIDE} ${BOTTOM + 1}`, preserveAspectRatio: "none", "aria-hidden": true }),
    h("span", { class: "level" }), h("i", { class: "meter", "aria-hidden": true }, h("i", {})));
}

function showQueues(state) {
  // An empty queue before a waiting trainer is bad; a full one is good.
  const waits = someWait(state);
  keyed($("#queues .ladder"), rungs(state), ([title]) => title, newRung, (rung, [title, depth, room, past]) => {
    const level = room > 0 ? Math.min(1, depth / room) : 0;
    rung.classList.toggle("dry", waits && title === READY && room > 0 && level < 0.1);
    say($(".title", rung), title);
    $(".level", rung).replaceChildren(data(depth, count(depth)), room > 0 ? ` of ${count(room)}` : "");
    const meter = $(".meter", rung);
    meter.hidden = room === 0;
    meter.firstElementChild.style.width = `${100 * level}%`;
    $("svg", rung).replaceChildren(...sparkline(past, room > 0));
  });
}

export function startStages() {
  $("#stages .legend").replaceChildren(...PARTS.map(([name, title]) =>
    h("li", {}, h("i", { class: `swatch ${name}`, "aria-hidden": true }), title)));
}

export function show(state) {
  $("#stages").parentElement.hidden = state.counts.workers === 0 && state.stages.length === 0;
  showStages(state);
  showQueues(state);
}
