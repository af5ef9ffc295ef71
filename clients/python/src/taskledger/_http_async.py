"""HTTP/1.1 for asyncio: requests and streamed answers over kept connections.

Only what a client of the server needs: no redirects, no compression, no proxies.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Literal

from ._protocol import ANSWER_BYTES_MAX, Settings
from .errors import NotSent, ProtocolError, TimedOut, TransportError

PIECE_BYTES = 64 * 1024
HEAD_BYTES_MAX = 64 * 1024
_WITHOUT_BODY = (204, 304)


class Connection:
    """One connection, which carries one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.can_be_kept = False
        self.headers: dict[str, str] = {}
        """Of the last answer, with names in lower case."""

    @property
    def is_quiet(self) -> bool:
        """Whether the other side has neither closed a kept connection nor said anything on it."""
        buffered = getattr(self.reader, "_buffer", b"")
        return not (self.reader.at_eof() or self.writer.is_closing() or buffered)

    async def send(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> tuple[int, dict[str, str]]:
        """Sends a request; status and headers (names in lower case) of its answer.

        :raises TransportError: no answer came.
        """
        self.can_be_kept = False
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {headers[name]}" for name in headers)]
        if body:
            lines.append(f"content-length: {len(body)}")
        with _breaking():
            self.writer.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
            await self.writer.drain()
            status, answered = await self._head()
            while 100 <= status < 200 and status != 101:
                status, answered = await self._head()
            self._status, self.headers = status, answered
        return status, answered

    async def body(self) -> AsyncIterator[bytes]:
        """The pieces of the answer's body, as they come.

        :raises TransportError: it breaks off.
        """
        headers = self.headers
        with _breaking():
            if self._status in _WITHOUT_BODY:
                pass
            elif "transfer-encoding" in headers:
                if headers["transfer-encoding"].lower() != "chunked":
                    raise ProtocolError("an unknown transfer-encoding", self._status)
                while size := await self._chunk_size():
                    while size:
                        piece = await self._some(size)
                        size -= len(piece)
                        yield piece
                    if await self.reader.readexactly(2) != b"\r\n":
                        raise ProtocolError("a chunk does not end where it should", self._status)
                while (await self._line()).strip():  # trailers
                    pass
            elif "content-length" in headers:
                size = _decimal(headers["content-length"], self._status)
                while size:
                    piece = await self._some(size)
                    size -= len(piece)
                    yield piece
            else:
                while piece := await self.reader.read(PIECE_BYTES):
                    yield piece
                return  # the end of the body was the end of the connection
        self.can_be_kept = "close" not in headers.get("connection", "").lower()

    def half_close(self) -> None:
        """Says that nothing more will be sent; what the server has begun to answer still comes."""
        sock: socket.socket | None = self.writer.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):
                # Of the plain socket, so that an answer over TLS can still be read.
                sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Closes the connection without waiting."""
        with contextlib.suppress(Exception):
            transport = self.writer.transport
            transport.abort()

    async def _head(self) -> tuple[int, dict[str, str]]:
        text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = text[:-4].split("\r\n")
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not code.isdigit():
            raise ProtocolError(f"no HTTP answer: {first[:80]!r}", 0)
        headers: dict[str, str] = {"connection": "close"} if version == "HTTP/1.0" else {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise ProtocolError(f"no header: {line[:80]!r}", int(code))
            headers[name.lower()] = value.strip()
        return int(code), headers

    async def _line(self) -> bytes:
        return await self.reader.readuntil(b"\r\n")

    async def _chunk_size(self) -> int:
        text = (await self._line()).split(b";", 1)[0].strip().decode("ascii", "replace")
        if not text or len(text) > 15 or any(c not in "0123456789abcdefABCDEF" for c in text):
            raise ProtocolError(f"no size of a chunk: {text[:80]!r}", self._status)
        return int(text, 16)

    async def _some(self, size: int) -> bytes:
        piece = await self.reader.read(min(size, PIECE_BYTES))
        if not piece:
            raise EOFError("the answer broke off")
        return piece


class AsyncInterrupt:
    """Ends a request from another task by closing the sending half of its connection."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self.is_set = False

    def attach(self, connection: Connection | None) -> None:
        """From now on ``connection`` carries the request; ``None``: nothing does."""
        self._connection = connection
        if connection is not None and self.is_set:
            connection.half_close()

    def half_close(self) -> None:
        """A server that has begun to answer still finishes, another one gives the request up."""
        self.is_set = True
        if self._connection is not None:
            self._connection.half_close()


