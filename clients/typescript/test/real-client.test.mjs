// The client against the real server.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AlreadyExecutingError, Client, InvalidParamsError, ScheduleChangedError, ScheduleNotFoundError, TaskNotFoundError, WorkflowChangedError, WorkflowNotFoundError } from "taskledger";
import { binary, Server } from "./server.mjs";

const options = { skip: binary ? false : "TASKLEDGER_BIN is not set" };
const MISSING = "0f8fad5b-d9cb-469f-a165-70867728950e";
let server;
let client;

before(async () => {
  if (!binary) return;
  server = await Server.start();
  client = new Client({ url: server.url });
});
after(() => server?.stop());

const echo = (inputs, more = {}) => ({ name: "echo", schemas: { method: "echo_executor" }, inputs, ...more });

test("create, get, update, tree, children, copy, explain, history, list and delete", options, async () => {
  const created = await client.create([
    { id: "root", name: "root" },
    { id: "a", name: "a", parent_id: "root", schemas: { method: "echo_executor" }, inputs: { n: 1 } },
  ]);
  assert.equal(created.status, "pending");
  const { root, a } = created.task_ids;
  assert.equal((await client.get(root)).name, "root");
  assert.equal((await client.update(a, { name: "renamed" })).id, a);
  const tree = await client.tree(root);
  assert.equal(tree.children[0].task.name, "renamed");
  assert.equal((await client.children(root))[0].id, a);
  const copied = await client.copy(root, { copyChildren: true });
  assert.equal(Object.keys(copied.task_ids).length, 2);
  assert.ok((await client.explain(a)).status);
  const types = [];
  for await (const event of client.history(a, { limit: 1 })) types.push(event.type);
  assert.deepEqual(types, ["task_created", "task_renamed"]);
  const names = [];
  for await (const task of client.list({ root_only: true, limit: 1 })) names.push(task.name);
  assert.deepEqual(names, ["root", "root"]);
  assert.deepEqual(await client.delete(copied.copied_task_id, { cascade: true }), { success: true });
});

test("execute and wait", options, async () => {
  const { started, run, task } = await client.executeAndWait(echo({ a: 1 }));
  assert.equal(run.id, started.run_id);
  assert.equal(run.state, "completed");
  assert.deepEqual(task.result, { a: 1 });
  const failed = await client.executeAndWait(echo({ duration_ms: 5000 }, { schemas: { method: "sleep_executor" }, params: { timeout_seconds: 0.05 } }));
  assert.equal(failed.run.state, "failed");
  assert.ok(failed.task.error);
});

test("a run is waited for across kills of the server", options, async () => {
  const waiting = client.executeAndWait(echo({ duration_ms: 1500 }, { schemas: { method: "sleep_executor" } }));
  for (let i = 0; i < 2; i++) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    await server.kill();
    await server.up();
  }
  assert.equal((await waiting).run.state, "completed");
});

test("events are told once each, also across a kill", options, async () => {
  const roots = [];
  const got = [];
  const ids = new Set();
  const reading = (async () => {
    for await (const event of client.events({ types: ["task_completed"], from: "beginning" })) {
      assert.ok(!ids.has(event.data.id), "nothing comes twice");
      ids.add(event.data.id);
      if (event.data.result?.round !== undefined) got.push(event.data.task_id);
      if (got.length === 3) return;
    }
  })();
  for (let round = 0; round < 3; round++) {
    const { started } = await client.executeAndWait(echo({ round }));
    roots.push(started.root_task_id);
    await server.kill();
    await server.up();
  }
  await reading;
  assert.deepEqual(got, roots);
});

test("retry and cancel", options, async () => {
  const slow = await client.execute(echo({ duration_ms: 60_000 }, { schemas: { method: "sleep_executor" } }));
  await assert.rejects(client.execute({ task_id: slow.root_task_id }), AlreadyExecutingError);
  assert.equal((await client.cancel(slow.root_task_id, { reason: "enough" })).status, "cancelled");
});

test("one key, one task", options, async () => {
  const [a, b] = await Promise.all([1, 2].map(() => client.create({ name: "once" }, { idempotencyKey: "k" })));
  assert.deepEqual(a, b);
});

test("errors", options, async () => {
  await assert.rejects(client.get(MISSING), TaskNotFoundError);
  const caught = await client.call("tasks.list", { limit: "x", offset: -1 }).catch((e) => e);
  assert.ok(caught instanceof InvalidParamsError);
  assert.deepEqual(caught.violations.map((v) => v.field).sort(), ["limit", "offset"]);
  assert.equal((await client.health()).status, "ok");
});

