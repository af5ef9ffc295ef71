// Workers against a server that misbehaves as told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AttemptEnded, FinalError, RejectedError, RetryableError } from "taskledger/worker";
import { InvalidParamsError, UnauthorizedError } from "taskledger";
import { Attempt } from "../dist/worker/attempt.js";
import { frame } from "./fake.mjs";
import "./refusals.mjs";
import { serve, sleep, worker } from "./workers.mjs";

for (const connection of ["socket", "poll"]) {
  test(`${connection}: outcomes of every kind`, async () => {
    const server = await serve();
    const w = worker(server, { connection, concurrency: 4 })
      .method("double", async ({ n }) => ({ n: n * 2 }))
      .method("sync", () => ({ sync: true }))
      .method("nothing", async () => {})
      .method("retry", async () => { throw new RetryableError("not now"); })
      .method("never", async () => { throw new FinalError("never"); })
      .method("not mine", async () => { throw new RejectedError("not mine"); })
      .method("bug", () => { throw new TypeError("a bug"); })
      .method("text", async () => "text")
      .method("cyclic", async () => { const o = {}; o.o = o; return o; })
      .method("refused", async () => ({ refuse: true }));
    const run = w.run();
    const ids = Object.fromEntries(["double", "sync", "nothing", "retry", "never", "not mine", "bug", "text", "cyclic", "refused"].map((m) => [m, server.offer(m, { n: 21 })]));
    await server.until(() => server.outcomes.size === 10);
    const of = (m) => server.outcomes.get(ids[m]);
    assert.deepEqual(of("double"), [["complete", { n: 42 }]]);
    assert.deepEqual(of("sync"), [["complete", { sync: true }]]);
    assert.deepEqual(of("nothing"), [["complete", {}]]);
    assert.deepEqual(of("retry"), [["fail", "not now", true]]);
    assert.deepEqual(of("never"), [["fail", "never", false]]);
    assert.deepEqual(of("not mine"), [["reject", "not mine"]]);
    assert.deepEqual(of("bug"), [["fail", "a bug", true]]);
    assert.deepEqual(of("text"), [["fail", "the handler returned a value of type `string`, expected an object", false]]);
    assert.match(of("cyclic")[0][1], /^the output is no JSON: Converting circular structure/);
    assert.equal(of("cyclic")[0][2], false);
    assert.deepEqual(of("refused"), [["fail", "the output was refused: output: too odd", false]]);
    await server.until(() => w.held === 0);
    await w.stop();
    assert.equal(await run, "stopped");
  });

  test(`${connection}: a cancelled attempt is aborted, and its outcome is dropped`, async () => {
    const server = await serve({ leaseSeconds: 1 });
    let reason;
    const w = worker(server, { connection, leaseSeconds: 1 }).method("wait", (_, ctx) => new Promise((resolve) => {
      ctx.signal.addEventListener("abort", () => { reason = ctx.signal.reason; resolve({ late: true }); });
    }));
    void w.run();
    const id = server.offer("wait");
    await server.until(() => w.held === 1);
    server.cancel(id, "timed_out");
    await server.until(() => w.held === 0);
    assert.ok(reason instanceof AttemptEnded);
    assert.equal(reason.reason, "timed_out");
    assert.equal(server.outcomes.size, 0);
    assert.equal(server.called("tasks.release").length, 1, "the server is told that nothing works on it any more");
    await w.stop();
  });

  test(`${connection}: leases of running and of waiting attempts are renewed, several in one message`, async () => {
    const server = await serve({ leaseSeconds: 1 });
    const w = worker(server, { connection, leaseSeconds: 1, concurrency: 20 }).method("slow", async () => { await sleep(2200); });
    void w.run();
    await sleep(50);
    for (let i = 0; i < 20; i++) server.offer("slow");
    await server.until(() => server.outcomes.size === 20);
    const renewals = server.called("tasks.renew");
    assert.ok(renewals.length >= 40, `${renewals.length}`);
    if (connection === "socket") assert.ok(server.messages < 20 + 1 + renewals.length / 4, `${server.messages} messages`);
    await w.stop();
  });

  test(`${connection}: a worker that is drained finishes what it has and ends`, async () => {
    const server = await serve();
    const w = worker(server, { connection }).method("slow", async () => { await sleep(200); });
    const run = w.run();
    const id = server.offer("slow");
    await server.until(() => w.held === 1);
    server.drain();
    assert.equal(await run, "drained");
    assert.deepEqual(server.outcomes.get(id), [["complete", {}]]);
  });
}

