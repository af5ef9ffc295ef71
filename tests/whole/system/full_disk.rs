//! No space left, as a limit on file sizes: writes are refused, reads go on, nothing is lost.

use serde_json::json;
use taskledger_testkit::log;
use taskledger_testkit::program;
use taskledger_testkit::server::{Api, Folder, NoResult, Refusal, Server};

/// The largest file that the server may write: 3 MiB in the blocks of `ulimit -f`.
const BLOCKS: &str = "6144";
/// Bytes of the inputs of each task.
const INPUTS_BYTES: usize = 200_000;
/// More tasks than fit.
const TASKS_MAX: usize = 100;

/// A shell in which files cannot grow, which becomes the server.
async fn start_limited(folder: &Folder) -> Server {
    let mut command = program::command_of("sh");
    command.args(["-c", "ulimit -f \"$0\" && exec \"$@\"", BLOCKS]);
    command.arg(program::path());
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.data());
    Server::spawn(command, folder.path()).await
}

/// Creates a task with much in it; its id, or the refusal.
async fn create(api: &Api, number: usize) -> Result<String, Refusal> {
    let params =
        json!({"name": format!("task {number}"), "inputs": {"text": "x".repeat(INPUTS_BYTES)}});
    match api.try_call("tasks.create", params, None).await {
        Ok(created) => Ok(created["id"].as_str().unwrap().to_owned()),
        Err(NoResult::Refused(refusal)) => Err(refusal),
        Err(NoResult::Broken) => panic!("there is an answer also when the disk is full"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_and_keeps_what_was_acknowledged_readable() {
    let folder = Folder::new();
    let mut server = start_limited(&folder).await;
    let mut acknowledged = Vec::new();
    let mut refused = Vec::new();
    for number in 0..TASKS_MAX {
        match create(&server.api, number).await {
            Ok(id) => acknowledged.push((number, id)),
            Err(refusal) => refused.push(refusal),
        }
        if refused.len() == 3 {
            break;
        }
    }
    assert_eq!(refused.len(), 3, "after {} tasks", acknowledged.len());
    for refusal in &refused {
        let expected = refusal.data["expected"].as_str().unwrap_or_default();
        assert!(
            refusal.code == -32603 && !expected.is_empty(),
            "{refusal:?}"
        );
    }
    let health = server.api.call("system.health", json!({})).await;
    let mut checks = health["checks"].as_array().unwrap().iter();
    let log = checks.find(|check| check["name"] == "log").unwrap();
    assert_eq!(log["ok"], false, "{health}");
    assert!(acknowledged.len() > 3, "{acknowledged:?}");
    assert!(server.runs(), "{}", server.logged());
    for (number, id) in &acknowledged {
        let task = server.api.call("tasks.get", json!({"task_id": id})).await;
        assert_eq!(task["name"], json!(format!("task {number}")));
    }
    let small = json!({"task_id": acknowledged[0].1, "updates": {"name": "renamed"}});
    let _ = server
        .api
        .try_call("tasks.update", small.clone(), None)
        .await;
    server.stop().await;

    // A start on the full disk: what is stored is there, whether or not the read models can follow.
    let server = start_limited(&folder).await;
    for (_, id) in &acknowledged {
        let params = json!({"task_id": id, "consistency": "eventual"});
        match server.api.try_call("tasks.get", params, None).await {
            Ok(task) => assert_eq!(task["id"], json!(id)),
            Err(NoResult::Refused(refusal)) => assert_eq!(refusal.code, -32013, "{refusal:?}"),
            Err(NoResult::Broken) => panic!("there is an answer also when the disk is full"),
        }
    }
    server.stop().await;

    let server = Server::start(&folder).await;
    for (_, id) in &acknowledged {
        let task = server.api.call("tasks.get", json!({"task_id": id})).await;
        assert_eq!(task["inputs"]["text"].as_str().unwrap().len(), INPUTS_BYTES);
    }
    server.api.call("tasks.update", small).await;
    create(&server.api, TASKS_MAX)
        .await
        .expect("there is space again");
    server.stop().await;
    let events = log::export(&folder).await;
    log::assert_dense(&events);
    let created = events.iter().filter(|e| e.kind == "TaskCreated").count();
    assert_eq!(
        created,
        acknowledged.len() + 1,
        "a refused task is not in the log"
    );
}
