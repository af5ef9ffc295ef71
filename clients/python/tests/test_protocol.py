"""What needs no server: parsing, errors, settings, leases, outcomes."""

from __future__ import annotations

import inspect
import json
import logging
import os
import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any
from unittest import mock

import taskledger
from taskledger import _outcomes, _protocol, _sse, _work
from taskledger._calls import Calls
from taskledger._calls_async import AsyncCalls


def claim(**context: object) -> dict:
    return {
        "task": {"id": "t", "schemas": {"method": "m"}},
        "input": {},
        "context": context,
        "lease": {"token": "l", "attempt": 1, "expires_at": "", "lease_seconds": 30},
    }


class InterruptedHold(_work.Hold):
    """Another thread runs ``between``, once, just after what was said has been read."""

    between = None

    @property
    def _said(self):
        said = self.__dict__.get("said")
        if self.between is not None:
            self.thread = threading.Thread(target=self.between)
            self.between = None
            self.thread.start()
            self.thread.join(0.3)
        return said

    @_said.setter
    def _said(self, said):
        self.__dict__["said"] = said


class Streams(unittest.TestCase):
    TEXT = (
        "\ufeffid: 1\nretry: 1500\n: a comment\n\n"
        'id: 2\r\nevent: task_completed\r\ndata: {"a":\r\ndata:1}\r\n\r\n'
        "data: é\u2028x\r\rid: 3\n\nid: 4\ndata: lost"
    ).encode()

    def test_messages_do_not_depend_on_how_bytes_are_cut(self) -> None:
        for size in range(1, len(self.TEXT) + 1):
            parser = _sse.Parser()
            got = []
            for k in range(0, len(self.TEXT), size):
                got += parser.feed(self.TEXT[k : k + size])
            self.assertEqual(
                got,
                [
                    _sse.Message("task_completed", '{"a":\n1}', "2"),
                    _sse.Message("message", "é\u2028x", "2"),
                ],
                size,
            )
            self.assertEqual((parser.last_event_id, parser.retry_seconds), ("3", 1.5))

    def test_notices_that_come_again_after_a_reconnect_are_left_out(self) -> None:
        resumption = _sse.Resumption(flow="f", types=("task_failed",), start="beginning")
        self.assertEqual(resumption.request()[0], "/events?flow=f&types=task_failed&from=beginning")
        one = b'id: 1\nevent: e\ndata: {"id":"a"}\n\n'
        self.assertEqual(len([*resumption.feed(one + b"id: 2\ndata: {")]), 1)
        path, headers = resumption.request()
        self.assertEqual(
            (path, headers["last-event-id"]), ("/events?flow=f&types=task_failed", "1")
        )
        self.assertEqual([*resumption.feed(one)], [])


class Answers(unittest.TestCase):
    def answer(self, status: int = 200, **members: object) -> object:
        return _protocol.decode(status, json.dumps({"jsonrpc": "2.0", "id": 1, **members}).encode())

    def test_errors_have_a_class_for_each_code(self) -> None:
        fault = {"field": "task_id", "reason": "Invalid UUID format", "expected": "a UUID v4"}
        for code, data, status, expected in [
            (-32001, {}, 200, taskledger.TaskNotFound),
            (-32602, {"errors": [fault]}, 200, taskledger.InvalidParams),
            (-32013, {"field": "server", "retry_after_ms": 1500}, 503, taskledger.Busy),
            (-32013, {"field": "rate", "retry_after_ms": 20}, 429, taskledger.RateLimited),
            (-32004, {}, 200, taskledger.Unauthorized),
            (-32004, {}, 401, taskledger.Unauthenticated),
            (-31010, {"reason": "lost"}, 200, taskledger.LeaseNotHeld),
            (-31011, {"suspension_id": None}, 200, taskledger.NotSuspended),
            (-31012, {}, 200, taskledger.WorkflowNotFound),
            (-31013, {"version": 2}, 200, taskledger.WorkflowChanged),
            (-31021, {"invalid_refs": ["a.b"]}, 200, taskledger.InputWiringError),
            (-31022, {"unresolvable_refs": ["a.b"]}, 200, taskledger.UnresolvableInputError),
            (-31024, {"missing_keys": ["n"]}, 200, taskledger.MissingOutputError),
            (-31025, {"key": "n"}, 200, taskledger.OutputTypeMismatchError),
            (-39999, None, 200, taskledger.RpcError),
        ]:
            with self.assertRaises(taskledger.RpcError) as raised:
                self.answer(status, error={"code": code, "message": "said", "data": data})
            error = raised.exception
            self.assertIs(type(error), expected)
            self.assertEqual((error.code, error.http_status), (code, status))
        self.assertEqual(error.data, {})
        error = taskledger.RpcError.of(-32602, "Invalid params", {"errors": [fault]})
        self.assertEqual(error.violations, [fault])
        self.assertIn("task_id: Invalid UUID format, expected a UUID v4", str(error))
        self.assertEqual(
            taskledger.RpcError.of(-32013, "", {"retry_after_ms": 1500}).retry_after, 1.5
        )
        self.assertEqual(taskledger.RpcError.of(-31010, "", {"reason": "lost"}).reason, "lost")
        missing = taskledger.RpcError.of(-31024, "", {"missing_keys": ["n"], "phase_name": "p"})
        self.assertEqual((missing.missing_keys, missing.phase_name), (["n"], "p"))

    def test_what_is_no_answer_is_told_apart_from_a_proxy_without_a_server(self) -> None:
        self.assertEqual(self.answer(result={"x": 1}), {"x": 1})
        with self.assertRaises(taskledger.TransportError):
            _protocol.decode(502, b"<html>Bad gateway</html>")
        with self.assertRaises(taskledger.ProtocolError):
            _protocol.decode(200, b"[]")