test("results of siblings are read under the lease", async () => {
  const server = await serve();
  const w = worker(server).method("beside", async (_, { siblingOutput }) => {
    await assert.rejects(siblingOutput("nobody"), InvalidParamsError);
    return { got: await siblingOutput("fetch") };
  });
  void w.run();
  const id = server.offer("beside");
  await server.until(() => server.outcomes.size === 1);
  assert.deepEqual(server.outcomes.get(id), [["complete", { got: { n: 7 } }]]);
  assert.deepEqual(server.called("tasks.sibling_output").map(([, params]) => params.name), ["nobody", "fetch"]);
  await w.stop();
});

test("progress is told, once a second, and renews the lease", async () => {
  const server = await serve();
  const w = worker(server).method("steps", async (_, { progress }) => {
    for (let i = 0; i <= 100; i++) { progress(i / 100, `step ${i}`); await sleep(22); }
  });
  void w.run();
  const begun = performance.now();
  server.offer("steps");
  await server.until(() => server.outcomes.size === 1);
  const told = server.called("tasks.renew").map(([, params]) => params);
  assert.equal(told[0].progress, 0);
  assert.equal(told[0].message, "step 0");
  assert.ok(told.length >= 2 && told.length <= 1 + (performance.now() - begun) / 1000, `${told.length}`);
  await w.stop();
});

test("a lost lease aborts the handler, and nothing is reported", async () => {
  const server = await serve({ leaseSeconds: 0.3 });
  let reason;
  const w = worker(server, { leaseSeconds: 0.3 }).method("wait", async (_, ctx) => {
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    reason = ctx.signal.reason.reason;
    return { stale: true };
  });
  void w.run();
  server.offer("wait");
  await server.until(() => w.held === 1);
  for (const lease of server.leases.values()) lease.lost = true;
  await server.until(() => w.held === 0);
  assert.equal(reason, "lost");
  assert.equal(server.called("tasks.complete").length, 0);
  await w.stop();
});

test("a worker that was paused for longer than its leases is heard of on its socket again, and gets work", async () => {
  const server = await serve({ leaseSeconds: 0.3 });
  let go;
  const stubborn = new Promise((resolve) => (go = resolve));
  const w = worker(server, { connection: "socket", leaseSeconds: 0.3, concurrency: 20 }).method("pause", async ({ first }) => {
    if (!first) return {};
    server.unheard = true;
    for (const lease of server.leases.values()) lease.lost = true;
    for (const until = performance.now() + 500; performance.now() < until; );
    await stubborn;
  });
  void w.run();
  server.offer("pause", { first: true });
  await server.until(() => server.unheard);
  const id = server.offer("pause");
  await server.until(() => server.outcomes.has(id));
  assert.equal(server.called("system.health").length, 1);
  go();
  await w.stop();
});

test("a time-out and a deadline are asked for as soon as they pass, by the clock of the server", async () => {
  const lease = { token: "t", attempt: 1, lease_seconds: 60, expires_at: "2026-01-15T10:31:00.000000Z" };
  const of = (context) => new Attempt({ task: { id: "a" }, input: {}, lease, context }, 1000, () => {}, undefined);
  assert.equal(of({ deadline: null, timeout_seconds: null }).renewAt, 11_000);
  const attempt = of({ deadline: "2026-01-15T10:30:04.500000Z", timeout_seconds: 2 });
  const times = [];
  for (let at = attempt.renewAt; times.push(at) < 5; at = attempt.renewAt) attempt.renewed(at);
  assert.deepEqual(times, [3050, 4000, 5550, 6500, 16_500]);
});

test("an outcome that comes after the lease was lost is refused, logged and dropped", async () => {
  const server = await serve();
  const w = worker(server).method("stalls", async () => {
    for (const lease of server.leases.values()) lease.lost = true;
    return { stale: true };
  });
  void w.run();
  server.offer("stalls");
  await server.until(() => server.called("tasks.complete").length === 1 && w.held === 0);
  const [entry] = w.entries.filter(({ level }) => level === "warn");
  assert.deepEqual([entry.message, entry["lease.reason"]], ["the outcome was refused: the lease is not held", "lost"]);
  await w.stop();
});

test("a worker that cannot renew aborts its handlers when the lease is over, and still offers a result", async () => {
  const server = await serve({ leaseSeconds: 0.4 });
  const w = worker(server, { leaseSeconds: 0.4 }).method("wait", async (_, ctx) => {
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    return { made: true };
  });
  void w.run();
  const id = server.offer("wait");
  await server.until(() => w.held === 1);
  const { port } = server;
  await server.stop();
  await sleep(700);
  assert.equal(w.held, 1);
  await server.start(port);
  await server.until(() => server.outcomes.has(id));
  assert.deepEqual(server.outcomes.get(id), [["complete", { made: true }]]);
  await w.stop();
});

