// SPDX-License-Identifier: Apache-2.0
//
// The stall strip: a line per consumer, a cell per step of time. The more of it
// the consumer waits, the higher its bar, and the stronger the colour, so that
// a consumer that delays all others stands out.

import { $, color, h, keyed, say, sized } from "./dom.js";
import { clock, percent, shortened, WAITS } from "./format.js";

const LINE = 18;
const MOST = 40, MOST_NARROW = 18;  // letters of a name
const NARROW = 560;
const GAP = 2;
const LEAST = 4;  // of a bar, so that a consumer without waits is visible too
const MOVES = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

// Mixes two colours "#rrggbb".
function mixed(from, to, share) {
  const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `rgb(${[0, 1, 2].map((i) => Math.round(part(from, i) + share * (part(to, i) - part(from, i)))).join(" ")})`;
}

export class Strip {
  constructor() {
    this.canvas = $("#strip canvas");
    this.at = $("#strip-at");
    this.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX, event.offsetY));
    this.canvas.addEventListener("pointerleave", () => say(this.at, ""));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    // Drawing changes what is observed, so it waits for the next frame.
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe($("#strip .strip"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.place = { line: 0, step: 0 };
  }

  show(history) {
    this.history = history;
    const strips = history.strips;
    $("#strip").hidden = strips.length === 0;
    const most = $("#strip .strip").clientWidth < NARROW ? MOST_NARROW : MOST;
    keyed($("#strip .hosts"), strips, (strip) => strip.consumer, () => h("li", {}), (item, strip) => {
      const named = !strip.host || strip.consumer.includes(strip.host);
      const name = named ? strip.consumer : `${strip.consumer} (${strip.host})`;
      say(item, shortened(name, most));
      item.title = name;
    });
    const more = history.consumers - strips.length;
    this.canvas.setAttribute("aria-label", `${strips.length} consumers, those that wait most first` +
      (more > 0 ? `; ${more} more wait less` : "") + ". The arrow keys read it out.");
    this.draw();
  }

  draw() {
    if (!this.history?.strips.length) return;
    const { strips } = this.history;
    const width = Math.max(40, $("#strip .strip").clientWidth - $("#strip .hosts").offsetWidth - 8);
    const height = strips.length * LINE;
    const context = sized(this.canvas, width, height);
    const [none, well, low, high] = [color("empty"), color("strip-well"), color("strip-low"), color("strip-high")];
    strips.forEach(({ waiting }, line) => {
      const cell = width / waiting.length;
      const bottom = (line + 1) * LINE - GAP;
      waiting.forEach((share, i) => {
        const left = Math.floor(i * cell);
        const wide = Math.max(1, Math.floor((i + 1) * cell) - left - (cell > 4 ? 1 : 0));
        if (share === null) {
          context.fillStyle = none;
          return context.fillRect(left, bottom - 2, wide, 1);
        }
        context.fillStyle = share < WAITS ? well : mixed(low, high, share);
        const tall = LEAST + (LINE - GAP - LEAST) * share;
        context.fillRect(left, bottom - tall, wide, tall);
      });
    });
  }

  tell() {
    const { history, place } = this;
    const strip = history?.strips[place.line];
    const share = strip?.waiting[place.step];
    if (share === undefined) return;
    say(this.at, `${strip.consumer}, ${clock(history.begin_ms + place.step * history.step_ms)}: ` +
      (share === null ? "nothing is known" : `waits ${percent(share)} of its time`));
  }

  point(x, y) {
    if (!this.history) return;
    const steps = this.history.rows_per_s.length;
    this.place = { line: Math.floor(y / LINE), step: Math.floor((x / this.canvas.clientWidth) * steps) };
    this.tell();
  }

  key(event) {
    const [right, down] = MOVES[event.key] ?? [];
    if (right === undefined || !this.history) return;
    event.preventDefault();
    const bound = (value, size) => Math.max(0, Math.min(size - 1, value));
    this.place = { line: bound(this.place.line + down, this.history.strips.length),
      step: bound(this.place.step + right, this.history.rows_per_s.length) };
    this.tell();
  }
}
