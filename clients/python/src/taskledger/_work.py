"""What both workers share: methods, options, and what is known of a lease.

No input or output, no threads and no tasks. Times are readings of ``time.monotonic()`` in seconds.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import math
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from ._protocol import RetryPolicy, without_none
from .errors import (
    Busy,
    InternalError,
    LeaseNotHeld,
    TaskledgerError,
    TaskNotFound,
    TransportError,
)
from .types import Answer, Claim, ClaimContext, JsonObject, Lease, Renewed, Task

LOG = logging.getLogger("taskledger.worker")

CLAIMS_MAX = 100
"""The most that one call may claim."""
MESSAGE_CHARS_MAX = 1000
NAME_CHARS_MAX = 255
PROGRESS_SECONDS = 1.05
"""Progress is sent so long after the answer to the last one. The server records it once a second
for each attempt, and drops what comes sooner. What is said in between is replaced by what comes
after it.
"""
REFUSALS_MAX = 5
"""A worker that had work once ends when the server has refused it so many times in a row."""
POLL_END_SECONDS = 2.0
"""How long a poll that is ended may take to deliver what the server has claimed for it already."""
RENEWAL_TIMEOUT = (1.0, 10.0)
"""Bounds of the seconds for one renewal; a third of the lease between them."""
RENEWAL_SECONDS_MIN = 1.0
"""Between two renewals at least, however short the grace of the task is."""
TIME_UP_PAUSES = (0.05, 1.0)
"""Seconds after a time-out or a deadline at which a lease is renewed: the answer says that the time
is up, the second time also of a server that was busy.
"""
CANCEL_GRACE_SECONDS = 30.0
"""The grace of a task whose ``params`` name none."""
LAST_WORDS_SECONDS = 5.0
"""How long a worker that must end tries to tell outcomes, and to give tasks back."""
GIVING_BACK_AT_ONCE_MAX = 16

ONCE = RetryPolicy(budget_seconds=0)
AGAIN = RetryPolicy(initial_seconds=0.1, max_seconds=5.0)
LAST_WORDS = RetryPolicy(budget_seconds=LAST_WORDS_SECONDS)
LOST = ("lost", "expired", "unknown")
"""Reasons which say that the server has not heard of this worker for too long."""
TRANSIENT = (TransportError, Busy, InternalError)
"""Errors after which the same call may succeed."""

Handler = TypeVar("Handler", bound=Callable[..., Any])


@dataclass(frozen=True)
class Method(Generic[Handler]):
    """A method that a worker carries out; ``declaration`` holds what ``workers.declare`` is
    told.
    """

    name: str
    handler: Handler
    declaration: JsonObject | None


def is_async(handler: Callable[..., Any]) -> bool:
    """Whether calling it makes a coroutine, or an asynchronous generator, in place of a value."""
    called = getattr(type(handler), "__call__", None)
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (handler, called)
    )


def declaration(
    name: str,
    *,
    declare: bool,
    description: str | None,
    input_schema: JsonObject | None,
    output_schema: JsonObject | None,
    defaults: JsonObject | None,
    limit: int | None,
) -> JsonObject | None:
    """What is to be declared, if anything is.

    :raises ValueError: the name is empty or too long.
    """
    if not 1 <= len(name) <= NAME_CHARS_MAX:
        raise ValueError(f"a method has 1 to {NAME_CHARS_MAX} characters, got {len(name)}")
    told = without_none(
        description=description,
        input_schema=input_schema,
        output_schema=output_schema,
        defaults=defaults,
        limit=limit,
    )
    return {"method": name, **told} if declare or told else None


@dataclass(frozen=True)
class Options:
    """How a worker works; see ``Worker``."""

    name: str
    concurrency: int
    lease_seconds: int
    grace_seconds: float
    release_seconds: float
    poll_seconds: float
    pollers: int

    @staticmethod
    def make(
        *,
        name: str | None,
        concurrency: int,
        lease_seconds: int,
        grace_seconds: float,
        release_seconds: float,
        poll_seconds: float,
        pollers: int | None,
    ) -> Options:
        """
        :raises ValueError: a number is out of its range.
        """
        if name is None:
            name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"[-NAME_CHARS_MAX:]
        if not 1 <= len(name) <= NAME_CHARS_MAX:
            raise ValueError(f"the name of a worker has 1 to {NAME_CHARS_MAX} characters")
        if concurrency < 1:
            raise ValueError("concurrency is at least 1")
        if not 5 <= lease_seconds <= 3600:
            raise ValueError("lease_seconds is 5 to 3600")
        if not 0 <= poll_seconds <= 60:
            raise ValueError("poll_seconds is 0 to 60")
        if pollers is None:
            # More would leave more open polls behind when a machine freezes.
            pollers = 1 if concurrency < 16 else 2
        if pollers < 1:
            raise ValueError("pollers is at least 1")
        return Options(
            name, concurrency, lease_seconds, grace_seconds, release_seconds, poll_seconds, pollers
        )

    def share(self, free: int, pollers_waiting: int) -> int:
        """How many of the free slots one poll asks for, so that others have some too."""
        return max(1, min(CLAIMS_MAX, free, math.ceil(free / max(1, pollers_waiting))))

    def claim_params(self, methods: Iterable[str], count: int) -> JsonObject:
        """Parameters of ``tasks.claim``."""
        return {
            "worker": self.name,
            "methods": [*methods],
            "max": count,
            "lease_seconds": self.lease_seconds,
            "wait_seconds": self.poll_seconds,
        }

    @property
    def claim_timeout(self) -> float:
        """Seconds for one poll."""
        return self.poll_seconds + 15


def address(client: str | None, url: str | None) -> str | None:
    """The URL that a worker was given, in one way or the other.

    :raises ValueError: in both.
    """
    if client is not None and url is not None:
        raise ValueError("expected the server as the first argument or as `url`, not both")
    return client if url is None else url


class Welcome:
    """Whether it is worth asking for work again, and when.

    ``taken`` is set once the server has taken the worker: for all that ask on its behalf, since one
    of them may ask for the first time just when its token is replaced.
    """

    def __init__(self, taken: threading.Event) -> None:
        self._taken = taken
        self._failures = 0
        self._refusals = 0

    def answered(self) -> None:
        """The server takes this worker."""
        self._refusals = 0
        self._taken.set()

    def failed(self, error: Exception) -> float:
        """Seconds after which to ask again.

        :raises Exception: ``error`` says that there is no use in it: the server refuses the worker
            from the start, or again and again, as when its token was revoked.
        """
        self._failures += 1
        if isinstance(error, TRANSIENT):
            self._refusals = 0
        else:
            self._refusals += 1
            if not self._taken.is_set() or self._refusals >= REFUSALS_MAX:
                raise error
        return AGAIN.pause(self._failures, getattr(error, "retry_after", None))

    def lasted(self) -> None:
        """It went well for a while: what comes is the first failure again."""
        self._failures = 0


class Hold:
    """What is known of one lease: until when it holds, when to renew it, what to say then.

    What is said may come from another thread than the one that renews.
    """

    def __init__(self, claim: Claim) -> None:
        now = time.monotonic()
        self.begun_at = now
        self._lease_seconds = float(claim["lease"]["lease_seconds"])
        params = claim["task"].get("params") or {}
        grace = float(params.get("cancel_grace_seconds", CANCEL_GRACE_SECONDS))
        # A cancellation is heard of by the next renewal, while the grace lasts.
        of_grace = max(grace / 3, RENEWAL_SECONDS_MIN)
        self._renewal_seconds = min(self._lease_seconds / 3, of_grace)
        self._ask_at = [now + up + pause for up in times_up(claim) for pause in TIME_UP_PAUSES]
        self._failures = 0
        # Held from reading what was said until it is replaced.
        self._saying = threading.Lock()
        self._said: JsonObject | None = None
        self._is_telling = False
        self._tell_at = -math.inf
        self.is_watched = True
        self._renewed(now)

    @property
    def expires_at(self) -> float:
        """Until when the lease holds, as far as is known here."""
        return self._expires_at

    @property
    def renewal_timeout(self) -> float:
        """Seconds for one renewal."""
        least, most = RENEWAL_TIMEOUT
        return min(most, max(least, self._lease_seconds / 3))

    @property
    def due_at(self) -> float:
        """When to renew it next; never, once that was ended."""
        if not self.is_watched:
            return math.inf
        if self._said is not None:
            return min(self._due_at, max(self._tell_at, self._not_before))
        return self._due_at

    def say(self, progress: float | None, message: str | None) -> None:
        """Notes how far the handler is, for the next renewal.

        :raises ValueError: ``progress`` is not between 0 and 1. :raises TypeError: it is no
            number, or ``message`` is no text.
        """
        if progress is not None:
            if isinstance(progress, bool) or not isinstance(progress, (int, float)):
                hint = "; a text is given as `message`" if isinstance(progress, str) else ""
                raise TypeError(f"progress is a number from 0 to 1, got {progress!r}{hint}")
            if not 0 <= progress <= 1:
                raise ValueError(f"progress is 0 to 1, got {progress!r}")
        if message is not None and not isinstance(message, str):
            raise TypeError(f"message is a text, got {message!r}")
        text = well_formed(message[:MESSAGE_CHARS_MAX]) if message else None
        news = without_none(progress=progress, message=text)
        with self._saying:
            self._said = {**(self._said or {}), **news}

    def take(self, now: float) -> JsonObject:
        """What the renewal that is being sent says: nothing while the server would drop it."""
        with self._saying:
            if self._said is None or now < self._tell_at:
                return {}
            said, self._said = self._said, None
        self._is_telling = True
        return said

    def renewed(self, sent_at: float) -> None:
        """A renewal that was sent then has been answered."""
        self._has_told()
        self._renewed(sent_at)

    def not_renewed(self, now: float, said: JsonObject) -> bool:
        """A renewal was not answered; whether the lease has ended meanwhile. ``said`` is said
        again.
        """
        self._failures += 1
        self._has_told()
        if said:
            with self._saying:
                self._said = {**said, **(self._said or {})}
        pause = min(AGAIN.pause(self._failures), self._lease_seconds / 10)
        self._due_at = self._not_before = now + pause
        return self.is_over(now)

    def is_over(self, now: float) -> bool:
        """Whether the lease has ended, as far as is known here."""
        return now >= self._expires_at

    def _has_told(self) -> None:
        # Only now it is certain that the server's second has begun.
        if self._is_telling:
            self._is_telling = False
            self._tell_at = time.monotonic() + PROGRESS_SECONDS

    def _renewed(self, at: float) -> None:
        self._failures = 0
        self._not_before = -math.inf
        self._expires_at = at + self._lease_seconds
        # Not all at the same moment after a burst of claims.
        self._due_at = at + self._renewal_seconds * random.uniform(0.85, 1.0)
        self._due_at = min([self._due_at, *(ask_at for ask_at in self._ask_at if ask_at > at)])


def times_up(claim: Claim) -> list[float]:
    """Seconds from the claim to its time-out and to its deadline, as far as there are such."""
    context, lease = claim["context"], claim["lease"]
    timeout, deadline = context.get("timeout_seconds"), context.get("deadline")
    found = [] if timeout is None else [float(timeout)]
    if deadline is not None:
        with contextlib.suppress(ValueError):
            # Both are of the server's clock; this machine's may differ.
            left = (_time(deadline) - _time(lease["expires_at"])).total_seconds()
            found.append(max(0.0, left + float(lease["lease_seconds"])))
    return found


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def well_formed(text: str) -> str:
    """``text`` with a mark in place of each lone surrogate, which no text in UTF-8 can have."""
    return text.encode("utf-8", "replace").decode("utf-8")


class BaseContext:
    """What a handler knows of its attempt."""

    def __init__(self, claim: Claim, worker: str) -> None:
        self.input: JsonObject = claim["input"]
        """The same as the first argument of the handler."""
        self.task: Task = claim["task"]
        """The task, as ``tasks.get`` shows it."""
        self.task_id: str = claim["task"]["id"]
        self.method: str = (claim["task"].get("schemas") or {}).get("method", "")
        self.lease: Lease = claim["lease"]
        self.attempt: int = claim["lease"]["attempt"]
        """Counts from 1, over the life of the task."""
        self.run: ClaimContext = claim["context"]
        """``root_task_id``, ``run_id``, ``user_id``, ``deadline``, ``timeout_seconds``,
        ``traceparent``.
        """
        self.worker = worker
        self.reason: str | None = None
        """Why the handler is told to stop (see ``types.CancelReason``); ``None``: it is not."""
        extra = {
            "task_id": self.task_id,
            "attempt": self.attempt,
            "method": self.method,
            "worker": worker,
        }
        self.log = logging.LoggerAdapter(LOG, extra)
        """A logger whose records have ``task_id``, ``attempt``, ``method`` and ``worker``."""
        self._hold = Hold(claim)

    def _renewal(self) -> tuple[float, JsonObject]:
        """When a renewal that is sent now is sent, and its parameters."""
        now = time.monotonic()
        return now, {"task_id": self.task_id, "lease": self.lease["token"], **self._hold.take(now)}

    @property
    def answers(self) -> list[Answer]:
        """What the task has asked people in earlier attempts of the run, oldest first: their
        questions and what was answered. See ``errors.Suspend``.
        """
        return list(self.run.get("answers", []))

    def key(self, name: str) -> str:
        """A key for an effect named ``name`` that is the same for all attempts of this task in a run.

        Pass it to the service that you call as its idempotency key, so that an attempt that is repeated
        does not repeat the effect. Another run has another key.
        """
        return f"{self.run['run_id']}-{self.task_id}:{name}"


def renewed(context: BaseContext, answer: Renewed, sent_at: float) -> str | None:
    """Notes the answer to a renewal; the reason for which the handler is to stop, if it says
    one.
    """
    context._hold.renewed(sent_at)
    if not answer.get("cancel_requested"):
        return None
    context._hold.is_watched = False
    return answer.get("reason") or "cancelled"


def not_renewed(context: BaseContext, error: Exception, params: JsonObject) -> str | None:
    """Notes that a renewal failed; the reason for which the handler is to stop, if that follows."""
    hold = context._hold
    if isinstance(error, (LeaseNotHeld, TaskNotFound)):
        hold.is_watched = False
        return error.reason if isinstance(error, LeaseNotHeld) else "lost"
    foreseen = isinstance(error, TaskledgerError)
    context.log.warning("a lease could not be renewed: %s", error, exc_info=not foreseen)
    said: JsonObject = {name: params[name] for name in ("progress", "message") if name in params}
    # What was refused is not said again.
    is_over = hold.not_renewed(time.monotonic(), said if isinstance(error, TRANSIENT) else {})
    if not is_over or context.reason is not None:
        return None
    context.log.warning("the lease has ended while the server could not be reached")
    return "expired"
