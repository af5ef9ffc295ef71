"""What both workers do while the server is away. Part of ``test_worker``."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import taskledger
from taskledger import RetryPolicy

from .fake_server import Drop, Refused, busy


class Absences:
    """More of ``Cases``, which has what these use."""

    def until_said(self, text: str, times: int = 1) -> float:
        """Waits for a record of the log; when the first one was written."""

        def said() -> list[logging.LogRecord]:
            return [record for record in self.records if text in record.getMessage()]

        self.fake.until(lambda: len(said()) >= times, 30)
        return said()[0].created

    def stop_while_away(self, worker: Any) -> float:
        """Stops a worker that holds what does not end, while the server is away."""
        self.register_stubborn(worker, "m", 8)
        tasks = [self.fake.offer("m") for _ in range(4)]
        self.begin(worker)
        self.until_said("the attempt begins", times=len(tasks))
        for method in ("tasks.claim", "tasks.renew", "tasks.release"):
            self.fake.fault(method, *[Drop()] * 10_000)
        worker.stop()
        return time.time()

    def test_what_is_held_is_given_back_at_once_and_not_for_ever(self) -> None:
        worker = self.worker(concurrency=4, grace_seconds=0.2, release_seconds=0.2)
        stopped_at = self.stop_while_away(worker)
        took = self.until_said("the worker has ended") - stopped_at
        self.assertLess(took, 12)
        released = {params["task_id"] for params in self.fake.params_of("tasks.release")}
        self.assertEqual(len(released), 4)

    def test_another_signal_ends_giving_back(self) -> None:
        worker = self.worker(concurrency=4, grace_seconds=0.2, release_seconds=0.2)
        self.stop_while_away(worker)
        self.until_said("its task is given back")
        worker.stop()
        stopped_at = time.time()
        # Within it what has been begun may take `POLL_END_SECONDS`.
        self.assertLess(self.until_said("the worker has ended") - stopped_at, 4.5)

    def test_what_is_done_is_told_when_the_worker_stops(self) -> None:
        worker = self.worker(grace_seconds=0.1, release_seconds=0.1)
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        self.fake.fault("tasks.complete", *[Drop()] * 4)
        task = self.fake.offer("m")
        thread = self.begin(worker)
        self.until_said("an outcome is told again")
        worker.stop()
        thread.join(10)
        self.assertEqual(self.fake.status(task), "completed")
        self.assertNotIn("tasks.release", self.fake.names())

    def test_methods_are_declared_however_long_the_server_is_away(self) -> None:
        worker = self.worker()
        worker.client._retry = RetryPolicy(budget_seconds=0)
        self.register(worker, "told", lambda input, ctx: {}, limit=3)
        errors = [Drop(), Drop(), busy(), Refused(-32603, "Internal error")]
        self.fake.fault("workers.declare", *errors)
        task = self.fake.offer("told")
        self.begin(worker)
        self.fake.until_status("completed", task)
        self.assertEqual(len(self.fake.params_of("workers.declare")), 5)

    def test_a_worker_that_cannot_declare_stops_when_it_is_told_to(self) -> None:
        hanging = threading.Event()
        self.addCleanup(hanging.set)

        def hang(_params: Any) -> Any:
            self.fake.lock.release()
            hanging.wait(20)
            self.fake.lock.acquire()
            return {}

        for way in ("away", "silent"):
            with self.subTest(way):
                worker = self.worker()
                self.register(worker, "told", lambda input, ctx: {}, limit=3)
                if way == "away":
                    self.fake.fault("workers.declare", *[Drop()] * 10_000)
                else:
                    self.fake.faults.clear()
                    self.fake.methods["workers.declare"] = hang
                asked = len(self.fake.params_of("workers.declare"))
                thread = self.begin(worker)
                self.fake.until(lambda: len(self.fake.params_of("workers.declare")) > asked)
                worker.stop()
                thread.join(5)
                self.assertFalse(thread.is_alive())
                self.assertIsNone(self.failure)
                self.assertNotIn("tasks.claim", self.fake.names())

    def test_a_declaration_that_is_refused_ends_the_worker(self) -> None:
        worker = self.worker()
        self.register(worker, "told", lambda input, ctx: {}, limit=3)
        self.fake.fault("workers.declare", Refused(-32602, "Invalid params"))
        self.begin(worker).join(5)
        self.assertIsInstance(self.failure, taskledger.InvalidParams)