class Requests(unittest.TestCase):
    def test_calls_that_change_tasks_get_a_key(self) -> None:
        for method, has in [
            ("tasks.create", True),
            ("tasks.respond", True),
            ("workflows.create", True),
            ("webhooks.create", False),
            ("tasks.get", False),
            ("tasks.claim", False),
            ("workers.declare", False),
            ("new", False),
        ]:
            body = json.loads(_protocol.encode(method, {}, idempotency_key=None))
            self.assertEqual("metadata" in body, has, method)

    def test_calls_that_are_repeated(self) -> None:
        for method, params, key, expected in [
            ("tasks.create", {}, None, True),
            ("tasks.claim", {}, None, True),
            ("tasks.suspend", {}, None, True),
            ("tasks.respond", {}, None, True),
            ("workflows.create", {}, None, True),
            ("workflows.validate", {}, None, True),
            ("workers.drain", {}, None, True),
            ("tokens.create", {}, None, False),
            ("tokens.create", {"id": "a"}, None, True),
            ("new", {}, None, False),
            ("new", {}, "key", True),
        ]:
            self.assertIs(_protocol.is_repeatable(method, params, key), expected, method)

    def test_what_json_cannot_say_is_refused_before_it_is_sent(self) -> None:
        for value in (float("nan"), "\ud800"):
            with self.assertRaises(ValueError):
                _protocol.encode("m", {"x": value}, idempotency_key=None)
        with self.assertRaises(TypeError):
            _protocol.encode("m", {"x": object()}, idempotency_key=None)

    def test_times_are_written_as_text_if_they_have_a_time_zone(self) -> None:
        def sent(at: Any) -> Any:
            params = {"start_at": at, "tasks": [{"params": {"deadline": at}}]}
            params = json.loads(_protocol.encode("m", params, idempotency_key=None))["params"]
            self.assertEqual(params["tasks"][0]["params"]["deadline"], params["start_at"])
            return params["start_at"]

        zone = timezone(timedelta(hours=2))
        at = datetime(2027, 1, 2, 9, 30, tzinfo=zone)
        self.assertEqual(sent(at), "2027-01-02T07:30:00Z")
        self.assertEqual(sent(at.replace(microsecond=5)), "2027-01-02T07:30:00.000005Z")
        with self.assertRaisesRegex(ValueError, "has no time zone: expected an aware `datetime`"):
            sent(datetime(2027, 1, 2, 9, 30))
        with self.assertRaisesRegex(TypeError, "is a day, not a time"):
            sent(at.date())

    def test_urls_and_tokens(self) -> None:
        parse = _protocol.Endpoint.parse
        self.assertEqual(parse("https://[::1]/x/").authority, "[::1]")
        self.assertEqual(parse("https://[::1]/x/").prefix, "/x")
        self.assertEqual(parse("http://host:81").authority, "host:81")
        for wrong in ("host:8000", "ftp://host", "http://u:p@host", "http://host?x", "http://"):
            with self.assertRaises(ValueError):
                parse(wrong)
        with self.assertRaisesRegex(ValueError, "insecure_token"):
            taskledger.Client("http://example.com", token="secret")
        for name in ("Authorization", "cookie"):
            with self.assertRaisesRegex(ValueError, f"the header {name} is not sent to"):
                taskledger.Client("http://example.com", headers={name: "secret"})
        taskledger.Client("http://example.com", headers={"x-team": "a"})
        taskledger.Client("http://example.com", token="secret", insecure_token=True)
        taskledger.Client("https://example.com", token="secret")
        with mock.patch.dict(
            os.environ, {"TASKLEDGER_TOKEN": "t", "TASKLEDGER_URL": "http://[::1]:1"}
        ):
            headers = taskledger.Client()._pool._settings.request_headers({})
        self.assertEqual((headers["authorization"], headers["host"]), ("Bearer t", "[::1]:1"))
        with self.assertRaises(ValueError):
            taskledger.Client(token=lambda: "a\r\nb")._pool._settings.request_headers({})

    def test_loopback_is_known_in_each_form_of_an_address(self) -> None:
        for host, expected in [
            ("localhost", True),
            ("127.0.0.1", True),
            ("127.8.9.10", True),
            ("[::1]", True),
            ("[::ffff:127.0.0.1]", True),
            ("[::ffff:7f00:1]", True),
            ("[::ffff:10.0.0.1]", False),
            ("[::127.0.0.1]", False),
            ("10.0.0.1", False),
            ("localhost.example.com", False),
        ]:
            endpoint = _protocol.Endpoint.parse(f"http://{host}:1")
            self.assertIs(endpoint.is_loopback, expected, host)

    def test_leases_are_renewed_while_a_cancellation_is_told(self) -> None:
        def seconds(lease: float, params: Any) -> float:
            given = claim()
            given["task"]["params"] = params
            given["lease"]["lease_seconds"] = lease
            with mock.patch("random.uniform", return_value=1.0):
                hold = _work.Hold(given)
            return round(hold.due_at - hold.begun_at, 3)

        for lease, params, expected in [
            (60, None, 10),
            (15, {}, 5),
            (60, {"cancel_grace_seconds": 6}, 2),
            (60, {"cancel_grace_seconds": 0}, 1),
            (3600, {"cancel_grace_seconds": 3600}, 1200),
        ]:
            self.assertEqual(seconds(lease, params), expected, (lease, params))

    def test_progress_that_is_none_is_refused_with_what_would_be_taken(self) -> None:
        hold = _work.Hold(claim())
        for wrong, message, kind, said in [
            ("half", None, TypeError, "a number from 0 to 1, got 'half'; a text is given as `mess"),
            (True, None, TypeError, "a number from 0 to 1, got True"),
            (7, None, ValueError, "progress is 0 to 1, got 7"),
            (float("nan"), None, ValueError, "progress is 0 to 1, got nan"),
            (0.5, 7, TypeError, "message is a text, got 7"),
        ]:
            with self.assertRaisesRegex(kind, said):
                hold.say(wrong, message)  # type: ignore[arg-type]
        self.assertEqual(hold.take(time.monotonic()), {})
        hold.say(1, None)
        self.assertEqual(hold.take(time.monotonic()), {"progress": 1})

    def test_workers_take_the_server_in_one_way(self) -> None:
        url = "http://127.0.0.1:1/x"

        def shown(worker: Any) -> tuple[str, str | None]:
            settings = worker.client._pool._settings
            return settings.endpoint.authority, settings.request_headers({}).get("authorization")

        for worker, client in [
            (taskledger.Worker, taskledger.Client),
            (taskledger.AsyncWorker, taskledger.AsyncClient),
        ]:
            expected = ("127.0.0.1:1", "Bearer t")
            self.assertEqual(shown(worker(url=url, token="t")), expected)
            self.assertEqual(shown(worker(url, token=lambda: "t")), expected)
            self.assertEqual(shown(worker(client(url, token="t"))), expected)
            with self.assertRaisesRegex(ValueError, "not both"):
                worker(url, url=url)
            for own in ({"url": url}, {"token": "t"}):
                with self.assertRaisesRegex(ValueError, "has its own"):
                    worker(client(url), **own)
            with self.assertRaisesRegex(ValueError, "insecure_token"):
                worker(url="http://192.0.2.2", token="t")

    def test_pauses_double_and_respect_the_server(self) -> None:
        policy = taskledger.RetryPolicy(initial_seconds=1, max_seconds=4)
        for failures, most in [(1, 1), (2, 2), (3, 4), (9, 4), (10_000, 4)]:
            self.assertTrue(most / 2 <= policy.pause(failures) <= most)
        self.assertEqual(policy.pause(1, 30), 30)

    def test_both_clients_have_the_same_methods(self) -> None:
        def shape(of: type) -> dict[str, str]:
            methods = inspect.getmembers(of, inspect.isfunction)
            return {
                name: str(inspect.signature(f)).replace("Async", "")
                for name, f in methods
                if not name.startswith("_")
            }

        self.assertEqual(shape(Calls), shape(AsyncCalls))
        both = {*shape(taskledger.Client)} ^ {*shape(taskledger.AsyncClient)}
        self.assertEqual(both, set())


