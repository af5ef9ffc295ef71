//! When a task with dependencies may start. spec: data-model / Required vs Optional Dependencies,
//! Dependency Resolution Algorithm

use crate::clauses::prelude::*;

/// How long a task takes that others wait for.
const WAITED_FOR_MS: u64 = 200;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "data-model/dependency-required/1-waits",
            "a task waits for what it requires",
            required_waits_for_completion,
        ),
        must(
            "data-model/dependency-required/2-proceeds",
            "once all that it requires has completed, the task runs",
            required_waits_for_completion,
        ),
        must_not(
            "data-model/dependency-required/3-failure",
            "a task does not run when something that it requires has failed",
            failed_required_blocks,
        ),
        must(
            "data-model/dependency-optional/1-waits",
            "a task waits until an optional dependency has ended",
            optional_waits_and_goes_on,
        ),
        must(
            "data-model/dependency-optional/2-goes-on",
            "a task runs however its optional dependencies ended",
            optional_waits_and_goes_on,
        ),
        must(
            "data-model/dependency-resolution/1-all",
            "all dependencies of a task are looked at, not only the first",
            every_dependency_counts,
        ),
        must(
            "data-model/dependency-resolution/2-required-completed",
            "a required dependency lets the task start only when it is completed",
            required_waits_for_completion,
        ),
        must_not(
            "data-model/dependency-resolution/3-required-failed",
            "a required dependency that has failed keeps the task from starting",
            failed_required_blocks,
        ),
        must(
            "data-model/dependency-resolution/4-optional-terminal",
            "an optional dependency lets the task start when it is completed, failed or cancelled",
            cancelled_is_an_end_for_optional,
        ),
        must(
            "data-model/dependency-resolution/5-satisfied",
            "a task whose dependencies are satisfied goes from pending to in progress",
            satisfied_tasks_start,
        ),
    ]
}

/// `later` must have started after `earlier` had ended.
fn expect_order(earlier: &Value, later: &Value) -> Result<(), Finding> {
    ensure!(
        instant(earlier, "completed_at")? <= instant(later, "started_at")?,
        "{} started before {} had ended",
        shown(later),
        shown(earlier)
    );
    Ok(())
}

pub(in super::super) async fn required_waits_for_completion(probe: &Probe) -> Outcome {
    let started = probe
        .run(&[
            probe.task("root"),
            // Listed before what they wait for, and more urgent.
            probe
                .task("third")
                .below("root")
                .after("second")
                .with("priority", 0),
            probe
                .task("second")
                .below("root")
                .after("first")
                .with("priority", 0),
            probe
                .slow("first", WAITED_FOR_MS)
                .below("root")
                .with("priority", 3),
        ])
        .await?;
    let mut tasks = Vec::new();
    for alias in ["first", "second", "third"] {
        tasks.push(probe.wait_for(started.id(alias)?, "completed").await?);
    }
    expect_order(&tasks[0], &tasks[1])?;
    expect_order(&tasks[1], &tasks[2])?;
    seen("three tasks in a row, each after the one before had completed")
}

/// Waits until whoever would start has had the chance to: a task that may start after the same
/// end has completed.
pub(in super::super) async fn failed_required_blocks(probe: &Probe) -> Outcome {
    let started = probe
        .run(&[
            probe.task("root"),
            probe.failing("bad").below("root"),
            probe.task("blocked").below("root").after("bad"),
            probe.task("behind").below("root").after("blocked"),
            probe.task("witness").below("root").after_end_of("bad"),
        ])
        .await?;
    probe.wait_for(started.id("bad")?, "failed").await?;
    probe.wait_for(started.id("witness")?, "completed").await?;
    let mut statuses = Vec::new();
    for alias in ["blocked", "behind"] {
        let task = probe.get(started.id(alias)?).await?;
        expect_field(&task, "started_at", Value::Null)?;
        expect_field(&task, "result", Value::Null)?;
        statuses.push(task["status"].clone());
    }
    seen(format!(
        "the task behind a failure and the one behind it never started: {statuses:?}"
    ))
}

