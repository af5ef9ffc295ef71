// What workers do when the server refuses them or what they say. Part of `worker.test.mjs`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { UnauthorizedError } from "taskledger";
import { FinalError, Suspend } from "taskledger/worker";
import { stepClock } from "./clock.mjs";
import { serve, sleep, worker } from "./workers.mjs";

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
      large: [{ a: "x".repeat(1024 * 1024) }, /^the output has \d+ bytes of JSON: at most 1048576 are accepted$/],
      surrogate: [{ a: "\\\ud800" }, /lone surrogate \\ud800, expected Unicode text/],
      key: [{ "\udfff": 1 }, /lone surrogate \\udfff/],
      deep: [nested(101), /nested too deep: at most 100 levels are accepted/],
      endless: [endless, /nested too deep: at most 100 levels are accepted/],
      nan: [{ a: [Number.NaN] }, /`0` is NaN, expected a finite number/],
      infinite: [{ a: Infinity }, /`a` is Infinity, expected a finite number/],
      array: [[1], /a value of type `array`, expected an object/],
      date: [new Date(0), /a value of type `string`, expected an object/],
      bigint: [{ a: 2n ** 64n }, /`a` is 18446744073709551616n, expected an integer of 64 bits/],
      map: [{ a: new Map([[1, 2]]) }, /`a` is a value of type `Map`/],
      odd: [{ toJSON() { throw Object.create(null); } }, /^the output is no JSON: /],
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

  test(`${connection}: a question that the server cannot read fails the task at once, and its slot is free`, async () => {
    const server = await serve();
    const cyclic = { question: "Which?", context: {} };
    cyclic.context.self = cyclic;
    const questions = {
      bigint: [{ question: "Which?", choices: [{ value: 2n ** 64n }] }, /`value` is 18446744073709551616n, expected an integer of 64 bits/],
      cyclic: [cyclic, /^the question is no JSON: Converting circular structure/],
      odd: [{ question: "Which?", toJSON() { throw Object.create(null); } }, /^the question is no JSON: /],
      nan: [{ question: "Which?", timeout_seconds: Number.NaN }, /`timeout_seconds` is NaN, expected a finite number/],
      surrogate: [{ question: "half \ud83e" }, /^the question has text with the lone surrogate \\ud83e, expected Unicode text$/],
      deep: [{ question: "Which?", context: JSON.parse('{"a":'.repeat(100) + "1" + "}".repeat(100)) }, /^the question is nested too deep: at most 100 levels are accepted$/],
      large: [{ question: "x".repeat(64 * 1024) }, /^the question has \d+ bytes of JSON: at most 65536 are accepted$/],
      array: [["Which?"], /^the question is a value of type `array`, expected an object$/],
    };
    const w = worker(server, { connection, concurrency: 1 }).method("fine", () => { throw new Suspend("Which?"); });
    for (const [name, [question]] of Object.entries(questions)) {
      w.method(name, () => { throw new Suspend(question); });
      w.method(`${name} later`, async () => { throw new Suspend(question); });
    }
    void w.run();
    for (const [name, [, said]] of Object.entries(questions)) {
      for (const method of [name, `${name} later`]) {
        const id = server.offer(method);
        await server.until(() => server.outcomes.has(id));
        const [[kind, error, retryable]] = server.outcomes.get(id);
        assert.deepEqual([kind, retryable], ["fail", false], method);
        assert.match(error, said);
      }
    }
    assert.equal(server.called("tasks.suspend").length, 0);
    const fine = server.offer("fine");
    await server.until(() => server.outcomes.has(fine));
    assert.deepEqual(server.outcomes.get(fine), [["suspend", { question: "Which?" }]]);
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
    // Another attempt may keep the contract of the task.
    for (const [code, retryable] of [[-32700, false], [-32600, false], [-32602, false], [-31024, true], [-31025, true]]) {
      server.faults.set("tasks.complete", [{ code, message: "No", data: { errors } }]);
      const id = server.offer("one");
      await server.until(() => server.outcomes.has(id));
      assert.deepEqual(server.outcomes.get(id), [["fail", "the output was refused: body: too odd, expected JSON text", retryable]]);
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
    assert.equal(w.entries.filter(({ message }) => message === "the outcome was refused").length, 8);
    await w.stop();
  });

  test(`${connection}: an outcome that a proxy refuses is given up when its lease is over, and its slot is free`, async () => {
    let refusal;
    let refused = 0;
    const server = await serve({
      leaseSeconds: 1,
      http: (_, response, text) => text.includes("tasks.complete") && refusal && (refused++, response.writeHead(refusal[0]), response.end(refusal[1]), true),
    });
    // Large, so that it goes over POST. Renewals arrive all the time.
    const w = worker(server, { connection, concurrency: 1, leaseSeconds: 1 }).method("one", async () => ({ a: "x".repeat(100_000) }));
    const errors = () => w.entries.filter(({ level }) => level === "error");
    void w.run();
    for (const each of [[403, "<html>no</html>"], [404, ""], [401, '{"error":"Unauthorized"}'], [200, "<html>log in</html>"]]) {
      const [before, begun] = [errors().length, performance.now()];
      refusal = each;
      refused = 0;
      const id = server.offer("one");
      await server.until(() => errors().length > before);
      assert.ok(refused > 1 && performance.now() - begun > 500, `${each}`);
      assert.equal(errors().at(-1).message, "the outcome could not be reported");
      assert.equal(errors().at(-1)["http.status"], each[0]);
      assert.equal(w.held, 0);
      assert.ok(!server.outcomes.has(id));
      server.expire(id);
      refusal = undefined;
      const next = server.offer("one");
      await server.until(() => server.outcomes.has(next));
    }
    for (const status of [408, 429, 500]) {
      refusal = [status, ""];
      refused = 0;
      const id = server.offer("one");
      await server.until(() => refused >= 6);
      refusal = undefined;
      await server.until(() => server.outcomes.has(id));
    }
    await w.stop();
  });

  test(`${connection}: an outcome that the server fails to take is given up though its lease is renewed`, async () => {
    const server = await serve({ leaseSeconds: 1 });
    const w = worker(server, { connection, concurrency: 1, leaseSeconds: 1 }).method("one", async () => ({}));
    void w.run();
    server.faults.set("tasks.complete", Array(50).fill({ code: -32603, message: "Internal error" }));
    const id = server.offer("one");
    await server.until(() => w.entries.some(({ message }) => message === "the outcome could not be reported"));
    assert.equal(w.held, 0);
    server.faults.clear();
    server.expire(id);
    const next = server.offer("one");
    await server.until(() => server.outcomes.has(next));
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
