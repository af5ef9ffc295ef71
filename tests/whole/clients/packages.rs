//! The packages of `clients/`: their own tests, run with this server.

use super::others::{file, interpreter};
use serde_json::json;
use std::process::Stdio;
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::program::{command_of, path};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Tasks of a run over several nodes, and how many have ended when one node is killed.
const TASKS: usize = 60;
const ENDED_BEFORE_THE_KILL: usize = 15;

/// What a package's tests print is shown when they fail.
async fn passes(mut tests: Command) {
    let done = tests.env("TASKLEDGER_BIN", path()).output().await.unwrap();
    let printed = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{printed}\n{errors}");
}

async fn python(modules: &[&str]) {
    let mut tests = command_of(interpreter().to_str().unwrap());
    tests
        .current_dir(file("clients/python"))
        .env("PYTHONPATH", "src")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "unittest"])
        .args(modules);
    passes(tests).await;
}

async fn typescript(name: &str) {
    let folder = file("clients/typescript");
    file("clients/typescript/dist/index.js");
    let mut tests = command_of("node");
    tests
        .current_dir(folder)
        .args(["--test", &format!("test/{name}.test.mjs")]);
    passes(tests).await;
}

#[tokio::test]
async fn the_python_client_keeps_its_promises() {
    python(&[
        "tests.test_protocol",
        "tests.test_client",
        "tests.test_websocket",
    ])
    .await;
}

#[tokio::test]
async fn the_examples_of_the_documentation_compile() {
    python(&["tests.test_docs"]).await;
    typescript("docs").await;
}

#[tokio::test]
async fn the_python_worker_keeps_its_promises() {
    python(&["tests.test_worker"]).await;
}

#[tokio::test]
async fn the_python_package_works_with_this_server() {
    python(&["tests.test_real_server"]).await;
}

#[tokio::test]
async fn the_examples_of_rfc_0024_run_with_the_python_package() {
    python(&["tests.test_contracts"]).await;
}

#[tokio::test]
async fn the_python_package_survives_crashes_of_this_server() {
    python(&["tests.test_crashes"]).await;
}

#[tokio::test]
async fn the_typescript_client_keeps_its_promises() {
    typescript("client").await;
    typescript("socket").await;
    typescript("worker").await;
}

#[tokio::test]
async fn the_typescript_client_works_with_this_server() {
    typescript("real-client").await;
    typescript("real-credentials").await;
}

#[tokio::test]
async fn the_examples_of_rfc_0024_run_with_the_typescript_package() {
    typescript("real-contracts").await;
}

#[tokio::test]
async fn the_typescript_worker_works_with_this_server_and_survives_its_crashes() {
    typescript("real-worker").await;
}

#[tokio::test]
async fn the_typescript_client_works_in_a_browser() {
    typescript("browser").await;
}

/// A worker of the package at one node and its client at another, while the third one, which owns a part of the flows,
/// is killed: each task is done and told once, and each node knows it.
async fn over_three_nodes(mut tasks: Command) {
    let mut cluster = Cluster::of(3).await;
    let third = cluster.nodes.pop().unwrap();
    let [at_worker, at_client] = [0, 1].map(|n| cluster.nodes[n].api.url.clone());
    let mut tasks = tasks
        .args([at_worker, at_client, TASKS.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tasks.stdout.take().unwrap()).lines();
    let (mut third, mut ended) = (Some(third), Vec::new());
    while let Some(line) = lines.next_line().await.unwrap() {
        ended.push(line);
        if ended.len() == ENDED_BEFORE_THE_KILL {
            third.take().unwrap().kill().await;
        }
    }
    assert!(tasks.wait().await.unwrap().success(), "{ended:?}");
    ended.sort_unstable();
    let mut expected: Vec<String> = (0..TASKS)
        .map(|n| format!("{n} completed {}", 2 * n))
        .collect();
    expected.sort_unstable();
    assert_eq!(ended, expected);
    for node in cluster.nodes {
        let completed = json!({"status": "completed", "limit": 1});
        let list = node.api.call("tasks.list", completed).await;
        assert_eq!(list["total"], TASKS);
        node.stop().await;
    }
}

#[tokio::test]
async fn the_python_package_works_over_nodes_of_which_one_is_killed() {
    let mut tasks = command_of(interpreter().to_str().unwrap());
    tasks
        .env("PYTHONPATH", file("clients/python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(file("tests/whole/clients/cluster.py"));
    over_three_nodes(tasks).await;
}

#[tokio::test]
async fn the_typescript_package_works_over_nodes_of_which_one_is_killed() {
    file("clients/typescript/dist/index.js");
    let mut tasks = command_of("node");
    tasks.arg(file("tests/whole/clients/cluster.mjs"));
    over_three_nodes(tasks).await;
}
