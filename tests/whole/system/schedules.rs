//! `taskledger schedules` against a server.

use serde_json::{Value, json};
use taskledger_testkit::program;
use taskledger_testkit::server::{Folder, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_are_made_listed_paused_run_and_deleted_from_the_command_line() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.clone();
    let file = folder.path().join("tasks.json");
    let tasks = json!({"tasks": [{"name": "a", "schemas": {"method": "echo_executor"}}]});
    std::fs::write(&file, tasks.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let run = async |arguments: &[&str]| {
        let mut all = vec!["schedules"];
        all.extend(arguments);
        all.extend(["--url", &url]);
        program::run(all).await
    };
    let made = [
        "create",
        "nightly",
        "--cron",
        "0 2 * * *",
        "--time-zone",
        "Europe/Berlin",
        "--tasks",
        file,
    ];
    let made = run(&made).await.done();
    assert!(
        made.contains("nightly: 0 2 * * * Europe/Berlin, 1 task, version 1"),
        "{made}"
    );
    assert!(made.contains("\nnext  20"), "{made}");
    let wrong = ["create", "x", "--cron", "0 2 * *", "--tasks", file];
    let wrong = run(&wrong).await.refused(2);
    assert!(
        wrong.contains("cron") && wrong.contains("4 fields"),
        "{wrong}"
    );
    let listed = run(&["list"]).await.done();
    assert!(
        listed.lines().count() == 2 && listed.contains("0 2 * * * Europe/Berlin"),
        "{listed}"
    );
    let paused = run(&["pause", "nightly", "--note", "moving"]).await.done();
    assert!(paused.contains("paused: moving"), "{paused}");
    let started = run(&["run-now", "nightly"]).await.done();
    assert!(started.starts_with("started: "), "{started}");
    server.api.call("system.drain", json!({})).await;
    let held = run(&["run-now", "nightly", "--overlap", "allow"]).await;
    assert!(
        held.err
            .contains("the server is draining: nothing of this run starts"),
        "{held:?}"
    );
    held.done();
    let none = run(&["run-now", "nightly"]).await.refused(1);
    assert!(none.is_empty(), "{none}");
    server
        .api
        .call("system.drain", json!({"drain": false}))
        .await;
    let shown = run(&["get", "nightly", "--json"]).await.done();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["counters"]["started_by_hand"], 2);
    let shown = run(&["get", "nightly"]).await.done();
    assert!(
        shown.contains("hand") && shown.contains("started"),
        "{shown}"
    );
    let resumed = run(&["resume", "nightly"]).await.done();
    assert!(!resumed.contains("paused"), "{resumed}");
    let changed = run(&[
        "update",
        "nightly",
        "--every",
        "90",
        "--overlap",
        "cancel-previous",
    ])
    .await
    .done();
    assert!(changed.contains("every 90 s"), "{changed}");
    assert_eq!(run(&["delete", "nightly"]).await.done().trim(), "deleted");
    server.stop().await;
}
