//! The packages of `clients/`: their own tests, run with this server.

use super::others::{file, interpreter};
use taskledger_testkit::program::{command_of, path};
use tokio::process::Command;

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
