// The socket of workers: frames of every size in pieces of every size, and servers that fall silent.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { FrameError, FrameReader, textFrames } from "../dist/worker/frames.js";
import { connect, UpgradeRefused, WebSocketConnection } from "../dist/worker/websocket.js";
import { FakeServer, frame, unframe } from "./fake.mjs";

const servers = [];
after(async () => {
  for (const server of servers) await server.stop();
});

async function serve(options) {
  const server = await new FakeServer(options).start();
  servers.push(server);
  return server;
}

const LENGTHS = [0, 1, 125, 126, 127, 65_535, 65_536, 200_000];
const textOf = (length) => "é🦀a\u2028".repeat(Math.ceil(length / 10)).slice(0, length);

test("texts of every length are framed and masked", () => {
  const texts = LENGTHS.map(textOf);
  const [frames, rest] = unframe(textFrames(texts));
  assert.equal(rest.length, 0);
  assert.deepEqual(frames.map(([opcode]) => opcode), texts.map(() => 1));
  assert.ok(frames.every(([, payload], i) => payload.toString() === Buffer.from(texts[i]).toString()));
});

test("frames are read from pieces of every size", () => {
  const texts = LENGTHS.map((length) => Buffer.from(textOf(length)).toString());
  const all = Buffer.concat(texts.map((text) => frame(1, text)));
  for (const size of [1, 7, 1000, 65_536, all.length]) {
    const got = [];
    const reader = new FrameReader({ text: (text) => got.push(text), control: () => assert.fail() });
    for (let at = 0; at < all.length; at += size) reader.push(all.subarray(at, at + size));
    assert.ok(got.length === texts.length && got.every((text, i) => text === texts[i]), `${size}`);
  }
});

test("what breaks the protocol is refused", () => {
  const read = (...bytes) => new FrameReader({ text: () => {}, control: () => {} }).push(Buffer.concat(bytes.map((b) => Buffer.from(b))));
  for (const bad of [[[0xc1, 0]], [[0x81, 0x80, 0, 0, 0, 0]], [frame(2, "binary")], [frame(3, "")], [frame(0, "")], [frame(1, "a", false), frame(1, "b")], [frame(9, "", false)], [[0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0]]]) {
    assert.throws(() => read(...bad), FrameError);
  }
});

test("texts of one turn leave in one write", async () => {
  const server = await serve();
  const connected = await connect(new URL("ws", server.url), {}, 1000);
  let writes = 0;
  const write = connected.socket.write;
  connected.socket.write = (...args) => (writes++, write.apply(connected.socket, args));
  const connection = new WebSocketConnection(connected, { text: () => {}, closed: () => {} });
  for (let i = 0; i < 100; i++) connection.send(`{"jsonrpc":"2.0","id":${i},"method":"x","params":{}}`);
  await server.until(() => server.calls.length === 100);
  assert.equal(writes, 1);
  connection.close();
});

test("a server that is silent is asked, and given up when it does not answer", async () => {
  const server = await serve();
  const connected = await connect(new URL("ws", server.url), {}, 1000);
  let closed;
  const connection = new WebSocketConnection(connected, { text: () => {}, closed: (code, reason) => (closed = [code, reason]) });
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  connection.watch(50, 50);
  assert.equal(connection.isOpen, true);
  await sleep(80);
  connection.watch(50, 50);
  await sleep(20);
  connection.watch(50, 50);
  assert.equal(connection.isOpen, true);
  await sleep(80);
  connection.watch(50, 50);
  assert.deepEqual(closed, [1006, "the server does not answer"]);
});

test("a refused upgrade tells why, and one that is not answered ends", async () => {
  const server = await serve({ refuse: () => "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\n\r\nbusy" });
  const refused = await connect(new URL("ws", server.url), {}, 1000).catch((e) => e);
  assert.ok(refused instanceof UpgradeRefused);
  assert.deepEqual([refused.status, refused.body], [429, "busy"]);
  const silent = await serve();
  silent.server.removeAllListeners("upgrade");
  silent.server.on("upgrade", () => {});
  await assert.rejects(connect(new URL("ws", silent.url), {}, 100), /no socket within 100 ms/);
});
