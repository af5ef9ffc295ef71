// Reads a stream with the npm package `eventsource` until it is ended from outside:
//     node stream.cjs URL NAME...
// With the token in TOKEN, if that is set. One JSON line for each opening, each break, and each event with one of the names.
"use strict";
const { EventSource } = require("eventsource");

const [url, ...names] = process.argv.slice(2);
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const token = process.env.TOKEN;
const source = new EventSource(url, {
  fetch: (input, init) => {
    const shown = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return fetch(input, { ...init, headers: { ...init.headers, ...shown } });
  },
});
source.addEventListener("open", () => say({ open: true }));
source.addEventListener("error", (e) => say({ broken: String(e.message) }));
for (const name of names) {
  source.addEventListener(name, (e) => say({ id: e.lastEventId, event: e.type, data: e.data }));
}
