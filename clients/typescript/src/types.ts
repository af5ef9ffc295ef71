/** What travels between client and server. Names and shapes are those of the OpenRPC document of the server. */

/** An object of JSON. */
export type JsonObject = Record<string, unknown>;

export type TaskStatus = "pending" | "in_progress" | "completed" | "failed" | "cancelled";

/** When failed attempts are repeated. */
export interface RetryPolicy {
  max_attempts: number;
  initial_delay_ms?: number;
  multiplier?: number;
  max_delay_ms?: number;
}

/** How a task is run. Members besides these are those of its executor. */
export interface TaskParams {
  /** Seconds that it waits for its start once it is ready. */
  delay_seconds?: number;
  /** Seconds that one attempt may take. */
  timeout_seconds?: number;
  /** RFC 3339, or a `Date`; counts for everything below the task too. */
  deadline?: string | Date;
  retry_count?: number;
  retry?: RetryPolicy;
  /** Seconds within which a worker has to claim the task once it is ready; then it fails. */
  schedule_to_start_seconds?: number;
  /** Seconds that a worker gets to stop when the task is cancelled; 30 unless given. */
  cancel_grace_seconds?: number;
  [member: string]: unknown;
}

/** Which executor or worker does the task. */
export interface TaskSchemas {
  method: string;
  /** `remote`: a worker claims it, whether or not one is connected. */
  type?: string;
  /** JSON Schema (draft-07) that `inputs` have to fit. */
  input_schema?: JsonObject;
  [member: string]: unknown;
}

/** A task to be stored. `id` may be any text: tasks of one call refer to each other by it. */
export interface TaskInput {
  id?: string;
  name?: string;
  parent_id?: string | null;
  user_id?: string | null;
  /** 0 urgent, 1 high, 2 normal, 3 low. */
  priority?: 0 | 1 | 2 | 3 | null;
  inputs?: JsonObject;
  schemas?: TaskSchemas | null;
  params?: TaskParams | null;
  /** `when: "always"`: also when the other one failed, was cancelled, or can no longer run. */
  dependencies?: (string | { id: string; required?: boolean; when?: "always" })[];
  children?: TaskInput[];
  /** RFC 3339, or a `Date`: it starts not before this time. */
  start_at?: string | Date | null;
  /** What it is found by: at most 32 keys with texts. */
  labels?: Record<string, string> | null;
  [member: string]: unknown;
}

export interface StatusCounts {
  pending: number;
  in_progress: number;
  completed: number;
  failed: number;
  cancelled: number;
}

/** The latest run of a task. */
export interface Run {
  id: string;
  state: "running" | "completed" | "failed" | "cancelled" | (string & {});
  counts: StatusCounts;
}

/** A stored task. */
export interface Task {
  id: string;
  name: string;
  status: TaskStatus;
  parent_id: string | null;
  user_id: string | null;
  priority: number;
  inputs: JsonObject;
  schemas: TaskSchemas | null;
  params: TaskParams | null;
  /** What a completed task produced. */
  result: JsonObject | null;
  /** Why a failed or cancelled task ended. */
  error: string | null;
  dependencies: { id: string; required: boolean; [member: string]: unknown }[];
  /** 0 to 1. */
  progress: number;
  created_at: string;
  started_at: string | null;
  updated_at: string;
  completed_at: string | null;
  root_task_id: string;
  /** Attempts so far. */
  attempt: number;
  /** It starts not before this time, as it says. */
  start_at?: string;
  next_attempt_at?: string;
  /** While it waits for a person. */
  suspension?: { suspension_id: string; question: Question; since: string; expires_at?: string };
  run?: Run;
  /** Absent when it has none. */
  labels?: Record<string, string>;
  [member: string]: unknown;
}

/** A task with what is below it. */
export interface TaskTree {
  task: Task;
  children: TaskTree[];
}

export interface Created {
  id: string;
  status: "pending";
  /** Stored id for each id of the call. */
  task_ids?: Record<string, string>;
}

export interface Started {
  root_task_id: string;
  run_id: string;
  status: "started";
  /** With `task_id` in the call. */
  task_id?: string;
  /** Stored id for each id of the call. */
  task_ids?: Record<string, string>;
  /** With `task_id` in the call: the tasks that the run starts. At most 100 are listed; `count` is exact. */
  will_run?: { tasks: string[]; count: number };
}

/** A run that has ended. */
export interface Finished {
  started: Started;
  run: Run;
  /** The task that was executed, as it is now. */
  task: Task;
}

