// The examples of RFC-0024, section by section, against the real server. docs/guides/contracts.md says how to follow them.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import {
  Client,
  InputWiringError,
  InvalidParamsError,
  InvalidTransitionError,
  LeaseNotHeldError,
  MissingOutputError,
  OutputTypeMismatchError,
  UnresolvableInputError,
  UpstreamIntentSuspendedError,
} from "taskledger";
import { Worker } from "taskledger/worker";
import { binary, Server, until } from "./server.mjs";

const options = { skip: binary ? false : "TASKLEDGER_BIN is not set" };
const FINDING = { source: "press", content: "late filing", confidence: 0.8 };
let server;
let client;

before(async () => {
  if (!binary) return;
  server = await Server.start();
  client = new Client({ url: server.url });
});
after(() => server?.stop());

const text = (section) => readFile(new URL(`../../../examples/rfc-0024/${section}.yaml`, import.meta.url), "utf8");

/** A run of a document; `id(phase)` is its task. */
async function create(document, trigger) {
  const created = await client.workflows.create(document, { execute: true, ...(trigger ? { trigger } : {}) });
  const id = (phase) => created.phases.find(({ phase_name }) => phase_name === phase).task_id;
  return { ...created, id, get: (phase) => client.get(id(phase)) };
}

async function completes({ root_task_id }) {
  await until(async () => (await client.get(root_task_id)).run?.state !== "running", 60_000);
  assert.equal((await client.get(root_task_id)).run.state, "completed");
}

/** Claims a phase as soon as it is ready. */
async function claim(created, phase) {
  let claims;
  await until(async () => {
    try {
      ({ claims } = await client.workers.claim({ task_id: created.id(phase), worker: "by hand" }));
      return true;
    } catch (error) {
      if (error instanceof InvalidTransitionError) return false;
      throw error;
    }
  });
  const [{ task, input, lease }] = claims;
  return { task, input, complete: (output) => client.workers.complete(task.id, lease.token, output) };
}

async function events(id, type) {
  const found = [];
  for await (const event of client.history(id, { types: [type] })) found.push(event.data);
  return found;
}

/** A worker for what phases are assigned to, while `body` runs; `handlers` are those of the phases. */
async function agents(handlers, assigned, body) {
  const worker = new Worker({ url: server.url, name: "agents", log: () => {} });
  for (const assign of assigned) worker.method(assign, (_, ctx) => handlers[ctx.task.name](ctx));
  const running = worker.run();
  try {
    return await body();
  } finally {
    await worker.stop();
    await running;
  }
}

/** What a call is refused with. */
async function refusal(Class, call) {
  const error = await call.then(() => assert.fail("it was accepted"), (e) => e);
  assert.ok(error instanceof Class, `${error}`);
  return error;
}

const picked = (data, like) => Object.fromEntries(Object.keys(like).map((key) => [key, data[key]]));

// Motivation, 1: declared outputs.

test("1.1: outputs are declared, and the handler of the motivation keeps them", options, async () => {
  const fetch = async (quarter) => ({ "2026-Q1": 12.5 })[quarter];
  const handle = async (ctx) => {
    const quarter = ctx.input["quarter"];
    const revenue = await fetch(quarter);
    return { revenue, expenses: 0 };
  };
  const document = (await text("1.1")).replace("    outputs:", "    inputs: {quarter: $trigger.quarter}\n    outputs:");
  await agents({ fetch_financials: handle }, ["data-agent"], async () => {
    const created = await create(document, { quarter: "2026-Q1" });
    await completes(created);
    assert.deepEqual((await created.get("fetch_financials")).result, { revenue: 12.5, expenses: 0 });
  });
});

test("1.2: an output of a named type has its shape", options, async () => {
  const created = await create(await text("1.2"));
  const research = await claim(created, "research");
  const wrong = research.complete({ sources: [], findings: { ...FINDING, confidence: "high" } });
  const error = await refusal(OutputTypeMismatchError, wrong);
  assert.equal(error.key, "findings");
  assert.deepEqual(error.data.mismatches.map(({ pointer }) => pointer), ["/findings/confidence"]);
  await research.complete({ sources: ["press"], findings: FINDING });
  await completes(created);
});

test("1.3: an optional output may be absent, but not of another type", options, async () => {
  for (const output of [{ status: "ok" }, { status: "ok", warnings: ["late"] }]) {
    const created = await create(await text("1.3"));
    const check = await claim(created, "check");
    const error = await refusal(OutputTypeMismatchError, check.complete({ status: "ok", warnings: "late" }));
    assert.equal(error.key, "warnings");
    await check.complete(output);
    await completes(created);
  }
});

