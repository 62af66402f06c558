// SPDX-License-Identifier: Apache-2.0
//
// The stream of states and events. The browser reconnects by itself, and sends
// the last event that it has. Failures on which it gives up (an answer that is
// not a stream, for example because too many pages are open) are retried from
// here, with single states meanwhile. A page that is not visible has no stream.

const AGAIN_MS = 5000;
const SILENT_MS = 10000;

export class Live {
  // on: {state(state), happened(events), connection(word)}; the words are
  // "live", "connecting" and "apart".
  constructor(on) {
    this.on = on;
    this.last = "";
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    setInterval(() => this.look(), 1000);
    if (!document.hidden) this.open();
  }

  open() {
    this.close();
    this.heard = performance.now();
    this.on.connection("connecting");
    const source = new EventSource(this.last ? `live?after=${encodeURIComponent(this.last)}` : "live");
    this.source = source;
    source.addEventListener("state", (event) => {
      this.heard = performance.now();
      this.on.connection("live");
      this.on.state(JSON.parse(event.data));
    });
    source.addEventListener("happened", (event) => {
      this.last = event.lastEventId;
      this.on.happened(JSON.parse(event.data));
    });
    // The token was revoked, or the session has ended: the page asks for another
    // one.
    source.addEventListener("denied", () => location.reload());
    source.addEventListener("error", () => {
      this.on.connection("apart");
      if (source.readyState === EventSource.CLOSED) this.later();
    });
  }

  close() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.source?.close();
  }

  // Fetches one state, and opens the stream again.
  later() {
    if (this.timer !== undefined) return;
    this.timer = setTimeout(async () => {
      this.timer = undefined;
      try {
        const answer = await fetch("api/state");
        if (answer.status === 401) return location.reload();
        if (answer.ok) this.on.state(await answer.json());
      } catch {
        // No answer; open() notices when there is one again.
      }
      if (!document.hidden) this.open();
    }, AGAIN_MS * (1 + Math.random()));
  }

  // A connection may be lost without an error.
  look() {
    if (document.hidden || this.timer !== undefined || performance.now() < this.heard + SILENT_MS) return;
    this.open();
  }
}
