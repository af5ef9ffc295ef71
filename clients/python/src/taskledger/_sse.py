"""Server-sent events, as the HTML standard parses them. No input or output of its own."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from .errors import ProtocolError
from .types import Event

EVENT_BYTES_MAX = 64 * 1024 * 1024
"""A longer event is no event of the server, whose answers have at most 16 MiB."""
SHOWN_AFTER = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds before each look at a task whose run has ended: reads may show it after its event."""
STREAM_TIMEOUT = 45.0
"""Seconds without a byte after which a stream is taken to be dead; the server says something every
15.
"""
REMEMBERED_MAX = 4096
"""Notices that are remembered, to know those that come again after a reconnect."""


@dataclass(frozen=True)
class Message:
    """One event: its name (``message`` if it has none), its data, and the id in force behind it."""

    event: str
    data: str
    id: str | None


class Parser:
    """Takes the bytes of a stream in pieces of any size, and gives the messages in them.

    ``last_event_id`` and ``retry_seconds`` are what the stream has set so far.
    """

    def __init__(self, last_event_id: str | None = None) -> None:
        self.last_event_id = last_event_id
        self.retry_seconds: float | None = None
        self.begin()

    def begin(self) -> None:
        """Forgets what was incomplete; what comes next is the beginning of an answer."""
        self._rest = b""
        self._at_start = True
        self._after_cr = False
        self._data: list[str] = []
        self._data_bytes = 0
        self._event = ""
        self._id = self.last_event_id

    def feed(self, piece: bytes) -> Iterator[Message]:
        """The messages that are complete with ``piece``."""
        for line in self._lines(piece):
            message = self._line(line)
            if message is not None:
                yield message

    def _lines(self, piece: bytes) -> list[bytes]:
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_cr = False
        if piece:
            self._after_cr = piece.endswith(b"\r")
        text = self._rest + piece
        # Not `splitlines`, which also splits at form feeds and others.
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) + self._data_bytes > EVENT_BYTES_MAX:
            raise ProtocolError(f"an event is longer than {EVENT_BYTES_MAX} bytes", 200)
        return lines

    def _line(self, raw: bytes) -> Message | None:
        line = raw.decode("utf-8", "replace")
        if self._at_start:
            self._at_start = False
            line = line.removeprefix("\ufeff")
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._data_bytes += len(raw)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_seconds = int(value) / 1000
        return None

    def _dispatch(self) -> Message | None:
        self.last_event_id = self._id
        data, event = self._data, self._event
        self._data, self._data_bytes, self._event = [], 0, ""
        if not data:
            return None
        return Message(event or "message", "\n".join(data), self._id)


class Resumption:
    """What a reader of ``GET /events`` keeps over reconnects: where it is, and what it has seen."""

    def __init__(
        self,
        *,
        flow: str | None = None,
        task: str | None = None,
        user: str | None = None,
        types: tuple[str, ...] | None = None,
        labels: dict[str, str | None] | None = None,
        start: str | int = "now",
        last_event_id: str | None = None,
    ) -> None:
        query = {"flow": flow, "task": task, "user": user, "types": ",".join(types or ()) or None}
        self._query: dict[str, Any] = {
            name: value for name, value in query.items() if value is not None
        }
        if labels:
            self._query["label"] = [
                key if value is None else f"{key}={value}" for key, value in labels.items()
            ]
        self._start = start
        self.parser = Parser(last_event_id)
        self._seen: set[str] = set()
        self._order: deque[str] = deque()

    def request(self) -> tuple[str, dict[str, str]]:
        """Path with query, and headers, of the request that goes on where the last one ended."""
        self.parser.begin()
        query: dict[str, Any] = dict(self._query)
        headers = {"accept": "text/event-stream", "cache-control": "no-cache"}
        if self.parser.last_event_id:
            headers["last-event-id"] = self.parser.last_event_id
        else:
            query["from"] = self._start
        return "/events?" + urlencode(query, doseq=True), headers

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events in ``piece``, without those that came before."""
        for message in self.parser.feed(piece):
            try:
                data = json.loads(message.data)
            except ValueError as error:
                raise ProtocolError(f"an event is not JSON: {error}", 200) from error
            if not isinstance(data, dict):
                raise ProtocolError("an event is not an object", 200)
            if not self._is_repetition(data.get("id")):
                yield Event(message.event, data, message.id)

    def _is_repetition(self, id: Any) -> bool:
        if not isinstance(id, str):
            return False
        if id in self._seen:
            return True
        self._seen.add(id)
        self._order.append(id)
        if len(self._order) > REMEMBERED_MAX:
            self._seen.discard(self._order.popleft())
        return False


def looks(event: Event) -> tuple[float, ...]:
    """Seconds before each look at a task that an event may be about: several where a change may not
    be shown at once and no further event tells of it.
    """
    if event.final:
        return SHOWN_AFTER
    return SHOWN_AFTER[:5] if event.type in ("open", "reset") else SHOWN_AFTER[:1]
