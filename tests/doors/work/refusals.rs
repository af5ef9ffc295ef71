//! Refused claims and results: the same members in the answer, the history, on streams and in webhooks.
//! spec: RFC-0024 / 4, RFC-0026 patch

use super::{METHOD, claim, held, task};
use crate::streams::sse;
use crate::webhooks::site::Site;
use serde_json::{Map, Value, json};
use taskledger_testkit::server::{Api, Folder, Refusal, Server};

const KINDS: [&str; 3] = [
    "task_claim_rejected",
    "task_completion_rejected",
    "task_failed",
];

/// Starts a tree: `a` declares an output, `b` needs another one of it, and `c` is no `string`.
async fn started(api: &Api) -> Value {
    let tasks = json!({"tasks": [
        {"name": "r"},
        {"name": "a", "parent_id": "r",
         "schemas": {"type": "remote", "method": METHOD, "outputs": {"n": "integer"}}},
        {"name": "b", "parent_id": "r", "dependencies": [{"id": "a"}],
         "schemas": {"type": "remote", "method": METHOD, "wiring": {"x": "a.other"}}},
        {"name": "c", "parent_id": "r", "inputs": {"k": 1},
         "schemas": {"method": "echo_executor", "outputs": {"k": "string"}}},
    ]});
    api.call("tasks.execute", tasks).await["task_ids"].take()
}

