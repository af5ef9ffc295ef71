// The client against a server that misbehaves as told.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  BusyError, Client, ConnectionError, InternalError, InvalidParamsError, LeaseNotHeldError, MissingOutputError, RpcError, ScheduleChangedError, ScheduleNotFoundError, TaskNotFoundError, UnauthorizedError, UnresolvableInputError, WorkflowNotFoundError,
} from "taskledger";
import { FakeServer } from "./fake.mjs";

const servers = [];
after(async () => {
  for (const server of servers) await server.stop().catch(() => {});
});

async function serve(options) {
  const server = await new FakeServer(options).start();
  servers.push(server);
  return server;
}

const error = (code, data = {}) => ({ code, message: "m", data: { errors: [], ...data } });

test("errors are of the class of their code, with data and violations", async () => {
  const server = await serve();
  const client = new Client({ url: server.url });
  const fault = { field: "limit", reason: "too large", expected: "1 to 1000", actual: 5000, path: ["limit"] };
  for (const [code, Class] of [[-32602, InvalidParamsError], [-32001, TaskNotFoundError], [-31010, LeaseNotHeldError], [-31012, WorkflowNotFoundError], [-31014, ScheduleNotFoundError], [-31015, ScheduleChangedError], [-31022, UnresolvableInputError], [-31024, MissingOutputError], [-32004, UnauthorizedError], [-1, RpcError]]) {
    server.faults.set("tasks.get", [error(code, { errors: [fault], extra: 7 })]);
    const caught = await client.get("x").catch((e) => e);
    assert.equal(caught.constructor, Class);
    assert.equal(caught.name, Class.name);
    assert.equal(caught.code, code);
    assert.equal(caught.data.extra, 7);
    assert.deepEqual(caught.violations, [fault]);
    assert.match(caught.message, /tasks\.get: m \(-?\d+\): limit: too large/);
  }
});

test("a change is repeated under one key when the connection is lost, the server is busy, or the outcome is unknown", async () => {
  const server = await serve({ results: { "tasks.create": () => ({ id: "1", status: "pending" }) } });
  const client = new Client({ url: server.url });
  server.faults.set("tasks.create", ["drop after", "drop", error(-32013, { retry_after_ms: 5 }), error(-32603, { reason: "outcome unknown; retry" })]);
  assert.deepEqual(await client.create({ name: "a" }), { id: "1", status: "pending" });
  const keys = server.called("tasks.create").map(([, , , metadata]) => metadata.idempotency_key);
  assert.equal(keys.length, 5);
  assert.equal(new Set(keys).size, 1);
  await client.create({ name: "a" }, { idempotencyKey: "mine" });
  assert.equal(server.called("tasks.create").at(-1)[3].idempotency_key, "mine");
});

test("an answer to a suspended task is given once, under one key", async () => {
  const server = await serve({ results: { "tasks.respond": (params) => params } });
  const client = new Client({ url: server.url });
  server.faults.set("tasks.respond", ["drop after", "drop"]);
  assert.equal((await client.respond("t", "s", true)).suspension_id, "s");
  const keys = server.called("tasks.respond").map(([, , , metadata]) => metadata?.idempotency_key);
  assert.equal(keys.length, 3);
  assert.equal(typeof keys[0], "string");
  assert.equal(new Set(keys).size, 1);
  await client.respond("t", "s", true, undefined, { idempotencyKey: "mine" });
  assert.equal(server.called("tasks.respond").at(-1)[3].idempotency_key, "mine");
});

test("a workflow document is created once, and read as often as needed", async () => {
  const created = { root_task_id: "1", phases: [], warnings: [], not_acted_on: [] };
  const report = { valid: true, errors: [], warnings: [] };
  const server = await serve({ results: { "workflows.create": () => created, "workflows.validate": () => report } });
  const client = new Client({ url: server.url });
  server.faults.set("workflows.create", ["drop after"]);
  server.faults.set("workflows.validate", ["drop"]);
  assert.deepEqual(await client.workflows.create("a: b", { trigger: { x: 1 }, execute: true }), created);
  assert.deepEqual(await client.workflows.validate("a: b", { strict: true }), report);
  const [first, second, ...more] = server.called("workflows.create");
  assert.deepEqual(first[1], { document: "a: b", trigger: { x: 1 }, execute: true });
  assert.equal(first[3].idempotency_key, second[3].idempotency_key);
  assert.equal(more.length, 0);
  assert.equal(server.called("workflows.validate").length, 2);
});

