//! The examples with workers in Python and TypeScript: their scripts, run with this program.

use super::others::file;
use taskledger_testkit::program::{command_of, path};

/// What the script of an example prints; it has to succeed.
async fn printed(example: &str) -> String {
    file("clients/typescript/dist/index.js");
    let mut script = command_of(file(&format!("examples/{example}/run.sh")));
    let done = script.env("TASKLEDGER_BIN", path()).output().await.unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{printed}\n{errors}");
    printed
}

#[tokio::test]
async fn the_steps_of_two_workers_make_one_page() {
    let printed = printed("workers").await;
    for step in ["count-austen", "count-melville", "chart", "page"] {
        let line = format!("\n  {step}: completed");
        assert!(printed.contains(&line), "{step}: {printed}");
    }
    let page = "\ncount-austen: 23 words, by length\n   1 ################## 4\n";
    assert!(printed.contains(page), "{printed}");
}

#[tokio::test]
async fn a_workflow_document_is_checked_played_run_and_approved() {
    let printed = printed("workflow").await;
    for line in [
        "incident.yaml: `Incident report`, 6 phases, no errors",
        "tell_customers  skipped",
        "Publish this report?",
        "INC-118: minor",
        "everything is as expected",
    ] {
        assert!(printed.lines().any(|it| it == line), "{line}: {printed}");
    }
}
