//! What checks are written with, tried on the real server.

use crate::conformance::{address, server};
use serde_json::json;
use taskledger_conformance::{Finding, Options, Outcome, Probe, expect_task, seen};
use taskledger_testkit::server::Folder;

async fn try_out(change: impl FnOnce(&mut Options), check: impl AsyncFnOnce(&Probe) -> Outcome) {
    let folder = Folder::new();
    let server = server(&folder).await;
    let mut options = Options::new(address(&server));
    change(&mut options);
    let client = taskledger::tls::client().no_proxy().build().unwrap();
    let probe = Probe::new(options, client, "token".to_owned());
    let outcome = check(&probe).await;
    server.kill().await;
    outcome.unwrap();
}

#[tokio::test]
async fn tasks_run_wait_and_fail_as_checks_want_them() {
    try_out(|_| {}, tasks_behave).await;
}

#[tokio::test]
async fn a_missing_slow_executor_is_no_failure() {
    let other = |options: &mut Options| options.slow_executor = "no_such".to_owned();
    try_out(other, missing_executor_is_skipped).await;
}

#[tokio::test]
async fn waiting_ends_when_a_task_rests_elsewhere() {
    try_out(|_| {}, waiting_in_vain_ends).await;
}

async fn tasks_behave(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("all"),
        probe.task("first").below("all"),
        probe.failing("bad").below("all").after("first"),
        probe.slow("slow", 60_000).below("all").after_end_of("bad"),
    ];
    let started = probe.run(&tasks).await?;
    for (alias, id) in probe.ids_by_name(&started.root, &tasks).await? {
        assert_eq!(started.id(&alias)?, id, "{alias} is found by its name too");
    }
    let first = probe.wait_until_terminal(started.id("first")?).await?;
    expect_task(&first)?;
    let bad = probe.wait_until_terminal(started.id("bad")?).await?;
    let slow = probe.wait_for(started.id("slow")?, "in_progress").await?;
    assert_eq!(
        [&first["status"], &bad["status"]],
        [&json!("completed"), &json!("failed")]
    );
    expect_task(&slow)?;
    let tree = probe.tree(&started.root).await?;
    let names: Vec<_> = tree.iter().map(|task| task["name"].clone()).collect();
    let expected = ["all", "first", "bad", "slow"].map(|alias| json!(probe.name(alias)));
    assert_eq!(names, expected);
    assert!(started.id("other").is_err());
    let stored = probe
        .create(&probe.task("stored").without("inputs"))
        .await?;
    let below = probe
        .create(&probe.task("below").below(&stored).after(&stored))
        .await?;
    assert_eq!(probe.get(&below).await?["parent_id"], stored);
    assert_eq!(probe.get(&below).await?["user_id"], probe.user());
    seen("as wanted")
}

async fn missing_executor_is_skipped(probe: &Probe) -> Outcome {
    let run = probe.run(&[probe.slow("slow", 1)]).await;
    assert!(matches!(run, Err(Finding::Skipped(_))), "{run:?}");
    let own = probe
        .task("own")
        .with("schemas", json!({"method": "no_such"}));
    let run = probe.run(&[own]).await;
    assert!(matches!(run, Err(Finding::Failed(_))), "{run:?}");
    seen("skipped")
}

async fn waiting_in_vain_ends(probe: &Probe) -> Outcome {
    let started = probe.run(&[probe.task("quick")]).await?;
    let waited = probe.wait_for(&started.root, "cancelled").await;
    assert!(matches!(waited, Err(Finding::Failed(_))), "{waited:?}");
    seen("ended")
}
