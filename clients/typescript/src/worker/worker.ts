/** The worker: handlers for methods, and everything between them and the server. */

import { hostname } from "node:os";
import { Client, type ClientOptions } from "../client.js";
import { Transport } from "../transport.js";
import type { Claim, JsonObject, MethodDeclaration, Question } from "../types.js";
import { Attempt, type AnyInput, type Handler } from "./attempt.js";
import { PostChannel, type Call } from "./channels.js";
import { FinalError, RejectedError, Suspend } from "./errors.js";
import { Heartbeats } from "./heartbeats.js";
import { PollLink, SocketLink } from "./links.js";
import { jsonLog, type Level, type Log } from "./log.js";
import { outputOf, questionOf } from "./outputs.js";
import { Posts } from "./posts.js";
import { Reports } from "./reports.js";
import { messageOf } from "./texts.js";

/** How a worker reaches its server, and how much it does at once. */
export interface WorkerOptions extends Omit<ClientOptions, "fetch"> {
  /** Name of this worker in `workers.list`; host and process unless given. */
  name?: string | undefined;
  /** Attempts at once, 1 to 1000; 10 unless given. */
  concurrency?: number | undefined;
  /** Seconds after which the server gives a task to another worker when this one is not heard of, 5 to 3600; 60 unless given. */
  leaseSeconds?: number | undefined;
  /** `auto`, unless given, takes a socket, and long polls where there are none. */
  connection?: "auto" | "socket" | "poll" | undefined;
  /** Seconds that a long poll waits, 0 to 60; 25 unless given. */
  pollSeconds?: number | undefined;
  /** Milliseconds that {@link Worker.stop} gives to running handlers; 30,000 unless given. */
  graceMs?: number | undefined;
  /** Where entries go; lines of JSON on stderr unless given. */
  log?: Log | undefined;
}

/** Why {@link Worker.run} ended. */
export type WorkerEnd = "stopped" | "drained";

/** What running handlers get to finish, unless the options say otherwise. */
const GRACE_MS = 30_000;
/** How long an `auto` worker polls before it looks again for a socket. */
const POLL_FOR_MS = 120_000;
/** What handlers get to stop once their signal was aborted at the end of the grace. */
const SETTLE_MS = 1_000;
/** What the last reports get to arrive. */
const LAST_REPORTS_MS = 5_000;

/** Claims tasks and does them. */
export class Worker {
  /** For calls of your own, with the same server and credentials. */
  readonly client: Client;
  readonly name: string;
  readonly concurrency: number;
  readonly #transport: Transport;
  readonly #options: WorkerOptions;
  readonly #log: Log;
  readonly #handlers = new Map<string, Handler<any, any>>();
  readonly #declarations = new Map<string, MethodDeclaration>();
  /** By the token of the lease. */
  readonly #held = new Map<string, Attempt>();
  #queue: Attempt[] = [];
  #running = 0;
  readonly #heartbeats: Heartbeats;
  readonly #reports: Reports;
  readonly #posts: Posts;
  readonly #postChannel: PostChannel;
  #socket: SocketLink | undefined;
  /** Whether a call is on its way by which the server hears of this worker on the socket. */
  #isSpeaking = false;
  readonly #leaving = new AbortController();
  #waiting: (() => void)[] = [];
  #stopAt = Infinity;
  #cleanups: (() => void)[] = [];
  #ended: Promise<WorkerEnd> | undefined;

