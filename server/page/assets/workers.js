// SPDX-License-Identifier: Apache-2.0
//
// A tile for each worker. While trainers wait for rows its colour and its sign
// compare its capacity with the median of its class; its actual rate follows
// the shards that it owns. The arrow keys move between tiles.

import { $, data, h, keyed, say } from "./dom.js";
import { bytes, count, duration, milliseconds, number, percent, rate, shortened, WAITS, word } from "./format.js";

// The states of a tile: sign, meaning, and meaning for several.
const KINDS = {
  lost: ["\u2715", "lost", "lost"],
  failing: ["!", "cannot read its storage, or decodes otherwise", "cannot read their storage, or decode otherwise"],
  draining: ["\u2193", "drains", "drain"],
  slow: ["\u25bc", "could make less than half of its class", "could make less than half of their class"],
  slower: ["\u25bd", "could make less than four fifths of its class",
    "could make less than four fifths of their class"],
  usual: ["", "works", "work"],
  faster: ["\u25b2", "could make more than six fifths of its class", "could make more than six fifths of their class"],
  idle: ["\u00b7", "nothing is asked of it", "nothing is asked of them"],
};
const NAME = 13;  // letters that fit into a large tile
// Up to this many tiles have room for names and rates.
const LARGE = 48;

function kindOf(worker, of, waits) {
  if (worker.state === "WORKER_STATE_LOST") return "lost";
  if (worker.storage_failures?.length || worker.decoders_differ) return "failing";
  if (worker.state === "WORKER_STATE_DRAINING") return "draining";
  if (of.median_rows_per_s <= 0 && number(worker.stats?.rows_per_s) <= 0) return "idle";
  const own = number(worker.stats?.capacity_rows_per_s);
  const median = of.median_capacity_rows_per_s;
  if (!waits || own <= 0 || median <= 0) return "usual";
  if (own < 0.5 * median) return "slow";
  if (own < 0.8 * median) return "slower";
  return own > 1.2 * median ? "faster" : "usual";
}

const fact = (title, ...value) => h("div", {}, h("dt", {}, title), h("dd", {}, value));

// `now_ms` is by the coordinator's clock, like all times. The last statistics of
// a lost worker are out of date.
function details(worker, now_ms) {
  const lost = worker.state === "WORKER_STATE_LOST";
  const stats = worker.stats ?? {};
  const hits = number(stats.cache_hits_total);
  const asked = hits + number(stats.cache_misses_total);
  const joined = (now_ms - Date.parse(worker.joined_at)) / 1000;
  const devices = (worker.devices ?? []).map((device) => device.name).join(", ");
  const failures = (worker.storage_failures ?? []).map((failure) => `${failure.root}: ${failure.error}`);
  return [
    fact("State", word(worker.state, "WORKER_STATE_")),
    fact("Host", `${worker.host ?? "?"}, process ${number(worker.pid)}`),
    fact("Address", worker.address ?? ""),
    fact("Release", worker.version ?? ""),
    fact("Here since", duration(joined)),
    fact("Threads", data(number(worker.threads), count(number(worker.threads)))),
    devices ? fact("GPUs", devices) : null,
    ...(lost ? [] : [
      fact("Rate", data(number(stats.rows_per_s), rate(number(stats.rows_per_s))), " rows/s of ",
        data(number(stats.capacity_rows_per_s), rate(number(stats.capacity_rows_per_s)))),
      fact("Threads work", data(number(stats.busy_fraction), percent(number(stats.busy_fraction))), " of their time"),
      fact("Rows wait", data(number(stats.rows_queued), count(number(stats.rows_queued)))),
    ]),
    fact("A row takes", data(number(stats.row_latency?.p50_ms), milliseconds(number(stats.row_latency?.p50_ms))),
      " p50, ", data(number(stats.row_latency?.p95_ms), milliseconds(number(stats.row_latency?.p95_ms))),
      " p95"),
    fact("Shards", data(number(worker.shards_owned), count(number(worker.shards_owned)))),
    fact("Cache", `${bytes(number(stats.cache_bytes))} of ${bytes(number(stats.cache_limit_bytes))}`,
      asked > 0 ? `, ${percent(hits / asked)} hits` : ""),
    fact("Memory", bytes(number(stats.rss_bytes))),
    worker.decoders_differ ? fact("Decodes otherwise", worker.decoders_differ) : null,
    failures.length ? fact("Storage", failures.join("; ")) : null,
  ];
}

export class Workers {
  constructor() {
    this.group = $("#workers .tiles");
    this.group.addEventListener("click", (event) => this.open(event.target.closest("button")?.dataset.key));
    this.group.addEventListener("keydown", (event) => this.move(event));
  }

