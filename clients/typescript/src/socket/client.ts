/** Starts runs and waits for them over one socket: one connection and one subscription instead of a request for each run. */

import { Backoff, sleep } from "../backoff.js";
import { Client, endOf, executionParams, newKey, waitAfter, type ClientOptions, type Execution } from "../client.js";
import { BusyError, ConnectionError, RpcError, TaskNotFoundError, toError } from "../errors.js";
import { stringify } from "../json.js";
import { reasonOf, Transport } from "../transport.js";
import type { JsonObject, Notice, Run, Started, TaskTree } from "../types.js";
import { fitsSocket, SocketChannel, type Outcome } from "../worker/channels.js";
import { isRefusal, refusalOf } from "../worker/links.js";
import { connect, UpgradeRefused } from "../worker/websocket.js";

const CONNECT_MS = 15_000;
/** How long the answer to the subscription may take. */
const ANSWER_MS = 35_000;
/** The server pings every 25 s; a socket that was silent for longer is asked. */
const SILENCE_MS = 28_000;
const PONG_MS = 10_000;
const WATCH_MS = 5_000;
/** The notices that tell results, and ends of runs. */
const TYPES = ["task_completed", "task_failed", "run_completed", "run_failed", "run_cancelled"];
/** Runs that are asked for at a time, when their events were missed. */
const ASKING_MAX = 8;
/** Flows whose events are kept because they may belong to a run that is being started. */
const EARLY_MAX = 10_000;

/** What one run may be given. */
export interface RunOptions {
  /** Ends the wait, not the run; what it rejects with is the signal's reason. */
  signal?: AbortSignal | undefined;
  /** A key of your own, for instance one that survives your process. */
  idempotencyKey?: string | undefined;
}

/** A run that has ended. */
export interface Ran {
  started: Started;
  run: Run;
  /** By the id of the task. */
  results: Record<string, JsonObject>;
  /** Why tasks failed, by the id of the task. */
  errors: Record<string, string>;
}

/** What is known of a flow. */
interface Told {
  results: Record<string, JsonObject>;
  errors: Record<string, string>;
  run?: Run;
}

/** A run that somebody waits for. */
interface Waiting {
  what: Execution;
  params: string;
  key: string;
  /** Whether the caller gave the key: its run may have ended long ago. */
  isKeyed: boolean;
  giveUpAt: number;
  backoff: Backoff;
  /** It is being started over POST. */
  isPosting: boolean;
  started?: Started | undefined;
  told: Told;
  resolve: (ran: Ran) => void;
  reject: (error: unknown) => void;
}

const nothing = (): Told => ({ results: {}, errors: {} });

/**
 * Starts runs and waits for them over one socket, which is opened with the first run and is made anew when it breaks: nothing
 * is started twice and no end is missed. It is told of the ends of all runs that its caller may see. {@link close} it.
 */
export class SocketClient {
  /** The same server over POST, for everything else. */
  readonly client: Client;
  readonly #transport: Transport;
  readonly #retryForMs: number;
  readonly #closing = new AbortController();
  #channel: SocketChannel | undefined;
  #isServing = false;
  /** Where the subscription goes on behind a socket that broke. */
  #cursor: string | undefined;
  /** Runs that no answer has named yet. */
  readonly #starting = new Set<Waiting>();
  /** By the id of the flow's root. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  readonly #early = new Map<string, Told>();
  /** Something was not kept that may belong to a run that is being started. */
  #hasForgotten = false;
  readonly #toAsk: Waiting[] = [];
  #asking = 0;

  constructor(options: ClientOptions = {}) {
    this.client = new Client(options);
    this.#transport = new Transport(options);
    this.#retryForMs = options.retryForMs ?? 60_000;
  }

