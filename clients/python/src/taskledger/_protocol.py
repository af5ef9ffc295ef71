"""JSON-RPC over HTTP without input or output: what both clients send, and what answers mean."""

from __future__ import annotations

import ipaddress
import json
import os
import random
import ssl
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any
from urllib.parse import urlsplit

from .errors import Busy, NotSent, ProtocolError, RateLimited, RpcError, TransportError
from .types import JsonObject

URL_DEFAULT = "http://127.0.0.1:8000"
ANSWER_BYTES_MAX = 256 * 1024 * 1024
"""A longer answer is refused; trees of 100,000 tasks are well below."""
USER_AGENT = "taskledger-python/0.1.0"

Token = str | Callable[[], str]
"""An access token, or what gives the present one (called for each request)."""

# Both are made from the server's table of methods by tests/core/pages/clients.rs. Other
# methods that change something refuse an idempotency key.
# generated: methods that keep an idempotency key
_KEYED = frozenset(
    {
        "schedules.run_now",
        "tasks.cancel",
        "tasks.copy",
        "tasks.create",
        "tasks.delete",
        "tasks.execute",
        "tasks.respond",
        "tasks.retry",
        "tasks.update",
        "workflows.create",
        "workflows.run",
    }
)
# end of methods that keep an idempotency key

# generated: methods that read
_READS = frozenset(
    {
        "audit.list",
        "events.query",
        "rpc.discover",
        "schedules.get",
        "schedules.list",
        "secrets.list",
        "system.executors",
        "system.health",
        "system.whoami",
        "tasks.children",
        "tasks.explain",
        "tasks.get",
        "tasks.history",
        "tasks.list",
        "tasks.resubscribe",
        "tasks.sibling_output",
        "tasks.subscribe",
        "tasks.tree",
        "tokens.list",
        "webhooks.deliveries",
        "webhooks.get",
        "webhooks.list",
        "webhooks.secret",
        "workers.list",
        "workers.methods",
        "workflows.diff",
        "workflows.dry_run",
        "workflows.get",
        "workflows.list",
        "workflows.progress",
        "workflows.schemas",
        "workflows.validate",
        "workflows.versions",
    }
)
# end of methods that read

# Their effect is the same the second time.
_REPEATABLE = frozenset(
    [f"tasks.{name}" for name in ("claim", "renew", "complete", "fail", "release", "suspend")]
    + [f"workflows.{name}" for name in ("save", "delete")]
    + [f"schedules.{name}" for name in ("update", "pause", "delete")]
    + [f"webhooks.{name}" for name in ("update", "delete", "enable", "disable")]
    + ["tokens.revoke"]
)
_REPEATABLE_OF = ("workers.", "system.", "secrets.")
# With these members a repetition would be refused, as the first time has made another version.
_ONCE_WITH = {"schedules.update": "expected_version"}
# With these members a repetition is known to be one.
_NAMED_BY = {"webhooks.create": "id", "tokens.create": "id", "webhooks.redeliver": "request_key"}
# Headers that show who the caller is.
_CREDENTIALS = frozenset(["authorization", "proxy-authorization", "cookie"])


