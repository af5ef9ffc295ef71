/** Brings the outcomes of attempts to the server, until it has answered each of them. */

import { jittered } from "../backoff.js";
import type { Violation } from "../errors.js";
import type { Attempt, Report } from "./attempt.js";
import { fitsSocket, type Call, type Outcome } from "./channels.js";
import type { Level } from "./log.js";
import { cutBytes } from "./texts.js";

/** How long an answer on the socket may take before the report is sent over POST too. */
const ANSWER_MS = 35_000;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 5_000;
/** Bytes of an error that the server takes. */
const ERROR_BYTES_MAX = 65_536;
/** What the task declares of its outputs was not kept: another attempt may keep it. */
const CONTRACT = [-31024, -31025];
/** Errors that repetition cannot mend: of the contract, of parameters, of the state, of the request and of its JSON. */
const REFUSED = [...CONTRACT, -32602, -32006, -32600, -32700];
/** What a proxy says while it is asked too much; so are all statuses of 500 and above. */
const PASSING_STATUS = [408, 429];

/** What reports need of the worker. */
export interface ReportHost {
  /** Sends a call over the socket, if one is open. */
  sendOnSocket(call: Call): boolean;
  sendOverPost(call: Call): void;
  /** The server has answered, or never will: the attempt is over for this worker. */
  settled(attempt: Attempt): void;
  note(level: Level, message: string, attempt: Attempt, fields?: Record<string, unknown>): void;
}

/** All reports of a worker. */
export class Reports {
  /** Those that are not answered. */
  readonly #open = new Set<Attempt>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerAt = Infinity;

  constructor(private readonly host: ReportHost) {}

  /** `output` is JSON of an object. */
  complete(attempt: Attempt, output: string): void {
    this.#begin(attempt, "tasks.complete", `${attempt.params()},"output":${output}}`);
  }

  fail(attempt: Attempt, error: string, retryable: boolean): void {
    this.#fail(attempt, error, `"retryable":${retryable}`);
  }

  /** The worker does not do the task. */
  reject(attempt: Attempt, error: string): void {
    this.#fail(attempt, error, `"rejected":true`);
  }

  /** `request` is JSON of an object. */
  suspend(attempt: Attempt, request: string): void {
    this.#begin(attempt, "tasks.suspend", `${attempt.params()},"request":${request}}`);
  }

  release(attempt: Attempt): void {
    this.#begin(attempt, "tasks.release", `${attempt.params()}}`);
  }

  /** A socket was opened: what waits goes out at once. */
  resume(): void {
    for (const attempt of this.#open) if (attempt.report?.sentAt === undefined) this.#send(attempt);
  }

  /** To be called now and then: looks after answers that do not come. */
  watch(now: number): void {
    for (const attempt of this.#open) {
      const sentAt = attempt.report?.sentAt;
      if (sentAt !== undefined && now - sentAt >= ANSWER_MS) this.#send(attempt, true);
    }
  }

  #fail(attempt: Attempt, error: string, more: string): void {
    const said = error === "" ? "the handler failed without a message" : error;
    const shown = JSON.stringify(cutBytes(said, ERROR_BYTES_MAX));
    this.#begin(attempt, "tasks.fail", `${attempt.params()},"error":${shown},${more}}`);
  }

