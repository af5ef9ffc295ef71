"""Both workers against a server that loses leases, cancels, drains and goes away."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest
from pathlib import Path
from typing import Any

import taskledger
from taskledger import AsyncWorker, Final, Retryable, Worker

from .absences import Absences
from .fake_server import Drop, FakeServer, Refused, busy
from .refusals import Refusals, throw

ROOT = Path(__file__).resolve().parent.parent


class Cases(Refusals, Absences):
    """What both workers do. Handlers are written twice where they differ."""

    def setUp(self) -> None:
        self.fake = FakeServer()
        self.addCleanup(self.fake.close)
        self.records: list[logging.LogRecord] = []
        handler = logging.Handler()
        handler.emit = self.records.append  # type: ignore[method-assign]
        logger = logging.getLogger("taskledger.worker")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        self.addCleanup(logger.removeHandler, handler)

    def begin(self, worker: Any) -> threading.Thread:
        self.failure: BaseException | None = None

        def run() -> None:
            try:
                self.run_worker(worker)
            except BaseException as error:
                self.failure = error

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 20)
        self.addCleanup(worker.stop, now=True)
        return thread

    def outcome(self, task_id: str) -> Any:
        return self.fake.tasks[task_id]["outcome"][1]

    def test_outcomes(self) -> None:
        worker = self.worker(concurrency=4)
        self.register(worker, "double", lambda input, ctx: {"twice": input["x"] * 2})
        self.register(worker, "nothing", lambda input, ctx: None)
        self.register(worker, "list", lambda input, ctx: [])
        self.register(worker, "retryable", lambda input, ctx: throw(Retryable("not yet")))
        self.register(worker, "final", lambda input, ctx: throw(Final("never")))
        self.register(worker, "broken", lambda input, ctx: {}["x"])
        tasks = {name: self.fake.offer(name, {"x": 4}) for name in worker._methods}
        self.begin(worker)
        self.fake.until_status("completed", tasks["double"], tasks["nothing"])
        self.fake.until_status(
            "failed", *[tasks[n] for n in ("list", "retryable", "final", "broken")]
        )
        self.assertEqual(self.outcome(tasks["double"]), {"twice": 8})
        self.assertEqual(self.outcome(tasks["nothing"]), {})
        self.assertEqual(self.outcome(tasks["retryable"]), ("not yet", True))
        self.assertEqual(self.outcome(tasks["final"]), ("never", False))
        self.assertEqual(self.outcome(tasks["broken"]), ("KeyError: 'x'", True))
        self.assertFalse(self.outcome(tasks["list"])[1])
        done = [r for r in self.records if getattr(r, "task_id", "") == tasks["double"]]
        self.assertEqual(done[0].attempt, 1)  # type: ignore[attr-defined]
        self.assertEqual(done[-1].method, "double")  # type: ignore[attr-defined]

    def test_methods_are_declared_with_what_is_said_of_them(self) -> None:
        worker = self.worker()
        self.register(worker, "quiet", lambda input, ctx: {})
        self.register(
            worker, "told", lambda input, ctx: {}, limit=3, input_schema={"type": "object"}
        )
        self.begin(worker)
        self.fake.until(lambda: "tasks.claim" in self.fake.names())
        told = {"method": "told", "limit": 3, "input_schema": {"type": "object"}}
        self.assertEqual(self.fake.params_of("workers.declare"), [told])
        claim = self.fake.params_of("tasks.claim")[0]
        self.assertEqual(claim["methods"], ["quiet", "told"])
        self.assertEqual(claim["worker"], worker.name)
        with self.assertRaises(ValueError):
            self.register(worker, "told", lambda input, ctx: {})

    def test_outcomes_are_told_until_they_are_answered(self) -> None:
        worker = self.worker()
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        self.fake.fault("tasks.complete", Drop(), busy(), Refused(-32603, "Internal error"))
        self.fake.fault("tasks.complete", Drop(), after=True)
        task = self.fake.offer("m")
        self.begin(worker)
        self.fake.until(lambda: len(self.fake.params_of("tasks.complete")) == 5)
        self.fake.until_status("completed", task)

    def test_asking_goes_on_after_failures(self) -> None:
        worker = self.worker()
        self.register(worker, "m", lambda input, ctx: {})
        self.fake.fault("tasks.claim", Drop(), busy(), Refused(-32013, status=503))
        task = self.fake.offer("m")
        self.begin(worker)
        self.fake.until_status("completed", task)

    def test_draining_finishes_what_is_held_and_ends(self) -> None:
        worker = self.worker(concurrency=2, grace_seconds=0)
        begun, go = threading.Event(), threading.Event()
        self.register_waiting(worker, "m", begun, go)
        task = self.fake.offer("m")
        thread = self.begin(worker)
        self.assertTrue(begun.wait(10))
        self.fake.draining = True
        with self.fake.lock:
            self.fake.lock.notify_all()
        thread.join(0.5)
        self.assertTrue(thread.is_alive())
        go.set()
        thread.join(10)
        self.assertFalse(thread.is_alive())
        self.assertEqual(self.fake.status(task), "completed")

    def test_stopping_leaves_a_grace(self) -> None:
        worker = self.worker(concurrency=2, grace_seconds=10)
        begun, go = threading.Event(), threading.Event()
        self.register_waiting(worker, "m", begun, go)
        task = self.fake.offer("m")
        thread = self.begin(worker)
        self.assertTrue(begun.wait(10))
        worker.stop()
        thread.join(0.3)
        self.assertTrue(thread.is_alive())
        late = self.fake.offer("m")
        go.set()
        thread.join(10)
        self.assertEqual(self.fake.status(task), "completed")
        self.assertIn(self.fake.status(late), ("pending", "released"))

    def test_what_does_not_end_in_the_grace_is_given_back(self) -> None:
        worker = self.worker(concurrency=2, grace_seconds=0.2, release_seconds=0.3)
        self.register_obedient(worker, "obedient")
        self.register_stubborn(worker, "stubborn", 2)
        tasks = [self.fake.offer("obedient"), self.fake.offer("stubborn")]
        thread = self.begin(worker)
        self.fake.until_status("in_progress", *tasks)
        begun = time.monotonic()
        worker.stop()
        thread.join(10)
        self.assertLess(time.monotonic() - begun, 6)
        self.assertEqual([self.fake.status(task) for task in tasks], ["released", "released"])

    def test_a_cancelled_task_stops_its_handler(self) -> None:
        worker = self.worker(concurrency=2)
        reasons = self.register_obedient(worker, "m")
        task = self.fake.offer("m", lease_seconds=1)
        self.begin(worker)
        self.fake.until_status("in_progress", task)
        self.fake.cancel(task, "deadline")
        self.fake.until(lambda: reasons == ["deadline"])
        next_one = self.fake.offer("m", lease_seconds=1)
        self.fake.until_status("in_progress", next_one)
        self.assertIsNone(self.fake.tasks[task]["outcome"])

    def test_a_lost_lease_stops_its_handler_and_drops_the_outcome(self) -> None:
        worker = self.worker(concurrency=1)
        reasons = self.register_obedient(worker, "m")
        task = self.fake.offer("m", lease_seconds=1)
        self.begin(worker)
        self.fake.until_status("in_progress", task)
        self.fake.lose(task)
        self.fake.until(lambda: reasons[:1] == ["lost"])
        self.fake.until(lambda: self.fake.tasks[task]["attempt"] == 2)
        ends = [
            n for n in self.fake.names() if n in ("tasks.complete", "tasks.fail", "tasks.release")
        ]
        self.assertEqual(ends, [])

    def test_an_outcome_after_the_lease_was_lost_changes_nothing(self) -> None:
        worker = self.worker(concurrency=1)
        begun, go = threading.Event(), threading.Event()
        self.register_waiting(worker, "m", begun, go)
        task = self.fake.offer("m")
        self.begin(worker)
        self.assertTrue(begun.wait(10))
        self.fake.tasks[task].update(lease="of another worker")
        go.set()
        self.fake.until(lambda: "tasks.complete" in self.fake.names())
        self.fake.until(lambda: any("too late" in r.getMessage() for r in self.records))
        self.assertEqual(self.fake.status(task), "in_progress")

    def test_a_lease_that_cannot_be_renewed_expires(self) -> None:
        worker = self.worker(concurrency=1)
        reasons = self.register_obedient(worker, "m")
        self.fake.fault("tasks.renew", *[Drop()] * 50)
        self.fake.offer("m", lease_seconds=1)
        self.begin(worker)
        self.fake.until(lambda: reasons == ["expired"])

    def test_leases_are_renewed_and_progress_is_told(self) -> None:
        worker = self.worker(concurrency=2)
        self.register_telling(worker, "m")
        task = self.fake.offer("m", lease_seconds=1)
        self.begin(worker)
        self.fake.until_status("completed", task)
        self.assertGreaterEqual(len(self.fake.params_of("tasks.renew")), 3)
        told = self.fake.tasks[task]["progress"]
        self.assertEqual(told[-1], (0.9, "nearly"))
        self.assertLess(len(told), 10)

    def test_results_of_siblings_are_read_under_the_lease(self) -> None:
        worker = self.worker(concurrency=1)
        self.register_reading(worker, "m")
        task = self.fake.offer("m")
        self.begin(worker)
        self.fake.until_status("completed", task)
        asked = [params["name"] for params in self.fake.params_of("tasks.sibling_output")]
        self.assertEqual(asked, ["fetch", "nobody"])
        self.assertEqual(self.fake.params_of("tasks.complete")[0]["output"], {"n": 7})

    def test_a_worker_without_methods_does_not_begin(self) -> None:
        with self.assertRaises(ValueError):
            self.run_worker(self.worker())


class SyncWorker(Cases, unittest.TestCase):
    def worker(self, **options: Any) -> Worker:
        return Worker(self.fake.url, **{"poll_seconds": 5, **options})

    def run_worker(self, worker: Worker) -> None:
        worker.run()

    def register(self, worker: Worker, name: str, handler: Any, **told: Any) -> None:
        worker.method(name, **told)(handler)

    def register_waiting(
        self, worker: Worker, name: str, begun: Any, go: Any, say: Any = id
    ) -> None:
        @worker.method(name)
        def handler(input: Any, ctx: Any) -> Any:
            say(ctx)
            begun.set()
            go.wait(20)
            return {}

    def register_obedient(self, worker: Worker, name: str) -> list[Any]:
        reasons: list[Any] = []

        @worker.method(name)
        def handler(input: Any, ctx: Any) -> Any:
            try:
                while True:
                    ctx.sleep(10)
            finally:
                reasons.append(ctx.reason)

        return reasons

    def register_stubborn(self, worker: Worker, name: str, seconds: float) -> None:
        @worker.method(name)
        def handler(input: Any, ctx: Any) -> Any:
            time.sleep(seconds)
            return {}

    def register_reading(self, worker: Worker, name: str) -> None:
        @worker.method(name)
        def handler(input: Any, ctx: Any) -> Any:
            output = ctx.sibling_output("fetch")
            with self.assertRaises(taskledger.InvalidParams):
                ctx.sibling_output("nobody")
            return output

    def register_telling(self, worker: Worker, name: str) -> None:
        @worker.method(name)
        def handler(input: Any, ctx: Any) -> Any:
            for k in range(100):
                ctx.progress(k / 200, "some")
                ctx.sleep(0.01)
            ctx.progress(0.9)
            ctx.progress(message="nearly")
            ctx.sleep(1.2)


    def test_handlers_must_not_be_asynchronous(self) -> None:
        async def handle(input: Any, ctx: Any) -> Any:
            return {}

        async def yielding(input: Any, ctx: Any) -> Any:
            yield {}

        class Handler:
            async def __call__(self, input: Any, ctx: Any) -> Any:
                return {}

        worker = self.worker()
        for handler in (handle, yielding, Handler(), functools.partial(handle, ctx=None)):
            with self.assertRaisesRegex(TypeError, "AsyncWorker"):
                worker.method("m")(handler)
        self.assertEqual(worker._methods, {})


class AsynchronousWorker(Cases, unittest.TestCase):
    def worker(self, **options: Any) -> AsyncWorker:
        return AsyncWorker(self.fake.url, **{"poll_seconds": 5, **options})

    def run_worker(self, worker: AsyncWorker) -> None:
        asyncio.run(worker.run())

    def register(self, worker: AsyncWorker, name: str, handler: Any, **told: Any) -> None:
        @worker.method(name, **told)
        async def asynchronous(input: Any, ctx: Any) -> Any:
            return handler(input, ctx)

    def register_waiting(
        self, worker: AsyncWorker, name: str, begun: Any, go: Any, say: Any = id
    ) -> None:
        @worker.method(name)
        async def handler(input: Any, ctx: Any) -> Any:
            say(_FromThreads(ctx, asyncio.get_running_loop()))
            begun.set()
            await asyncio.to_thread(go.wait, 20)
            return {}

    def register_obedient(self, worker: AsyncWorker, name: str) -> list[Any]:
        reasons: list[Any] = []

        @worker.method(name)
        async def handler(input: Any, ctx: Any) -> Any:
            try:
                await asyncio.sleep(100)
            finally:
                reasons.append(ctx.reason)

        return reasons

    def register_stubborn(self, worker: AsyncWorker, name: str, seconds: float) -> None:
        @worker.method(name)
        async def handler(input: Any, ctx: Any) -> Any:
            ends_at = time.monotonic() + seconds
            while time.monotonic() < ends_at:
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    pass
            return {}

    def register_reading(self, worker: AsyncWorker, name: str) -> None:
        @worker.method(name)
        async def handler(input: Any, ctx: Any) -> Any:
            output = await ctx.sibling_output("fetch")
            with self.assertRaises(taskledger.InvalidParams):
                await ctx.sibling_output("nobody")
            return output

    def register_telling(self, worker: AsyncWorker, name: str) -> None:
        @worker.method(name)
        async def handler(input: Any, ctx: Any) -> Any:
            for k in range(100):
                ctx.progress(k / 200, "some")
                await asyncio.sleep(0.01)
            ctx.progress(0.9)
            ctx.progress(message="nearly")
            await asyncio.sleep(1.2)

    def test_500_tasks_at_once(self) -> None:
        worker = self.worker(concurrency=500)
        running = most = 0
        everyone = asyncio.Event()

        @worker.method("m")
        async def handler(input: Any, ctx: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == 500:
                everyone.set()
            await everyone.wait()
            await asyncio.sleep(1.0)
            running -= 1
            return input

        tasks = [self.fake.offer("m", {"k": k}, lease_seconds=2) for k in range(500)]
        self.begin(worker)
        self.fake.until_status("completed", *tasks, timeout=60)
        self.assertEqual(most, 500)
        self.assertEqual(self.outcome(tasks[77]), {"k": 77})
        self.assertTrue(all(task["attempt"] == 1 for task in self.fake.tasks.values()))

    def test_handlers_must_be_asynchronous(self) -> None:
        with self.assertRaises(TypeError):
            self.worker().method("m")(lambda input, ctx: {})  # type: ignore[arg-type, return-value]

    def test_handlers_are_whatever_makes_a_coroutine(self) -> None:
        async def handle(input: Any, ctx: Any, more: int) -> Any:
            return {"more": more}

        worker = self.worker()
        worker.method("m")(functools.partial(handle, more=7))
        task = self.fake.offer("m")
        self.begin(worker)
        self.fake.until_status("completed", task)
        self.assertEqual(self.outcome(task), {"more": 7})

    def test_cancelling_the_run_gives_back_what_is_held(self) -> None:
        worker = self.worker(release_seconds=2)
        self.register_obedient(worker, "m")
        task = self.fake.offer("m")

        async def main() -> None:
            running = asyncio.create_task(worker.run(handle_signals=False))
            await asyncio.to_thread(self.fake.until_status, "in_progress", task)
            running.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await running

        asyncio.run(main())
        self.assertEqual(self.fake.status(task), "released")


class WorkerOnASocket(AsynchronousWorker):
    def worker(self, **options: Any) -> AsyncWorker:
        options = {"poll_seconds": 5, **options}
        return AsyncWorker(self.fake.url, socket=True, **options)

    def test_a_cancelled_task_stops_its_handler_at_once(self) -> None:
        worker = self.worker(lease_seconds=60)
        reasons = self.register_obedient(worker, "m")
        task = self.fake.offer("m")
        self.begin(worker)
        self.fake.until_status("in_progress", task)
        self.fake.cancel(task, "timed_out")
        self.fake.until(lambda: reasons == ["timed_out"], timeout=5)

    def test_a_worker_whose_lease_was_lost_is_heard_of_on_its_socket(self) -> None:
        worker = self.worker(concurrency=1)
        begun, go = threading.Event(), threading.Event()
        self.register_waiting(worker, "m", begun, go)
        task = self.fake.offer("m")
        self.begin(worker)
        self.assertTrue(begun.wait(10))
        self.fake.lose(task)
        go.set()
        self.fake.until_status("completed", task)
        self.assertEqual(self.fake.names().count("system.health"), 1)

    def test_claims_behind_the_answer_to_unsubscribe_are_given_back(self) -> None:
        worker = self.worker()
        self.register(worker, "m", lambda input, ctx: {})
        with self.fake.lock:
            late = self.fake.late = self.fake.offer("m")
        thread = self.begin(worker)
        task = self.fake.offer("m")
        self.fake.until_status("completed", task)
        worker.stop()
        thread.join(10)
        self.assertEqual(self.fake.status(late), "released")


PROGRAM = """
import asyncio, logging, sys, time
import taskledger
logging.basicConfig(level=logging.INFO)
kind, url = sys.argv[1:]
if kind == "sync":
    worker = taskledger.Worker(url, grace_seconds=5, release_seconds=1)
    @worker.method("m")
    def handler(input, ctx):
        ctx.progress(0)
        ctx.sleep(input["seconds"])
        return {"slept": True}
    worker.run()
