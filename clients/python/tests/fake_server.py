"""A server for edge cases: it answers as a test says, and keeps leases as the real one does."""

from __future__ import annotations

import base64
import hashlib
import json
import select
import socket
import threading
import time
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Drop(Exception):
    """Closes the connection without an answer."""


class Refused(Exception):
    """Answers with an error of JSON-RPC."""

    def __init__(self, code: int, message: str = "refused", status: int = 200, **data: Any) -> None:
        self.code, self.message, self.status, self.data = code, message, status, data


class Foreign(Exception):
    """Answers as a proxy does, without JSON-RPC."""

    def __init__(self, status: int) -> None:
        self.status = status


def busy(retry_after_ms: int = 10, **data: Any) -> Refused:
    return Refused(-32013, "Too busy, retry later", retry_after_ms=retry_after_ms, **data)


REVOKED = Refused(-32004, "Unauthorized", 401)


class FakeServer:
    """``calls`` holds every request; ``methods`` what answers each method, from params to a result.

    ``faults`` holds, for a method, what happens to its next calls instead: exceptions to raise,
    before (or with ``after`` behind) carrying them out. While ``revoked`` nobody's token holds;
    with ``replaced_after``, until so many requests were refused.
    """

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.here = threading.local()
        self.calls: list[dict[str, Any]] = []
        self.connections = 0
        self.requests: list[dict[str, str]] = []
        self.faults: dict[str, list[tuple[str, Exception]]] = {}
        self.streams: list[Callable[[Stream], None]] = []
        self.opened: list[tuple[dict[str, list[str]], dict[str, str]]] = []
        self.answered: dict[str, Any] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.draining = False
        self.revoked = False
        self.replaced_after: int | None = None
        self.late: str | None = None
        self.is_unheard = False
        self.is_closing = False
        self.methods: dict[str, Callable[[dict[str, Any]], Any]] = {
            "tasks.claim": self._claim,
            "tasks.renew": self._renew,
            "tasks.complete": self._complete,
            "tasks.fail": self._fail,
            "tasks.release": self._release,
            "tasks.suspend": self._suspend,
            "tasks.sibling_output": self._sibling,
            "workers.declare": lambda params: {**params, "declared": True},
            "system.health": lambda params: {"status": "ok"},
        }
        fake = self

        class Handler(_Handler):
            server_of_test = fake

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 1024

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a connection that broke, as they do here

        self.http = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        with self.lock:
            self.is_closing = True
            self.lock.notify_all()
        self.http.shutdown()
        self.http.server_close()

    def fault(self, method: str, *errors: Exception, after: bool = False) -> None:
        when = "after" if after else "before"
        self.faults.setdefault(method, []).extend((when, error) for error in errors)

    def refuses(self) -> bool:
        """Whether the token of a request does not hold."""
        with self.lock:
            if not self.revoked:
                return False
            if self.replaced_after is not None:
                self.replaced_after -= 1
                self.revoked = self.replaced_after > 0
            return True

    def names(self) -> list[str]:
        with self.lock:
            return [call["method"] for call in self.calls]

    def params_of(self, method: str) -> list[dict[str, Any]]:
        with self.lock:
            return [call["params"] for call in self.calls if call["method"] == method]

    def until(self, condition: Callable[[], bool], timeout: float = 90) -> None:
        ends_at = time.monotonic() + timeout
        with self.lock:
            while not condition():
                left = ends_at - time.monotonic()
                assert left > 0, f"not within {timeout} s; calls: {self.calls[-5:]}"
                self.lock.wait(min(left, 0.05))

    # Work.

    def offer(self, method: str, input: dict[str, Any] | None = None, **context: Any) -> str:
        """A task that is ready; its id."""
        task_id = str(uuid.uuid4())
        with self.lock:
            self.tasks[task_id] = {
                "method": method,
                "input": input or {},
                "context": context,
                "status": "pending",
                "attempt": 0,
                "lease": None,
                "outcome": None,
                "progress": [],
                "told_at": -1.0,
                "cancel": None,
            }
            self.lock.notify_all()
        return task_id

    def cancel(self, task_id: str, reason: str = "cancelled") -> None:
        with self.lock:
            self.tasks[task_id]["cancel"] = reason

    def lose(self, task_id: str) -> None:
        """Takes a lease away, as when it has ended. A socket is given work when it says something."""
        with self.lock:
            self.is_unheard = True
            self.tasks[task_id].update(lease=None, status="pending")
            self.lock.notify_all()

    def status(self, task_id: str) -> str:
        return str(self.tasks[task_id]["status"])

    def until_status(self, status: str, *task_ids: str, timeout: float = 90) -> None:
        self.until(lambda: all(self.status(id) == status for id in task_ids), timeout)

    def _claim(self, params: dict[str, Any]) -> Any:
        ends_at = time.monotonic() + params.get("wait_seconds", 0)
        with self.lock:
            while True:
                if _is_gone(self.here.connection):
                    raise Drop
                if self.draining:
                    return {"claims": [], "draining": True}
                ready = [
                    id
                    for id, task in self.tasks.items()
                    if task["status"] == "pending" and task["method"] in params["methods"]
                ][: params.get("max", 1)]
                left = ends_at - time.monotonic()
                if ready or left <= 0 or self.is_closing:
                    return {"claims": [self._lease(id, params) for id in ready]}
                self.lock.wait(min(left, 0.05))

    def _lease(self, id: str, params: dict[str, Any]) -> dict[str, Any]:
        task = self.tasks[id]
        task.update(status="in_progress", attempt=task["attempt"] + 1, lease=uuid.uuid4().hex)
        shown = {
            "id": id,
            "name": "t",
            "schemas": {"method": task["method"]},
            "status": "in_progress",
        }
        seconds = task["context"].pop("lease_seconds", params.get("lease_seconds", 60))
        lease = {"token": task["lease"], "attempt": task["attempt"], "lease_seconds": seconds}
        lease["expires_at"] = "2026-01-15T10:30:00.000000Z"
        context = {"root_task_id": id, "run_id": str(uuid.uuid4()), **task["context"]}
        return {"task": shown, "input": task["input"], "context": context, "lease": lease}

    def _held(self, params: dict[str, Any]) -> dict[str, Any]:
        task = self.tasks[params["task_id"]]
        if task["lease"] != params["lease"]:
            raise Refused(-31010, "Lease is not held", task_id=params["task_id"], reason="lost")
        return task

    def _renew(self, params: dict[str, Any]) -> Any:
        task = self._held(params)
        # Once a second, as the real one does.
        is_due = time.monotonic() >= task["told_at"] + 1
        if is_due and ("progress" in params or "message" in params):
            task["told_at"] = time.monotonic()
            task["progress"].append((params.get("progress"), params.get("message")))
        told = {"expires_at": "2026-01-15T10:30:00.000000Z", "cancel_requested": False}
        if task["cancel"]:
            told.update(cancel_requested=True, reason=task["cancel"])
        return told

    def _sibling(self, params: dict[str, Any]) -> Any:
        self._held(params)
        if params["name"] != "fetch":
            raise Refused(-32602, "Invalid params", field="name", expected="such as `fetch`")
        return {"task_id": "f", "name": "fetch", "status": "completed", "output": {"n": 7}}

    def _end(self, params: dict[str, Any], status: str, outcome: Any) -> Any:
        task = self.tasks[params["task_id"]]
        if task["lease"] == params["lease"] and task["outcome"] == (params["lease"], outcome):
            return {"task_id": params["task_id"], "status": task["status"]}
        self._held(params)
        if task["status"] != "in_progress":
            raise Refused(-31010, "Lease is not held", task_id=params["task_id"], reason="ended")
        task.update(status=status, outcome=(params["lease"], outcome))
        self.lock.notify_all()
        return {"task_id": params["task_id"], "status": status}

    def _complete(self, params: dict[str, Any]) -> Any:
        return self._end(params, "completed", params["output"])

    def _fail(self, params: dict[str, Any]) -> Any:
        return self._end(params, "failed", (params["error"], params.get("retryable", True)))

    def _release(self, params: dict[str, Any]) -> Any:
        return self._end(params, "released", "released")

    def _suspend(self, params: dict[str, Any]) -> Any:
        return self._end(params, "suspended", params["request"])

    # Calls.

    def answer(self, call: dict[str, Any]) -> Any:
        method = call["method"]
        with self.lock:
            self.calls.append(call)
            self.lock.notify_all()
            fault = self.faults.get(method, [])
            when, error = fault.pop(0) if fault else ("", None)
        if error is not None and when == "before":
            raise error
        if method not in self.methods:
            raise Refused(-32601, "Method not found")
        key = (call.get("metadata") or {}).get("idempotency_key")
        if key in self.answered:
            result = self.answered[key]
        else:
            with self.lock:
                result = self.methods[method](call["params"])
                if key is not None:
                    self.answered[key] = result
        if error is not None:
            raise error
        return result