test("saved workflow documents: every call with its parameters, repeated when the connection is lost, and runs under one key", async () => {
  const calls = [
    ["save", ["a: b", { strict: true, owner: "o" }], { document: "a: b", strict: true, owner: "o" }],
    ["get", ["n", { version: 2, owner: "o" }], { name: "n", version: 2, owner: "o" }],
    ["diff", ["n", { from: 1, to: 2 }], { name: "n", from: 1, to: 2 }],
    ["diff", ["n", { document: { a: "b" } }], { name: "n", document: { a: "b" } }],
    ["delete", ["n", { owner: "" }], { name: "n", owner: "" }],
    ["run", ["n", { version: 1, trigger: { x: 1 }, user_id: "u", execute: false }], { name: "n", version: 1, trigger: { x: 1 }, user_id: "u", execute: false }],
    ["dryRun", ["a: b", { trigger: {}, outputs: { p: { y: 1 } }, strict: false }], { document: "a: b", trigger: {}, outputs: { p: { y: 1 } }, strict: false }],
    ["progress", ["id"], { root_task_id: "id" }],
    ["schemas", [{ document: "a: b", phase: "p" }], { document: "a: b", phase: "p" }],
    ["schemas", [{ name: "n", version: 1 }], { name: "n", version: 1 }],
  ];
  const methodOf = (name) => `workflows.${name === "dryRun" ? "dry_run" : name}`;
  const server = await serve({ results: Object.fromEntries(calls.map(([name]) => [methodOf(name), (params) => ({ of: params, phases: [params] })])) });
  const client = new Client({ url: server.url });
  for (const [name, args, params] of calls) {
    const before = server.called(methodOf(name)).length;
    server.faults.set(methodOf(name), ["drop"]);
    const answer = name === "schemas" ? [params] : { of: params, phases: [params] };
    assert.deepEqual(await client.workflows[name](...args), answer, name);
    const made = server.called(methodOf(name)).slice(before);
    assert.deepEqual(made.map(([, given]) => given), [params, params], name);
    const keys = new Set(made.map(([, , , metadata]) => metadata?.idempotency_key));
    assert.equal(keys.size, 1, name);
    assert.equal(keys.has(undefined), name !== "run", name);
  }
});

test("saved workflow documents and their versions are listed page by page", async () => {
  const server = await serve({
    results: {
      "workflows.list": ({ after }) => (after === "b" ? { workflows: [{ name: "c" }], next_after: null } : { workflows: [{ name: "a" }, { name: "b" }], next_after: "b" }),
      "workflows.versions": ({ before }) => (before === 2 ? { versions: [{ version: 1 }], next_before: null } : { versions: [{ version: 3 }, { version: 2 }], next_before: 2 }),
    },
  });
  const client = new Client({ url: server.url });
  const names = [];
  for await (const { name } of client.workflows.list({ owner: "o", after: "0", limit: 2 })) names.push(name);
  assert.deepEqual(names, ["a", "b", "c"]);
  assert.deepEqual(server.called("workflows.list").map(([, params]) => params), [{ owner: "o", after: "0", limit: 2 }, { owner: "o", after: "b", limit: 2 }]);
  const versions = [];
  for await (const { version } of client.workflows.versions("n", { limit: 2 })) versions.push(version);
  assert.deepEqual(versions, [3, 2, 1]);
  assert.deepEqual(server.called("workflows.versions").map(([, params]) => params), [{ name: "n", limit: 2 }, { name: "n", limit: 2, before: 2 }]);
});

