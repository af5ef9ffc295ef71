"""The package against the real server, which ``TASKLEDGER_BIN`` names."""

from __future__ import annotations

import asyncio
import collections
import os
import re
import threading
import time
import unittest
from typing import Any, get_args
from unittest import mock

import taskledger
from taskledger import (
    AsyncClient,
    AsyncWorker,
    Client,
    Final,
    InvalidParams,
    NotSuspended,
    RetryPolicy,
    Suspend,
    Worker,
)
from taskledger.schedules import Schedule, ScheduleRun
from taskledger.types import EventType

from .real_refusals import Refusals, check_revocation
from .real_server import BINARY, OnServer, RealServer, remote

__all__ = ["Refusals"]  # its tests are run with those here


class Clients(OnServer):
    def test_a_life_of_tasks(self) -> None:
        client = self.client
        self.assertEqual(client.health()["status"], "ok")
        self.assertEqual(client.whoami()["kind"], "anonymous")
        self.assertIn("echo_executor", [e["name"] for e in client.executors()])
        created = client.create(
            "root",
            children=[{"name": "a", "schemas": {"method": "echo_executor"}}],
        )
        root = created["id"]
        self.assertEqual(client.tree(root)["children"][0]["task"]["name"], "a")
        self.assertEqual([task["name"] for task in client.children(root)], ["a"])
        client.update(root, name="renamed", priority=0)
        self.assertEqual(client.get(root)["name"], "renamed")
        copy = client.copy(root, copy_children=True)["copied_task_id"]
        client.delete(copy, cascade=True)
        with self.assertRaises(taskledger.TaskNotFound):
            client.get(copy)
        run = client.execute_and_wait(task_id=root, timeout=20).raise_for_state()
        self.assertEqual(run.counts["completed"], 1)
        self.assertIn("task_id", client.explain(root))
        types = [event["type"] for event in client.history(root, scope="flow", page_size=2)]
        self.assertIn("run_ended", types)
        with self.assertRaises(taskledger.InvalidTransition):
            client.cancel(root)

    def test_faults_are_told_all_at_once(self) -> None:
        with self.assertRaises(taskledger.InvalidParams) as raised:
            self.client.call("tasks.create", {"name": "", "priority": 9, "x": 1})
        fields = {fault["field"] for fault in raised.exception.violations}
        self.assertEqual(fields, {"name", "priority", "x"})
        with self.assertRaises(taskledger.ExecutorNotFound):
            self.client.execute([{"name": "x", "schemas": {"method": "nobody"}}])

    def test_a_key_makes_a_call_happen_once(self) -> None:
        first = self.client.create("x", idempotency_key="one key")
        self.assertEqual(self.client.create("x", idempotency_key="one key"), first)
        with self.assertRaises(taskledger.InvalidParams):
            self.client.create("y", idempotency_key="one key")

    def test_lists_of_many_pages(self) -> None:
        names = {f"page-{k}" for k in range(25)}
        for name in names:
            self.client.create(name, user_id="pages")
        listed = [task["name"] for task in self.client.list(user_id="pages", page_size=10)]
        self.assertEqual((len(listed), {*listed}), (25, names))

    def test_a_run_that_fails(self) -> None:
        task = {
            "name": "x",
            "schemas": {"method": "sleep_executor"},
            "inputs": {"duration_ms": 60000},
            "params": {"timeout_seconds": 0.1},
        }
        run = self.client.execute_and_wait([task], timeout=90)
        self.assertEqual(run.state, "failed")
        with self.assertRaises(taskledger.RunFailed):
            run.raise_for_state()

    def test_saved_workflow_documents(self) -> None:
        client = self.client
        phase = "{assign: a, inputs: {q: $trigger.q}, outputs: {n: number}}"
        document = f"openintent: '1.0'\ninfo: {{name: Saved}}\nworkflow:\n  fetch: {phase}\n"
        self.assertTrue(client.workflows_save(document)["created"])
        saved = client.workflows_save(document.replace("number", "string"))
        self.assertEqual((saved["version"], saved["breaking"]), (2, 1))
        self.assertEqual(client.workflows_get("Saved", version=1)["document"], document)
        listed = [(each["name"], each["version"]) for each in client.workflows_list(page_size=1)]
        self.assertEqual(listed, [("Saved", 2)])
        diff = client.workflows_diff("Saved", from_version=1, to_version=2)
        paths = [change["path"] for change in diff["changes"]]
        self.assertEqual(paths, ["workflow.fetch.outputs.n"])
        self.assertEqual(client.workflows_diff("Saved", document=document)["to"], None)
        played = client.workflows_dry_run(document, trigger={"q": 1}, outputs={"fetch": {"n": 2}})
        self.assertEqual(played["phases"], [{"phase": "fetch", "status": "completed"}])
        run = client.workflows_run("Saved", version=1, trigger={"q": 1}, labels={"team": "data"})
        self.assertEqual(client.get(run["root_task_id"])["labels"], {"team": "data"})
        self.assertEqual(run["version"], 1)
        self.assertEqual(client.workflows_progress(run["root_task_id"])["counts"]["total"], 1)
        of = client.workflows_progress(run["root_task_id"])["workflow"]
        self.assertEqual((of["name"], of["saved_version"]), ("Saved", 1))
        with self.assertRaises(taskledger.WorkflowChanged) as raised:
            client.workflows_delete("Saved", expected_version=1)
        self.assertEqual(raised.exception.version, 2)
        with self.assertRaises(taskledger.WorkflowChanged):
            client.workflows_save(document, expected_version=0)
        self.assertTrue(client.workflows_delete("Saved", expected_version=2))
        events = [each["event"] for each in client.workflows_versions("Saved", page_size=1)]
        self.assertEqual(events, ["deleted", "saved", "saved"])
        with self.assertRaises(taskledger.WorkflowNotFound):
            client.workflows_run("Saved")

    def test_schedules(self) -> None:
        client = self.client
        tasks = [{"name": "poll", "schemas": {"method": "echo_executor"}}]
        made = client.schedules_create(
            "nightly", cron="0 2 * * *", time_zone="Europe/Berlin", tasks=tasks, note="n"
        )
        self.assertEqual((made["version"], made["overlap"], len(made["next"])), (1, "skip", 5))
        self.assertEqual({*made} - {*Schedule.__annotations__}, {"next", "runs"})
        with self.assertRaises(taskledger.ScheduleChanged) as raised:
            client.schedules_create("nightly", every_seconds=60, tasks=tasks)
        self.assertEqual(raised.exception.version, 1)
        client.schedules_create("weekly", rrule="FREQ=WEEKLY", max_runs=2, tasks=tasks)
        client.schedules_update("weekly", overlap="allow", without=["max_runs"])
        with self.assertRaises(taskledger.ScheduleChanged):
            client.schedules_update("weekly", jitter_seconds=5, expected_version=1)
        changed = client.schedules_update("weekly", jitter_seconds=5, expected_version=2)
        self.assertEqual((changed["max_runs"], changed["jitter_seconds"]), (None, 5))
        names = [each["name"] for each in client.schedules_list(page_size=1)]
        self.assertEqual(names, ["nightly", "weekly"])
        self.assertTrue(client.schedules_pause("nightly", note="until Monday")["paused"])
        run = client.schedules_run_now("nightly", idempotency_key="by hand")
        self.assertEqual((run["by_hand"], run["outcome"]), (True, "started"))
        again = client.schedules_run_now("nightly", idempotency_key="by hand")
        self.assertEqual(again["run_id"], run["run_id"])
        self.assertEqual({*run}, {*ScheduleRun.__annotations__})
        root = run["root_task_id"]
        assert root is not None, "it was started"
        self.assertEqual(client.wait(root, timeout=30).state, "completed")
        shown = client.schedules_get("nightly")
        self.assertEqual([each["status"] for each in shown["runs"]], ["completed"])
        self.assertEqual(shown["counters"]["started_by_hand"], 1)
        self.assertFalse(client.schedules_pause("nightly", paused=False)["paused"])
        self.assertTrue(client.schedules_delete("weekly", expected_version=3))
        self.assertFalse(client.schedules_delete("weekly"))
        with self.assertRaises(taskledger.ScheduleNotFound):
            client.schedules_get("weekly")
        with self.assertRaises(taskledger.WorkflowNotFound):
            client.schedules_create("report", cron="@daily", workflow={"name": "Absent"})

    def test_labels_choose_tasks_and_events_and_a_start_is_put_off(self) -> None:
        client = self.client
        labels = {"team": "red & blue", "batch": "7"}
        task = {"name": "labelled", "schemas": {"method": "echo_executor"}, "labels": labels}
        root = client.create(tasks=[task])["id"]
        client.create("another", labels={"team": "green", "batch": "7"})
        for chosen in ({"team": "red & blue"}, {"team": "red & blue", "batch": None}):
            self.assertEqual([each["id"] for each in client.list(labels=chosen)], [root])
        with client.events(labels={"team": "red & blue"}, start="beginning") as events:
            first = next(events)
        self.assertEqual((first.task_id, first.data["labels"]), (root, labels))
        later = client.create("later", start_at="2126-01-01T00:00:00+01:00")["id"]
        self.assertEqual(client.get(later)["start_at"], "2125-12-31T23:00:00.000000Z")

    def test_types_of_events_are_those_of_the_server(self) -> None:
        with self.assertRaises(InvalidParams) as raised:
            next(self.client.events(types=["task_asked"]))
        expected = str(raised.exception.violations[0]["expected"])
        self.assertEqual(re.findall(r"(?:task|run)_\w+", expected), [*get_args(EventType)])

    def test_events_go_on_over_a_restart_of_the_server(self) -> None:
        task = {"name": "x", "schemas": {"method": "echo_executor"}}
        seen: collections.Counter[str] = collections.Counter()
        with self.client.events(types=["task_completed"], start="beginning") as events:
            for round in range(3):
                started = self.client.execute([task])
                for event in events:
                    seen[event.data["id"]] += 1
                    if event.task_id == started["root_task_id"]:
                        break
                if round < 2:
                    self.server.restart()
        self.assertEqual({*seen.values()}, {1})

    def test_asynchronous_calls(self) -> None:
        async def main() -> None:
            async with AsyncClient(self.server.url) as client:
                task = {"name": "x", "schemas": {"method": "echo_executor"}, "inputs": {"n": 1}}
                runs = await asyncio.gather(*(client.execute_and_wait([task]) for _ in range(20)))
                self.assertEqual([run.result for run in runs], [{"n": 1}] * 20)
                root = runs[0].root_task_id
                async with client.events(flow=root, start="beginning") as events:
                    async for event in events:
                        if event.final:
                            break
                names = [event["type"] async for event in client.history(root)]
                self.assertEqual(names[0], "task_created")

        asyncio.run(main())


