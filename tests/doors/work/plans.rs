//! Plans with mistakes: refused when they are given, or warned of in the answer.

use super::held;
use serde_json::{Value, json};
use taskledger_testkit::server::{Api, Folder, Server};

/// A document whose phase needs `$trigger.quarter`.
const REPORT: &str = "openintent: \"1.0\"\ninfo: {name: Report}\nworkflow:\n  fetch:\n    assign: echo_executor\n    inputs: {q: $trigger.quarter}\n";

/// Which member of the call is at fault.
fn path(refused: &Value) -> String {
    let path = refused["path"].as_array().into_iter().flatten();
    let path: Vec<String> = path
        .map(|step| {
            step.as_str()
                .map_or_else(|| step.to_string(), str::to_owned)
        })
        .collect();
    path.join(".")
}

#[tokio::test]
async fn a_run_without_a_value_of_the_trigger_that_a_phase_needs_is_not_created() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    api.call("workflows.save", json!({"document": REPORT}))
        .await;
    let lacks = async |method: &str, params: Value, place: &str| {
        let refused = api.refusal(method, params).await;
        assert_eq!(refused.code, -32602, "{refused:?}");
        assert_eq!(refused.data["missing_keys"], json!(["quarter"]));
        assert_eq!(path(&refused.data), format!("{place}.quarter"));
    };
    for execute in [true, false] {
        let create = json!({"document": REPORT, "trigger": {"qarter": 1}, "execute": execute});
        lacks("workflows.create", create, "trigger").await;
        let run = json!({"name": "Report", "execute": execute});
        lacks("workflows.run", run, "trigger").await;
    }
    let schedule = json!({"name": "s", "cron": "@hourly", "workflow": {"name": "Report"}});
    lacks("schedules.create", schedule, "workflow.inputs").await;
    assert_eq!(api.call("tasks.list", json!({})).await["total"], 0);

    // Keys that no phase uses, and values that are null, are warnings.
    let run = json!({"name": "Report", "trigger": {"quarter": 1, "qarter": 2}});
    let run = api.call("workflows.run", run).await;
    let warning = &run["warnings"][0];
    assert_eq!(warning["path"], "trigger.qarter", "{run}");
    assert_eq!(warning["suggestion"], "did you mean `quarter`?");
    let workflow = json!({"name": "Report", "inputs": {"quarter": 1, "more": 2}});
    let schedule = json!({"name": "s", "cron": "@hourly", "workflow": workflow});
    let made = api.call("schedules.create", schedule).await;
    let warnings = made["warnings"].as_array().expect("warnings");
    assert_eq!(warnings.len(), 1, "{made}");
    assert_eq!(warnings[0]["reason"], "no phase uses `$trigger.more`");
}

#[tokio::test]
async fn a_schedule_whose_workflow_changed_fails_visibly_and_blocks_no_later_time() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    api.call("workflows.save", json!({"document": REPORT}))
        .await;
    let workflow = json!({"name": "Report", "inputs": {"quarter": 1}});
    let schedule = json!({"name": "s", "cron": "@yearly", "workflow": workflow});
    api.call("schedules.create", schedule).await;
    let more = REPORT.replace(
        "{q: $trigger.quarter}",
        "{q: $trigger.quarter, r: $trigger.region}",
    );
    api.call("workflows.save", json!({"document": more})).await;
    for _ in 0..2 {
        let run = api.call("schedules.run_now", json!({"name": "s"})).await;
        assert_eq!(run["outcome"], "failed", "{run}");
        let reason =
            "inputs: the trigger has no value for `$trigger.region` (input `r` of phase `fetch`)";
        assert_eq!(run["error"], reason);
    }
    // The policy `skip` waits for nothing: the next time starts.
    api.call("workflows.save", json!({"document": REPORT}))
        .await;
    let run = api.call("schedules.run_now", json!({"name": "s"})).await;
    assert_eq!(run["outcome"], "started", "{run}");
    let shown = api.call("schedules.get", json!({"name": "s"})).await;
    let outcomes = shown["runs"].as_array().expect("runs").iter();
    let outcomes: Vec<&Value> = outcomes.map(|run| &run["outcome"]).collect();
    assert_eq!(outcomes, ["started", "failed", "failed"]);
}