// 2, 5.1: wired inputs.

test("2.1, 5.1: the handler gets exactly the declared inputs", options, async () => {
  const inputs = [];
  const analyze = (findings, sources) => ({ insights: `${findings.content} (${sources.length} sources)`, recommendations: [] });
  const research = async () => ({ sources: ["press"], findings: FINDING });
  const runAnalysis = async (ctx) => {
    inputs.push(ctx.input);
    const findings = ctx.input["research_findings"];
    const sources = ctx.input["sources_list"];
    const result = analyze(findings, sources);
    return { insights: result.insights, recommendations: result.recommendations };
  };
  await agents({ research, analysis: runAnalysis }, ["researcher", "analyst"], async () => {
    const created = await create(await text("2.1"));
    await completes(created);
    assert.deepEqual(inputs, [{ research_findings: FINDING, sources_list: ["press"] }]);
    assert.deepEqual((await created.get("analysis")).result, { insights: "late filing (1 sources)", recommendations: [] });
  });
});

test("2.2: inputs come from several phases, and a key that is missing is named", options, async () => {
  const analysis = { insights: "none", recommendations: ["wait"] };
  const prepared = async (checked) => {
    const created = await create(await text("2.2"));
    await (await claim(created, "analysis")).complete(analysis);
    await (await claim(created, "compliance_check")).complete(checked);
    return created;
  };
  const created = await prepared({ status: "passed", violations: [] });
  const report = await claim(created, "generate_report");
  assert.deepEqual(report.input, { ...analysis, compliance_status: "passed", violations: [] });
  await report.complete({ report_url: "u", report_summary: "s" });
  await completes(created);

  const lacking = await prepared({ status: "passed" });
  const error = await refusal(UnresolvableInputError, claim(lacking, "generate_report"));
  assert.deepEqual(error.unresolvableRefs, ["compliance_check.violations"]);
});

test("2.3: static inputs are of the trigger and of the initial state", options, async () => {
  const created = await create(await text("2.3"), { quarter: "2026-Q1", more: 1 });
  const fetchData = await claim(created, "fetch_data");
  assert.deepEqual(fetchData.input, { quarter: "2026-Q1", source: "ledger" });
  await fetchData.complete({ data: {} });
  await completes(created);

  const asPublished = await create((await text("2.3")).replace("    initial_state: {source: ledger}\n", ""), { quarter: null });
  assert.deepEqual(asPublished.warnings[0].invalid_refs, ["$initial_state.source"]);
  const error = await refusal(UnresolvableInputError, claim(asPublished, "fetch_data"));
  assert.deepEqual(error.unresolvableRefs, ["$trigger.quarter", "$initial_state.source"]);
});

// 4, 6: named errors.

test("4.1: a missing output is told as the text shows, and may be added", options, async () => {
  const created = await create(await text("1.1"));
  const { task, complete } = await claim(created, "fetch_financials");
  const error = await refusal(MissingOutputError, complete({ revenue: 1 }));
  const payload = {
    error: "MissingOutputError",
    task_id: task.id,
    phase_name: "fetch_financials",
    missing_keys: ["expenses"],
    message: "Task completion rejected: declared output key 'expenses' was not present in agent return value",
  };
  assert.deepEqual(picked(error.data, payload), payload);
  assert.deepEqual([error.taskId, error.phaseName, error.missingKeys], [task.id, "fetch_financials", ["expenses"]]);
  const [{ error: name, missing_keys, message }, ...more] = await events(task.id, "task_completion_rejected");
  assert.deepEqual([name, missing_keys, message, more], [payload.error, payload.missing_keys, payload.message, []]);
  assert.equal((await client.get(task.id)).status, "in_progress");
  await complete({ revenue: 1, expenses: 0 });
  await completes(created);
});

test("4.2: an integer is a number, and a text is none", options, async () => {
  const created = await create(await text("1.1"));
  const { task, complete } = await claim(created, "fetch_financials");
  const error = await refusal(OutputTypeMismatchError, complete({ revenue: "1", expenses: 0 }));
  assert.deepEqual(
    [error.taskId, error.phaseName, error.key, error.expectedType, error.actualType],
    [task.id, "fetch_financials", "revenue", "number", "string"],
  );
  await complete({ revenue: 1, expenses: 0.5 });
  await completes(created);
});

