"""The client's side of a WebSocket (RFC 6455) that carries JSON-RPC, for asyncio.

No extensions and no subprotocols. Messages are texts of JSON; others are refused.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Callable
from typing import Any

from . import _protocol
from ._http_async import AsyncPool, Connection
from ._protocol import dumps
from .errors import ProtocolError, TimedOut, TransportError
from .types import JsonObject

PATH = "/ws"
MESSAGE_BYTES_MAX = 64 * 1024 * 1024
SILENCE_SECONDS = 30.0
"""After so long without a frame the server is asked whether it is there (it asks each 25 s itself),
and after twice as long the socket counts as broken."""
LINGER_SECONDS = 0.25
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUED, _TEXT, _CLOSE, _PING, _PONG = 0, 1, 8, 9, 10


class WebSocket:
    """An open socket. One task may ``receive``, any may ``send``."""

    def __init__(self, connection: Connection) -> None:
        self._reader = connection.reader
        self._connection = connection

    @staticmethod
    async def connect(pool: AsyncPool, *, timeout: float) -> WebSocket:
        """
        :raises RpcError: the server refuses.
        :raises TransportError: no answer came within ``timeout`` seconds, or the server is busy.
        """
        key = base64.b64encode(os.urandom(16))
        headers = {
            "upgrade": "websocket",
            "connection": "Upgrade",
            "sec-websocket-key": key.decode("ascii"),
            "sec-websocket-version": "13",
        }
        status, connection = await pool.stream(PATH, headers, timeout=timeout)
        try:
            if status != 101:
                body = b"".join([piece async for piece in connection.body()])
                _protocol.decode(status, body)
                raise ProtocolError(f"HTTP status {status} to a request for a socket", status)
            accepted = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode("ascii")
            if connection.headers.get("sec-websocket-accept") != accepted:
                raise ProtocolError("the answer belongs to another request for a socket", status)
        except BaseException:
            connection.close()
            raise
        return WebSocket(connection)

    async def send(self, message: JsonObject) -> None:
        """Sends one message.

        :raises TransportError: the socket is broken.
        """
        await self._send(_TEXT, dumps(message))

    async def receive(self) -> JsonObject:
        """The next message.

        :raises TransportError: the socket is closed or broken.
        :raises ProtocolError: what came breaks the rules.
        """
        text = await self._message()
        try:
            message = json.loads(text)
        except ValueError as error:
            raise ProtocolError(f"a message is not JSON: {error}", 101) from error
        if not isinstance(message, dict):
            raise ProtocolError("a message is not an object", 101)
        return message

    async def close(self) -> None:
        """Says goodbye, and closes the connection without waiting for an answer."""
        try:
            await asyncio.wait_for(self._send(_CLOSE, struct.pack("!H", 1000)), 1)
        except (TransportError, asyncio.TimeoutError):
            pass
        finally:
            self._connection.close()

    async def _message(self) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            is_last, kind, payload = await self._next_frame()
            if kind == _PING:
                await self._send(_PONG, payload)
            elif kind == _PONG:
                pass
            elif kind == _CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else 1005
                why = payload[2:].decode("utf-8", "replace")
                await self._send(_CLOSE, payload[:2])
                raise TransportError(f"the server has closed the socket: {code} {why}".rstrip())
            elif kind == (_CONTINUED if pieces else _TEXT):
                pieces.append(payload)
                size += len(payload)
                if size > MESSAGE_BYTES_MAX:
                    raise ProtocolError(f"a message of more than {MESSAGE_BYTES_MAX} bytes", 101)
                if is_last:
                    return b"".join(pieces)
            else:
                raise ProtocolError(f"a frame of kind {kind} where none may be", 101)

    async def _next_frame(self) -> tuple[bool, int, bytes]:
        """The next frame; asks the server whether it is there if none comes."""
        is_asked = False
        while True:
            # Only the first bytes are waited for in parts: a frame that is cut off would be lost.
            try:
                head = await asyncio.wait_for(self._read(2), SILENCE_SECONDS)
            except asyncio.TimeoutError as error:
                if is_asked:
                    raise TimedOut("the server says nothing on the socket") from error
                is_asked = True
                await self._send(_PING, b"")
                continue
            rest = self._rest_of_frame(head)
            try:
                return await asyncio.wait_for(rest, SILENCE_SECONDS * 2)
            except asyncio.TimeoutError as error:
                raise TimedOut("a message broke off on the socket") from error

    async def _rest_of_frame(self, head: bytes) -> tuple[bool, int, bytes]:
        is_last, reserved, kind = bool(head[0] & 0x80), head[0] & 0x70, head[0] & 0x0F
        size = head[1] & 0x7F
        if reserved or head[1] & 0x80:
            raise ProtocolError("a frame with an extension or a mask", 101)
        if kind >= _CLOSE and (size > 125 or not is_last):
            raise ProtocolError("a control frame that is too long", 101)
        if size == 126:
            (size,) = struct.unpack("!H", await self._read(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await self._read(8))
        if size > MESSAGE_BYTES_MAX:
            raise ProtocolError(f"a message of more than {MESSAGE_BYTES_MAX} bytes", 101)
        return is_last, kind, await self._read(size)

    async def _read(self, size: int) -> bytes:
        try:
            # Takes nothing out of the buffer before all of it is there.
            return await self._reader.readexactly(size)
        except (OSError, EOFError) as error:
            raise TransportError(f"the socket broke: {error or type(error).__name__}") from error

    async def _send(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        head = bytearray([0x80 | kind])
        if size < 126:
            head.append(0x80 | size)
        elif size < 65536:
            head += struct.pack("!BH", 0x80 | 126, size)
        else:
            head += struct.pack("!BQ", 0x80 | 127, size)
        mask = os.urandom(4)
        writer = self._connection.writer
        try:
            writer.write(bytes(head) + mask + _masked(payload, mask))
            await writer.drain()
        except OSError as error:
            raise TransportError(f"the socket broke: {error or type(error).__name__}") from error


def _masked(payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


async def work(
    socket: WebSocket,
    params: JsonObject,
    told: asyncio.Queue[JsonObject],
    stopping: asyncio.Event,
    to_be_heard: asyncio.Event,
    subscribed: Callable[[], None],
) -> None:
    """Subscribes to work, calls ``subscribed``, and puts what is told of the work in ``told`` until
    the subscription has ended.

    When ``stopping`` is set it unsubscribes; what came before the answer to that is still told.
    When ``to_be_heard`` is set it makes a call, whose answer is of no interest, and clears it.

    :raises RpcError: the server refuses the subscription.
    :raises TransportError: the socket is closed or broken.
    """
    await socket.send({"jsonrpc": "2.0", "id": 1, "method": "work", "params": params})
    ending: asyncio.Task[None] | None = None
    hearing = asyncio.create_task(_be_heard(socket, to_be_heard))
    try:
        while True:
            message = await socket.receive()
            if message.get("id") == 1:
                subscription = _result(message)["subscription"]
                subscribed()
                ending = asyncio.create_task(_unsubscribe(socket, subscription, stopping))
            elif message.get("id") == 2:
                await _linger(socket, told)
                return
            elif message.get("method") == "work":
                told.put_nowait(message["params"])
            elif message.get("method") == "end":
                raise TransportError("the server has ended the subscription")
    finally:
        hearing.cancel()
        if ending is not None:
            ending.cancel()


async def _linger(socket: WebSocket, told: asyncio.Queue[JsonObject]) -> None:
    """Takes the claims that were on their way and come behind the answer to ``unsubscribe``."""
    with contextlib.suppress(asyncio.TimeoutError):
        while True:
            message = await asyncio.wait_for(socket.receive(), LINGER_SECONDS)
            if message.get("method") == "work":
                told.put_nowait(message["params"])


async def _be_heard(socket: WebSocket, to_be_heard: asyncio.Event) -> None:
    with contextlib.suppress(TransportError):  # which `receive` raises, too
        while True:
            await to_be_heard.wait()
            to_be_heard.clear()
            await socket.send({"jsonrpc": "2.0", "id": 3, "method": "system.health", "params": {}})


async def _unsubscribe(socket: WebSocket, subscription: Any, stopping: asyncio.Event) -> None:
    await stopping.wait()
    params = {"subscription": subscription}
    await socket.send({"jsonrpc": "2.0", "id": 2, "method": "unsubscribe", "params": params})


def _result(message: JsonObject) -> Any:
    return _protocol.decode(200, dumps(message))
