// SPDX-License-Identifier: Apache-2.0
//
// Lines over time, by dygraphs: a job's rate, and how long its consumers wait
// for a batch; with marks at events.

import { $, color, say } from "./dom.js";
import { clock, milliseconds, rate, round } from "./format.js";

/* global Dygraph */

// The events that get a mark: assignments of shards do not.
const MARKED = /^(coordinator|worker|workers|job|finding|consumer)\./;
const SIGNS = { error: "\u2715", warn: "!", info: "\u2022" };
const RANKS = ["info", "warn", "error"];
const MAX_MARKS = 40;
const LEAST_MS = 60_000;  // of an axis

// The legend's plugin measures by an inline style, which the page's policy
// forbids; the captions show the same.
function withoutLegend() {
  if (Dygraph.Plugins?.Legend) Dygraph.PLUGINS = Dygraph.PLUGINS.filter((each) => each !== Dygraph.Plugins.Legend);
}

// Labels a line of the time axis, with seconds if lines are closer than a
// minute. dygraphs passes the granularity.
const dated = (time, granularity) =>
  clock(time).slice(0, granularity < Dygraph.Granularity.MINUTELY ? 8 : 5);

function options(labels, colors, text, output) {
  return {
    labels: ["time", ...labels],
    colors: colors.map(color),
    legend: "never",
    strokeWidth: 1.75,
    series: Object.fromEntries(labels.slice(1).map((label) => [label, { strokePattern: [6, 3] }])),
    connectSeparatedPoints: false,
    includeZero: true,
    fillGraph: labels.length === 1,
    fillAlpha: 0.12,
    gridLineColor: color("line"),
    axisLineColor: color("line"),
    gridLineWidth: 0.5,
    axisLabelFontSize: 11,
    highlightCircleSize: 3.5,
    rightGap: 8,
    yRangePad: 4,
    axes: {
      x: { axisLabelFormatter: dated, axisLabelWidth: 60, pixelsPerLabel: 75 },
      y: {
        axisLabelFormatter: (value) => round(text(value).replace(" ms", "")),
        axisLabelWidth: 48,
        pixelsPerLabel: 30,
      },
    },
    highlightCallback: (event, time, points) =>
      say(output, `${clock(time)}: ${points.filter((point) => Number.isFinite(point.yval))
        .map((point) => (labels.length > 1 ? `${point.name} ` : "") + text(point.yval)).join(", ")}`),
    unhighlightCallback: () => say(output, ""),
    interactionModel: {},
  };
}

// Returns the part of /api/history since the job's first row; a young job gets
// a full minute, with the future part empty.
export function fromFirstRow(history) {
  const rates = history.rows_per_s;
  const row = rates.findIndex((rate) => rate > 0);
  const first = row >= 0 ? row : rates.findIndex((rate) => rate !== null);
  if (first < 0) return history;
  const least = Math.min(rates.length, Math.ceil(LEAST_MS / history.step_ms));
  const cut = (series) => [...series.slice(first), ...Array(Math.max(0, least - series.length + first)).fill(null)];
  return { ...history,
    begin_ms: history.begin_ms + first * history.step_ms,
    rows_per_s: cut(rates),
    wait_p50_ms: cut(history.wait_p50_ms),
    wait_p95_ms: cut(history.wait_p95_ms),
    strips: history.strips.map((strip) => ({ ...strip, waiting: cut(strip.waiting) })) };
}

// Describes a line in words.
const spoken = (label, values, text) => (values.length === 0 ? `${label}: nothing is known`
  : `${label}: ${text(values.at(-1))} at last, from ${text(Math.min(...values))} to ${text(Math.max(...values))}`);

export class Charts {
  constructor() {
    withoutLegend();
    this.charts = [];
    this.marks = [];
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  // history: from /api/history.
  show(history) {
    this.history = history;
    const { begin_ms: begin, step_ms: step } = history;
    this.window = [begin, begin + step * history.rows_per_s.length];
    const at = (i) => new Date(history.begin_ms + i * history.step_ms);
    const rows = (...series) => series[0].map((_, i) => [at(i), ...series.map((each) => each[i])]);
    this.draw(0, "rate", rows(history.rows_per_s), ["rows/s"], ["blue"], rate);
    this.draw(1, "wait", rows(history.wait_p50_ms, history.wait_p95_ms), ["p50", "p95"],
      ["blue", "orange"], milliseconds);
    this.annotate();
  }

  draw(number, id, rows, labels, colors, text) {
    const empty = rows.every((row) => row.slice(1).every((value) => value === null));
    $(`#${id}`).classList.toggle("empty", empty);
    const none = labels.map(() => 0);
    const file = empty ? this.window.map((time) => [new Date(time), ...none]) : rows;
    $(`#${id}`).setAttribute("aria-label", labels.map((label, i) =>
      spoken(label, rows.map((row) => row[i + 1]).filter((value) => value !== null), text)).join("; "));
    const chart = this.charts[number];
    if (chart) return chart.updateOptions({ file, dateWindow: this.window });
    this.charts[number] = new Dygraph($(`#${id}`), file,
      { ...options(labels, colors, text, $(`#${id}-at`)), dateWindow: this.window });
  }

  // Colours are the canvas's own, so they change with the style.
  paint() {
    for (const chart of this.charts) chart.destroy();
    this.charts = [];
    if (this.history) this.show(this.history);
  }

  // events: newest first.
  happened(events) {
    this.marks = events.filter((event) => MARKED.test(event.type)).slice(0, MAX_MARKS);
    if (this.history) this.annotate();
  }

  annotate() {
    const { begin_ms: begin, step_ms: step, rows_per_s: known } = this.history;
    const of = (series) => {
      const places = new Map();  // one mark a step: the worst, and how many
      for (const event of this.marks) {
        let i = Math.floor((Date.parse(event.at) - begin) / step);
        if (i < 0 || i >= known.length) continue;
        while (i > 0 && known[i] === null) --i;
        if (known[i] === null) continue;
        const place = places.get(i) ?? { severity: "info", texts: [] };
        if (RANKS.indexOf(event.severity) > RANKS.indexOf(place.severity)) place.severity = event.severity;
        place.texts.push(`${clock(Date.parse(event.at))} ${event.message}`);
        places.set(i, place);
      }
      return [...places].map(([i, place]) => ({
        series,
        x: begin + i * step,
        shortText: SIGNS[place.severity] ?? SIGNS.info,
        text: place.texts.slice(0, 8).join("\n"),
        cssClass: `mark ${place.severity}`,
        attachAtBottom: true,
        width: 16,
        height: 16,
      }));
    };
    this.charts[0]?.setAnnotations(of("rows/s"));
    this.charts[1]?.setAnnotations(of("p50"));
  }
}
