// Runs over one socket, against the real server.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import { ConnectionError, InvalidParamsError, UnauthorizedError } from "taskledger";
import { SocketClient } from "taskledger/socket";
import { binary, Server } from "./server.mjs";

const options = { skip: binary ? false : "TASKLEDGER_BIN is not set" };
let server;
let runs;

before(async () => {
  if (!binary) return;
  server = await Server.start();
  runs = new SocketClient({ url: server.url });
});
after(async () => {
  runs?.close();
  await server?.stop();
});

const echo = (inputs, more = {}) => ({ name: "echo", schemas: { method: "echo_executor" }, inputs, ...more });
const sleeping = (duration_ms, more = {}) => echo({ duration_ms }, { schemas: { method: "sleep_executor" }, ...more });

test("hundreds of runs at once get their own results", options, async () => {
  const all = await Promise.all(Array.from({ length: 300 }, (_, k) => runs.executeAndWait(echo({ k }))));
  for (const [k, { started, run, results, errors }] of all.entries()) {
    assert.equal(run.id, started.run_id);
    assert.equal(run.state, "completed");
    assert.deepEqual(results, { [started.root_task_id]: { k } });
    assert.deepEqual(errors, {});
  }
  assert.equal(new Set(all.map(({ run }) => run.id)).size, 300);
});

test("a tree, one that fails, a stored one, and one that is too large for a message", options, async () => {
  const tree = [{ id: "root", name: "root" }, echo({ n: 1 }, { id: "a", parent_id: "root" })];
  const { started, results } = await runs.executeAndWait(tree);
  assert.deepEqual(results[started.task_ids.a], { n: 1 });
  const failed = await runs.executeAndWait(sleeping(5000, { params: { timeout_seconds: 0.05 } }));
  assert.equal(failed.run.state, "failed");
  assert.match(failed.errors[failed.started.root_task_id], /time/);
  const { id } = await runs.client.create(echo({ stored: true }));
  const stored = await runs.executeAndWait({ task_id: id });
  assert.deepEqual(stored.results[id], { stored: true });
  const text = "x".repeat(100_000);
  const large = await runs.executeAndWait(echo({ text }));
  assert.equal(large.results[large.started.root_task_id].text.length, text.length);
});

test("refusals are errors of their class, and nobody waits for them", options, async () => {
  await assert.rejects(runs.executeAndWait({ name: "" }), InvalidParamsError);
  const aborted = AbortSignal.timeout(50);
  await assert.rejects(runs.executeAndWait(sleeping(60_000), { signal: aborted }), { name: "TimeoutError" });
});

test("the same key is one run", options, async () => {
  const idempotencyKey = "socket-key-1";
  const [one, other] = await Promise.all([1, 2].map(() => runs.executeAndWait(sleeping(200), { idempotencyKey })));
  assert.equal(one.run.id, other.run.id);
  const later = await runs.executeAndWait(sleeping(200), { idempotencyKey });
  assert.equal(later.run.id, one.run.id);
  assert.equal(later.run.state, "completed");
  assert.deepEqual(later.results, one.results);
});

test("the end is that of the run, also when another one has followed", options, async () => {
  const { id } = await runs.client.create(sleeping(5000, { params: { timeout_seconds: 0.05 } }));
  const first = await runs.executeAndWait({ task_id: id }, { idempotencyKey: "socket-key-2" });
  await runs.executeAndWait({ task_id: id });
  const again = await runs.executeAndWait({ task_id: id }, { idempotencyKey: "socket-key-2" });
  assert.equal(again.run.id, first.run.id);
  assert.equal(again.run.state, "failed");
});

test("runs are started once and waited for across kills of the server", options, async () => {
  const begun = await Promise.all(Array.from({ length: 5 }, async () => (await runs.executeAndWait(echo({}))).run.id));
  assert.equal(begun.length, 5);
  const waiting = [];
  for (let k = 0; k < 2; k++) {
    for (let n = 0; n < 40; n++) waiting.push(runs.executeAndWait(sleeping(10 * n, { name: `kill ${k} ${n}` })));
    await new Promise((resolve) => setTimeout(resolve, 150));
    await server.kill();
    await server.up();
  }
  for (const { run } of await Promise.all(waiting)) assert.equal(run.state, "completed");
  const names = [];
  for await (const { name } of runs.client.list({ root_only: true, limit: 100 })) if (name.startsWith("kill ")) names.push(name);
  assert.equal(names.length, 80);
  assert.equal(new Set(names).size, 80);
});

test("whoever is not let in is told so, and a client that is closed takes nothing", options, async () => {
  const guarded = await Server.start("--auth", "on");
  const strangers = new SocketClient({ url: guarded.url, token: "tl_aaaaaaaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" });
  await assert.rejects(strangers.executeAndWait(echo({})), UnauthorizedError);
  await guarded.stop();
  const nobody = new SocketClient({ url: guarded.url, retryForMs: 300 });
  await assert.rejects(nobody.executeAndWait(echo({})), ConnectionError);
  const closed = new SocketClient({ url: server.url });
  const waiting = closed.executeAndWait(sleeping(60_000));
  setTimeout(() => closed.close(), 100);
  await assert.rejects(waiting, /closed/);
  await assert.rejects(closed.executeAndWait(echo({})), /closed/);
  for (const ms of [0, 1, 3, 10]) {
    const early = new SocketClient({ url: server.url });
    const started = early.executeAndWait(echo({}));
    setTimeout(() => early.close(), ms);
    await started.catch((error) => assert.match(error.message, /closed/));
  }
});

test("a run whose events cannot be told any more is asked for", options, async () => {
  const other = await Server.start();
  const client = new SocketClient({ url: other.url });
  await client.executeAndWait(echo({}));
  const waiting = client.executeAndWait(sleeping(1000), { idempotencyKey: "another-log" });
  await new Promise((resolve) => setTimeout(resolve, 200));
  await other.kill();
  rmSync(other.folder, { recursive: true });
  await other.up();
  const { started, run, results } = await waiting;
  assert.equal(run.id, started.run_id);
  assert.equal(run.state, "completed");
  assert.ok(results[started.root_task_id].slept_ms >= 1000);
  client.close();
  await other.stop();
});
