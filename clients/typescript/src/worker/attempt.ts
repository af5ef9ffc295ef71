/** One claimed task while this worker has it: what its handler sees, and where its lease and its outcome stand. */

import type { WorkersClient } from "../client.js";
import type { Claim, ClaimContext, JsonObject, Task } from "../types.js";
import { AttemptEnded, type EndReason } from "./errors.js";
import { cutChars } from "./texts.js";

/** An input of which nothing is said: give its type to `method` to have it checked. */
export type AnyInput = Record<string, any>;

/** What a handler is given beside the input. */
export interface Context {
  /** The same as the first argument of the handler. */
  readonly input: AnyInput;
  readonly task: Task;
  readonly taskId: string;
  /** From 1, over all runs of the task. */
  readonly attempt: number;
  readonly context: ClaimContext;
  /** Aborted when the task is taken back, the lease is lost, or the worker stops; the reason is an {@link AttemptEnded}. */
  readonly signal: AbortSignal;
  /**
   * Tells how far the attempt is, 0 to 1, with a message for people of up to 1000 characters. Sent once a second at
   * most: of what is said faster, the last counts.
   */
  progress(progress: number, message?: string): void;
  /**
   * The result of another task below the same parent, by name or id; `null` until it has completed. What is known to be
   * needed belongs into `schemas.wiring` and comes as input.
   */
  siblingOutput(name: string): Promise<JsonObject | null>;
  /**
   * A key for an effect of this name that is the same for all attempts of the task in a run. Pass it to the service that
   * you call as its idempotency key, so that an attempt that is repeated does not repeat the effect.
   */
  key(name: string): string;
}

/** Ends an attempt. Returns what the task produced: an object, or nothing for an empty one. */
export type Handler<Input extends object = AnyInput, Output extends object | void = object | void> = (
  input: Input,
  context: Context,
) => Output | Promise<Output>;

/** Characters of a progress message that the server takes. */
const MESSAGE_CHARS_MAX = 1000;

/** How far an attempt is, in the words of its handler. */
export interface Told {
  progress: number;
  message: string | undefined;
}

/** The call that ends an attempt, on its way. */
export interface Report {
  method: "tasks.complete" | "tasks.fail" | "tasks.suspend" | "tasks.release";
  /** JSON. */
  params: string;
  /** When it was sent; `undefined` while it waits. */
  sentAt: number | undefined;
  /** Not before, while it waits. */
  tryAt: number;
  tries: number;
  /** Whether it is sent over POST, whose answers tell which call they mean even if it could not be read. */
  isForPost: boolean;
  /** When it is given up: the end of the lease as it stood at the first refusal that may pass. */
  giveUpAt: number | undefined;
}

/** The grace of a task whose `params` name none. */
const CANCEL_GRACE_MS = 30_000;
/** Between two renewals at least, however short the grace is. */
const RENEWAL_MS_MIN = 1000;
/**
 * Milliseconds after a time-out or a deadline at which a lease is renewed: the answer says that the time is up, the second
 * time also of a server that was busy.
 */
const TIME_UP_MS = [50, 1000];

/** A held attempt. Times are of `performance.now()`: steps of the clock do not matter. */
export class Attempt implements Context {
  readonly task: Task;
  readonly taskId: string;
  readonly attempt: number;
  readonly input: JsonObject;
  readonly context: ClaimContext;
  readonly method: string;
  readonly token: string;
  readonly leaseMs: number;
  /** When the lease ends unless it is renewed. */
  endsAt: number;
  renewAt: number;
  /** Between two renewals. */
  readonly #renewalMs: number;
  /** When else it is renewed. */
  readonly #askAt: number[];
  /** When the renewal was sent that is not answered; 0 if none. */
  renewingSince = 0;
  /** Whether the handler runs. */
  isRunning = false;
  /** Why the outcome of the handler does not count any more. */
  ended: EndReason | undefined;
  /** Whether the server knows that the lease is not held: nothing is reported. */
  isFenced = false;
  report: Report | undefined;
  /** Progress that is to be sent. */
  told: Told | undefined;
  /** Progress that was sent and is not answered. */
  telling: Told | undefined;
  /** Before that, the server would not record progress. */
  tellAt = -Infinity;
  /** Whether it was logged that the lease is not renewed. */
  isWarned = false;
  #controller: AbortController | undefined;

