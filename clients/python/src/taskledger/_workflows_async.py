"""Typed helpers for workflow documents, for asyncio. The same as in ``_workflows``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from ._protocol import RetryPolicy, without_none
from .types import (
    JsonObject,
    KeptWorkflow,
    PhaseSchemas,
    PlayedWorkflow,
    SavedWorkflow,
    Workflow,
    WorkflowDiff,
    WorkflowEvent,
    WorkflowProgress,
    WorkflowVersion,
)


class AsyncWorkflowCalls:
    """The methods ``workflows.*``. A ``document`` is YAML, JSON, or the document itself.

    Saved documents are of users: without ``owner`` the caller's are meant, those of others need the
    scope ``users:any``. Parameters that are ``None`` are not sent.
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

    async def workflows_validate(
        self, document: str | JsonObject, *, strict: bool | None = None
    ) -> JsonObject:
        """What is wrong with a workflow document: ``{valid, errors, warnings, workflow}``."""
        params = without_none(document=document, strict=strict)
        answer = await self.call("workflows.validate", params)
        return cast(JsonObject, answer)

    async def workflows_create(
        self,
        document: str | JsonObject,
        *,
        trigger: JsonObject | None = None,
        user_id: str | None = None,
        labels: dict[str, str] | None = None,
        strict: bool | None = None,
        execute: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Workflow:
        """Creates the tasks of one run of a workflow document; with ``execute`` it begins at once,
        and ``wait`` takes the answer. ``labels`` are those of the root of the run.

        :raises InputWiringError: only its references are wrong.
        :raises InvalidParams: it has other faults; ``data["faults"]`` has all with their lines.
        """
        members = without_none(
            document=document,
            trigger=trigger,
            user_id=user_id,
            labels=labels,
            strict=strict,
            execute=execute,
        )
        answer = await self.call("workflows.create", members, idempotency_key=idempotency_key)
        return cast(Workflow, answer)

    async def workflows_dry_run(
        self,
        document: str | JsonObject,
        *,
        trigger: JsonObject | None = None,
        outputs: JsonObject | None = None,
        strict: bool | None = None,
    ) -> PlayedWorkflow:
        """Plays a run with outputs that were made up; stores nothing. ``outputs``: by name of the
        phase the output of one completion, or a list of them; ``{"$fail": reason}`` fails an
        attempt.

        :raises InputWiringError: only references of the document are wrong.
        :raises InvalidParams: it has other faults; ``data["faults"]`` has all with their lines.
        """
        members = without_none(document=document, trigger=trigger, outputs=outputs, strict=strict)
        answer = await self.call("workflows.dry_run", members)
        return cast(PlayedWorkflow, answer)

    async def workflows_schemas(
        self,
        document: str | JsonObject | None = None,
        *,
        name: str | None = None,
        version: int | None = None,
        phase: str | None = None,
        owner: str | None = None,
    ) -> list[PhaseSchemas]:
        """What phases take and give, as JSON Schemas (draft-07): of a document, or of the saved one
        called ``name``; of one ``phase``, or of all.

        :raises WorkflowNotFound: nothing is saved under the name and version.
        """
        members = without_none(
            document=document, name=name, version=version, phase=phase, owner=owner
        )
        answer = await self.call("workflows.schemas", members)
        return cast("list[PhaseSchemas]", answer["phases"])

    async def workflows_save(
        self,
        document: str | JsonObject,
        *,
        strict: bool | None = None,
        expected_version: int | None = None,
        owner: str | None = None,
    ) -> SavedWorkflow:
        """Keeps a document as the newest version of its name, and says what is different from the
        version before. A document that is equal to the newest is kept already.
        ``expected_version``: the newest version so far, 0 for none.

        :raises WorkflowChanged: another version is the newest.
        :raises InputWiringError: only its references are wrong.
        :raises InvalidParams: it has other faults; ``data["faults"]`` has all with their lines.
        """
        members = without_none(
            document=document, strict=strict, expected_version=expected_version, owner=owner
        )
        answer = await self.call("workflows.save", members)
        return cast(SavedWorkflow, answer)

    async def workflows_get(
        self, name: str, *, version: int | None = None, owner: str | None = None
    ) -> KeptWorkflow:
        """A saved version with its ``document``; the newest unless ``version`` says otherwise.

        :raises WorkflowNotFound: there is no such workflow or version.
        """
        members = without_none(name=name, version=version, owner=owner)
        answer = await self.call("workflows.get", members)
        return cast(KeptWorkflow, answer)

    async def workflows_list(
        self, *, owner: str | None = None, after: str | None = None, page_size: int = 100
    ) -> AsyncIterator[WorkflowVersion]:
        """The newest versions of all saved documents by name, those behind the name ``after``, in
        pages.
        """
        members = without_none(owner=owner, after=after, limit=page_size)
        while True:
            page = await self.call("workflows.list", members)
            for workflow in page["workflows"]:
                yield cast(WorkflowVersion, workflow)
            if page.get("next_after") is None:
                return
            members["after"] = page["next_after"]

    async def workflows_versions(
        self,
        name: str,
        *,
        owner: str | None = None,
        before: int | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[WorkflowEvent]:
        """What happened to a name, newest first, before the version ``before``, in pages. Deletions
        stay listed.
        """
        members = without_none(name=name, owner=owner, before=before, limit=page_size)
        while True:
            page = await self.call("workflows.versions", members)
            for event in page["versions"]:
                yield cast(WorkflowEvent, event)
            if page.get("next_before") is None:
                return
            members["before"] = page["next_before"]

    async def workflows_diff(
        self,
        name: str,
        *,
        from_version: int | None = None,
        to_version: int | None = None,
        document: str | JsonObject | None = None,
        owner: str | None = None,
    ) -> WorkflowDiff:
        """What is different between two saved versions, or between a version and a ``document``
        that is not saved, and what of it breaks callers, workers or readers of results.

        :raises WorkflowNotFound: there is no such workflow or version.
        """
        versions = {"from": from_version, "to": to_version}
        members = without_none(name=name, **versions, document=document, owner=owner)
        answer = await self.call("workflows.diff", members)
        return cast(WorkflowDiff, answer)

    async def workflows_delete(
        self, name: str, *, expected_version: int | None = None, owner: str | None = None
    ) -> bool:
        """Deletes all versions of a document; whether there were any. Runs of it go on.

        :raises WorkflowChanged: the newest is not ``expected_version``.
        """
        members = without_none(name=name, expected_version=expected_version, owner=owner)
        answer = await self.call("workflows.delete", members)
        return cast(bool, answer["deleted"])

    async def workflows_run(
        self,
        name: str,
        *,
        version: int | None = None,
        trigger: JsonObject | None = None,
        user_id: str | None = None,
        labels: dict[str, str] | None = None,
        execute: bool | None = None,
        owner: str | None = None,
        idempotency_key: str | None = None,
    ) -> Workflow:
        """Creates the tasks of one run of a saved document, and begins it unless ``execute`` is
        false; ``wait`` takes the answer. ``version``: the newest unless it is given.
        ``labels`` are those of the root of the run.

        :raises WorkflowNotFound: there is no such workflow or version.
        """
        members = without_none(
            name=name,
            version=version,
            trigger=trigger,
            user_id=user_id,
            labels=labels,
            execute=execute,
            owner=owner,
        )
        answer = await self.call("workflows.run", members, idempotency_key=idempotency_key)
        return cast(Workflow, answer)

    async def workflows_progress(self, root_task_id: str) -> WorkflowProgress:
        """How far everything below a task has come: counts by status, phases that wait for a
        person, and phases whose turn it is but whose inputs no result has values for.
        """
        answer = await self.call("workflows.progress", {"root_task_id": root_task_id})
        return cast(WorkflowProgress, answer)