/// A task that needs the secret `api-key` once `first` has completed.
fn needs_secret() -> Value {
    json!({"tasks": [
        {"name": "r"},
        {"name": "first", "parent_id": "r", "schemas": {"type": "remote", "method": "m"}},
        {"name": "call", "parent_id": "r", "dependencies": [{"id": "first"}], "schemas": {"method": "http_executor"},
         "inputs": {"url": "https://example.com/", "auth": {"type": "bearer", "token": {"$secret": "api-key"}}}},
    ]})
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_warned_of_when_the_run_begins() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let warned = |answer: &Value| {
        let warning = &answer["warnings"][0];
        assert_eq!(warning["field"], "api-key", "{answer}");
        assert_eq!(
            warning["command"], "taskledger secrets set api-key",
            "{answer}"
        );
    };
    warned(&api.call("tasks.execute", needs_secret()).await);
    let created = api.call("tasks.create", needs_secret()).await;
    let stored = json!({"task_id": created["id"]});
    warned(&api.call("tasks.execute", stored).await);
    let wanted = json!({"methods": ["m"], "worker": "w", "max": 2, "wait_seconds": 30});
    let claimed = api.call("tasks.claim", wanted).await;
    let failing = &claimed["claims"][0];
    api.call("tasks.fail", held(failing, json!({"error": "broke"})))
        .await;
    let retry = json!({"task_id": failing["task"]["id"]});
    warned(&api.call("tasks.retry", retry).await);
    let mut schedule = needs_secret();
    (schedule["name"], schedule["cron"]) = (json!("s"), json!("@yearly"));
    warned(&api.call("schedules.create", schedule).await);
    warned(&api.call("schedules.run_now", json!({"name": "s"})).await);

    let set = json!({"name": "api-key", "value": "a secret of some length"});
    api.call("secrets.set", set).await;
    let run = api.call("tasks.execute", needs_secret()).await;
    assert_eq!(run.get("warnings"), None, "{run}");
}

#[tokio::test]
async fn no_task_depends_on_a_group_above_it_and_all_such_faults_are_in_one_answer() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let echo = |name: &str, parent: &str, on: &[&str]| {
        let on: Vec<Value> = on.iter().map(|id| json!({"id": id})).collect();
        json!({"id": name, "name": name, "parent_id": parent, "dependencies": on,
            "schemas": {"method": "echo_executor"}})
    };
    let group = |name: &str| json!({"id": name, "name": name, "parent_id": "r"});
    let tasks = json!({"tasks": [
        {"id": "r", "name": "r"}, group("g"), group("h"),
        echo("a", "g", &["r"]), echo("b", "g", &["g"]), echo("c", "h", &["x"]), echo("x", "r", &["h"]),
    ]});
    for method in ["tasks.create", "tasks.execute"] {
        let refused = api.refusal(method, tasks.clone()).await;
        assert_eq!(refused.code, -32002, "{refused:?}");
        assert_eq!(refused.data["cycle"], json!(["a", "r", "a"]));
        let faults = refused.data["errors"].as_array().expect("faults");
        let places: Vec<String> = faults.iter().map(path).collect();
        assert_eq!(
            places,
            [
                "tasks.3.dependencies.0.id",
                "tasks.4.dependencies.0.id",
                "tasks.5.dependencies"
            ]
        );
        let reason = "Task cannot depend on a group above it, which waits for it";
        assert_eq!(faults[0]["reason"], reason);
        let reason = "Circular dependency of 3 tasks: a group waits for the tasks below it";
        assert_eq!(faults[2]["reason"], reason);
    }
    assert_eq!(api.call("tasks.list", json!({})).await["total"], 0);
}

#[tokio::test]
async fn a_claim_before_dependencies_have_completed_lists_every_reference_without_a_value() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let document = "openintent: \"1.0\"\ninfo: {name: early}\nworkflow:\n  a: {assign: m}\n  c: {assign: n}\n  b:\n    assign: m\n    depends_on: [a, c]\n    inputs: {z: a.x, n: $trigger.none, m: $initial_state.none, k: c.k, d: {from: a.y, default: 1}, a: a.y}\n";
    let create = json!({"document": document, "trigger": {"none": null}, "execute": true});
    let run = api.call("workflows.create", create).await;
    let b = json!({"task_id": run["phases"][2]["task_id"]});
    let early = api.refusal("tasks.claim", b.clone()).await;
    assert_eq!(early.data["error"], "UnresolvableInputError");
    let refs = ["a.x", "$trigger.none", "$initial_state.none", "c.k", "a.y"];
    assert_eq!(early.data["unresolvable_refs"], json!(refs), "{early:?}");
    let incomplete = early.data["incomplete_dependencies"]
        .as_array()
        .expect("both");
    assert_eq!(incomplete.len(), 2);
    let message = "Task claim rejected: dependencies have not completed: `a` is pending, `c` is pending; no value for `a.x`, `$trigger.none`, `$initial_state.none`, `c.k`, `a.y`";
    assert_eq!(early.data["message"], message);
    complete_next(api, "m", json!({"x": 1})).await;
    let later = api.refusal("tasks.claim", b.clone()).await;
    let refs = ["$trigger.none", "$initial_state.none", "c.k", "a.y"];
    assert_eq!(later.data["unresolvable_refs"], json!(refs), "{later:?}");
    complete_next(api, "n", json!({"k": 1})).await;
    let late = api.refusal("tasks.claim", b).await;
    let refs = ["$trigger.none", "$initial_state.none", "a.y"];
    assert_eq!(late.data["unresolvable_refs"], json!(refs), "{late:?}");
    assert_eq!(late.data["incomplete_dependencies"], Value::Null);
}

async fn complete_next(api: &Api, method: &str, output: Value) {
    let wanted = json!({"methods": [method], "worker": "w", "max": 1, "wait_seconds": 30});
    let claimed = api.call("tasks.claim", wanted).await;
    let output = held(&claimed["claims"][0], json!({"output": output}));
    api.call("tasks.complete", output).await;
}
