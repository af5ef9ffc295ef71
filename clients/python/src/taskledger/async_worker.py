"""The worker for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from . import _outcomes, _work
from ._http_async import AsyncInterrupt
from ._intake import Slots, declare, listen, poll, sleep_unless
from ._outcomes import Outcome
from ._protocol import Token
from ._work import LOG, ONCE, Method, Options
from .async_client import AsyncClient
from .errors import Cancelled, LeaseNotHeld, TaskledgerError
from .types import Claim, JsonObject

AsyncHandler = Callable[..., "Awaitable[JsonObject | None]"]


class AsyncContext(_work.BaseContext):
    """What a handler of ``AsyncWorker`` knows of its attempt, and can do."""

    def __init__(self, claim: Claim, worker: AsyncWorker) -> None:
        super().__init__(claim, worker.name)
        self.client: AsyncClient = worker.client
        """The client of the worker."""
        self.cancelled = asyncio.Event()
        """Set when the handler should stop; its task is cancelled at the same time. ``reason``
        says why.
        """
        self._news = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None

    def progress(self, progress: float | None = None, message: str | None = None) -> None:
        """Tells how far the work is: 0 to 1, and a text of up to 1000 characters.

        It is sent by another task, once a second at most: of what is said faster, the last counts.
        """
        self._hold.say(progress, message)
        self._news.set()

    async def sibling_output(self, name: str) -> JsonObject | None:
        """The result of another task below the same parent, by name or id; ``None`` until it has
        completed. What is known to be needed belongs into ``schemas.wiring`` and comes as input.

        :raises InvalidParams: no such task, or several; the message says what there is.
        """
        sibling = await self.client.sibling_output(self.task_id, self.lease["token"], name)
        return sibling["output"]

    def _stop(self, reason: str) -> None:
        if self.reason is None or self.reason == "shutdown":
            self.reason = reason
        if not self.cancelled.is_set():
            self.cancelled.set()
            if self._task is not None:
                self._task.cancel()


class _Attempt:
    def __init__(self, claim: Claim, method: Method[AsyncHandler], context: AsyncContext) -> None:
        self.claim = claim
        self.method = method
        self.context = context
        self.hold = context._hold
        self.is_telling = False
        """Whether its handler has ended, and the server is told how."""
        self.is_abandoned = False


class AsyncWorker:
    """Carries out tasks in one event loop, hundreds at once.

        worker = AsyncWorker("http://127.0.0.1:8000", concurrency=100)

        @worker.method("fetch")
        async def fetch(input, ctx):
            ctx.progress(0.5, "half of it")
            return {"status": 200}

        asyncio.run(worker.run())

    ``client`` is an ``AsyncClient`` or the URL for one; or give ``url`` and ``token``, which are
    those of ``AsyncClient``. ``name`` (host, process and some letters) is what the server shows.
    ``concurrency`` handlers run at once, each in a task. A claim is held for ``lease_seconds`` (5
    to 3600) and renewed each third of them, or of the task's ``cancel_grace_seconds`` if that is
    shorter, which is also how often a handler learns that its task was cancelled. After SIGTERM or SIGINT nothing more is claimed,
    and handlers have ``grace_seconds`` to end; then they are cancelled, and what has not ended
    ``release_seconds`` later is given back to the server. ``poll_seconds`` (0 to 60) and
    ``pollers`` say how the server is asked for work. With ``socket`` it tells of work and of
    cancellations over a WebSocket instead, at once.

    What a handler returns (a dictionary; ``None`` is ``{}``) is the result of the task. ``Final``
    fails it, ``Retryable`` and all other exceptions fail the attempt. The handler of a task that
    was cancelled, or whose lease is lost, is cancelled as asyncio cancels; its outcome is dropped.
    Handlers must not block the loop: no lease is renewed while they do. Use ``asyncio.to_thread``,
    or ``Worker``.
    """

    def __init__(
        self,
        client: AsyncClient | str | None = None,
        *,
        url: str | None = None,
        token: Token | None = None,
        name: str | None = None,
        concurrency: int = 100,
        lease_seconds: int = 60,
        grace_seconds: float = 30.0,
        release_seconds: float = 5.0,
        poll_seconds: float = 20.0,
        pollers: int | None = None,
        socket: bool = False,
    ) -> None:
        self._socket = socket
        self._options = Options.make(
            name=name,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            grace_seconds=grace_seconds,
            release_seconds=release_seconds,
            poll_seconds=poll_seconds,
            pollers=pollers,
        )
        self._owns_client = not isinstance(client, AsyncClient)
        if isinstance(client, AsyncClient):
            if url is not None or token is not None:
                raise ValueError("a client was given, which has its own `url` and `token`")
            self.client = client
        else:
            self.client = AsyncClient(_work.address(client, url), token=token)
        """The client that this worker calls with."""
        self._methods: dict[str, Method[AsyncHandler]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: asyncio.Queue[tuple[str, BaseException | None]] = asyncio.Queue()
        self._stopping = asyncio.Event()
        self._taken = threading.Event()
        self._slots = Slots(self._options, self._stopping)
        self._attempts: set[_Attempt] = set()
        self._is_to_be_heard = asyncio.Event()
        """Set to say something on the socket, after a lease was lost: until it hears of a worker
        again, the server takes it for one that is stopped, and gives it nothing.
        """
        self._tasks: set[asyncio.Task[None]] = set()

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
    ) -> Callable[[AsyncHandler], AsyncHandler]:
        """Registers a handler, ``async (input, ctx) -> dict``, for tasks whose ``schemas.method``
        is ``name``.

        With ``declare``, or with any of the others (see ``AsyncClient.workers_declare``), the
        method is declared when the worker starts: then tasks of it wait for a worker even while
        none is there.
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

        def register(handler: AsyncHandler) -> AsyncHandler:
            if name in self._methods:
                raise ValueError(f"the method {name!r} has a handler")
            if not _work.is_async(handler):
                raise TypeError(f"the handler of {name!r} is not an async function; see Worker")
            self._methods[name] = Method(name, handler, declared)
            return handler

        return register

    async def run(self, *, handle_signals: bool = True) -> None:
        """Works until ``stop``, SIGTERM or SIGINT, or until the server drains this worker.

        A second signal ends the grace at once. Signals are handled in the main thread only.
        Cancelling the task that runs this ends the worker as ``stop(now=True)`` does. While the
        server cannot be reached, this waits for it.

        :raises RpcError: the server refuses what this worker asks for.
        :raises ValueError: it has no methods.
        """
        if not self._methods:
            raise ValueError("a worker needs at least one method")
        self._loop = asyncio.get_running_loop()
        signals = self._handle_signals() if handle_signals else []
        interrupts = [AsyncInterrupt() for _ in range(self._options.pollers)]
        pollers: list[asyncio.Task[None]] = []
        try:
            if not await self._is_declared():
                return
            LOG.info("the worker begins", extra=self._extra(methods=[*self._methods]))
            sources = [listen(self)] if self._socket else [poll(self, each) for each in interrupts]
            pollers = [asyncio.create_task(self._take_in(source)) for source in sources]
            try:
                message, failure = await self._next(None)
            except asyncio.CancelledError as error:
                message, failure = "now", error
            await self._end(message, pollers, interrupts)
            if failure is not None:
                raise failure
        finally:
            for task in [*pollers, *self._tasks]:
                task.cancel()
            for number in signals:
                self._loop.remove_signal_handler(number)
            if self._owns_client:
                await self.client.close()
            LOG.info("the worker has ended", extra=self._extra())

    def stop(self, *, now: bool = False) -> None:
        """Ends ``run`` gracefully, from any thread; ``now``: without the grace."""
        message: tuple[str, BaseException | None] = ("now" if now else "stop", None)
        if self._loop is None:
            self._inbox.put_nowait(message)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed, so the worker has ended
            self._loop.call_soon_threadsafe(self._inbox.put_nowait, message)

    async def _end(
        self, message: str, pollers: list[asyncio.Task[None]], interrupts: list[AsyncInterrupt]
    ) -> None:
        LOG.info("the worker stops", extra=self._extra(held=len(self._attempts)))
        # A drain leaves all the time.
        grace = 0 if message == "now" else self._options.grace_seconds
        ends_at = None if message == "drain" else time.monotonic() + grace
        self._stopping.set()
        await self._slots.wake()
        for interrupt in interrupts:
            interrupt.half_close()
        _, late = await asyncio.wait(pollers, timeout=_work.POLL_END_SECONDS)
        for poller in late:
            poller.cancel()
        await self._wait(ends_at)
        if self._attempts:
            for attempt in [*self._attempts]:
                attempt.context._stop("shutdown")
            await self._wait(time.monotonic() + self._options.release_seconds)
        if self._attempts:
            await self._last_words()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_work.POLL_END_SECONDS)

    async def _last_words(self) -> None:
        """Gives back what still runs, while outcomes of what has ended are told; for so long, or
        until a signal says otherwise.
        """
        gate = asyncio.Semaphore(_work.GIVING_BACK_AT_ONCE_MAX)

        async def give_back(attempt: _Attempt) -> None:
            async with gate:
                await self._give_back(attempt.claim)
            self._attempts.discard(attempt)
            self._inbox.put_nowait(("done", None))

        givers: list[asyncio.Task[None]] = []
        for attempt in self._attempts:
            if not attempt.is_telling:
                attempt.is_abandoned = True
                attempt.context.log.warning("the handler does not stop; its task is given back")
                givers.append(asyncio.create_task(give_back(attempt)))
        try:
            await self._wait(time.monotonic() + _work.LAST_WORDS_SECONDS)
        finally:
            for giver in givers:
                giver.cancel()
        for attempt in self._attempts:
            attempt.is_abandoned = True
        if self._attempts:
            held = self._extra(held=len(self._attempts))
            LOG.error("tasks are left to the ends of their leases", extra=held)

    async def _wait(self, until: float | None) -> None:
        """Waits until nothing is held, at most ``until``, or until a signal says otherwise."""
        while self._attempts:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            message, _ = await self._next(left)
            if message == "now":
                break
            if message == "stop":
                # The first one ends a drain in time, the second one at once.
                if until is not None:
                    break
                until = time.monotonic() + self._options.grace_seconds

    async def _next(self, timeout: float | None) -> tuple[str, BaseException | None]:
        while True:
            try:
                message, failure = await asyncio.wait_for(self._inbox.get(), timeout)
            except asyncio.TimeoutError:
                return "", None
            if message != "done" or self._stopping.is_set():
                return message, failure

    async def _is_declared(self) -> bool:
        """Declares the methods, however long the server is away; ``False``: the worker is to stop.

        :raises RpcError: the server refuses.
        """
        declarations = [each.declaration for each in self._methods.values() if each.declaration]
        if not declarations:
            return True
        declaring = asyncio.create_task(declare(self, declarations))
        try:
            message, failure = await self._next(None)
        finally:
            declaring.cancel()
        if failure is not None:
            raise failure
        return message == "declared"

    def _handle_signals(self) -> list[int]:
        if threading.current_thread() is not threading.main_thread():
            return []
        assert self._loop is not None, "it runs"
        signals: list[int] = []
        came: list[bool] = []

        def on_signal() -> None:
            self.stop(now=bool(came))
            came.append(True)

        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                self._loop.add_signal_handler(number, on_signal)
            except NotImplementedError:  # Windows: SIGINT cancels the task that runs the worker
                break
            signals.append(number)
        return signals

    # Claims.

    async def _take_in(self, source: Awaitable[None]) -> None:
        try:
            await source
        except Exception as error:
            LOG.error("cannot ask for work: %s", error, extra=self._extra())
            self._inbox.put_nowait(("failed", error))

    async def _begin(self, claim: Claim, *, has_slot: bool) -> None:
        context = AsyncContext(claim, self)
        method = self._methods.get(context.method)
        if self._stopping.is_set() or method is None:
            await self._slots.give(int(has_slot))
            await self._give_back(claim)
            return
        attempt = _Attempt(claim, method, context)
        self._attempts.add(attempt)
        task = asyncio.create_task(
            self._work(attempt, has_slot), name=f"taskledger-{context.method}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _taken_back(self, task_id: str, lease: str, reason: str) -> None:
        """The server says that an attempt is to stop."""
        for attempt in self._attempts:
            context = attempt.context
            if (context.task_id, context.lease["token"]) == (task_id, lease):
                attempt.hold.is_watched = False
                self._stop(attempt, reason)

    def _stop(self, attempt: _Attempt, reason: str) -> None:
        attempt.context._stop(reason)
        if reason in _work.LOST:
            self._is_to_be_heard.set()

    # One attempt.

    async def _work(self, attempt: _Attempt, has_slot: bool) -> None:
        context = attempt.context
        renewals = asyncio.create_task(self._renew(attempt))
        try:
            has_slot = has_slot or await self._slots.take(context.cancelled)
            if has_slot:
                context.log.info("the attempt begins")
                outcome = await self._handle(attempt)
            else:
                outcome = _outcomes.verdict(_outcomes.RELEASED, context.reason, gave_in=True)
            await self._settle(attempt, outcome)
        except Exception:
            context.log.exception("an outcome could not be told")
        finally:
            renewals.cancel()
            self._attempts.discard(attempt)
            await self._slots.give(int(has_slot))
            self._inbox.put_nowait(("done", None))

    async def _handle(self, attempt: _Attempt) -> Outcome:
        context, gave_in = attempt.context, False
        context._task = asyncio.ensure_future(
            attempt.method.handler(attempt.claim["input"], context)
        )
        if context.cancelled.is_set():
            context._task.cancel()
        try:
            await asyncio.wait([context._task])
        except asyncio.CancelledError:  # of this worker
            context._task.cancel()
            raise
        try:
            outcome = _outcomes.of_value(context._task.result())
        except BaseException as error:
            gave_in = isinstance(error, (asyncio.CancelledError, Cancelled))
            gave_in = gave_in and context.cancelled.is_set()
            outcome = _outcomes.of_error(error)
            if outcome.is_unforeseen and not gave_in and context.reason is None:
                context.log.warning("the handler raised an exception", exc_info=True)
        return _outcomes.verdict(outcome, context.reason, gave_in=gave_in)

    async def _settle(self, attempt: _Attempt, outcome: Outcome) -> None:
        """Tells the server how an attempt ended, until it answers."""
        context = attempt.context
        telling = _outcomes.Telling(context, outcome)
        attempt.is_telling = True
        while not (attempt.is_abandoned or telling.outcome.kind == "drop"):
            outcome = telling.outcome
            try:
                await self.client.call(
                    outcome.method, outcome.params(context.task_id, context.lease), retry=ONCE
                )
            except Exception as error:
                if isinstance(error, LeaseNotHeld) and error.reason in _work.LOST:
                    self._is_to_be_heard.set()
                pause = telling.failed(error)
                if pause is None:
                    return
                await asyncio.sleep(pause)
            else:
                telling.told()
                return
        context.log.info("the outcome is dropped: %s", context.reason or "given back")

    async def _renew(self, attempt: _Attempt) -> None:
        """Renews the lease of an attempt until this is cancelled."""
        context, hold = attempt.context, attempt.hold
        while hold.is_watched:
            context._news.clear()
            pause = hold.due_at - time.monotonic()
            if pause > 0:
                await sleep_unless(context._news, pause)
                continue
            sent_at, params = context._renewal()
            try:
                answer = await self.client.call(
                    "tasks.renew", params, timeout=hold.renewal_timeout, retry=ONCE
                )
            except Exception as error:
                reason = _work.not_renewed(context, error, params)
            else:
                reason = _work.renewed(context, answer, sent_at)
            if reason is not None:
                self._stop(attempt, reason)

    async def _give_back(self, claim: Claim) -> None:
        task_id, lease = claim["task"]["id"], claim["lease"]
        extra = self._extra(task_id=task_id, attempt=lease["attempt"])
        params = {"task_id": task_id, "lease": lease["token"]}
        try:
            await self.client.call(
                "tasks.release", params, timeout=_work.LAST_WORDS_SECONDS, retry=_work.LAST_WORDS
            )
        except TaskledgerError as error:
            LOG.warning("a task could not be given back: %s", error, extra=extra)
        else:
            LOG.info("a task was given back", extra=extra)

    def _extra(self, **more: Any) -> dict[str, Any]:
        return {"worker": self.name, **more}
