/**
 * Errors of the client: one class for each code of the server, and one for connections that failed.
 * Every class extends {@link TaskledgerError}.
 */

/** One fault of a call: which field, why, what would be accepted, and what was found. */
export interface Violation {
  field: string;
  reason: string;
  expected: string;
  actual: unknown;
  path: (string | number)[];
}

/** `data` of an error of the server. Which members there are depends on the code. */
export interface ErrorData {
  errors?: Violation[];
  /** Faults beyond those that `errors` lists. */
  more?: number;
  reason?: string;
  field?: string;
  /** With {@link BusyError}: milliseconds after which the call may be repeated. */
  retry_after_ms?: number;
  /** With {@link UnauthorizedError}: the scope that is missing. */
  scope?: string;
  /** With {@link InternalError}: under which the log of the server has the cause. */
  error_id?: string;
  [member: string]: unknown;
}

/** What all errors of this package extend. */
export class TaskledgerError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No answer came: the server cannot be reached, or the connection was lost. Whether the call was carried out is unknown. */
export class ConnectionError extends TaskledgerError {
  /** Status of HTTP, when there was an answer that is none of taskledger's. */
  readonly status: number | undefined;

  constructor(message: string, options?: ErrorOptions & { status?: number | undefined }) {
    super(message, options);
    this.status = options?.status;
  }
}

/** An error that the server answered with. */
export class RpcError extends TaskledgerError {
  /** Code of JSON-RPC. */
  readonly code: number;
  /** Members that depend on the code. */
  readonly data: ErrorData;
  /** The method that was called, if one was. */
  readonly method: string | undefined;
  /** The idempotency key that the call was sent with. Repeat a call whose outcome is unknown with the same key. */
  idempotencyKey: string | undefined;

  constructor(code: number, message: string, data: ErrorData, method?: string) {
    super(describe(code, message, data, method));
    this.code = code;
    this.data = data;
    this.method = method;
  }

  /** All faults of the call, at most as many as the server lists. */
  get violations(): Violation[] {
    return this.data.errors ?? [];
  }
}

/** -32700: the body is no JSON. */
export class ParseError extends RpcError {}
/** -32600: JSON, but no request. */
export class InvalidRequestError extends RpcError {}
/** -32601: the server has no such method. */
export class MethodNotFoundError extends RpcError {}
/** -32602: the parameters are not valid; `violations` names every fault. */
export class InvalidParamsError extends RpcError {}
/** -32603: the server failed; `data.error_id` finds the cause in its log. */
export class InternalError extends RpcError {}
/** -32001: no such task, or not for this caller. */
export class TaskNotFoundError extends RpcError {}
/** -32002: a dependency would close a cycle. */
export class CircularDependencyError extends RpcError {}
/** -32003: nothing runs the task's method. */
export class ExecutorNotFoundError extends RpcError {}
/** -32004: no credentials, none that hold, or `data.scope` is missing. */
export class UnauthorizedError extends RpcError {}
/** -32006: the status of the task does not allow this. */
export class InvalidTransitionError extends RpcError {}
/** -32008: an active run covers the task. */
export class AlreadyExecutingError extends RpcError {}
/** -32009: the task is not pending, or others depend on it. */
export class TaskNotDeletableError extends RpcError {}
/** -32010: the parent does not exist or cannot be one. */
export class InvalidParentError extends RpcError {}
/** -32011: the dependency is not in the flow. */
export class InvalidDependencyError extends RpcError {}
/** -32012: the tasks do not form one tree. */
export class InvalidTreeError extends RpcError {}
/** -32013: too busy; repeat after `data.retry_after_ms`. The client has done so already. */
export class BusyError extends RpcError {}
/** -32014: no such webhook, or no such delivery. */
export class WebhookNotFoundError extends RpcError {}
/** -32015: the caller has as much as it may; `data.limit` and `data.used`. */
export class QuotaExceededError extends RpcError {}
/** -31010: the lease has ended, is stale, or belongs to another worker; `data.reason` says which. */
export class LeaseNotHeldError extends RpcError {}

/** -31011: the task does not wait for this answer: it was answered, or waits for another one. */
export class NotSuspendedError extends RpcError {
  /** What it waits for, if it does. */
  get suspensionId(): string | undefined {
    return (this.data["suspension_id"] as string | null | undefined) ?? undefined;
  }
}

/** -31012: no such saved workflow or version, or not for this caller. */
export class WorkflowNotFoundError extends RpcError {}

/** -31013: the newest version of a saved workflow is not the expected one; nothing was changed. */
export class WorkflowChangedError extends RpcError {
  /** The newest version, if one is kept. */
  get version(): number | undefined {
    return (this.data["version"] as number | null | undefined) ?? undefined;
  }
}

/** -31014: no such schedule, or not for this caller. */
export class ScheduleNotFoundError extends RpcError {}

