//! The official clients of Agent2Agent, in Python and JavaScript, at the versions of the locks beside this file: the same
//! eighteen steps over each binding. A step may be skipped only if the card does not declare what it needs. The one of
//! version 0.3, where the server speaks that too, passes eleven.

use super::others::{file, node, python};
use taskledger_testkit::server::{Folder, Server};
use tokio::process::Command;

const BINDINGS: [&str; 3] = ["JSONRPC", "HTTP+JSON", "GRPC"];
const STEPS: usize = 18;
/// Steps of the client of 0.3.
const STEPS_V03: usize = 11;
/// What a server without authentication, or without push, does not have.
const MAY_BE_SKIPPED: [&str; 2] = ["skipped push configurations", "skipped extended card"];

/// Each step passes over each binding; a server for each, whose tasks are those of the client alone.
async fn all_steps_pass(program: impl Fn() -> Command) {
    for binding in BINDINGS {
        let folder = Folder::new();
        let server = Server::start(&folder).await;
        let mut steps = program();
        steps.args([server.api.url.trim_end_matches('/'), binding]);
        let done = steps.output().await.unwrap();
        let printed = String::from_utf8_lossy(&done.stdout);
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{binding}: {printed}\n{errors}");
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines.len(), STEPS, "{binding}: {printed}");
        for line in lines {
            let is_fine = line.starts_with("passed ") || MAY_BE_SKIPPED.contains(&line);
            assert!(is_fine, "{binding}: {printed}");
        }
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_python_client_passes_each_step_over_each_binding() {
    all_steps_pass(|| python("sdk.py")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_javascript_client_passes_each_step_over_each_binding() {
    all_steps_pass(|| node("sdk.mjs")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_python_client_of_0_3_passes_each_step_over_each_binding() {
    for binding in BINDINGS {
        let folder = Folder::new();
        let server = Server::start_with(&folder, &["--a2a-0.3"]).await;
        let mut steps = python("sdk_v03.py");
        steps
            .env("PYTHONPATH", file("target/clients/a2a-0.3"))
            .args([server.api.url.trim_end_matches('/'), binding]);
        let done = steps.output().await.unwrap();
        let printed = String::from_utf8_lossy(&done.stdout);
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{binding}: {printed}\n{errors}");
        assert_eq!(printed.lines().count(), STEPS_V03, "{binding}: {printed}");
        server.stop().await;
    }
}
