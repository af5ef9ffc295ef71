// Workers against the real server: kills and pauses of both in every state.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client, InvalidParamsError, LeaseNotHeldError, MethodNotFoundError, NotSuspendedError } from "taskledger";
import { Suspend, Worker } from "taskledger/worker";
import { stepClock } from "./clock.mjs";
import { binary, Server, until } from "./server.mjs";

let server;
let client;
let why = binary ? undefined : "TASKLEDGER_BIN is not set";
const processes = [];

before(async () => {
  if (!binary) return;
  server = await Server.start();
  client = new Client({ url: server.url });
  await client.workers.methods().catch((error) => {
    if (!(error instanceof MethodNotFoundError)) throw error;
    why = "this server has no workers";
  });
});
after(async () => {
  for (const process of processes) process.kill("SIGKILL");
  await server?.stop();
});

function real(name, body) {
  test(name, async (t) => (why ? t.skip(why) : body(t)));
}

real("a question waits for a person, and the next attempt has the answer", async () => {
  const worker = new Worker({ url: server.url, name: "asks" });
  worker.method("ask", (input, { context }) => {
    if (!context.answers) {
      throw new Suspend({ question: "Which?", response_type: "choice", choices: [{ value: "a" }, { value: "b" }] });
    }
    return { said: context.answers.map((answer) => answer.value) };
  });
  const running = worker.run();
  const { root_task_id: id } = await client.execute([{ name: "a", schemas: { method: "ask", type: "remote" } }]);
  await until(async () => (await client.get(id)).suspension !== undefined, 60_000);
  const { suspension } = await client.get(id);
  await assert.rejects(client.respond(id, suspension.suspension_id, "c"), InvalidParamsError);
  assert.equal((await client.respond(id, suspension.suspension_id, "a")).status, "pending");
  await assert.rejects(client.respond(id, suspension.suspension_id, "b"), NotSuspendedError);
  await until(async () => (await client.get(id)).status === "completed", 60_000);
  assert.deepEqual((await client.get(id)).result, { said: ["a"] });
  const told = [];
  for await (const { type, data } of client.events({ flow: id, types: ["task_suspended", "task_suspension_ended"], from: "beginning" })) {
    told.push([type, data.suspension.suspension_id, data.suspension.question?.question ?? data.suspension.resolution]);
    if (type === "task_suspension_ended") break;
  }
  const { suspension_id } = suspension;
  assert.deepEqual(told, [["task_suspended", suspension_id, "Which?"], ["task_suspension_ended", suspension_id, "responded"]]);
  await worker.stop();
  await running;
});

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A worker in a process; `lines` is what it said. */
function start(name, concurrency = 10, connection = "socket") {
  const script = fileURLToPath(new URL("worker-process.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, server.url, name, String(concurrency), connection], { stdio: ["ignore", "pipe", "inherit"] });
  child.lines = [];
  createInterface(child.stdout).on("line", (line) => child.lines.push(line));
  child.said = (begin) => child.lines.filter((line) => line.startsWith(begin));
  processes.push(child);
  return child;
}

async function end(child, signal = "SIGKILL") {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

/** Starts `count` tasks for workers; their ids. */
async function execute(count, ms, method = "work", params = {}) {
  const tasks = [{ id: "root", name: "root" }];
  for (let i = 0; i < count; i++) {
    tasks.push({ id: `${i}`, name: `${i}`, parent_id: "root", schemas: { method, type: "remote" }, inputs: { ms, i }, params });
  }
  const { task_ids, root_task_id } = await client.execute(tasks);
  return { root: root_task_id, ids: Array.from({ length: count }, (_, i) => task_ids[i]) };
}

async function ended({ root, ids }, ms = 60_000) {
  await until(async () => (await client.get(root)).run?.state !== "running", ms);
  return Promise.all(ids.map((id) => client.get(id)));
}

function worker(options = {}) {
  return new Worker({ url: server.url, name: "in the test", log: () => {}, ...options });
}

for (const connection of ["socket", "poll"]) {
  real(`${connection}: five hundred tasks in one worker`, async () => {
    const w = worker({ connection, concurrency: 500 }).method("fan", async ({ i }) => {
      await sleep(50);
      return { i };
    });
    const run = w.run();
    const tasks = await ended(await execute(500, 0, "fan"));
    tasks.forEach((task, i) => {
      assert.equal(task.status, "completed");
      assert.deepEqual(task.result, { i });
      assert.equal(task.attempt, 1);
    });
    await w.stop();
    assert.equal(await run, "stopped");
  });

  real(`${connection}: what a killed worker held goes to another one`, async () => {
    const a = start("a", 10, connection);
    const flow = await execute(10, 1500);
    await until(() => a.said("begin").length === 10);
    await end(a);
    const b = start("b", 10, connection);
    const tasks = await ended(flow);
    for (const task of tasks) {
      assert.deepEqual(task.result, { by: "b", attempt: 2 });
    }
    await end(b, "SIGTERM");
    assert.deepEqual(b.said("ended"), ["ended stopped"]);
  });

  real(`${connection}: a killed server interrupts no attempt`, async () => {
    const a = start("a", 20, connection);
    const flow = await execute(40, 800);
    await until(() => a.said("begin").length === 20);
    for (let i = 0; i < 3; i++) {
      await server.kill();
      await sleep(300);
      await server.up();
      await sleep(300);
    }
    const tasks = await ended(flow);
    for (const task of tasks) assert.deepEqual(task.result, { by: "a", attempt: task.attempt });
    const first = tasks.filter((task) => task.attempt === 1);
    assert.ok(first.length >= 20, `${first.length} of 40 were done at the first attempt`);
    await end(a, "SIGTERM");
  });
}

for (const connection of ["socket", "poll"]) {
  real(`${connection}: a worker that is gone is given nothing`, async () => {
    const a = start("a", 10, connection);
    await until(() => a.said("log the worker is connected").length === 1);
    await sleep(200);
    await end(a);
    await sleep(200);
    const b = start("b", 10, connection);
    await until(() => b.said("log the worker is connected").length === 1);
    for (const task of await ended(await execute(10, 10))) assert.deepEqual(task.result, { by: "b", attempt: 1 });
    await end(b, "SIGTERM");
  });
}

real("what a worker says that was stopped beyond its lease changes nothing", async () => {
  const a = start("a", 5);
  const flow = await execute(5, 2000);
  await until(() => a.said("begin").length === 5);
  a.kill("SIGSTOP");
  const b = start("b", 5);
  const tasks = await ended(flow);
  for (const task of tasks) assert.deepEqual(task.result, { by: "b", attempt: 2 });
  a.kill("SIGCONT");
  await until(() => a.said("end").length === 5);
  await sleep(300);
  for (const [i, id] of flow.ids.entries()) assert.deepEqual((await client.get(id)).result, tasks[i].result);
  await Promise.all([end(a, "SIGTERM"), end(b, "SIGTERM")]);
  assert.deepEqual(a.said("ended"), ["ended stopped"]);
});

for (const connection of ["socket", "poll"]) {
  real(`${connection}: a cancelled task aborts its handler`, async () => {
    let reason;
    const w = worker({ connection, leaseSeconds: 5 }).method("wait", (_, ctx) =>
      new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject((reason = ctx.signal.reason)))),
    );
    void w.run();
    const flow = await execute(1, 0, "wait");
    await until(() => w.held === 1);
    const begun = performance.now();
    await client.cancel(flow.ids[0], { reason: "enough" });
    await until(() => reason !== undefined);
    if (connection === "socket") assert.ok(performance.now() - begun < 1000);
    assert.equal(reason.reason, "cancelled");
    await until(() => w.held === 0);
    assert.equal((await client.get(flow.ids[0])).status, "cancelled");
    await w.stop();
  });
}

real("steps of the clock of a worker's machine lose no attempt and double none", async () => {
  let began = 0;
  const handler = async () => {
    began++;
    await sleep(9000);
    return { done: true };
  };
  const workers = ["socket", "poll"].map((connection) =>
    worker({ name: connection, connection, concurrency: 2, leaseSeconds: 5 }).method(`steps ${connection}`, handler),
  );
  for (const w of workers) void w.run();
  const flows = [await execute(2, 0, "steps socket"), await execute(2, 0, "steps poll")];
  await until(() => began === 4);
  for (const hours of [1, -1]) {
    const back = stepClock(hours * 3_600_000);
    await sleep(4000);
    back();
  }
  for (const flow of flows) {
    for (const task of await ended(flow)) assert.deepEqual([task.result, task.attempt], [{ done: true }, 1]);
  }
  assert.equal(began, 4);
  await Promise.all(workers.map((w) => w.stop()));
});

real("outputs that the server cannot read fail their tasks at once, and the last progress is seen", async () => {
  const nested = JSON.parse('{"a":'.repeat(101) + "1" + "}".repeat(101));
  const outputs = [{ a: "x".repeat(17 * 1024 * 1024) }, { a: "\ud800" }, nested, { a: Number.NaN }, []];
  const w = worker().method("unreadable", async ({ i }) => outputs[i]);
  void w.run();
  for (const { status, error, attempt } of await ended(await execute(outputs.length, 0, "unreadable", { retry_count: 3 }))) {
    assert.deepEqual([status, attempt], ["failed", 1]);
    assert.match(error, /accepted|expected/);
  }
  await w.stop();
  let finish;
  const teller = worker({ name: "teller" }).method("tells last", async (_, ctx) => {
    ctx.progress(0.1);
    await sleep(300);
    ctx.progress(0.2, "🦀".repeat(1500));
    await new Promise((resolve) => (finish = resolve));
  });
  void teller.run();
  const flow = await execute(1, 0, "tells last");
  await until(async () => (await client.get(flow.ids[0])).progress === 0.2, 5000);
  finish();
  await ended(flow);
  await teller.stop();
});

real("progress is seen by others, and a failure with retries is tried again", async () => {
  const w = worker().method("fails once", async (_, ctx) => {
    ctx.progress(0.25, "a quarter");
    await sleep(100);
    if (ctx.attempt === 1) throw new Error("the first attempt");
    return { attempt: ctx.attempt };
  });
  void w.run();
  const told = [];
  const { task } = await client.executeAndWait(
    { name: "t", schemas: { method: "fails once", type: "remote" }, params: { retry: { max_attempts: 2, initial_delay_ms: 10 } } },
    { onEvent: (event) => event.type === "task_progress_update" && told.push(event.data.progress) },
  );
  assert.deepEqual(task.result, { attempt: 2 });
  assert.deepEqual(told, [0.25, 0.25]);
  await w.stop();
});

real("what a stopping worker gives back is done by another, and uses up no retry", async () => {
  const a = worker({ name: "a", concurrency: 2 }).method("back", () => new Promise(() => {}));
  void a.run();
  const flow = await execute(2, 0, "back");
  await until(() => a.held === 2);
  await a.stop(50);
  const b = worker({ name: "b", concurrency: 2 }).method("back", async () => ({ by: "b" }));
  void b.run();
  for (const task of await ended(flow)) assert.deepEqual(task.result, { by: "b" });
  await b.stop();
});

real("a drained worker finishes and ends", async () => {
  const w = worker({ name: "to be drained" }).method("drained", async () => {
    await sleep(500);
    return {};
  });
  const run = w.run();
  const flow = await execute(1, 0, "drained");
  await until(() => w.held === 1);
  const listed = (await client.workers.list()).find(({ worker }) => worker === "to be drained");
  assert.equal(listed.held, 1);
  assert.equal(listed.connection, "socket");
  assert.equal((await client.workers.drain("to be drained")).draining, true);
  assert.equal(await run, "drained");
  assert.equal((await ended(flow))[0].status, "completed");
});

real("outputs above the limit of the socket, and inputs with every kind of text", async () => {
  const w = worker().method("big", async (input) => ({ ...input, big: "é".repeat(100_000) }));
  void w.run();
  const inputs = { text: 'ü "quoted" \n \u2028 🦀' };
  const { task } = await client.executeAndWait({ name: "t", schemas: { method: "big", type: "remote" }, inputs });
  assert.equal(task.result.text, inputs.text);
  assert.equal(task.result.big.length, 100_000);
  await w.stop();
});

real("declared methods, claims by hand, and repeated outcomes", async () => {
  const declared = await client.workers.declare("by hand", { description: "Done by hand.", defaults: { timeout_seconds: 60 } });
  assert.equal(declared.declared, true);
  const { root_task_id: id } = await client.execute({ name: "t", schemas: { method: "by hand" }, inputs: { a: 1 } });
  const { claims } = await client.workers.claim({ methods: ["by hand"], worker: "hand", wait_seconds: 5, lease_seconds: 5 });
  assert.equal(claims.length, 1);
  const [{ task, input, lease }] = claims;
  assert.equal(task.id, id);
  assert.deepEqual(input, { a: 1 });
  assert.equal((await client.workers.renew(id, lease.token, { progress: 0.5, message: "half" })).cancel_requested, false);
  const first = await client.workers.complete(id, lease.token, { b: 2 });
  assert.deepEqual(await client.workers.complete(id, lease.token, { b: 2 }), first);
  await assert.rejects(client.workers.complete(id, lease.token, { b: 3 }), LeaseNotHeldError);
  await assert.rejects(client.workers.fail(id, lease.token, "no"), LeaseNotHeldError);
  assert.ok((await client.workers.methods()).some(({ method }) => method === "by hand"));
  assert.deepEqual(await client.workers.undeclare("by hand"), { method: "by hand", removed: true });
});

real("kills of server and workers under load: every task is completed once, and no attempt has two ends", async () => {
  const flow = await execute(300, 40);
  let workers = [start("w0", 20), start("w1", 20, "poll")];
  for (let round = 0; round < 6; round++) {
    await sleep(250);
    if (round % 2 === 0) {
      await server.kill();
      await server.up();
    } else {
      const [first, ...others] = workers;
      await end(first);
      workers = [...others, start(`w${round + 1}`, 20, round % 4 === 1 ? "socket" : "poll")];
    }
  }
  const tasks = await ended(flow);
  const ends = new Map();
  for await (const { type, task_id, data } of client.history(flow.root, { scope: "flow", limit: 1000 })) {
    if (type !== "task_completed" && type !== "task_failed") continue;
    const key = `${task_id} ${data.attempt}`;
    ends.set(key, [...(ends.get(key) ?? []), type]);
  }
  for (const task of tasks) {
    assert.equal(task.status, "completed", task.error);
    assert.equal(task.result.attempt, task.attempt);
    assert.deepEqual(ends.get(`${task.id} ${task.attempt}`), ["task_completed"]);
  }
  for (const [key, found] of ends) assert.equal(found.length, 1, key);
  const left = (await client.workers.list()).reduce((held, worker) => held + worker.held, 0);
  assert.equal(left, 0);
  await Promise.all(workers.map((worker) => end(worker, "SIGTERM")));
});
