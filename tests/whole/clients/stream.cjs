// Reads a stream with the npm package `eventsource` until it is ended from outside:
//     node stream.cjs URL NAME...
// One JSON line for each opening, each break, and each event with one of the names.
"use strict";
const { EventSource } = require("eventsource");

const [url, ...names] = process.argv.slice(2);
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const source = new EventSource(url);
source.addEventListener("open", () => say({ open: true }));
source.addEventListener("error", (e) => say({ broken: String(e.message) }));
for (const name of names) {
  source.addEventListener(name, (e) => say({ id: e.lastEventId, event: e.type, data: e.data }));
}
