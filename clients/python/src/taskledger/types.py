"""Shapes of what the server takes and gives, for type checkers.

At run time all of these are plain dictionaries. Members that are not always there are marked by
``total=False``. Times are RFC 3339 texts in UTC, ids are UUIDs v4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

from .errors import RunFailed

JsonObject = dict[str, Any]
"""An object of JSON."""

JsonObjects = list[JsonObject]
"""A list of objects of JSON."""

Time = str | datetime
"""A point in time that a call is given: text as in RFC 3339, or an aware ``datetime``."""

Status = Literal["pending", "in_progress", "completed", "failed", "cancelled"]
"""The status of a task."""

CancelReason = Literal[
    "cancelled", "timed_out", "deadline", "lost", "ended", "unknown", "expired", "shutdown"
]
"""Why a handler is told to stop.

``cancelled``: somebody cancelled the task. ``timed_out``, ``deadline``: its time is up. ``lost``,
``ended``, ``unknown``: the server says that the lease does not hold any more. ``expired``: the
server could not be reached until the lease had ended. ``shutdown``: the worker stops and its grace
is over; only then the outcome of the handler still counts.
"""


class Dependency(TypedDict, total=False):
    """What a task waits for: ``required`` (the default), or at least ended; ``when: always``."""

    id: str
    required: bool
    when: str


class Run(TypedDict, total=False):
    """How the last run of a task goes: ``running``, ``completed``, ``failed`` or ``cancelled``."""

    id: str
    state: str
    counts: dict[str, int]


class Task(TypedDict, total=False):
    """A task as ``tasks.get`` shows it."""

    id: str
    parent_id: str | None
    root_task_id: str
    user_id: str | None
    name: str
    status: Status
    priority: int
    inputs: JsonObject
    schemas: JsonObject | None
    params: JsonObject | None
    result: JsonObject | None
    error: str | None
    dependencies: list[Dependency]
    progress: float
    attempt: int
    created_at: str
    updated_at: str
    started_at: str | None
    completed_at: str | None
    start_at: str
    next_attempt_at: str
    blocked_by: list[JsonObject]
    labels: dict[str, str]
    run: Run


Tasks = list[Task]
"""A list of tasks."""


class Tree(TypedDict):
    """A task and what is below it."""

    task: Task
    children: list[Tree]


class WillRun(TypedDict):
    """The tasks that a run starts: the first of them, and how many there are."""

    tasks: list[str]
    count: int


class Started(TypedDict, total=False):
    """What ``tasks.execute`` and ``tasks.retry`` answer. ``task_ids`` maps the caller's ids to
    stored ones.
    """

    root_task_id: str
    task_id: str
    run_id: str
    status: str
    task_ids: dict[str, str]
    will_run: WillRun


class Created(TypedDict, total=False):
    """What ``tasks.create`` answers."""

    id: str
    status: Status
    task_ids: dict[str, str]


class Phase(TypedDict):
    """A phase of a workflow document, and its task; a phase that is skipped has none."""

    phase_name: str
    task_id: str | None
    status: Status | Literal["skipped", "deleted"]


class Workflow(Started, total=False):
    """What ``workflows.create`` and ``workflows.run`` answer. ``run_id`` is there when the run has
    begun, ``version`` when a saved version is run.
    """

    phases: list[Phase]
    warnings: JsonObjects
    not_acted_on: list[str]
    version: int


class WorkflowVersion(TypedDict):
    """A saved version of a workflow document. ``version`` counts what happened to the name, from 1;
    ``info_version`` is what the document says.
    """

    name: str
    version: int
    info_version: str
    hash: str
    bytes: int
    saved_at: str
    saved_by: str


class KeptWorkflow(WorkflowVersion):
    """What ``workflows.get`` answers; ``document`` is as it was given."""

    document: str | JsonObject


class WorkflowChange(TypedDict):
    """A difference between two documents. ``change``: ``added``, ``removed`` or ``changed``;
    ``before`` and ``after`` are shortened; ``reason`` says whom a ``breaking`` one breaks.
    """

    path: str
    change: str
    before: str | None
    after: str | None
    breaking: bool
    reason: str | None


class SavedWorkflow(WorkflowVersion):
    """What ``workflows.save`` answers, with the differences from the version before. ``created``:
    whether it is a new version.
    """

    created: bool
    changes: list[WorkflowChange]
    count: int
    breaking: int
    warnings: JsonObjects
    not_acted_on: list[str]


# `from` is a keyword.
WorkflowDiff = TypedDict(
    "WorkflowDiff",
    {
        "from": int,
        "to": "int | None",
        "changes": "list[WorkflowChange]",
        "count": int,
        "breaking": int,
    },
)
"""What ``workflows.diff`` answers. ``to`` is ``None`` for a document of the call; ``count`` and
``breaking`` count all differences, ``changes`` has at most 1000.
"""


class WorkflowEvent(TypedDict, total=False):
    """What happened to a name: ``event`` is ``saved`` or ``deleted``. ``kept``: whether the
    document is still there.
    """

    version: int
    event: str
    at: str
    by: str
    kept: bool
    info_version: str
    hash: str
    bytes: int


class PlayedWorkflow(TypedDict):
    """What ``workflows.dry_run`` answers: what happened in order, and how each phase ended."""

    steps: JsonObjects
    phases: JsonObjects


class PhaseSchemas(TypedDict):
    """What a phase of a workflow document takes and gives, as JSON Schemas."""

    phase_name: str
    input_schema: JsonObject
    output_schema: JsonObject


class WorkflowRun(TypedDict, total=False):
    """Of which document a run is: ``workflow`` has its name, version, hash and saved version, and
    ``skipped_phases`` were left out.
    """

    workflow: JsonObject
    skipped_phases: list[str]
    more_skipped: int


class WorkflowProgress(WorkflowRun):
    """What ``workflows.progress`` answers. Lists have at most 100 entries; ``more_..`` are left
    out.
    """

    root_task_id: str
    status: Status
    progress: float
    counts: dict[str, int]
    suspended_phases: JsonObjects
    more_suspended: int
    unresolvable_phases: JsonObjects
    more_unresolvable: int


class Lease(TypedDict):
    """What a worker holds a task by. ``attempt`` counts from 1, ``lease_seconds`` is its length."""

    token: str
    attempt: int
    expires_at: str
    lease_seconds: int


class Answer(TypedDict, total=False):
    """A question that was answered. ``resolution``: ``responded``, or ``expired`` when ``value`` is
    what stands for an answer; ``responded_by`` is ``None`` then.
    """

    suspension_id: str
    question: JsonObject
    value: Any
    resolution: str
    responded_by: str | None
    answered_at: str


class Suspended(TypedDict, total=False):
    """What ``tasks.suspend`` answers. ``expires_at``: when nobody will answer any more."""

    task_id: str
    suspension_id: str
    expires_at: str | None


class Responded(TypedDict, total=False):
    """What ``tasks.respond`` answers: the answer, and how the task stands now."""

    task_id: str
    suspension_id: str
    resolution: str
    value: Any
    choice_label: str
    responded_by: str
    status: Status


class ClaimContext(TypedDict, total=False):
    """What an attempt belongs to. ``timeout_seconds`` bounds the attempt, ``deadline`` the task."""

    root_task_id: str
    run_id: str
    user_id: str | None
    deadline: str | None
    timeout_seconds: float | None
    answers: list[Answer]
    traceparent: str


class Origin(TypedDict):
    """Where a value of an input came from. ``input`` is a JSON pointer."""

    input: str
    reference: str
    task_id: str
    attempt: int
    event_id: str
    sequence: int


class _Lineage(TypedDict, total=False):
    lineage: list[Origin]


class Claim(_Lineage):
    """A task that this worker may work on, with its input and the lease. ``lineage`` says where
    values of the input came from; it is absent when all of them are literal.
    """

    task: Task
    input: JsonObject
    context: ClaimContext
    lease: Lease


class Claims(TypedDict, total=False):
    """What ``tasks.claim`` answers. ``draining``: the worker should finish what it has, and end."""

    claims: list[Claim]
    draining: bool


class Renewed(TypedDict, total=False):
    """What ``tasks.renew`` answers."""

    expires_at: str
    cancel_requested: bool
    reason: str


class Sibling(TypedDict):
    """What ``tasks.sibling_output`` answers. ``output`` is ``None`` until the task has completed."""

    task_id: str
    name: str
    status: Status
    output: JsonObject | None


class Ended(TypedDict, total=False):
    """What ``tasks.complete``, ``tasks.fail`` and ``tasks.release`` answer."""

    task_id: str
    status: Status
    next_attempt_at: str


class MethodInfo(TypedDict, total=False):
    """A method of remote tasks. ``workers`` ask for it now; ``running`` and ``waiting`` count
    tasks.
    """

    method: str
    declared: bool
    description: str
    input_schema: JsonObject
    output_schema: JsonObject
    defaults: JsonObject
    limit: int
    owner: str
    declared_by: str
    declared_at: str
    workers: int
    running: int
    waiting: int
    last_asked_at: str | None


MethodInfos = list[MethodInfo]
"""A list of methods."""


class WorkerInfo(TypedDict, total=False):
    """A worker that asks for tasks, or holds some. ``tasks`` has at most 100 of the ``held``."""

    worker: str
    methods: list[str]
    connection: str
    since: str
    last_seen_at: str
    draining: bool
    held: int
    tasks: list[JsonObject]
    node: str


WorkerInfos = list[WorkerInfo]
"""A list of workers."""


EventType = Literal[
    "task_status_update",
    "task_progress_update",
    "task_output_appended",
    "task_completed",
    "task_failed",
    "task_cancelled",
    "task_suspended",
    "task_suspension_reminder",
    "task_suspension_ended",
    "task_claim_rejected",
    "task_completion_rejected",
    "run_completed",
    "run_failed",
    "run_cancelled",
]
"""What events of tasks tell.

