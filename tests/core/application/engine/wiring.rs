//! Results of some tasks as inputs of others, by executors of the server.

use super::{Running, failure};
use crate::application::world::{caller, soon, updates};
use serde_json::{Value, json};
use taskledger::application::Error;
use taskledger::application::api::Reply;
use taskledger_domain::flow::{Event, FailureReason, Kind};
use taskledger_domain::testing::id;

/// An echo, whose result is its inputs.
fn echo(name: &str, inputs: &Value) -> Value {
    json!({"id": id(name), "name": name, "schemas": {"method": "echo_executor"}, "inputs": inputs})
}

/// An executor that is launched, not ended in the turn that starts it.
fn launched(name: &str) -> Value {
    json!({"id": id(name), "name": name, "schemas": {"method": "gate"}})
}

fn wired(mut task: Value, wiring: &Value, on: &[&str]) -> Value {
    task["schemas"]["wiring"] = wiring.clone();
    task["dependencies"] = on.iter().map(|name| json!({"id": name})).collect();
    task
}

fn flow(children: &[Value]) -> Value {
    json!([{"id": id("root"), "name": "root", "children": children}])
}

async fn server() -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let w = Running::at(folder.path(), true).await;
    (folder, w)
}

#[tokio::test]
async fn results_become_inputs_of_attempts_in_the_same_turn_and_launched() {
    let (_folder, mut w) = server().await;
    let fetch = echo(
        "fetch",
        &json!({"json": {"items": [{"id": 7}]}, "code": 200.0}),
    );
    let wiring = json!({"item": "fetch.json#/items/0/id", "all": "fetch#", "x": "fetch.code"});
    let literal = |mut task: Value| {
        task["inputs"] = json!({"own": true});
        wired(task, &wiring, &["fetch"])
    };
    let children = [
        fetch,
        literal(echo("pure", &json!({}))),
        literal(launched("other")),
    ];
    w.execute(flow(&children)).await.unwrap();
    assert_eq!(soon(w.called.recv()).await, Some(1));
    w.open.add_permits(1);
    w.until("root", "RunEnded").await;
    let fetched = w.get("fetch").await["result"].clone();
    let expected = json!({"own": true, "item": 7, "all": fetched, "x": 200.0});
    assert_eq!(w.get("pure").await["result"], expected);
    let other = w.get("other").await;
    assert_eq!(other["result"]["inputs"], expected);
    assert_eq!(
        other["inputs"],
        json!({"own": true}),
        "what was written stays"
    );
    w.server.close().await;
}

#[tokio::test]
async fn an_attempt_whose_inputs_are_not_there_fails_and_names_them() {
    let (_folder, w) = server().await;
    let wiring = json!({"x": "fetch.none", "y": "fetch.a#/b"});
    let children = [
        echo("fetch", &json!({"a": {}})),
        wired(echo("pure", &json!({})), &wiring, &["fetch"]),
    ];
    w.execute(flow(&children)).await.unwrap();
    let history = w.until("root", "RunEnded").await;
    let (reason, error) = failure(&history).unwrap();
    assert_eq!(reason, FailureReason::InvalidInputs);
    assert_eq!(
        error,
        "UnresolvableInputError: no value for fetch.none, fetch.a#/b"
    );
    let told = history.iter().find_map(|recorded| match &*recorded.event {
        Event::TaskFailed(e) => e.breach.as_deref(),
        _ => None,
    });
    let payload = told.expect("it is said in full").payload(id("pure"));
    assert_eq!(payload["error"], "UnresolvableInputError");
    assert_eq!(payload["phase_name"], "pure");
    assert_eq!(
        payload["unresolvable_refs"],
        json!(["fetch.none", "fetch.a#/b"])
    );
    assert_eq!(w.get("pure").await["status"], "failed");
    w.server.close().await;
}

