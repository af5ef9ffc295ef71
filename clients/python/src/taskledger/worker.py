"""The worker for threads."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from . import _outcomes, _work
from ._attempts import Attempt, Context, Renewals, SyncHandler
from ._http import Interrupt
from ._outcomes import Outcome
from ._protocol import Token
from ._work import LOG, ONCE, Method, Options, Welcome
from .client import Client
from .errors import Cancelled, TaskledgerError
from .types import Claim, JsonObject


class Worker:
    """Carries out tasks in threads.

        worker = Worker("http://127.0.0.1:8000", concurrency=8)

        @worker.method("resize")
        def resize(input, ctx):
            return {"width": input["width"] // 2}

        worker.run()

    ``client`` is a ``Client`` or the URL for one; or give ``url`` and ``token``, which are those of
    ``Client``. ``name`` (host, process and some letters) is what the server shows. ``concurrency``
    handlers run at once, each in a thread. A claim is held for ``lease_seconds`` (5 to 3600) and
    renewed each third of them, or of the task's ``cancel_grace_seconds`` if that is shorter, which
    is also how often a handler learns that its task was cancelled. After SIGTERM or SIGINT nothing more is claimed,
    and handlers have ``grace_seconds`` to end; then they are told to stop, and what has not ended
    ``release_seconds`` later is given back to the server. ``poll_seconds`` (0 to 60) and
    ``pollers`` say how the server is asked for work.

    What a handler returns (a dictionary; ``None`` is ``{}``) is the result of the task. ``Final``
    fails it, ``Retryable`` and all other exceptions fail the attempt. A handler whose task was
    cancelled, or whose lease is lost, should stop (``ctx.check()``, ``ctx.cancelled``); its
    outcome is dropped.
    """

    def __init__(
        self,
        client: Client | str | None = None,
        *,
        url: str | None = None,
        token: Token | None = None,
        name: str | None = None,
        concurrency: int = 8,
        lease_seconds: int = 60,
        grace_seconds: float = 30.0,
        release_seconds: float = 5.0,
        poll_seconds: float = 20.0,
        pollers: int | None = None,
    ) -> None:
        self._options = Options.make(
            name=name,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            grace_seconds=grace_seconds,
            release_seconds=release_seconds,
            poll_seconds=poll_seconds,
            pollers=pollers,
        )
        self._owns_client = not isinstance(client, Client)
        if isinstance(client, Client):
            if url is not None or token is not None:
                raise ValueError("a client was given, which has its own `url` and `token`")
            self.client = client
        else:
            self.client = Client(_work.address(client, url), token=token)
        """The client that this worker calls with."""
        self._methods: dict[str, Method[SyncHandler]] = {}
        # A queue that may be written to from a signal handler.
        self._inbox: queue.SimpleQueue[tuple[str, BaseException | None]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._taken = threading.Event()
        self._slots = threading.Condition()
        self._free = concurrency
        self._waiting_pollers = 0
        self._attempts: set[Attempt] = set()
        self._renewals: Renewals

    @property
    def name(self) -> str:
        """The name that the server shows."""
        return self._options.name

    def method(
        self,
        name: str,
        *,
        declare: bool = False,
        description: str | None = None,
        input_schema: JsonObject | None = None,
        output_schema: JsonObject | None = None,
        defaults: JsonObject | None = None,
        limit: int | None = None,
    ) -> Callable[[SyncHandler], SyncHandler]:
        """Registers a handler, ``(input, ctx) -> dict``, for tasks whose ``schemas.method`` is
        ``name``.

        With ``declare``, or with any of the others (see ``Client.workers_declare``), the method is
        declared when the worker starts: then tasks of it wait for a worker even while none is
        there.
        """
        declared = _work.declaration(
            name,
            declare=declare,
            description=description,
            input_schema=input_schema,
            output_schema=output_schema,
            defaults=defaults,
            limit=limit,
        )

        def register(handler: SyncHandler) -> SyncHandler:
            if name in self._methods:
                raise ValueError(f"the method {name!r} has a handler")
            if _work.is_async(handler):
                raise TypeError(f"the handler of {name!r} is an async function; see AsyncWorker")
            self._methods[name] = Method(name, handler, declared)
            return handler

        return register

    def run(self, *, handle_signals: bool = True) -> None:
        """Works until ``stop``, SIGTERM or SIGINT, or until the server drains this worker.

        A second signal ends the grace at once. Signals are handled in the main thread only. While
        the server cannot be reached, this waits for it.

        :raises RpcError: the server refuses what this worker asks for.
        :raises ValueError: it has no methods.
        """
        if not self._methods:
            raise ValueError("a worker needs at least one method")
        signals = _Signals(self) if handle_signals else contextlib.nullcontext()
        self._renewals = Renewals(self.client)
        interrupts = [Interrupt() for _ in range(self._options.pollers)]
        try:
            with signals:
                if not self._is_declared():
                    return
                LOG.info("the worker begins", extra=self._extra(methods=[*self._methods]))
                pollers = [
                    threading.Thread(target=self._poll, args=(interrupt,), daemon=True)
                    for interrupt in interrupts
                ]
                for poller in pollers:
                    poller.start()
                self._supervise(pollers, interrupts)
        finally:
            self._renewals.stop()
            if self._owns_client:
                self.client.close()
            LOG.info("the worker has ended", extra=self._extra())

    def stop(self, *, now: bool = False) -> None:
        """Ends ``run`` gracefully, from any thread or signal handler; ``now``: without the
        grace.
        """
        self._inbox.put(("now" if now else "stop", None))

    # What happens in the thread of `run`.

    def _supervise(self, pollers: list[threading.Thread], interrupts: list[Interrupt]) -> None:
        message, failure = self._next(None)
        ends_at = self._ends_at(message)
        LOG.info("the worker stops", extra=self._extra(held=len(self._attempts)))
        self._stopping.set()
        with self._slots:
            self._slots.notify_all()
        for interrupt in interrupts:
            interrupt.half_close()
        until = time.monotonic() + _work.POLL_END_SECONDS
        for poller, interrupt in zip(pollers, interrupts):
            poller.join(max(0.0, until - time.monotonic()))
            interrupt.kill()
            poller.join(0.5)
        ends_at = self._wait(ends_at)
        if self._attempts:
            for attempt in self._held():
                attempt.context._stop("shutdown")
            self._wait(time.monotonic() + self._options.release_seconds)
        if self._attempts:
            self._last_words()
        if failure is not None:
            raise failure

    def _last_words(self) -> None:
        """Gives back what still runs, while outcomes of what has ended are told; for so long, or
        until a signal says otherwise.
        """
        running: queue.SimpleQueue[Attempt] = queue.SimpleQueue()
        with self._slots:
            for attempt in self._attempts:
                if not attempt.is_telling:
                    attempt.is_abandoned = True
                    running.put(attempt)

        def give_back() -> None:
            with contextlib.suppress(queue.Empty):
                while True:
                    attempt = running.get_nowait()
                    attempt.context.log.warning("the handler does not stop; its task is given back")
                    self._give_back(attempt.claim)
                    self._forget(attempt)

        # Daemons, because a server that does not answer must not keep the process.
        for _ in range(min(running.qsize(), _work.GIVING_BACK_AT_ONCE_MAX)):
            threading.Thread(target=give_back, daemon=True).start()
        self._wait(time.monotonic() + _work.LAST_WORDS_SECONDS)
        left = self._held()
        for attempt in left:
            attempt.is_abandoned = True
        if left:
            LOG.error("tasks are left to the ends of their leases", extra=self._extra(held=len(left)))

    def _ends_at(self, message: str) -> float | None:
        """When the grace is over that begins with ``message``. A drain leaves all the time."""
        if message == "drain":
            return None
        return time.monotonic() + (0 if message == "now" else self._options.grace_seconds)

    def _wait(self, until: float | None) -> float | None:
        """Waits until nothing is held, at most ``until``, or until a signal says otherwise."""
        while self._attempts:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            message, _ = self._next(left)
            if message == "now":
                break
            if message == "stop":
                # The first one ends a drain in time, the second one at once.
                if until is not None:
                    break
                until = self._ends_at(message)
        return until

    def _next(self, timeout: float | None) -> tuple[str, BaseException | None]:
        # In pieces, because a wait without end cannot be interrupted on every system.
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = 1.0 if until is None else min(1.0, until - time.monotonic())
            if left <= 0:
                return "", None
            try:
                message, failure = self._inbox.get(timeout=left)
            except queue.Empty:
                continue
            if message == "done" and not self._stopping.is_set():
                continue
            return message, failure

    def _is_declared(self) -> bool:
        """Declares the methods, however long the server is away; ``False``: the worker is to stop.

        :raises RpcError: the server refuses.
        """
        declarations = [each.declaration for each in self._methods.values() if each.declaration]
        if not declarations:
            return True
        interrupt = Interrupt()
        # In another thread, so that a signal is heard of while the server does not answer.
        threading.Thread(target=self._declare, args=(declarations, interrupt), daemon=True).start()
        message, failure = self._next(None)
        if message == "declared":
            return True
        self._stopping.set()
        interrupt.kill()
        if failure is not None:
            raise failure
        return False

    # What happens in the threads that ask for work.

    def _declare(self, declarations: list[JsonObject], interrupt: Interrupt) -> None:
        welcome = Welcome(threading.Event())
        try:
            for declaration in declarations:
                while True:
                    try:
                        self.client.call(
                            "workers.declare", declaration, retry=ONCE, interrupt=interrupt
                        )
                        break
                    except Exception as error:
                        if self._stopping.is_set():
                            return
                        pause = welcome.failed(error)
                        LOG.warning("cannot declare a method: %s", error, extra=self._extra())
                    if self._stopping.wait(pause):
                        return
                welcome.lasted()
            self._inbox.put(("declared", None))
        except BaseException as error:
            self._inbox.put(("failed", error))

    def _poll(self, interrupt: Interrupt) -> None:
        try:
            welcome = Welcome(self._taken)
            while count := self._reserve():
                try:
                    answer = self.client.call(
                        "tasks.claim",
                        self._options.claim_params(self._methods, count),
                        timeout=self._options.claim_timeout,
                        retry=ONCE,
                        interrupt=interrupt,
                    )
                except Exception as error:
                    self._give(count)
                    if self._stopping.is_set():
                        return
                    pause = welcome.failed(error)
                    LOG.warning("cannot ask for work: %s", error, extra=self._extra())
                    self._stopping.wait(pause)
                    continue
                welcome.answered()
                welcome.lasted()
                claims: list[Claim] = answer.get("claims") or []
                self._give(count - len(claims))
                for claim in claims:
                    self._begin(claim)
                if answer.get("draining"):
                    self._inbox.put(("drain", None))
                    return
        except BaseException as error:
            LOG.error("cannot ask for work: %s", error, extra=self._extra())
            self._inbox.put(("failed", error))

    def _reserve(self) -> int:
        """Waits for free slots and takes some; 0: the worker stops."""
        with self._slots:
            self._waiting_pollers += 1
            try:
                self._slots.wait_for(lambda: self._free > 0 or self._stopping.is_set())
                if self._stopping.is_set():
                    return 0
                count = self._options.share(self._free, self._waiting_pollers)
                self._free -= count
                return count
            finally:
                self._waiting_pollers -= 1

    def _give(self, count: int) -> None:
        with self._slots:
            self._free += count
            self._slots.notify_all()

    def _begin(self, claim: Claim) -> None:
        context = Context(claim, self.name, self.client, self._renewals)
        method = self._methods.get(context.method)
        if self._stopping.is_set() or method is None:
            self._give(1)
            self._give_back(claim)
            return
        attempt = Attempt(claim, method, context)
        with self._slots:
            self._attempts.add(attempt)
        self._renewals.add(attempt)
        threading.Thread(
            target=self._work, args=(attempt,), name=f"taskledger-{context.method}", daemon=True
        ).start()

    # What happens in the threads of handlers.

    def _work(self, attempt: Attempt) -> None:
        context, gave_in = attempt.context, False
        context.log.info("the attempt begins")
        try:
            try:
                value = attempt.method.handler(attempt.claim["input"], context)
                outcome = _outcomes.of_value(value)
            except BaseException as error:
                gave_in = isinstance(error, Cancelled) and context.cancelled.is_set()
                outcome = _outcomes.of_error(error)
                if outcome.is_unforeseen and not gave_in and context.reason is None:
                    context.log.warning("the handler raised an exception", exc_info=True)
            self._settle(attempt, _outcomes.verdict(outcome, context.reason, gave_in=gave_in))
        except BaseException:
            context.log.exception("an outcome could not be told")
        finally:
            self._forget(attempt)
            self._give(1)

    def _forget(self, attempt: Attempt) -> None:
        self._renewals.remove(attempt)
        with self._slots:
            self._attempts.discard(attempt)
        self._inbox.put(("done", None))

    def _settle(self, attempt: Attempt, outcome: Outcome) -> None:
        """Tells the server how an attempt ended, until it answers."""
        context = attempt.context
        telling = _outcomes.Telling(context, outcome)
        with self._slots:
            attempt.is_telling = True
        while not (attempt.is_abandoned or telling.outcome.kind == "drop"):
            outcome = telling.outcome
            try:
                self.client.call(
                    outcome.method, outcome.params(context.task_id, context.lease), retry=ONCE
                )
            except Exception as error:
                pause = telling.failed(error)
                if pause is None:
                    return
                time.sleep(pause)
            else:
                telling.told()
                return
        context.log.info("the outcome is dropped: %s", context.reason or "given back")

    def _give_back(self, claim: Claim) -> None:
        task_id, lease = claim["task"]["id"], claim["lease"]
        extra = self._extra(task_id=task_id, attempt=lease["attempt"])
        params = {"task_id": task_id, "lease": lease["token"]}
        try:
            self.client.call(
                "tasks.release", params, timeout=_work.LAST_WORDS_SECONDS, retry=_work.LAST_WORDS
            )
        except TaskledgerError as error:
            LOG.warning("a task could not be given back: %s", error, extra=extra)
        else:
            LOG.info("a task was given back", extra=extra)

    def _held(self) -> list[Attempt]:
        with self._slots:
            return [*self._attempts]

    def _extra(self, **more: Any) -> dict[str, Any]:
        return {"worker": self.name, **more}


class _Signals:
    """SIGTERM and SIGINT stop a worker; a second one stops it now. What was there before comes
    back.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._before: dict[int, Any] = {}
        self._came = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._on_signal)

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._worker.stop(now=self._came)
        self._came = True