class AsyncPool:
    """Connections to one server, kept open between requests. Belongs to one event loop.

    At most ``connections_max`` requests are under way at once; more wait for their turn. Streams
    and requests that say ``apart`` (long polls) are not counted.
    """

    def __init__(self, settings: Settings, *, connections_max: int, connect_timeout: float) -> None:
        self._settings = settings
        self._connect_timeout = connect_timeout
        self._turns = asyncio.Semaphore(connections_max)
        self._idle_max = connections_max
        self._idle: list[Connection] = []
        self._closed = False

    async def post(
        self,
        body: bytes,
        *,
        timeout: float,
        repeatable: bool = True,
        apart: bool = False,
        interrupt: AsyncInterrupt | None = None,
    ) -> tuple[int, bytes]:
        """Status and body of the answer, which must come within ``timeout`` seconds after its turn.

        A kept connection that turns out to be closed is replaced, and the request is sent again;
        one that is not ``repeatable`` is sent on a new connection from the start.

        :raises TransportError: no answer came.
        """
        headers = self._settings.request_headers(
            {"content-type": "application/json", "accept": "application/json"}
        )
        if apart:
            return await self._post(body, headers, timeout, repeatable, interrupt)
        async with self._turns:
            return await self._post(body, headers, timeout, repeatable, interrupt)

    async def _post(
        self,
        body: bytes,
        headers: dict[str, str],
        timeout: float,
        repeatable: bool,
        interrupt: AsyncInterrupt | None,
    ) -> tuple[int, bytes]:
        try:
            return await asyncio.wait_for(self._try(body, headers, repeatable, interrupt), timeout)
        except asyncio.TimeoutError as error:
            raise TimedOut(f"no answer within {timeout:g} s") from error

    async def _try(
        self,
        body: bytes,
        headers: dict[str, str],
        repeatable: bool,
        interrupt: AsyncInterrupt | None,
    ) -> tuple[int, bytes]:
        while True:
            connection, is_kept = await self._take(fresh=not repeatable)
            if interrupt is not None:
                interrupt.attach(connection)
            answered = False
            try:
                status, _ = await connection.send(
                    "POST", self._settings.endpoint.prefix + "/", headers, body
                )
                answered = True
                pieces, size = [], 0
                async for piece in connection.body():
                    pieces.append(piece)
                    size += len(piece)
                    if size > ANSWER_BYTES_MAX:
                        raise ProtocolError(
                            f"an answer of more than {ANSWER_BYTES_MAX} bytes", status
                        )
                if not (interrupt is not None and interrupt.is_set):
                    self._give_back(connection)
                return status, b"".join(pieces)
            except TransportError:
                if is_kept and not answered and not (interrupt is not None and interrupt.is_set):
                    continue
                raise
            finally:
                if interrupt is not None:
                    interrupt.attach(None)
                if connection not in self._idle:
                    connection.close()

    async def stream(
        self, path: str, headers: dict[str, str], *, timeout: float
    ) -> tuple[int, Connection]:
        """Status of the answer to a GET, on a connection of its own, whose ``body`` the caller
        reads.

        :raises TransportError: no answer came within ``timeout`` seconds.
        """
        connection = await self._connect()
        try:
            sent = connection.send(
                "GET",
                self._settings.endpoint.prefix + path,
                self._settings.request_headers(headers),
            )
            status, _ = await asyncio.wait_for(sent, timeout)
        except BaseException as error:
            connection.close()
            if isinstance(error, asyncio.TimeoutError):
                raise TimedOut(f"no answer within {timeout:g} s") from error
            raise
        return status, connection

    async def close(self) -> None:
        """Closes the connections that are idle; those in use close when they are given back."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        await asyncio.sleep(0)  # the transports close in the next turn of the loop

    async def _take(self, *, fresh: bool) -> tuple[Connection, bool]:
        if self._closed:
            raise NotSent("the client is closed")
        while self._idle and not fresh:
            connection = self._idle.pop()
            if connection.is_quiet:
                return connection, True
            connection.close()
        return await self._connect(), False

    def _give_back(self, connection: Connection) -> None:
        if connection.can_be_kept and not self._closed and len(self._idle) < self._idle_max:
            self._idle.append(connection)

    async def _connect(self) -> Connection:
        endpoint, tls = self._settings.endpoint, self._settings.tls
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(
                    endpoint.host, endpoint.port, ssl=tls, limit=HEAD_BYTES_MAX
                ),
                self._connect_timeout,
            )
        except (OSError, asyncio.TimeoutError) as error:
            why = str(error) or type(error).__name__
            raise NotSent(f"cannot connect to {endpoint.authority}: {why}") from error
        return Connection(reader, writer)


class _breaking:
    """Turns what a broken connection raises into ``TransportError``."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> Literal[False]:
        if isinstance(error, asyncio.LimitOverrunError):
            raise ProtocolError("a line or the headers are too long", 0) from error
        # `IncompleteReadError` is an `EOFError`. What `wait_for` raises is raised outside of this.
        if isinstance(error, (OSError, EOFError)):
            raise TransportError(
                f"the connection broke: {error or type(error).__name__}"
            ) from error
        return False


def _decimal(text: str, status: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ProtocolError(f"no length: {text[:80]!r}", status)
    return int(text)