  constructor(
    claim: Claim,
    now: number,
    private readonly tell: (attempt: Attempt) => void,
    private readonly workers: WorkersClient,
  ) {
    this.task = claim.task;
    this.taskId = claim.task.id;
    this.attempt = claim.lease.attempt;
    this.input = claim.input;
    this.context = claim.context;
    this.method = claim.task.schemas?.method ?? "";
    this.token = claim.lease.token;
    this.leaseMs = claim.lease.lease_seconds * 1000;
    this.endsAt = now + this.leaseMs;
    const grace = claim.task.params?.cancel_grace_seconds;
    const graceMs = typeof grace === "number" ? grace * 1000 : CANCEL_GRACE_MS;
    // Without a socket a cancellation is heard of by the next renewal, while the grace lasts.
    this.#renewalMs = Math.min(this.leaseMs / 3, Math.max(RENEWAL_MS_MIN, graceMs / 3));
    this.#askAt = timesUp(claim).flatMap((up) => TIME_UP_MS.map((pause) => now + up + pause));
    this.renewAt = this.#nextAfter(now);
  }

  #nextAfter(at: number): number {
    return Math.min(at + this.#renewalMs, ...this.#askAt.filter((askAt) => askAt > at));
  }

  /** A property, so that handlers may take it out of their context. */
  readonly progress = (progress: number, message?: string): void => {
    if (this.ended !== undefined || this.report !== undefined) return;
    if (!(progress >= 0 && progress <= 1)) throw new RangeError(`progress must be from 0 to 1, not ${progress}`);
    this.told = { progress, message: message ? cutChars(String(message), MESSAGE_CHARS_MAX) : undefined };
    this.tell(this);
  };

  /** A property, too. */
  readonly siblingOutput = async (name: string): Promise<JsonObject | null> =>
    (await this.workers.siblingOutput(this.taskId, this.token, name)).output;

  /** A property, too. */
  readonly key = (name: string): string => `${this.context.run_id}-${this.taskId}:${name}`;

  get signal(): AbortSignal {
    // Made when it is asked for: most short handlers never do.
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.ended !== undefined) this.#controller.abort(new AttemptEnded(this.ended));
    }
    return this.#controller.signal;
  }

  /** The lease was renewed by a call that was sent at `sentAt`. */
  renewed(sentAt: number): void {
    this.renewingSince = 0;
    this.isWarned = false;
    this.endsAt = sentAt + this.leaseMs;
    this.renewAt = this.#nextAfter(sentAt);
  }

  /** Takes the attempt from its handler. The first reason counts. */
  end(reason: EndReason): boolean {
    if (this.ended !== undefined) return false;
    this.ended = reason;
    this.#controller?.abort(new AttemptEnded(reason));
    return true;
  }

  /** Parameters that name the lease, without the closing brace. */
  params(): string {
    return `{"task_id":"${this.taskId}","lease":${JSON.stringify(this.token)}`;
  }
}

/** Milliseconds from a claim to its time-out and to its deadline, as far as there are such. */
function timesUp({ context, lease }: Claim): number[] {
  const found: number[] = [];
  if (typeof context.timeout_seconds === "number") found.push(context.timeout_seconds * 1000);
  if (typeof context.deadline === "string") {
    // Both are of the server's clock; this machine's may differ.
    const left = Date.parse(context.deadline) - Date.parse(lease.expires_at) + lease.lease_seconds * 1000;
    if (Number.isFinite(left)) found.push(Math.max(0, left));
  }
  return found;
}