class Work(unittest.TestCase):
    def test_leases_are_renewed_at_a_third_and_when_the_time_is_up(self) -> None:
        hold = _work.Hold(claim())
        self.assertTrue(8 < hold.due_at - hold.begun_at <= 10)
        hold = _work.Hold(claim(timeout_seconds=2.0))
        self.assertTrue(2 < hold.due_at - hold.begun_at < 3)
        hold.renewed(hold.begun_at + 2.1)
        self.assertTrue(3 <= hold.due_at - hold.begun_at < 3.1, "a busy server is asked again")
        with_deadline = claim(deadline="2026-01-15T10:30:04.500000Z")
        with_deadline["lease"]["expires_at"] = "2026-01-15T10:30:30.000000Z"
        hold = _work.Hold(with_deadline)
        self.assertTrue(4.5 < hold.due_at - hold.begun_at < 4.6, "by the clock of the server")
        now = time.monotonic()
        self.assertFalse(hold.not_renewed(now, {"progress": 0.5}))
        self.assertTrue(hold.due_at <= now + 3)
        self.assertEqual(hold.take(now), {"progress": 0.5})
        self.assertTrue(hold.not_renewed(now + 31, {}))

    def test_progress_is_bounded(self) -> None:
        hold = _work.Hold(claim())
        for wrong in (-0.1, 1.1, float("nan")):
            with self.assertRaises(ValueError):
                hold.say(wrong, None)
        hold.say(0.1, "a")
        hold.say(None, "b" * 2000)
        self.assertEqual(hold.take(0), {"progress": 0.1, "message": "b" * 1000})

    def test_messages_are_text_of_whole_characters(self) -> None:
        for said, sent in (("\U0001f980" * 1500, "\U0001f980" * 1000), ("a\ud800b", "a?b")):
            hold = _work.Hold(claim())
            hold.say(None, said)
            self.assertEqual(hold.take(0), {"message": sent})
        for text, end in (("x" * 65535 + "\U0001f980", "x" * 65535), ("\udc00", "?")):
            self.assertEqual(_outcomes.of_error(taskledger.Final(text)).error, end)

    def test_what_is_said_while_a_renewal_takes_it_is_whole(self) -> None:
        hold = _work.Hold(claim())
        taken = []

        def interrupted(text: str, well_formed=_work.well_formed) -> str:
            taken.append(hold.take(0))
            return well_formed(text)

        with mock.patch.object(_work, "well_formed", interrupted):
            hold.say(0.1, "a")
        self.assertEqual(taken, [{}])
        self.assertEqual(hold.take(0), {"progress": 0.1, "message": "a"})

    def test_nothing_that_is_said_at_the_same_time_is_lost(self) -> None:
        news = {"progress": 0.2, "message": "new"}
        for first in (
            lambda hold: hold.not_renewed(0, {"progress": 0.1}),
            lambda hold: hold.say(None, "old"),
            lambda hold: hold.take(0),
        ):
            hold = InterruptedHold(claim())
            hold.say(0.1, None)
            hold.between = lambda hold=hold: hold.say(0.2, "new")
            first(hold)
            hold.thread.join(10)
            self.assertEqual(hold.take(time.monotonic() + 2), news)

    def test_progress_waits_until_the_server_records_it(self) -> None:
        hold = _work.Hold(claim())
        hold.say(0.1, None)
        self.assertEqual(hold.take(time.monotonic()), {"progress": 0.1})
        hold.say(0.2, "two")
        hold.say(0.3, None)
        hold.renewed(time.monotonic())
        now = time.monotonic()
        self.assertTrue(0.9 < hold.due_at - now <= 1.05)
        self.assertEqual(hold.take(now + 0.9), {}, "a renewal for the lease says nothing")
        self.assertEqual(hold.take(now + 1.1), {"progress": 0.3, "message": "two"})
        # Whether the server has recorded it is unknown: its second may begin only now.
        hold.not_renewed(time.monotonic(), {"progress": 0.3, "message": "two"})
        self.assertEqual(hold.take(time.monotonic() + 0.9), {})
        self.assertEqual(hold.take(time.monotonic() + 1.1), {"progress": 0.3, "message": "two"})

    def test_what_handlers_return_and_raise(self) -> None:
        self.assertEqual(_outcomes.of_value(None), _outcomes.Outcome("complete", output={}))
        self.assertEqual(_outcomes.of_value({"a": 1}).output, {"a": 1})
        for wrong in ([], {"a": float("inf")}, {"a": object()}):
            outcome = _outcomes.of_value(wrong)
            self.assertEqual((outcome.kind, outcome.retryable), ("fail", False))
        deep: dict[str, Any] = {"a": 1}
        for _ in range(99):
            deep = {"a": deep}
        wide = {"a": [{"b": [k]} for k in range(200)]}
        for right in (deep, wide):
            self.assertEqual(_outcomes.of_value(right).kind, "complete")
        deepest = deeper = {"a": (deep,)}
        for _ in range(100_000):
            deepest = {"a": deepest}
        for wrong, said in [
            (deeper, "more than 100 levels deep: at most 100 levels"),
            (deepest, "too deep: at most 100 levels"),
            ({"a": "\ud800"}, r"has text with the lone surrogate '\\ud800', expected Unicode text"),
            ({"\udfff": 1}, "lone surrogate"),
            ({"a": float("nan")}, "expected objects, arrays, texts, finite numbers"),
            ({"a": "x" * 1024 * 1024}, "bytes of JSON: at most 1048576 are accepted"),
            ([], "a value of type `list`, expected a dictionary"),
        ]:
            outcome = _outcomes.of_value(wrong)
            self.assertEqual((outcome.kind, outcome.retryable), ("fail", False))
            self.assertRegex(outcome.error, said)
        asked = taskledger.Suspend("Which?", response_type="confirm")
        self.assertEqual(_outcomes.of_error(asked).kind, "suspend")
        asked.request = ["Which?"]  # type: ignore[assignment]
        outcome = _outcomes.of_error(asked)
        self.assertEqual((outcome.kind, outcome.retryable), ("fail", False))
        self.assertRegex(outcome.error, "the question is a value of type `list`")
        self.assertEqual(_outcomes.of_error(KeyError("x")).error, "KeyError: 'x'")
        self.assertEqual(_outcomes.of_error(ValueError()).error, "ValueError")
        self.assertTrue(_outcomes.of_error(taskledger.Retryable("later")).retryable)
        self.assertFalse(_outcomes.of_error(taskledger.Final("never")).retryable)
        lease: Any = {"token": "l"}
        rejected = _outcomes.of_error(taskledger.Rejected("not mine"))
        expected = {"task_id": "t", "lease": "l", "error": "not mine", "rejected": True}
        self.assertEqual((rejected.method, rejected.params("t", lease)), ("tasks.fail", expected))
        self.assertEqual(_outcomes.of_error(taskledger.Rejected()).error, "Rejected")
        long = _outcomes.of_error(taskledger.Final("é" * 65536)).error
        self.assertEqual(long, "é" * 32768)

    def test_outcomes_of_attempts_that_were_told_to_stop(self) -> None:
        done, error = _outcomes.of_value({}), _outcomes.of_error(OSError())
        for outcome, reason, gave_in, kind in [
            (done, None, False, "complete"),
            (done, "cancelled", False, "drop"),
            (error, "lost", False, "drop"),
            (done, "shutdown", False, "complete"),
            (error, "shutdown", False, "release"),
            (error, "shutdown", True, "release"),
            (_outcomes.final("x"), "shutdown", False, "fail"),
            (done, "expired", False, "complete"),
            (error, "expired", True, "drop"),
        ]:
            self.assertEqual(_outcomes.verdict(outcome, reason, gave_in=gave_in).kind, kind, reason)

    def test_slots_are_shared_between_polls(self) -> None:
        options = taskledger.Worker(concurrency=64)._options
        self.assertEqual((options.pollers, options.share(64, 4), options.share(1, 3)), (2, 16, 1))
        self.assertEqual(options.share(500, 1), 100)
        for wrong in ({"concurrency": 0}, {"lease_seconds": 4}, {"poll_seconds": 61}, {"name": ""}):
            with self.assertRaises(ValueError):
                taskledger.Worker(**wrong)

    def test_records_as_json(self) -> None:
        record = logging.makeLogRecord(
            {"msg": "done in %d", "args": (3,), "levelname": "INFO", "name": "n", "task_id": "t"}
        )
        line = json.loads(taskledger.JsonFormatter().format(record))
        self.assertEqual((line["message"], line["task_id"]), ("done in 3", "t"))


if __name__ == "__main__":
    unittest.main()
