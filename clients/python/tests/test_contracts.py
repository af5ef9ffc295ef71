"""The examples of RFC-0024, section by section, against the real server, which ``TASKLEDGER_BIN``
names. ``docs/guides/contracts.md`` says how to follow them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import taskledger
from taskledger import (
    AsyncClient,
    AsyncWorker,
    InputWiringError,
    InvalidParams,
    MissingOutputError,
    OutputTypeMismatchError,
    UnresolvableInputError,
    UpstreamIntentSuspendedError,
    Worker,
)

from .real_server import OnServer, remote

DOCUMENTS = Path(__file__).parents[3] / "examples" / "rfc-0024"
FINDING = {"source": "press", "content": "late filing", "confidence": 0.8}


def text(section: str) -> str:
    return (DOCUMENTS / f"{section}.yaml").read_text()


class Contracts(OnServer):
    def create(self, document: Any, trigger: Any = None, key: str | None = None) -> Any:
        created = self.client.workflows_create(
            document, trigger=trigger, execute=True, idempotency_key=key
        )
        self.addCleanup(self.end, created["root_task_id"])
        return created

    def end(self, root: str) -> None:
        """Leaves nothing behind for the next test."""
        with contextlib.suppress(taskledger.InvalidTransition):
            self.client.cancel(root, cascade=True)

    def id_of(self, created: Any, phase: str) -> str:
        [task_id] = [p["task_id"] for p in created["phases"] if p["phase_name"] == phase]
        return str(task_id)

    def claim(self, created: Any, phase: str) -> Any:
        """Claims a phase as soon as it is ready."""
        task_id = self.id_of(created, phase)
        ends_at = time.monotonic() + 30
        while True:
            try:
                [claim] = self.client.claim(task_id=task_id, worker="by hand")["claims"]
                return claim
            except taskledger.InvalidTransition:
                self.assertLess(time.monotonic(), ends_at)
                time.sleep(0.02)

    def complete(self, claim: Any, output: Any) -> None:
        self.client.complete(claim["task"]["id"], claim["lease"]["token"], output)

    def events(self, task_id: str, kind: str) -> list[Any]:
        return [event["data"] for event in self.client.history(task_id, types=[kind])]

    def agents(self, handlers: dict[str, Callable[[Any], Any]], *assigned: str) -> None:
        """A worker for what phases are assigned to; ``handlers`` are those of the phases."""
        worker = AsyncWorker(self.server.url, name="agents")

        async def carry_out(input: Any, ctx: Any) -> Any:
            return await handlers[ctx.task["name"]](ctx)

        for assign in assigned:
            worker.method(assign)(carry_out)
        self.begin(worker)

    # Motivation, 1: declared outputs.

    def test_1_1_outputs_are_declared_and_the_handler_of_the_motivation_keeps_them(self) -> None:
        async def fetch(quarter: str) -> float:
            return {"2026-Q1": 12.5}[quarter]

        async def handle(ctx: Any) -> dict:
            quarter = ctx.input["quarter"]
            revenue = await fetch(quarter)
            return {"revenue": revenue, "expenses": 0}

        self.agents({"fetch_financials": handle}, "data-agent")
        document = text("1.1").replace(
            "    outputs:", "    inputs: {quarter: $trigger.quarter}\n    outputs:"
        )
        created = self.create(document, {"quarter": "2026-Q1"})
        self.client.wait(created, timeout=60).raise_for_state()
        task = self.client.get(self.id_of(created, "fetch_financials"))
        self.assertEqual(task["result"], {"revenue": 12.5, "expenses": 0})

    def test_1_2_an_output_of_a_named_type_has_its_shape(self) -> None:
        created = self.create(text("1.2"))
        claim = self.claim(created, "research")
        with self.assertRaises(OutputTypeMismatchError) as raised:
            self.complete(claim, {"sources": [], "findings": {**FINDING, "confidence": "high"}})
        self.assertEqual(raised.exception.key, "findings")
        [mismatch] = raised.exception.data["mismatches"]
        self.assertEqual(mismatch["pointer"], "/findings/confidence")
        self.complete(claim, {"sources": ["press"], "findings": FINDING})
        self.client.wait(created, timeout=60).raise_for_state()

    def test_1_3_an_optional_output_may_be_absent_but_not_of_another_type(self) -> None:
        for output in ({"status": "ok"}, {"status": "ok", "warnings": ["late"]}):
            created = self.create(text("1.3"))
            claim = self.claim(created, "check")
            with self.assertRaises(OutputTypeMismatchError) as raised:
                self.complete(claim, {"status": "ok", "warnings": "late"})
            self.assertEqual(raised.exception.key, "warnings")
            self.complete(claim, output)
            self.client.wait(created, timeout=60).raise_for_state()

    # 2, 5.1: wired inputs.

    def test_2_1_and_5_1_the_handler_gets_exactly_the_declared_inputs(self) -> None:
        inputs: list[Any] = []

        def analyze(findings: Any, sources: Any) -> Any:
            return SimpleNamespace(
                insights=f"{findings['content']} ({len(sources)} sources)", recommendations=[]
            )

        async def research(ctx: Any) -> dict:
            return {"sources": ["press"], "findings": FINDING}

        async def run_analysis(ctx: Any) -> dict:
            inputs.append(ctx.input)
            findings = ctx.input["research_findings"]
            sources = ctx.input["sources_list"]
            result = analyze(findings, sources)
            return {
                "insights": result.insights,
                "recommendations": result.recommendations,
            }

        self.agents({"research": research, "analysis": run_analysis}, "researcher", "analyst")
        created = self.create(text("2.1"))
        self.client.wait(created, timeout=60).raise_for_state()
        self.assertEqual(inputs, [{"research_findings": FINDING, "sources_list": ["press"]}])
        result = self.client.get(self.id_of(created, "analysis"))["result"]
        self.assertEqual(result, {"insights": "late filing (1 sources)", "recommendations": []})

    def test_2_2_inputs_come_from_several_phases_and_a_key_that_is_missing_is_named(self) -> None:
        for checked in ({"status": "passed", "violations": []}, {"status": "passed"}):
            created = self.create(text("2.2"))
            analysis = {"insights": "none", "recommendations": ["wait"]}
            self.complete(self.claim(created, "analysis"), analysis)
            self.complete(self.claim(created, "compliance_check"), checked)
            if "violations" in checked:
                claim = self.claim(created, "generate_report")
                expected = {**analysis, "compliance_status": "passed", "violations": []}
                self.assertEqual(claim["input"], expected)
                self.complete(claim, {"report_url": "u", "report_summary": "s"})
                self.client.wait(created, timeout=60).raise_for_state()
                continue
            with self.assertRaises(UnresolvableInputError) as raised:
                self.claim(created, "generate_report")
            refs = ["compliance_check.violations"]
            self.assertEqual(raised.exception.unresolvable_refs, refs)

    def test_2_3_static_inputs_are_of_the_trigger_and_of_the_initial_state(self) -> None:
        created = self.create(text("2.3"), {"quarter": "2026-Q1", "more": 1})
        claim = self.claim(created, "fetch_data")
        self.assertEqual(claim["input"], {"quarter": "2026-Q1", "source": "ledger"})
        self.complete(claim, {"data": {}})
        self.client.wait(created, timeout=60).raise_for_state()

        as_published = text("2.3").replace("    initial_state: {source: ledger}\n", "")
        with self.assertRaises(taskledger.InvalidParams) as refused:
            self.create(as_published)
        self.assertEqual(refused.exception.data["missing_keys"], ["quarter"])
        created = self.create(as_published, {"quarter": None})
        self.assertIn("$initial_state.source", created["warnings"][0]["invalid_refs"])
        with self.assertRaises(UnresolvableInputError) as raised:
            self.claim(created, "fetch_data")
        self.assertEqual(
            raised.exception.unresolvable_refs, ["$trigger.quarter", "$initial_state.source"]
        )

    # 4, 6: named errors.

    def test_4_1_a_missing_output_is_told_as_the_text_shows_and_may_be_added(self) -> None:
        created = self.create(text("1.1"))
        claim = self.claim(created, "fetch_financials")
        with self.assertRaises(MissingOutputError) as raised:
            self.complete(claim, {"revenue": 1})
        task_id = self.id_of(created, "fetch_financials")
        payload = {
            "error": "MissingOutputError",
            "task_id": task_id,
            "phase_name": "fetch_financials",
            "missing_keys": ["expenses"],
            "message": "Task completion rejected: declared output key 'expenses' was not "
            "present in agent return value",
        }
        error = raised.exception
        self.assertEqual({key: error.data[key] for key in payload}, payload)
        self.assertEqual(
            (error.task_id, error.phase_name, error.missing_keys),
            (task_id, "fetch_financials", ["expenses"]),
        )
        [event] = self.events(task_id, "task_completion_rejected")
        for key in ("error", "missing_keys", "message"):
            self.assertEqual(event[key], payload[key])
        self.assertEqual(self.client.get(task_id)["status"], "in_progress")
        self.complete(claim, {"revenue": 1, "expenses": 0})
        self.client.wait(created, timeout=60).raise_for_state()

    def test_4_2_an_integer_is_a_number_and_a_text_is_none(self) -> None:
        created = self.create(text("1.1"))
        claim = self.claim(created, "fetch_financials")
        with self.assertRaises(OutputTypeMismatchError) as raised:
            self.complete(claim, {"revenue": "1", "expenses": 0})
        error = raised.exception
        self.assertEqual(
            (error.task_id, error.phase_name, error.key, error.expected_type, error.actual_type),
            (claim["task"]["id"], "fetch_financials", "revenue", "number", "string"),
        )
        self.complete(claim, {"revenue": 1, "expenses": 0.5})
        result = self.client.wait(created, timeout=60).raise_for_state()
        self.assertEqual(result.state, "completed")

    def test_4_3_an_input_without_a_value_is_told_and_the_phase_stays_ready(self) -> None:
        declared = "    outputs:\n      sources: array\n      findings: Finding\n"
        created = self.create(text("2.1").replace(declared, ""))
        self.complete(self.claim(created, "research"), {"sources": []})
        with self.assertRaises(UnresolvableInputError) as raised:
            self.claim(created, "analysis")
        task_id = self.id_of(created, "analysis")
        refs = ["research.findings"]
        payload = {
            "error": "UnresolvableInputError",
            "task_id": task_id,
            "phase_name": "analysis",
            "unresolvable_refs": refs,
        }
        error = raised.exception
        self.assertEqual({key: error.data[key] for key in payload}, payload)
        self.assertIn(refs[0], error.data["message"])
        self.assertEqual(error.unresolvable_refs, refs)
        [event] = self.events(task_id, "task_claim_rejected")
        self.assertEqual((event["phase_name"], event["unresolvable_refs"]), ("analysis", refs))
        self.assertEqual(self.client.get(task_id)["status"], "pending")

    def test_4_4_and_8_references_that_are_wrong_are_refused_with_the_document(self) -> None:
        document, reference = text("2.1"), "research.findings"
        unlisted = document.replace("depends_on: [research]", "depends_on: []")
        for wrong, ref, suggestion in [
            (unlisted, reference, "depends_on"),
            (document.replace(reference, "reserch.findings"), "reserch.findings", "research"),
            (document.replace(reference, "research.finding"), "research.finding", "findings"),
            (document.replace(reference, "findings"), "findings", None),
        ]:
            with self.subTest(ref), self.assertRaises(InputWiringError) as raised:
                self.create(wrong)
            error = raised.exception
            self.assertEqual(error.phase_name, "analysis")
            self.assertIn(ref, error.invalid_refs)
            if suggestion is None:
                self.assertIn("`<phase>.<key>`", error.data["reason"])
            else:
                self.assertIn(suggestion, error.data["suggestion"])
            report = self.client.workflows_validate(wrong)
            fault = report["errors"][0]  # It lists all references of the phase; others may follow.
            self.assertEqual(fault["error"], "InputWiringError")
            self.assertEqual(fault["invalid_refs"], error.invalid_refs)

    # 5.2: the escape hatch.

    def test_5_2_a_handler_reads_the_output_of_a_sibling(self) -> None:
        outputs: list[Any] = []

        async def fetch(ctx: Any) -> dict:
            return {"revenue": 1}

        async def report(ctx: Any) -> dict:
            outputs.append(await ctx.sibling_output("fetch"))
            return {}

        # No inputs and no outputs are declared.
        legacy = (
            'openintent: "1.0"\ninfo: {name: legacy}\nworkflow:\n'
            "  fetch: {assign: legacy-agent}\n"
            "  report: {assign: legacy-agent, depends_on: [fetch]}\n"
        )
        self.agents({"fetch": fetch, "report": report}, "legacy-agent")
        self.client.wait(self.create(legacy), timeout=60).raise_for_state()

        worker = Worker(self.server.url)
        worker.method("legacy-thread")(
            lambda input, ctx: outputs.append(ctx.sibling_output("fetch"))
        )
        self.begin(worker)
        tasks = [
            {"id": "r", "name": "r"},
            {
                "name": "fetch",
                "parent_id": "r",
                "schemas": {"method": "echo_executor"},
                "inputs": {"revenue": 2},
            },
            remote("report", "legacy-thread", parent_id="r", dependencies=[{"id": "fetch"}]),
        ]
        self.client.execute_and_wait(tasks, timeout=60).raise_for_state()
        self.assertEqual(outputs, [{"revenue": 1}, {"revenue": 2}])

    # 7: what becomes of a document.

    def test_7_inputs_and_outputs_of_each_phase_are_those_of_its_task(self) -> None:
        created = self.create(text("2.1"))
        research = self.id_of(created, "research")
        schemas = self.client.get(self.id_of(created, "analysis"))["schemas"]
        self.assertEqual(schemas["outputs"], {"insights": "string", "recommendations": "array"})
        wiring = {"research_findings": "findings", "sources_list": "sources"}
        self.assertEqual(schemas["wiring"], {key: f"{research}.{of}" for key, of in wiring.items()})
        self.assertEqual(
            schemas["types"]["Finding"], dict.fromkeys(FINDING, "string") | {"confidence": "number"}
        )
        self.assertEqual(
            (schemas["method"], schemas["workflow"]["title"]), ("analyst", "Analyze Findings")
        )

    def test_7_one_key_creates_one_run(self) -> None:
        first = self.create(text("1.1"), key="one run")

        async def again() -> Any:
            async with AsyncClient(self.server.url) as client:
                report = await client.workflows_validate(text("1.1"), strict=True)
                self.assertEqual((report["valid"], report["errors"]), (True, []))
                return await client.workflows_create(
                    text("1.1"), execute=True, idempotency_key="one run"
                )

        self.assertEqual(asyncio.run(again()), first)
        with self.assertRaises(InvalidParams):
            self.create(text("1.2"), key="one run")

    # 9: incremental adoption.

    def test_9_what_is_not_declared_is_not_checked(self) -> None:
        inputs: list[Any] = []

        async def old(ctx: Any) -> None:
            inputs.append(ctx.input)

        async def partly(ctx: Any) -> dict:
            inputs.append(ctx.input)
            return {"declared": "x", "more": None}

        document = (
            'openintent: "1.0"\ninfo: {name: adoption}\nworkflow:\n'
            "  old: {assign: adopting-agent}\n"
            "  partly: {assign: adopting-agent, depends_on: [old], outputs: {declared: string}}\n"
        )
        self.agents({"old": old, "partly": partly}, "adopting-agent")
        created = self.create(document)
        self.client.wait(created, timeout=60).raise_for_state()
        self.assertEqual(inputs, [{}, {}])
        results = [self.client.get(phase["task_id"])["result"] for phase in created["phases"]]
        self.assertEqual(results, [{}, {"declared": "x", "more": None}])

    # 10: the complete example.

    def test_10_the_complete_example_runs(self) -> None:
        reported: list[Any] = []

        class compliance_engine:
            @staticmethod
            async def analyze(**of: float) -> Any:
                await asyncio.sleep(0)
                is_loss = of["revenue"] < of["expenses"]
                return SimpleNamespace(
                    findings=[sorted(of)], risk_level="low", violations_found=is_loss
                )

        async def fetch_financials(ctx: Any) -> dict:
            self.assertEqual(ctx.input, {"quarter": "2026-Q1", "source": "ledger"})
            return {"revenue": 12.5, "expenses": 10}

        async def fetch_hr_data(ctx: Any) -> dict:
            self.assertEqual(ctx.input, {"quarter": "2026-Q1"})
            return {"headcount": 40, "attrition_rate": 0.1}

        async def run_compliance_analysis(ctx: Any) -> dict:
            # All inputs are guaranteed present by the executor
            revenue = ctx.input["fin_revenue"]
            expenses = ctx.input["fin_expenses"]
            headcount = ctx.input["hr_headcount"]
            attrition = ctx.input["hr_attrition"]
            result = await compliance_engine.analyze(
                revenue=revenue,
                expenses=expenses,
                headcount=headcount,
                attrition=attrition,
            )
            # Return must include all declared outputs
            return {
                "findings": result.findings,
                "risk_level": result.risk_level,
                "violations_found": result.violations_found,
            }

        async def generate_report(ctx: Any) -> dict:
            reported.append(ctx.input)
            return {"report_url": "https://reports.example/1", "report_summary": "s"}

        handlers = {
            "fetch_financials": fetch_financials,
            "fetch_hr_data": fetch_hr_data,
            "run_analysis": run_compliance_analysis,
            "generate_report": generate_report,
        }
        self.agents(handlers, "data-agent", "analytics-agent", "reporting-agent")
        created = self.create(text("10"), {"quarter": "2026-Q1"})
        self.client.wait(created, timeout=60).raise_for_state()
        given = {
            "analysis_findings": [["attrition", "expenses", "headcount", "revenue"]],
            "risk_level": "low",
            "has_violations": False,
        }
        self.assertEqual(reported, [given])
        lineage = self.client.explain(self.id_of(created, "generate_report"))["lineage"]
        self.assertEqual({value["input"] for value in lineage}, {f"/{key}" for key in given})

    # The patch of RFC-0026.

    def test_0026_a_claim_waits_for_a_phase_that_waits_for_a_person(self) -> None:
        document = (
            'openintent: "1.0"\ninfo: {name: RFC-0026}\nworkflow:\n'
            "  compliance_review:\n    assign: approval_executor\n"
            "    initial_state: {question: Publish?, timeout_seconds: 10800}\n"
            "    inputs: {question: $initial_state.question,"
            " timeout_seconds: $initial_state.timeout_seconds}\n"
            "  publish:\n    assign: publisher\n    depends_on: [compliance_review]\n"
            "    inputs: {approved: compliance_review.approved}\n"
        )
        created = self.create(document)
        review = self.id_of(created, "compliance_review")
        ends_at = time.monotonic() + 30
        while "suspension" not in self.client.get(review):
            self.assertLess(time.monotonic(), ends_at)
            time.sleep(0.02)
        said: list[str] = []
        try:
            self.client.claim(task_id=self.id_of(created, "publish"), worker="by hand")
        except UpstreamIntentSuspendedError as e:
            # e.suspended_intent_id: the upstream intent that is suspended
            # e.expected_resume_at: ISO-8601 estimate or None
            said.append(f"Claim deferred: upstream intent {e.suspended_intent_id} is suspended")
            resume_at = e.expected_resume_at
        self.assertEqual(said, [f"Claim deferred: upstream intent {review} is suspended"])

        waiting = self.client.list(parent_id=created["root_task_id"], suspended=True)
        suspended_phases = [
            {
                "phase_name": task["name"],
                "intent_id": task["id"],
                "suspended_since": task["suspension"]["since"],
                "expires_at": task["suspension"]["expires_at"],
            }
            for task in waiting
        ]
        [phase] = suspended_phases
        self.assertEqual(
            (phase["phase_name"], phase["intent_id"], phase["expires_at"]),
            ("compliance_review", review, resume_at),
        )
        suspension = self.client.get(review)["suspension"]["suspension_id"]
        self.client.respond(review, suspension, True)
        claim = self.claim(created, "publish")
        self.assertEqual(claim["input"], {"approved": True})
        self.complete(claim, {})
        self.client.wait(created, timeout=60).raise_for_state()


if __name__ == "__main__":
    unittest.main()
