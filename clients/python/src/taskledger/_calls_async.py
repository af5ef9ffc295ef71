"""Typed helpers for the common methods, for asyncio. The same as in ``_calls``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Literal, cast

from ._protocol import RetryPolicy, without_none
from ._schedules_async import AsyncScheduleCalls
from ._workflows_async import AsyncWorkflowCalls
from .types import (
    Claims,
    Created,
    Ended,
    JsonObject,
    JsonObjects,
    MethodInfo,
    MethodInfos,
    Renewed,
    Responded,
    Sibling,
    Started,
    Status,
    Suspended,
    Task,
    Tasks,
    Time,
    Tree,
    WorkerInfos,
)


class AsyncCalls(AsyncWorkflowCalls, AsyncScheduleCalls):
    """One method for each common method of the server, with the same name and parameters.

    Parameters that are ``None`` are not sent. What is taken and given back is described by the
    server itself: ``GET /openrpc.json``.
    """

    if TYPE_CHECKING:

        async def call(
            self,
            method: str,
            params: JsonObject | None = None,
            *,
            idempotency_key: str | None = None,
            configuration: JsonObject | None = None,
            timeout: float | None = None,
            retry: RetryPolicy | None = None,
        ) -> Any: ...

    # Tasks: what is stored.

    async def create(
        self,
        name: str | None = None,
        *,
        tasks: JsonObjects | None = None,
        children: JsonObjects | None = None,
        id: str | None = None,
        parent_id: str | None = None,
        user_id: str | None = None,
        priority: int | None = None,
        inputs: JsonObject | None = None,
        schemas: JsonObject | None = None,
        dependencies: JsonObjects | None = None,
        params: JsonObject | None = None,
        labels: dict[str, str] | None = None,
        start_at: Time | None = None,
        idempotency_key: str | None = None,
    ) -> Created:
        """Stores a task, a tree (``children``), or several ``tasks`` that refer to each other by
        id or name.

        ``priority``: 0 urgent to 3 low. ``start_at``: no start before this time.
        Nothing runs before ``execute``.
        """
        members = without_none(
            name=name,
            tasks=tasks,
            children=children,
            id=id,
            parent_id=parent_id,
            user_id=user_id,
            priority=priority,
            inputs=inputs,
            schemas=schemas,
            dependencies=dependencies,
            params=params,
            labels=labels,
            start_at=start_at,
        )
        answer = await self.call("tasks.create", members, idempotency_key=idempotency_key)
        return cast(Created, answer)

    async def update(
        self, task_id: str, *, idempotency_key: str | None = None, **updates: Any
    ) -> JsonObject:
        """Changes members of a task, such as ``inputs={..}``; the merged task is checked as a
        whole.
        """
        members: JsonObject = {"task_id": task_id, "updates": updates}
        answer = await self.call("tasks.update", members, idempotency_key=idempotency_key)
        return cast(JsonObject, answer)

    async def delete(
        self, task_id: str, *, cascade: bool | None = None, idempotency_key: str | None = None
    ) -> JsonObject:
        """Deletes a pending task; with ``cascade`` everything below it too.

        :raises NotDeletable: it is not pending, or others hang on it.
        """
        members = without_none(task_id=task_id, cascade=cascade)
        answer = await self.call("tasks.delete", members, idempotency_key=idempotency_key)
        return cast(JsonObject, answer)

    async def copy(
        self,
        task_id: str,
        *,
        copy_children: bool | None = None,
        parent_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> JsonObject:
        """Copies a task: ``{copied_task_id, original_task_id, task_ids, dropped_dependencies,
        status}``.
        """
        members = without_none(task_id=task_id, copy_children=copy_children, parent_id=parent_id)
        answer = await self.call("tasks.copy", members, idempotency_key=idempotency_key)
        return cast(JsonObject, answer)

    # Tasks: what runs.

    async def execute(
        self,
        tasks: JsonObjects | None = None,
        *,
        task_id: str | None = None,
        allow_unknown_executors: bool | None = None,
        executor_wait_seconds: float | None = None,
        include: Literal["failed"] | None = None,
        push_notification_config: JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> Started:
        """Starts a run of new ``tasks``, or of the stored one ``task_id``. The answer comes at
        once.

        ``push_notification_config``: ``{url, headers?, secret?}``, an address that is told of the
        run.
        """
        members = without_none(
            tasks=tasks,
            task_id=task_id,
            allow_unknown_executors=allow_unknown_executors,
            executor_wait_seconds=executor_wait_seconds,
            include=include,
        )
        configuration = without_none(push_notification_config=push_notification_config) or None
        answer = await self.call(
            "tasks.execute", members, idempotency_key=idempotency_key, configuration=configuration
        )
        return cast(Started, answer)

    async def retry(
        self,
        task_id: str,
        *,
        include: Literal["failed"] | None = None,
        idempotency_key: str | None = None,
    ) -> Started:
        """Starts a run of a failed task and of the tasks that wait for it. ``include="failed"``
        also runs the failed tasks again that were tolerated.
        """
        members = without_none(task_id=task_id, include=include)
        answer = await self.call("tasks.retry", members, idempotency_key=idempotency_key)
        return cast(Started, answer)

    async def cancel(
        self,
        task_id: str,
        *,
        reason: str | None = None,
        cascade: bool | None = None,
        idempotency_key: str | None = None,
    ) -> JsonObject:
        """Cancels a task, with ``cascade`` what is below it too; ``reason`` becomes its
        ``error``.
        """
        members = without_none(task_id=task_id, reason=reason, cascade=cascade)
        answer = await self.call("tasks.cancel", members, idempotency_key=idempotency_key)
        return cast(JsonObject, answer)

    # Tasks: reading.

    async def get(
        self, task_id: str, *, as_of: str | int | None = None, consistency: str | None = None
    ) -> Task:
        """A task, as it is or as it was at a time or position (``as_of``)."""
        members = without_none(task_id=task_id, as_of=as_of, consistency=consistency)
        answer = await self.call("tasks.get", members)
        return cast(Task, answer)

    async def tree(
        self, task_id: str, *, as_of: str | int | None = None, consistency: str | None = None
    ) -> Tree:
        """A task and everything below it, as nodes ``{task, children}``."""
        members = without_none(task_id=task_id, as_of=as_of, consistency=consistency)
        answer = await self.call("tasks.tree", members)
        return cast(Tree, answer)

    async def children(self, parent_id: str, *, consistency: str | None = None) -> Tasks:
        """The tasks right below one."""
        members = without_none(parent_id=parent_id, consistency=consistency)
        answer = await self.call("tasks.children", members)
        return cast(Tasks, answer["children"])

    async def list(
        self,
        *,
        status: Status | None = None,
        user_id: str | None = None,
        root_only: bool | None = None,
        parent_id: str | None = None,
        name: str | None = None,
        priority: int | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        order: str | None = None,
        suspended: bool | None = None,
        labels: dict[str, str | None] | None = None,
        consistency: str | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Task]:
        """All tasks that meet every filter, newest first (``order="asc"``: oldest first), read in
        pages of ``page_size`` (1 to 1000) as the iterator goes on."""
        members = without_none(
            status=status,
            user_id=user_id,
            root_only=root_only,
            parent_id=parent_id,
            name=name,
            priority=priority,
            created_after=created_after,
            created_before=created_before,
            order=order,
            suspended=suspended,
            labels=labels,
            consistency=consistency,
            limit=page_size,
        )
        while True:
            page = await self.call("tasks.list", members)
            for task in page["tasks"]:
                yield cast(Task, task)
            if not page.get("next_cursor"):
                return
            members["cursor"] = page["next_cursor"]

    async def history(
        self,
        task_id: str,
        *,
        scope: str | None = None,
        types: Iterable[str] | None = None,
        order: str | None = None,
        consistency: str | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[JsonObject]:
        """The events of a task, or with ``scope="flow"`` of its whole tree, oldest first, in
        pages.
        """
        members = without_none(
            task_id=task_id,
            scope=scope,
            types=None if types is None else [*types],
            order=order,
            consistency=consistency,
            limit=page_size,
        )
        while True:
            page = await self.call("tasks.history", members)
            for event in page["events"]:
                yield cast(JsonObject, event)
            if not page.get("next_cursor"):
                return
            members["cursor"] = page["next_cursor"]

    async def explain(self, task_id: str) -> JsonObject:
        """Why a task is not running, or why it ended as it did."""
        answer = await self.call("tasks.explain", {"task_id": task_id})
        return cast(JsonObject, answer)

    # The server.

    async def health(self) -> JsonObject:
        """How the server is; ``status`` is ``ok``."""
        answer = await self.call("system.health")
        return cast(JsonObject, answer)

    async def executors(self) -> JsonObjects:
        """What carries out tasks inside the server."""
        answer = await self.call("system.executors")
        return cast(JsonObjects, answer["executors"])

    async def whoami(self) -> JsonObject:
        """Who the server takes this client for, and what the credentials allow."""
        answer = await self.call("system.whoami")
        return cast(JsonObject, answer)

    # Work. ``AsyncWorker`` uses these.

    async def claim(
        self,
        methods: Iterable[str] | None = None,
        *,
        task_id: str | None = None,
        worker: str | None = None,
        max: int | None = None,
        lease_seconds: int | None = None,
        wait_seconds: float | None = None,
    ) -> Claims:
        """Claims up to ``max`` (1 to 100; 1) ready tasks of ``methods``, or the one ``task_id``.

        Waits up to ``wait_seconds`` (0 to 60; 0) for the first one. Each claim is held for
        ``lease_seconds`` (5 to 3600; 60), and longer if it is renewed. ``worker`` is the name under
        which the server shows this worker.
        """
        members = without_none(
            methods=None if methods is None else [*methods],
            task_id=task_id,
            worker=worker,
            max=max,
            lease_seconds=lease_seconds,
            wait_seconds=wait_seconds,
        )
        timeout = 30.0 + (wait_seconds or 0)
        answer = await self.call("tasks.claim", members, timeout=timeout)
        return cast(Claims, answer)

    async def renew(
        self,
        task_id: str,
        lease: str,
        *,
        lease_seconds: int | None = None,
        progress: float | None = None,
        message: str | None = None,
        output_part: str | JsonObject | None = None,
        output_number: int | None = None,
    ) -> Renewed:
        """Holds a claim for another ``lease_seconds`` (as claimed), and tells how far it is:
        ``progress`` 0 to 1, ``message`` up to 1000 characters. ``lease`` is the token of the
        lease. ``output_part`` is what the attempt has made of its output since the last part, with
        its ``output_number`` from 1: a part that is recorded already changes nothing.

        :raises LeaseNotHeld: it belongs to somebody else by now, or is over.
        """
        members = without_none(
            task_id=task_id,
            lease=lease,
            lease_seconds=lease_seconds,
            progress=progress,
            message=message,
            output_part=output_part,
            output_number=output_number,
        )
        answer = await self.call("tasks.renew", members)
        return cast(Renewed, answer)

    async def complete(self, task_id: str, lease: str, output: JsonObject) -> Ended:
        """Ends a claim with ``output``, which becomes the result of the task. May be repeated.

        :raises LeaseNotHeld: it changed nothing.
        """
        members: JsonObject = {"task_id": task_id, "lease": lease, "output": output}
        answer = await self.call("tasks.complete", members)
        return cast(Ended, answer)

    async def fail(
        self,
        task_id: str,
        lease: str,
        error: str,
        *,
        retryable: bool | None = None,
        rejected: bool | None = None,
    ) -> Ended:
        """Ends a claim with an error (1 to 65536 bytes); with ``retryable`` (the default) the task
        is tried again if its retry budget allows it; ``rejected`` says that the worker does not
        do the task, by a policy. May be repeated.

        :raises LeaseNotHeld: it changed nothing.
        """
        members = without_none(
            task_id=task_id, lease=lease, error=error, retryable=retryable, rejected=rejected
        )
        answer = await self.call("tasks.fail", members)
        return cast(Ended, answer)

    async def release(self, task_id: str, lease: str) -> Ended:
        """Gives a claim back, at no cost to the retry budget. May be repeated.

        :raises LeaseNotHeld: it changed nothing.
        """
        answer = await self.call("tasks.release", {"task_id": task_id, "lease": lease})
        return cast(Ended, answer)

    async def suspend(self, task_id: str, lease: str, request: JsonObject) -> Suspended:
        """Asks a person, and gives the claim up until somebody answers. ``request``: as for
        ``errors.Suspend``. May be repeated.

        :raises LeaseNotHeld: it changed nothing.
        """
        params: JsonObject = {"task_id": task_id, "lease": lease, "request": request}
        answer = await self.call("tasks.suspend", params)
        return cast(Suspended, answer)

    async def respond(
        self,
        task_id: str,
        suspension_id: str,
        value: Any,
        *,
        responded_by: str | None = None,
        idempotency_key: str | None = None,
    ) -> Responded:
        """Answers what a suspended task asks. The first answer counts; the same one again gets the
        same result. ``responded_by``: for whom the caller answers, as a note.

        :raises NotSuspended: the task does not wait for this answer.
        :raises InvalidParams: ``value`` is no answer.
        """
        params = without_none(
            task_id=task_id, suspension_id=suspension_id, value=value, responded_by=responded_by
        )
        answer = await self.call("tasks.respond", params, idempotency_key=idempotency_key)
        return cast(Responded, answer)

    async def sibling_output(self, task_id: str, lease: str, name: str) -> Sibling:
        """Another task below the same parent as a claimed one, by name or id, with its result.

        :raises LeaseNotHeld: the claim is over.
        :raises InvalidParams: no such task, or several; the message says what there is.
        """
        members: JsonObject = {"task_id": task_id, "lease": lease, "name": name}
        answer = await self.call("tasks.sibling_output", members)
        return cast(Sibling, answer)

    async def workers_declare(
        self,
        method: str,
        *,
        description: str | None = None,
        input_schema: JsonObject | None = None,
        output_schema: JsonObject | None = None,
        defaults: JsonObject | None = None,
        limit: int | None = None,
    ) -> MethodInfo:
        """Declares a method of workers, so that its tasks wait for one; replaces what was declared.

        ``defaults``: parameters of tasks that do not say (``timeout_seconds``, ``retry_count`` ..).
        ``limit``: attempts at once, all workers together.
        """
        members = without_none(
            method=method,
            description=description,
            input_schema=input_schema,
            output_schema=output_schema,
            defaults=defaults,
            limit=limit,
        )
        answer = await self.call("workers.declare", members)
        return cast(MethodInfo, answer)

    async def workers_undeclare(self, method: str) -> bool:
        """Takes a declaration back; whether there was one."""
        answer = await self.call("workers.undeclare", {"method": method})
        return cast(bool, answer["removed"])

    async def workers_methods(self) -> MethodInfos:
        """The methods that were declared, or that workers ask for, by name."""
        answer = await self.call("workers.methods")
        return cast(MethodInfos, answer["methods"])

    async def workers_list(self) -> WorkerInfos:
        """The workers that ask for tasks or hold some, and what they hold."""
        answer = await self.call("workers.list")
        return cast(WorkerInfos, answer["workers"])

    async def workers_drain(self, worker: str, *, drain: bool | None = None) -> JsonObject:
        """Tells a worker to finish what it has and end: ``{worker, draining, held}``."""
        members = without_none(worker=worker, drain=drain)
        answer = await self.call("workers.drain", members)
        return cast(JsonObject, answer)
