"""The client for asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

from . import _protocol
from ._calls_async import AsyncCalls
from ._http_async import AsyncInterrupt, AsyncPool
from ._protocol import Attempts, RetryPolicy, Settings, Token
from ._sse import STREAM_TIMEOUT, Resumption, looks
from .errors import Busy, ProtocolError, TimedOut, TransportError
from .types import Event, JsonObject, JsonObjects, RunResult, Started, run_result

_OPEN = "open"


class AsyncEventStream:
    """An endless iterator of events that reconnects by itself; see ``AsyncClient.events``."""

    def __init__(
        self,
        pool: AsyncPool,
        resumption: Resumption,
        policy: RetryPolicy,
        *,
        reconnect: bool,
        tell_openings: bool = False,
    ) -> None:
        self._pool = pool
        self._resumption = resumption
        self._policy = policy
        self._reconnect = reconnect
        self._tell_openings = tell_openings
        self._events = self._run()

    @property
    def last_event_id(self) -> str | None:
        """The place behind the last event; it also moves while only events of others happen."""
        return self._resumption.parser.last_event_id

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        return await self._events.__anext__()

    async def __aenter__(self) -> AsyncEventStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the stream, and closes its connection."""
        await self._events.aclose()  # type: ignore[attr-defined]

    async def _run(self) -> AsyncIterator[Event]:
        failures = 0
        while True:
            wait, failure = None, None
            events = self._once()
            try:
                async for event in events:
                    failures = 0
                    yield event
            except (Busy, TransportError) as error:
                failure = error
                wait = error.retry_after if isinstance(error, Busy) else None
            finally:
                await events.aclose()  # type: ignore[attr-defined]
            if not self._reconnect:
                if failure is not None:
                    raise failure
                return
            failures += 1
            await asyncio.sleep(self._policy.pause(failures, wait))

    async def _once(self) -> AsyncIterator[Event]:
        path, headers = self._resumption.request()
        status, connection = await self._pool.stream(path, headers, timeout=STREAM_TIMEOUT)
        pieces = connection.body()
        try:
            if status != 200:
                _protocol.decode(status, b"".join([piece async for piece in pieces]))
                raise ProtocolError(f"HTTP status {status} to a request for events", status)
            if self._tell_openings:
                yield Event(_OPEN, {}, self.last_event_id)
            while True:
                try:
                    piece = await asyncio.wait_for(anext(pieces), STREAM_TIMEOUT)
                except StopAsyncIteration:
                    return
                except asyncio.TimeoutError as error:
                    raise TimedOut("nothing came from the server in time") from error
                for event in self._resumption.feed(piece):
                    yield event
        finally:
            connection.close()