export interface ListQuery {
  status?: TaskStatus;
  user_id?: string;
  root_only?: boolean;
  parent_id?: string;
  name?: string;
  priority?: number;
  created_after?: string;
  created_before?: string;
  order?: "asc" | "desc";
  /** Only tasks that wait for a person. */
  suspended?: boolean;
  /** Only tasks with these labels: each key with its value, or null for any. */
  labels?: Record<string, string | null>;
  consistency?: "strong" | "eventual";
  /** Tasks that one call asks for, 1 to 1000. */
  limit?: number;
}

export interface HistoryQuery {
  scope?: "task" | "flow";
  order?: "asc" | "desc";
  types?: string[];
  consistency?: "strong" | "eventual";
  /** Events that one call asks for, 1 to 1000. */
  limit?: number;
}

/** An event of a task's history. */
export interface HistoryEvent {
  type: string;
  position: number;
  timestamp: string;
  task_id?: string;
  actor?: string;
  data: JsonObject;
  [member: string]: unknown;
}

export interface Copied {
  copied_task_id: string;
  original_task_id: string;
  status: "pending";
  task_ids: Record<string, string>;
  dropped_dependencies: { id: string; required: boolean; task_id: string }[];
}

/** Proof that an attempt belongs to a worker, until `expires_at`. */
export interface Lease {
  /** Opaque text. */
  token: string;
  attempt: number;
  expires_at: string;
  lease_seconds: number;
}

/** Where a value of an input came from. */
export interface Origin {
  /** A JSON pointer into the input. */
  input: string;
  reference: string;
  task_id: string;
  attempt: number;
  event_id: string;
  /** Its place in the history of the flow. */
  sequence: number;
}

/** A task that a worker has claimed. */
export interface Claim {
  task: Task;
  /** What the attempt works on. */
  input: JsonObject;
  /** Where values of the input came from; absent when all of them are literal. */
  lineage?: Origin[];
  context: ClaimContext;
  lease: Lease;
}

/** What a person is asked. */
export interface Question {
  question: string;
  /** `text` unless it is said. */
  response_type?: "text" | "confirm" | "choice" | "form";
  choices?: { value: unknown; label?: string }[];
  /** JSON Schema of a form. */
  schema?: JsonObject;
  /** Types of the members of a form, in place of `schema`. */
  fields?: JsonObject;
  context?: JsonObject;
  channel_hint?: string;
  timeout_seconds?: number;
  fallback_policy?: "fail" | "complete_with_fallback" | "use_default_and_continue";
  fallback_value?: unknown;
  retry_policy?: JsonObject;
}

/** A question that was answered before this attempt. */
export interface Answer {
  suspension_id: string;
  question: Question;
  value: unknown;
  /** `expired`: nobody answered, and `value` is what stands for an answer. */
  resolution: "responded" | "expired";
  responded_by: string | null;
  answered_at: string;
}

/** What `tasks.suspend` answers. */
export interface Suspended {
  task_id: string;
  suspension_id: string;
  /** When nobody will answer any more. */
  expires_at: string | null;
}

/** What `tasks.respond` answers. */
export interface Responded {
  task_id: string;
  suspension_id: string;
  resolution: "responded";
  value: unknown;
  choice_label?: string;
  responded_by: string;
  /** How the task stands now. */
  status: TaskStatus;
}

/** Where a claimed task stands. */
export interface ClaimContext {
  root_task_id: string;
  run_id: string;
  user_id: string | null;
  deadline: string | null;
  timeout_seconds: number | null;
  /** What the task has asked people in earlier attempts of the run, oldest first. */
  answers?: Answer[];
  /** W3C trace context. */
  traceparent?: string;
}

export interface ClaimQuery {
  /** Either these or `task_id`. */
  methods?: string[];
  task_id?: string;
  /** Name of the worker; the principal's unless given. */
  worker?: string;
  /** 1 to 100. */
  max?: number;
  /** 5 to 3600. */
  lease_seconds?: number;
  /** 0 to 60: how long to wait for work. */
  wait_seconds?: number;
}

export interface Claims {
  claims: Claim[];
  /** An operator drains this worker: it should finish what it has and end. */
  draining?: boolean;
}

export interface Renewed {
  expires_at: string;
  /** The task was cancelled, or its time is up: stop. */
  cancel_requested: boolean;
  reason?: string;
}

/** A task beside a claimed one. */
export interface Sibling {
  task_id: string;
  name: string;
  status: TaskStatus;
  /** Its result; `null` until it has completed. */
  output: JsonObject | null;
}

