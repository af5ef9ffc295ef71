"""What workers do when the real server refuses them or what they say, and when clocks step. Part of
``test_real_server``.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import unittest
from typing import Any
from unittest import mock

import taskledger
from taskledger import AsyncWorker, Client, Worker

from .real_server import OnServer, remote


class Refusals(OnServer):
    def test_an_output_that_the_server_cannot_read_fails_its_task_at_once(self) -> None:
        deep: Any = 1
        for _ in range(101):
            deep = {"a": deep}
        outputs = [{"a": "x" * 17 * 1024 * 1024}, {"a": "\ud800"}, deep, {"a": float("nan")}, [1]]
        sync = Worker(self.server.url)
        sync.method("unreadable")(lambda input, ctx: outputs[input["k"]])
        socket = AsyncWorker(self.server.url, socket=True)

        @socket.method("unreadable")
        async def unreadable(input: Any, ctx: Any) -> Any:
            return outputs[input["k"]]

        for worker in (sync, socket):
            with self.subTest(type(worker).__name__):
                thread = self.begin(worker)
                for k in range(len(outputs)):
                    task = remote("x", "unreadable", inputs={"k": k}, params={"retry_count": 3})
                    run = self.client.execute_and_wait([task], timeout=30)
                    self.assertEqual((run.state, run.task["attempt"]), ("failed", 1))
                    self.assertRegex(run.task["error"], "accepted|expected")
                worker.stop()
                thread.join(20)

    def test_steps_of_the_clock_lose_no_attempt_and_double_none(self) -> None:
        sync = Worker(self.server.url, lease_seconds=5)
        polls = AsyncWorker(self.server.url, lease_seconds=5)
        socket = AsyncWorker(self.server.url, lease_seconds=5, socket=True)
        begun: list[str] = []

        @sync.method("steps0")
        def handler(input: Any, ctx: Any) -> Any:
            begun.append(ctx.method)
            ctx.sleep(9)
            return {"attempt": ctx.attempt}

        @polls.method("steps1")
        @socket.method("steps2")
        async def asynchronous(input: Any, ctx: Any) -> Any:
            begun.append(ctx.method)
            await asyncio.sleep(9)
            return {"attempt": ctx.attempt}

        for worker in (sync, polls, socket):
            self.begin(worker)
        started = [self.client.execute([remote("x", f"steps{k}")]) for k in range(3)]
        ends_at = time.monotonic() + 15
        while len(begun) < 3:
            self.assertLess(time.monotonic(), ends_at)
            time.sleep(0.05)
        for step in (3600, -3600):
            with mock.patch("time.time", lambda now=time.time, step=step: now() + step):
                time.sleep(4)
        for each in started:
            run = self.client.wait(each, timeout=60).raise_for_state()
            self.assertEqual(run.result, {"attempt": 1})
            ends = [event["type"] for event in self.server.history(each["root_task_id"])]
            self.assertEqual(ends.count("task_completed"), 1)
        self.assertEqual(sorted(begun), ["steps0", "steps1", "steps2"])

    def test_the_last_progress_is_recorded(self) -> None:
        worker = Worker(self.server.url)
        go = threading.Event()
        self.addCleanup(go.set)

        @worker.method("tells")
        def tells(input: Any, ctx: Any) -> Any:
            ctx.progress(0.1)
            ctx.sleep(0.3)
            ctx.progress(0.2, "\U0001f980" * 1500)
            go.wait(20)

        self.begin(worker)
        started = self.client.execute([remote("x", "tells")])
        ends_at = time.monotonic() + 10
        while self.client.get(started["root_task_id"])["progress"] != 0.2:
            self.assertLess(time.monotonic(), ends_at)
            time.sleep(0.05)
        go.set()
        self.client.wait(started, timeout=60).raise_for_state()


def check_revocation(test: unittest.TestCase, url: str, admin: str) -> None:
    """A worker whose token is revoked while it waits for work ends with an error."""
    with Client(url, token=admin) as client:
        for kind in ("sync", "polls", "socket"):
            scopes = ["worker", "users:any"]
            params = {"name": kind, "kind": "service", "scopes": scopes}
            made = client.call("tokens.create", params)
            failures: list[BaseException] = []
            run, stop = _worker(test, url, kind, made["token"])

            def work(run: Any = run, failures: list[BaseException] = failures) -> None:
                try:
                    run()
                except BaseException as error:
                    failures.append(error)

            thread = threading.Thread(target=work, daemon=True)
            test.addCleanup(stop, now=True)
            thread.start()
            client.execute_and_wait([remote("x", kind)], timeout=60).raise_for_state()
            client.call("tokens.revoke", {"id": made["id"]})
            thread.join(30)
            test.assertEqual([type(f) for f in failures], [taskledger.Unauthenticated], kind)


def _worker(test: unittest.TestCase, url: str, kind: str, token: str) -> tuple[Any, Any]:
    if kind == "sync":
        client = Client(url, token=token)
        test.addCleanup(client.close)
        sync = Worker(client, poll_seconds=1)
        sync.method(kind)(lambda input, ctx: {})
        return sync.run, sync.stop
    with mock.patch.dict(os.environ, {"TASKLEDGER_TOKEN": token}):
        worker = AsyncWorker(url, poll_seconds=1, socket=kind == "socket")

    @worker.method(kind)
    async def handler(input: Any, ctx: Any) -> Any:
        return {}

    return (lambda: asyncio.run(worker.run())), worker.stop
