//! SIGTERM: what is under way is finished or interrupted, and nothing is forgotten.

use serde_json::{Value, json};
use taskledger_testkit::log;
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(
    calls_that_are_under_way_are_answered_before_the_server_ends,
    an_idempotent_task_that_was_interrupted_runs_again_after_the_restart,
    a_program_that_was_interrupted_is_not_run_again_unless_retries_allow_it,
);

fn one_task(method: &str, inputs: &Value) -> Value {
    json!({"tasks": [{"name": "long", "schemas": {"method": method}, "inputs": inputs}]})
}

async fn given_running(server: &Server, request: Value) -> Value {
    let root = server.api.call("tasks.execute", request).await["root_task_id"].take();
    server
        .api
        .eventually("the task runs", async || {
            let task = server.api.call("tasks.get", json!({"task_id": root})).await;
            (task["status"] == "in_progress").then_some(())
        })
        .await;
    root
}

async fn calls_that_are_under_way_are_answered_before_the_server_ends(folder: Folder) {
    let server = Server::start(&folder).await;
    let mut calls = Vec::new();
    for client in 0..32 {
        let api = server.api.clone();
        calls.push(tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            // Until the server takes no more.
            while let Ok(created) = api
                .try_call(
                    "tasks.create",
                    json!({"name": format!("client {client}")}),
                    None,
                )
                .await
            {
                acknowledged.push(created["id"].as_str().unwrap().to_owned());
            }
            acknowledged
        }));
    }
    server
        .api
        .eventually("some are written", async || {
            let health = server.api.call("system.health", json!({})).await;
            (health["log"]["head"].as_u64() > Some(100)).then_some(())
        })
        .await;

    let said = server.stop().await;

    assert!(said.contains("\"message\":\"stopped\""), "{said}");
    let mut acknowledged = Vec::new();
    for call in calls {
        acknowledged.extend(call.await.unwrap());
    }
    let events = log::export(&folder).await;
    assert!(acknowledged.len() > 100);
    assert_eq!(
        events.len(),
        acknowledged.len(),
        "every write was answered, every answer was written"
    );
}

async fn an_idempotent_task_that_was_interrupted_runs_again_after_the_restart(folder: Folder) {
    let server = Server::start(&folder).await;
    let root = given_running(
        &server,
        one_task("sleep_executor", &json!({"duration_ms": 5000})),
    )
    .await;
    server.stop().await;

    let server = Server::start(&folder).await;
    let run = server.api.run_of(&root).await;

    assert_eq!(run["state"], "completed", "{run}");
    let task = server.api.call("tasks.get", json!({"task_id": root})).await;
    assert_eq!(
        (&task["status"], &task["attempt"]),
        (&json!("completed"), &json!(2)),
        "{task}"
    );
    server.stop().await;
    log::assert_started_in_order(&log::export(&folder).await);
}

async fn a_program_that_was_interrupted_is_not_run_again_unless_retries_allow_it(folder: Folder) {
    let allow = ["--allow-command", "sleep"];
    let server = Server::start_with(&folder, &allow).await;
    let inputs = json!({"program": "sleep", "args": ["30"]});
    let once = given_running(&server, one_task("command_executor", &inputs)).await;
    let short = json!({"program": "sleep", "args": ["1"]});
    let mut again = one_task("command_executor", &short);
    again["tasks"][0]["params"] = json!({"retry_count": 1});
    let again = given_running(&server, again).await;
    server.kill().await;

    let server = Server::start_with(&folder, &allow).await;

    assert_eq!(server.api.run_of(&once).await["state"], "failed");
    let task = server.api.call("tasks.get", json!({"task_id": once})).await;
    assert_eq!(task["error"], "interrupted by a restart of the server");
    assert_eq!(server.api.run_of(&again).await["state"], "completed");
    let task = server
        .api
        .call("tasks.get", json!({"task_id": again}))
        .await;
    assert_eq!(task["attempt"], 2, "{task}");
    server.stop().await;
}
