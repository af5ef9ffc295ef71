/** Workflow documents: the methods `workflows.*`, and what they answer. */

import type { CallOptions, Client } from "./client.js";
import type { JsonObject, TaskStatus } from "./types.js";

/** Workflow documents of RFC-0024: text in YAML or JSON, or the document itself. */
export type WorkflowDocument = string | JsonObject;

/** Whose saved documents are meant: the caller's unless it is given. Those of others need the scope `users:any`. */
export interface WorkflowOwner {
  owner?: string;
}

/** Something that is wrong with a workflow document. */
export interface WorkflowFault {
  error: "WorkflowValidationError" | "InputWiringError";
  /** Such as `workflow.report.inputs`. */
  path: string;
  /** From 1; `null` for a document that was given as an object. */
  line: number | null;
  column: number | null;
  reason: string;
  suggestion: string | null;
  phase_name?: string;
  invalid_refs?: string[];
}

/** What `workflows.validate` answers. */
export interface WorkflowReport {
  valid: boolean;
  errors: WorkflowFault[];
  warnings: WorkflowFault[];
  /** Of a document without errors. */
  workflow?: { name: string; version: string; hash: string; phases: string[]; not_acted_on: string[] };
}

/** What `workflows.create` and `workflows.run` answer. */
export interface Workflow {
  root_task_id: string;
  /** In the order of the document. */
  phases: { phase_name: string; task_id: string | null; status: TaskStatus | "skipped" | "deleted" }[];
  warnings: WorkflowFault[];
  /** Paths of keys that have no effect. */
  not_acted_on: string[];
  /** When the run has begun. */
  run_id?: string;
  /** When a saved version is run. */
  version?: number;
}

/** A saved version of a document. */
export interface WorkflowVersion {
  /** `info.name` of the document. */
  name: string;
  /** Counts what happened to the name, from 1. */
  version: number;
  /** `info.version` of the document. */
  info_version: string;
  hash: string;
  bytes: number;
  saved_at: string;
  saved_by: string;
}

/** A difference between two documents. */
export interface WorkflowChange {
  path: string;
  change: "added" | "removed" | "changed";
  /** Shortened; `null` for nothing. */
  before: string | null;
  after: string | null;
  /** Whether callers, workers or readers of results may break. */
  breaking: boolean;
  /** Whom it breaks, and how. */
  reason: string | null;
}

/** The differences between two documents. */
export interface WorkflowChanges {
  /** Breaking ones first; at most 1000. */
  changes: WorkflowChange[];
  /** Of all. */
  count: number;
  /** Of all. */
  breaking: number;
}

/** What `workflows.save` answers, with the differences from the version before. */
export interface SavedWorkflow extends WorkflowVersion, WorkflowChanges {
  /** Whether it is a new version. */
  created: boolean;
  warnings: WorkflowFault[];
  not_acted_on: string[];
}

/** What `workflows.get` answers. */
export interface KeptWorkflow extends WorkflowVersion {
  /** As it was given. */
  document: WorkflowDocument;
}

/** What `workflows.diff` answers. */
export interface WorkflowDiff extends WorkflowChanges {
  from: number;
  /** `null` for a document of the call. */
  to: number | null;
}

/** Something that happened to the name of a document. */
export interface WorkflowEvent {
  version: number;
  event: "saved" | "deleted";
  at: string;
  by: string;
  /** Whether the document is still there. */
  kept: boolean;
  /** With `saved`, as the next two. */
  info_version?: string;
  hash?: string;
  bytes?: number;
}

/** What `workflows.dry_run` answers. */
export interface PlayedWorkflow {
  /** In order. */
  steps: { phase: string; step: "claim" | "complete" | "reject" | "fail"; input?: JsonObject; output?: JsonObject; error?: unknown }[];
  /** How each ended, in the order of the document. */
  phases: { phase: string; status: TaskStatus; reason?: string }[];
}

/** What a phase takes and gives, as JSON Schemas. */
export interface PhaseSchemas {
  phase_name: string;
  input_schema: JsonObject;
  output_schema: JsonObject;
}

/** What `workflows.progress` answers. */
export interface WorkflowProgress {
  root_task_id: string;
  status: TaskStatus;
  progress: number;
  /** `ready` ones are pending, `suspended` ones in progress. */
  counts: Record<"total" | "pending" | "ready" | "in_progress" | "suspended" | "completed" | "failed" | "cancelled", number>;
  /** At most 100, as of the other list. */
  suspended_phases: {
    phase_name: string | null;
    task_id: string;
    suspension_id: string;
    suspended_since: string;
    expires_at: string | null;
  }[];
  more_suspended: number;
  unresolvable_phases: {
    phase_name: string | null;
    task_id: string;
    error: "UnresolvableInputError";
    unresolvable_refs: string[];
    message: string;
  }[];
  more_unresolvable: number;
  /** The document, if the task is a run of one; as the members below. */
  workflow?: { name: string; version: string; hash: string; saved_version: number | null };
  /** Phases of the document that were left out, at most 100. */
  skipped_phases?: string[];
  more_skipped?: number;
}

/** Checks, saves and runs workflow documents. */
export class WorkflowsClient {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Says everything that is wrong with a document; stores nothing. */
  validate(document: WorkflowDocument, more: { strict?: boolean } = {}, options?: CallOptions): Promise<WorkflowReport> {
    return this.#client.call("workflows.validate", { document, ...more }, options);
  }