test("4.3: an input without a value is told, and the phase stays ready", options, async () => {
  const declared = "    outputs:\n      sources: array\n      findings: Finding\n";
  const created = await create((await text("2.1")).replace(declared, ""));
  await (await claim(created, "research")).complete({ sources: [] });
  const error = await refusal(UnresolvableInputError, claim(created, "analysis"));
  const id = created.id("analysis");
  const refs = ["research.findings"];
  const payload = { error: "UnresolvableInputError", task_id: id, phase_name: "analysis", unresolvable_refs: refs };
  assert.deepEqual(picked(error.data, payload), payload);
  assert.ok(error.data.message.includes(refs[0]), error.data.message);
  assert.deepEqual(error.unresolvableRefs, refs);
  assert.deepEqual((await events(id, "task_claim_rejected")).map((event) => event.unresolvable_refs), [refs]);
  assert.equal((await client.get(id)).status, "pending");
});

test("4.4, 8: references that are wrong are refused with the document", options, async () => {
  const document = await text("2.1");
  const reference = "research.findings";
  for (const [wrong, ref, suggestion] of [
    [document.replace("depends_on: [research]", "depends_on: []"), reference, "depends_on"],
    [document.replace(reference, "reserch.findings"), "reserch.findings", "research"],
    [document.replace(reference, "research.finding"), "research.finding", "findings"],
    [document.replace(reference, "findings"), "findings", undefined],
  ]) {
    const error = await refusal(InputWiringError, create(wrong));
    assert.equal(error.phaseName, "analysis");
    assert.ok(error.invalidRefs.includes(ref), `${error.invalidRefs}`);
    if (suggestion === undefined) assert.ok(error.data.reason.includes("`<phase>.<key>`"), error.data.reason);
    else assert.ok(error.data.suggestion.includes(suggestion), error.data.suggestion);
    const { errors } = await client.workflows.validate(wrong);
    // The first one lists all references of the phase that are wrong.
    assert.deepEqual([errors[0].error, errors[0].invalid_refs], ["InputWiringError", error.invalidRefs]);
  }
});

// 5.2: the escape hatch.

test("5.2: a handler reads the output of a sibling", options, async () => {
  const outputs = [];
  const fetch = async () => ({ revenue: 1 });
  const report = async (ctx) => void outputs.push(await ctx.siblingOutput("fetch"));
  // No inputs and no outputs are declared.
  const legacy = `openintent: "1.0"
info: {name: legacy}
workflow:
  fetch: {assign: legacy-agent}
  report: {assign: legacy-agent, depends_on: [fetch]}
`;
  await agents({ fetch, report }, ["legacy-agent"], async () => completes(await create(legacy)));
  assert.deepEqual(outputs, [{ revenue: 1 }]);
});

test("5.2: whoever holds a task reads the results of those beside it, until its lease is over", options, async () => {
  const { task_ids: ids } = await client.execute([
    { id: "root", name: "root" },
    { id: "fetch", name: "fetch", parent_id: "root", schemas: { method: "echo_executor" }, inputs: { n: 7 } },
    { id: "later", name: "later", parent_id: "root", schemas: { type: "remote", method: "nobody's" } },
    { name: "mine", parent_id: "root", schemas: { type: "remote", method: "beside" }, dependencies: [{ id: "fetch" }] },
  ]);
  const { claims } = await client.workers.claim({ methods: ["beside"], worker: "by hand", wait_seconds: 30 });
  const [{ task, lease }] = claims;
  const sibling = (name) => client.workers.siblingOutput(task.id, lease.token, name);
  const fetched = { task_id: ids.fetch, name: "fetch", status: "completed", output: { n: 7 } };
  assert.deepEqual(await sibling("fetch"), fetched);
  assert.deepEqual(await sibling(ids.fetch), fetched);
  assert.deepEqual(await sibling("later"), { task_id: ids.later, name: "later", status: "pending", output: null });
  const [unknown] = (await refusal(InvalidParamsError, sibling("nobody"))).violations;
  assert.match(unknown.expected, /fetch/);
  await client.workers.release(task.id, lease.token);
  await refusal(LeaseNotHeldError, sibling("fetch"));
});

// 7: what becomes of a document.

test("7: inputs and outputs of each phase are those of its task", options, async () => {
  const created = await create(await text("2.1"));
  const research = created.id("research");
  const { schemas } = await created.get("analysis");
  assert.deepEqual(schemas.outputs, { insights: "string", recommendations: "array" });
  assert.deepEqual(schemas.wiring, { research_findings: `${research}.findings`, sources_list: `${research}.sources` });
  assert.deepEqual(schemas.types, { Finding: { source: "string", content: "string", confidence: "number" } });
  assert.deepEqual([schemas.method, schemas.workflow.title], ["analyst", "Analyze Findings"]);
  await client.cancel(created.root_task_id, { cascade: true });
});

