"""Everything that this package raises.

``TaskledgerError`` is the base. Below it, ``RpcError`` is an answer of the server with a class for
each code, and ``TransportError`` says that no answer came. ``Retryable`` and ``Final`` are raised
by handlers of workers, and ``Cancelled`` in them.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict, cast

__all__ = [
    "AlreadyExecuting",
    "Busy",
    "Cancelled",
    "CircularDependency",
    "ContractError",
    "ExecutorNotFound",
    "Final",
    "NotSuspended",
    "Suspend",
    "UpstreamIntentSuspendedError",
    "InputWiringError",
    "InternalError",
    "InvalidDependency",
    "InvalidParams",
    "InvalidParent",
    "InvalidRequest",
    "InvalidTransition",
    "InvalidTree",
    "LeaseNotHeld",
    "MethodNotFound",
    "MissingOutputError",
    "NotDeletable",
    "NotSent",
    "OutputTypeMismatchError",
    "ParseError",
    "ProtocolError",
    "QuotaExceeded",
    "RateLimited",
    "Rejected",
    "Retryable",
    "RpcError",
    "RunFailed",
    "ScheduleChanged",
    "ScheduleNotFound",
    "TaskNotFound",
    "TaskledgerError",
    "TimedOut",
    "TransportError",
    "Unauthenticated",
    "Unauthorized",
    "UnresolvableInputError",
    "Violation",
    "WebhookNotFound",
    "WorkflowChanged",
    "WorkflowNotFound",
]


class Violation(TypedDict, total=False):
    """One fault of a call: which ``field``, why, what was expected, and what was found."""

    field: str
    reason: str
    expected: Any
    actual: Any
    path: list[Any]


class TaskledgerError(Exception):
    """The base of all errors of this package, except ``Cancelled``."""


class TransportError(TaskledgerError):
    """No answer: the connection could not be opened, or it broke. The call may have been carried
    out.
    """


class NotSent(TransportError):
    """No connection could be opened, so the call was not carried out."""


class TimedOut(TransportError):
    """No answer within the timeout. The call may have been carried out."""


class ProtocolError(TaskledgerError):
    """What answered does not speak the protocol of the server. ``status`` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class RpcError(TaskledgerError):
    """The server refused the call, or failed to carry it out.

    ``code`` and ``message`` are those of the JSON-RPC error, ``data`` its details (an empty
    dictionary if there are none), and ``http_status`` the status that they came with.
    """

    _classes: ClassVar[dict[int, type[RpcError]]] = {}

    def __init__(
        self, code: int, message: str, data: Any = None, *, http_status: int = 200
    ) -> None:
        self.code = code
        self.message = message
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        self.http_status = http_status
        super().__init__(self._text())

    def __init_subclass__(cls, code: int | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if code is not None:
            RpcError._classes[code] = cls

    @property
    def violations(self) -> list[Violation]:
        """All faults of the call; the server finds them all before it answers."""
        faults = self.data.get("errors")
        if not isinstance(faults, list):
            return []
        return [cast(Violation, fault) for fault in faults if isinstance(fault, dict)]

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server wants the call again, or ``None``."""
        wait_ms = self.data.get("retry_after_ms")
        return wait_ms / 1000 if isinstance(wait_ms, (int, float)) else None

    def _text(self) -> str:
        faults = [
            f"{fault.get('field')}: {fault.get('reason')}"
            + (f", expected {fault['expected']}" if "expected" in fault else "")
            for fault in self.violations[:5]
        ]
        return f"{self.message} ({self.code})" + (": " + "; ".join(faults) if faults else "")

    @staticmethod
    def of(code: int, message: str, data: Any, http_status: int = 200) -> RpcError:
        """The error of the class that belongs to ``code``."""
        found = RpcError._classes.get(code, RpcError)
        if found is Busy and isinstance(data, dict) and data.get("field") == "rate":
            found = RateLimited
        if found is Unauthorized and http_status == 401:
            found = Unauthenticated
        return found(code, message, data, http_status=http_status)


class ParseError(RpcError, code=-32700):
    """The request was not JSON."""


class InvalidRequest(RpcError, code=-32600):
    """The request was not a JSON-RPC request."""


class MethodNotFound(RpcError, code=-32601):
    """The server has no such method; it may be older than this package."""


class InvalidParams(RpcError, code=-32602):
    """The parameters are wrong; ``violations`` names every fault."""


class InternalError(RpcError, code=-32603):
    """The server failed. Its log says why."""


class TaskNotFound(RpcError, code=-32001):
    """No such task, or one that the caller may not see."""


class CircularDependency(RpcError, code=-32002):
    """A dependency would close a cycle; ``data["cycle"]`` lists it."""


class ExecutorNotFound(RpcError, code=-32003):
    """Nothing carries out the method of a task."""


class Unauthorized(RpcError, code=-32004):
    """The credentials do not allow the call; ``data["scope"]`` says what they must allow."""


class Unauthenticated(Unauthorized):
    """There are no credentials, or they do not hold (any more)."""


class InvalidTransition(RpcError, code=-32006):
    """The status of the task does not allow this."""


class AlreadyExecuting(RpcError, code=-32008):
    """An active run covers the task."""


class NotDeletable(RpcError, code=-32009):
    """The task is not pending, or others depend on it."""


class InvalidParent(RpcError, code=-32010):
    """The parent does not exist, or cannot be one."""


class InvalidDependency(RpcError, code=-32011):
    """A dependency is not in the same flow."""


class InvalidTree(RpcError, code=-32012):
    """The tasks do not form one tree."""


class Busy(RpcError, code=-32013):
    """Not now; ``retry_after`` says when. Clients repeat such calls by themselves for a while."""


class RateLimited(Busy):
    """The caller calls faster than it may; ``retry_after`` says when it may again."""


class WebhookNotFound(RpcError, code=-32014):
    """No such webhook or delivery."""


class QuotaExceeded(RpcError, code=-32015):
    """The caller has as much as it may; ``data`` has ``quota``, ``limit`` and ``used``."""


class LeaseNotHeld(RpcError, code=-31010):
    """The lease does not hold (any more), so the call changed nothing."""

    @property
    def reason(self) -> str:
        """``ended``, ``cancelled``, ``lost`` or ``unknown``."""
        return str(self.data.get("reason", "unknown"))


class NotSuspended(RpcError, code=-31011):
    """The task does not wait for this answer: it was answered, or waits for another one."""

    @property
    def suspension_id(self) -> str | None:
        """What it waits for; ``None``: nothing."""
        return self.data.get("suspension_id")


class WorkflowNotFound(RpcError, code=-31012):
    """No such saved workflow or version, or one that the caller may not see."""


class WorkflowChanged(RpcError, code=-31013):
    """The newest version of a saved workflow is not the expected one; nothing was changed."""

    @property
    def version(self) -> int | None:
        """The newest version; ``None``: none is kept."""
        return self.data.get("version")


class ScheduleNotFound(RpcError, code=-31014):
    """No such schedule, or one that the caller may not see."""


class ScheduleChanged(RpcError, code=-31015):
    """The name is taken, or the version is not the expected one; nothing was changed."""

    @property
    def version(self) -> int | None:
        """The version of the schedule."""
        return self.data.get("version")


class ContractError(RpcError):
    """An error of RFC-0024: what a task declares of its inputs and outputs was not kept."""

    @property
    def task_id(self) -> str:
        """The task."""
        return str(self.data.get("task_id", ""))

    @property
    def phase_name(self) -> str:
        """The name of the task."""
        return str(self.data.get("phase_name", ""))


class InputWiringError(ContractError, code=-31021):
    """Inputs of a workflow document name what they may not; ``data["faults"]`` has all of them."""

    @property
    def invalid_refs(self) -> list[str]:
        """The references of the first such phase, as written."""
        return list(self.data.get("invalid_refs", []))


class UnresolvableInputError(ContractError, code=-31022):
    """No result has what inputs of the claimed task name, or not yet; the task stays as it is."""

    @property
    def unresolvable_refs(self) -> list[str]:
        """The references."""
        return list(self.data.get("unresolvable_refs", []))

    @property
    def incomplete_dependencies(self) -> list[dict[str, Any]]:
        """What has not completed that the task depends on; empty when results lack values."""
        return list(self.data.get("incomplete_dependencies", []))


class UpstreamIntentSuspendedError(ContractError, code=-31023):
    """A result that the claimed task needs waits for a person; the task stays pending."""

    @property
    def suspended_intent_id(self) -> str:
        """The task that waits."""
        return str(self.data.get("suspended_intent_id", ""))

    @property
    def expected_resume_at(self) -> str | None:
        """Until when at the latest; ``None`` for no bound."""
        return self.data.get("expected_resume_at")


class MissingOutputError(ContractError, code=-31024):
    """The output lacks keys that the task declares; the attempt goes on."""

    @property
    def missing_keys(self) -> list[str]:
        """The keys."""
        return list(self.data.get("missing_keys", []))


class OutputTypeMismatchError(ContractError, code=-31025):
    """Values of the output are not of their declared types; the attempt goes on.

    ``data["mismatches"]`` names all of them; the properties are those of the first.
    """

    @property
    def key(self) -> str:
        """The key of the output."""
        return str(self.data.get("key", ""))

    @property
    def expected_type(self) -> str:
        """The declared type."""
        return str(self.data.get("expected_type", ""))

    @property
    def actual_type(self) -> str:
        """The type of the value; for an enumeration the value."""
        return str(self.data.get("actual_type", ""))


class RunFailed(TaskledgerError):
    """A run that was waited for did not complete. ``run`` is its ``RunResult``."""

    def __init__(self, run: Any) -> None:
        error = (run.task or {}).get("error")
        super().__init__(f"the run is {run.state}" + (f": {error}" if error else ""))
        self.run = run


class Retryable(TaskledgerError):
    """Raised by a handler: the attempt failed, and another one may succeed.

    The server makes another attempt if the retry budget of the task allows it. Other exceptions
    that leave a handler mean the same, with the name of their class before their text.
    """


class Final(TaskledgerError):
    """Raised by a handler: the task failed, and repeating it would not help."""


class Rejected(TaskledgerError):
    """Raised by a handler: this worker does not do the task, by a policy and not for a fault.

    The task fails at once; a run that failed for nothing else is rejected.
    """


class Suspend(TaskledgerError):
    """Raised by a handler: the task waits for a person, and this attempt is over.

    ``request`` says what is asked: ``question``, and perhaps ``response_type`` (text, confirm,
    choice, form), ``choices``, ``schema`` or ``fields``, ``context``, ``timeout_seconds``,
    ``fallback_policy``, ``fallback_value``, ``retry_policy``. Whoever works on the task next finds
    the answer in ``ctx.answers``.
    """

    def __init__(self, question: str, **request: Any) -> None:
        super().__init__(question)
        self.request: dict[str, Any] = {"question": question, **request}


class Cancelled(BaseException):
    """Raised in handlers of ``Worker`` by ``ctx.check()`` and ``ctx.sleep()``: stop, nobody wants
    the outcome.

    Like ``asyncio.CancelledError`` it is no ``Exception``, so that ``except Exception`` lets it
    pass.
    """
