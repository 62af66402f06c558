// SPDX-License-Identifier: Apache-2.0
//
// The contact sheet: rows of the chosen job, as its trainer gets them. They are
// requested for a minute after the button was pressed, and come as raw pixels.

import { $, h, say } from "./dom.js";
import { count, number } from "./format.js";

const EVERY_MS = 1000;  // between requests
const LOOK_MS = 60_000;  // after the button was pressed

// Converts the API's RGB, in base64, to a canvas's pixels.
function pixels(tile) {
  const rgb = atob(tile.rgb);
  const image = new ImageData(tile.width, tile.height);
  for (let i = 0; i < tile.width * tile.height; ++i) {
    for (let k = 0; k < 3; ++k) image.data[4 * i + k] = rgb.charCodeAt(3 * i + k);
    image.data[4 * i + 3] = 255;
  }
  return image;
}

function picture(tile, row) {
  const canvas = h("canvas", { width: tile.width, height: tile.height, role: "img", "aria-label": `row ${row}` });
  canvas.getContext("2d").putImageData(pixels(tile), 0, 0);
  // A pixel of a picture is one pixel of the screen, or several whole ones.
  const ratio = window.devicePixelRatio || 1;
  canvas.style.width = `${(tile.width * Math.max(1, Math.round(ratio))) / ratio}px`;
  return h("figure", {}, canvas, h("figcaption", { title: tile.label ?? "" }, tile.label ?? `row ${row}`));
}

export class Sheet {
  constructor() {
    this.job = "";
    this.until = 0;  // by performance.now(): a clock may be set back
    this.turn = 0;   // requests of an earlier turn have no effect
    $("#sheet .look").addEventListener("click", () => this.look());
  }

  // Another job was chosen: its rows are shown on request.
  choose(job) {
    if (this.job === job) return;
    this.job = job;
    this.until = 0;
    ++this.turn;
    this.shown = undefined;
    $("#sheet .rows").replaceChildren();
    say($("#sheet .state"), "");
  }

  look() {
    const asking = performance.now() < this.until;
    this.until = performance.now() + LOOK_MS;
    if (!asking) this.ask(++this.turn);
  }

  async ask(turn) {
    try {
      const answer = await fetch(`api/sheet?${new URLSearchParams({ job: this.job })}`);
      const told = answer.ok ? await answer.json() : await answer.text();
      if (turn !== this.turn) return;
      if (!answer.ok) {
        this.until = 0;
        this.shown = undefined;
        say($("#sheet .state"), answer.status === 403 || answer.status === 401
          ? "Rows are for who may pull them: sign in with an access token of role trainer." : told);
        return;
      }
      this.show(told);
    } catch {
      // The stream notices that there is no answer.
    }
    setTimeout(() => {
      if (turn === this.turn && performance.now() < this.until) this.ask(turn);
    }, EVERY_MS);
  }

  show({ consumers, sheet }) {
    if (sheet === null) {
      say($("#sheet .state"), consumers ? "Waiting for the next batch \u2026" : "Nobody pulls the rows of this job.");
      return;
    }
    const at = `epoch ${count(number(sheet.epoch))}, step ${count(number(sheet.step))}, of ${sheet.consumer}`;
    if (sheet.number === this.shown) return;
    this.shown = sheet.number;
    const tiles = sheet.tiles ?? [];
    say($("#sheet .state"), sheet.why_not ? `No pictures: ${sheet.why_not}`
      : `${at}: the first ${tiles.length} rows of ${sheet.field}${sheet.note ? `, ${sheet.note}` : ""}`);
    $("#sheet .rows").replaceChildren(...tiles.map(picture));
  }
}
