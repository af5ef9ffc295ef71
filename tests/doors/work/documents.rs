//! Workflow documents and contracts, through JSON-RPC with the real program. spec: RFC-0024

mod outputs;

use super::held;
use serde_json::{Value, json};
use taskledger_testkit::server::{Api, Folder, Server};

/// The complete example of RFC-0024, section 10.
const REPORT: &str = r#"
openintent: "1.0"
info:
  name: "Quarterly Compliance Report"
  version: "1.0.0"
types:
  FinancialData:
    revenue: number
    expenses: number
    quarter: string
  AnalysisResult:
    findings: array
    risk_level: string
    violations_found: boolean
workflow:
  fetch_financials:
    title: "Fetch Financial Data"
    assign: data-agent
    inputs:
      quarter: $trigger.quarter
      source: $initial_state.source
    initial_state:
      source: ledger
    outputs:
      revenue: number
      expenses: number
  fetch_hr_data:
    title: "Fetch HR Data"
    assign: data-agent
    inputs:
      quarter: $trigger.quarter
    outputs:
      headcount: number
      attrition_rate: number
  run_analysis:
    title: "Run Compliance Analysis"
    assign: analytics-agent
    depends_on: [fetch_financials, fetch_hr_data]
    inputs:
      fin_revenue: fetch_financials.revenue
      fin_expenses: fetch_financials.expenses
      hr_headcount: fetch_hr_data.headcount
      hr_attrition: fetch_hr_data.attrition_rate
    outputs:
      findings: array
      risk_level: string
      violations_found: boolean
  generate_report:
    title: "Generate Report"
    assign: reporting-agent
    depends_on: [run_analysis]
    inputs:
      analysis_findings: run_analysis.findings
      risk_level: run_analysis.risk_level
      has_violations: run_analysis.violations_found
    outputs:
      report_url: string
      report_summary: string
"#;

async fn claims(api: &Api, method: &str, max: u64) -> Vec<Value> {
    let wanted = json!({"methods": [method], "worker": "w", "max": max, "wait_seconds": 30});
    let mut found = api.call("tasks.claim", wanted).await;
    serde_json::from_value(found["claims"].take()).unwrap()
}

async fn completes(api: &Api, claim: &Value, output: Value) {
    let params = held(claim, json!({"output": output}));
    let ended = api.call("tasks.complete", params).await;
    assert_eq!(ended["status"], "completed");
}

async fn until(api: &Api, id: &str, status: &str) {
    let look = async || (super::task(api, id).await["status"] == status).then_some(());
    api.eventually(status, look).await;
}

async fn created(api: &Api, trigger: Value) -> Value {
    let params = json!({"document": REPORT, "trigger": trigger, "execute": true});
    api.call("workflows.create", params).await
}

