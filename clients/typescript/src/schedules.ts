/** Schedules: the methods `schedules.*`, and what they answer. */

import type { CallOptions, Client } from "./client.js";
import type { JsonObject, TaskInput } from "./types.js";

/** Whose schedules are meant: the caller's unless it is given. Those of others need the scope `users:any`. */
export interface ScheduleOwner {
  owner?: string;
}

/** What happens at a time while a run of the schedule has not ended. */
export type Overlap = "skip" | "queue" | "allow" | "cancel_previous";

/** The saved workflow that a schedule starts. */
export interface ScheduledWorkflow {
  name: string;
  /** The newest at each time unless it is given. */
  version?: number | null;
  inputs?: JsonObject;
}

/** When a schedule starts what, and how. One of `cron`, `rrule` and `every_seconds`; either `workflow` or `tasks`. */
export interface ScheduleDefinition {
  /** Minute, hour, day of month, month, day of week; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. */
  cron?: string;
  /** A recurrence rule of RFC 5545. */
  rrule?: string;
  /** Counted from `start_at`, or from when the schedule is made. */
  every_seconds?: number;
  /** A name of the IANA database, for `cron` and `rrule`; UTC unless it is given. */
  time_zone?: string;
  workflow?: ScheduledWorkflow;
  /** As `execute` takes them, without UUIDs as ids. */
  tasks?: TaskInput[];
  /** RFC 3339, or a `Date`: no run before. */
  start_at?: string | Date;
  /** RFC 3339, or a `Date`: no run after. */
  end_at?: string | Date;
  /** Runs that the schedule starts at most; runs by hand do not count. */
  max_runs?: number;
  /** `skip` unless it is given. */
  overlap?: Overlap;
  /** A time that passed while no server ran is made up within so many seconds; 60 unless it is given. */
  catch_up_seconds?: number;
  /** Each start is put off by 0 to so many seconds. */
  jitter_seconds?: number;
}

/** A schedule. */
export interface Schedule {
  id: string;
  name: string;
  /** One more with each change. */
  version: number;
  paused: boolean;
  note: string | null;
  cron?: string;
  rrule?: string;
  every_seconds?: number;
  time_zone?: string;
  workflow?: ScheduledWorkflow;
  tasks?: TaskInput[];
  overlap: Overlap;
  catch_up_seconds: number;
  jitter_seconds: number;
  start_at: string | null;
  end_at: string | null;
  max_runs: number | null;
  /** `null` while it is paused, and when no time is left. */
  next_at: string | null;
  /** The principal in whose name it starts runs: the one that changed it last. */
  runs_as: string;
  created_at: string;
  updated_at: string;
  counters: { started: number; started_by_hand: number; skipped: number; missed: number; failed: number };
  /** Why a run could not be started, the last time. */
  last_error: string | null;
}

/** What became of one time of a schedule. */
export interface ScheduleRun {
  scheduled_at: string;
  /** Whether `runNow` asked for it. */
  by_hand: boolean;
  outcome: "waiting" | "starting" | "started" | "skipped" | "failed";
  /** How the run stands; `gone` for one that was deleted or archived. */
  status: string | null;
  decided_at: string;
  /** Why it was not started. */
  error: string | null;
  /** If it was started, as `run_id`. */
  root_task_id: string | null;
  run_id: string | null;
}

/** A schedule with its times. */
export interface ShownSchedule extends Schedule {
  /** Its next times, at most 5. */
  next: string[];
  /** What became of its last times, newest first, at most 20; told by `get`. */
  runs: ScheduleRun[];
}

/** Schedules, which start saved workflows or tasks at given times. Times in answers are RFC 3339 texts; calls take `Date` too. */
export class SchedulesClient {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Makes a schedule. It acts in the name of the caller.
   * @throws ScheduleChangedError if the name is taken; WorkflowNotFoundError
   */
  create(
    name: string,
    definition: ScheduleDefinition & ScheduleOwner & { paused?: boolean; note?: string },
    options?: CallOptions,
  ): Promise<ShownSchedule> {
    return this.#client.call("schedules.create", { name, ...definition }, options);
  }

  /** The schedules of one user by name, behind the name `after`; further pages are fetched as the loop gets there. */
  async *list(
    query: ScheduleOwner & { after?: string; limit?: number } = {},
    options?: CallOptions,
  ): AsyncGenerator<Schedule, void, undefined> {
    for (let next: string | null | undefined = query.after; next !== null; ) {
      const params = { ...query, ...(next === undefined ? {} : { after: next }) };
      const page: { schedules: Schedule[]; next_after: string | null } = await this.#client.call("schedules.list", params, options);
      yield* page.schedules;
      next = page.next_after ?? null;
    }
  }

  /**
   * A schedule with its next times, and with what became of its last ones.
   * @throws ScheduleNotFoundError
   */
  get(name: string, more: ScheduleOwner = {}, options?: CallOptions): Promise<ShownSchedule> {
    return this.#client.call("schedules.get", { name, ...more }, options);
  }

  /**
   * Changes what is given; `without` takes bounds away. From then on it acts in the name of the caller. A call with
   * `expected_version` is not repeated once it may have been carried out.
   * @throws ScheduleNotFoundError; ScheduleChangedError if its version is not `expected_version`; WorkflowNotFoundError
   */
  update(
    name: string,
    changes: ScheduleDefinition &
      ScheduleOwner & { without?: ("start_at" | "end_at" | "max_runs")[]; expected_version?: number },
    options?: CallOptions,
  ): Promise<ShownSchedule> {
    return this.#client.call("schedules.update", { name, ...changes }, options);
  }

  /**
   * Has the times of a schedule pass without runs, or with `paused: false` not any more. Times that pass meanwhile are
   * not made up.
   * @throws ScheduleNotFoundError
   */
  pause(name: string, more: ScheduleOwner & { paused?: boolean; note?: string } = {}, options?: CallOptions): Promise<ShownSchedule> {
    return this.#client.call("schedules.pause", { name, ...more }, options);
  }

  /**
   * Deletes a schedule. Runs that it has started continue.
   * @throws ScheduleChangedError if its version is not `expected_version`.
   */
  delete(name: string, more: ScheduleOwner & { expected_version?: number } = {}, options?: CallOptions): Promise<{ deleted: boolean }> {
    return this.#client.call("schedules.delete", { name, ...more }, options);
  }

  /**
   * Starts a run now, also while the schedule is paused. A run that goes on is treated as the schedule says, or as
   * `overlap` does.
   * @throws ScheduleNotFoundError
   */
  runNow(name: string, more: ScheduleOwner & { overlap?: Overlap } = {}, options?: CallOptions): Promise<ScheduleRun> {
    return this.#client.call("schedules.run_now", { name, ...more }, options);
  }
}
