"""Shapes of what the methods ``schedules.*`` take and give, for type checkers.

At run time all of these are plain dictionaries. Times are RFC 3339 texts in UTC.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from .types import JsonObject, JsonObjects

Overlap = Literal["skip", "queue", "allow", "cancel_previous"]
"""What happens at a time while a run of the schedule has not ended."""

Bound = Literal["start_at", "end_at", "max_runs"]
"""A bound that ``schedules_update`` can take away."""


class _NamedWorkflow(TypedDict):
    name: str


class ScheduledWorkflow(_NamedWorkflow, total=False):
    """The saved workflow that a schedule starts; without ``version`` the newest at each time."""

    version: int | None
    inputs: JsonObject


class ScheduleCounters(TypedDict):
    """What became of the times of a schedule."""

    started: int
    started_by_hand: int
    skipped: int
    missed: int
    failed: int


class ScheduleRun(TypedDict):
    """What became of one time. ``status`` is that of the run, or ``gone`` when it was deleted or
    archived; ``error`` says why it was not started.
    """

    scheduled_at: str
    by_hand: bool
    outcome: Literal["waiting", "starting", "started", "skipped", "failed"]
    status: str | None
    decided_at: str
    error: str | None
    root_task_id: str | None
    run_id: str | None


class _When(TypedDict, total=False):
    cron: str
    rrule: str
    every_seconds: int
    time_zone: str
    workflow: ScheduledWorkflow
    tasks: JsonObjects


class Schedule(_When):
    """A schedule as ``schedules.list`` shows it, with one of ``cron``, ``rrule`` and
    ``every_seconds``, and either ``workflow`` or ``tasks``. ``next_at`` is ``None`` while it is
    paused, and when no time is left. It starts its runs in the name of ``runs_as``.
    """

    id: str
    name: str
    version: int
    paused: bool
    note: str | None
    overlap: Overlap
    catch_up_seconds: int
    jitter_seconds: int
    start_at: str | None
    end_at: str | None
    max_runs: int | None
    next_at: str | None
    runs_as: str
    created_at: str
    updated_at: str
    counters: ScheduleCounters
    last_error: str | None


class ShownSchedule(Schedule):
    """A schedule with its ``next`` times, at most 5. ``runs`` has what became of its last 20,
    newest first; only ``schedules.get`` tells them.
    """

    next: list[str]
    runs: list[ScheduleRun]