else:
    options = {"grace_seconds": 5, "release_seconds": 1, "socket": kind == "socket"}
    worker = taskledger.AsyncWorker(url, **options)
    @worker.method("m")
    async def handler(input, ctx):
        ctx.progress(0)
        await asyncio.sleep(input["seconds"])
        return {"slept": True}
    asyncio.run(worker.run())
"""


class Signals(unittest.TestCase):
    """Programs that are stopped as process managers stop them."""

    def setUp(self) -> None:
        self.fake = FakeServer()
        self.addCleanup(self.fake.close)

    def start(self, kind: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), kind, self.fake.url]
        program = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
        self.addCleanup(program.wait, 10)
        self.addCleanup(program.kill)
        return program

    def test_sigterm_finishes_what_is_held(self) -> None:
        for kind in ("sync", "async", "socket"):
            with self.subTest(kind):
                program = self.start(kind)
                task = self.fake.offer("m", {"seconds": 2})
                self.fake.until(lambda: self.fake.tasks[task]["progress"] != [])
                program.send_signal(signal.SIGTERM)
                self.assertEqual(program.wait(10), 0)
                self.assertEqual(self.fake.status(task), "completed")

    def test_a_second_signal_gives_back_what_is_held(self) -> None:
        for kind in ("sync", "async", "socket"):
            with self.subTest(kind):
                program = self.start(kind)
                task = self.fake.offer("m", {"seconds": 60})
                self.fake.until(lambda: self.fake.tasks[task]["progress"] != [])
                program.send_signal(signal.SIGINT)
                time.sleep(0.3)
                program.send_signal(signal.SIGINT)
                self.assertEqual(program.wait(10), 0)
                self.assertEqual(self.fake.status(task), "released")

    def test_an_idle_worker_stops_at_once(self) -> None:
        for kind in ("sync", "async", "socket"):
            with self.subTest(kind):
                program = self.start(kind)
                claims = len(self.fake.params_of("tasks.claim"))
                self.fake.until(lambda: len(self.fake.params_of("tasks.claim")) > claims)
                begun = time.monotonic()
                program.send_signal(signal.SIGTERM)
                self.assertEqual(program.wait(10), 0)
                self.assertLess(time.monotonic() - begun, 5)


class _FromThreads:
    """The context of a handler, for a test in another thread."""

    def __init__(self, context: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.context, self.loop = context, loop

    def progress(self, *said: Any) -> None:
        self.loop.call_soon_threadsafe(self.context.progress, *said)


if __name__ == "__main__":
    unittest.main()