class AsyncClient(AsyncCalls):
    """Calls a taskledger server. Belongs to the event loop in which it is first used.

    ``url`` is where the server is (``TASKLEDGER_URL``, else ``http://127.0.0.1:8000``), ``token``
    an access token or a function that returns the present one (``TASKLEDGER_TOKEN``). A token is
    sent over ``https`` and to this machine only, unless ``insecure_token``. ``timeout`` is the
    seconds for one attempt of a call, ``connect_timeout`` those for opening a connection.
    ``ca_file`` (``TASKLEDGER_CA_FILE``) adds certificate authorities; ``headers`` go with every
    request. At most ``connections_max`` calls are under way at once, apart from streams and
    claims.

    Calls that got no answer, or were told to come back (``Busy``), are made again as ``retry``
    says; those that change tasks carry an idempotency key, so that they happen once.

    Every call raises ``RpcError`` (by code: ``TaskNotFound``, ``InvalidParams`` ..) and
    ``TransportError``. Close the client, or use it as an asynchronous context manager.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: Token | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 5.0,
        retry: RetryPolicy | None = None,
        headers: dict[str, str] | None = None,
        ca_file: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        insecure_token: bool = False,
        connections_max: int = 64,
    ) -> None:
        settings = Settings.make(
            url,
            token,
            headers=headers,
            ca_file=ca_file,
            ssl_context=ssl_context,
            insecure_token=insecure_token,
        )
        self._timeout = timeout
        self._retry = retry or RetryPolicy()
        self._pool = AsyncPool(
            settings, connections_max=connections_max, connect_timeout=connect_timeout
        )

    async def close(self) -> None:
        """Closes the connections that are kept open."""
        await self._pool.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        idempotency_key: str | None = None,
        configuration: JsonObject | None = None,
        timeout: float | None = None,
        retry: RetryPolicy | None = None,
        interrupt: AsyncInterrupt | None = None,
    ) -> Any:
        """Calls any method and returns its result.

        The same ``idempotency_key`` (up to 255 characters) with the same ``params`` within 24 hours
        gets the first answer. The methods of tasks that change something take one, and get a random
        one if none is given, which covers the repetitions that this method makes itself; other
        methods refuse one. Calls that are not known to be repeatable (``tokens.create`` without an
        ``id``) are made again only if they have certainly not been carried out. ``timeout`` and
        ``retry`` replace those of the client; ``interrupt`` lets another task end the call.
        """
        params = params or {}
        body = _protocol.encode(
            method, params, idempotency_key=idempotency_key, configuration=configuration
        )
        repeatable = _protocol.is_repeatable(method, params, idempotency_key)
        attempts = Attempts(retry or self._retry, repeatable=repeatable)
        while True:
            try:
                status, answer = await self._pool.post(
                    body,
                    timeout=timeout or self._timeout,
                    repeatable=repeatable,
                    apart=method == "tasks.claim",
                    interrupt=interrupt,
                )
                return _protocol.decode(status, answer)
            except (TransportError, Busy) as error:
                if interrupt is not None and interrupt.is_set:
                    raise
                pause = attempts.pause_after(error)
            await asyncio.sleep(pause)

    def events(
        self,
        *,
        flow: str | None = None,
        task: str | None = None,
        user: str | None = None,
        types: Iterable[str] | None = None,
        labels: dict[str, str | None] | None = None,
        start: str | int = "now",
        last_event_id: str | None = None,
        reconnect: bool = True,
    ) -> AsyncEventStream:
        """What happens, as it happens: an iterator of ``Event`` that goes on after disconnects.

        Only events of one ``flow`` (the id of its root), ``task``, or ``user``, of these
        ``types``, and of tasks with these ``labels`` (``None`` for any value). ``start`` is
        ``now``, ``beginning`` or a position of the history; ``last_event_id`` goes on behind an
        event and wins over ``start``. An event of type ``reset`` says that something is missing.
        With ``reconnect=False`` the iterator ends with the first connection. ::

            async with client.events(flow=root_id) as events:
                async for event in events:
                    if event.final:
                        break
        """
        resumption = Resumption(
            flow=flow,
            task=task,
            user=user,
            types=None if types is None else tuple(types),
            labels=labels,
            start=start,
            last_event_id=last_event_id,
        )
        return AsyncEventStream(self._pool, resumption, self._retry, reconnect=reconnect)

    async def execute_and_wait(
        self,
        tasks: JsonObjects | None = None,
        *,
        task_id: str | None = None,
        timeout: float | None = None,
        allow_unknown_executors: bool | None = None,
        executor_wait_seconds: float | None = None,
        idempotency_key: str | None = None,
    ) -> RunResult:
        """Starts a run as ``execute`` does, and waits until it has ended, well or not.

        :raises TimedOut: it has not ended after ``timeout`` seconds; it goes on.
        """
        started = await self.execute(
            tasks,
            task_id=task_id,
            allow_unknown_executors=allow_unknown_executors,
            executor_wait_seconds=executor_wait_seconds,
            idempotency_key=idempotency_key,
        )
        return await self.wait(started, timeout=timeout)

    async def wait(self, run: Started | str, *, timeout: float | None = None) -> RunResult:
        """Waits until a run has ended: the one in an answer of ``execute`` or ``retry``; or, with
        the id of a task, the last one that was asked for with this task.

        :raises TimedOut: it has not ended after ``timeout`` seconds; it goes on.
        """
        started: Started = (
            {"root_task_id": (await self.get(run))["root_task_id"], "task_id": run}
            if isinstance(run, str)
            else run
        )
        try:
            return await asyncio.wait_for(self._wait(started), timeout)
        except asyncio.TimeoutError as error:
            raise TimedOut(f"the run has not ended after {timeout} s") from error

    async def _wait(self, started: Started) -> RunResult:
        task_id = started.get("task_id") or started["root_task_id"]
        # Many runs are over by now, and need no stream.
        result = run_result(started, await self.get(task_id))
        if result is not None:
            return result
        stream = AsyncEventStream(
            self._pool,
            Resumption(flow=started["root_task_id"], types=("task_status_update",)),
            self._retry,
            reconnect=True,
            tell_openings=True,
        )
        async with stream:
            async for event in stream:
                if event.type in (_OPEN, "reset") or event.final or event.task_id == task_id:
                    for pause in looks(event):
                        await asyncio.sleep(pause)
                        result = run_result(started, await self.get(task_id))
                        if result is not None:
                            return result
        raise AssertionError("the stream is endless")
