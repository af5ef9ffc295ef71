/** Keeps the leases of all attempts that a worker holds, running or not, with one timer and few messages. */

import type { Renewed } from "../types.js";
import type { Attempt, Told } from "./attempt.js";
import type { Call, Outcome } from "./channels.js";

/**
 * Milliseconds from the answer to a progress message to the next one of the attempt. The server records one a second
 * and drops what comes sooner.
 */
const PROGRESS_MS = 1050;
/** How often it is looked for progress whose time has come. */
const LOOK_MS = 100;

/** Errors after which the same call may succeed. */
const PASSING = [-32013, -32603];
/** Reasons for which a lease is not held that handlers are told; all others are `lost` to them. */
const TOLD = ["cancelled", "timed_out", "deadline"];

/** What heartbeats need of the worker. */
export interface HeartbeatHost {
  held(): Iterable<Attempt>;
  /** Sends renewals; `instead` when they were sent before and not answered. */
  sendRenewals(calls: Call[], instead: boolean): void;
  /** The server wants the attempt back, or its lease is gone. `isFenced`: it takes no report any more. */
  takenBack(attempt: Attempt, reason: string, isFenced: boolean): void;
  /** A renewal was refused otherwise, or got no answer. */
  notRenewed(attempt: Attempt, why: string): void;
}

/** Renews what is due. */
export class Heartbeats {
  /** Attempts whose progress is to be sent. */
  readonly #telling = new Set<Attempt>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly host: HeartbeatHost) {}

  /** Milliseconds between two beats for leases of so many milliseconds. */
  static intervalMs(leaseMs: number): number {
    return Math.min(1000, Math.max(25, leaseMs / 12));
  }

  /** To be called at the interval. Cost: O(held). */
  beat(now: number): void {
    const due: Attempt[] = [];
    const again: Attempt[] = [];
    for (const attempt of this.host.held()) {
      if (attempt.isFenced) continue;
      if (now >= attempt.endsAt && attempt.ended === undefined) {
        // Another worker may have it now. A finished result is still offered; the server decides.
        if (attempt.report === undefined) this.host.takenBack(attempt, "lost", false);
        continue;
      }
      // A handler that is slow to stop does not get more time.
      if (attempt.ended !== undefined && attempt.ended !== "stopping") continue;
      if (attempt.renewingSince > 0) {
        if (now - attempt.renewingSince >= attempt.leaseMs / 3) again.push(attempt);
      } else if (now >= attempt.renewAt) {
        due.push(attempt);
      }
    }
    this.#renew(due, now, false);
    this.#renew(again, now, true);
  }

  /** Sends the progress of an attempt: at once, or when the server records it again. One timer for all attempts. */
  tell(attempt: Attempt): void {
    this.#telling.add(attempt);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#tell(), attempt.tellAt === -Infinity ? 0 : LOOK_MS);
  }

  #tell(): void {
    this.#timer = undefined;
    const now = performance.now();
    const due: Attempt[] = [];
    for (const attempt of this.#telling) {
      const isOver = attempt.told === undefined || attempt.report !== undefined || attempt.ended !== undefined;
      const isDue = !isOver && attempt.renewingSince === 0 && now >= attempt.tellAt;
      if (isDue) due.push(attempt);
      if (isDue || isOver) this.#telling.delete(attempt);
    }
    this.#renew(due, now, false);
    if (this.#telling.size > 0) this.#timer = setTimeout(() => this.#tell(), LOOK_MS);
  }

  #renew(attempts: Attempt[], now: number, instead: boolean): void {
    if (attempts.length === 0) return;
    const calls = attempts.map((attempt) => this.#call(attempt, now, instead));
    this.host.sendRenewals(calls, instead);
  }

  #call(attempt: Attempt, now: number, instead: boolean): Call {
    const told = this.#progress(attempt, now, instead);
    attempt.renewingSince = now;
    let params = attempt.params();
    if (told) {
      params += `,"progress":${told.progress}`;
      if (told.message) params += `,"message":${JSON.stringify(told.message)}`;
    }
    params += "}";
    return { method: "tasks.renew", params, done: (outcome) => this.#answered(attempt, now, told, outcome) };
  }

  /** What a renewal says that is sent now; nothing while the server would drop it. */
  #progress(attempt: Attempt, now: number, instead: boolean): Told | undefined {
    if (instead) attempt.told ??= attempt.telling;
    else if (now < attempt.tellAt) return undefined;
    const { told } = attempt;
    if (told === undefined) return undefined;
    attempt.told = undefined;
    attempt.telling = told;
    attempt.tellAt = Infinity;
    return told;
  }

  /** A renewal with progress was answered, or lost: only now it is certain that the server's second has begun. */
  #told(attempt: Attempt, told: Told, outcome: Outcome): void {
    if (attempt.telling !== told) return;
    attempt.telling = undefined;
    attempt.tellAt = performance.now() + PROGRESS_MS;
    const isLost = "lost" in outcome || ("error" in outcome && PASSING.includes(outcome.error.code));
    if (isLost) attempt.told ??= told;
    if (attempt.told !== undefined) this.tell(attempt);
  }

  #answered(attempt: Attempt, sentAt: number, told: Told | undefined, outcome: Outcome): void {
    if (told !== undefined) this.#told(attempt, told, outcome);
    if ("result" in outcome) {
      const renewed = outcome.result as Renewed;
      attempt.renewed(sentAt);
      if (renewed.cancel_requested) this.host.takenBack(attempt, renewed.reason ?? "cancelled", false);
      return;
    }
    // The lease is still what it was; the next beat tries again.
    attempt.renewingSince = 0;
    attempt.renewAt = sentAt + attempt.leaseMs / 12;
    if ("lost" in outcome) return this.host.notRenewed(attempt, outcome.lost);
    const { code, message, data } = outcome.error;
    // Behind a report the lease has ended as it should; the answer to the report says how.
    if (attempt.report !== undefined) return;
    const reason = String(data?.["reason"]);
    if (code === -31010) this.host.takenBack(attempt, TOLD.includes(reason) ? reason : "lost", true);
    else if (code === -32001) this.host.takenBack(attempt, "cancelled", true);
    else this.host.notRenewed(attempt, `${message} (${code})`);
  }
}
