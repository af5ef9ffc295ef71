"""What both workers do when the server refuses them or what they say. Part of ``test_worker``."""

from __future__ import annotations

import threading
import time
from typing import Any
from unittest import mock

import taskledger
from taskledger import _outcomes

from .fake_server import Drop, Foreign, Refused, busy

SOON = taskledger.RetryPolicy(initial_seconds=0.001, max_seconds=0.01)


class Refusals:
    """The rest of ``Cases``, which has what these tests call."""

    def lease_ends(self, task: str) -> None:
        """What a given up attempt waits for; the server offers its place on a socket again."""
        with self.fake.lock:
            self.assertEqual(self.fake.status(task), "in_progress")
            self.fake.tasks[task].update(lease=None, status="lost")

    def test_an_output_that_the_server_cannot_read_fails_the_task_at_once(self) -> None:
        worker = self.worker(concurrency=4)
        deep: Any = 1
        for _ in range(101):
            deep = {"a": deep}
        outputs = {
            "large": {"a": "x" * (1024 * 1024)},
            "surrogate": {"a": "\ud800"},
            "deep": deep,
            "nan": {"a": float("nan")},
            "infinite": {"a": [float("inf")]},
            "list": [1],
        }
        for name, output in outputs.items():
            self.register(worker, name, lambda input, ctx, output=output: output)
        tasks = [self.fake.offer(name) for name in outputs]
        self.begin(worker)
        self.fake.until_status("failed", *tasks)
        for task in tasks:
            error, is_retryable = self.outcome(task)
            self.assertFalse(is_retryable)
            self.assertRegex(error, "accepted|expected")
        self.assertNotIn("tasks.complete", self.fake.names())

    def test_a_question_that_the_server_cannot_read_fails_the_task_at_once(self) -> None:
        worker = self.worker(concurrency=1)
        cyclic: dict[str, Any] = {}
        cyclic["self"] = cyclic
        deep: Any = 1
        for _ in range(100):
            deep = {"a": deep}
        questions: dict[str, tuple[taskledger.Suspend, str]] = {
            "type": (taskledger.Suspend("?", choices=[{"value": {1}}]), "is no JSON: .* set "),
            "cyclic": (taskledger.Suspend("?", context=cyclic), "is no JSON: Circular"),
            "nan": (taskledger.Suspend("?", timeout_seconds=float("nan")), "finite numbers"),
            "surrogate": (taskledger.Suspend("\ud800"), "has text with the lone surrogate"),
            "deep": (taskledger.Suspend("?", context=deep), "at most 100 levels are accepted"),
            "large": (taskledger.Suspend("x" * 65536), "bytes of JSON: at most 65536 are accepted"),
        }
        for name, (question, _) in questions.items():
            self.register(worker, name, lambda input, ctx, question=question: throw(question))
        self.register(worker, "fine", lambda input, ctx: throw(taskledger.Suspend("Which?")))
        tasks = {name: self.fake.offer(name) for name in questions}
        self.begin(worker)
        self.fake.until_status("failed", *tasks.values())
        for name, (_, said) in questions.items():
            error, is_retryable = self.outcome(tasks[name])
            self.assertRegex(error, f"^the question .*{said}")
            self.assertFalse(is_retryable)
        self.assertNotIn("tasks.suspend", self.fake.names())
        fine = self.fake.offer("fine")
        self.fake.until_status("suspended", fine)
        self.assertEqual(self.outcome(fine), {"question": "Which?"})

    def test_a_completion_that_is_refused_for_good_fails_the_task(self) -> None:
        worker = self.worker()
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        self.begin(worker)
        fault = {"field": "body", "reason": "too odd", "expected": "JSON text"}
        for error, said in [
            (Refused(-32700, "Parse error", errors=[fault]), "body: too odd, expected JSON text"),
            (Refused(-32600, "Invalid Request"), "Invalid Request"),
            (Refused(-32602, "Invalid params"), "Invalid params"),
            (Refused(-32600, "Invalid Request", 413), "Invalid Request"),
            (Foreign(413), "413"),
        ]:
            with self.subTest(repr(error)):
                self.fake.fault("tasks.complete", error)
                task = self.fake.offer("m")
                self.fake.until_status("failed", task)
                self.assertRegex(self.outcome(task)[0], f"the output was refused: .*{said}")
                self.assertFalse(self.outcome(task)[1])

    def test_an_output_that_breaks_the_contract_of_its_task_may_be_tried_again(self) -> None:
        worker = self.worker()
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        self.begin(worker)
        for code in (-31024, -31025):
            self.fake.fault("tasks.complete", Refused(code, "No"))
            task = self.fake.offer("m")
            self.fake.until_status("failed", task)
            error, is_retryable = self.outcome(task)
            self.assertRegex(error, "the output was refused: ")
            self.assertTrue(is_retryable)

    def test_a_failure_that_is_refused_too_is_given_up(self) -> None:
        worker = self.worker(concurrency=2)
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        self.fake.fault("tasks.complete", Refused(-32700, "Parse error"))
        self.fake.fault("tasks.fail", Refused(-32602, "Invalid params"))
        task = self.fake.offer("m")
        self.begin(worker)
        self.fake.until(lambda: "tasks.fail" in self.fake.names())
        self.fake.until_status("completed", self.fake.offer("m"))
        self.assertEqual(self.fake.status(task), "in_progress")
        said = "the outcome was refused"
        self.fake.until(lambda: sum(said in r.getMessage() for r in self.records) == 2)
        self.assertEqual(len(self.fake.params_of("tasks.fail")), 1)

    def test_an_outage_does_not_count_as_failures_of_the_server(self) -> None:
        worker = self.worker()
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        failed = Refused(-32603, "Internal error")
        self.fake.fault("tasks.complete", *[Drop()] * _outcomes.INTERNAL_ERRORS_MAX, failed)
        with mock.patch.object(_outcomes, "AGAIN", SOON):
            task = self.fake.offer("m")
            self.begin(worker)
            self.fake.until_status("completed", task)

    def test_an_outcome_that_the_server_fails_to_take_is_given_up(self) -> None:
        worker = self.worker(concurrency=1)
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        failures = [Refused(-32603, "Internal error")] * _outcomes.INTERNAL_ERRORS_MAX
        self.fake.fault("tasks.complete", *failures)
        with mock.patch.object(_outcomes, "AGAIN", SOON):
            task = self.fake.offer("m")
            self.begin(worker)
            self.fake.until(lambda: self.fake.faults["tasks.complete"] == [])
            self.lease_ends(task)
            self.fake.until_status("completed", self.fake.offer("m"))
        self.assertEqual(len(self.fake.params_of("tasks.complete")), len(failures) + 1)

    def test_an_outcome_that_the_server_fails_to_take_is_given_up_with_its_lease(self) -> None:
        worker = self.worker(concurrency=1)
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        self.register(worker, "next", lambda input, ctx: {})
        self.fake.fault("tasks.renew", *[Drop()] * 100)
        self.fake.fault("tasks.complete", *[Refused(-32603, "Internal error")] * 7)
        task = self.fake.offer("m", lease_seconds=1)
        self.begin(worker)
        self.fake.until(lambda: any("could not be told" in r.getMessage() for r in self.records))
        self.assertLess(len(self.fake.params_of("tasks.complete")), 7)
        self.fake.faults.clear()
        self.lease_ends(task)
        self.fake.until_status("completed", self.fake.offer("next"))

    def test_an_outcome_that_a_proxy_refuses_is_given_up_with_its_lease(self) -> None:
        worker = self.worker(concurrency=1)
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        self.begin(worker)
        for error in (Foreign(403), Foreign(404), Refused(-32004, "Unauthorized", 401)):
            with self.subTest(repr(error)):
                self.records.clear()
                # Longer than the lease, which is renewed all the time.
                self.fake.fault("tasks.complete", *[error] * 50)
                task = self.fake.offer("m", lease_seconds=1)
                said = "could not be told"
                self.fake.until(lambda: any(said in r.getMessage() for r in self.records))
                self.assertLess(len(self.fake.faults.pop("tasks.complete")), 49)
                self.lease_ends(task)
                self.fake.until_status("completed", self.fake.offer("m"))

    def test_an_outcome_is_told_again_after_refusals_of_a_proxy_that_pass(self) -> None:
        worker = self.worker()
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        self.fake.fault("tasks.complete", *[Foreign(status) for status in (408, 429, 500, 404)])
        task = self.fake.offer("m")
        self.begin(worker)
        self.fake.until_status("completed", task)

    def test_a_worker_whose_token_is_revoked_ends(self) -> None:
        worker = self.worker(poll_seconds=0.2, grace_seconds=0)
        self.register(worker, "m", lambda input, ctx: {})
        thread = self.begin(worker)
        self.fake.until_status("completed", self.fake.offer("m"))
        self.fake.revoked = True
        thread.join(15)
        self.assertIsInstance(self.failure, taskledger.Unauthenticated)

    def test_a_worker_whose_token_is_replaced_goes_on(self) -> None:
        worker = self.worker(poll_seconds=0.2)
        self.register(worker, "m", lambda input, ctx: {})
        self.begin(worker)
        self.fake.until_status("completed", self.fake.offer("m"))
        self.fake.replaced_after = 1
        self.fake.revoked = True
        self.fake.until(lambda: any("cannot ask" in r.getMessage() for r in self.records))
        self.assertFalse(self.fake.revoked)
        self.fake.until_status("completed", self.fake.offer("m"))

    def test_steps_of_the_clock_change_nothing(self) -> None:
        worker = self.worker()
        begun, go = threading.Event(), threading.Event()
        self.register_waiting(worker, "m", begun, go)
        task = self.fake.offer("m", lease_seconds=1)
        self.begin(worker)
        self.assertTrue(begun.wait(10))
        for step in (3600, -3600):
            with mock.patch("time.time", lambda now=time.time, step=step: now() + step):
                before = len(self.fake.params_of("tasks.renew"))
                time.sleep(1.5)
                renewals = len(self.fake.params_of("tasks.renew")) - before
                self.assertTrue(3 <= renewals <= 10, renewals)
        go.set()
        self.fake.until_status("completed", task)
        self.assertEqual(self.fake.tasks[task]["attempt"], 1)

    def test_the_last_progress_is_told(self) -> None:
        worker = self.worker()
        begun, go = threading.Event(), threading.Event()
        told: list[Any] = []
        self.register_waiting(worker, "m", begun, go, told.append)
        # Renewed thrice a second, so that some renewals come while the server would drop progress.
        task = self.fake.offer("m", lease_seconds=1)
        self.begin(worker)
        self.assertTrue(begun.wait(10))
        told[0].progress(0.1, "first")
        self.fake.until(lambda: self.fake.tasks[task]["progress"] != [])
        self.fake.fault("tasks.renew", Drop(), busy())
        told[0].progress(0.2, "second")
        told[0].progress(0.3, "last \U0001f980\ud800")
        last = (0.3, "last \U0001f980?")
        self.fake.until(lambda: last in self.fake.tasks[task]["progress"], timeout=6)
        go.set()
        self.fake.until_status("completed", task)

    def test_an_output_that_is_refused_fails_the_task(self) -> None:
        worker = self.worker()
        self.register(worker, "m", lambda input, ctx: {"a": 1})
        fault = {"field": "output", "reason": "too large"}
        self.fake.fault("tasks.complete", Refused(-32602, "Invalid params", errors=[fault]))
        task = self.fake.offer("m")
        self.begin(worker)
        self.fake.until_status("failed", task)
        self.assertIn("output: too large", self.outcome(task)[0])
        self.assertFalse(self.outcome(task)[1])

    def test_a_refusal_of_the_claim_ends_the_worker(self) -> None:
        worker = self.worker()
        self.register(worker, "m", lambda input, ctx: {})
        self.fake.fault("tasks.claim", Refused(-32004, "Unauthorized", scope="worker"))
        self.begin(worker).join(10)
        self.assertIsInstance(self.failure, taskledger.Unauthorized)


def throw(error: Exception) -> Any:
    raise error