#[tokio::test]
async fn inputs_are_checked_when_they_are_complete() {
    let (_folder, w) = server().await;
    let schema = json!({"type": "object", "required": ["n", "own"], "properties": {"n": {"type": "integer"}}});
    let with = |name: &str, from: &str| {
        let mut task = echo(name, &json!({"own": 1}));
        task["schemas"]["input_schema"] = schema.clone();
        wired(task, &json!({"n": from}), &["fetch"])
    };
    let children = [
        echo("fetch", &json!({"number": 3, "text": "3"})),
        with("fits", "fetch.number"),
        with("does not", "fetch.text"),
    ];
    w.execute(flow(&children)).await.unwrap();
    let history = w.until("root", "RunEnded").await;
    assert_eq!(w.get("fits").await["status"], "completed");
    let (reason, error) = failure(&history).unwrap();
    assert_eq!(reason, FailureReason::InvalidInputs);
    assert!(error.contains("`n`: has the wrong type"), "{error}");
    w.server.close().await;
}

#[tokio::test]
async fn a_result_names_no_secret() {
    let (_folder, w) = server().await;
    let children = [
        echo("fetch", &json!({"key": {"$secret": "mine"}})),
        wired(launched("other"), &json!({"key": "fetch.key"}), &["fetch"]),
    ];
    w.execute(flow(&children)).await.unwrap();
    let history = w.until("root", "RunEnded").await;
    let (reason, error) = failure(&history).unwrap();
    assert_eq!(reason, FailureReason::InvalidInputs);
    assert!(error.contains("names the secret `mine`"), "{error}");
    w.server.close().await;
}

/// With texts that hold templates.
fn templated(task: Value, inputs: &Value, on: &[&str]) -> Value {
    let mut task = wired(task, &json!({}), on);
    task["schemas"] = json!({"method": task["schemas"]["method"], "templates": true});
    task["inputs"] = inputs.clone();
    task
}

#[tokio::test]
async fn texts_of_inputs_take_values_from_results() {
    let (_folder, w) = server().await;
    let inputs = json!({"url": "https://api/{{fetch.json#/id}}", "all": ["{{fetch.json}}"]});
    let children = [
        echo(
            "fetch",
            &json!({"json": {"id": 7}, "text": "{{fetch.json}}"}),
        ),
        templated(echo("pure", &json!({})), &inputs, &["fetch"]),
        templated(
            echo("deep", &json!({})),
            &json!({"x": "-{{fetch.json}}"}),
            &["fetch"],
        ),
        templated(
            echo("self", &json!({})),
            &json!({"x": "{{fetch.text}}"}),
            &["fetch"],
        ),
    ];
    w.execute(flow(&children)).await.unwrap();
    let history = w.until("root", "RunEnded").await;
    let pure = w.get("pure").await;
    assert_eq!(
        pure["result"],
        json!({"url": "https://api/7", "all": [{"id": 7}]})
    );
    let stored = format!("https://api/{{{{{}.json#/id}}}}", id("fetch"));
    assert_eq!(pure["inputs"]["url"], stored, "what was written stays");
    assert_eq!(
        w.get("self").await["result"],
        json!({"x": "{{fetch.json}}"})
    );
    let (reason, error) = failure(&history).unwrap();
    assert_eq!(reason, FailureReason::InvalidInputs);
    assert!(
        error.contains("`x`") && error.contains("is object"),
        "{error}"
    );
    w.server.close().await;
}

#[tokio::test]
async fn a_template_names_no_secret() {
    let (_folder, w) = server().await;
    let children = [
        echo(
            "fetch",
            &json!({"key": {"$secret": "mine"}, "name": "mine"}),
        ),
        templated(
            launched("whole"),
            &json!({"key": "{{fetch.key}}"}),
            &["fetch"],
        ),
    ];
    w.execute(flow(&children)).await.unwrap();
    let history = w.until("root", "RunEnded").await;
    let (reason, error) = failure(&history).unwrap();
    assert_eq!(reason, FailureReason::InvalidInputs);
    assert!(error.contains("names the secret `mine`"), "{error}");
    w.server.close().await;
}

#[tokio::test]
async fn a_secret_of_literal_inputs_stays_one_beside_templates() {
    let (_folder, w) = server().await;
    let inputs = json!({"key": {"$secret": "mine"}, "x": "{{fetch.n}}"});
    let children = [
        echo("fetch", &json!({"n": 1})),
        templated(launched("work"), &inputs, &["fetch"]),
    ];
    w.execute(flow(&children)).await.unwrap();
    let history = w.until("root", "RunEnded").await;
    // It is looked for, and nobody has set it.
    let (_, error) = failure(&history).unwrap();
    assert!(error.contains("`mine`"), "{error}");
    assert!(!error.contains("a result that is wired"), "{error}");
    w.server.close().await;
}

