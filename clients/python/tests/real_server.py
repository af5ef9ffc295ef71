"""The program ``TASKLEDGER_BIN`` as a server on a folder of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path
from typing import Any

from taskledger import AsyncWorker, Client

logging.getLogger("taskledger.worker").addHandler(logging.NullHandler())
BINARY = os.environ.get("TASKLEDGER_BIN")


def free_port() -> int:
    """A port below those that systems give out: nobody else gets it while its server is down."""
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


class RealServer:
    """A server that can be killed, paused and started again on the same port and folder."""

    def __init__(self, *, tls: bool = False) -> None:
        assert BINARY is not None, "tests ask for it first"
        self._folder = tempfile.TemporaryDirectory(prefix="taskledger-python-")
        self.ca_file = str(self._certify()) if tls else None
        self._tls = ssl.create_default_context(cafile=self.ca_file) if tls else None
        self.port = free_port()
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        assert BINARY is not None, "see above"
        env = {name: value for name, value in os.environ.items() if "TASKLEDGER" not in name}
        folder = Path(self._folder.name)
        certified = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"] if self._tls else []
        with open(folder / "log", "ab") as log:
            self._program = subprocess.Popen(
                [
                    BINARY,
                    "serve",
                    "--listen",
                    f"127.0.0.1:{self.port}",
                    "--data-dir",
                    str(folder / "data"),
                    "--log-format",
                    "json",
                    *certified,
                ],
                env=env,
                stdout=log,
                stderr=log,
                cwd=folder,
            )
        ends_at = time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(self.url + "/readyz", timeout=5, context=self._tls):
                    return
            except OSError:
                said = (folder / "log").read_text()[-2000:]
                assert self._program.poll() is None, f"the server has ended: {said}"
                assert time.monotonic() < ends_at, f"the server does not become ready: {said}"
                time.sleep(0.05)

    def _certify(self) -> Path:
        """A certificate for 127.0.0.1 that signs itself."""
        folder = Path(self._folder.name)
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "30",
                "-subj",
                "/CN=taskledger",
                "-keyout",
                "key.pem",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-out",
                "cert.pem",
            ],
            cwd=folder,
            check=True,
            stderr=subprocess.DEVNULL,
        )
        return folder / "cert.pem"

    def kill(self) -> None:
        """As when the power goes."""
        self._program.send_signal(signal.SIGKILL)
        self._program.wait()

    def restart(self) -> None:
        """Kills the server, and starts it again."""
        self.kill()
        self.start()

    def close(self) -> None:
        self.kill()
        self._folder.cleanup()

    def history(self, root_task_id: str) -> list[dict]:
        """All events of a flow, read without this package."""
        events, cursor = [], None
        while True:
            params = {"task_id": root_task_id, "scope": "flow", "limit": 1000}
            if cursor is not None:
                params["cursor"] = cursor
            call = {"jsonrpc": "2.0", "id": 1, "method": "tasks.history", "params": params}
            request = urllib.request.Request(
                self.url, json.dumps(call).encode(), {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=30) as answer:
                page = json.load(answer)["result"]
            events += page["events"]
            cursor = page.get("next_cursor")
            if not cursor:
                return events


def remote(name: str, method: str = "work", **members: Any) -> dict[str, Any]:
    return {"name": name, "schemas": {"type": "remote", "method": method}, **members}


@unittest.skipUnless(BINARY, "TASKLEDGER_BIN names the program to test with")
class OnServer(unittest.TestCase):
    server: RealServer

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = RealServer()
        cls.addClassCleanup(lambda: cls.server.close())

    def setUp(self) -> None:
        self.client = Client(self.server.url)
        self.addCleanup(self.client.close)

    def begin(self, worker: Any) -> threading.Thread:
        def run() -> None:
            if isinstance(worker, AsyncWorker):
                asyncio.run(worker.run())
            else:
                worker.run()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 30)
        self.addCleanup(worker.stop, now=True)
        return thread

    def until_status(self, task_id: str, status: str, timeout: float = 30) -> Any:
        ends_at = time.monotonic() + timeout
        while True:
            task = self.client.get(task_id)
            if task["status"] == status:
                return task
            assert time.monotonic() < ends_at, f"not {status} within {timeout} s: {task}"
            time.sleep(0.05)