  /**
   * Plays a run with outputs that were made up; stores nothing. `outputs`: by name of the phase the output of one
   * completion, or a list of them; `{ $fail: reason }` fails an attempt.
   */
  dryRun(
    document: WorkflowDocument,
    more: { trigger?: JsonObject; outputs?: JsonObject; strict?: boolean } = {},
    options?: CallOptions,
  ): Promise<PlayedWorkflow> {
    return this.#client.call("workflows.dry_run", { document, ...more }, options);
  }

  /**
   * Creates the tasks of one run; with `execute` it begins at once. `labels` are those of the root of the run.
   * @throws InputWiringError if only references are wrong, else InvalidParamsError; `data.faults` has all with their lines.
   */
  create(
    document: WorkflowDocument,
    more: { trigger?: JsonObject; user_id?: string; labels?: Record<string, string>; strict?: boolean; execute?: boolean } = {},
    options?: CallOptions,
  ): Promise<Workflow> {
    return this.#client.call("workflows.create", { document, ...more }, options);
  }

  /**
   * What phases take and give, as JSON Schemas (draft-07): of a document, or of the saved one called `name`; of one
   * `phase`, or of all.
   * @throws WorkflowNotFoundError
   */
  async schemas(
    of: { document: WorkflowDocument; phase?: string } | (WorkflowOwner & { name: string; version?: number; phase?: string }),
    options?: CallOptions,
  ): Promise<PhaseSchemas[]> {
    const answer: { phases: PhaseSchemas[] } = await this.#client.call("workflows.schemas", { ...of }, options);
    return answer.phases;
  }

  /**
   * Keeps a document as the newest version of its name; one that is equal to the newest is kept already.
   * `expected_version`: the newest version so far, 0 for none.
   * @throws WorkflowChangedError if another version is the newest.
   */
  save(
    document: WorkflowDocument,
    more: WorkflowOwner & { strict?: boolean; expected_version?: number } = {},
    options?: CallOptions,
  ): Promise<SavedWorkflow> {
    return this.#client.call("workflows.save", { document, ...more }, options);
  }

  /**
   * A saved version; the newest unless `version` says otherwise.
   * @throws WorkflowNotFoundError
   */
  get(name: string, more: WorkflowOwner & { version?: number } = {}, options?: CallOptions): Promise<KeptWorkflow> {
    return this.#client.call("workflows.get", { name, ...more }, options);
  }

  /** The newest versions of all saved documents by name, behind the name `after`; further pages are fetched as the loop gets there. */
  async *list(
    query: WorkflowOwner & { after?: string; limit?: number } = {},
    options?: CallOptions,
  ): AsyncGenerator<WorkflowVersion, void, undefined> {
    for (let next: string | null | undefined = query.after; next !== null; ) {
      const params = { ...query, ...(next === undefined ? {} : { after: next }) };
      const page: { workflows: WorkflowVersion[]; next_after: string | null } = await this.#client.call("workflows.list", params, options);
      yield* page.workflows;
      next = page.next_after ?? null;
    }
  }

  /** What happened to a name, newest first, before the version `before`; further pages are fetched as the loop gets there. */
  async *versions(
    name: string,
    query: WorkflowOwner & { before?: number; limit?: number } = {},
    options?: CallOptions,
  ): AsyncGenerator<WorkflowEvent, void, undefined> {
    for (let next: number | null | undefined = query.before; next !== null; ) {
      const params = { name, ...query, ...(next === undefined ? {} : { before: next }) };
      const page: { versions: WorkflowEvent[]; next_before: number | null } = await this.#client.call("workflows.versions", params, options);
      yield* page.versions;
      next = page.next_before ?? null;
    }
  }

  /**
   * What is different between two saved versions, or between a version and a document that is not saved.
   * @throws WorkflowNotFoundError
   */
  diff(
    name: string,
    more: WorkflowOwner & { from?: number; to?: number; document?: WorkflowDocument } = {},
    options?: CallOptions,
  ): Promise<WorkflowDiff> {
    return this.#client.call("workflows.diff", { name, ...more }, options);
  }

  /**
   * Deletes all versions of a document. Runs of it go on.
   * @throws WorkflowChangedError if the newest version is not `expected_version`.
   */
  delete(name: string, more: WorkflowOwner & { expected_version?: number } = {}, options?: CallOptions): Promise<{ deleted: boolean }> {
    return this.#client.call("workflows.delete", { name, ...more }, options);
  }

  /**
   * Creates the tasks of one run of a saved document, and begins it unless `execute` is false. `labels` are those of
   * the root of the run.
   * @throws WorkflowNotFoundError
   */
  run(
    name: string,
    more: WorkflowOwner & { version?: number; trigger?: JsonObject; user_id?: string; labels?: Record<string, string>; execute?: boolean } = {},
    options?: CallOptions,
  ): Promise<Workflow> {
    return this.#client.call("workflows.run", { name, ...more }, options);
  }

  /** How far everything below a task has come, and which phases wait for people or for values of inputs. */
  progress(rootTaskId: string, options?: CallOptions): Promise<WorkflowProgress> {
    return this.#client.call("workflows.progress", { root_task_id: rootTaskId }, options);
  }
}