export interface Ended {
  task_id: string;
  status: TaskStatus;
  next_attempt_at?: string;
}

/** Why a lease is not held. */
export type LeaseLoss = "ended" | "cancelled" | "lost" | "unknown";

/** What a method of workers is, for those who look for it. */
export interface MethodDeclaration {
  description?: string;
  /** JSON Schema (draft-07). */
  input_schema?: JsonObject;
  output_schema?: JsonObject;
  /** What new tasks of the method get when they do not say. */
  defaults?: Pick<
    TaskParams,
    "timeout_seconds" | "schedule_to_start_seconds" | "retry_count" | "retry" | "cancel_grace_seconds"
  >;
  /** Attempts at once, of all workers together. */
  limit?: number;
}

/** A method that was declared, or that workers ask for. */
export interface WorkerMethod extends MethodDeclaration {
  method: string;
  declared: boolean;
  /** The user for whose tasks alone it is declared; absent for a shared one. */
  owner?: string;
  declared_by?: string;
  declared_at?: string;
  /** Workers that ask for it now. */
  workers: number;
  running: number;
  waiting: number;
  last_asked_at: string | null;
}

/** A worker that asks for work, or holds some. */
export interface WorkerPresence {
  worker: string;
  methods: string[];
  connection: "poll" | "socket";
  since: string;
  last_seen_at: string;
  draining: boolean;
  held: number;
  tasks: { task_id: string; attempt: number; expires_at: string }[];
  node?: string;
}

/** What `GET /events` is asked for. */
export interface EventsQuery {
  /** Only this flow, by the id of its root. */
  flow?: string;
  task?: string;
  user?: string;
  types?: EventType[];
  /** Only events of tasks with these labels: each key with its value, or null for any. */
  labels?: Record<string, string | null>;
  /** Where to begin; `now` unless given. */
  from?: "now" | "beginning" | number;
  /** `id` of the last event that arrived; wins over `from`. */
  lastEventId?: string;
}

export type EventType =
  | "task_status_update"
  | "task_progress_update"
  | "task_output_appended"
  | "task_completed"
  | "task_failed"
  | "task_cancelled"
  /** The task waits for a person. */
  | "task_suspended"
  /** The person has not answered yet. */
  | "task_suspension_reminder"
  /** Answered, or nobody will answer any more. */
  | "task_suspension_ended"
  /** A worker was refused a task: its inputs cannot be resolved, or not yet. */
  | "task_claim_rejected"
  /** A worker was refused a result: it is not what the task declares. */
  | "task_completion_rejected"
  | "run_completed"
  | "run_failed"
  | "run_cancelled";

/** What a notice says of a wait for a person. */
export interface NoticeSuspension {
  suspension_id: string;
  /** With `task_suspended`. */
  question?: Question;
  /** With `task_suspended`: when nobody will answer any more. */
  expires_at?: string;
  /** With `task_suspension_reminder`: its number, from 1. */
  reminder?: number;
  /** With `task_suspension_reminder`: whom it goes to. */
  escalation?: JsonObject;
  /** With `task_suspension_ended`. */
  resolution?: "responded" | "expired";
  /** With `task_suspension_ended`: who has answered. */
  responded_by?: string;
}

/** `data` of an event. */
export interface Notice {
  /** The same for every delivery of this event. */
  id: string;
  task_id: string;
  root_task_id: string;
  /** What the task is called, what is above it, and its labels: as it is when the notice is made. */
  name?: string;
  parent_id?: string;
  labels?: Record<string, string>;
  status: TaskStatus;
  progress: number;
  sequence: number;
  timestamp: string;
  attempt?: number;
  result?: JsonObject;
  error?: string;
  message?: string;
  /** With refusals, and with failures for the same reasons: what the `data` of the worker's error has. */
  contract_error?: JsonObject & { error: string; task_id: string; phase_name: string | null; message: string };
  /** With the types that tell of a wait for a person. */
  suspension?: NoticeSuspension;
  /** Nothing follows in this run. */
  final?: boolean;
  run?: Run;
  [member: string]: unknown;
}

/** An event of a stream. */
export type TaskEvent =
  | { type: EventType; id: string; data: Notice }
  /** The stream goes on elsewhere than asked for; what lies between is not told. */
  | {
      type: "reset";
      id: string;
      data: { reason: "malformed" | "ahead_of_log" | "another_log" | "archived" | (string & {}); cursor: string };
    };

/** What the server says about itself. */
export interface Health {
  status: string;
  version: string;
  time: string;
  [member: string]: unknown;
}