test("a completion whose answer was lost is sent again and counts once", async () => {
  const server = await serve();
  server.faults.set("tasks.complete", ["drop after", { code: -32013, message: "Too busy", data: { retry_after_ms: 20 } }]);
  const w = worker(server).method("one", async () => ({ one: 1 }));
  void w.run();
  const id = server.offer("one");
  await server.until(() => w.held === 0 && server.outcomes.has(id));
  assert.deepEqual(server.outcomes.get(id), [["complete", { one: 1 }]]);
  assert.equal(server.called("tasks.complete").length, 3);
  await server.until(() => server.upgrades === 2);
  server.offer("one");
  await server.until(() => server.outcomes.size === 2);
  await w.stop();
});

test("work goes on after the server was away", async () => {
  const server = await serve();
  const w = worker(server, { concurrency: 3 }).method("slow", async ({ i }) => { await sleep(30); return { i }; });
  void w.run();
  const { port } = server;
  const ids = Array.from({ length: 30 }, (_, i) => server.offer("slow", { i }));
  for (let round = 0; round < 3; round++) {
    await sleep(60);
    await server.stop();
    await sleep(30);
    await server.start(port);
  }
  await server.until(() => ids.every((id) => server.outcomes.has(id)), 15000);
  for (const id of ids) assert.equal(server.outcomes.get(id).length, 1);
  await server.until(() => w.held === 0);
  await w.stop();
});

test("an output that is too large for the socket goes over POST", async () => {
  const server = await serve();
  const w = worker(server).method("big", async ({ n }) => ({ text: "é".repeat(n) }));
  void w.run();
  server.offer("big", { n: 40_000 });
  server.offer("big", { n: 10 });
  await server.until(() => server.outcomes.size === 2);
  assert.deepEqual(server.called("tasks.complete").map(([, , via]) => via).sort(), ["post", "socket"]);
  assert.equal(server.upgrades, 1);
  await w.stop();
});

test("without sockets, a worker polls", async () => {
  const server = await serve({ sockets: false });
  const w = worker(server).method("one", async () => ({}));
  const run = w.run();
  server.offer("one");
  await server.until(() => server.outcomes.size === 1);
  assert.ok(server.called("tasks.claim").length > 0);
  await w.stop();
  assert.equal(await run, "stopped");
});

test("stop finishes within the grace", async () => {
  const server = await serve();
  const w = worker(server, { concurrency: 2 }).method("slow", async () => { await sleep(200); return { done: true }; });
  const run = w.run();
  const ids = [server.offer("slow"), server.offer("slow"), server.offer("slow")];
  await server.until(() => w.held === 2);
  await w.stop(5000);
  assert.equal(await run, "stopped");
  assert.equal(server.outcomes.size, 2);
  assert.ok(!server.outcomes.has(ids[2]));
  assert.equal(server.called("unsubscribe").length, 1);
});

test("what is not finished within the grace is given back", async () => {
  const server = await serve({ keepReleased: true });
  let reason;
  const w = worker(server, { concurrency: 2 })
    .method("heeds", (_, ctx) => new Promise((_, reject) => ctx.signal.addEventListener("abort", () => { reason = ctx.signal.reason.reason; reject(ctx.signal.reason); })))
    .method("ignores", () => new Promise(() => {}));
  void w.run();
  server.offer("heeds");
  server.offer("ignores");
  await server.until(() => w.held === 2);
  await w.stop(50);
  assert.equal(reason, "stopping");
  assert.equal(server.called("tasks.release").length, 2);
  assert.equal(server.outcomes.size, 0);
});

test("credentials are sent with the socket and with calls, and refused ones end the worker", async () => {
  const server = await serve({ refuse: (request) => request.headers.authorization === "Bearer good" ? undefined
    : 'HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n{"jsonrpc":"2.0","error":{"code":-32004,"message":"Unauthorized","data":{"errors":[]}},"id":null}' });
  const bad = worker(server, { token: "bad" }).method("one", async () => {});
  await assert.rejects(bad.run(), UnauthorizedError);
  const w = worker(server, { token: async () => "good" }).method("one", async () => {});
  void w.run();
  server.offer("one");
  await server.until(() => server.outcomes.size === 1);
  assert.equal(server.authorization, "Bearer good");
  await w.stop();
});

