/** What handlers throw, and why their signal is aborted. */

import { TaskledgerError } from "../errors.js";
import type { Question } from "../types.js";

/** The attempt failed; the task's retries are used. Any other error that a handler throws counts as one of these. */
export class RetryableError extends TaskledgerError {}

/** The attempt failed and would fail again: the task fails at once, whatever retries are left. */
export class FinalError extends TaskledgerError {}

/**
 * The worker does not do the task, by a policy and not for a fault: the task fails at once, and a run that failed for
 * nothing else is rejected.
 */
export class RejectedError extends TaskledgerError {}

/** The task waits for a person, and this attempt is over. Whoever works on it next finds the answer in its context. */
export class Suspend extends TaskledgerError {
  readonly request: Question;

  constructor(request: Question | string) {
    const asked = typeof request === "string" ? { question: request } : request;
    super(asked.question);
    this.request = asked;
  }
}

/** Why the signal of an attempt was aborted. Whatever the handler does afterwards changes nothing. */
export class AttemptEnded extends TaskledgerError {
  /**
   * `cancelled`, `timed_out`, `deadline`: the task was taken back; stop within its `cancel_grace_seconds`.
   * `lost`: the lease is another worker's, or has ended. `stopping`: the worker stops; the task goes back to others.
   */
  readonly reason: EndReason;

  constructor(reason: EndReason) {
    super(MESSAGES[reason] ?? `the attempt was ended: ${reason}`);
    this.reason = reason;
  }
}

export type EndReason = "cancelled" | "timed_out" | "deadline" | "lost" | "stopping" | (string & {});

const MESSAGES: Partial<Record<string, string>> = {
  cancelled: "the task was cancelled",
  timed_out: "the attempt has run longer than its timeout allows",
  deadline: "the deadline of the task has passed",
  lost: "the lease of the attempt is not held any more",
  stopping: "the worker is stopping",
};