#[tokio::test]
async fn the_example_of_the_specification_runs_as_it_stands() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let run = created(api, json!({"quarter": "2026-Q1"})).await;
    let names: Vec<_> = run["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["phase_name"].clone())
        .collect();
    let all = [
        "fetch_financials",
        "fetch_hr_data",
        "run_analysis",
        "generate_report",
    ];
    assert_eq!(names, all);

    let fetches = claims(api, "data-agent", 2).await;
    for claim in &fetches {
        let output = match claim["task"]["name"].as_str().unwrap() {
            "fetch_financials" => {
                assert_eq!(
                    claim["input"],
                    json!({"quarter": "2026-Q1", "source": "ledger"})
                );
                json!({"revenue": 12.5, "expenses": 10})
            }
            _ => {
                assert_eq!(claim["input"], json!({"quarter": "2026-Q1"}));
                json!({"headcount": 40, "attrition_rate": 0.1})
            }
        };
        completes(api, claim, output).await;
    }
    let analysis = claims(api, "analytics-agent", 1).await.remove(0);
    let input =
        json!({"fin_revenue": 12.5, "fin_expenses": 10, "hr_headcount": 40, "hr_attrition": 0.1});
    assert_eq!(analysis["input"], input);

    // Presence first, all faults in one answer, and the attempt goes on.
    let wrong = held(
        &analysis,
        json!({"output": {"findings": [], "violations_found": 0}}),
    );
    for _ in 0..2 {
        let refusal = api.refusal("tasks.complete", wrong.clone()).await;
        assert_eq!(refusal.code, -31024, "{refusal:?}");
        assert_eq!(refusal.data["error"], "MissingOutputError");
        assert_eq!(refusal.data["phase_name"], "run_analysis");
        assert_eq!(refusal.data["missing_keys"], json!(["risk_level"]));
        assert_eq!(refusal.data["mismatches"][0]["key"], "violations_found");
    }
    let wrong = json!({"output": {"findings": {}, "risk_level": "low", "violations_found": false}});
    let refusal = api.refusal("tasks.complete", held(&analysis, wrong)).await;
    assert_eq!(
        (refusal.code, &refusal.data["key"]),
        (-31025, &json!("findings"))
    );
    assert_eq!(refusal.data["expected_type"], "array");
    assert_eq!(refusal.data["actual_type"], "object");
    let output =
        json!({"findings": [1], "risk_level": "low", "violations_found": false, "more": null});
    completes(api, &analysis, output).await;

    let report = claims(api, "reporting-agent", 1).await.remove(0);
    let input = json!({"analysis_findings": [1], "risk_level": "low", "has_violations": false});
    assert_eq!(report["input"], input);
    completes(
        api,
        &report,
        json!({"report_url": "u", "report_summary": "s"}),
    )
    .await;
    let root = run["root_task_id"].as_str().unwrap();
    until(api, root, "completed").await;

    let rejected =
        json!({"task_id": analysis["task"]["id"], "types": ["task_completion_rejected"]});
    let history = api.call("tasks.history", rejected).await;
    let events = history["events"].as_array().unwrap();
    assert_eq!(events.len(), 2, "{history}");
    assert_eq!(events[0]["data"]["error"], "MissingOutputError");
    assert_eq!(events[0]["data"]["phase_name"], "run_analysis");
    assert_eq!(events[1]["data"]["mismatches"][0]["pointer"], "/findings");
}

#[tokio::test]
async fn a_claim_without_a_trigger_is_refused_and_the_phase_stays_ready() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let run = created(api, json!({"quarter": null})).await;
    let fetch = run["phases"][0]["task_id"].clone();
    for _ in 0..2 {
        let refusal = api
            .refusal("tasks.claim", json!({"task_id": fetch, "worker": "w"}))
            .await;
        assert_eq!(refusal.code, -31022, "{refusal:?}");
        assert_eq!(refusal.data["error"], "UnresolvableInputError");
        assert_eq!(
            refusal.data["unresolvable_refs"],
            json!(["$trigger.quarter"])
        );
    }
    let explained = api.call("tasks.explain", json!({"task_id": fetch})).await;
    assert_eq!(
        explained["reasons"][0]["code"], "lacks_inputs",
        "{explained}"
    );
    let task = super::task(api, fetch.as_str().unwrap()).await;
    assert_eq!(
        (&task["status"], &task["inputs"]),
        (&json!("pending"), &json!({"source": "ledger"}))
    );
    let types = json!({"task_id": fetch, "types": ["task_claim_rejected"]});
    let history = api.call("tasks.history", types).await;
    assert_eq!(history["events"].as_array().unwrap().len(), 1, "{history}");
}

#[tokio::test]
async fn workers_get_the_trigger_and_their_authors_the_schemas_of_phases() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    created(api, json!({"quarter": "Q1", "unused": [1]})).await;
    let claim = &claims(api, "data-agent", 1).await[0];
    assert_eq!(
        claim["context"]["trigger"],
        json!({"quarter": "Q1", "unused": [1]})
    );
    let plain = json!({"tasks": [{"name": "t", "schemas": {"type": "remote", "method": "m"}}]});
    api.call("tasks.execute", plain).await;
    assert_eq!(claims(api, "m", 1).await[0]["context"].get("trigger"), None);

    let asked = json!({"document": REPORT, "phase": "run_analysis"});
    let given = api.call("workflows.schemas", asked).await;
    let phase = &given["phases"][0];
    assert_eq!(
        phase["input_schema"]["properties"]["fin_revenue"],
        json!({"type": "number"})
    );
    let saved = api
        .call("workflows.save", json!({"document": REPORT}))
        .await;
    let kept = json!({"name": saved["name"]});
    let all = api.call("workflows.schemas", kept.clone()).await;
    assert_eq!(all["phases"].as_array().unwrap().len(), 4);
    assert!(all["phases"].as_array().unwrap().contains(phase));
    for (params, code, field) in [
        (json!({}), -32602, "document"),
        (json!({"document": REPORT, "name": "x"}), -32602, "name"),
        (
            json!({"document": REPORT, "phase": "none"}),
            -32602,
            "phase",
        ),
        (json!({"name": "none"}), -31012, "name"),
        (
            json!({"name": kept["name"], "version": 2}),
            -31012,
            "version",
        ),
    ] {
        let refusal = api.refusal("workflows.schemas", params).await;
        assert_eq!(
            (refusal.code, &refusal.data["field"]),
            (code, &json!(field)),
            "{refusal:?}"
        );
    }
}

