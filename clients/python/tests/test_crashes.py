"""Workers and servers that are killed or paused, with the real server."""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
import textwrap
import time
import unittest
from pathlib import Path
from typing import Any

from .real_server import OnServer, remote

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import asyncio, sys, time, taskledger
kind, url, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
options = {"lease_seconds": 5, "concurrency": 4}
if kind == "sync":
    worker = taskledger.Worker(url, **options)
    @worker.method("work")
    def work(input, ctx):
        ctx.sleep(seconds)
        return {"by": ctx.worker, "attempt": ctx.attempt}
    worker.run()
else:
    worker = taskledger.AsyncWorker(url, socket=kind == "socket", **options)
    @worker.method("work")
    async def work(input, ctx):
        await asyncio.sleep(seconds)
        return {"by": ctx.worker, "attempt": ctx.attempt}
    asyncio.run(worker.run())
"""


class Crashes(OnServer):
    def program(self, kind: str, seconds: float) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = [
            sys.executable,
            "-c",
            textwrap.dedent(PROGRAM),
            kind,
            self.server.url,
            str(seconds),
        ]
        program = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
        self.programs.append(program)
        return program

    def setUp(self) -> None:
        super().setUp()
        self.programs: list[subprocess.Popen[bytes]] = []
        self.addCleanup(self.end_programs)

    def end_programs(self) -> None:
        while self.programs:
            program = self.programs.pop()
            program.kill()
            program.wait(30)

    def each(self) -> Any:
        for kind in ("sync", "async", "socket"):
            with self.subTest(kind):
                try:
                    yield kind
                finally:
                    self.end_programs()

    def test_a_killed_worker_loses_its_tasks_to_another_one(self) -> None:
        for kind in self.each():
            program = self.program(kind, 3600)
            started = self.client.execute([remote("x")])
            self.until_status(started["root_task_id"], "in_progress")
            program.kill()
            program.wait()
            other = self.program(kind, 0)
            run = self.client.wait(started, timeout=60).raise_for_state()
            self.assertEqual((run.result or {})["attempt"], 2)
            other.terminate()
            other.wait(30)

    def test_a_worker_that_stalls_beyond_its_lease_changes_nothing(self) -> None:
        for kind in self.each():
            stalled = self.program(kind, 2)
            started = self.client.execute([remote("x")])
            task = started["root_task_id"]
            self.until_status(task, "in_progress")
            stalled.send_signal(signal.SIGSTOP)
            other = self.program(kind, 2)
            # A poll that the stalled worker left open may get the task once more.
            run = self.client.wait(started, timeout=60).raise_for_state()
            self.assertGreaterEqual((run.result or {})["attempt"], 2)
            stalled.send_signal(signal.SIGCONT)
            stalled.terminate()
            self.assertEqual(stalled.wait(30), 0)
            self.assertEqual(self.client.get(task)["result"], run.result)
            other.terminate()
            other.wait(30)
            self.check_history(task)

    def test_a_killed_server_interrupts_no_attempt(self) -> None:
        for kind in self.each():
            program = self.program(kind, 1)
            tasks = [{"id": "root", "name": "root"}]
            tasks += [remote(f"t{k}", parent_id="root") for k in range(12)]
            started = self.client.execute(tasks)
            for _ in range(3):
                time.sleep(0.7)
                self.server.restart()
            run = self.client.wait(started, timeout=90).raise_for_state()
            self.assertEqual(run.counts["completed"], 12)
            self.check_history(started["root_task_id"])
            program.terminate()
            self.assertEqual(program.wait(40), 0)

    def check_history(self, root: str) -> None:
        """No attempt has two outcomes, and every completed task has one."""
        ends: collections.Counter[Any] = collections.Counter()
        completed: collections.Counter[str] = collections.Counter()
        for event in self.server.history(root):
            if event["type"] in ("task_completed", "task_failed", "task_cancelled"):
                ends[event["task_id"], event["data"].get("attempt")] += 1
                completed[event["task_id"]] += event["type"] == "task_completed"
        self.assertEqual([end for end, count in ends.items() if count > 1], [])
        self.assertTrue(all(count == 1 for count in completed.values()))


if __name__ == "__main__":
    unittest.main()