test("7: one key creates one run", options, async () => {
  const document = await text("1.1");
  const [a, b] = await Promise.all([1, 2].map(() => client.workflows.create(document, { execute: true }, { idempotencyKey: "one run" })));
  assert.deepEqual(a, b);
  const another = client.workflows.create(await text("1.2"), { execute: true }, { idempotencyKey: "one run" });
  await refusal(InvalidParamsError, another);
  await client.cancel(a.root_task_id, { cascade: true });
});

// 9: incremental adoption.

test("9: what is not declared is not checked", options, async () => {
  const inputs = [];
  const old = async (ctx) => void inputs.push(ctx.input);
  const partly = async (ctx) => {
    inputs.push(ctx.input);
    return { declared: "x", more: null };
  };
  const document = `openintent: "1.0"
info: {name: adoption}
workflow:
  old: {assign: adopting-agent}
  partly: {assign: adopting-agent, depends_on: [old], outputs: {declared: string}}
`;
  await agents({ old, partly }, ["adopting-agent"], async () => {
    const created = await create(document);
    await completes(created);
    assert.deepEqual(inputs, [{}, {}]);
    assert.deepEqual((await created.get("old")).result, {});
    assert.deepEqual((await created.get("partly")).result, { declared: "x", more: null });
  });
});

// 10: the complete example.

test("10: the complete example runs", options, async () => {
  const inputs = {};
  const complianceEngine = {
    analyze: async (of) => ({ findings: [Object.keys(of).sort()], risk_level: "low", violations_found: of.revenue < of.expenses }),
  };
  const handlers = {
    fetch_financials: async (ctx) => ((inputs.financials = ctx.input), { revenue: 12.5, expenses: 10 }),
    fetch_hr_data: async (ctx) => ((inputs.hr = ctx.input), { headcount: 40, attrition_rate: 0.1 }),
    run_analysis: async (ctx) => {
      // All inputs are guaranteed present by the executor
      const revenue = ctx.input["fin_revenue"];
      const expenses = ctx.input["fin_expenses"];
      const headcount = ctx.input["hr_headcount"];
      const attrition = ctx.input["hr_attrition"];
      const result = await complianceEngine.analyze({ revenue, expenses, headcount, attrition });
      // Return must include all declared outputs
      return { findings: result.findings, risk_level: result.risk_level, violations_found: result.violations_found };
    },
    generate_report: async (ctx) => ((inputs.report = ctx.input), { report_url: "https://reports.example/1", report_summary: "s" }),
  };
  await agents(handlers, ["data-agent", "analytics-agent", "reporting-agent"], async () => {
    const created = await create(await text("10"), { quarter: "2026-Q1" });
    await completes(created);
    assert.deepEqual(inputs.financials, { quarter: "2026-Q1", source: "ledger" });
    assert.deepEqual(inputs.hr, { quarter: "2026-Q1" });
    const given = {
      analysis_findings: [["attrition", "expenses", "headcount", "revenue"]],
      risk_level: "low",
      has_violations: false,
    };
    assert.deepEqual(inputs.report, given);
    const { lineage } = await client.explain(created.id("generate_report"));
    assert.deepEqual(lineage.map(({ input }) => input).sort(), Object.keys(given).map((key) => `/${key}`).sort());
  });
});

// The patch of RFC-0026.

test("0026: a claim waits for a phase that waits for a person", options, async () => {
  const document = `openintent: "1.0"
info: {name: RFC-0026}
workflow:
  compliance_review:
    assign: approval_executor
    initial_state: {question: Publish?, timeout_seconds: 10800}
    inputs: {question: $initial_state.question, timeout_seconds: $initial_state.timeout_seconds}
  publish:
    assign: publisher
    depends_on: [compliance_review]
    inputs: {approved: compliance_review.approved}
`;
  const created = await create(document);
  const review = created.id("compliance_review");
  await until(async () => (await client.get(review)).suspension !== undefined);
  const error = await refusal(
    UpstreamIntentSuspendedError,
    client.workers.claim({ task_id: created.id("publish"), worker: "by hand" }),
  );
  assert.equal(error.suspendedIntentId, review);

  const suspendedPhases = [];
  for await (const { id, name, suspension } of client.list({ parent_id: created.root_task_id, suspended: true })) {
    suspendedPhases.push({ phase_name: name, intent_id: id, suspended_since: suspension.since, expires_at: suspension.expires_at });
  }
  const { suspension } = await client.get(review);
  assert.deepEqual(suspendedPhases, [
    { phase_name: "compliance_review", intent_id: review, suspended_since: suspension.since, expires_at: error.expectedResumeAt },
  ]);
  await client.respond(review, suspension.suspension_id, true);
  const publish = await claim(created, "publish");
  assert.deepEqual(publish.input, { approved: true });
  await publish.complete({});
  await completes(created);
});
