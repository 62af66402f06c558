// SPDX-License-Identifier: Apache-2.0
//
// Formats numbers and times for people.

// A trainer that waits for less of its time is the limit itself.
export const WAITS = 0.05;

// protobuf's JSON leaves out values of 0, and has 64-bit numbers as text.
export const number = (value) => Number(value ?? 0);

const THOUSANDS = ["", " k", " M", " G", " T"];
const BINARY = [" B", " KiB", " MiB", " GiB", " TiB", " PiB"];

function scaled(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) {
    value /= base;
    ++unit;
  }
  const size = Math.abs(value);
  const digits = unit === 0 && Number.isInteger(value) ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return value.toFixed(digits) + units[unit];
}

// 1234567 ─► "1.23 M".
export const count = (value) =>
  value < 10000 ? Math.round(value).toLocaleString("en") : scaled(value, 1000, THOUSANDS);
export const rate = (value) => (value < 1000 ? scaled(value, 1000, [""]) : scaled(value, 1000, THOUSANDS));
export const bytes = (value) => scaled(value, 1024, BINARY);
export const percent = (share) => `${(100 * share).toFixed(0)} %`;

// 0.21 ms, 14 ms, 1.3 s.
export function milliseconds(ms) {
  if (ms === 0) return "0 ms";
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  return `${ms < 1 ? ms.toFixed(2) : ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

// Keeps the beginning and the end of a long name, where similar names differ.
export function shortened(name, most) {
  const letters = [...name];
  const tail = Math.ceil((most - 1) / 2);
  return letters.length <= most ? name
    : `${letters.slice(0, most - 1 - tail).join("")}\u2026${letters.slice(-tail).join("")}`;
}

// "1.50 k" ─► "1.5 k": a number on an axis.
export const round = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");

// 90 s, 12 min, 3 h, 4 d.
export function duration(seconds) {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

// The time of day, in the local time zone.
export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");

// The last part of a past time: "12 s ago".
export const ago = (text, now_ms) => (text ? `${duration((now_ms - Date.parse(text)) / 1000)} ago` : "");

// Converts "6s", protobuf's JSON of a duration, to seconds.
export const seconds = (text) => number(String(text ?? "0").replace(/s$/, ""));

// "WORKER_STATE_LOST" ─► "lost".
export const word = (name, prefix) => (name ?? "").replace(prefix, "").toLowerCase();

// Quotes a word for a shell's command line.
export const quoted = (text) => (/^[\w.:@%+=,/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// Quotes a name that is the last word of a command. After "--" a name that
// begins with "-" is not taken for an option.
export const lastName = (text) => (text.startsWith("-") ? `-- ${quoted(text)}` : quoted(text));