test("workflow documents are saved, read, compared, played, run and deleted by name", options, async () => {
  const { workflows } = client;
  const document = `openintent: "1.0"
info: {name: Saved}
workflow:
  fetch: {assign: a, inputs: {q: $trigger.q}, outputs: {n: number}}
`;
  assert.equal((await workflows.save(document)).created, true);
  const saved = await workflows.save(document.replace("number", "string"));
  assert.deepEqual([saved.version, saved.breaking], [2, 1]);
  assert.equal((await workflows.get("Saved", { version: 1 })).document, document);
  const listed = [];
  for await (const { name, version } of workflows.list({ limit: 1 })) listed.push([name, version]);
  assert.deepEqual(listed, [["Saved", 2]]);
  const { changes } = await workflows.diff("Saved", { from: 1, to: 2 });
  assert.deepEqual(changes.map(({ path }) => path), ["workflow.fetch.outputs.n"]);
  assert.equal((await workflows.diff("Saved", { document })).to, null);
  const played = await workflows.dryRun(document, { trigger: { q: 1 }, outputs: { fetch: { n: 2 } } });
  assert.deepEqual(played.phases, [{ phase: "fetch", status: "completed" }]);
  const run = await workflows.run("Saved", { version: 1, trigger: { q: 1 }, labels: { team: "data" } });
  assert.deepEqual((await client.get(run.root_task_id)).labels, { team: "data" });
  assert.equal(run.version, 1);
  assert.equal((await workflows.progress(run.root_task_id)).counts.total, 1);
  assert.equal((await workflows.progress(run.root_task_id)).workflow.saved_version, 1);
  await assert.rejects(workflows.save(document, { expected_version: 0 }), WorkflowChangedError);
  const changed = await workflows.delete("Saved", { expected_version: 1 }).catch((e) => e);
  assert.deepEqual([changed.constructor, changed.version], [WorkflowChangedError, 2]);
  assert.deepEqual(await workflows.delete("Saved", { expected_version: 2 }), { deleted: true });
  const events = [];
  for await (const { event } of workflows.versions("Saved", { limit: 1 })) events.push(event);
  assert.deepEqual(events, ["deleted", "saved", "saved"]);
  await assert.rejects(workflows.run("Saved"), WorkflowNotFoundError);
});

test("schedules are made, listed, changed, paused, run by hand and deleted", options, async () => {
  const { schedules } = client;
  const tasks = [echo({ n: 1 })];
  const made = await schedules.create("nightly", { cron: "0 2 * * *", time_zone: "Europe/Berlin", tasks, note: "n" });
  assert.deepEqual([made.version, made.overlap, made.next.length], [1, "skip", 5]);
  const taken = await schedules.create("nightly", { every_seconds: 60, tasks }).catch((e) => e);
  assert.deepEqual([taken.constructor, taken.version], [ScheduleChangedError, 1]);
  await schedules.create("weekly", { rrule: "FREQ=WEEKLY", max_runs: 2, tasks });
  await schedules.update("weekly", { overlap: "allow", without: ["max_runs"] });
  await assert.rejects(schedules.update("weekly", { jitter_seconds: 5, expected_version: 1 }), ScheduleChangedError);
  const changed = await schedules.update("weekly", { jitter_seconds: 5, expected_version: 2 });
  assert.deepEqual([changed.max_runs, changed.jitter_seconds], [null, 5]);
  const names = [];
  for await (const { name } of schedules.list({ limit: 1 })) names.push(name);
  assert.deepEqual(names, ["nightly", "weekly"]);
  assert.equal((await schedules.pause("nightly", { note: "until Monday" })).paused, true);
  const run = await schedules.runNow("nightly", {}, { idempotencyKey: "by hand" });
  assert.deepEqual([run.by_hand, run.outcome], [true, "started"]);
  assert.equal((await schedules.runNow("nightly", {}, { idempotencyKey: "by hand" })).run_id, run.run_id);
  for await (const event of client.events({ flow: run.root_task_id, from: "beginning" })) if (event.data.final) break;
  const shown = await schedules.get("nightly");
  assert.deepEqual(shown.runs.map(({ status }) => status), ["completed"]);
  assert.equal(shown.counters.started_by_hand, 1);
  assert.equal((await schedules.pause("nightly", { paused: false })).paused, false);
  assert.deepEqual(await schedules.delete("weekly", { expected_version: 3 }), { deleted: true });
  assert.deepEqual(await schedules.delete("weekly"), { deleted: false });
  await assert.rejects(schedules.get("weekly"), ScheduleNotFoundError);
  await assert.rejects(schedules.create("report", { cron: "@daily", workflow: { name: "Absent" } }), WorkflowNotFoundError);
});

test("labels choose tasks and events, and a start is put off", options, async () => {
  const labels = { team: "red & blue", batch: "7" };
  const { id } = await client.create(echo({}, { labels }));
  await client.create(echo({}, { labels: { team: "green", batch: "7" } }));
  for (const chosen of [{ team: "red & blue" }, { team: "red & blue", batch: null }]) {
    const found = [];
    for await (const task of client.list({ labels: chosen })) found.push(task.id);
    assert.deepEqual(found, [id]);
  }
  for await (const event of client.events({ labels: { team: "red & blue" }, from: "beginning" })) {
    assert.deepEqual([event.data.task_id, event.data.labels], [id, labels]);
    break;
  }
  const later = await client.create({ name: "later", start_at: "2126-01-01T00:00:00+01:00" });
  assert.equal((await client.get(later.id)).start_at, "2125-12-31T23:00:00.000000Z");
});