#[tokio::test]
async fn references_without_a_value_are_told_with_names_of_phases() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let remote = |name: &str| json!({"name": name, "parent_id": "run", "schemas": {"type": "remote", "method": "m"}});
    let mut take = remote("take");
    take["dependencies"] = json!([{"id": "give"}]);
    take["schemas"]["wiring"] = json!({"x": "give.missing#/0"});
    let tasks = json!({"tasks": [{"name": "run"}, remote("give"), take]});
    let started = api.call("tasks.execute", tasks).await;
    let task = started["task_ids"]["take"].clone();
    let give = &claims(api, "m", 1).await[0];
    completes(api, give, json!({"other": 1})).await;
    let refs = json!(["give.missing#/0"]);
    let refusal = api.refusal("tasks.claim", json!({"task_id": task})).await;
    assert_eq!(refusal.data["unresolvable_refs"], refs, "{refusal:?}");
    let explained = api.call("tasks.explain", json!({"task_id": task})).await;
    assert_eq!(
        explained["reasons"][0]["unresolvable_refs"], refs,
        "{explained}"
    );
    let history = json!({"task_id": task, "types": ["task_claim_rejected"]});
    let history = api.call("tasks.history", history).await;
    let data = &history["events"][0]["data"];
    assert_eq!(
        (
            &data["phase_name"],
            &data["unresolvable_refs"],
            &data["message"]
        ),
        (
            &json!("take"),
            &refs,
            &json!("Task claim rejected: no value for `give.missing#/0`")
        )
    );
}

