/** The client: any method of the server by name, and typed functions for the common ones. Runs in Node.js and browsers. */

import { Backoff, sleep } from "./backoff.js";
import { BusyError, ConnectionError, InternalError, RpcError } from "./errors.js";
import { stringify } from "./json.js";
import { SchedulesClient } from "./schedules.js";
import { events, follow, type StreamOptions } from "./streams.js";
import { isUnsent, Transport, type TransportOptions } from "./transport.js";
import type {
  ClaimQuery,
  Claims,
  Copied,
  Created,
  Ended,
  EventsQuery,
  Finished,
  Health,
  HistoryEvent,
  HistoryQuery,
  JsonObject,
  ListQuery,
  MethodDeclaration,
  Question,
  Renewed,
  Responded,
  Sibling,
  Run,
  Started,
  Suspended,
  Task,
  TaskEvent,
  TaskInput,
  TaskTree,
  WorkerMethod,
  WorkerPresence,
} from "./types.js";
import { WorkflowsClient } from "./workflows.js";

/** How a client reaches its server, and how long it tries. */
export interface ClientOptions extends TransportOptions {
  /** Milliseconds for which calls are repeated while the server cannot be reached or is busy; 60,000 unless given. */
  retryForMs?: number | undefined;
  /** Milliseconds that one answer may take; 60,000 unless given. */
  timeoutMs?: number | undefined;
}

/** What one call may be given. */
export interface CallOptions {
  /** Ends the call; what it rejects with is the signal's reason. */
  signal?: AbortSignal | undefined;
  /** For a call that changes tasks: a key of your own, for instance one that survives your process. */
  idempotencyKey?: string | undefined;
  /** Instead of that of the client. */
  timeoutMs?: number | undefined;
  /** Instead of that of the client. */
  retryForMs?: number | undefined;
}

/** Where a started run's tasks come from: new ones, or a stored one. */
export type Execution = TaskInput | TaskInput[] | { task_id: string };

// Both lists are made from the server's table of methods by tests/core/pages/clients.rs. Methods of the first are carried
// out once for each idempotency key.
// generated: methods that keep an idempotency key
const KEYED: ReadonlySet<string> = new Set([
  "schedules.run_now",
  "tasks.cancel",
  "tasks.copy",
  "tasks.create",
  "tasks.delete",
  "tasks.execute",
  "tasks.respond",
  "tasks.retry",
  "tasks.update",
  "workflows.create",
  "workflows.run",
]);
// end of methods that keep an idempotency key

// generated: methods that read
const READS: ReadonlySet<string> = new Set([
  "audit.list",
  "events.query",
  "rpc.discover",
  "schedules.get",
  "schedules.list",
  "secrets.list",
  "system.executors",
  "system.health",
  "system.whoami",
  "tasks.children",
  "tasks.explain",
  "tasks.get",
  "tasks.history",
  "tasks.list",
  "tasks.resubscribe",
  "tasks.sibling_output",
  "tasks.subscribe",
  "tasks.tree",
  "tokens.list",
  "webhooks.deliveries",
  "webhooks.get",
  "webhooks.list",
  "webhooks.secret",
  "workers.list",
  "workers.methods",
  "workflows.diff",
  "workflows.dry_run",
  "workflows.get",
  "workflows.list",
  "workflows.progress",
  "workflows.schemas",
  "workflows.validate",
  "workflows.versions",
]);
// end of methods that read

/** Methods that change something and may be repeated without a key: doing them twice is doing them once. */
const REPEATABLE =
  /^(schedules\.(update|pause|delete)|workflows\.(save|delete)|tasks\.(claim|renew|complete|fail|release|suspend)|workers\..*|system\..*|rpc\..*|secrets\..*|webhooks\.(update|enable|disable))$/;

/** Whether doing a call twice is doing it once. A change of a version that is expected makes another one, so it is not. */
function isRepeatable(method: string, params: object): boolean {
  if (method === "schedules.update" && (params as { expected_version?: number }).expected_version !== undefined) return false;
  return READS.has(method) || REPEATABLE.test(method);
}

/** Calls a taskledger server. Keeps no connection of its own and needs no closing. */
export class Client {
  /** Claims, leases and the directory of workers. */
  readonly workers: WorkersClient;
  /** Workflow documents. */
  readonly workflows: WorkflowsClient;
  /** Schedules, which start workflows or tasks at given times. */
  readonly schedules: SchedulesClient;
  readonly #transport: Transport;
  readonly #retryForMs: number;
  readonly #timeoutMs: number;
  #id = 0;

  constructor(options: ClientOptions = {}) {
    this.#transport = new Transport(options);
    this.#retryForMs = options.retryForMs ?? 60_000;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    this.workers = new WorkersClient(this);
    this.workflows = new WorkflowsClient(this);
    this.schedules = new SchedulesClient(this);
  }