  /**
   * Starts a run and waits until it has ended, for as long as it takes: across lost connections and restarts of the server. A
   * run that failed is not an error here: look at `run.state` and `errors`.
   * @throws RpcError of the class that belongs to the code; {@link ConnectionError} when it could not be started in `retryForMs`.
   */
  executeAndWait(what: Execution, options: RunOptions = {}): Promise<Ran> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.#closing.signal.aborted) throw new ConnectionError("the socket client is closed");
      const aborted = (): void => this.#end(one, () => reject(signal?.reason));
      const settled = <T>(settle: (value: T) => void) => (value: T): void => {
        signal?.removeEventListener("abort", aborted);
        settle(value);
      };
      const one: Waiting = {
        what,
        params: stringify(executionParams(what)) ?? "{}",
        key: options.idempotencyKey ?? newKey(),
        isKeyed: options.idempotencyKey !== undefined,
        giveUpAt: performance.now() + this.#retryForMs,
        backoff: new Backoff(50, 5_000),
        isPosting: false,
        told: nothing(),
        resolve: settled(resolve),
        reject: settled(reject),
      };
      signal?.addEventListener("abort", aborted, { once: true });
      this.#starting.add(one);
      if (this.#channel) this.#start(this.#channel, one);
      else void this.#serve();
    });
  }

  /** Closes the socket. Runs go on; whoever waits for one is rejected. */
  close(): void {
    const error = new ConnectionError("the socket client was closed");
    this.#closing.abort(error);
    this.#channel?.close();
    this.#failAll(error);
  }

  /** Keeps a socket open, as long as somebody may wait. */
  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    const { signal } = this.#closing;
    const backoff = new Backoff(50, 5_000);
    while (!signal.aborted) {
      let wait = 0;
      let failure: Error = new ConnectionError("the socket was closed again and again");
      try {
        await this.#open(() => backoff.reset());
      } catch (caught) {
        const error = refusalOf(caught, "subscribe");
        failure = this.#asOurs(error);
        if (isRefusal(error)) {
          this.#failAll(failure);
          break;
        }
        if (error instanceof BusyError) wait = error.data.retry_after_ms ?? 0;
      }
      this.#giveUp(failure);
      if (this.#starting.size === 0 && this.#waiting.size === 0) break;
      await sleep(Math.max(wait, backoff.next()), signal).catch(() => {});
    }
    this.#isServing = false;
  }

  /** One socket, from its opening to its end. */
  async #open(opened: () => void): Promise<void> {
    const url = new URL("ws", this.#transport.url);
    const connected = await connect(url, await this.#transport.headers(), CONNECT_MS);
    if (this.#closing.signal.aborted) {
      connected.socket.destroy();
      return;
    }
    await new Promise<void>((resolve, reject) => {
      let refusal: unknown;
      const channel = new SocketChannel(
        connected,
        (method, params) => this.#notified(channel, method, params),
        () => {
          clearInterval(watching);
          clearTimeout(late);
          if (this.#channel === channel) this.#channel = undefined;
          if (refusal === undefined) resolve();
          else reject(refusal);
        },
      );
      const watching = setInterval(() => channel.watch(SILENCE_MS, PONG_MS), WATCH_MS);
      const late = setTimeout(() => {
        refusal = new ConnectionError("the subscription was not answered");
        channel.close();
      }, ANSWER_MS);
      const from = this.#cursor === undefined ? {} : { last_event_id: this.#cursor };
      channel.call({
        method: "subscribe",
        params: JSON.stringify({ types: TYPES, ...from }),
        done: (outcome) => {
          clearTimeout(late);
          if (this.#closing.signal.aborted) return channel.close();
          if ("result" in outcome) {
            opened();
            this.#cursor ??= (outcome.result as { cursor: string }).cursor;
            this.#channel = channel;
            for (const one of this.#starting) this.#start(channel, one);
            return;
          }
          refusal = "error" in outcome ? toError(outcome.error, "subscribe") : new ConnectionError(outcome.lost);
          channel.close();
        },
      });
    });
  }

  #start(channel: SocketChannel, one: Waiting): void {
    if (!fitsSocket(one.params)) {
      void this.#post(one);
      return;
    }
    const done = (outcome: Outcome): void => {
      if ("result" in outcome) this.#started(one, outcome.result as Started);
      else if ("error" in outcome) void this.#refused(channel, one, toError(outcome.error, "tasks.execute"));
      // Which message was not read is not known; under its key a call does no harm twice.
      else if (outcome.isUnread) void this.#refused(channel, one, new ConnectionError(outcome.lost));
      // Else the socket broke: the next one starts it again, under the same key.
    };
    channel.call({ method: "tasks.execute", params: one.params, key: one.key, done });
  }

  /** Starts a run over POST, once at a time. */
  async #post(one: Waiting): Promise<void> {
    if (one.isPosting) return;
    one.isPosting = true;
    try {
      const retryForMs = one.giveUpAt - performance.now();
      const { signal } = this.#closing;
      this.#started(one, await this.client.execute(one.what, { idempotencyKey: one.key, retryForMs, signal }));
    } catch (error) {
      this.#end(one, () => one.reject(error));
    }
    one.isPosting = false;
  }

  async #refused(channel: SocketChannel, one: Waiting, error: Error): Promise<void> {
    const wait = waitAfter(error, true, one.backoff);
    if (wait === undefined || performance.now() + wait > one.giveUpAt) {
      this.#end(one, () => one.reject(error));
      return;
    }
    await sleep(wait, this.#closing.signal).catch(() => {});
    if (this.#starting.has(one) && this.#channel === channel) this.#start(channel, one);
  }

  #started(one: Waiting, started: Started): void {
    if (!this.#starting.delete(one)) return;
    one.started = started;
    const root = started.root_task_id;
    const early = this.#early.get(root);
    if (early !== undefined) one.told = early;
    const others = this.#waiting.get(root);
    if (others === undefined) this.#waiting.set(root, new Set([one]));
    else others.add(one);
    if (early?.run?.id === started.run_id) this.#ended(one, early.run);
    else if (this.#hasForgotten || one.isKeyed) this.#ask(one);
    this.#forget();
  }

  /** Nothing that was told may belong to a run that is being started, once none is. */
  #forget(): void {
    if (this.#starting.size > 0) return;
    this.#early.clear();
    this.#hasForgotten = false;
  }

  #notified(channel: SocketChannel, method: string, params: Record<string, unknown>): void {
    // The server gives nothing more through this subscription: a new one comes with a new socket.
    if (method === "end") return channel.close();
    if (method !== "event" && method !== "place") return;
    this.#cursor = params["id"] as string;
    if (method === "place") return;
    // What was missed is not told any more.
    if (params["event"] === "reset") {
      this.#hasForgotten = this.#starting.size > 0;
      for (const all of [...this.#waiting.values()]) for (const one of all) this.#ask(one);
      return;
    }
    this.#told(params["data"] as Notice);
  }

  #told(notice: Notice): void {
    const root = notice.root_task_id;
    const waiting = this.#waiting.get(root);
    for (const one of waiting ?? []) {
      keep(one.told, notice);
      if (notice.run !== undefined && notice.run.id === one.started?.run_id) this.#ended(one, notice.run);
    }
    if (this.#starting.size === 0) return;
    let early = this.#early.get(root);
    if (early === undefined) {
      if (this.#early.size >= EARLY_MAX) {
        this.#early.clear();
        this.#hasForgotten = true;
      }
      this.#early.set(root, (early = nothing()));
    }
    keep(early, notice);
  }

  #ended(one: Waiting, run: Run): void {
    const { started, told } = one;
    this.#end(one, () => one.resolve({ started: started!, run, results: told.results, errors: told.errors }));
  }

  /** Has it asked over POST how a run stands, because events were missed, or lie before the subscription. */
  #ask(one: Waiting): void {
    if (!this.#toAsk.includes(one)) this.#toAsk.push(one);
    void this.#asked();
  }

  async #asked(): Promise<void> {
    if (this.#asking >= ASKING_MAX) return;
    this.#asking++;
    for (let one = this.#toAsk.shift(); one !== undefined; one = this.#toAsk.shift()) {
      if (one.started === undefined || !this.#isWaitedFor(one)) continue;
      try {
        await this.#look(one, one.started);
      } catch (error) {
        if (error instanceof TaskNotFoundError) this.#again(one);
        else this.#end(one, () => one.reject(error));
      }
    }
    this.#asking--;
  }

  /** Ends the wait for a run if it has ended; else its end will be told. */
  async #look(one: Waiting, started: Started): Promise<void> {
    const { signal } = this.#closing;
    const root = started.root_task_id;
    const { run } = await this.client.get(root, { signal });
    if (run?.id === started.run_id && run.state === "running") return;
    const ended = run?.id === started.run_id ? run : await endOf(this.client, started, signal);
    keepAll(one.told, await this.client.tree(root, { signal }));
    if (this.#isWaitedFor(one)) this.#ended(one, ended);
  }

  /** Starts a run again of which this server knows nothing: it has another log. */
  #again(one: Waiting): void {
    this.#leave(one);
    one.started = undefined;
    one.told = nothing();
    this.#starting.add(one);
    if (this.#channel) this.#start(this.#channel, one);
  }

  #isWaitedFor(one: Waiting): boolean {
    return one.started !== undefined && this.#waiting.get(one.started.root_task_id)?.has(one) === true;
  }

  #leave(one: Waiting): void {
    const root = one.started?.root_task_id;
    if (root === undefined) return;
    const all = this.#waiting.get(root);
    all?.delete(one);
    if (all?.size === 0) this.#waiting.delete(root);
  }

  /** Nobody waits for it any more. */
  #end(one: Waiting, settle: () => void): void {
    if (this.#starting.delete(one)) this.#forget();
    this.#leave(one);
    settle();
  }

  /** An error as it is documented: of the server, or of the connection. */
  #asOurs(error: unknown): Error {
    if (error instanceof RpcError || error instanceof ConnectionError) return error;
    const status = error instanceof UpgradeRefused ? error.status : undefined;
    return new ConnectionError(`no socket to ${this.#transport.url.origin}: ${reasonOf(error)}`, { cause: error, status });
  }

  /** Ends the waits for runs that could not be started in time. */
  #giveUp(error: unknown): void {
    const now = performance.now();
    for (const one of [...this.#starting]) if (now > one.giveUpAt) this.#end(one, () => one.reject(error));
  }

  #failAll(error: unknown): void {
    const all = [...this.#starting, ...[...this.#waiting.values()].flatMap((some) => [...some])];
    for (const one of all) this.#end(one, () => one.reject(error));
  }
}

function keep(told: Told, { run, task_id, result, error }: Notice): void {
  if (run !== undefined) told.run = run;
  else keepEnd(told, task_id, result, error);
}

/** How a task ended last: an attempt before may have ended otherwise. */
function keepEnd(told: Told, id: string, result: JsonObject | null | undefined, error: string | null | undefined): void {
  if (result != null) {
    told.results[id] = result;
    delete told.errors[id];
  } else if (error != null) {
    told.errors[id] = error;
    delete told.results[id];
  }
}

function keepAll(told: Told, { task, children }: TaskTree): void {
  keepEnd(told, task.id, task.result, task.error);
  for (const child of children) keepAll(told, child);
}
