// Calls on a socket with the npm package `ws`, and reads it until it is closed:
//     node calls.cjs URL CALL...
// With the token in TOKEN, if that is set. One JSON line for the opening, the end, and each message.
"use strict";
const WebSocket = require("ws");

const [url, ...calls] = process.argv.slice(2);
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const token = process.env.TOKEN;
const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
const socket = new WebSocket(url, { headers });
socket.on("unexpected-response", (request, answer) => {
  say({ broken: `refused: ${answer.statusCode}` });
  request.destroy();
});
socket.on("open", () => {
  say({ open: true });
  for (const call of calls) socket.send(call);
});
socket.on("message", (message) => say({ id: "", event: "message", data: message.toString() }));
socket.on("close", (code) => say({ broken: `closed: ${code}` }));
// A request that is given up is told as an error, too.
socket.on("error", () => {});
