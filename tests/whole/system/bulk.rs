//! Labels on the command line, and commands that change all tasks of a selection.

use serde_json::{Value, json};
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_selection_are_changed_when_that_is_agreed_to() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let tasks = async |words: &[&str]| {
        let words = [&["tasks"], words, &["--url", &server.api.url]].concat();
        run(words.into_iter().map(str::to_owned)).await
    };
    let as_json = async |words: &[&str]| -> Value {
        let words = [words, &["--json"]].concat();
        serde_json::from_str(&tasks(&words).await.done()).unwrap()
    };
    for (name, team) in [("a", "data"), ("b", "data"), ("c", "ops")] {
        let label = format!("team={team}");
        tasks(&["create", "--name", name, "--label", &label])
            .await
            .done();
    }
    tasks(&["create", "--name", "d"]).await.done();

    assert_eq!(as_json(&["list", "--label", "team=data"]).await["total"], 2);
    let ops = as_json(&["list", "--label", "team", "--name", "c"]).await;
    assert_eq!(ops["tasks"][0]["labels"], json!({"team": "ops"}));
    let why = tasks(&["list", "--label=-x"]).await.refused(2);
    assert!(why.contains("Not a key of a label"), "{why}");
    assert_eq!(as_json(&["list", "--at", "1h"]).await["tasks"], json!([]));
    let there = as_json(&["list", "--at", "0s", "--ended-since", "1h"]).await;
    assert_eq!(there["tasks"], json!([]), "nothing has ended");

    let asked = tasks(&["cancel", "--label", "team=data"]).await.refused(2);
    assert!(
        asked.contains("2 tasks (b, a) would be cancelled"),
        "{asked}"
    );
    assert!(asked.contains("--yes"), "{asked}");
    let neither = tasks(&["cancel"]).await.refused(2);
    assert!(neither.contains("which tasks?"), "{neither}");
    let words = ["cancel", "--label", "team=data", "--yes", "--reason", "r"];
    assert_eq!(tasks(&words).await.done(), "2 cancelled\n");
    let gone = as_json(&["list", "--ended-since", "1h"]).await;
    assert_eq!(gone["tasks"].as_array().map(Vec::len), Some(2));
    assert_eq!(gone["tasks"][0]["error"], "r");
    // What cannot be changed so is not looked at.
    assert_eq!(tasks(&words).await.done(), "0 cancelled\n");
    let deleted = as_json(&["delete", "--name", "*", "--yes"]).await;
    assert_eq!(deleted["deleted"].as_array().map(Vec::len), Some(2));
    assert_eq!(as_json(&["list"]).await["total"], 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_children_are_retried_together() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let failing = |id: &str| {
        json!({"id": id, "name": id, "parent_id": "r", "schemas": {"method": "sleep_executor"},
            "inputs": {"duration_ms": 60_000}, "params": {"timeout_seconds": 0.01}})
    };
    let list = json!([{"id": "r", "name": "r"}, failing("a"), failing("b")]);
    let started = server
        .api
        .call("tasks.execute", json!({"tasks": list}))
        .await;
    let root = &started["root_task_id"];
    assert_eq!(server.api.run_of(root).await["state"], "failed");

    let root = root.as_str().unwrap();
    let words = [
        "tasks",
        "retry",
        "--all-failed-children",
        root,
        "--yes",
        "--url",
    ];
    let words = words
        .into_iter()
        .chain([&*server.api.url])
        .map(str::to_owned);
    let ended = run(words).await;
    // The run of the first one may cover what waits with it, but no sibling.
    assert_eq!(ended.done(), "2 retried\n");

    let failed = async || {
        let asked = json!({"status": "failed"});
        let page = server.api.call("tasks.list", asked).await;
        (page["total"] == 3).then_some(page)
    };
    let before = server.api.eventually("all have failed again", failed).await;
    let words = ["tasks", "retry", "--all", "--yes", "--url"].into_iter();
    let ended = run(words.chain([&*server.api.url]).map(str::to_owned)).await;
    // One run for all of them, and one attempt of each.
    assert_eq!(ended.done(), "1 retried with 2 below\n");
    let attempts = |page: &Value| -> Vec<u64> {
        let tasks = page["tasks"].as_array().unwrap().iter();
        tasks.filter_map(|task| task["attempt"].as_u64()).collect()
    };
    let again: Vec<u64> = attempts(&before)
        .iter()
        .map(|n| n + u64::from(*n > 0))
        .collect();
    let after = async || {
        let page = failed().await?;
        (attempts(&page) != attempts(&before)).then_some(page)
    };
    let after = server
        .api
        .eventually("they have failed once more", after)
        .await;
    assert_eq!(attempts(&after), again);
    server.stop().await;
}