#[tokio::test]
async fn an_update_of_inputs_is_read_as_schemas_say() {
    let (_folder, w) = server().await;
    let stored = format!("{{{{{}.n}}}}", id("fetch"));
    let children = [
        echo("fetch", &json!({"n": 1})),
        templated(echo("pure", &json!({})), &json!({"n": stored}), &["fetch"]),
    ];
    let list = taskledger_domain::task::call::parse_tasks(&flow(&children)).unwrap();
    soon(w.app().create(&caller(), list)).await.unwrap();
    let update = async |value: Value| {
        let caller = caller();
        let update = w.app().update(&caller, id("pure"), updates(value));
        soon(update).await.map(drop)
    };
    for inputs in [json!({"n": "{{fetch.n}}"}), json!({"n": "{{"})] {
        let outcome = update(json!({"inputs": inputs})).await;
        let Err(Error::Refused(refused)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(refused.refusal.kind(), Kind::Invalid);
    }
    let gone = update(json!({"dependencies": []})).await;
    assert!(matches!(gone, Err(Error::Refused(_))), "{gone:?}");
    update(json!({"inputs": {"n": format!("-{stored}")}}))
        .await
        .unwrap();
    let plain =
        json!({"schemas": {"method": "echo_executor"}, "inputs": {"n": "{{"}, "dependencies": []});
    update(plain).await.unwrap();
    assert_eq!(w.get("pure").await["inputs"], json!({"n": "{{"}));
    w.server.close().await;
}

#[tokio::test]
async fn a_copy_is_wired_to_copies() {
    let (_folder, w) = server().await;
    let children = [
        echo("fetch", &json!({"n": 1})),
        wired(
            echo("pure", &json!({})),
            &json!({"n": "fetch.n"}),
            &["fetch"],
        ),
    ];
    w.execute(flow(&children)).await.unwrap();
    w.until("root", "RunEnded").await;
    let copied = soon(w.app().copy(&caller(), id("root"), true, None)).await;
    let Ok(Reply::Copied(copied)) = copied else {
        panic!("{copied:?}");
    };
    let copy_of = |name: &str| {
        copied
            .task_ids
            .iter()
            .find(|ids| ids.0 == id(name))
            .unwrap()
            .1
    };
    let task = w
        .app()
        .get(&caller(), copy_of("pure"), Default::default())
        .await;
    let schemas = task.unwrap().row.schemas.clone().unwrap().to_map();
    assert_eq!(
        schemas["wiring"],
        json!({"n": format!("{}.n", copy_of("fetch"))})
    );
    w.server.close().await;
}

#[tokio::test]
async fn an_update_keeps_what_is_wired_a_dependency() {
    let (_folder, w) = server().await;
    let children = [
        echo("fetch", &json!({"n": 1})),
        echo("other", &json!({"n": 2})),
        wired(
            echo("pure", &json!({})),
            &json!({"n": "fetch.n"}),
            &["fetch"],
        ),
    ];
    let list = taskledger_domain::task::call::parse_tasks(&flow(&children)).unwrap();
    soon(w.app().create(&caller(), list)).await.unwrap();
    let update = async |value: Value| {
        let caller = caller();
        let update = w.app().update(&caller, id("pure"), updates(value));
        soon(update).await.map(drop)
    };
    let refusal = |outcome: Result<(), Error>| match outcome {
        Err(Error::Refused(refused)) => refused.refusal.kind(),
        other => panic!("{other:?}"),
    };
    let other = json!([{"id": id("other")}]);
    assert_eq!(
        refusal(update(json!({"dependencies": other})).await),
        Kind::Invalid
    );
    assert_eq!(
        refusal(update(json!({"inputs": {"n": 3}})).await),
        Kind::Invalid
    );
    let wired_to = |from: String| json!({"method": "echo_executor", "wiring": {"n": from}});
    let by_name = json!({"schemas": wired_to("fetch.n".to_owned())});
    assert_eq!(refusal(update(by_name).await), Kind::Invalid);
    let both = json!({"dependencies": other, "schemas": wired_to(format!("{}.n", id("other")))});
    update(both).await.unwrap();
    let task = w.get("pure").await;
    assert_eq!(task["schemas"]["wiring"]["n"], format!("{}.n", id("other")));
    w.server.close().await;
}
