//! What a worker reads of the tasks beside the one that it holds.

use super::{METHOD, claim, held, not_held};
use serde_json::{Value, json};
use taskledger_testkit::server::{Api, Folder, Server};

/// A claim of `mine`, beside which stand these tasks.
async fn beside(api: &Api, siblings: &[Value]) -> (Value, Value) {
    let mut tasks = vec![
        json!({"id": "root", "name": "root"}),
        json!({"name": "mine", "parent_id": "root", "schemas": {"type": "remote", "method": METHOD},
            "dependencies": [{"id": "fetch"}]}),
        json!({"name": "elsewhere", "schemas": {"method": "echo_executor"}, "parent_id": "group"}),
        json!({"id": "group", "name": "group", "parent_id": "root"}),
    ];
    tasks.extend(siblings.iter().cloned());
    let started = api.call("tasks.execute", json!({"tasks": tasks})).await;
    (claim(api).await, started["task_ids"].clone())
}

fn fetch() -> Value {
    json!({"id": "fetch", "name": "fetch", "parent_id": "root", "schemas": {"method": "echo_executor"},
        "inputs": {"pages": [1, 2]}})
}

fn later(id: &str) -> Value {
    json!({"id": id, "name": "later", "parent_id": "root", "schemas": {"method": "echo_executor"},
        "dependencies": [{"id": "mine"}]})
}

#[tokio::test]
async fn results_of_siblings_are_read_by_name_and_id_under_a_lease() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let (claim, ids) = beside(api, &[fetch(), later("later")]).await;
    let found = json!({"task_id": ids["fetch"], "name": "fetch", "status": "completed",
        "output": {"pages": [1, 2]}});
    for name in [&json!("fetch"), &ids["fetch"]] {
        let params = held(&claim, json!({"name": name}));
        assert_eq!(api.call("tasks.sibling_output", params).await, found);
    }
    let params = held(&claim, json!({"name": "later"}));
    let waiting = api.call("tasks.sibling_output", params).await;
    assert_eq!(
        (&waiting["status"], &waiting["output"]),
        (&json!("pending"), &Value::Null)
    );
    api.call("tasks.complete", held(&claim, json!({"output": {}})))
        .await;
    let params = held(&claim, json!({"name": "fetch"}));
    assert_eq!(not_held(api, "tasks.sibling_output", params).await, "ended");
    server.stop().await;
}

#[tokio::test]
async fn a_name_that_none_or_several_have_is_refused_with_what_there_is() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let (claim, ids) = beside(api, &[fetch(), later("one"), later("two")]).await;
    let refused = async |name: &Value| {
        let params = held(&claim, json!({"name": name}));
        let refusal = api.refusal("tasks.sibling_output", params).await;
        assert_eq!(
            (refusal.code, &refusal.data["field"]),
            (-32602, &json!("name"))
        );
        refusal.data
    };
    let several = refused(&json!("later")).await;
    assert_eq!(several["reason"], "Several siblings have this name");
    let expected = several["expected"].as_str().unwrap();
    for id in ["one", "two"] {
        assert!(expected.contains(ids[id].as_str().unwrap()), "{expected}");
    }
    // Neither its own name, nor one below another parent, nor the parent.
    for name in [
        &json!("mine"),
        &json!("elsewhere"),
        &json!("nobody"),
        &ids["root"],
    ] {
        let none = refused(name).await;
        assert_eq!(none["reason"], "No sibling has this name");
        let expected = none["expected"].as_str().unwrap();
        assert!(
            expected.contains("`fetch`") && !expected.contains("`mine`"),
            "{expected}"
        );
    }
    server.stop().await;
}
