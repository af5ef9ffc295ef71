//! Calls that make no sense: each gets the error of its kind, and nothing is stored.

use serde_json::{Value, json};
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(
    ten_thousand_dependencies_of_one_task_are_waited_for_and_too_many_are_refused,
    trees_that_are_too_deep_too_large_or_not_one_tree_are_refused,
);

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_types_unknown_fields_and_unknown_ids_are_told_apart() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let cases = [
        ("tasks.create", json!({}), -32602),
        ("tasks.create", json!([]), -32602),
        ("tasks.create", json!({"name": 7}), -32602),
        ("tasks.create", json!({"name": ""}), -32602),
        ("tasks.create", json!({"name": "x".repeat(256)}), -32602),
        (
            "tasks.create",
            json!({"name": "a", "colour": "red"}),
            -32602,
        ),
        ("tasks.create", json!({"name": "a", "priority": 4}), -32602),
        (
            "tasks.create",
            json!({"name": "a", "priority": "high"}),
            -32602,
        ),
        ("tasks.create", json!({"name": "a", "inputs": []}), -32602),
        (
            "tasks.create",
            json!({"name": "a", "inputs": {"x": "y".repeat(1024 * 1024)}}),
            -32602,
        ),
        ("tasks.create", json!({"name": "a", "schemas": {}}), -32602),
        (
            "tasks.create",
            json!({"name": "a", "dependencies": "b"}),
            -32602,
        ),
        (
            "tasks.create",
            json!({"name": "a", "dependencies": [{"id": UNKNOWN}]}),
            -32011,
        ),
        (
            "tasks.create",
            json!({"name": "a", "status": "completed"}),
            -32602,
        ),
        (
            "tasks.create",
            json!({"name": "a", "id": "00000000-0000-1000-8000-000000000000"}),
            -32602,
        ),
        (
            "tasks.create",
            json!({"name": "a", "parent_id": UNKNOWN}),
            -32010,
        ),
        (
            "tasks.create",
            json!({"name": "a", "schemas": {"method": "echo_executor",
            "input_schema": {"type": "object", "required": ["x"]}}}),
            -32602,
        ),
        ("tasks.execute", json!({}), -32602),
        ("tasks.execute", json!({"tasks": []}), -32602),
        ("tasks.execute", json!({"tasks": {}}), -32602),
        (
            "tasks.execute",
            json!({"task_id": UNKNOWN, "tasks": [{"name": "a"}]}),
            -32602,
        ),
        ("tasks.execute", json!({"task_id": UNKNOWN}), -32001),
        (
            "tasks.execute",
            json!({"tasks": [{"name": "a", "schemas": {"method": "no_such"}}]}),
            -32003,
        ),
        ("tasks.get", json!({"task_id": "7"}), -32602),
        ("tasks.get", json!({"task_id": UNKNOWN}), -32001),
        ("tasks.tree", json!({"task_id": UNKNOWN}), -32001),
        ("tasks.children", json!({"parent_id": UNKNOWN}), -32001),
        (
            "tasks.get",
            json!({"task_id": UNKNOWN, "as_of": "now"}),
            -32602,
        ),
        (
            "tasks.get",
            json!({"task_id": UNKNOWN, "as_of": 1_000_000}),
            -32602,
        ),
        (
            "tasks.tree",
            json!({"task_id": UNKNOWN, "as_of": "2999-01-01T00:00:00Z"}),
            -32602,
        ),
        (
            "tasks.tree",
            json!({"task_id": UNKNOWN, "as_of": "2020-01-01T00:00:00Z"}),
            -32001,
        ),
        ("tasks.history", json!({"task_id": UNKNOWN}), -32001),
        (
            "tasks.history",
            json!({"task_id": UNKNOWN, "types": ["no_such"]}),
            -32602,
        ),
        (
            "tasks.history",
            json!({"task_id": UNKNOWN, "scope": "all", "limit": 1001, "cursor": "x"}),
            -32602,
        ),
        ("tasks.explain", json!({"task_id": UNKNOWN}), -32001),
        ("tasks.explain", json!({}), -32602),
        ("tasks.list", json!({"limit": 0}), -32602),
        ("tasks.list", json!({"status": "done"}), -32602),
        (
            "tasks.update",
            json!({"task_id": UNKNOWN, "updates": {"name": "b"}}),
            -32001,
        ),
        ("tasks.cancel", json!({"task_id": UNKNOWN}), -32001),
        ("tasks.delete", json!({"task_id": UNKNOWN}), -32001),
        ("tasks.copy", json!({"task_id": UNKNOWN}), -32001),
        ("tasks.retry", json!({"task_id": UNKNOWN}), -32001),
    ];
    for (method, params, code) in cases {
        let refusal = server.api.refusal(method, params.clone()).await;
        let shown: String = params.to_string().chars().take(200).collect();
        assert_eq!(refusal.code, code, "{method} {shown}: {refusal:?}");
        let errors = refusal.data["errors"].as_array().unwrap();
        assert!(
            !errors.is_empty() && errors[0]["reason"] != "",
            "{method} {shown}: {refusal:?}"
        );
    }
    assert_eq!(
        server.api.call("system.health", json!({})).await["log"]["head"],
        0
    );
    server.stop().await;
}