test("methods with a declaration are declared first", async () => {
  const server = await serve();
  const w = worker(server).method("one", async () => {}, { description: "Does one thing.", limit: 5 });
  void w.run();
  await server.until(() => server.called("work").length === 1);
  assert.deepEqual(server.calls[0].slice(0, 2), ["workers.declare", { method: "one", description: "Does one thing.", limit: 5 }]);
  await w.stop();
});

test("claims of a new socket wait while handlers of the old one run, and their leases are kept", async () => {
  const server = await serve({ leaseSeconds: 1 });
  let most = 0;
  let now = 0;
  const w = worker(server, { concurrency: 2, leaseSeconds: 1 }).method("slow", async () => { most = Math.max(most, ++now); await sleep(800); now--; });
  void w.run();
  for (let i = 0; i < 4; i++) server.offer("slow");
  await server.until(() => w.held === 2);
  server.cut();
  await server.until(() => w.held === 4);
  await server.until(() => server.outcomes.size === 4);
  assert.equal(most, 2);
  assert.ok([...server.outcomes.values()].every((outcomes) => outcomes.length === 1));
  await w.stop();
});

test("pings are answered, messages in pieces are put together, garbage ends the socket and not the worker", async () => {
  const server = await serve();
  const w = worker(server).method("one", async (input) => input);
  void w.run();
  await server.until(() => server.called("work").length === 1);
  const [socket] = server.sockets;
  socket.write(frame(9, "there?"));
  await server.until(() => server.ponged);
  const subscription = [...server.subscriptions.keys()][0];
  const claim = { task: { id: "pieces", schemas: { method: "one" } }, input: { é: "ü" }, context: {}, lease: { token: "t", attempt: 1, lease_seconds: 60 } };
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "work", params: { subscription, claim } }));
  server.leases.set("t", { task: { id: "pieces" }, subscription });
  const cut = bytes.indexOf("é") + 1;
  const all = Buffer.concat([frame(1, bytes.subarray(0, cut), false), frame(9, ""), frame(0, bytes.subarray(cut))]);
  for (const byte of all) { socket.write(Buffer.from([byte])); await new Promise(setImmediate); }
  await server.until(() => server.outcomes.has("pieces"));
  assert.deepEqual(server.outcomes.get("pieces"), [["complete", { é: "ü" }]]);
  for (const garbage of [frame(1, "no json"), frame(2, "binary"), Buffer.from([0xff, 0x00]), frame(0, "nothing to continue")]) {
    const before = server.upgrades;
    [...server.sockets].at(-1).write(garbage);
    await server.until(() => server.upgrades > before && server.sockets.size === 1);
    server.offer("one");
    const size = server.outcomes.size + 1;
    await server.until(() => server.outcomes.size === size);
  }
  await w.stop();
});

test("a subscription that the server ends is made anew", async () => {
  const server = await serve();
  const w = worker(server).method("one", async () => {});
  void w.run();
  await server.until(() => server.subscriptions.size === 1);
  const [[subscription, { send }]] = server.subscriptions;
  server.subscriptions.clear();
  send({ jsonrpc: "2.0", method: "end", params: { subscription } });
  server.offer("one");
  await server.until(() => server.outcomes.size === 1);
  await w.stop();
});

test("five hundred tasks at once in one worker", async () => {
  const server = await serve();
  const w = worker(server, { concurrency: 500 }).method("slow", async ({ i }) => { await sleep(100); return { i }; });
  void w.run();
  for (let i = 0; i < 2000; i++) server.offer("slow", { i });
  await server.until(() => server.outcomes.size === 2000, 10000);
  await server.until(() => w.held === 0);
  await w.stop();
});

test("leases are renewed while a cancellation is told: at a third of the lease, or of the grace", () => {
  const renewedAfter = (lease_seconds, params) => {
    const claim = { task: { id: "t", schemas: { method: "m" }, params }, input: {}, context: {}, lease: { token: "l", attempt: 1, lease_seconds } };
    const attempt = new Attempt(claim, 5, () => {});
    const first = attempt.renewAt - 5;
    attempt.renewed(100);
    assert.equal(attempt.renewAt - 100, first);
    assert.equal(attempt.endsAt - 100, lease_seconds * 1000);
    return first;
  };
  assert.equal(renewedAfter(60, null), 10_000);
  assert.equal(renewedAfter(15, {}), 5_000);
  assert.equal(renewedAfter(60, { cancel_grace_seconds: 6 }), 2_000);
  assert.equal(renewedAfter(60, { cancel_grace_seconds: 0 }), 1_000);
  assert.equal(renewedAfter(3600, { cancel_grace_seconds: 3600 }), 1_200_000);
});
