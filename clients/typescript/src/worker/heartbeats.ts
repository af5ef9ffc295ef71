/** Keeps the leases of all attempts that a worker holds, running or not, with one timer and few messages. */

import type { Renewed } from "../types.js";
import type { Attempt } from "./attempt.js";
import type { Call, Outcome } from "./channels.js";

/** Milliseconds between two progress messages of one attempt. */
const PROGRESS_MS = 500;

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

  /** Sends the progress of an attempt: at once, or when the last one is long enough ago. One timer for all attempts. */
  tell(attempt: Attempt): void {
    this.#telling.add(attempt);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#tell(), attempt.toldAt === -Infinity ? 0 : PROGRESS_MS / 5);
  }

  #tell(): void {
    this.#timer = undefined;
    const now = performance.now();
    const due: Attempt[] = [];
    for (const attempt of this.#telling) {
      const isOver = attempt.told === undefined || attempt.report !== undefined || attempt.ended !== undefined;
      const isDue = !isOver && attempt.renewingSince === 0 && now - attempt.toldAt >= PROGRESS_MS;
      if (isDue) due.push(attempt);
      if (isDue || isOver) this.#telling.delete(attempt);
    }
    this.#renew(due, now, false);
    if (this.#telling.size > 0) this.#timer = setTimeout(() => this.#tell(), PROGRESS_MS / 5);
  }

  #renew(attempts: Attempt[], now: number, instead: boolean): void {
    if (attempts.length > 0) this.host.sendRenewals(attempts.map((attempt) => this.#call(attempt, now)), instead);
  }

  #call(attempt: Attempt, now: number): Call {
    const { told } = attempt;
    attempt.renewingSince = now;
    attempt.told = undefined;
    let params = attempt.params();
    if (told) {
      attempt.toldAt = now;
      params += `,"progress":${told.progress}`;
      if (told.message) params += `,"message":${JSON.stringify(told.message)}`;
    }
    params += "}";
    return { method: "tasks.renew", params, done: (outcome) => this.#answered(attempt, now, outcome) };
  }

  #answered(attempt: Attempt, sentAt: number, outcome: Outcome): void {
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
    if (code === -31010) this.host.takenBack(attempt, data?.["reason"] === "cancelled" ? "cancelled" : "lost", true);
    else if (code === -32001) this.host.takenBack(attempt, "cancelled", true);
    else this.host.notRenewed(attempt, `${message} (${code})`);
  }
}