def _is_gone(connection: socket.socket) -> bool:
    """Whether a client waits no more, which the real server notices too."""
    readable, _, _ = select.select([connection], [], [], 0)
    try:
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


class Stream:
    """The answer to one ``GET /events``, written as a test says."""

    def __init__(self, handler: _Handler) -> None:
        self._handler = handler

    def write(self, text: str) -> None:
        raw = text.encode()
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
        self._handler.wfile.flush()

    def event(self, id: str, name: str, data: Any) -> None:
        self.write(f"id: {id}\nevent: {name}\ndata: {json.dumps(data)}\n\n")

    def end(self) -> None:
        """Ends the answer as it should."""
        self._handler.wfile.write(b"0\r\n\r\n")


class Socket:
    """The other side of a WebSocket, which offers work. Its calls are kept as `tasks.claim`."""

    def __init__(self, handler: _Handler, fake: FakeServer) -> None:
        self.handler, self.fake = handler, fake
        self.window = 0
        self.params: dict[str, Any] = {}
        self.given: dict[str, str] = {}
        self.told: set[str] = set()

    def serve(self) -> None:
        guid = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        key = self.handler.headers["sec-websocket-key"].encode() + guid
        self.handler.send_response(101)
        self.handler.send_header("upgrade", "websocket")
        self.handler.send_header("connection", "upgrade")
        accept = base64.b64encode(hashlib.sha1(key).digest()).decode()
        self.handler.send_header("sec-websocket-accept", accept)
        self.handler.end_headers()
        connection = self.handler.connection
        try:
            self.frame(9, b"are you there")
            while not self.fake.is_closing:
                if self.fake.refuses():
                    self.frame(8, (4401).to_bytes(2, "big"))
                    return
                readable, _, _ = select.select([connection], [], [], 0.01)
                if readable and not self.read():
                    return
                self.tell()
        except (OSError, Drop, EOFError):
            pass

    def frame(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        head = bytes([0x80 | kind])
        head += bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2, "big")
        self.handler.wfile.write(head + payload)
        self.handler.wfile.flush()

    def say(self, **message: Any) -> None:
        self.frame(1, json.dumps({"jsonrpc": "2.0", **message}).encode())

    def read(self) -> bool:
        head = self.handler.rfile.read(2)
        if len(head) < 2:
            return False
        assert head[1] & 0x80, "a client masks"
        size = head[1] & 0x7F
        if size >= 126:
            size = int.from_bytes(self.handler.rfile.read(2 if size == 126 else 8), "big")
        mask, raw = self.handler.rfile.read(4), self.handler.rfile.read(size)
        payload = bytes(byte ^ mask[k % 4] for k, byte in enumerate(raw))
        if head[0] & 0x0F == 8:
            return False
        if head[0] & 0x0F == 1:
            self.call(json.loads(payload))
        return True

    def call(self, call: dict[str, Any]) -> None:
        if call["method"] == "unsubscribe":
            self.say(id=call["id"], result={"success": True})
            if self.fake.late:  # a claim that was on its way
                self.window = 1000
                self.tell()
            self.window = 0
            return
        fake, params = self.fake, call["params"]
        if call["method"] != "work":
            with fake.lock:
                fake.is_unheard = False
                fake.calls.append(call)
            self.say(id=call["id"], result={})
            return
        with fake.lock:
            fake.calls.append({"method": "tasks.claim", "params": params})
            faults = fake.faults.get("tasks.claim", [])
            fault = faults.pop(0)[1] if faults else None
        if isinstance(fault, Refused):
            told = {"code": fault.code, "message": fault.message, "data": fault.data}
            self.say(id=call["id"], error=told)
        elif fault is not None:
            raise fault
        else:
            self.say(id=call["id"], result={"subscription": "s1"})
            self.window, self.params = params["window"], params

    def tell(self) -> None:
        fake, news = self.fake, []
        with fake.lock:
            held = {
                id
                for id, lease in self.given.items()
                if fake.tasks[id]["lease"] == lease and fake.tasks[id]["status"] == "in_progress"
            }
            if fake.draining and self.window:
                self.window = 0
                news.append({"draining": True})
            for id, task in fake.tasks.items():
                if id in held and task["cancel"] and id not in self.told:
                    self.told.add(id)
                    cancel = {"task_id": id, "lease": task["lease"], "reason": task["cancel"]}
                    news.append({"cancel": cancel})
                is_open = task["status"] == "pending" and len(held) < self.window
                is_open = is_open and not fake.is_unheard
                is_open = is_open and (id != fake.late or self.window == 1000)
                if is_open and task["method"] in self.params["methods"]:
                    claim = fake._lease(id, self.params)
                    self.given[id] = claim["lease"]["token"]
                    held.add(id)
                    news.append({"claim": claim})
        for params in news:
            self.say(method="work", params={"subscription": "s1", **params})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_of_test: FakeServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        with self.server_of_test.lock:
            self.server_of_test.connections += 1

    def do_POST(self) -> None:
        fake = self.server_of_test
        body = self.rfile.read(int(self.headers["content-length"]))
        call = json.loads(body)
        fake.here.connection = self.connection
        fake.requests.append({k.lower(): v for k, v in self.headers.items()})
        status = 200
        try:
            if fake.refuses():
                raise REVOKED
            answer = {"result": fake.answer(call)}
        except Drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        except Refused as error:
            status = error.status
            told = {"code": error.code, "message": error.message, "data": error.data}
            answer = {"error": told}
        except Foreign as error:
            self.send_error(error.status)
            return
        raw = json.dumps({"jsonrpc": "2.0", "id": call["id"], **answer}).encode()
        self.say(status, raw)

    def say(self, status: int, raw: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)
        except OSError:
            self.close_connection = True

    def do_GET(self) -> None:
        fake = self.server_of_test
        if self.path == "/ws":
            self.close_connection = True
            if fake.refuses():
                told = {"code": REVOKED.code, "message": REVOKED.message, "data": {}}
                raw = json.dumps({"jsonrpc": "2.0", "id": None, "error": told}).encode()
                self.say(REVOKED.status, raw)
                return
            Socket(self, fake).serve()
            return
        headers = {k.lower(): v for k, v in self.headers.items()}
        fake.opened.append((parse_qs(urlsplit(self.path).query), headers))
        self.close_connection = True
        with fake.lock:
            script = fake.streams.pop(0) if fake.streams else None
        try:
            if script is None:
                self.send_response(503)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            script(Stream(self))
        except OSError:
            pass