/** -31015: the name of a schedule is taken, or its version is not the expected one; nothing was changed. */
export class ScheduleChangedError extends RpcError {
  /** The version of the schedule. */
  get version(): number | undefined {
    return (this.data["version"] as number | null | undefined) ?? undefined;
  }
}

/** An error of RFC-0024: what a task declares of its inputs and outputs was not kept. */
export class ContractError extends RpcError {
  /** The task. */
  get taskId(): string {
    return String(this.data["task_id"] ?? "");
  }
  /** The name of the task. */
  get phaseName(): string {
    return String(this.data["phase_name"] ?? "");
  }
}
/** -31021: inputs of a workflow document name what they may not; `data.faults` has all of them. */
export class InputWiringError extends ContractError {
  get invalidRefs(): string[] {
    return (this.data["invalid_refs"] as string[] | undefined) ?? [];
  }
}
/** -31022: no result has what inputs of the claimed task name, or not yet; the task stays as it is. */
export class UnresolvableInputError extends ContractError {
  get unresolvableRefs(): string[] {
    return (this.data["unresolvable_refs"] as string[] | undefined) ?? [];
  }
  /** What has not completed that the task depends on; empty when results lack values. */
  get incompleteDependencies(): { task_id: string; phase_name: string | null; status: string }[] {
    return (this.data["incomplete_dependencies"] as { task_id: string; phase_name: string | null; status: string }[] | undefined) ?? [];
  }
}
/** -31023: a result that the claimed task needs waits for a person; the task stays pending. */
export class UpstreamIntentSuspendedError extends ContractError {
  /** The task that waits. */
  get suspendedIntentId(): string {
    return String(this.data["suspended_intent_id"] ?? "");
  }
  /** Until when at the latest. */
  get expectedResumeAt(): string | undefined {
    return (this.data["expected_resume_at"] as string | null | undefined) ?? undefined;
  }
}
/** -31024: the output lacks keys that the task declares; the attempt goes on. */
export class MissingOutputError extends ContractError {
  get missingKeys(): string[] {
    return (this.data["missing_keys"] as string[] | undefined) ?? [];
  }
}
/** -31025: values of the output are not of their declared types; the attempt goes on. `data.mismatches` names all. */
export class OutputTypeMismatchError extends ContractError {
  get key(): string {
    return String(this.data["key"] ?? "");
  }
  get expectedType(): string {
    return String(this.data["expected_type"] ?? "");
  }
  get actualType(): string {
    return String(this.data["actual_type"] ?? "");
  }
}

const CLASSES: ReadonlyMap<number, new (code: number, message: string, data: ErrorData, method?: string) => RpcError> =
  new Map([
    [-32700, ParseError],
    [-32600, InvalidRequestError],
    [-32601, MethodNotFoundError],
    [-32602, InvalidParamsError],
    [-32603, InternalError],
    [-32001, TaskNotFoundError],
    [-32002, CircularDependencyError],
    [-32003, ExecutorNotFoundError],
    [-32004, UnauthorizedError],
    [-32006, InvalidTransitionError],
    [-32008, AlreadyExecutingError],
    [-32009, TaskNotDeletableError],
    [-32010, InvalidParentError],
    [-32011, InvalidDependencyError],
    [-32012, InvalidTreeError],
    [-32013, BusyError],
    [-32014, WebhookNotFoundError],
    [-32015, QuotaExceededError],
    [-31010, LeaseNotHeldError],
    [-31011, NotSuspendedError],
    [-31012, WorkflowNotFoundError],
    [-31013, WorkflowChangedError],
    [-31014, ScheduleNotFoundError],
    [-31015, ScheduleChangedError],
    [-31021, InputWiringError],
    [-31022, UnresolvableInputError],
    [-31023, UpstreamIntentSuspendedError],
    [-31024, MissingOutputError],
    [-31025, OutputTypeMismatchError],
  ]);

/** The member `error` of an answer. */
export interface ErrorObject {
  code: number;
  message: string;
  data?: ErrorData;
}

/** The error object of an answer as an error of its class; {@link RpcError} itself for a code of a newer server. */
export function toError(error: ErrorObject, method?: string): RpcError {
  const Class = CLASSES.get(error.code) ?? RpcError;
  return new Class(error.code, error.message, error.data ?? {}, method);
}

function describe(code: number, message: string, data: ErrorData, method?: string): string {
  const faults = (data.errors ?? []).slice(0, 3).map((v) => (v.field ? `${v.field}: ${v.reason}` : v.reason));
  if (faults.length === 0 && typeof data.reason === "string") faults.push(data.reason);
  const more = (data.errors?.length ?? 0) - 3 + (data.more ?? 0);
  const detail = faults.length > 0 ? `: ${faults.join("; ")}${more > 0 ? ` and ${more} more` : ""}` : "";
  return `${method ? `${method}: ` : ""}${message} (${code})${detail}`;
}
