//! The official clients of Agent2Agent, in Python, JavaScript and Rust, at the versions of the locks beside this file:
//! the same eighteen steps over each binding, with and without credentials. Only without them a step is skipped: there
//! is no extended card. The client of version 0.3, where the server speaks that too, passes eleven.

use super::others::{file, node, python};
use taskledger_testkit::program::command_of;
use taskledger_testkit::server::{Folder, Server};
use tokio::process::Command;

const BINDINGS: [&str; 3] = ["JSONRPC", "HTTP+JSON", "GRPC"];
const STEPS: usize = 18;
/// Steps of the client of 0.3.
const STEPS_V03: usize = 11;
/// Beginnings of ids of the official kit: 22 that it has, and another one.
const BEGINNINGS: usize = 23;
/// What a server without authentication does not have.
const SKIPPED: &str = "skipped extended card";

/// What a program prints that must succeed with a server over a binding.
async fn printed(mut program: Command, server: &Server, binding: &str) -> String {
    program.args([server.api.url.trim_end_matches('/'), binding]);
    let done = program.output().await.unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{binding}: {printed}\n{errors}");
    printed
}

/// Each step passes over each binding; a server for each, whose tasks are those of the client alone.
async fn all_steps_pass(program: impl Fn() -> Command) {
    for binding in BINDINGS {
        let folder = Folder::new();
        let server = Server::start(&folder).await;
        let printed = printed(program(), &server, binding).await;
        let lines = printed.lines();
        let passed = lines.filter(|line| line.starts_with("passed ")).count();
        assert_eq!(passed, STEPS - 1, "{printed}");
        assert!(printed.lines().any(|line| line == SKIPPED), "{printed}");
        server.stop().await;
    }
}

/// The same with a token, where nothing is skipped.
async fn all_steps_pass_with_credentials(program: impl Fn() -> Command) {
    for binding in BINDINGS {
        let folder = Folder::new();
        let server = Server::start_with(&folder, &["--auth", "on"]).await;
        let token = std::fs::read_to_string(folder.data().join("admin.token")).unwrap();
        let mut program = program();
        program.env("TOKEN", token.trim());
        let printed = printed(program, &server, binding).await;
        let lines = printed.lines();
        let passed = lines.filter(|line| line.starts_with("passed ")).count();
        assert_eq!(passed, STEPS, "{printed}");
        server.stop().await;
    }
}

/// The client in Rust, which `need_rust_client` of `.ci/tools.sh` has built.
fn rust() -> Command {
    command_of(file("target/clients/rust/debug/taskledger-a2a-rust-client"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_python_client_passes_each_step_over_each_binding() {
    all_steps_pass(|| python("sdk.py")).await;
    all_steps_pass_with_credentials(|| python("sdk.py")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_javascript_client_passes_each_step_over_each_binding() {
    all_steps_pass(|| node("sdk.mjs")).await;
    all_steps_pass_with_credentials(|| node("sdk.mjs")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_rust_client_passes_each_step_over_each_binding() {
    all_steps_pass(rust).await;
    all_steps_pass_with_credentials(rust).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_python_client_of_0_3_passes_each_step_over_each_binding() {
    for binding in BINDINGS {
        let folder = Folder::new();
        let server = Server::start_with(&folder, &["--a2a-0.3"]).await;
        let mut steps = python("sdk_v03.py");
        steps.env("PYTHONPATH", file("target/clients/a2a-0.3"));
        let printed = printed(steps, &server, binding).await;
        assert_eq!(printed.lines().count(), STEPS_V03, "{binding}: {printed}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_python_client_finds_what_the_official_kit_expects_over_each_binding() {
    for binding in BINDINGS {
        let folder = Folder::new();
        let server = Server::start_with(&folder, &["--a2a-conformance-executor"]).await;
        let printed = printed(python("sdk_kit.py"), &server, binding).await;
        assert_eq!(printed.lines().count(), BEGINNINGS, "{binding}: {printed}");
        server.stop().await;
    }
}
