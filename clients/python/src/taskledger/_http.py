"""HTTP/1.1 for threads: a pool of kept connections over ``http.client``."""

from __future__ import annotations

import contextlib
import http.client
import selectors
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

from ._protocol import ANSWER_BYTES_MAX, Settings
from .errors import NotSent, ProtocolError, TimedOut, TransportError

PIECE_BYTES = 64 * 1024
_BROKEN = (OSError, http.client.HTTPException)


class Interrupt:
    """Ends a request from another thread.

    ``half_close`` says that nothing more will be sent: a server that has begun to answer still
    finishes, another one gives the request up. ``kill`` ends it at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._how: int | None = None

    def attach(self, sock: socket.socket | None) -> None:
        """From now on ``sock`` carries the request; ``None``: nothing does."""
        with self._lock:
            self._socket = sock
            if sock is not None and self._how is not None:
                _shut_down(sock, self._how)

    @property
    def is_set(self) -> bool:
        """Whether the request was ended."""
        return self._how is not None

    def half_close(self) -> None:
        """See above."""
        self._end(socket.SHUT_WR)

    def kill(self) -> None:
        """See above."""
        self._end(socket.SHUT_RDWR)

    def _end(self, how: int) -> None:
        with self._lock:
            self._how = how
            if self._socket is not None:
                _shut_down(self._socket, how)


def _shut_down(sock: socket.socket, how: int) -> None:
    # Of the plain socket: `SSLSocket.shutdown` would forget the session, and with it what is read.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, how)


class Pool:
    """Connections to one server, kept open between requests. Safe for use by several threads."""

    def __init__(self, settings: Settings, *, idle_max: int, connect_timeout: float) -> None:
        self._settings = settings
        self._idle_max = idle_max
        self._connect_timeout = connect_timeout
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False

    def post(
        self,
        body: bytes,
        *,
        timeout: float,
        repeatable: bool = True,
        interrupt: Interrupt | None = None,
    ) -> tuple[int, bytes]:
        """Status and body of the answer. ``timeout``: seconds without a byte from the server.

        A kept connection that turns out to be closed is replaced, and the request is sent again;
        one that is not ``repeatable`` is sent on a new connection from the start.

        :raises TransportError: no answer came.
        """
        headers = self._settings.request_headers(
            {"content-type": "application/json", "accept": "application/json"}
        )
        while True:
            connection, is_kept = self._take() if repeatable else (self._connect(), False)
            try:
                return self._exchange(connection, body, headers, timeout, interrupt)
            except TimeoutError as error:
                connection.close()
                raise TimedOut(f"no answer within {timeout:g} s") from error
            except _BROKEN as error:
                connection.close()
                never_answered = isinstance(
                    error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)
                )
                if is_kept and never_answered and not (interrupt and interrupt.is_set):
                    continue
                raise _lost(error) from error
            except BaseException:
                connection.close()
                raise
            finally:
                if interrupt is not None:
                    interrupt.attach(None)

    def stream(
        self, path: str, headers: dict[str, str], *, timeout: float, interrupt: Interrupt
    ) -> tuple[int, Body]:
        """Status and body of the answer to a GET, on a connection of its own.

        :raises TransportError: no answer came.
        """
        connection = self._connect()
        try:
            assert connection.sock is not None, "it is connected"
            interrupt.attach(connection.sock)
            connection.sock.settimeout(timeout)
            connection.request(
                "GET",
                self._settings.endpoint.prefix + path,
                headers=self._settings.request_headers(headers),
            )
            response = connection.getresponse()
        except BaseException as error:
            connection.close()
            if isinstance(error, _BROKEN):
                raise _lost(error) from error
            raise
        return response.status, Body(connection, response)

    def close(self) -> None:
        """Closes the connections that are idle; those in use close when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        body: bytes,
        headers: dict[str, str],
        timeout: float,
        interrupt: Interrupt | None,
    ) -> tuple[int, bytes]:
        assert connection.sock is not None, "it is connected"
        connection.sock.settimeout(timeout)
        if interrupt is not None:
            interrupt.attach(connection.sock)
        connection.request("POST", self._settings.endpoint.prefix + "/", body, headers)
        response = connection.getresponse()
        answer = response.read(ANSWER_BYTES_MAX + 1)
        if len(answer) > ANSWER_BYTES_MAX:
            raise ProtocolError(f"an answer of more than {ANSWER_BYTES_MAX} bytes", response.status)
        if not response.isclosed():
            response.read()
        is_done = response.will_close or (interrupt is not None and interrupt.is_set)
        if is_done or not self._give_back(connection):
            connection.close()
        return response.status, answer

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        while True:
            with self._lock:
                if self._closed:
                    raise NotSent("the client is closed")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect(), False
            if _is_quiet(connection):
                return connection, True
            connection.close()

    def _give_back(self, connection: http.client.HTTPConnection) -> bool:
        with self._lock:
            if self._closed or len(self._idle) >= self._idle_max:
                return False
            self._idle.append(connection)
            return True

    def _connect(self) -> http.client.HTTPConnection:
        endpoint, tls = self._settings.endpoint, self._settings.tls
        options: dict[str, Any] = {"timeout": self._connect_timeout}
        connection: http.client.HTTPConnection
        if tls is not None:
            connection = http.client.HTTPSConnection(
                endpoint.host, endpoint.port, context=tls, **options
            )
        else:
            connection = http.client.HTTPConnection(endpoint.host, endpoint.port, **options)
        try:
            connection.connect()
        except (OSError, ssl.SSLError) as error:
            connection.close()
            raise NotSent(f"cannot connect to {endpoint.authority}: {error}") from error
        return connection


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Whether the other side has neither closed a kept connection nor said anything on it."""
    if connection.sock is None:
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return not selector.select(0)


class Body:
    """The body of a streamed answer; whoever has it closes it."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        """The pieces, as they come.

        :raises TransportError: the answer breaks off.
        """
        try:
            while piece := self._response.read1(PIECE_BYTES):
                yield piece
        except _BROKEN as error:
            raise _lost(error) from error
        except ValueError as error:  # `http.client` raises it when the socket is closed under it
            raise TransportError(f"the connection was closed: {error}") from error

    def close(self) -> None:
        """Closes the connection."""
        self._response.close()
        self._connection.close()


def _lost(error: Exception) -> TransportError:
    if isinstance(error, TimeoutError):
        return TimedOut("nothing came from the server in time")
    return TransportError(f"the connection broke: {error or type(error).__name__}")