  #begin(attempt: Attempt, method: Report["method"], params: string): void {
    if (attempt.report !== undefined) return;
    attempt.report = { method, params, sentAt: undefined, tryAt: 0, tries: 0, isForPost: !fitsSocket(params), giveUpAt: undefined };
    this.#open.add(attempt);
    this.#send(attempt);
  }

  #send(attempt: Attempt, overPost = false): void {
    const report = attempt.report!;
    report.sentAt = performance.now();
    const call: Call = {
      method: report.method,
      params: report.params,
      done: (outcome) => this.#answered(attempt, report, outcome),
    };
    if (overPost || report.isForPost || !this.host.sendOnSocket(call)) this.host.sendOverPost(call);
  }

  #answered(attempt: Attempt, report: Report, outcome: Outcome): void {
    // Sent twice, answered twice; or replaced by another report.
    if (!this.#open.has(attempt) || attempt.report !== report) return;
    if ("result" in outcome) return this.#settle(attempt);
    if ("lost" in outcome) {
      if (outcome.status === 413) return this.#refused(attempt, report, `HTTP 413: ${outcome.lost}`, undefined);
      report.isForPost ||= outcome.isUnread === true;
      if (isPassing(outcome.status)) return this.#again(attempt, report, 0, outcome.lost);
      return this.#whileLeased(attempt, report, outcome.lost, { "http.status": outcome.status });
    }
    const { code, message, data } = outcome.error;
    if (code === -32013) return this.#again(attempt, report, data?.retry_after_ms ?? 0, message);
    // Releases are also sent of attempts that the server has taken back, which it may refuse.
    const expected = report.method === "tasks.release" && attempt.ended !== undefined;
    if (code === -31010 || code === -32001) {
      if (!expected) {
        this.host.note("warn", "the outcome was refused: the lease is not held", attempt, {
          "lease.reason": data?.["reason"] ?? message,
          "outcome.method": report.method,
        });
      }
      return this.#settle(attempt);
    }
    if (REFUSED.includes(code)) {
      return this.#refused(attempt, report, (data?.errors ?? []).map(textOf).join("; ") || message, code);
    }
    // Credentials that do not hold, or a failure inside the server.
    this.#whileLeased(attempt, report, message, { "error.code": code });
  }

  /**
   * What may pass is worth repeating while the lease lives. Renewals may succeed where the outcome never does, so the
   * lease counts as it stood at the first refusal.
   */
  #whileLeased(attempt: Attempt, report: Report, why: string, fields: Record<string, unknown>): void {
    report.giveUpAt ??= attempt.endsAt;
    if (performance.now() < report.giveUpAt) return this.#again(attempt, report, 0, why);
    this.host.note("error", "the outcome could not be reported", attempt, { "error.message": why, ...fields });
    this.#settle(attempt);
  }

  /** The same call would be refused again. */
  #refused(attempt: Attempt, report: Report, reason: string, code: number | undefined): void {
    this.host.note("error", "the outcome was refused", attempt, { "error.message": reason, "error.code": code });
    const what = { "tasks.complete": "output", "tasks.suspend": "question" }[report.method as string];
    if (what === undefined) return this.#settle(attempt);
    attempt.report = undefined;
    this.fail(attempt, `the ${what} was refused: ${reason}`, code !== undefined && CONTRACT.includes(code));
  }

  #settle(attempt: Attempt): void {
    this.#open.delete(attempt);
    this.host.settled(attempt);
  }

  #again(attempt: Attempt, report: Report, atLeastMs: number, why: string): void {
    report.sentAt = undefined;
    report.tryAt = performance.now() + Math.max(atLeastMs, jittered(RETRY_FIRST_MS, RETRY_MAX_MS, report.tries++));
    if (report.tries === 1) this.host.note("debug", "the outcome is sent again", attempt, { "error.message": why });
    this.#arm(report.tryAt);
  }

  #arm(at: number): void {
    if (at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => this.#retry(), Math.max(1, at - performance.now()));
  }

  #retry(): void {
    this.#timerAt = Infinity;
    const now = performance.now();
    for (const attempt of this.#open) {
      const report = attempt.report;
      if (report?.sentAt !== undefined || report === undefined) continue;
      if (report.tryAt <= now) this.#send(attempt);
      else this.#arm(report.tryAt);
    }
  }

  /** Nothing is sent any more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#open.clear();
  }
}

/** Whether what was said instead of an answer tells of a passing state; `undefined`: nothing was said. */
function isPassing(status: number | undefined): boolean {
  return status === undefined || status >= 500 || PASSING_STATUS.includes(status);
}

function textOf({ field, reason, expected }: Violation): string {
  return `${field}: ${reason}${expected ? `, expected ${expected}` : ""}`;
}
