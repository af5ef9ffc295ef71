"""Typed helpers for schedules. ``_schedules_async`` has the same for asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from ._protocol import RetryPolicy, without_none
from .schedules import Bound, Overlap, Schedule, ScheduledWorkflow, ScheduleRun, ShownSchedule
from .types import JsonObject, JsonObjects, Time


class ScheduleCalls:
    """The methods ``schedules.*``. A schedule starts a saved ``workflow`` or a tree of ``tasks`` at
    given times: by ``cron``, by ``rrule`` (RFC 5545), or each ``every_seconds``.

    Schedules are of users: without ``owner`` the caller's are meant, those of others need the
    scope ``users:any``. Parameters that are ``None`` are not sent.
    """

    if TYPE_CHECKING:

        def call(
            self,
            method: str,
            params: JsonObject | None = None,
            *,
            idempotency_key: str | None = None,
            configuration: JsonObject | None = None,
            timeout: float | None = None,
            retry: RetryPolicy | None = None,
        ) -> Any: ...

    def schedules_create(
        self,
        name: str,
        *,
        cron: str | None = None,
        rrule: str | None = None,
        every_seconds: int | None = None,
        time_zone: str | None = None,
        workflow: ScheduledWorkflow | None = None,
        tasks: JsonObjects | None = None,
        start_at: Time | None = None,
        end_at: Time | None = None,
        max_runs: int | None = None,
        overlap: Overlap | None = None,
        catch_up_seconds: int | None = None,
        jitter_seconds: int | None = None,
        paused: bool | None = None,
        note: str | None = None,
        owner: str | None = None,
    ) -> ShownSchedule:
        """Makes a schedule. It acts in the name of the caller.

        ``time_zone``: a name of the IANA database for ``cron`` and ``rrule``, UTC without it.
        ``start_at``, ``end_at``: no run before and after. ``overlap``: ``skip`` unless given.

        :raises ScheduleChanged: the name is taken.
        :raises WorkflowNotFound: there is no such workflow or version.
        """
        members = without_none(
            name=name,
            cron=cron,
            rrule=rrule,
            every_seconds=every_seconds,
            time_zone=time_zone,
            workflow=workflow,
            tasks=tasks,
            start_at=start_at,
            end_at=end_at,
            max_runs=max_runs,
            overlap=overlap,
            catch_up_seconds=catch_up_seconds,
            jitter_seconds=jitter_seconds,
            paused=paused,
            note=note,
            owner=owner,
        )
        answer = self.call("schedules.create", members)
        return cast(ShownSchedule, answer)

    def schedules_list(
        self, *, owner: str | None = None, after: str | None = None, page_size: int = 100
    ) -> Iterator[Schedule]:
        """The schedules of one user by name, those behind the name ``after``, in pages."""
        members = without_none(owner=owner, after=after, limit=page_size)
        while True:
            page = self.call("schedules.list", members)
            for schedule in page["schedules"]:
                yield cast(Schedule, schedule)
            if page.get("next_after") is None:
                return
            members["after"] = page["next_after"]

    def schedules_get(self, name: str, *, owner: str | None = None) -> ShownSchedule:
        """A schedule with its next times, and with what became of its last ones.

        :raises ScheduleNotFound: there is no such schedule.
        """
        answer = self.call("schedules.get", without_none(name=name, owner=owner))
        return cast(ShownSchedule, answer)

    def schedules_update(
        self,
        name: str,
        *,
        cron: str | None = None,
        rrule: str | None = None,
        every_seconds: int | None = None,
        time_zone: str | None = None,
        workflow: ScheduledWorkflow | None = None,
        tasks: JsonObjects | None = None,
        start_at: Time | None = None,
        end_at: Time | None = None,
        max_runs: int | None = None,
        overlap: Overlap | None = None,
        catch_up_seconds: int | None = None,
        jitter_seconds: int | None = None,
        without: Iterable[Bound] | None = None,
        expected_version: int | None = None,
        owner: str | None = None,
    ) -> ShownSchedule:
        """Changes what is given; ``without`` takes bounds away. From then on the schedule acts in
        the name of the caller.

        A call with ``expected_version`` is not made again once it may have been carried out.

        :raises ScheduleNotFound: there is no such schedule.
        :raises ScheduleChanged: its version is not ``expected_version``.
        :raises WorkflowNotFound: there is no such workflow or version.
        """
        members = without_none(
            name=name,
            cron=cron,
            rrule=rrule,
            every_seconds=every_seconds,
            time_zone=time_zone,
            workflow=workflow,
            tasks=tasks,
            start_at=start_at,
            end_at=end_at,
            max_runs=max_runs,
            overlap=overlap,
            catch_up_seconds=catch_up_seconds,
            jitter_seconds=jitter_seconds,
            without=None if without is None else [*without],
            expected_version=expected_version,
            owner=owner,
        )
        answer = self.call("schedules.update", members)
        return cast(ShownSchedule, answer)

    def schedules_pause(
        self,
        name: str,
        *,
        paused: bool | None = None,
        note: str | None = None,
        owner: str | None = None,
    ) -> ShownSchedule:
        """Has the times of a schedule pass without runs, or with ``paused=False`` not any more.
        Times that pass meanwhile are not made up.

        :raises ScheduleNotFound: there is no such schedule.
        """
        members = without_none(name=name, paused=paused, note=note, owner=owner)
        answer = self.call("schedules.pause", members)
        return cast(ShownSchedule, answer)

    def schedules_delete(
        self, name: str, *, expected_version: int | None = None, owner: str | None = None
    ) -> bool:
        """Deletes a schedule; whether there was one. Runs that it has started go on.

        :raises ScheduleChanged: its version is not ``expected_version``.
        """
        members = without_none(name=name, expected_version=expected_version, owner=owner)
        answer = self.call("schedules.delete", members)
        return cast(bool, answer["deleted"])

    def schedules_run_now(
        self,
        name: str,
        *,
        overlap: Overlap | None = None,
        owner: str | None = None,
        idempotency_key: str | None = None,
    ) -> ScheduleRun:
        """Starts a run now, also while the schedule is paused. A run that goes on is treated as the
        schedule says, or as ``overlap`` does.

        :raises ScheduleNotFound: there is no such schedule.
        """
        members = without_none(name=name, overlap=overlap, owner=owner)
        answer = self.call("schedules.run_now", members, idempotency_key=idempotency_key)
        return cast(ScheduleRun, answer)
