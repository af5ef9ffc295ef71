"""How attempts end: what the end of a handler means, and what follows when the server refuses it.

No input or output, no threads and no tasks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from ._protocol import dumps
from ._work import TRANSIENT, BaseContext
from .errors import (
    Final,
    InternalError,
    InvalidParams,
    InvalidRequest,
    LeaseNotHeld,
    ParseError,
    ProtocolError,
    Retryable,
    Unauthorized,
)
from .types import JsonObject, Lease

ERROR_BYTES_MAX = 65536
OUTPUT_BYTES_MAX = 1024 * 1024
"""Bytes of JSON in an output that the server takes."""
OUTPUT_DEPTH_MAX = 100
"""Levels of objects and arrays in an output, the output being level 1."""
INTERNAL_ERRORS_MAX = 10
"""After so many answers that the server failed, an outcome is given up; the lease will end."""

# Reasons after which the server takes no outcome any more.
_GIVEN_UP = ("cancelled", "timed_out", "deadline", "lost", "ended", "unknown")
# The same call would be refused again.
_REFUSED = (InvalidParams, InvalidRequest, ParseError)


@dataclass(frozen=True)
class Outcome:
    """How an attempt ends. ``drop``: nothing is said."""

    kind: Literal["complete", "fail", "release", "drop"]
    output: JsonObject | None = None
    error: str = ""
    retryable: bool = True
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
            params["retryable"] = self.retryable
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
    fault = _fault(value)
    return Outcome("complete", output=value) if fault is None else final(f"the output {fault}")


def _fault(output: JsonObject) -> str | None:
    """Why the server could not read an output, and what it takes."""
    depth_max = f"at most {OUTPUT_DEPTH_MAX} levels are accepted"
    try:
        raw = dumps(output)
    except UnicodeEncodeError as error:
        text = ascii(error.object[error.start : error.start + 1])
        return f"has text with the lone surrogate {text}, expected Unicode text"
    except RecursionError:
        return f"is nested too deep: {depth_max}"
    except (TypeError, ValueError) as error:
        expected = "expected objects, arrays, texts, finite numbers, true, false and null"
        return f"is no JSON: {error}; {expected}"
    if len(raw) > OUTPUT_BYTES_MAX:
        return f"has {len(raw)} bytes of JSON: at most {OUTPUT_BYTES_MAX} are accepted"
    # Few outputs have enough brackets to be looked at.
    if raw.count(b"{") + raw.count(b"[") > OUTPUT_DEPTH_MAX and _is_too_deep(output):
        return f"is nested more than {OUTPUT_DEPTH_MAX} levels deep: {depth_max}"
    return None


def _is_too_deep(output: JsonObject) -> bool:
    level: list[Any] = [output]
    for _ in range(OUTPUT_DEPTH_MAX):
        below: list[Any] = []
        for each in level:
            values = each.values() if isinstance(each, dict) else each
            below += [value for value in values if isinstance(value, (dict, list, tuple))]
        level = below
    return bool(level)


def of_error(error: BaseException) -> Outcome:
    """What an exception that left a handler means."""
    if isinstance(error, Final):
        return final(str(error))
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


def after_error(
    context: BaseContext, outcome: Outcome, error: Exception, failures: int
) -> Outcome | None:
    """What to tell the server when it did not take an outcome: the same again, another one, or
    nothing. ``failures`` counts this one too.

    :raises Exception: ``error``, if nothing is known of it.
    """
    if isinstance(error, LeaseNotHeld):
        context.log.warning("the outcome came too late: the lease is %s", error.reason)
        return None
    status = error.status if isinstance(error, ProtocolError) else 200
    if isinstance(error, _REFUSED) or status == 413:
        context.log.error("the outcome was refused: %s", error)
        if outcome.kind == "complete":
            return final(f"the output was refused: {error}")
        return None
    is_passing = isinstance(error, TRANSIENT) or status >= 500
    if isinstance(error, InternalError):
        is_passing = failures < INTERNAL_ERRORS_MAX
    # A token may be replaced while the lease holds.
    if isinstance(error, Unauthorized) or status in (401, 403):
        is_passing = not context._hold.is_over(time.monotonic())
    if not is_passing:
        raise error
    context.log.warning("an outcome is told again: %s", error)
    return outcome


def told(context: BaseContext, outcome: Outcome) -> None:
    """Logs that the server has taken an outcome."""
    duration_ms = round((time.monotonic() - context._hold.begun_at) * 1000, 1)
    log, extra = context.log.logger, {**(context.log.extra or {}), "duration_ms": duration_ms}
    if outcome.kind == "fail":
        log.warning("the attempt has failed: %s", outcome.error[:1000], extra=extra)
    else:
        ends = {"complete": "completed", "release": "released"}
        log.info("the attempt was %s", ends[outcome.kind], extra=extra)


def _text(error: str) -> str:
    raw = error.encode("utf-8", "replace")
    return raw[:ERROR_BYTES_MAX].decode("utf-8", "ignore")