#[tokio::test]
async fn every_fault_of_a_document_has_its_place_and_nothing_is_created() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let document = REPORT
        .replace("fetch_financials.revenue", "fetch_financials.revenu")
        .replace("headcount: number", "headcount: numbre");
    let report = api
        .call("workflows.validate", json!({"document": document}))
        .await;
    assert_eq!(report["valid"], false);
    let errors = report["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2, "{report}");
    assert_eq!(
        errors[0]["path"],
        "workflow.fetch_hr_data.outputs.headcount"
    );
    assert_eq!(errors[1]["error"], "InputWiringError");
    assert_eq!(errors[1]["phase_name"], "run_analysis");
    assert!(
        errors.iter().all(|e| e["line"].as_u64() > Some(1)),
        "{report}"
    );
    let refusal = api
        .refusal("workflows.create", json!({"document": document}))
        .await;
    assert_eq!(refusal.code, -32602);
    assert_eq!(refusal.data["errors"].as_array().unwrap().len(), 2);
    let list = api.call("tasks.list", json!({})).await;
    assert_eq!(list["tasks"], json!([]));

    let sound = api
        .call("workflows.validate", json!({"document": REPORT}))
        .await;
    assert_eq!(
        (&sound["valid"], &sound["errors"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(sound["workflow"]["phases"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn an_executor_of_the_server_keeps_the_contract_of_its_task() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let task = |inputs: Value| {
        json!({"tasks": [{"name": "t", "inputs": inputs, "schemas": {
            "method": "echo_executor", "outputs": {"n": "integer"},
        }}]})
    };
    let sound = api.call("tasks.execute", task(json!({"n": 1}))).await;
    until(api, sound["root_task_id"].as_str().unwrap(), "completed").await;
    let broken = api.call("tasks.execute", task(json!({"n": true}))).await;
    let id = broken["root_task_id"].as_str().unwrap();
    until(api, id, "failed").await;
    let failed = super::task(api, id).await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.starts_with("OutputTypeMismatchError: "), "{error}");
}

#[tokio::test]
async fn the_answer_says_how_phases_stand() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let document = json!({"openintent": "1.0", "info": {"name": "w"}, "workflow": {
        "ask": {"assign": "approval_executor", "inputs": {"question": "$initial_state.question"},
                "initial_state": {"question": "?"}},
        "after": {"assign": "somebody", "depends_on": ["ask"]}}});
    for (execute, first) in [(false, "pending"), (true, "in_progress")] {
        let params = json!({"document": document, "execute": execute});
        let run = api.call("workflows.create", params).await;
        // Members of JSON come sorted: `after` is the first.
        assert_eq!(run["phases"][1]["status"], first, "{run}");
        assert_eq!(run["phases"][0]["status"], "pending", "{run}");
    }
    server.stop().await;
}

/// The members of a named error, and how many there are of `listed`.
fn named(data: &Value, error: &str, task: &Value, phase: &str, listed: &str) -> usize {
    assert_eq!(data["error"], error, "{data}");
    assert_eq!(
        (&data["task_id"], &data["phase_name"]),
        (task, &json!(phase)),
        "{data}"
    );
    let message = data["message"].as_str().unwrap();
    assert!(!message.is_empty());
    data[listed].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn each_named_error_has_the_members_of_the_specification() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    // 4.4
    let document = REPORT.replace("run_analysis.findings", "run_analysys.findings");
    let refusal = api
        .refusal("workflows.create", json!({"document": document}))
        .await;
    assert_eq!(refusal.code, -31021, "{refusal:?}");
    let data = &refusal.data;
    assert_eq!(data["error"], "InputWiringError");
    assert_eq!(data["phase_name"], "generate_report");
    assert_eq!(data["invalid_refs"], json!(["run_analysys.findings"]));
    assert_eq!(data["suggestion"], "did you mean `run_analysis`?");
    assert!(data["message"].is_string());
    // 4.3
    let run = created(api, json!({"quarter": "Q1"})).await;
    let analysis = &run["phases"][2]["task_id"];
    let refusal = api
        .refusal("tasks.claim", json!({"task_id": analysis}))
        .await;
    assert_eq!(refusal.code, -31022, "{refusal:?}");
    let data = &refusal.data;
    let (error, phase) = ("UnresolvableInputError", "run_analysis");
    let count = named(data, error, analysis, phase, "unresolvable_refs");
    assert_eq!(count, 4, "{data}");
    // 4.1, 4.2
    let claim = &claims(api, "data-agent", 1).await[0];
    let (task, phase) = (
        &claim["task"]["id"],
        claim["task"]["name"].as_str().unwrap(),
    );
    let output = |output: Value| held(claim, json!({"output": output}));
    let missing = api.refusal("tasks.complete", output(json!({}))).await;
    assert_eq!(missing.code, -31024, "{missing:?}");
    let data = &missing.data;
    let count = named(data, "MissingOutputError", task, phase, "missing_keys");
    assert_eq!(count, 2, "{data}");
    let wrong = json!({"revenue": "1", "expenses": true, "headcount": "1", "attrition_rate": true});
    let mismatch = api.refusal("tasks.complete", output(wrong)).await;
    assert_eq!(mismatch.code, -31025, "{mismatch:?}");
    let data = &mismatch.data;
    let count = named(data, "OutputTypeMismatchError", task, phase, "mismatches");
    assert_eq!(count, 2, "{data}");
    assert_eq!(data["expected_type"], "number");
    let first = &data["mismatches"][0];
    for member in ["key", "expected_type", "actual_type"] {
        assert_eq!(data[member], first[member]);
    }
    // Both are in the history, and the attempt goes on.
    let page = json!({"task_id": task, "types": ["task_completion_rejected"], "order": "asc"});
    let history = api.call("tasks.history", page).await;
    let events = history["events"].as_array().unwrap();
    let logged: Vec<_> = events.iter().map(|e| &e["data"]["error"]).collect();
    assert_eq!(logged, ["MissingOutputError", "OutputTypeMismatchError"]);
    for (event, refusal) in events.iter().zip([&missing, &mismatch]) {
        assert_eq!(event["task_id"], *task);
        for member in ["message", "missing_keys", "mismatches"] {
            let (logged, told) = (&event["data"][member], &refusal.data[member]);
            let absent = logged.is_null() && told.as_array().is_none_or(Vec::is_empty);
            assert!(absent || logged == told, "{member}: {event}");
        }
    }
    let right = json!({"revenue": 1, "expenses": 1.5, "headcount": 1, "attrition_rate": 0});
    completes(api, claim, right).await;
    server.stop().await;
}
