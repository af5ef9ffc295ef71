//! The read models are a copy: they may be lost, and come back from the log.

use crate::system::workflow::Workflow;
use serde_json::json;
use taskledger_projections::ReadModels;
use taskledger_testkit::program;
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(
    deleted_read_models_come_back_with_the_next_start,
    a_running_server_rebuilds_what_it_serves,
    a_server_that_is_killed_in_a_rebuild_leaves_whole_read_models,
);

/// All rows of a place that no server uses.
pub(crate) async fn dump(folder: &Folder) -> String {
    let (models, _) = ReadModels::open(&folder.rows()).await.unwrap();
    let text = models.dump().await.unwrap();
    models.close().await.unwrap();
    text
}

/// All rows as `projections rebuild` makes them from nothing but the log, which is moved to a folder
/// of its own for that: both backends are held to the rows of one.
pub(crate) async fn dump_of_rebuilt_copy(folder: &Folder) -> String {
    let (copy, file) = (Folder::new(), folder.path().join("copy.jsonl"));
    let words = ["events", "export", "--output", file.to_str().unwrap()];
    let words = words.map(str::to_owned).into_iter();
    program::run(words.chain(folder.storage())).await.done();
    let data = copy.data();
    let into = ["--data-dir", data.to_str().unwrap()];
    // Also of a log that a test has imported without its chain.
    let flag = "--accept-unchained";
    let import = ["events", "import", flag, file.to_str().unwrap()];
    program::run(import.into_iter().chain(into)).await.done();
    let rebuild = ["projections", "rebuild"];
    let said = program::run(rebuild.into_iter().chain(into)).await.done();
    assert!(said.starts_with("rebuilt: "), "{said}");
    dump(&copy).await
}

/// Runs a small workflow; gives its root.
async fn given_a_workflow(server: &Server) -> serde_json::Value {
    let started = server
        .api
        .call("tasks.execute", Workflow::fork_join(5, 1).request())
        .await;
    let root = started["root_task_id"].clone();
    assert_eq!(server.api.run_of(&root).await["state"], "completed");
    server.api.caught_up().await;
    root
}

async fn deleted_read_models_come_back_with_the_next_start(folder: Folder) {
    let server = Server::start(&folder).await;
    let root = given_a_workflow(&server).await;
    let tree = server
        .api
        .call("tasks.tree", json!({"task_id": root}))
        .await;
    server.stop().await;
    let before = dump(&folder).await;
    folder.lose_rows().await;

    let server = Server::start(&folder).await;

    assert_eq!(
        server
            .api
            .call("tasks.tree", json!({"task_id": root}))
            .await,
        tree
    );
    server.api.caught_up().await;
    server.stop().await;
    assert_eq!(dump(&folder).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_models_are_rebuilt_on_purpose_but_not_under_a_server() {
    let folder = Folder::new();
    let data = folder.data();
    let rebuild = [
        "--json",
        "projections",
        "rebuild",
        "--data-dir",
        data.to_str().unwrap(),
    ];
    let server = Server::start(&folder).await;
    given_a_workflow(&server).await;

    let refused = program::run(rebuild).await.refused(1);

    assert!(refused.contains("is in use by process"), "{refused}");
    server.stop().await;
    let before = dump(&folder).await;
    let rebuilt: serde_json::Value =
        serde_json::from_str(&program::run(rebuild).await.done()).unwrap();
    assert!(rebuilt["position"].as_u64().unwrap() > 10, "{rebuilt}");
    assert_eq!(dump(&folder).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_models_in_a_database_are_rebuilt_under_a_server() {
    let folder = Folder::with_database().await;
    let server = Server::start(&folder).await;
    let root = given_a_workflow(&server).await;
    let before = dump(&folder).await;

    let rebuild = ["--json", "projections", "rebuild"].map(str::to_owned);
    let rebuild = rebuild.into_iter().chain(folder.storage());
    let rebuilt: serde_json::Value =
        serde_json::from_str(&program::run(rebuild).await.done()).unwrap();

    assert!(rebuilt["position"].as_u64().unwrap() > 10, "{rebuilt}");
    assert_eq!(dump(&folder).await, before);
    let task = server.api.call("tasks.get", json!({"task_id": root})).await;
    assert_eq!(task["status"], "completed");
    given_a_workflow(&server).await;
    server.stop().await;
    assert_eq!(dump(&folder).await, dump_of_rebuilt_copy(&folder).await);
}

async fn a_running_server_rebuilds_what_it_serves(folder: Folder) {
    let server = Server::start(&folder).await;
    let root = given_a_workflow(&server).await;

    let url = server.api.url.clone();
    let arguments = ["--json", "projections", "rebuild", "--url", &url];
    let rebuilt: serde_json::Value =
        serde_json::from_str(&program::run(arguments).await.done()).unwrap();

    assert!(rebuilt["position"].as_u64().unwrap() > 10, "{rebuilt}");
    let task = server.api.call("tasks.get", json!({"task_id": root})).await;
    assert_eq!(task["status"], "completed");
    let health = server.api.call("system.health", json!({})).await;
    assert_eq!(health["projections"]["rebuild"]["state"], "done");
    server.api.caught_up().await;
    server.stop().await;
    let before = dump(&folder).await;
    assert_eq!(dump_of_rebuilt_copy(&folder).await, before);
}

async fn a_server_that_is_killed_in_a_rebuild_leaves_whole_read_models(folder: Folder) {
    let mut server = Server::start(&folder).await;
    for _ in 0..folder.kills(5) {
        given_a_workflow(&server).await;
        server.api.call("system.rebuild", json!({})).await;
        server.kill().await;
        server = Server::start(&folder).await;
        server.api.caught_up().await;
        assert!(!folder.data().join("read_models.db.next").exists());
    }
    server.stop().await;
    let before = dump(&folder).await;
    assert_eq!(dump_of_rebuilt_copy(&folder).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_no_read_model_does_not_cost_the_log() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let root = given_a_workflow(&server).await;
    server.stop().await;
    std::fs::write(
        folder.read_models(),
        "no database at all, but long enough to look at".repeat(100),
    )
    .unwrap();

    let server = Server::start(&folder).await;

    let task = server.api.call("tasks.get", json!({"task_id": root})).await;
    assert_eq!(task["status"], "completed");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_nothing_to_rebuild_without_a_log() {
    let folder = Folder::new();
    let arguments = [
        "projections",
        "rebuild",
        "--data-dir",
        folder.path().to_str().unwrap(),
    ];
    let refused = program::run(arguments).await.refused(1);
    assert!(refused.contains("there is no log in"), "{refused}");
}