  constructor(options: WorkerOptions = {}) {
    this.#options = options;
    this.#transport = new Transport(options);
    this.client = new Client(options);
    this.name = options.name ?? `${hostname()}:${process.pid}`.slice(-255);
    this.concurrency = whole("concurrency", options.concurrency ?? 10, 1, 1000);
    this.#log = options.log ?? jsonLog();
    this.#posts = new Posts(this.#transport);
    this.#postChannel = new PostChannel(this.#posts);
    const note = (level: Level, message: string, attempt: Attempt, fields?: JsonObject): void =>
      this.#note(level, message, { "task.id": attempt.taskId, "task.method": attempt.method, attempt: attempt.attempt, ...fields });
    this.#reports = new Reports({
      sendOnSocket: (call) => this.#sendOnSocket(call),
      sendOverPost: (call) => this.#postChannel.call(call),
      settled: (attempt) => this.#settled(attempt),
      note,
    });
    this.#heartbeats = new Heartbeats({
      held: () => this.#held.values(),
      sendRenewals: (calls, instead) => {
        const socket = instead ? undefined : this.#socket?.open;
        (socket ?? this.#postChannel).batch(calls);
      },
      takenBack: (attempt, reason, isFenced) => this.#takenBack(attempt, reason, isFenced),
      notRenewed: (attempt, why) => {
        if (!attempt.isWarned) note("warn", "a lease was not renewed", attempt, { "error.message": why });
        attempt.isWarned = true;
      },
    });
  }

  /** Attempts that this worker holds: running, waiting for a place, or with an outcome that is not acknowledged. */
  get held(): number {
    return this.#held.size;
  }

  /**
   * Registers what does the tasks of a method, before {@link run}. With a declaration, the method is declared to the
   * server, so that its tasks wait for a worker even while none is connected.
   */
  method<Input extends object = AnyInput, Output extends object | void = object | void>(
    name: string,
    handler: Handler<Input, Output>,
    declaration?: MethodDeclaration,
  ): this {
    if (this.#ended) throw new Error("methods are registered before `run`");
    if (this.#handlers.has(name)) throw new Error(`the method \`${name}\` has a handler already`);
    this.#handlers.set(name, handler);
    if (declaration) this.#declarations.set(name, declaration);
    return this;
  }

  /** Stops when the process gets one of these signals; at the second one without a grace. */
  stopOn(...signals: ("SIGTERM" | "SIGINT" | "SIGHUP" | "SIGQUIT")[]): this {
    const stop = (): void => void this.stop(this.#stopAt === Infinity ? undefined : 0);
    for (const signal of signals) {
      process.on(signal, stop);
      this.#cleanups.push(() => process.off(signal, stop));
    }
    return this;
  }

  /**
   * Works until {@link stop}, or until an operator drains this worker. Connections that are lost are made anew.
   * @throws RpcError when the server refuses this worker at its first connection, or several times in a row later: for
   * instance because its token was revoked. Running handlers may finish within the grace period.
   */
  run(): Promise<WorkerEnd> {
    if (this.#ended) throw new Error("a worker runs once");
    if (this.#handlers.size === 0) throw new Error("a worker needs at least one method");
    this.#ended = this.#run();
    return this.#ended;
  }

  /**
   * Claims nothing more, lets running handlers finish for `graceMs`, then aborts their signals and gives their tasks
   * back. Resolves when every outcome is acknowledged, or cannot be delivered.
   */
  async stop(graceMs = this.#options.graceMs ?? GRACE_MS): Promise<void> {
    this.#stopAt = Math.min(this.#stopAt, performance.now() + graceMs);
    this.#leave();
    await this.#ended?.catch(() => {});
  }

  async #run(): Promise<WorkerEnd> {
    const leaseMs = whole("leaseSeconds", this.#options.leaseSeconds ?? 60, 0, 3600) * 1000;
    const beat = setInterval(() => {
      const now = performance.now();
      this.#heartbeats.beat(now);
      this.#reports.watch(now);
      this.#socket?.watch();
    }, Heartbeats.intervalMs(leaseMs));
    try {
      await this.#declare();
      const refusal = await this.#link().then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      if (refusal) this.#lastGrace();
      await this.#finish();
      if (refusal) throw refusal.error;
      this.#note("info", "the worker has ended", { drained: this.#stopAt === Infinity });
      return this.#stopAt === Infinity ? "drained" : "stopped";
    } finally {
      clearInterval(beat);
      this.#leave();
      this.#reports.close();
      this.#socket?.close();
      this.#posts.close();
      for (const cleanup of this.#cleanups) cleanup();
    }
  }

  /** Nothing more is claimed, and nobody has asked to stop: what runs gets the grace all the same. */
  #lastGrace(): void {
    const graceMs = this.#options.graceMs ?? GRACE_MS;
    this.#stopAt = Math.min(this.#stopAt, performance.now() + graceMs);
    this.#leave();
  }

  async #declare(): Promise<void> {
    const options = { signal: this.#leaving.signal, retryForMs: Infinity };
    for (const [method, declaration] of this.#declarations) {
      try {
        await this.client.workers.declare(method, declaration, options);
      } catch (error) {
        if (!this.#leaving.signal.aborted) throw error;
      }
    }
  }

  /** Gets claims, one way or the other, until no more are wanted. */
  async #link(): Promise<void> {
    const { connection = "auto", pollSeconds = 25, leaseSeconds = 60 } = this.#options;
    const host = {
      transport: this.#transport,
      posts: this.#posts,
      methods: [...this.#handlers.keys()],
      name: this.name,
      concurrency: this.concurrency,
      leaseSeconds,
      leaving: this.#leaving.signal,
      claimed: (claim: Claim) => this.#claimed(claim),
      takenBack: (token: string, reason: string) => {
        const attempt = this.#held.get(token);
        if (attempt) this.#takenBack(attempt, reason, reason === "lost");
      },
      drain: () => {
        if (!this.#leaving.signal.aborted) this.#note("info", "the worker is being drained", { held: this.#held.size });
        this.#leave();
      },
      connected: () => {
        this.#note("info", "the worker is connected", { url: this.#transport.url.origin, methods: this.#handlers.size });
        this.#reports.resume();
      },
      free: () => this.concurrency - this.#held.size,
      changed: () => this.#changed(),
      note: (level: Level, message: string, fields?: JsonObject) => this.#note(level, message, fields),
    };
    const socket = new SocketLink(host);
    const polls = new PollLink(host, pollSeconds);
    this.#socket = connection === "poll" ? undefined : socket;
    while (!this.#leaving.signal.aborted) {
      if (connection !== "poll") {
        if ((await socket.run()) === "leaving") return;
        if (connection === "socket") throw new Error("the server has no sockets for workers");
        this.#note("info", "the server has no sockets for workers: polling");
      }
      await polls.run(connection === "poll" ? Infinity : POLL_FOR_MS);
    }
  }

  /** Finishes, or gives back, what is held. */
  async #finish(): Promise<void> {
    for (const attempt of this.#queue.splice(0)) this.#reports.release(attempt);
    void this.#socket?.unsubscribe();
    await this.#emptied(() => this.#stopAt);
    if (this.#held.size === 0) return;
    for (const attempt of this.#held.values()) if (attempt.isRunning) attempt.end("stopping");
    await this.#emptied(within(SETTLE_MS));
    for (const attempt of this.#held.values()) if (attempt.report === undefined) this.#reports.release(attempt);
    await this.#emptied(within(LAST_REPORTS_MS));
    if (this.#held.size > 0) this.#note("error", "outcomes were not acknowledged", { held: this.#held.size });
  }

  /** Resolves when nothing is held, or at a time that may change. */
  async #emptied(until: () => number): Promise<void> {
    while (this.#held.size > 0) {
      const left = until() - performance.now();
      if (left <= 0) return;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<void>((resolve) => {
        if (left !== Infinity) timer = setTimeout(resolve, left);
      });
      await Promise.race([this.#changed(), late]);
      clearTimeout(timer);
    }
  }

  #claimed(claim: Claim): void {
    if (this.#held.has(claim.lease.token)) return;
    const attempt = new Attempt(claim, performance.now(), (told) => this.#heartbeats.tell(told), this.client.workers);
    this.#held.set(attempt.token, attempt);
    if (this.#leaving.signal.aborted || !this.#handlers.has(attempt.method)) this.#reports.release(attempt);
    else if (this.#running < this.concurrency) this.#start(attempt);
    else this.#queue.push(attempt);
  }

  #start(attempt: Attempt): void {
    this.#running++;
    attempt.isRunning = true;
    let returned: unknown;
    try {
      returned = this.#handlers.get(attempt.method)!(attempt.input, attempt);
    } catch (error) {
      return this.#failed(attempt, error);
    }
    if (returned instanceof Promise || isThenable(returned)) {
      returned.then(
        (output) => this.#returned(attempt, output),
        (error: unknown) => this.#failed(attempt, error),
      );
    } else {
      this.#returned(attempt, returned);
    }
  }

  #returned(attempt: Attempt, output: unknown): void {
    // A result that was ready while the lease could not be renewed is offered: the server knows whether it still counts.
    const mayCount = attempt.ended === undefined || attempt.ended === "stopping" || attempt.ended === "lost";
    if (mayCount && !attempt.isFenced) {
      const made = outputOf(output);
      if ("json" in made) this.#reports.complete(attempt, made.json);
      else this.#fail(attempt, made.fault, false);
    }
    this.#stopped(attempt);
  }

  #failed(attempt: Attempt, error: unknown): void {
    if (attempt.ended === undefined && !attempt.isFenced) {
      if (error instanceof Suspend) this.#suspend(attempt, error.request);
      else if (error instanceof RejectedError) this.#reject(attempt, messageOf(error));
      else this.#fail(attempt, messageOf(error), !(error instanceof FinalError));
    }
    this.#stopped(attempt);
  }

  #suspend(attempt: Attempt, request: Question): void {
    const made = questionOf(request);
    if ("json" in made) this.#reports.suspend(attempt, made.json);
    else this.#fail(attempt, made.fault, false);
  }

  #fail(attempt: Attempt, message: string, retryable: boolean): void {
    const fields = { "task.id": attempt.taskId, "task.method": attempt.method, attempt: attempt.attempt };
    this.#note("warn", "a handler failed", { ...fields, "error.message": message, retryable });
    this.#reports.fail(attempt, message, retryable);
  }

  #reject(attempt: Attempt, message: string): void {
    const fields = { "task.id": attempt.taskId, "task.method": attempt.method, attempt: attempt.attempt };
    this.#note("warn", "a handler rejected a task", { ...fields, "error.message": message });
    this.#reports.reject(attempt, message);
  }

  /** The handler has ended. */
  #stopped(attempt: Attempt): void {
    attempt.isRunning = false;
    this.#running--;
    if (attempt.isFenced) this.#settled(attempt);
    // Tells the server that nothing works on the task any more.
    else if (attempt.report === undefined) this.#reports.release(attempt);
    const next = this.#queue.shift();
    if (next) this.#start(next);
  }

  #takenBack(attempt: Attempt, reason: string, isFenced: boolean): void {
    if (reason === "lost") this.#speak();
    attempt.isFenced ||= isFenced;
    if (attempt.report !== undefined) return;
    if (attempt.end(reason)) {
      this.#note("warn", "an attempt was taken back", { "task.id": attempt.taskId, attempt: attempt.attempt, reason });
    }
    if (attempt.isRunning) return;
    this.#queue = this.#queue.filter((waiting) => waiting !== attempt);
    if (isFenced) this.#settled(attempt);
    else this.#reports.release(attempt);
  }

  /**
   * A lease was lost: until it hears of a worker on its socket again, the server takes it for one that is stopped, and
   * gives it nothing.
   */
  #speak(): void {
    if (this.#isSpeaking) return;
    this.#isSpeaking = this.#sendOnSocket({ method: "system.health", params: "{}", done: () => (this.#isSpeaking = false) });
  }

  #settled(attempt: Attempt): void {
    this.#held.delete(attempt.token);
    if (this.#waiting.length > 0) this.#wake();
  }

  #sendOnSocket(call: Call): boolean {
    const socket = this.#socket?.open;
    socket?.call(call);
    return socket !== undefined;
  }

  #leave(): void {
    this.#leaving.abort();
    this.#wake();
  }

  #changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #note(level: Level, message: string, fields?: JsonObject): void {
    this.#log({ level, message, worker: this.name, ...fields });
  }
}

function within(ms: number): () => number {
  const until = performance.now() + ms;
  return () => until;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

function whole(name: string, value: number, min: number, max: number): number {
  if (!(value >= min && value <= max)) throw new RangeError(`${name} must be from ${min} to ${max}, not ${value}`);
  return value;
}
