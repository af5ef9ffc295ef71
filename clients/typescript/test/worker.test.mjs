// Workers against a server that misbehaves as told.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { AttemptEnded, FinalError, RetryableError, Worker } from "taskledger/worker";
import { UnauthorizedError } from "taskledger";
import { stepClock } from "./clock.mjs";
import { FakeServer, frame } from "./fake.mjs";

const servers = [];
after(async () => {
  for (const server of servers) await server.stop().catch(() => {});
});

async function serve(options) {
  const server = await new FakeServer(options).start();
  servers.push(server);
  return server;
}

function worker(server, options = {}) {
  const entries = [];
  const made = new Worker({ url: server.url, log: (entry) => entries.push(entry), name: "w", ...options });
  made.entries = entries;
  return made;
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

for (const connection of ["socket", "poll"]) {
  test(`${connection}: outcomes of every kind`, async () => {
    const server = await serve();
    const w = worker(server, { connection, concurrency: 4 })
      .method("double", async ({ n }) => ({ n: n * 2 }))
      .method("sync", () => ({ sync: true }))
      .method("nothing", async () => {})
      .method("retry", async () => { throw new RetryableError("not now"); })
      .method("never", async () => { throw new FinalError("never"); })
      .method("bug", () => { throw new TypeError("a bug"); })
      .method("text", async () => "text")
      .method("cyclic", async () => { const o = {}; o.o = o; return o; })
      .method("refused", async () => ({ refuse: true }));
    const run = w.run();
    const ids = Object.fromEntries(["double", "sync", "nothing", "retry", "never", "bug", "text", "cyclic", "refused"].map((m) => [m, server.offer(m, { n: 21 })]));
    await server.until(() => server.outcomes.size === 9);
    const of = (m) => server.outcomes.get(ids[m]);
    assert.deepEqual(of("double"), [["complete", { n: 42 }]]);
    assert.deepEqual(of("sync"), [["complete", { sync: true }]]);
    assert.deepEqual(of("nothing"), [["complete", {}]]);
    assert.deepEqual(of("retry"), [["fail", "not now", true]]);
    assert.deepEqual(of("never"), [["fail", "never", false]]);
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

for (const connection of ["socket", "poll"]) {
  test(`${connection}: the last progress is told, whole and once the server records it`, async () => {
    const server = await serve({ leaseSeconds: 1 });
    let ctx;
    let finish;
    // Renewed thrice a second, so that some renewals come while the server would drop progress.
    const w = worker(server, { connection, leaseSeconds: 1 }).method("tells", (_, context) => {
      ctx = context;
      return new Promise((resolve) => (finish = resolve));
    });
    void w.run();
    server.offer("tells");
    await server.until(() => ctx !== undefined);
    ctx.progress(0.1, "first");
    await server.until(() => server.progress.length === 1);
    server.faults.set("tasks.renew", ["drop", { code: -32013, message: "Too busy", data: { retry_after_ms: 10 } }]);
    ctx.progress(0.2, "second");
    ctx.progress(0.3, `x${"🦀".repeat(2000)}`);
    await server.until(() => server.progress.at(-1)[0] === 0.3, 8000);
    assert.equal(server.progress.at(-1)[1], `x${"🦀".repeat(999)}`);
    await sleep(1100);
    ctx.progress(0.4, "half \ud83e of a crab");
    await server.until(() => server.progress.at(-1)[0] === 0.4, 8000);
    assert.equal(server.progress.at(-1)[1], "half \ufffd of a crab");
    finish();
    await server.until(() => w.held === 0);
    await w.stop();
  });

  test(`${connection}: an output that the server cannot read fails the task at once`, async () => {
    const server = await serve();
    const nested = (levels) => JSON.parse('{"a":'.repeat(levels) + "1" + "}".repeat(levels));
    const endless = {};
    let end = endless;
    for (let i = 0; i < 100_000; i++) end = end.a = {};
    const outputs = {
      large: [{ a: "x".repeat(16 * 1024 * 1024) }, /^the output has \d+ bytes of JSON: at most 16776192 are accepted$/],
      surrogate: [{ a: "\\\ud800" }, /lone surrogate \\ud800, expected Unicode text/],
      key: [{ "\udfff": 1 }, /lone surrogate \\udfff/],
      deep: [nested(101), /nested too deep: at most 100 levels are accepted/],
      endless: [endless, /nested too deep: at most 100 levels are accepted/],
      nan: [{ a: [Number.NaN] }, /`0` is NaN, expected a finite number/],
      infinite: [{ a: Infinity }, /`a` is Infinity, expected a finite number/],
      array: [[1], /a value of type `array`, expected an object/],
      date: [new Date(0), /a value of type `string`, expected an object/],
      bigint: [{ a: 1n }, /^the output is no JSON: /],
    };
    const fine = { deepest: nested(100), wide: { a: Array.from({ length: 200 }, (_, i) => [{ i }]) }, escaped: { a: "\\ud800 🦀 {[\"" }, nothing: { a: null } };
    const w = worker(server, { connection, concurrency: 4 });
    for (const [name, [output]] of Object.entries(outputs)) w.method(name, () => output);
    for (const [name, output] of Object.entries(fine)) w.method(name, () => output);
    void w.run();
    const ids = Object.fromEntries([...Object.keys(outputs), ...Object.keys(fine)].map((name) => [name, server.offer(name)]));
    await server.until(() => server.outcomes.size === Object.keys(ids).length);
    for (const [name, [, said]] of Object.entries(outputs)) {
      const [[kind, error, retryable]] = server.outcomes.get(ids[name]);
      assert.deepEqual([kind, retryable], ["fail", false], name);
      assert.match(error, said);
    }
    for (const [name, output] of Object.entries(fine)) assert.deepEqual(server.outcomes.get(ids[name]), [["complete", output]]);
    await server.until(() => w.held === 0);
    await w.stop();
  });

  test(`${connection}: a completion that is refused for good fails the task, and a refused failure is given up`, async () => {
    const server = await serve({
      http: (_, response, text) => text.includes("proxy") && text.includes("tasks.complete") && (response.writeHead(413), response.end("<html>too large</html>"), true),
    });
    const w = worker(server, { connection, concurrency: 1 })
      .method("one", async () => ({ a: 1 }))
      .method("proxy", async () => ({ proxy: "x".repeat(100_000) }));
    void w.run();
    const errors = [{ field: "body", reason: "too odd", expected: "JSON text" }];
    for (const code of [-32700, -32600, -32602]) {
      server.faults.set("tasks.complete", [{ code, message: "No", data: { errors } }]);
      const id = server.offer("one");
      await server.until(() => server.outcomes.has(id));
      assert.deepEqual(server.outcomes.get(id), [["fail", "the output was refused: body: too odd, expected JSON text", false]]);
    }
    const large = server.offer("proxy");
    await server.until(() => server.outcomes.has(large));
    assert.match(server.outcomes.get(large)[0][1], /^the output was refused: HTTP 413/);
    const [completions, failures] = [server.called("tasks.complete").length, server.called("tasks.fail").length];
    server.faults.set("tasks.complete", [{ code: -32600, message: "No" }]);
    server.faults.set("tasks.fail", [{ code: -32602, message: "No" }]);
    server.offer("one");
    await server.until(() => server.called("tasks.fail").length > failures);
    await server.until(() => w.held === 0);
    await sleep(300);
    assert.equal(server.called("tasks.complete").length, completions + 1);
    assert.equal(server.called("tasks.fail").length, failures + 1);
    assert.equal(w.entries.filter(({ message }) => message === "the outcome was refused").length, 6);
    await w.stop();
  });

  test(`${connection}: errors of handlers arrive as text of whole characters`, async () => {
    const server = await serve();
    const w = worker(server, { connection })
      .method("half", async () => { throw new FinalError("half \ud83e"); })
      .method("long", async () => { throw new FinalError(`x${"🦀".repeat(20_000)}`); })
      .method("odd", async () => { throw Object.create(null); });
    void w.run();
    const [half, long, odd] = ["half", "long", "odd"].map((method) => server.offer(method));
    await server.until(() => server.outcomes.size === 3);
    assert.equal(server.outcomes.get(half)[0][1], "half \ufffd");
    assert.equal(server.outcomes.get(long)[0][1], `x${"🦀".repeat(16_383)}`);
    assert.equal(server.outcomes.get(odd)[0][1], "the handler threw what has no text");
    await w.stop();
  });

  test(`${connection}: a worker whose token is revoked ends with an error, after what it holds has had its grace`, async () => {
    const server = await serve();
    let ended = false;
    const w = worker(server, { connection, pollSeconds: 1, graceMs: 3000 }).method("slow", async () => { await sleep(2500); ended = true; });
    const run = w.run();
    run.catch(() => {});
    server.offer("slow");
    await server.until(() => w.held === 1);
    server.revoke();
    const begun = performance.now();
    await assert.rejects(run, UnauthorizedError);
    assert.ok(ended);
    assert.ok(performance.now() - begun < 15_000);
  });

  test(`${connection}: a worker whose token is replaced goes on`, async () => {
    const server = await serve();
    const w = worker(server, { connection, pollSeconds: 1 }).method("one", async () => {});
    void w.run();
    server.offer("one");
    await server.until(() => server.outcomes.size === 1);
    server.revoke();
    await server.until(() => w.entries.some(({ message }) => message === "the server cannot be reached"));
    server.revoked = false;
    server.offer("one");
    await server.until(() => server.outcomes.size === 2);
    await w.stop();
  });

  test(`${connection}: steps of the clock change nothing`, async () => {
    const server = await serve({ leaseSeconds: 1 });
    let finish;
    const w = worker(server, { connection, leaseSeconds: 1 }).method("slow", () => new Promise((resolve) => (finish = resolve)));
    void w.run();
    const id = server.offer("slow");
    await server.until(() => w.held === 1);
    for (const hours of [1, -1]) {
      const back = stepClock(hours * 3_600_000);
      try {
        const before = server.called("tasks.renew").length;
        await sleep(1500);
        const renewals = server.called("tasks.renew").length - before;
        assert.ok(renewals >= 3 && renewals <= 10, `${renewals}`);
      } finally {
        back();
      }
    }
    finish({ done: true });
    await server.until(() => server.outcomes.has(id));
    assert.deepEqual(server.outcomes.get(id), [["complete", { done: true }]]);
    await w.stop();
  });
}

test("a report in a message that the server could not read goes over POST", async () => {
  const server = await serve();
  const w = worker(server).method("one", async () => ({ one: 1 }));
  void w.run();
  server.faults.set("tasks.complete", ["hang"]);
  const id = server.offer("one");
  await server.until(() => server.called("tasks.complete").length === 1);
  const [{ send }] = server.subscriptions.values();
  send({ jsonrpc: "2.0", error: { code: -32700, message: "Parse error", data: { errors: [] } }, id: null });
  await server.until(() => server.outcomes.has(id));
  assert.deepEqual(server.called("tasks.complete").map(([, , via]) => via), ["socket", "post"]);
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