``task_suspended`` and those after it are of a task that waits for a person: it begins to (with the
question), nobody has answered yet, it has an answer or will get none. ``data["suspension"]`` says
more. The last two are refusals that a worker was told: ``data["contract_error"]`` has what the
``data`` of its error had. ``task_failed`` has it, too, when a contract is the reason.
"""


@dataclass(frozen=True)
class Event:
    """One event of a stream.

    ``type`` is one of ``EventType``, or ``reset``: the stream does not show all that happened since
    the place that was asked for (``data["reason"]``), so read anew what you keep, and go on.

    ``id`` is the place of the event; give it as ``last_event_id`` to go on behind it.
    """

    type: str
    data: JsonObject
    id: str | None

    @property
    def task_id(self) -> str | None:
        """The task that this is about; none with ``reset``."""
        return self.data.get("task_id")

    @property
    def final(self) -> bool:
        """Whether this is the last event of a run; ``data["run"]`` tells how it went."""
        return self.data.get("final") is True


@dataclass(frozen=True)
class RunResult:
    """A run that has ended. ``task`` is what was run, as ``tasks.get`` shows it, with
    ``result``.
    """

    run_id: str
    root_task_id: str
    state: str
    task: Task
    counts: dict[str, int] = field(default_factory=dict)
    task_ids: dict[str, str] = field(default_factory=dict)

    @property
    def result(self) -> JsonObject | None:
        """The result of ``task``."""
        return self.task.get("result")

    def raise_for_state(self) -> RunResult:
        """This run, if it has completed.

        :raises RunFailed: it has failed, or was cancelled.
        """
        if self.state != "completed":
            raise RunFailed(self)
        return self


def run_result(started: Started, task: Task) -> RunResult | None:
    """How the run in ``started`` ended, from its root as it is now; ``None`` while it runs."""
    run = task.get("run")
    run_id = started.get("run_id") or (run or {}).get("id") or ""
    root_task_id = started.get("root_task_id") or task["root_task_id"]
    task_ids = started.get("task_ids") or {}
    if run is not None and run.get("id") == run_id:
        state, counts = run.get("state", "running"), run.get("counts") or {}
        if state == "running":
            return None
        return RunResult(run_id, root_task_id, state, task, counts, task_ids)
    # Another run came behind it, or none is told of: what counts is how the task is.
    if task["status"] in ("completed", "failed", "cancelled"):
        return RunResult(run_id, root_task_id, task["status"], task, {}, task_ids)
    return None