/// The members of RFC-0024, which stand beside the faults.
fn assert_told(told: &Value, refusal: &Refusal) {
    let told: &Map<String, Value> = told.as_object().unwrap();
    assert!(told.contains_key("error") && told.contains_key("message"));
    for (member, value) in told {
        assert_eq!(&refusal.data[member], value, "{member}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_the_same_members_in_answers_histories_streams_and_webhooks() {
    let site = Site::new(json!({"events": KINDS})).await;
    let api = &site.server.api;
    let query = format!("?from=beginning&types={}", KINDS.join(","));
    let mut stream = sse::open(api, &query, None).await;
    let ids = started(api).await;
    let by_id = json!({"task_id": ids["b"]});

    let early = api.refusal("tasks.claim", by_id.clone()).await;
    assert_eq!(early.code, -31022, "{early:?}");
    assert_eq!(early.data["error"], "UnresolvableInputError");
    assert_eq!(early.data["phase_name"], "b");
    assert_eq!(early.data["unresolvable_refs"], json!(["a.other"]));
    assert_eq!(
        early.data["incomplete_dependencies"],
        json!([{"phase_name": "a", "task_id": ids["a"], "status": "pending"}])
    );
    // An equal repetition is answered, and says nothing new.
    let again = api.refusal("tasks.claim", by_id.clone()).await;
    assert_eq!(again.data, early.data);
    let claimed = claim(api).await;
    let complete = |output: Value| held(&claimed, json!({"output": output}));
    let missing = api.refusal("tasks.complete", complete(json!({}))).await;
    assert_eq!(missing.code, -31024);
    let wrong = complete(json!({"n": "x"}));
    let wrong = api.refusal("tasks.complete", wrong).await;
    assert_eq!(wrong.code, -31025);
    api.call("tasks.complete", complete(json!({"n": 1}))).await;
    let late = api.refusal("tasks.claim", by_id).await;
    assert_eq!(late.code, -31022);
    assert_eq!(late.data["unresolvable_refs"], json!(["a.other"]));
    assert_eq!(late.data["incomplete_dependencies"], Value::Null);
    assert_eq!(
        task(api, ids["b"].as_str().unwrap()).await["status"],
        "pending"
    );

    let expected = [
        ("task_claim_rejected", "pending", &early),
        ("task_completion_rejected", "in_progress", &missing),
        ("task_completion_rejected", "in_progress", &wrong),
        ("task_claim_rejected", "pending", &late),
    ];
    // History.
    let types = json!({"task_id": ids["r"], "scope": "flow", "order": "asc", "types": &KINDS[..2]});
    let history = api.call("tasks.history", types).await;
    let entries = history["events"].as_array().unwrap();
    assert_eq!(entries.len(), expected.len(), "{history}");
    for (entry, (kind, _, refusal)) in entries.iter().zip(&expected) {
        assert_eq!(&entry["type"], kind);
        let mut data = entry["data"].clone();
        for member in ["worker", "attempt"] {
            data.as_object_mut().unwrap().remove(member);
        }
        assert_told(&data, refusal);
    }
    // Streams.
    let events = stream.events(expected.len() + 1).await;
    let (failed, refused): (Vec<_>, Vec<_>) = events
        .iter()
        .map(|event| (event.event.as_deref().unwrap(), event.json()))
        .partition(|(kind, _)| *kind == "task_failed");
    for ((kind, told), (expected, status, refusal)) in refused.iter().zip(&expected) {
        assert_eq!((kind, &told["status"]), (expected, &json!(status)));
        assert_eq!(told["task_id"], refusal.data["task_id"]);
        assert_told(&told["contract_error"], refusal);
    }
    let [(_, failed)] = failed.as_slice() else {
        panic!("{failed:?}");
    };
    let told = &failed["contract_error"];
    assert_eq!(failed["task_id"], ids["c"]);
    assert_eq!(told["error"], "OutputTypeMismatchError");
    assert_eq!(
        (&told["key"], &told["expected_type"], &told["actual_type"]),
        (&json!("k"), &json!("string"), &json!("integer"))
    );
    assert_eq!(told["phase_name"], "c");
    let of_failure = json!({"task_id": ids["c"], "types": ["task_failed"]});
    let entry = &api.call("tasks.history", of_failure).await["events"][0]["data"];
    assert_eq!(&entry["contract_error"], told);
    // Webhooks.
    let look = async || Some(site.receiver.requests()).filter(|it| it.len() > expected.len());
    let requests = api.eventually("all are sent", look).await;
    let mut sent: Vec<Value> = requests
        .iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect();
    sent.sort_by_key(|body| body["sequence"].as_u64());
    let told = events
        .iter()
        .map(|event| event.json()["contract_error"].take());
    let bodies = sent.iter().map(|body| body["contract_error"].clone());
    assert_eq!(bodies.collect::<Vec<_>>(), told.collect::<Vec<_>>());
    site.server.stop().await;
}

#[tokio::test]
async fn a_claim_behind_a_question_is_a_fact_once() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let tasks = json!({"tasks": [
        {"name": "r"},
        {"name": "gate", "parent_id": "r", "schemas": {"method": "approval_executor"},
         "inputs": {"question": "?"}},
        {"name": "after", "parent_id": "r", "dependencies": [{"id": "gate"}],
         "schemas": {"type": "remote", "method": METHOD, "wiring": {"ok": "gate.approved"}}},
    ]});
    let ids = api.call("tasks.execute", tasks).await["task_ids"].take();
    let look = async || {
        let gate = ids["gate"].as_str().unwrap();
        Some(task(api, gate).await["suspension"].clone()).filter(Value::is_object)
    };
    api.eventually("a question", look).await;
    let by_id = json!({"task_id": ids["after"], "worker": "w"});
    let refusal = api.refusal("tasks.claim", by_id.clone()).await;
    assert_eq!(refusal.code, -31023, "{refusal:?}");
    assert_eq!(api.refusal("tasks.claim", by_id).await.code, -31023);
    let types = json!({"task_id": ids["after"], "types": ["task_claim_rejected"]});
    let history = api.call("tasks.history", types).await;
    let [entry] = history["events"].as_array().unwrap().as_slice() else {
        panic!("{history}");
    };
    let mut data = entry["data"].clone();
    assert_eq!(
        data.as_object_mut().unwrap().remove("worker"),
        Some(json!("w"))
    );
    assert_eq!(data["error"], "UpstreamIntentSuspendedError");
    assert_eq!(data["suspended_intent_id"], ids["gate"]);
    assert_told(&data, &refusal);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_that_is_too_large_is_a_fact_once_and_the_attempt_goes_on() {
    let site = Site::new(json!({"events": KINDS})).await;
    let api = &site.server.api;
    let query = "?from=beginning&types=task_completion_rejected";
    let mut stream = sse::open(api, query, None).await;
    let ids = started(api).await;
    let claimed = claim(api).await;
    let large = json!({"output": {"n": 1, "text": "x".repeat(1024 * 1024)}});
    let complete = held(&claimed, large);
    api.call("tasks.renew", held(&claimed, json!({"progress": 0.5})))
        .await;

    let refusal = api.refusal("tasks.complete", complete.clone()).await;
    assert_eq!(refusal.code, -32602, "{refusal:?}");
    assert_eq!(refusal.data["field"], "output");
    assert_eq!(refusal.data["error"], "OutputTooLargeError");
    assert_eq!(refusal.data["phase_name"], "a");
    assert_eq!(
        (&refusal.data["key"], &refusal.data["limit"]),
        (&json!("text"), &json!(1024 * 1024))
    );
    let again = api.refusal("tasks.complete", complete.clone()).await;
    assert_eq!(again.data, refusal.data);
    // Somebody who does not hold the task is told no name, and nothing is recorded.
    let mut other = complete.clone();
    other["lease"] = json!("00000000-0000-4000-8000-000000000000");
    let of_nobody = api.refusal("tasks.complete", other).await;
    assert_eq!(of_nobody.code, -32602);
    assert_eq!(of_nobody.data["phase_name"], Value::Null);

    let types = json!({"task_id": ids["a"], "types": ["task_completion_rejected"]});
    let history = api.call("tasks.history", types).await;
    let [entry] = history["events"].as_array().unwrap().as_slice() else {
        panic!("{history}");
    };
    let mut data = entry["data"].clone();
    data.as_object_mut().unwrap().remove("attempt");
    assert_told(&data, &refusal);
    let told = stream.events(1).await[0].json();
    assert_told(&told["contract_error"], &refusal);
    assert_eq!(told["progress"], 0.5);
    let look = async || {
        let sent = site.receiver.requests();
        let mut bodies = sent
            .iter()
            .map(|request| serde_json::from_slice::<Value>(&request.body).unwrap());
        bodies.find(|body| body["type"] == "task_completion_rejected")
    };
    let body = api.eventually("the refusal is sent", look).await;
    assert_eq!(body["contract_error"], told["contract_error"]);

    let fits = held(&claimed, json!({"output": {"n": 1}}));
    api.call("tasks.complete", fits.clone()).await;
    // What is too large is never the outcome that was recorded.
    assert_eq!(api.refusal("tasks.complete", complete).await.code, -32602);
    api.call("tasks.complete", fits).await;
    site.server.stop().await;
}

#[tokio::test]
async fn a_result_that_is_too_large_says_key_size_and_limit() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let half = "x".repeat(600 * 1024);
    let say = |name: &str| {
        json!({"name": name, "parent_id": "r", "schemas": {"method": "echo_executor"},
               "inputs": {"text": half}})
    };
    let tasks = json!({"tasks": [
        {"name": "r"}, say("a"), say("b"),
        {"name": "both", "parent_id": "r", "dependencies": [{"id": "a"}, {"id": "b"}],
         "schemas": {"method": "aggregate_results_executor"}},
    ]});
    let ids = api.call("tasks.execute", tasks).await["task_ids"].take();
    let both = ids["both"].as_str().unwrap();
    let look = async || (task(api, both).await["status"] == "failed").then_some(());
    api.eventually("it failed", look).await;
    let types = json!({"task_id": both, "types": ["task_failed"]});
    let history = api.call("tasks.history", types).await;
    let data = &history["events"][0]["data"];
    assert_eq!(data["reason"], "invalid_result", "{data}");
    let told = &data["contract_error"];
    assert_eq!(told["error"], "OutputTooLargeError");
    assert_eq!(told["limit"], 1024 * 1024);
    assert!(told["bytes"].as_u64().unwrap() > 1_200_000, "{told}");
    assert!(told["key"].is_string(), "{told}");
    server.stop().await;
}

#[tokio::test]
async fn what_only_documents_have_and_executors_that_are_off_are_refused() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let wired = |from: Value| json!({"name": "t", "schemas": {"type": "remote", "method": METHOD, "wiring": {"q": from}}});
    for from in [
        json!("$trigger.quarter"),
        json!("$initial_state.source"),
        json!({"from": "$trigger.quarter", "default": "Q1"}),
    ] {
        let refusal = api.refusal("tasks.create", wired(from.clone())).await;
        assert_eq!(refusal.code, -32602, "{refusal:?}");
        assert_eq!(refusal.data["path"], json!(["schemas", "wiring", "q"]));
        let tasks = json!({"tasks": [wired(from)]});
        let refusal = api.refusal("tasks.execute", tasks).await;
        assert_eq!(refusal.code, -32602, "{refusal:?}");
        let path = json!(["tasks", 0, "schemas", "wiring", "q"]);
        assert_eq!(refusal.data["path"], path);
        assert_eq!(
            refusal.data["reason"],
            "Has a value only in workflow documents"
        );
    }
    let inputs = json!({"a": [0, {"b": "of {{$trigger.quarter}}"}], "c": "{{$initial_state.c}}"});
    let templated = json!({"name": "t", "inputs": inputs,
        "schemas": {"method": "echo_executor", "templates": true}});
    let refusal = api.refusal("tasks.create", templated).await;
    let faults = refusal.data["errors"].as_array().unwrap();
    let paths: Vec<_> = faults.iter().map(|fault| &fault["path"]).collect();
    let expected = [json!(["inputs", "a", 1, "b"]), json!(["inputs", "c"])];
    assert_eq!(paths, expected.iter().collect::<Vec<_>>(), "{refusal:?}");

    let document = json!({"openintent": "1.0", "info": {"name": "w"}, "workflow": {
        "build": {"assign": "command_executor"}}});
    let refusal = api
        .refusal(
            "workflows.create",
            json!({"document": document, "execute": true}),
        )
        .await;
    assert_eq!(refusal.code, -32602, "{refusal:?}");
    let path = json!(["document", "workflow", "build", "assign"]);
    assert_eq!(refusal.data["path"], path);
    let expected = refusal.data["expected"].as_str().unwrap();
    assert!(expected.contains("--allow-command"), "{expected}");
    server.stop().await;

    let server = Server::start_with(&folder, &["--allow-command", "true"]).await;
    let document = json!({"openintent": "1.0", "info": {"name": "w"}, "workflow": {
        "build": {"assign": "command_executor", "inputs": {"program": "$trigger.program"}}}});
    let run = json!({"document": document, "trigger": {"program": "true"}, "execute": false});
    let created = server.api.call("workflows.create", run).await;
    assert_eq!(created["phases"][0]["status"], "pending");
    server.stop().await;
}