pub(in super::super) async fn optional_waits_and_goes_on(probe: &Probe) -> Outcome {
    let started = probe
        .run(&[
            probe.task("root"),
            probe
                .task("after all")
                .below("root")
                .after_end_of("good")
                .after_end_of("bad"),
            probe.failing("bad").below("root"),
            probe.slow("good", WAITED_FOR_MS).below("root"),
        ])
        .await?;
    let last = probe
        .wait_for(started.id("after all")?, "completed")
        .await?;
    for (alias, status) in [("good", "completed"), ("bad", "failed")] {
        let dependency = probe.get(started.id(alias)?).await?;
        expect_field(&dependency, "status", status)?;
        expect_order(&dependency, &last)?;
    }
    seen("a task behind an optional failure and an optional success runs after both")
}

async fn every_dependency_counts(probe: &Probe) -> Outcome {
    let ends = ["a", "b", "c"];
    let mut tasks = vec![probe.task("root")];
    for (n, alias) in ends.iter().enumerate() {
        let ms = WAITED_FOR_MS * (n as u64);
        tasks.push(probe.slow(alias, ms).below("root"));
    }
    let list: Vec<_> = ends
        .iter()
        .map(|id| json!({"id": id, "required": *id != "b"}))
        .collect();
    tasks.push(probe.task("last").below("root").with("dependencies", list));
    let started = probe.run(&tasks).await?;
    let last = probe.wait_for(started.id("last")?, "completed").await?;
    for alias in ends {
        expect_order(&probe.get(started.id(alias)?).await?, &last)?;
    }
    mixed_outcomes_block(probe).await?;
    seen("a task waits for the slowest of three; one failure among three blocks it")
}

/// One required failure among required successes blocks, wherever it stands.
async fn mixed_outcomes_block(probe: &Probe) -> Result<(), Finding> {
    let started = probe
        .run(&[
            probe.task("root"),
            probe.failing("bad").below("root"),
            probe.task("good").below("root"),
            probe
                .task("blocked")
                .below("root")
                .after("good")
                .after("bad"),
            probe
                .task("too")
                .below("root")
                .after("bad")
                .after_end_of("good"),
            probe
                .task("witness")
                .below("root")
                .after_end_of("bad")
                .after("good"),
        ])
        .await?;
    probe.wait_for(started.id("witness")?, "completed").await?;
    for alias in ["blocked", "too"] {
        expect_field(
            &probe.get(started.id(alias)?).await?,
            "started_at",
            Value::Null,
        )?;
    }
    Ok(())
}

pub(in super::super) async fn cancelled_is_an_end_for_optional(probe: &Probe) -> Outcome {
    let started = probe
        .run(&[
            probe.task("root"),
            probe.slow("stopped", FOREVER_MS).below("root"),
            probe.task("after").below("root").after_end_of("stopped"),
            probe.task("blocked").below("root").after("stopped"),
        ])
        .await?;
    let stopped = started.id("stopped")?;
    probe.wait_for(stopped, "in_progress").await?;
    let waiting = probe.get(started.id("after")?).await?;
    expect_field(&waiting, "status", "pending")?;
    probe.cancel(stopped).await?;
    let after = probe.wait_for(started.id("after")?, "completed").await?;
    let stopped = probe.wait_for(stopped, "cancelled").await?;
    expect_order(&stopped, &after)?;
    let blocked = probe.get(started.id("blocked")?).await?;
    expect_field(&blocked, "started_at", Value::Null)?;
    optional_waits_and_goes_on(probe).await?;
    seen("a task runs after an optional dependency was cancelled, has failed or has completed")
}

async fn satisfied_tasks_start(probe: &Probe) -> Outcome {
    let started = probe
        .run(&[
            probe.task("root"),
            probe.task("first").below("root"),
            probe.slow("then", FOREVER_MS).below("root").after("first"),
        ])
        .await?;
    let then = started.id("then")?;
    let task = probe.wait_for(then, "in_progress").await?;
    expect_order(&probe.get(started.id("first")?).await?, &task)?;
    probe.cancel(then).await?;
    seen("pending until the dependency had completed, then in progress")
}