  show(state) {
    this.now_ms = state.at_ms;
    const waits = (state.status.jobs ?? []).some((job) => number(job.stall_fraction) >= WAITS);
    $("#workers .none").replaceChildren(...(state.counts.workers > 0 ? [] : ["There is none. Start one: ",
      h("code", {}, `leat-worker --coordinator ${state.status.address ?? ""}`)]));
    const workers = (state.status.workers ?? []).map((worker, i) => {
      const of = state.classes[state.class_of[i]];
      return { worker, of, kind: kindOf(worker, of, waits) };
    });
    if (this.opened !== undefined) this.look();
    this.group.classList.toggle("large", workers.length <= LARGE);
    const large = workers.length <= LARGE;
    keyed(this.group, workers, (each) => each.worker.name, () => h("button", { class: "tile", tabindex: -1 },
      h("i", { "aria-hidden": true }), h("b", {}), h("span", {})), (tile, each) => this.tile(tile, each, large));
    if (!$("[tabindex='0']", this.group)) this.group.firstElementChild?.setAttribute("tabindex", 0);
    this.legend(workers);
    const counts = state.counts;
    say($("#workers-title"), `Workers: ${count(counts.ready)} ready` +
      (counts.draining ? `, ${count(counts.draining)} drain` : "") +
      (counts.lost ? `, ${count(counts.lost)} lost` : ""));
    const rest = counts.workers - workers.length;
    say($("#workers .hint"), state.classes.map((each) =>
      `${each.name}: ${count(each.ready)} ready, median ${rate(each.median_rows_per_s)} rows/s`).join(" \u00b7 ") +
      (rest > 0 ? ` \u00b7 ${count(rest)} more are counted, and have no tile` : ""));
  }

  tile(tile, { worker, of, kind }, large) {
    const own = number(worker.stats?.rows_per_s);
    const makes = kind === "lost" ? [] : [data(own, rate(own)), " rows/s"];
    const text = `${worker.name}: ${kind === "lost" ? "" : `${rate(own)} rows/s, `}${KINDS[kind][1]} (${of.name})`;
    if (tile.title === text && tile.dataset.large === String(large)) return;
    tile.dataset.large = large;
    tile.className = `tile ${kind}`;
    tile.title = text;
    tile.setAttribute("aria-label", text);
    tile.children[0].textContent = KINDS[kind][0];
    tile.children[1].textContent = large ? shortened(worker.name, NAME) : "";
    tile.children[2].replaceChildren(...(large ? (makes.length > 0 ? makes : [KINDS[kind][1]]) : []));
  }

  legend(workers) {
    const counts = new Map();
    for (const { kind } of workers) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    keyed($("#workers .legend"), Object.keys(KINDS).filter((kind) => counts.has(kind)), (kind) => kind,
      (kind) => h("li", {}, h("i", { class: `swatch tile ${kind}`, "aria-hidden": true }, KINDS[kind][0]),
        h("span", {})),
      (item, kind) => {
        const several = counts.get(kind);
        say(item.children[1], `${count(several)} ${KINDS[kind][several === 1 ? 1 : 2]}`);
      });
    // If all of them work, no sign has to be explained.
    $("#workers .legend").hidden = counts.size === 1 && counts.has("usual");
  }

  move(event) {
    const tiles = [...this.group.children];
    const from = tiles.indexOf(document.activeElement);
    if (from < 0) return;
    const wide = tiles.findIndex((tile) => tile.offsetTop > tiles[0].offsetTop);
    const row = wide < 0 ? tiles.length : wide;
    const to = { ArrowRight: from + 1, ArrowLeft: from - 1, ArrowDown: from + row, ArrowUp: from - row,
      Home: 0, End: tiles.length - 1 }[event.key];
    if (to === undefined || tiles[to] === undefined) return;
    event.preventDefault();
    tiles[from].tabIndex = -1;
    tiles[to].tabIndex = 0;
    tiles[to].focus();
  }

  async open(name) {
    if (name === undefined) return;
    this.opened = name;
    await this.look();
    say($("#worker-said"), this.opened === name ? `${name} is shown below the tiles` : "");
  }

  close() {
    this.opened = undefined;
    $("#worker").replaceChildren();
    say($("#worker-said"), "");
  }

  // Requests the details of one worker; again with each state.
  async look() {
    const name = this.opened;
    try {
      const answer = await fetch(`api/worker?name=${encodeURIComponent(name)}`);
      const worker = answer.ok ? await answer.json() : { name, error: await answer.text() };
      if (name === this.opened) this.fill(worker);
    } catch {
      // The stream notices that there is no answer.
    }
  }

  fill(worker) {
    const to = $("#worker");
    if ($("h3", to)?.textContent !== worker.name)
      to.replaceChildren(h("div", { class: "head" }, h("h3", {}, worker.name),
        h("button", { onclick: () => this.close() }, "Close")), h("dl", { class: "facts" }), h("p", { class: "none" }));
    $("dl", to).replaceChildren(...(worker.error ? [] : details(worker, this.now_ms).filter(Boolean)));
    say($(".none", to), worker.error ?? "");
  }
}