def _ask(ctx: Any) -> Any:
    if not ctx.answers:
        choices = [{"value": "a", "label": "First"}, {"value": "b"}]
        raise Suspend("Which?", response_type="choice", choices=choices)
    return {"said": [answer["value"] for answer in ctx.answers]}


class Workers(OnServer):
    def workers(self) -> list[Any]:
        """One of each kind, with the same methods."""
        sync = Worker(self.server.url, concurrency=4, lease_seconds=5)
        asynchronous = AsyncWorker(self.server.url, concurrency=4, lease_seconds=5)
        socket = AsyncWorker(self.server.url, concurrency=4, lease_seconds=60, socket=True)

        @sync.method("work")
        def work(input: Any, ctx: Any) -> Any:
            if ctx.attempt == 1 and "first" in input:
                raise OSError(input["first"])
            if "final" in input:
                raise Final(input["final"])
            ctx.sleep(input.get("seconds", 0))
            return {"attempt": ctx.attempt, "input": input}

        @socket.method("work")
        @asynchronous.method("work")
        async def work_async(input: Any, ctx: Any) -> Any:
            if ctx.attempt == 1 and "first" in input:
                raise OSError(input["first"])
            if "final" in input:
                raise Final(input["final"])
            await asyncio.sleep(input.get("seconds", 0))
            return {"attempt": ctx.attempt, "input": input}

        @sync.method("ask")
        def ask(input: Any, ctx: Any) -> Any:
            return _ask(ctx)

        @socket.method("ask")
        @asynchronous.method("ask")
        async def ask_async(input: Any, ctx: Any) -> Any:
            return _ask(ctx)

        return [sync, asynchronous, socket]

    def each(self) -> Any:
        for worker in self.workers():
            with self.subTest(type(worker).__name__, socket=getattr(worker, "_socket", False)):
                thread = self.begin(worker)
                yield worker
                worker.stop()
                thread.join(20)
                self.assertFalse(thread.is_alive())

    def test_results_failures_and_retries(self) -> None:
        for _ in self.each():
            run = self.client.execute_and_wait([remote("a", inputs={"x": "é"})], timeout=90)
            self.assertEqual(run.raise_for_state().result, {"attempt": 1, "input": {"x": "é"}})
            again = remote("b", inputs={"first": "no"}, params={"retry_count": 1})
            run = self.client.execute_and_wait([again], timeout=90).raise_for_state()
            self.assertEqual((run.result or {})["attempt"], 2)
            never = remote("c", inputs={"final": "never"}, params={"retry_count": 5})
            run = self.client.execute_and_wait([never], timeout=90)
            self.assertEqual(
                (run.state, run.task["error"], run.task["attempt"]), ("failed", "never", 1)
            )

    def test_a_question_waits_for_a_person_and_the_next_attempt_has_the_answer(self) -> None:
        for _ in self.each():
            started = self.client.execute([remote("a", schemas={"method": "ask", "type": "remote"})])
            task_id = started["root_task_id"]
            until = time.monotonic() + 60
            while "suspension" not in (task := self.client.get(task_id)):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.05)
            waits = task["suspension"]
            self.assertEqual(waits["question"]["question"], "Which?")
            with self.assertRaises(InvalidParams):
                self.client.respond(task_id, waits["suspension_id"], "c")
            said = self.client.respond(task_id, waits["suspension_id"], "a")
            self.assertEqual((said["status"], said["choice_label"]), ("pending", "First"))
            with self.assertRaises(NotSuspended):
                self.client.respond(task_id, waits["suspension_id"], "b")
            run = self.client.wait(started, timeout=60)
            self.assertEqual((run.result or {})["said"], ["a"])
            told = []
            types = ["task_suspended", "task_suspension_ended"]
            with self.client.events(flow=task_id, types=types, start="beginning") as events:
                for event in events:
                    told.append((event.type, event.data["suspension"]["suspension_id"]))
                    if event.type == "task_suspension_ended":
                        break
            self.assertEqual(told, [(name, waits["suspension_id"]) for name in types])

    def test_a_workflow_of_many_tasks(self) -> None:
        steps = [{"id": "root", "name": "root"}]
        steps += [remote(f"s{k}", id=f"s{k}", parent_id="root") for k in range(50)]
        gather = {"id": s["id"] for s in steps[1:2]}
        steps.append(remote("last", id="last", parent_id="root", dependencies=[gather]))
        for _ in self.each():
            run = self.client.execute_and_wait(steps, timeout=60).raise_for_state()
            self.assertEqual(run.counts["completed"], 51)

    def test_cancelling_stops_the_handler(self) -> None:
        for _ in self.each():
            started = self.client.execute([remote("long", inputs={"seconds": 100})])
            task = started["root_task_id"]
            self.until_status(task, "in_progress")
            self.client.cancel(task, reason="enough")
            self.assertEqual(self.client.get(task)["error"], "enough")
            # All slots are free again in the end.
            waits = [remote(f"n{k}", inputs={"seconds": 1}, parent_id="r") for k in range(4)]
            run = self.client.execute_and_wait([{"id": "r", "name": "r"}, *waits], timeout=90)
            self.assertEqual(run.counts["completed"], 4)

    def test_progress_and_renewals_outlive_the_lease(self) -> None:
        worker = Worker(self.server.url, lease_seconds=5)

        @worker.method("slow")
        def slow(input: Any, ctx: Any) -> Any:
            ctx.progress(0.25, "a quarter")
            ctx.sleep(7)
            return {"attempt": ctx.attempt}

        self.begin(worker)
        started = self.client.execute([remote("slow", "slow")])
        task = started["root_task_id"]
        ends_at = time.monotonic() + 5
        while self.client.get(task)["progress"] != 0.25:
            self.assertLess(time.monotonic(), ends_at)
            time.sleep(0.05)
        held = [w for w in self.client.workers_list() if w["worker"] == worker.name]
        self.assertEqual([t["task_id"] for t in held[0]["tasks"]], [task])
        self.assertEqual(self.client.wait(started, timeout=90).result, {"attempt": 1})

    def test_stopping_gives_back_what_does_not_end(self) -> None:
        first = Worker(self.server.url, grace_seconds=0.1, release_seconds=0.5)

        @first.method("handed")
        def handed(input: Any, ctx: Any) -> Any:
            ctx.sleep(60)

        thread = self.begin(first)
        started = self.client.execute([remote("x", "handed", params={"retry_count": 0})])
        self.until_status(started["root_task_id"], "in_progress")
        first.stop()
        thread.join(20)
        self.assertFalse(thread.is_alive())
        second = Worker(self.server.url)
        second.method("handed")(lambda input, ctx: {"by": "the second"})
        self.begin(second)
        self.assertEqual(self.client.wait(started, timeout=90).result, {"by": "the second"})

    def test_draining_ends_a_worker(self) -> None:
        worker = Worker(self.server.url, poll_seconds=1)
        worker.method("drained")(lambda input, ctx: {})
        thread = self.begin(worker)
        ends_at = time.monotonic() + 10
        while worker.name not in [w["worker"] for w in self.client.workers_list()]:
            self.assertLess(time.monotonic(), ends_at)
            time.sleep(0.05)
        self.client.workers_drain(worker.name)
        thread.join(20)
        self.assertFalse(thread.is_alive())

    def test_declared_methods_wait_for_a_worker(self) -> None:
        self.client.workers_declare("later", description="done later", limit=2)
        shown = {m["method"]: m for m in self.client.workers_methods()}
        self.assertTrue(shown["later"]["declared"])
        started = self.client.execute([{"name": "x", "schemas": {"method": "later"}}])
        claims = self.client.claim(["later"], worker="by hand", wait_seconds=5)["claims"]
        [claim] = claims
        self.assertEqual(claim["task"]["id"], started["root_task_id"])
        token = claim["lease"]["token"]
        self.client.renew(claim["task"]["id"], token, progress=0.5)
        ended = self.client.complete(claim["task"]["id"], token, {"x": 1})
        self.assertEqual(self.client.complete(claim["task"]["id"], token, {"x": 1}), ended)
        with self.assertRaises(taskledger.LeaseNotHeld):
            self.client.complete(claim["task"]["id"], token, {"x": 2})
        with self.assertRaises(taskledger.LeaseNotHeld):
            self.client.renew(claim["task"]["id"], token)
        self.assertTrue(self.client.workers_undeclare("later"))

    def test_a_worker_reads_the_result_of_a_sibling(self) -> None:
        tasks = [
            {"id": "root", "name": "root"},
            {"name": "fetch", "parent_id": "root", "schemas": {"method": "echo_executor"},
             "inputs": {"n": 7}},
            {"name": "mine", "parent_id": "root", "schemas": {"type": "remote", "method": "beside"},
             "dependencies": [{"id": "fetch"}]},
        ]
        self.client.execute(tasks)
        [claim] = self.client.claim(["beside"], worker="by hand", wait_seconds=5)["claims"]
        held = (claim["task"]["id"], claim["lease"]["token"])
        self.assertEqual(self.client.sibling_output(*held, "fetch")["output"], {"n": 7})
        with self.assertRaisesRegex(taskledger.InvalidParams, "fetch"):
            self.client.sibling_output(*held, "nobody")
        self.client.release(*held)

    def test_500_tasks_at_once(self) -> None:
        for socket in (False, True):
            with self.subTest(socket=socket):
                self.crowd(socket)

    def crowd(self, socket: bool) -> None:
        worker = AsyncWorker(self.server.url, concurrency=500, socket=socket)
        running = most = 0
        everyone = asyncio.Event()

        @worker.method("crowd")
        async def crowd(input: Any, ctx: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == 500:
                everyone.set()
            await everyone.wait()
            running -= 1
            return input

        thread = self.begin(worker)
        tasks = [{"id": "root", "name": "root"}]
        tasks += [remote(f"c{k}", "crowd", parent_id="root", inputs={"k": k}) for k in range(500)]
        run = self.client.execute_and_wait(tasks, timeout=120).raise_for_state()
        self.assertEqual((run.counts["completed"], most), (500, 500))
        worker.stop()
        thread.join(20)
        self.assertFalse(thread.is_alive())


@unittest.skipUnless(BINARY, "TASKLEDGER_BIN names the program to test with")
class Encrypted(unittest.TestCase):
    def setUp(self) -> None:
        self.server = RealServer(tls=True)
        self.addCleanup(self.server.close)

    def test_calls_and_streams(self) -> None:
        task = {"name": "x", "schemas": {"method": "echo_executor"}, "inputs": {"n": 1}}
        url, ca_file = self.server.url, self.server.ca_file
        with Client(url, ca_file=ca_file) as client:
            self.assertEqual(client.execute_and_wait([task]).result, {"n": 1})

        async def main() -> Any:
            async with AsyncClient(url, ca_file=ca_file) as client:
                return await client.execute_and_wait([task])

        self.assertEqual(asyncio.run(main()).result, {"n": 1})

    def test_a_stranger_is_not_trusted(self) -> None:
        with Client(self.server.url, retry=RetryPolicy(budget_seconds=0)) as client:
            with self.assertRaisesRegex(taskledger.TransportError, "certificate"):
                client.health()

    def test_idle_workers_stop_at_once(self) -> None:
        url, ca_file = self.server.url, self.server.ca_file
        worker = Worker(Client(url, ca_file=ca_file))
        worker.method("m")(lambda input, ctx: {})
        threading.Timer(0.5, worker.stop).start()
        begun = time.monotonic()
        worker.run()
        worker.client.close()

        async def main() -> None:
            async with AsyncClient(url, ca_file=ca_file) as client:
                other = AsyncWorker(client)

                @other.method("m")
                async def handler(input: Any, ctx: Any) -> Any:
                    return {}

                asyncio.get_running_loop().call_later(0.5, other.stop)
                await other.run()

        asyncio.run(main())
        self.assertLess(time.monotonic() - begun, 4)


class Authenticated(OnServer):
    def test_tokens(self) -> None:
        def token(name: str, scopes: list[str], **members: Any) -> str:
            params = {"name": name, "kind": "service", "scopes": scopes, **members}
            return str(self.client.call("tokens.create", params)["token"])

        admin = token("admin", self.client.whoami()["scopes"])
        narrow = token("narrow", ["worker", "users:any"], methods=["allowed"])
        self.server.restart()  # from now on callers need one
        with self.assertRaises(taskledger.Unauthenticated) as raised:
            self.client.whoami()
        self.assertEqual(raised.exception.http_status, 401)
        with Client(self.server.url, token=narrow) as client:
            with self.assertRaises(taskledger.Unauthorized):
                client.claim(["other"])
            with self.assertRaises(taskledger.Unauthorized):
                client.create("x")
            with self.assertRaises(taskledger.Unauthorized):
                next(client.events())
        with mock.patch.dict(os.environ, {"TASKLEDGER_TOKEN": narrow}):
            workers = [Worker(self.server.url), AsyncWorker(self.server.url, socket=True)]
        for worker in workers:
            if isinstance(worker, Worker):
                worker.method("allowed")(lambda input, ctx: {"by": ctx.worker})
            else:

                @worker.method("allowed")
                async def allowed(input: Any, ctx: Any) -> Any:
                    return {"by": ctx.worker}

            thread = self.begin(worker)
            with Client(self.server.url, token=lambda: admin) as client:
                run = client.execute_and_wait([remote("x", "allowed")], timeout=90)
                self.assertEqual(run.raise_for_state().result, {"by": worker.name})
            worker.stop()
            thread.join(20)
        check_revocation(self, self.server.url, admin)


class Guards(OnServer):
    def test_a_client_waits_for_a_server_that_comes_back(self) -> None:
        client = Client(self.server.url, retry=RetryPolicy(budget_seconds=30))
        self.addCleanup(client.close)
        client.health()
        self.server.kill()
        timer = threading.Timer(0.5, self.server.start)
        timer.start()
        self.addCleanup(timer.join)
        self.assertEqual(client.health()["status"], "ok")


if __name__ == "__main__":
    unittest.main()
