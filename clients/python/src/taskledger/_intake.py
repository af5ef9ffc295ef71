"""How ``AsyncWorker`` declares methods and gets claims: by long polls, or over a socket."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING

from . import _websocket
from ._http_async import AsyncInterrupt
from ._work import LOG, ONCE, Options, Welcome
from .types import Claim, JsonObject

if TYPE_CHECKING:
    from .async_worker import AsyncWorker

WINDOW_MAX = 1000
"""Unfinished claims that one subscription may have."""
SOUND_SECONDS = 10.0
"""A socket that has lived so long was no failure: the next one is opened at once."""


class Slots:
    """Room for handlers: what polls may ask for, and what handlers take."""

    def __init__(self, options: Options, stopping: asyncio.Event) -> None:
        self._options = options
        self._stopping = stopping
        self._condition = asyncio.Condition()
        self._free = options.concurrency
        self._waiting = 0

    async def reserve(self) -> int:
        """Waits for free slots and takes a share of them; 0: the worker stops."""
        async with self._condition:
            self._waiting += 1
            try:
                await self._condition.wait_for(lambda: self._free > 0 or self._stopping.is_set())
                if self._stopping.is_set():
                    return 0
                count = self._options.share(self._free, self._waiting)
                self._free -= count
                return count
            finally:
                self._waiting -= 1

    async def take(self, unless: asyncio.Event) -> bool:
        """Waits for a slot and takes it; not if the worker stops, or ``unless`` is set, before."""
        if self._free > 0:
            self._free -= 1
            return True
        waiting = asyncio.create_task(self._take())
        other = asyncio.create_task(unless.wait())
        try:
            await asyncio.wait([waiting, other], return_when=asyncio.FIRST_COMPLETED)
            return waiting.done() and waiting.result()
        finally:
            waiting.cancel()
            other.cancel()

    async def _take(self) -> bool:
        async with self._condition:
            await self._condition.wait_for(lambda: self._free > 0 or self._stopping.is_set())
            if self._stopping.is_set():
                return False
            self._free -= 1
            return True

    async def give(self, count: int) -> None:
        """Gives slots back."""
        if count:
            async with self._condition:
                self._free += count
                self._condition.notify_all()

    async def wake(self) -> None:
        """Lets those who wait see that the worker stops."""
        async with self._condition:
            self._condition.notify_all()


async def declare(worker: AsyncWorker, declarations: list[JsonObject]) -> None:
    """Declares methods, however long the server is away, and tells the worker how that ended."""
    welcome = Welcome(threading.Event())
    try:
        for declaration in declarations:
            while True:
                try:
                    await worker.client.call("workers.declare", declaration, retry=ONCE)
                    break
                except Exception as error:
                    pause = welcome.failed(error)
                    LOG.warning("cannot declare a method: %s", error, extra=worker._extra())
                await asyncio.sleep(pause)
            welcome.lasted()
        worker._inbox.put_nowait(("declared", None))
    except Exception as error:
        worker._inbox.put_nowait(("failed", error))


async def poll(worker: AsyncWorker, interrupt: AsyncInterrupt) -> None:
    """Asks for claims until the worker stops, or is drained.

    :raises RpcError: the server refuses.
    """
    options, slots, stopping = worker._options, worker._slots, worker._stopping
    welcome = Welcome(worker._taken)
    while count := await slots.reserve():
        try:
            answer = await worker.client.call(
                "tasks.claim",
                options.claim_params(worker._methods, count),
                timeout=options.claim_timeout,
                retry=ONCE,
                interrupt=interrupt,
            )
        except Exception as error:
            await slots.give(count)
            if stopping.is_set():
                return
            await _pause(worker, welcome.failed(error), error)
            continue
        welcome.answered()
        welcome.lasted()
        claims: list[Claim] = answer.get("claims") or []
        await slots.give(count - len(claims))
        for claim in claims:
            await worker._begin(claim, has_slot=True)
        if answer.get("draining"):
            worker._inbox.put_nowait(("drain", None))
            return


async def listen(worker: AsyncWorker) -> None:
    """Takes claims from a socket, and from a new one when it breaks, until the worker stops.

    After a break the window of the new socket does not count what is held from the old one. So
    there may be more claims than slots for a while; they wait for one, and their leases are
    renewed.

    :raises RpcError: the server refuses.
    """
    options = worker._options
    params: JsonObject = {
        "methods": [*worker._methods],
        "worker": options.name,
        "window": min(options.concurrency, WINDOW_MAX),
        "lease_seconds": options.lease_seconds,
    }
    welcome = Welcome(worker._taken)
    while not worker._stopping.is_set():
        begun = time.monotonic()
        try:
            await _listen_once(worker, params, welcome)
        except Exception as error:
            if worker._stopping.is_set():
                return
            if time.monotonic() - begun > SOUND_SECONDS:
                welcome.lasted()
            await _pause(worker, welcome.failed(error), error)


async def _listen_once(worker: AsyncWorker, params: JsonObject, welcome: Welcome) -> None:
    told: asyncio.Queue[JsonObject] = asyncio.Queue()
    teller = asyncio.create_task(_tell(worker, told))
    try:
        socket = await _websocket.WebSocket.connect(worker.client._pool, timeout=10)
        try:
            await _websocket.work(
                socket,
                params,
                told,
                worker._stopping,
                worker._is_to_be_heard,
                welcome.answered,
            )
        finally:
            await asyncio.shield(socket.close())
    finally:
        await told.join()
        teller.cancel()


async def _tell(worker: AsyncWorker, told: asyncio.Queue[JsonObject]) -> None:
    while True:
        params = await told.get()
        try:
            if "claim" in params:
                await worker._begin(params["claim"], has_slot=False)
            elif "cancel" in params:
                cancel = params["cancel"]
                worker._taken_back(cancel["task_id"], cancel["lease"], cancel["reason"])
            elif params.get("draining"):
                worker._inbox.put_nowait(("drain", None))
        except Exception:
            LOG.exception("a message could not be read", extra=worker._extra())
        finally:
            told.task_done()


async def _pause(worker: AsyncWorker, seconds: float, error: Exception) -> None:
    LOG.warning("cannot ask for work: %s", error, extra=worker._extra())
    await sleep_unless(worker._stopping, seconds)


async def sleep_unless(event: asyncio.Event, seconds: float) -> None:
    """Sleeps, but not longer than until ``event`` is set."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
