"""Attempts of the worker for threads: what handlers see of them, and how their leases are
renewed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from . import _work
from ._http import Interrupt
from ._work import ONCE, Method
from .client import Client
from .errors import Cancelled
from .types import Claim, JsonObject

RENEWALS_AT_ONCE_MAX = 16
SyncHandler = Callable[..., "JsonObject | None"]


class Context(_work.BaseContext):
    """What a handler of ``Worker`` knows of its attempt, and can do."""

    def __init__(self, claim: Claim, worker: str, client: Client, renewals: Renewals) -> None:
        super().__init__(claim, worker)
        self.client = client
        """The client of the worker."""
        self.cancelled = threading.Event()
        """Set when the handler should stop; ``reason`` says why."""
        self._renewals = renewals

    def check(self) -> None:
        """Call this now and then in long work.

        :raises Cancelled: the handler should stop.
        """
        if self.cancelled.is_set():
            raise Cancelled(self.reason)

    def sleep(self, seconds: float) -> None:
        """Sleeps.

        :raises Cancelled: the handler should stop; at once.
        """
        self.cancelled.wait(seconds)
        self.check()

    def progress(self, progress: float | None = None, message: str | None = None) -> None:
        """Tells how far the work is: 0 to 1, and a text of up to 1000 characters.

        It is sent by another thread, once a second at most: of what is said faster, the last
        counts.
        """
        self._hold.say(progress, message)
        self._renewals.wake()

    def sibling_output(self, name: str) -> JsonObject | None:
        """The result of another task below the same parent, by name or id; ``None`` until it has
        completed. What is known to be needed belongs into ``schemas.wiring`` and comes as input.

        :raises InvalidParams: no such task, or several; the message says what there is.
        """
        return self.client.sibling_output(self.task_id, self.lease["token"], name)["output"]

    def _stop(self, reason: str) -> None:
        if self.reason is None or self.reason == "shutdown":
            self.reason = reason
        self.cancelled.set()


class Attempt:
    """One claim while its handler runs."""

    def __init__(self, claim: Claim, method: Method[SyncHandler], context: Context) -> None:
        self.claim = claim
        self.method = method
        self.context = context
        self.hold = context._hold
        self.is_renewing = False
        self.is_telling = False
        """Whether its handler has ended, and the server is told how."""
        self.is_abandoned = False


class Renewals:
    """Renews the leases that a worker holds, from a thread of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._condition = threading.Condition()
        self._attempts: set[Attempt] = set()
        self._is_stopped = False
        self._sending: set[Interrupt] = set()
        self._senders = ThreadPoolExecutor(RENEWALS_AT_ONCE_MAX, "taskledger-renewal")
        self._thread = threading.Thread(target=self._run, name="taskledger-renewals", daemon=True)
        self._thread.start()

    def add(self, attempt: Attempt) -> None:
        """Renews the lease of an attempt from now on."""
        with self._condition:
            self._attempts.add(attempt)
            self._condition.notify()

    def remove(self, attempt: Attempt) -> None:
        """Renews it no longer."""
        with self._condition:
            self._attempts.discard(attempt)

    def wake(self) -> None:
        """Looks whether something is to be sent."""
        with self._condition:
            self._condition.notify()

    def stop(self) -> None:
        """Ends the thread, and the renewals that are not answered."""
        with self._condition:
            self._is_stopped = True
            self._condition.notify()
            sending = [*self._sending]
        self._thread.join()
        # The interpreter waits for the threads of a pool.
        for interrupt in sending:
            interrupt.kill()
        self._senders.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        with self._condition:
            while not self._is_stopped:
                now = time.monotonic()
                next_at = now + 60
                for attempt in self._attempts:
                    if attempt.is_renewing:
                        continue
                    due_at = attempt.hold.due_at
                    if due_at <= now:
                        attempt.is_renewing = True
                        self._senders.submit(self._renew, attempt)
                    else:
                        next_at = min(next_at, due_at)
                self._condition.wait(max(0.0, next_at - now))

    def _renew(self, attempt: Attempt) -> None:
        context, interrupt = attempt.context, Interrupt()
        with self._condition:
            if self._is_stopped:
                return
            self._sending.add(interrupt)
        sent_at, params = context._renewal()
        timeout = context._hold.renewal_timeout
        try:
            answer = self._client.call(
                "tasks.renew", params, timeout=timeout, retry=ONCE, interrupt=interrupt
            )
        except Exception as error:
            if interrupt.is_set:
                return
            reason = _work.not_renewed(context, error, params)
        else:
            reason = _work.renewed(context, answer, sent_at)
        finally:
            with self._condition:
                self._sending.discard(interrupt)
        if reason is not None:
            context._stop(reason)
        with self._condition:
            attempt.is_renewing = False
            self._condition.notify()
