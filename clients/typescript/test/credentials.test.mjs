// What shows who the caller is goes over https and to this machine only, unless the caller says otherwise.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Client } from "taskledger";
import { SocketClient } from "taskledger/socket";
import { Worker } from "taskledger/worker";
import { serve, worker } from "./workers.mjs";

const KINDS = [Client, Worker, SocketClient];
const TOKENS = ["tl_secret", () => "tl_secret", async () => "tl_secret"];
const ELSEWHERE = ["http://192.0.2.2:8777", "http://ledger.example", "http://localhost.example", "http://127.example", "http://0.0.0.0:8000", "http://[2001:db8::1]", "http://[::ffff:10.0.0.1]"];
const HERE = ["http://127.0.0.1:8000", "http://127.9.9.9", "http://127.1", "http://LOCALHOST:8000", "http://[::1]:8000", "http://[::ffff:127.0.0.1]", "https://ledger.example", "https://192.0.2.2"];

test("credentials are refused on the way to other machines, before anything is sent", () => {
  for (const Kind of KINDS) {
    for (const url of ELSEWHERE) {
      for (const token of TOKENS) {
        assert.throws(() => new Kind({ url, token }), { name: "TypeError", message: /^the token is not sent to .+ unencrypted: use an https URL, or give `insecureToken: true`/ });
      }
      for (const name of ["Authorization", "proxy-authorization", "COOKIE"]) {
        const made = () => new Kind({ url, headers: { "x-a": "b", [name]: "hunter2" } });
        assert.throws(made, (error) => error instanceof TypeError && error.message.includes(`the header \`${name}\` is not sent to`) && !error.message.includes("hunter2"));
      }
      new Kind({ url, token: "tl_secret", insecureToken: true });
      assert.throws(() => new Kind({ url, token: "tl_secret", insecureToken: false }), TypeError);
    }
  }
});

test("they go to this machine and over https, and what is no credential goes everywhere", () => {
  for (const Kind of KINDS) {
    for (const url of HERE) for (const token of TOKENS) new Kind({ url, token });
    for (const url of ELSEWHERE) for (const token of [undefined, ""]) new Kind({ url, token, headers: { "x-a": "b" } });
  }
});

test("an address that would make credentials by itself is refused", () => {
  for (const Kind of KINDS) {
    for (const url of ["http://u:p@127.0.0.1:8000", "https://u@ledger.example"]) {
      assert.throws(() => new Kind({ url }), { name: "TypeError", message: /^url must have no credentials/ });
    }
  }
});

// 0.0.0.0 is a host that is not known to be this machine, and that Linux connects to this machine.
test("with consent they are sent: by calls, events, polls, and sockets", { skip: process.platform !== "linux" }, async () => {
  const shown = [];
  const server = createServer((request, response) => {
    shown.push([request.url.split("?")[0], request.headers.authorization]);
    response.end('{"jsonrpc":"2.0","id":1,"result":{}}');
  });
  server.on("upgrade", (request, socket) => {
    shown.push([request.url, request.headers.authorization]);
    socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const options = { url: `http://0.0.0.0:${server.address().port}`, token: async () => "tl_secret", retryForMs: 0 };
  for (const Kind of KINDS) assert.throws(() => new Kind(options), TypeError);
  assert.deepEqual(shown, []);
  const client = new Client({ ...options, insecureToken: true });
  await client.call("system.whoami");
  const over = new AbortController();
  const reading = client.events({}, { signal: over.signal, onReconnect: () => over.abort() });
  await reading.next().catch(() => {});
  const runs = new SocketClient({ ...options, insecureToken: true });
  await assert.rejects(runs.executeAndWait({ name: "a" }));
  runs.close();
  assert.deepEqual(shown.slice(0, 3), ["/", "/events", "/ws"].map((path) => [path, "Bearer tl_secret"]));
  server.closeAllConnections();
  server.close();
  for (const connection of ["socket", "poll"]) {
    const fake = await serve();
    const url = fake.url.replace("127.0.0.1", "0.0.0.0");
    const w = worker({ url }, { connection, token: "tl_secret", insecureToken: true }).method("m", async () => ({}));
    const run = w.run();
    const id = fake.offer("m");
    await fake.until(() => fake.outcomes.has(id));
    await w.stop();
    await run;
  }
});
