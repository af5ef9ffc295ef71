"""Both clients against a server that drops, delays and refuses."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any

import taskledger
from taskledger import AsyncClient, Client, RetryPolicy

from .fake_server import Drop, FakeServer, Refused, Stream, busy

FAST = RetryPolicy(budget_seconds=5, initial_seconds=0.01, max_seconds=0.05)


class Blocking:
    """An ``AsyncClient`` that is used as a ``Client``, so that both go through the same tests."""

    def __init__(self, url: str, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.client = self._run(self._make(url, options))

    async def _make(self, url: str, options: dict[str, Any]) -> AsyncClient:
        return AsyncClient(url, **options)

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.client, name)

        async def collect(iterator: Any) -> list[Any]:
            return [item async for item in iterator]

        def call(*args: Any, **options: Any) -> Any:
            listed = ("list", "history", "workflows_list", "workflows_versions", "schedules_list")
            if name in listed:
                return self._run(collect(method(*args, **options)))
            return self._run(method(*args, **options))

        return call

    def events(self, **options: Any) -> Any:
        async def make() -> Any:
            return self.client.events(**options)

        stream = self._run(make())
        loop = self

        class Events:
            def __iter__(self) -> Any:
                return self

            def __next__(self) -> Any:
                async def one() -> Any:
                    async for event in stream:
                        return event
                    return None

                event = loop._run(one())
                if event is None:
                    raise StopIteration
                return event

            def close(self) -> None:
                loop._run(stream.close())

            @property
            def last_event_id(self) -> Any:
                return stream.last_event_id

        return Events()

    def close(self) -> None:
        self._run(self.client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Cases:
    """What both clients do. ``make`` builds one."""

    make: Callable[..., Any]

    def setUp(self) -> None:
        self.fake = FakeServer()
        self.addCleanup(self.fake.close)

    def client(self, **options: Any) -> Any:
        client = type(self).make(self.fake.url, **{"retry": FAST, **options})
        self.addCleanup(client.close)
        return client

    def test_a_connection_is_kept_and_replaced_when_it_was_closed(self) -> None:
        client = self.client()
        for _ in range(3):
            self.assertEqual(client.health(), {"status": "ok"})
        self.assertEqual(self.fake.connections, 1)

    def test_calls_are_repeated_under_one_key_until_answered(self) -> None:
        created: list[Any] = []
        self.fake.methods["tasks.create"] = lambda params: created.append(params) or {"id": "x"}
        self.fake.fault(
            "tasks.create", Drop(), busy(), busy(field="rate"), Refused(-32013, status=503)
        )
        self.fake.fault("tasks.create", Drop(), after=True)
        self.assertEqual(self.client().create("once"), {"id": "x"})
        keys = {call["metadata"]["idempotency_key"] for call in self.fake.calls}
        self.assertEqual((len(created), len(keys), len(self.fake.calls)), (1, 1, 6))

    def test_questions_and_answers_are_repeated_until_answered(self) -> None:
        self.fake.methods["tasks.suspend"] = lambda params: params
        self.fake.methods["tasks.respond"] = lambda params: params
        client = self.client()
        for method in ("tasks.suspend", "tasks.respond"):
            self.fake.fault(method, Drop(), busy())
            self.fake.fault(method, Drop(), after=True)
        self.assertEqual(client.suspend("t", "l", {"question": "?"})["task_id"], "t")
        self.assertEqual(client.respond("t", "s", True)["suspension_id"], "s")
        self.assertEqual(len(self.fake.params_of("tasks.suspend")), 4)
        self.assertEqual(len(self.fake.params_of("tasks.respond")), 4)
        answers = [call for call in self.fake.calls if call["method"] == "tasks.respond"]
        self.assertEqual(len({call["metadata"]["idempotency_key"] for call in answers}), 1)
        client.respond("t", "s", True, idempotency_key="mine")
        self.assertEqual(self.fake.calls[-1]["metadata"]["idempotency_key"], "mine")

    def test_what_could_happen_twice_is_not_repeated(self) -> None:
        self.fake.methods["tokens.create"] = lambda params: {"id": "x"}
        client = self.client()
        client.health()
        self.fake.fault("tokens.create", busy(field="rate"))
        self.assertEqual(client.call("tokens.create", {"name": "a"}), {"id": "x"})
        for fault in (Drop(), busy()):
            self.fake.fault("tokens.create", fault)
            with self.assertRaises((taskledger.TransportError, taskledger.Busy)):
                client.call("tokens.create", {"name": "a"})
        self.fake.fault("tokens.create", Drop())
        client.call("tokens.create", {"name": "a", "id": "b"})
        self.assertEqual(len(self.fake.params_of("tokens.create")), 6)

    def test_saved_workflow_documents(self) -> None:
        client = self.client()
        for name, given, options, params in [
            ("save", "a: b", {"strict": True}, {"document": "a: b", "strict": True}),
            ("get", "n", {"version": 2, "owner": ""}, {"name": "n", "version": 2, "owner": ""}),
            ("diff", "n", {"from_version": 1, "to_version": 2}, {"name": "n", "from": 1, "to": 2}),
            ("diff", "n", {"document": "a: b"}, {"name": "n", "document": "a: b"}),
            ("delete", "n", {"owner": "o"}, {"name": "n", "owner": "o"}),
            (
                "run",
                "n",
                {"trigger": {}, "execute": False, "user_id": "u", "labels": {"a": "b"}},
                None,
            ),
            ("dry_run", "a: b", {"outputs": {"p": {}}, "trigger": {"x": 1}}, None),
            ("progress", "id", {}, {"root_task_id": "id"}),
            ("schemas", "a: b", {"phase": "p"}, {"document": "a: b", "phase": "p"}),
            ("schemas", None, {"name": "n", "version": 1}, {"name": "n", "version": 1}),
        ]:
            with self.subTest(name):
                method, told = f"workflows.{name}", {"deleted": True, "phases": []}
                self.fake.methods[method] = lambda params, told=told: told
                self.fake.calls.clear()
                self.fake.fault(method, Drop())
                answer = getattr(client, f"workflows_{name}")(given, **options)
                unwrapped = {"delete": True, "schemas": []}
                self.assertEqual(answer, unwrapped.get(name, told))
                first = "document" if name == "dry_run" else "name"
                expected = {first: given, **options} if params is None else params
                self.assertEqual(self.fake.params_of(method), [expected] * 2)
                keys = {str(call.get("metadata")) for call in self.fake.calls}
                self.assertEqual((len(keys), keys == {"None"}), (1, name != "run"))

    def test_saved_workflow_documents_and_their_versions_are_listed_page_by_page(self) -> None:
        lists: dict[Any, Any] = {
            "0": {"workflows": [{"name": "a"}, {"name": "b"}], "next_after": "b"},
            "b": {"workflows": [{"name": "c"}], "next_after": None},
        }
        versions: dict[Any, Any] = {
            None: {"versions": [{"version": 3}, {"version": 2}], "next_before": 2},
            2: {"versions": [{"version": 1}], "next_before": None},
        }
        self.fake.methods["workflows.list"] = lambda params: lists[params.get("after")]
        self.fake.methods["workflows.versions"] = lambda params: versions[params.get("before")]
        client = self.client()
        names = [each["name"] for each in client.workflows_list(after="0", page_size=2)]
        self.assertEqual(names, ["a", "b", "c"])
        self.assertEqual(self.fake.params_of("workflows.list")[1], {"after": "b", "limit": 2})
        numbers = [each["version"] for each in client.workflows_versions("n", owner="o")]
        self.assertEqual(numbers, [3, 2, 1])
        self.assertEqual(
            self.fake.params_of("workflows.versions")[1],
            {"name": "n", "owner": "o", "before": 2, "limit": 100},
        )

    def test_schedules(self) -> None:
        client = self.client()
        tasks = [{"name": "poll", "schemas": {"method": "echo_executor"}}]
        workflow = {"name": "Report", "inputs": {"q": 1}}
        policy = {"overlap": "queue", "catch_up_seconds": 600, "jitter_seconds": 5, "max_runs": 3}
        zoned = {"cron": "0 2 * * *", "time_zone": "Europe/Berlin", "workflow": workflow}
        bounds = {"start_at": "2026-01-01T00:00:00Z", "end_at": "2027-01-01T00:00:00Z"}
        for name, options in [
            ("create", {"every_seconds": 60, "tasks": tasks, "paused": True, "note": "n"}),
            ("create", {**zoned, **policy, **bounds, "owner": "o"}),
            ("get", {"owner": ""}),
            ("update", {"rrule": "FREQ=DAILY", "without": ("end_at", "max_runs")}),
            ("update", {**zoned, **policy, "owner": "o"}),
            ("pause", {}),
            ("pause", {"paused": False, "note": "n", "owner": "o"}),
            ("delete", {"expected_version": 3}),
            ("run_now", {"overlap": "allow", "owner": "o"}),
        ]:
            with self.subTest(name):
                method, told = f"schedules.{name}", {"deleted": True, "name": "n"}
                self.fake.methods[method] = lambda params, told=told: told
                self.fake.calls.clear()
                is_repeated = name != "create"
                if is_repeated:
                    self.fake.fault(method, Drop())
                answer = getattr(client, f"schedules_{name}")("n", **options)
                self.assertEqual(answer, True if name == "delete" else told)
                expected: dict[str, Any] = {"name": "n", **options}
                if "without" in expected:
                    expected["without"] = ["end_at", "max_runs"]
                self.assertEqual(self.fake.params_of(method), [expected] * (1 + is_repeated))
                keys = {str(call.get("metadata")) for call in self.fake.calls}
                self.assertEqual((len(keys), keys == {"None"}), (1, name != "run_now"))

    def test_changes_of_schedules_that_could_be_refused_the_second_time_are_made_once(self) -> None:
        for name, options in (
            ("create", {"every_seconds": 60, "tasks": []}),
            ("update", {"expected_version": 1, "overlap": "skip"}),
        ):
            self.fake.methods[f"schedules.{name}"] = lambda params: {}
            self.fake.fault(f"schedules.{name}", Drop())
            with self.assertRaises(taskledger.TransportError):
                getattr(self.client(), f"schedules_{name}")("n", **options)
            self.assertEqual(len(self.fake.params_of(f"schedules.{name}")), 1)

    def test_schedules_are_listed_page_by_page(self) -> None:
        lists: dict[Any, Any] = {
            "0": {"schedules": [{"name": "a"}, {"name": "b"}], "next_after": "b"},
            "b": {"schedules": [{"name": "c"}], "next_after": None},
        }
        self.fake.methods["schedules.list"] = lambda params: lists[params.get("after")]
        listed = self.client().schedules_list(owner="o", after="0", page_size=2)
        self.assertEqual([each["name"] for each in listed], ["a", "b", "c"])
        self.assertEqual(
            self.fake.params_of("schedules.list")[1], {"owner": "o", "after": "b", "limit": 2}
        )

    def test_labels_choose_tasks_and_events(self) -> None:
        self.fake.methods["tasks.create"] = lambda params: params
        self.fake.methods["tasks.list"] = lambda params: {"tasks": []}
        client = self.client()
        created = client.create("x", labels={"team": "red"}, start_at="2026-01-01T00:00:00Z")
        self.assertEqual(
            created,
            {"name": "x", "labels": {"team": "red"}, "start_at": "2026-01-01T00:00:00Z"},
        )
        self.assertEqual([*client.list(labels={"team": "red", "batch": None})], [])
        self.assertEqual(
            self.fake.params_of("tasks.list")[0]["labels"], {"team": "red", "batch": None}
        )
        self.fake.streams.append(lambda stream: stream.event("p1", "e", {"id": "a"}))
        events = client.events(labels={"team": "red & blue", "empty": "", "batch": None})
        self.assertEqual(next(events).id, "p1")
        events.close()
        self.assertEqual(
            sorted(self.fake.opened[0][0]["label"]), ["batch", "empty=", "team=red & blue"]
        )

    def test_a_key_of_the_caller_is_sent(self) -> None:
        self.fake.methods["tasks.cancel"] = lambda params: params
        self.client().cancel("t", reason="why", idempotency_key="mine")
        self.assertEqual(self.fake.calls[0]["metadata"], {"idempotency_key": "mine"})
        self.assertEqual(self.fake.calls[0]["params"], {"task_id": "t", "reason": "why"})

    def test_waiting_ends_with_the_budget(self) -> None:
        self.fake.fault("system.health", *[busy(200)] * 20)
        client = self.client(retry=RetryPolicy(budget_seconds=0.5))
        with self.assertRaises(taskledger.Busy):
            client.health()
        self.assertTrue(2 <= len(self.fake.calls) <= 4)

    def test_a_server_that_is_away_is_waited_for(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
            client = type(self).make(url, retry=RetryPolicy(budget_seconds=0.3))
            self.addCleanup(client.close)
            begun = time.monotonic()
            with self.assertRaises(taskledger.TransportError):
                client.health()
            self.assertGreater(time.monotonic() - begun, 0.1)

    def test_an_answer_that_does_not_come_is_a_timeout(self) -> None:
        self.fake.methods["slow"] = lambda params: time.sleep(1.5)
        client = self.client(timeout=0.2, retry=RetryPolicy(budget_seconds=0))
        with self.assertRaises(taskledger.TimedOut):
            client.call("slow")

    def test_refusals_are_not_repeated(self) -> None:
        self.fake.fault("tasks.get", Refused(-32001, "Task not found", field="task_id"))
        with self.assertRaises(taskledger.TaskNotFound) as raised:
            self.client().get("x")
        self.assertEqual(raised.exception.data, {"field": "task_id"})
        self.assertEqual(len(self.fake.calls), 1)

    def test_large_answers_and_requests_arrive_whole(self) -> None:
        self.fake.methods["echo"] = lambda params: params
        params = {"text": "é🦀" * 300_000}
        self.assertEqual(self.client().call("echo", params), params)

    def test_pages_are_read_to_the_end(self) -> None:
        pages: dict[Any, Any] = {
            None: {"tasks": [{"id": 1}, {"id": 2}], "next_cursor": "c"},
            "c": {"tasks": [{"id": 3}]},
        }
        self.fake.methods["tasks.list"] = lambda params: pages[params.get("cursor")]
        tasks = [task["id"] for task in self.client().list(status="failed", page_size=2)]
        self.assertEqual(tasks, [1, 2, 3])
        self.assertEqual(
            self.fake.params_of("tasks.list")[1], {"status": "failed", "limit": 2, "cursor": "c"}
        )

    def test_the_token_goes_with_every_request(self) -> None:
        tokens = iter(["one", "two", "three"])
        client = self.client(token=lambda: next(tokens), headers={"X-Trace": "t"})
        client.health()
        client.health()
        sent = [(r["authorization"], r["x-trace"]) for r in self.fake.requests]
        self.assertEqual(sent, [("Bearer one", "t"), ("Bearer two", "t")])

    def test_streams_go_on_where_they_broke_off(self) -> None:
        def first(stream: Stream) -> None:
            stream.write("id: p0\nretry: 10\n: greeting\n\n")
            stream.event("p1", "task_status_update", {"id": "a", "task_id": "t"})
            stream.write("id: p2\nevent: task_compl")  # breaks off

        def second(stream: Stream) -> None:
            stream.event("p1", "task_status_update", {"id": "a", "task_id": "t"})
            stream.event("p2", "task_completed", {"id": "b", "task_id": "t", "result": {}})
            stream.end()

        def third(stream: Stream) -> None:
            stream.event("p9", "reset", {"reason": "archived", "cursor": "p9"})
            stream.event("p10", "task_failed", {"id": "c", "task_id": "t", "final": True})
            time.sleep(2)

        self.fake.streams += [first, second, third]
        events = self.client().events(flow="f", types=["task_failed"], start="beginning")
        got = []
        for event in events:
            got.append((event.type, event.id, event.final))
            if event.final:
                break
        self.assertEqual(events.last_event_id, "p10")
        events.close()
        self.assertEqual(
            got,
            [
                ("task_status_update", "p1", False),
                ("task_completed", "p2", False),
                ("reset", "p9", False),
                ("task_failed", "p10", True),
            ],
        )
        queries = [query for query, _ in self.fake.opened]
        self.assertEqual(queries[0]["from"], ["beginning"])
        self.assertEqual(["from" in query for query in queries], [True, False, False])
        places = [headers.get("last-event-id") for _, headers in self.fake.opened]
        self.assertEqual(places, [None, "p1", "p2"])

    def test_a_place_is_known_before_the_first_event(self) -> None:
        self.fake.streams.append(lambda stream: stream.write("id: p0\n\n"))
        self.fake.streams.append(lambda stream: stream.event("p1", "e", {"id": "a"}))
        events = self.client().events()
        self.assertEqual(next(events).id, "p1")
        events.close()
        self.assertEqual(self.fake.opened[1][1]["last-event-id"], "p0")

    def test_streams_end_with_one_connection_if_asked(self) -> None:
        def script(stream: Stream) -> None:
            stream.event("p1", "e", {"id": "a"})
            stream.end()

        self.fake.streams.append(script)
        events = self.client().events(reconnect=False)
        self.assertEqual([event.id for event in events], ["p1"])

    def test_runs_are_waited_for(self) -> None:
        states = iter(["running", "running", "completed"])
        ended = threading.Event()

        def get(params: dict[str, Any]) -> Any:
            run = {"id": "r", "state": next(states), "counts": {"completed": 1}}
            return {"id": "t", "root_task_id": "t", "status": "x", "run": run, "result": {"y": 1}}

        def script(stream: Stream) -> None:
            stream.write("id: p0\n\n")
            ended.wait(10)
            stream.event("p1", "task_status_update", {"id": "a", "task_id": "t", "final": True})
            time.sleep(1)

        self.fake.streams.append(script)
        self.fake.methods["tasks.get"] = get
        self.fake.methods["tasks.execute"] = lambda params: {
            "root_task_id": "t",
            "run_id": "r",
            "task_ids": {"a": "t"},
        }
        threading.Timer(0.2, ended.set).start()
        run = self.client().execute_and_wait([{"name": "a"}], timeout=10)
        self.assertEqual((run.state, run.result, run.task_ids), ("completed", {"y": 1}, {"a": "t"}))
        self.assertIs(run.raise_for_state(), run)

    def test_waiting_for_a_run_ends_in_time(self) -> None:
        self.fake.streams.append(lambda stream: (stream.write(": x\n\n"), time.sleep(3)))
        run = {"id": "r", "state": "running"}
        self.fake.methods["tasks.get"] = lambda params: {"root_task_id": "t", "run": run}
        with self.assertRaises(taskledger.TimedOut):
            self.client().wait("t", timeout=0.3)


class SyncClient(Cases, unittest.TestCase):
    make = staticmethod(Client)

    def test_many_threads_share_a_client(self) -> None:
        client = self.client()
        threads = [threading.Thread(target=client.health) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.fake.calls), 40)

    def test_a_stream_is_closed_from_another_thread(self) -> None:
        self.fake.streams.append(lambda stream: (stream.write(": x\n\n"), time.sleep(5)))
        events = self.client().events()
        threading.Timer(0.2, events.close).start()
        begun = time.monotonic()
        self.assertEqual([*events], [])
        self.assertLess(time.monotonic() - begun, 3)


class AsynchronousClient(Cases, unittest.TestCase):
    make = staticmethod(Blocking)


class RawAnswers(unittest.IsolatedAsyncioTestCase):
    """Answers that are HTTP, but not as the server writes it."""

    async def ask(self, *pieces: bytes, then_close: bool = False) -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)
            if not then_close:
                await reader.read()
            writer.close()
            done.set()

        done = asyncio.Event()
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            async with AsyncClient(url, timeout=20, retry=RetryPolicy(budget_seconds=0)) as client:
                return await client.call("tasks.get")
        finally:
            server.close()
            await done.wait()
            await asyncio.sleep(0)

    async def test_chunks_trailers_and_continuations(self) -> None:
        whole = (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b'8;ext=1\r\n{"result\r\n00004\r\n": 7\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n'
        )
        self.assertEqual(await self.ask(whole), 7)
        self.assertEqual(await self.ask(*[bytes([byte]) for byte in whole]), 7)

    async def test_an_answer_that_ends_with_its_connection(self) -> None:
        whole = b'HTTP/1.0 200 OK\r\n\r\n{"result": 7}'
        self.assertEqual(await self.ask(whole, then_close=True), 7)

    async def test_broken_answers(self) -> None:
        for whole, error in [
            (b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{", taskledger.TransportError),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
                taskledger.TransportError,
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nz\r\n",
                taskledger.ProtocolError,
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{}\r\n",
                taskledger.ProtocolError,
            ),
            (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", taskledger.ProtocolError),
            (b"SSH-2.0-x\r\n\r\n", taskledger.ProtocolError),
            (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 200_000, taskledger.ProtocolError),
            (b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", taskledger.TransportError),
        ]:
            with self.subTest(whole[:80]), self.assertRaises(error):
                await self.ask(whole, then_close=True)


if __name__ == "__main__":
    unittest.main()