  /**
   * Calls any method. A method that changes tasks gets an idempotency key, so that repeating it after a lost
   * connection does not do it twice. Busy servers are asked again, after the time that they name.
   * @throws RpcError of the class that belongs to the code; {@link ConnectionError} when no answer came in `retryForMs`.
   */
  async call<T = unknown>(method: string, params: object = {}, options: CallOptions = {}): Promise<T> {
    const key = options.idempotencyKey ?? (KEYED.has(method) ? newKey() : undefined);
    const body = this.#body(method, params, key);
    const { signal } = options;
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs;
    const giveUpAt = performance.now() + (options.retryForMs ?? this.#retryForMs);
    const backoff = new Backoff(50, 5_000);
    for (;;) {
      try {
        return (await this.#transport.call(method, body, { signal, timeoutMs })) as T;
      } catch (error) {
        if (error instanceof RpcError) error.idempotencyKey = key;
        const wait = waitAfter(error, key !== undefined || isRepeatable(method, params), backoff);
        if (wait === undefined || performance.now() + wait > giveUpAt) throw error;
        await sleep(wait, signal);
      }
    }
  }

  /** Stores tasks without running them. Several tasks have to form one tree. */
  create(tasks: TaskInput | TaskInput[], options?: CallOptions): Promise<Created> {
    return this.call("tasks.create", Array.isArray(tasks) ? { tasks } : tasks, options);
  }

  /** Stores tasks and starts a run of them; or starts a run of a stored task. Does not wait for it. */
  execute(what: Execution, options?: CallOptions): Promise<Started> {
    return this.call("tasks.execute", executionParams(what), options);
  }

  /**
   * Starts a run and waits until it has ended, for as long as it takes: across lost connections and restarts of
   * the server. A run that failed is not an error here: look at `run.state` and `task.error`.
   */
  async executeAndWait(
    what: Execution,
    options: CallOptions & { onEvent?: (event: TaskEvent) => void } = {},
  ): Promise<Finished> {
    const key = options.idempotencyKey ?? newKey();
    const params = { ...executionParams(what), use_streaming: true };
    const retryForMs = options.retryForMs ?? this.#retryForMs;
    const calls = {
      start: this.#body("tasks.execute", params, key),
      subscribe: (taskId: string) => this.#body("tasks.subscribe", { task_id: taskId }),
    };
    const { signal, onEvent } = options;
    const { started, run } = await follow(this.#transport, calls, { signal, onEvent, retryForMs });
    const id = started.task_id ?? started.root_task_id;
    let task = await this.get(id, { signal });
    // Events may come before reads show them.
    for (let ms = 20; task.run?.state === "running" && ms <= 2560; ms *= 2) {
      await sleep(ms, signal);
      task = await this.get(id, { signal });
    }
    return { started, run: run ?? (await endOf(this, started, signal)), task };
  }

  /** A task as it is now, or as it was at a position of the log or a time. */
  get(taskId: string, options: CallOptions & { asOf?: string | number } = {}): Promise<Task> {
    return this.call("tasks.get", { task_id: taskId, ...asOf(options.asOf) }, options);
  }

  /** A task with everything below it. */
  tree(taskId: string, options: CallOptions & { asOf?: string | number } = {}): Promise<TaskTree> {
    return this.call("tasks.tree", { task_id: taskId, ...asOf(options.asOf) }, options);
  }

  /** The tasks directly below one. */
  async children(taskId: string, options?: CallOptions): Promise<Task[]> {
    return (await this.call<{ children: Task[] }>("tasks.children", { parent_id: taskId }, options)).children;
  }

  /** Tasks, newest first unless asked otherwise; further pages are fetched as the loop gets there. */
  list(query: ListQuery = {}, options?: CallOptions): AsyncGenerator<Task, void, undefined> {
    return this.#pages<Task>("tasks.list", query, "tasks", options);
  }

  /** What happened to a task, or with `scope: "flow"` to its whole flow; further pages are fetched as the loop gets there. */
  history(taskId: string, query: HistoryQuery = {}, options?: CallOptions): AsyncGenerator<HistoryEvent, void, undefined> {
    return this.#pages<HistoryEvent>("tasks.history", { task_id: taskId, ...query }, "events", options);
  }

  /** Why a task is not running, or why it ended as it did. */
  explain(taskId: string, options?: CallOptions): Promise<JsonObject> {
    return this.call("tasks.explain", { task_id: taskId }, options);
  }

  /** Cancels a task; with `cascade` also what is below it. */
  cancel(
    taskId: string,
    options: CallOptions & { cascade?: boolean; reason?: string } = {},
  ): Promise<{ task_id: string; status: "cancelled" }> {
    const { cascade, reason } = options;
    return this.call("tasks.cancel", { task_id: taskId, ...given({ cascade, reason }) }, options);
  }

  /**
   * Answers what a suspended task asks. The first answer counts; the same one again gets the same result.
   * `respondedBy`: for whom the caller answers, as a note.
   */
  respond(
    taskId: string,
    suspensionId: string,
    value: unknown,
    respondedBy?: string,
    options?: CallOptions,
  ): Promise<Responded> {
    const note = respondedBy === undefined ? {} : { responded_by: respondedBy };
    return this.call("tasks.respond", { task_id: taskId, suspension_id: suspensionId, value, ...note }, options);
  }

  /** Runs a failed task again; with `include: "failed"` also failed tasks that were tolerated. */
  retry(taskId: string, options: CallOptions & { include?: "failed" } = {}): Promise<Started> {
    const { include, ...rest } = options;
    return this.call("tasks.retry", { task_id: taskId, ...(include === undefined ? {} : { include }) }, rest);
  }

  /** Changes a pending task. */
  update(taskId: string, updates: Partial<TaskInput>, options?: CallOptions): Promise<{ id: string; status: Task["status"] }> {
    return this.call("tasks.update", { task_id: taskId, updates }, options);
  }

  /** Deletes a pending task; with `cascade` also what is below it. */
  delete(taskId: string, options: CallOptions & { cascade?: boolean } = {}): Promise<{ success: true }> {
    return this.call("tasks.delete", { task_id: taskId, ...given({ cascade: options.cascade }) }, options);
  }

  /** Copies a task, with `copyChildren` everything below it too. */
  copy(taskId: string, options: CallOptions & { copyChildren?: boolean; parentId?: string } = {}): Promise<Copied> {
    const { copyChildren: copy_children, parentId: parent_id } = options;
    return this.call("tasks.copy", { task_id: taskId, ...given({ copy_children, parent_id }) }, options);
  }

  /** What the server says about itself. */
  health(options?: CallOptions): Promise<Health> {
    return this.call("system.health", {}, options);
  }

  /**
   * What happens, as it happens, until you leave the loop or the signal is aborted. A connection that breaks is made
   * anew behind the last event: nothing is missed, and `data.id` names an event that comes twice. An event of the type
   * `reset` says that the stream goes on elsewhere than asked for, so that state kept from it has to be read anew.
   */
  events(query: EventsQuery = {}, options: StreamOptions = {}): AsyncGenerator<TaskEvent, void, undefined> {
    return events(this.#transport, query, options);
  }

  async *#pages<T>(method: string, query: object, member: string, options?: CallOptions): AsyncGenerator<T, void, undefined> {
    let cursor: string | undefined;
    do {
      const page: JsonObject = await this.call(method, { ...query, ...given({ cursor }) }, options);
      yield* page[member] as T[];
      cursor = page["next_cursor"] as string | undefined;
    } while (cursor !== undefined);
  }

  #body(method: string, params: object, key?: string): string {
    const metadata = key === undefined ? {} : { metadata: { idempotency_key: key } };
    const request = { jsonrpc: "2.0", id: ++this.#id, method, params, ...metadata };
    const body = stringify(request) ?? "";
    // What is no time is written as `null`, which means something else.
    if (body.includes("null")) JSON.stringify(request, refuseInvalidDate);
    return body;
  }
}

/** @throws RangeError when a member is a `Date` without a time. */
function refuseInvalidDate(this: Record<string, unknown>, member: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value === null && this[member] instanceof Date) throw new RangeError(`${member}: the date is invalid, expected one with a time`);
  return value;
}

/** Claiming and finishing work call by call, and the directory of workers. A program that does work is better a `Worker`. */
export class WorkersClient {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Claims tasks of some methods, or one task; waits for `wait_seconds` if there are none. */
  claim(query: ClaimQuery, options: CallOptions = {}): Promise<Claims> {
    const timeoutMs = options.timeoutMs ?? 60_000 + (query.wait_seconds ?? 0) * 1000;
    return this.#client.call("tasks.claim", query, { ...options, timeoutMs });
  }

  /** Keeps a claimed task, and tells how far it is. */
  renew(
    taskId: string,
    lease: string,
    more: {
      lease_seconds?: number;
      progress?: number;
      message?: string;
      /** What the attempt has made of its output since the last part. */
      output_part?: string | JsonObject;
      /** Its place among the parts of the attempt, from 1: one that is recorded already changes nothing. */
      output_number?: number;
    } = {},
    options?: CallOptions,
  ): Promise<Renewed> {
    return this.#client.call("tasks.renew", { task_id: taskId, lease, ...more }, options);
  }

  /** Ends an attempt with its output. The same outcome again gets the same answer. */
  complete(taskId: string, lease: string, output: JsonObject, options?: CallOptions): Promise<Ended> {
    return this.#client.call("tasks.complete", { task_id: taskId, lease, output }, options);
  }

  /** Ends an attempt with an error; unless `retryable` is false, the task's retries are used. */
  fail(taskId: string, lease: string, error: string, retryable = true, options?: CallOptions): Promise<Ended> {
    return this.#client.call("tasks.fail", { task_id: taskId, lease, error, retryable }, options);
  }

  /** Ends an attempt because the worker does not do the task, by a policy: a run that failed for nothing else is rejected. */
  reject(taskId: string, lease: string, error: string, options?: CallOptions): Promise<Ended> {
    return this.#client.call("tasks.fail", { task_id: taskId, lease, error, rejected: true }, options);
  }

  /** Gives a task back for others; uses up no retry. */
  release(taskId: string, lease: string, options?: CallOptions): Promise<Ended> {
    return this.#client.call("tasks.release", { task_id: taskId, lease }, options);
  }

  /** Asks a person, and gives a task up until somebody answers. */
  suspend(taskId: string, lease: string, request: Question, options?: CallOptions): Promise<Suspended> {
    return this.#client.call("tasks.suspend", { task_id: taskId, lease, request }, options);
  }

  /** Another task below the same parent as a claimed one, by name or id, with its result. */
  siblingOutput(taskId: string, lease: string, name: string, options?: CallOptions): Promise<Sibling> {
    return this.#client.call("tasks.sibling_output", { task_id: taskId, lease, name }, options);
  }

  /** Declares a method: its tasks wait for a worker even while none is connected. Replaces an earlier declaration. */
  declare(method: string, declaration: MethodDeclaration = {}, options?: CallOptions): Promise<WorkerMethod> {
    return this.#client.call("workers.declare", { method, ...declaration }, options);
  }

  /** Takes a declaration back. */
  undeclare(method: string, options?: CallOptions): Promise<{ method: string; removed: boolean }> {
    return this.#client.call("workers.undeclare", { method }, options);
  }

  /** Methods that were declared, or that workers ask for, by name. */
  async methods(options?: CallOptions): Promise<WorkerMethod[]> {
    return (await this.#client.call<{ methods: WorkerMethod[] }>("workers.methods", {}, options)).methods;
  }

  /** The workers that are there, and what they hold. */
  async list(options?: CallOptions): Promise<WorkerPresence[]> {
    return (await this.#client.call<{ workers: WorkerPresence[] }>("workers.list", {}, options)).workers;
  }

  /** Gives a worker no new work, so that it finishes what it has and ends; `drain: false` takes that back. */
  drain(worker: string, drain = true, options?: CallOptions): Promise<{ worker: string; draining: boolean; held: number; present: boolean }> {
    return this.#client.call("workers.drain", { worker, drain }, options);
  }
}

/** How a run has ended behind which another one was started. */
export async function endOf(client: Client, started: Started, signal: AbortSignal | undefined): Promise<Run> {
  const ends = client.history(started.root_task_id, { scope: "flow", types: ["run_ended"], order: "desc" }, { signal });
  for await (const { data } of ends) {
    const { run_id, state, counts } = data as unknown as { run_id: string; state: Run["state"]; counts: Run["counts"] };
    if (run_id === started.run_id) return { id: run_id, state, counts };
  }
  throw new ConnectionError(`the history does not show the end of run ${started.run_id}`);
}

/** Milliseconds after which a call may be repeated; `undefined` if it may not. */
export function waitAfter(error: unknown, repeatable: boolean, backoff: Backoff): number | undefined {
  if (error instanceof BusyError) return Math.max(error.data.retry_after_ms ?? 0, backoff.next());
  if (error instanceof ConnectionError && (repeatable || isUnsent(error))) {
    const isFinal = error.status !== undefined && error.status < 500;
    return isFinal ? undefined : backoff.next();
  }
  // The server does not know whether a change happened: with the key it finds out.
  if (error instanceof InternalError && repeatable && /outcome/.test(error.data.reason ?? "")) {
    return Math.max(error.data.retry_after_ms ?? 0, backoff.next());
  }
  return undefined;
}

/** The parameters of `tasks.execute`. */
export function executionParams(what: Execution): object {
  if (Array.isArray(what)) return { tasks: what };
  const { task_id } = what as { task_id?: unknown };
  return typeof task_id === "string" ? { task_id } : { tasks: [what] };
}

function asOf(place: string | number | undefined): { as_of?: string | number } {
  return place === undefined ? {} : { as_of: place };
}

/** Without the members that are `undefined`. */
function given(members: Record<string, unknown>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** An idempotency key that nobody else has. */
export function newKey(): string {
  // Pages that did not come over https have no `randomUUID`.
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
