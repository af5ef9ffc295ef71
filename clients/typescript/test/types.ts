// Compiled, not run: what the types of the package promise to those who use it.
import { Client, InvalidParamsError, type Claim, type EventType, type ScheduleRun, type Task, type TaskEvent, type Violation } from "taskledger";
import { FinalError, Worker, type Context, type WorkerEnd } from "taskledger/worker";

export async function client(): Promise<void> {
  const client = new Client({ url: "http://127.0.0.1:8000", token: async () => "t", headers: { "x-a": "b" } });
  const { task_ids } = await client.create([{ id: "a", name: "a", schemas: { method: "m", type: "remote" } }]);
  const id: string | undefined = task_ids?.["a"];
  const { run, task } = await client.executeAndWait({ name: "a" }, { signal: AbortSignal.timeout(1000) });
  const state: string = run.state;
  const result: Record<string, unknown> | null = task.result;
  for await (const each of client.list({ status: "failed" })) each satisfies Task;
  for await (const event of client.events({ flow: id ?? "", types: ["task_completed"] })) {
    event satisfies TaskEvent;
    if (event.type === "reset") event.data.reason satisfies string;
    else event.data.status satisfies Task["status"];
  }
  const waits: EventType[] = ["task_suspended", "task_suspension_reminder", "task_suspension_ended"];
  for await (const { type, data } of client.events({ types: waits })) {
    if (type === "task_suspended") data.suspension?.question?.question satisfies string | undefined;
    if (type === "task_suspension_ended") data.suspension?.resolution satisfies "responded" | "expired" | undefined;
  }
  // @ts-expect-error: there is no such type
  client.events({ types: ["task_asked"] });
  for await (const { name, version } of client.workflows.list({ limit: 10 })) {
    const { root_task_id, run_id } = await client.workflows.run(name, { version, trigger: {} });
    const { counts } = await client.workflows.progress(root_task_id);
    [run_id, counts.ready] satisfies [string | undefined, number];
  }
  for await (const { name, counters } of client.schedules.list()) {
    const { next, runs } = await client.schedules.get(name);
    [next[0], runs[0]?.outcome, counters.missed] satisfies [string | undefined, ScheduleRun["outcome"] | undefined, number];
  }
  // @ts-expect-error: there is no such policy
  client.schedules.create("nightly", { cron: "@daily", tasks: [{ name: "a" }], overlap: "wait" });
  const at = new Date();
  client.create({ name: "a", start_at: at, params: { deadline: at } });
  client.schedules.create("nightly", { cron: "@daily", tasks: [{ name: "a" }], start_at: at, end_at: at });
  client.events({ labels: { team: "red", batch: null } });
  const { claims } = await client.workers.claim({ methods: ["m"], wait_seconds: 10 });
  claims satisfies Claim[];
  const health = await client.call<{ status: string }>("system.health");
  try {
    await client.cancel(health.status + state + String(result), { cascade: true });
  } catch (error) {
    if (error instanceof InvalidParamsError) error.violations satisfies Violation[];
  }
  // @ts-expect-error: there is no such status
  client.list({ status: "done" });
}

export async function worker(): Promise<WorkerEnd> {
  interface Resize {
    url: string;
    width: number;
  }
  const worker = new Worker({ concurrency: 64, leaseSeconds: 30, log: (entry) => console.error(entry.message) })
    .method<Resize>("resize", async ({ url, width }, context: Context) => {
      context.progress(0.5, "half");
      context.signal.throwIfAborted();
      if (width === 0) throw new FinalError("nothing to see");
      return { url: url.toUpperCase(), attempt: context.attempt };
    })
    .method("plain", (input) => ({ keys: Object.keys(input), half: input.width / 2 }))
    .method("taken apart", async ({ width }, { input }) => ({ width: Math.floor(width / 2), same: input.width === width }))
    .method("nothing", () => {}, { description: "Does nothing.", limit: 3 })
    .stopOn("SIGTERM");
  // @ts-expect-error: an output is an object
  worker.method("text", () => "text");
  return worker.run();
}