test("schedules: every call with its parameters, repeated when the connection is lost, and runs under one key", async () => {
  const tasks = [{ name: "poll", schemas: { method: "echo_executor" } }];
  const policy = { overlap: "queue", catch_up_seconds: 600, jitter_seconds: 5, max_runs: 3 };
  const zoned = { cron: "0 2 * * *", time_zone: "Europe/Berlin", workflow: { name: "Report", inputs: { q: 1 } } };
  const calls = [
    ["get", [{ owner: "" }]],
    ["update", [{ rrule: "FREQ=DAILY", without: ["end_at", "max_runs"], owner: "o" }]],
    ["update", [{ ...zoned, ...policy }]],
    ["pause", []],
    ["pause", [{ paused: false, note: "n", owner: "o" }]],
    ["delete", [{ expected_version: 3 }]],
    ["runNow", [{ overlap: "allow", owner: "o" }]],
  ];
  const methodOf = (name) => `schedules.${name === "runNow" ? "run_now" : name}`;
  const server = await serve({ results: Object.fromEntries([["create"], ...calls].map(([name]) => [methodOf(name), (params) => ({ of: params })])) });
  const client = new Client({ url: server.url });
  for (const [name, more] of calls) {
    const params = { name: "n", ...more[0] };
    const before = server.called(methodOf(name)).length;
    server.faults.set(methodOf(name), ["drop"]);
    assert.deepEqual(await client.schedules[name]("n", ...more), { of: params }, name);
    const made = server.called(methodOf(name)).slice(before);
    assert.deepEqual(made.map(([, given]) => given), [params, params], name);
    const keys = new Set(made.map(([, , , metadata]) => metadata?.idempotency_key));
    assert.equal(keys.size, 1, name);
    assert.equal(keys.has(undefined), name !== "runNow", name);
  }
  const definition = { every_seconds: 60, tasks, paused: true, note: "n", owner: "o" };
  assert.deepEqual(await client.schedules.create("n", definition), { of: { name: "n", ...definition } });
});

test("changes of schedules that could be refused the second time are made once", async () => {
  const server = await serve({ results: { "schedules.create": () => ({}), "schedules.update": () => ({}) } });
  const client = new Client({ url: server.url });
  for (const [name, more] of [["create", { every_seconds: 60, tasks: [] }], ["update", { expected_version: 1, overlap: "skip" }]]) {
    server.faults.set(`schedules.${name}`, ["drop"]);
    await assert.rejects(client.schedules[name]("n", more), ConnectionError);
    assert.equal(server.called(`schedules.${name}`).length, 1, name);
  }
});

test("schedules are listed page by page", async () => {
  const pages = { 0: { schedules: [{ name: "a" }, { name: "b" }], next_after: "b" }, b: { schedules: [{ name: "c" }], next_after: null } };
  const server = await serve({ results: { "schedules.list": ({ after }) => pages[after] } });
  const names = [];
  for await (const { name } of new Client({ url: server.url }).schedules.list({ owner: "o", after: "0", limit: 2 })) names.push(name);
  assert.deepEqual(names, ["a", "b", "c"]);
  assert.deepEqual(server.called("schedules.list").map(([, params]) => params), [{ owner: "o", after: "0", limit: 2 }, { owner: "o", after: "b", limit: 2 }]);
});

test("labels choose the events of a stream", async () => {
  let asked;
  const server = await serve({
    http: (request, response) => {
      if (!request.url.startsWith("/events")) return false;
      asked = new URL(request.url, "http://x").searchParams;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('id: p1\nevent: task_completed\ndata: {"id":"a"}\n\n');
      return true;
    },
  });
  const labels = { team: "red & blue", empty: "", batch: null };
  for await (const event of new Client({ url: server.url }).events({ labels })) {
    assert.equal(event.id, "p1");
    break;
  }
  assert.deepEqual(asked.getAll("label"), ["team=red & blue", "empty=", "batch"]);
});

test("reads have no key; what might be done twice is not repeated", async () => {
  const server = await serve({ results: { "tasks.get": () => ({}), "webhooks.create": () => ({}) } });
  const client = new Client({ url: server.url });
  server.faults.set("tasks.get", ["drop"]);
  await client.get("x");
  assert.equal(server.called("tasks.get").length, 2);
  assert.equal(server.called("tasks.get")[0][3], undefined);
  server.faults.set("webhooks.create", ["drop"]);
  await assert.rejects(client.call("webhooks.create", { url: "https://x" }), ConnectionError);
  assert.equal(server.called("webhooks.create").length, 1);
});

