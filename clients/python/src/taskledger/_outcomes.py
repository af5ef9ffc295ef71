"""How attempts end: what the end of a handler means, and what follows when the server refuses it.

No input or output, no threads and no tasks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from ._protocol import dumps
from ._work import AGAIN, BaseContext
from .errors import (
    Busy,
    ContractError,
    Final,
    InternalError,
    InvalidParams,
    InvalidRequest,
    LeaseNotHeld,
    ParseError,
    ProtocolError,
    Rejected,
    Retryable,
    Suspend,
    TransportError,
    Unauthorized,
)
from .types import JsonObject, Lease

ERROR_BYTES_MAX = 65536
OUTPUT_BYTES_MAX = 1024 * 1024
"""Bytes of JSON in an output that the server takes."""
QUESTION_BYTES_MAX = 64 * 1024
"""Bytes of JSON in a question that the server takes."""
DEPTH_MAX = 100
"""Levels of objects and arrays in an output or a question, itself being level 1."""
INTERNAL_ERRORS_MAX = 10
"""After so many answers that the server failed, an outcome is given up; the lease will end. Calls
that got no answer do not count.
"""

# Reasons after which the server takes no outcome any more.
_GIVEN_UP = ("cancelled", "timed_out", "deadline", "lost", "ended", "unknown")
# The same call would be refused again.
_REFUSED = (ContractError, InvalidParams, InvalidRequest, ParseError)
# What a proxy says while the server cannot be reached, or is asked too much.
_PASSING_STATUS = (408, 429)


@dataclass(frozen=True)
class Outcome:
    """How an attempt ends. ``drop``: nothing is said."""

    kind: Literal["complete", "fail", "suspend", "release", "drop"]
    output: JsonObject | None = None
    request: JsonObject | None = None
    error: str = ""
    retryable: bool = True
    rejected: bool = False
    is_unforeseen: bool = False

    @property
    def method(self) -> str:
        """What is called to say it."""
        return f"tasks.{self.kind}"

    def params(self, task_id: str, lease: Lease) -> JsonObject:
        """What it is called with."""
        params: JsonObject = {"task_id": task_id, "lease": lease["token"]}
        if self.kind == "complete":
            params["output"] = self.output
        elif self.kind == "fail":
            params["error"] = self.error
            if self.rejected:
                params["rejected"] = True
            else:
                params["retryable"] = self.retryable
        elif self.kind == "suspend":
            params["request"] = self.request
        return params


RELEASED = Outcome("release")
DROPPED = Outcome("drop")


def of_value(value: Any) -> Outcome:
    """What a handler's return value means; ``None`` is ``{}``. What the server could not read fails
    the task.
    """
    if value is None:
        value = {}
    if not isinstance(value, dict):
        kind = type(value).__name__
        return final(f"the handler returned a value of type `{kind}`, expected a dictionary")
    fault = _fault(value, OUTPUT_BYTES_MAX)
    return Outcome("complete", output=value) if fault is None else final(f"the output {fault}")


def of_request(request: Any) -> Outcome:
    """What a question that a handler raised means. What the server could not read fails the
    task.
    """
    if not isinstance(request, dict):
        kind = type(request).__name__
        return final(f"the question is a value of type `{kind}`, expected a dictionary")
    fault = _fault(request, QUESTION_BYTES_MAX)
    return Outcome("suspend", request=request) if fault is None else final(f"the question {fault}")


def _fault(value: JsonObject, bytes_max: int) -> str | None:
    """Why the server could not read an output or a question, and what it takes."""
    depth_max = f"at most {DEPTH_MAX} levels are accepted"
    try:
        raw = dumps(value)
    except UnicodeEncodeError as error:
        text = ascii(error.object[error.start : error.start + 1])
        return f"has text with the lone surrogate {text}, expected Unicode text"
    except RecursionError:
        return f"is nested too deep: {depth_max}"
    except (TypeError, ValueError) as error:
        expected = "expected objects, arrays, texts, finite numbers, true, false and null"
        return f"is no JSON: {error}; {expected}"
    if len(raw) > bytes_max:
        return f"has {len(raw)} bytes of JSON: at most {bytes_max} are accepted"
    # Few values have enough brackets to be looked at.
    if raw.count(b"{") + raw.count(b"[") > DEPTH_MAX and _is_too_deep(value):
        return f"is nested more than {DEPTH_MAX} levels deep: {depth_max}"
    return None


def _is_too_deep(value: JsonObject) -> bool:
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX):
        below: list[Any] = []
        for each in level:
            members = each.values() if isinstance(each, dict) else each
            below += [member for member in members if isinstance(member, (dict, list, tuple))]
        level = below
    return bool(level)


def of_error(error: BaseException) -> Outcome:
    """What an exception that left a handler means."""
    if isinstance(error, Final):
        return final(str(error))
    if isinstance(error, Rejected):
        return Outcome("fail", error=_text(str(error) or "Rejected"), rejected=True)
    if isinstance(error, Suspend):
        return of_request(error.request)
    if isinstance(error, Retryable):
        return Outcome("fail", error=_text(str(error) or "Retryable"))
    said = str(error)
    name = type(error).__name__
    text = f"{name}: {said}" if said else name
    return Outcome("fail", error=_text(text), is_unforeseen=True)


def final(error: str) -> Outcome:
    """A failure that is not tried again."""
    return Outcome("fail", error=_text(error or "Final"), retryable=False)


def verdict(outcome: Outcome, reason: str | None, *, gave_in: bool) -> Outcome:
    """What is said of an attempt that was told to stop for ``reason``; ``gave_in``: its handler
    did.
    """
    if reason is None:
        return outcome
    if reason in _GIVEN_UP:
        return DROPPED
    if reason == "shutdown":
        return RELEASED if gave_in or outcome.is_unforeseen else outcome
    return outcome if outcome.kind == "complete" and not gave_in else DROPPED


class Telling:
    """How the server is told the end of one attempt. ``outcome`` is what is said next."""

    def __init__(self, context: BaseContext, outcome: Outcome) -> None:
        self.outcome = outcome
        self._context = context
        self._failures = 0
        self._internal_errors = 0
        self._given_up_at: float | None = None

    def told(self) -> None:
        """Logs that the server has taken the outcome."""
        context, outcome = self._context, self.outcome
        duration_ms = round((time.monotonic() - context._hold.begun_at) * 1000, 1)
        log, extra = context.log.logger, {**(context.log.extra or {}), "duration_ms": duration_ms}
        if outcome.kind == "fail":
            log.warning("the attempt has failed: %s", outcome.error[:1000], extra=extra)
        else:
            ends = {"complete": "completed", "release": "released", "suspend": "suspended"}
            log.info("the attempt was %s", ends[outcome.kind], extra=extra)

    def failed(self, error: Exception) -> float | None:
        """The server did not take the outcome: seconds after which to say it again, or what has
        taken its place; ``None``: nothing is said any more.

        :raises Exception: ``error``, if repeating the call is of no use.
        """
        log = self._context.log
        if isinstance(error, LeaseNotHeld):
            log.warning("the outcome came too late: the lease is %s", error.reason)
            return None
        is_too_large = isinstance(error, ProtocolError) and error.status == 413
        if isinstance(error, _REFUSED) or is_too_large:
            log.error("the outcome was refused: %s", error)
            if self.outcome.kind not in ("complete", "suspend"):
                return None
            what = "output" if self.outcome.kind == "complete" else "question"
            text = f"the {what} was refused: {error}"
            # Another attempt may give an output that keeps the contract.
            is_final = not isinstance(error, ContractError)
            self.outcome = final(text) if is_final else Outcome("fail", error=text)
            return 0.0
        if not self._is_passing(error):
            raise error
        log.warning("an outcome is told again: %s", error)
        self._failures += 1
        return AGAIN.pause(self._failures, getattr(error, "retry_after", None))

    def _is_passing(self, error: Exception) -> bool:
        """Whether the same call may succeed later."""
        if isinstance(error, (TransportError, Busy)):
            return True
        if isinstance(error, InternalError):
            self._internal_errors += 1
            return self._internal_errors < INTERNAL_ERRORS_MAX and self._is_in_time()
        # A token may be replaced.
        if isinstance(error, Unauthorized):
            return self._is_in_time()
        if isinstance(error, ProtocolError):
            if error.status >= 500 or error.status in _PASSING_STATUS:
                return True
            return self._is_in_time()
        return False

    def _is_in_time(self) -> bool:
        """Whether the lease holds, as it stood when this was asked first: renewals may succeed
        where outcomes never do.
        """
        if self._given_up_at is None:
            self._given_up_at = self._context._hold.expires_at
        return time.monotonic() < self._given_up_at


def _text(error: str) -> str:
    raw = error.encode("utf-8", "replace")
    return raw[:ERROR_BYTES_MAX].decode("utf-8", "ignore")