@dataclass(frozen=True)
class Endpoint:
    """Where the server is. ``prefix`` stands before every path and does not end with a slash."""

    host: str
    port: int
    secure: bool
    prefix: str

    @property
    def authority(self) -> str:
        """The value of the header ``Host``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent stays on this machine."""
        if self.host == "localhost":
            return True
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            return False
        # Python knows an IPv4 address within an IPv6 one as that address from 3.13 on only.
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return (mapped or address).is_loopback

    @staticmethod
    def parse(url: str) -> Endpoint:
        """
        :raises ValueError: the URL is not one of a server.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"expected an http or https URL, got {url!r}")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("the URL must have no credentials, query or fragment")
        secure = parts.scheme == "https"
        port = parts.port if parts.port is not None else (443 if secure else 80)
        return Endpoint(parts.hostname, port, secure, parts.path.rstrip("/"))


@dataclass(frozen=True)
class RetryPolicy:
    """How long a call that got no answer, or was told to come back (-32013), is made again.

    ``budget_seconds``: no further attempt starts later than this after the first; 0 makes one
    attempt. Pauses begin with ``initial_seconds`` and double up to ``max_seconds``, each shortened
    at random by up to a half. They are never shorter than what the server asks for.
    """

    budget_seconds: float = 30.0
    initial_seconds: float = 0.1
    max_seconds: float = 5.0

    def pause(self, failures: int, retry_after: float | None = None) -> float:
        """Seconds to wait after so many failures in a row, counted from 1."""
        longest: float = min(self.max_seconds, self.initial_seconds * 2 ** min(failures - 1, 30))
        return max(longest * random.uniform(0.5, 1.0), retry_after or 0.0)


class Attempts:
    """The attempts of one call: decides whether there is another one."""

    def __init__(self, policy: RetryPolicy, *, repeatable: bool = True) -> None:
        self._policy = policy
        self._repeatable = repeatable
        self._begun = time.monotonic()
        self._failures = 0

    def pause_after(self, error: TransportError | Busy) -> float:
        """Seconds to wait before the next attempt.

        :raises TransportError: or ``Busy``: there is none.
        """
        was_not_carried_out = isinstance(error, (NotSent, RateLimited))
        if not (self._repeatable or was_not_carried_out):
            raise error
        self._failures += 1
        after = error.retry_after if isinstance(error, Busy) else None
        pause = self._policy.pause(self._failures, after)
        if time.monotonic() + pause - self._begun > self._policy.budget_seconds:
            raise error
        return pause


@dataclass(frozen=True)
class Settings:
    """What both clients are made with."""

    endpoint: Endpoint
    token: Token | None
    headers: dict[str, str]
    tls: ssl.SSLContext | None

    @staticmethod
    def make(
        url: str | None,
        token: Token | None,
        *,
        headers: dict[str, str] | None,
        ca_file: str | None,
        ssl_context: ssl.SSLContext | None,
        insecure_token: bool,
    ) -> Settings:
        """
        :raises ValueError: the URL is none, or credentials would be sent unencrypted over a network.
        """
        endpoint = Endpoint.parse(url or os.environ.get("TASKLEDGER_URL") or URL_DEFAULT)
        token = token or os.environ.get("TASKLEDGER_TOKEN") or None
        secret = "the token" if token else None
        for name in headers or {}:
            if secret is None and name.lower() in _CREDENTIALS:
                secret = f"the header {name}"
        if secret and not (endpoint.secure or endpoint.is_loopback or insecure_token):
            raise ValueError(
                f"{secret} is not sent to {endpoint.host} unencrypted: use https, or say "
                "insecure_token=True in a network that you trust"
            )
        tls = None
        if endpoint.secure:
            tls = ssl_context or ssl.create_default_context()
            ca_file = ca_file or os.environ.get("TASKLEDGER_CA_FILE")
            if ca_file and ssl_context is None:
                tls.load_verify_locations(cafile=ca_file)
        return Settings(endpoint, token, dict(headers or {}), tls)

    def request_headers(self, more: dict[str, str]) -> dict[str, str]:
        """The headers of a request.

        :raises ValueError: a name or a value does not belong in a header.
        """
        headers = {
            "host": self.endpoint.authority,
            "user-agent": USER_AGENT,
            **{name.lower(): value for name, value in self.headers.items()},
            **more,
        }
        token = self.token() if callable(self.token) else self.token
        if token:
            headers["authorization"] = f"Bearer {token.strip()}"
        for name, value in headers.items():
            if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
                raise ValueError(f"{name!r} is no name of a header")
            if not value.isascii() or any(char in value for char in "\r\n\0"):
                raise ValueError(f"the value of the header {name} must be a line of ASCII")
        return headers


def is_repeatable(method: str, params: JsonObject, idempotency_key: str | None) -> bool:
    """Whether a call that may have been carried out can be made again."""
    if params.get(_ONCE_WITH.get(method, "")) is not None:
        return False
    return (
        idempotency_key is not None
        or method in _KEYED
        or method in _READS
        or method in _REPEATABLE
        or method.startswith(_REPEATABLE_OF)
        or params.get(_NAMED_BY.get(method, "")) is not None
    )


def encode(
    method: str,
    params: JsonObject,
    *,
    idempotency_key: str | None,
    configuration: JsonObject | None = None,
) -> bytes:
    """The body of a request. Calls of methods that take a key get one if they have none. Times
    are written as RFC 3339 has them.

    :raises ValueError: something in ``params`` cannot be written as JSON (``NaN``, a lone
        surrogate), or is a time without a time zone. :raises TypeError: something in ``params``
        is of a type that JSON does not have.
    """
    request: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    if idempotency_key is None and method in _KEYED:
        idempotency_key = str(uuid.uuid4())
    if idempotency_key is not None:
        request["metadata"] = {"idempotency_key": idempotency_key}
    if configuration is not None:
        request["configuration"] = configuration
    return dumps(request, _time)


def dumps(value: Any, other: Callable[[Any], str] | None = None) -> bytes:
    """Compact JSON in UTF-8; raises as ``encode`` does. ``other`` writes what JSON does not have."""
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=other
    )
    return text.encode("utf-8")


def _time(value: Any) -> str:
    """A point in time as text."""
    expected = "expected an aware `datetime` or text as in RFC 3339"
    if not isinstance(value, date):
        raise TypeError(f"a value of type `{type(value).__name__}` cannot be written as JSON")
    if not isinstance(value, datetime):
        raise TypeError(f"`{value!r}` is a day, not a time: {expected}")
    if value.utcoffset() is None:
        raise ValueError(f"`{value!r}` has no time zone: {expected}")
    try:
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise ValueError(f"`{value!r}` is outside the years 1 to 9999 in UTC: {expected}") from None


def decode(status: int, body: bytes) -> Any:
    """The result in an answer.

    :raises RpcError: the answer is an error.
    :raises TransportError: a proxy says that the server cannot be reached.
    :raises ProtocolError: what came is no answer.
    """
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        if "result" in answer and status == 200:
            return answer["result"]
        error = answer.get("error")
        if isinstance(error, dict) and isinstance(error.get("code"), int):
            raise RpcError.of(
                error["code"], str(error.get("message", "")), error.get("data"), status
            )
    said = body[:200].decode("utf-8", "replace")
    if status in (502, 503, 504):
        raise TransportError(f"HTTP status {status}: {said}")
    raise ProtocolError(f"HTTP status {status} without a JSON-RPC answer: {said!r}", status)


def without_none(**members: Any) -> JsonObject:
    """The members that are given."""
    return {name: value for name, value in members.items() if value is not None}
