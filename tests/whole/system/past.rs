//! History, the past and explanations over real HTTP and on the command line, across a restart.

use serde_json::{Value, json};
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(
    what_happened_is_told_by_history_as_of_and_explain_and_survives_a_restart,
);

/// A flow whose second task fails after its first has completed, and whose third is behind it.
fn failing() -> Value {
    json!({"tasks": [
        {"id": "root", "name": "root"},
        {"id": "good", "name": "good", "parent_id": "root", "schemas": {"method": "echo_executor"},
         "inputs": {"x": 1}},
        {"id": "slow", "name": "slow", "parent_id": "root", "schemas": {"method": "sleep_executor"},
         "inputs": {"duration_ms": 60_000}, "params": {"timeout_seconds": 0.02},
         "dependencies": [{"id": "good"}]},
        {"id": "behind", "name": "behind", "parent_id": "root",
         "schemas": {"method": "echo_executor"}, "dependencies": [{"id": "slow"}]}]})
}

/// Every event of a flow, in pages of three.
async fn history(server: &Server, task: &Value) -> Vec<Value> {
    let (mut events, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = json!({"task_id": task, "scope": "flow", "limit": 3, "cursor": cursor});
        let mut page = server.api.call("tasks.history", params).await;
        events.append(page["events"].as_array_mut().unwrap());
        cursor = page["next_cursor"].take();
        if cursor.is_null() {
            return events;
        }
    }
}

async fn what_happened_is_told_by_history_as_of_and_explain_and_survives_a_restart(folder: Folder) {
    let mut server = Server::start(&folder).await;
    let started = server.api.call("tasks.execute", failing()).await;
    let (root, ids) = (&started["root_task_id"], &started["task_ids"]);
    assert_eq!(server.api.run_of(root).await["state"], "failed");
    let tree_now = server
        .api
        .call("tasks.tree", json!({"task_id": root}))
        .await;
    let mut seen = Vec::new();
    for round in ["before the restart", "after it"] {
        let events = history(&server, root).await;
        let sequences: Vec<_> = events
            .iter()
            .map(|e| e["sequence"].as_u64().unwrap())
            .collect();
        assert_eq!(
            sequences,
            (1..=events.len() as u64).collect::<Vec<_>>(),
            "{round}"
        );
        let failed = events.iter().find(|e| e["type"] == "task_failed").unwrap();
        assert_eq!(failed["task_id"], ids["slow"]);
        assert_eq!(failed["data"]["reason"], "timeout");

        // Just before the failure, the task was running and nobody was blocked.
        let before = failed["position"].as_u64().unwrap() - 1;
        let then = json!({"task_id": ids["slow"], "as_of": before});
        let then = server.api.call("tasks.get", then).await;
        assert_eq!(then["status"], "in_progress", "{round}");
        assert_eq!(then["as_of"]["position"], before);
        let behind = json!({"task_id": ids["behind"], "as_of": failed["timestamp"]});
        let behind = server.api.call("tasks.get", behind).await;
        assert_eq!(behind["blocked_by"][0]["id"], ids["slow"]);

        // As of the last event the tree is what it is.
        let last = &events.last().unwrap()["position"];
        let tree = json!({"task_id": root, "as_of": last});
        let mut tree = server.api.call("tasks.tree", tree).await;
        assert_eq!(tree["as_of"]["position"], *last);
        tree.as_object_mut().unwrap().remove("as_of");
        assert_eq!(tree, tree_now, "{round}");

        let why = json!({"task_id": ids["behind"]});
        let why = server.api.call("tasks.explain", why).await;
        let codes: Vec<_> = why["reasons"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| &r["code"])
            .collect();
        assert_eq!(codes, ["blocked", "not_covered"], "{round}: {why}");
        assert_eq!(why["reasons"][0]["root_cause"]["reason"], "timeout");
        seen.push(events);
        server.stop().await;
        server = Server::start(&folder).await;
    }
    assert_eq!(seen[0], seen[1], "a restart changes no history");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_shows_history_and_explanations_to_people() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let started = server.api.call("tasks.execute", failing()).await;
    assert_eq!(
        server.api.run_of(&started["root_task_id"]).await["state"],
        "failed"
    );
    let slow = started["task_ids"]["slow"].as_str().unwrap();
    let tasks = async |words: &[&str]| {
        let all = ["tasks", "--url", &server.api.url].into_iter();
        run(all.chain(words.iter().copied())).await
    };
    let lines = tasks(&["history", slow]).await.done();
    let of = |kind: &str| {
        let found = lines.lines().find(|line| line.contains(kind));
        found
            .unwrap_or_else(|| panic!("{kind}: {lines}"))
            .to_owned()
    };
    assert!(lines.starts_with("POSITION "), "{lines}");
    assert!(of("task_started").contains("pending -> in_progress"));
    assert!(of("task_failed").contains("reason=timeout"));
    let first = tasks(&["history", slow, "--flow", "--limit", "2"])
        .await
        .done();
    let next = first.lines().last().expect("there is another page");
    let next = next.strip_prefix("next page: taskledger ");
    let next = next.unwrap_or_else(|| panic!("a command to paste: {first}"));
    let rest = run(next.split(' ')).await.done();
    let second = rest.lines().nth(1).unwrap_or_default();
    assert!(second.starts_with("3 "), "{rest}");
    assert!(
        !rest.contains(first.lines().nth(1).unwrap_or_default()),
        "{rest}"
    );
    let failures = tasks(&["history", slow, "--types", "task_failed"])
        .await
        .done();
    assert_eq!(failures.lines().count(), 2, "{failures}");

    let said = tasks(&["explain", slow]).await.done();
    assert!(said.starts_with("`slow` failed"), "{said}");
    assert!(said.contains("you can: taskledger tasks retry "), "{said}");
    assert!(said.contains("attempt 1: failed"), "{said}");

    let then = tasks(&["get", slow, "--as-of", "1"]).await.refused(2);
    assert!(then.contains("-32001"), "not created yet: {then}");
    let then = tasks(&["tree", slow, "--as-of", "yesterday"])
        .await
        .refused(2);
    assert!(then.contains("did not exist then"), "{then}");
    let then = tasks(&["tree", slow, "--as-of", "soon"]).await.refused(2);
    assert!(then.contains("RFC 3339"), "{then}");
    server.stop().await;
}