/// A group with `len` tasks in it, each with the dependencies that `after` names.
fn flat(len: usize, after: impl Fn(usize) -> Vec<usize>) -> Value {
    let mut tasks = vec![json!({"id": "root", "name": "root"})];
    tasks.extend((0..len).map(|i| {
        let list: Vec<_> = after(i)
            .into_iter()
            .map(|d| json!({"id": format!("t{d}")}))
            .collect();
        json!({"id": format!("t{i}"), "parent_id": "root", "name": "t",
               "schemas": {"method": "echo_executor"}, "dependencies": list})
    }));
    json!({ "tasks": tasks })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cycle_of_two_and_one_of_ten_thousand_are_refused_and_shown() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    for len in [2, 10_000] {
        let refusal = server
            .api
            .refusal("tasks.execute", flat(len, |i| vec![(i + 1) % len]))
            .await;
        assert_eq!(refusal.code, -32002, "{len}");
        let cycle = refusal.data["cycle"]
            .as_array()
            .expect("the cycle is shown");
        assert_eq!(cycle.len(), len + 1);
        assert_eq!(cycle.first(), cycle.last());
    }

    let created = server
        .api
        .call(
            "tasks.create",
            flat(10_000, |i| i.checked_sub(1).into_iter().collect()),
        )
        .await;
    let id = |alias: &str| created["task_ids"][alias].clone();
    let updates = json!({"dependencies": [{"id": id("t9999")}]});
    let refusal = server
        .api
        .refusal(
            "tasks.update",
            json!({"task_id": id("t0"), "updates": updates}),
        )
        .await;
    assert_eq!(refusal.code, -32002);
    assert_eq!(refusal.data["cycle"].as_array().unwrap().len(), 10_001);
    let task = server
        .api
        .call("tasks.get", json!({"task_id": id("t0")}))
        .await;
    assert_eq!(
        task["dependencies"],
        json!([]),
        "a refused update changes nothing"
    );
    server.stop().await;
}

async fn ten_thousand_dependencies_of_one_task_are_waited_for_and_too_many_are_refused(
    folder: Folder,
) {
    let server = Server::start_with(&folder, &["--executor-limit", "echo_executor=2000"]).await;
    let fan_in = |len: usize| {
        flat(len + 1, |i| {
            if i == len {
                (0..len).collect()
            } else {
                Vec::new()
            }
        })
    };

    let started = server.api.call("tasks.execute", fan_in(10_000)).await;

    let run = server.api.run_of(&started["root_task_id"]).await;
    assert_eq!(
        (&run["state"], &run["counts"]["completed"]),
        (&json!("completed"), &json!(10_001))
    );
    let many: Vec<_> = (0..20_001).map(|_| json!({"id": "t0"})).collect();
    let task = json!({"id": "t1", "name": "t", "parent_id": "t0", "dependencies": many});
    let refusal = server
        .api
        .refusal(
            "tasks.create",
            json!({"tasks": [{"id": "t0", "name": "t"}, task]}),
        )
        .await;
    assert_eq!(refusal.code, -32602, "{refusal:?}");
    assert!(refusal.data.to_string().contains("20000"), "{refusal:?}");
    server.stop().await;
}

async fn trees_that_are_too_deep_too_large_or_not_one_tree_are_refused(folder: Folder) {
    let server = Server::start(&folder).await;
    let deep = |levels: usize| {
        let tasks = (0..levels).map(|i| match i.checked_sub(1) {
            Some(above) => {
                json!({"id": format!("t{i}"), "name": "t", "parent_id": format!("t{above}")})
            }
            None => json!({"id": "t0", "name": "t"}),
        });
        json!({"tasks": tasks.collect::<Vec<_>>()})
    };

    let too_deep = server.api.refusal("tasks.create", deep(61)).await;
    let nested = (0..60).fold(
        json!({"name": "t"}),
        |below, _| json!({"name": "t", "children": [below]}),
    );
    let nested_too_deep = server.api.refusal("tasks.create", nested).await;
    let too_many = server
        .api
        .refusal("tasks.create", flat(20_000, |_| Vec::new()))
        .await;
    let two_roots = json!({"tasks": [{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]});
    let two_roots = server.api.refusal("tasks.create", two_roots).await;
    let ring = json!({"tasks": [{"id": "r", "name": "r"}, {"id": "a", "name": "a", "parent_id": "b"},
        {"id": "b", "name": "b", "parent_id": "a"}]});
    let ring = server.api.refusal("tasks.create", ring).await;

    for (refusal, code, said) in [
        (too_deep, -32012, "60"),
        (nested_too_deep, -32012, "60"),
        (too_many, -32602, "20000"),
        (two_roots, -32012, ""),
        (ring, -32012, ""),
    ] {
        assert_eq!(refusal.code, code, "{refusal:?}");
        assert!(refusal.data.to_string().contains(said), "{refusal:?}");
    }
    assert_eq!(
        server.api.call("system.health", json!({})).await["log"]["head"],
        0
    );
    let created = server.api.call("tasks.create", deep(60)).await;
    let tree = server
        .api
        .call("tasks.tree", json!({"task_id": created["id"]}))
        .await;
    assert_eq!(tree.to_string().matches("\"children\"").count(), 60);
    let below = json!({"name": "t", "parent_id": created["task_ids"]["t59"]});
    assert_eq!(server.api.refusal("tasks.create", below).await.code, -32012);
    let all = server
        .api
        .call("tasks.create", flat(19_999, |_| Vec::new()))
        .await;
    let list = server
        .api
        .call("tasks.list", json!({"parent_id": all["id"], "limit": 1}))
        .await;
    assert_eq!(list["total"], 19_999);
    server.stop().await;
}