test("calls give up when their time is over, and tell the key", async () => {
  const server = await serve();
  const client = new Client({ url: server.url, retryForMs: 100 });
  server.faults.set("tasks.delete", Array(1000).fill(error(-32013, { retry_after_ms: 10 })));
  const busy = await client.delete("x").catch((e) => e);
  assert.ok(busy instanceof BusyError);
  assert.equal(busy.idempotencyKey, server.called("tasks.delete")[0][3].idempotency_key);
  server.faults.set("tasks.delete", [error(-32603, { error_id: "e" })]);
  await assert.rejects(client.delete("x"), InternalError);
  const { port } = server;
  await server.stop();
  await assert.rejects(new Client({ url: `http://127.0.0.1:${port}`, retryForMs: 50 }).health(), ConnectionError);
});

test("a server that comes back in time is reached", async () => {
  const server = await serve({ results: { "system.health": () => ({ status: "ok" }) } });
  const client = new Client({ url: server.url });
  const { port } = server;
  await server.stop();
  const health = client.call("unknown.method").catch((e) => e.constructor.name);
  await new Promise((resolve) => setTimeout(resolve, 150));
  await server.start(port);
  assert.equal(await health, "MethodNotFoundError");
});

test("a signal ends a call with its reason, also while it waits to be repeated", async () => {
  const server = await serve();
  const client = new Client({ url: server.url });
  server.faults.set("tasks.get", ["hang"]);
  await assert.rejects(client.get("x", { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  server.faults.set("tasks.get", [error(-32013, { retry_after_ms: 60_000 })]);
  const ending = new AbortController();
  const called = client.get("x", { signal: ending.signal, retryForMs: Infinity });
  setTimeout(() => ending.abort(new Error("enough")), 50);
  await assert.rejects(called, /enough/);
});

test("an answer that takes too long is a lost connection", async () => {
  const server = await serve({ results: { "tasks.get": () => ({ id: "1" }) } });
  server.faults.set("tasks.get", ["hang"]);
  assert.deepEqual(await new Client({ url: server.url, timeoutMs: 50 }).get("x"), { id: "1" });
});

test("what is not taskledger is told from what is", async () => {
  const server = await serve({ http: (_, response) => (response.writeHead(404), response.end("<html>"), true) });
  const caught = await new Client({ url: server.url }).get("x").catch((e) => e);
  assert.ok(caught instanceof ConnectionError);
  assert.equal(caught.status, 404);
});

test("lists follow their cursors, and only as far as the loop goes", async () => {
  const page = ({ cursor }) => ({ tasks: [{ id: `${cursor ?? "0"}a` }, { id: `${cursor ?? "0"}b` }], ...(cursor === "2" ? {} : { next_cursor: String(Number(cursor ?? 0) + 1) }) });
  const server = await serve({ results: { "tasks.list": page } });
  const client = new Client({ url: server.url });
  const ids = [];
  for await (const task of client.list({ status: "failed", limit: 2 })) ids.push(task.id);
  assert.deepEqual(ids, ["0a", "0b", "1a", "1b", "2a", "2b"]);
  assert.deepEqual(server.called("tasks.list").at(-1)[1], { status: "failed", limit: 2, cursor: "2" });
  for await (const task of client.list()) if (task.id === "0b") break;
  assert.equal(server.called("tasks.list").length, 4);
});

test("a stream goes on behind its last event, tells a reset, and bears pieces of any size", async () => {
  const asked = [];
  const told = (id, type, data) => `id: ${id}\r\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  const server = await serve({
    http: (request, response) => {
      if (!request.url.startsWith("/events")) return false;
      asked.push([request.url, request.headers["last-event-id"]]);
      if (asked.length === 2) return response.writeHead(503, { "content-type": "application/json" }), response.end('{"jsonrpc":"2.0","error":{"code":-32013,"message":"m","data":{"errors":[],"retry_after_ms":1}},"id":null}'), true;
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
      const text = asked.length === 1
        ? `id: p0\nretry: 10\n: greeting\n\n${told("p1", "task_status_update", { id: "é1" })}id: p2\n\n`
        : `id: p9\nevent: reset\ndata: {"reason":"archived","cursor":"p9"}\n\n${told("p10", "task_completed", { id: "2" })}`;
      const bytes = Buffer.from(text);
      let at = 0;
      const step = () => {
        if (at >= bytes.length) return asked.length === 1 ? response.end() : undefined;
        response.write(bytes.subarray(at, ++at));
        setImmediate(step);
      };
      step();
      return true;
    },
  });
  const reconnects = [];
  const got = [];
  for await (const event of new Client({ url: server.url }).events({ flow: "f", types: ["task_completed", "task_status_update"], from: "beginning" }, { onReconnect: (e) => reconnects.push(e.constructor.name) })) {
    got.push([event.type, event.id, event.data.id ?? event.data.reason]);
    if (got.length === 3) break;
  }
  assert.deepEqual(got, [["task_status_update", "p1", "é1"], ["reset", "p9", "archived"], ["task_completed", "p10", "2"]]);
  assert.deepEqual(asked.map(([, last]) => last), [undefined, "p2", "p2"]);
  assert.equal(asked[0][0], "/events?flow=f&types=task_completed%2Ctask_status_update&from=beginning");
  assert.deepEqual(reconnects, ["ConnectionError", "BusyError"]);
});

test("a stream that is refused throws, and a signal ends one", async () => {
  const server = await serve({
    http: (request, response) => {
      if (request.url.includes("flow=bad")) {
        response.writeHead(400, { "content-type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", error: error(-32602), id: null }));
      } else if (request.url.startsWith("/events")) response.writeHead(200, { "content-type": "text/event-stream" }), response.write(": hello\n\n");
      return true;
    },
  });
  const client = new Client({ url: server.url });
  await assert.rejects(client.events({ flow: "bad" }).next(), InvalidParamsError);
  await assert.rejects(client.events({}, { signal: AbortSignal.timeout(50) }).next(), { name: "TimeoutError" });
});

test("a run is followed to its end across lost connections", async () => {
  let opened = 0;
  const run = { id: "r", state: "completed", counts: {} };
  const started = { root_task_id: "t", run_id: "r", status: "started" };
  const keys = new Set();
  const server = await serve({
    http: (_, response, text) => {
      const call = JSON.parse(text);
      const answer = (result) => `data: ${JSON.stringify({ jsonrpc: "2.0", result, id: call.id })}\n\n`;
      const stream = (...parts) => (response.writeHead(200, { "content-type": "text/event-stream" }), parts.forEach((part) => response.write(part)));
      const event = (data) => `id: p\nevent: task_status_update\ndata: ${JSON.stringify(data)}\n\n`;
      if (call.method === "tasks.get") return response.end(JSON.stringify({ jsonrpc: "2.0", result: { id: "t", result: { a: 1 } }, id: call.id })), true;
      if (call.method === "tasks.execute") keys.add(call.metadata.idempotency_key);
      switch (++opened) {
        case 1: response.destroy(); break;
        case 2: stream(answer(started), event({ status: "in_progress" })); setTimeout(() => response.destroy(), 20); break;
        case 3: stream(answer({ task: {}, run: { ...run, state: "running" } })); setTimeout(() => response.destroy(), 20); break;
        default: stream(answer({ task: {}, run: { ...run, state: "running" } }), event({ status: "completed", final: true, run })), response.end();
      }
      return true;
    },
  });
  const events = [];
  const finished = await new Client({ url: server.url }).executeAndWait({ name: "a" }, { onEvent: (event) => events.push(event.data.status) });
  assert.deepEqual(finished, { started, run, task: { id: "t", result: { a: 1 } } });
  assert.equal(keys.size, 1);
  assert.equal(opened, 4);
  assert.deepEqual(events, ["in_progress", "completed"]);
});

test("dates are sent as text, and one without a time is refused before it is sent", async () => {
  const server = await serve({ results: { "tasks.create": () => ({ id: "1", status: "pending" }) } });
  const client = new Client({ url: server.url });
  const at = new Date("2027-01-02T09:30:00+02:00");
  await client.create({ name: "later", start_at: at, params: { deadline: at }, schemas: null });
  const [[, sent]] = server.called("tasks.create");
  assert.deepEqual([sent.start_at, sent.params.deadline, sent.schemas], ["2027-01-02T07:30:00.000Z", "2027-01-02T07:30:00.000Z", null]);
  const wrong = async () => client.create({ name: "never", params: { deadline: new Date("soon") } });
  await assert.rejects(wrong, (error) => error instanceof RangeError && error.message.startsWith("deadline: "));
  assert.equal(server.called("tasks.create").length, 1);
});
