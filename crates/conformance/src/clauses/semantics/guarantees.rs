//! What this project decided. Section: Execution guarantees

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        not_testable(
            Level::Decided,
            "semantics/guarantees/1-on-disk",
            "a command is on disk before its answer leaves; a kill loses nothing that was answered",
            "needs a kill of the server; tests/whole/system/crash.rs: \
             a_server_killed_under_load_loses_nothing_acknowledged_and_finishes_what_was_running, and \
             tests/core/application/durability.rs: a_create_is_not_answered_before_its_append_is",
        ),
        decided(
            "semantics/guarantees/2-attempt-number",
            "every start carries an attempt number that grows, also over runs and retries",
            attempts_are_numbered,
        ),
        not_testable(
            Level::Decided,
            "semantics/guarantees/3-stale-attempt",
            "an outcome with a stale attempt is refused",
            "outcomes come from executors, not from clients; domain/tests/rules/transitions.rs: \
             an_outcome_with_a_stale_attempt_is_refused",
        ),
        decided(
            "semantics/guarantees/4-outcome-once",
            "an outcome is recorded once: what has ended stays as it ended",
            outcomes_are_recorded_once,
        ),
        decided(
            "semantics/guarantees/5-declared",
            "executors declare whether they may be repeated",
            executors_declare_repeatability,
        ),
        not_testable(
            Level::Decided,
            "semantics/guarantees/6-at-most-once",
            "an attempt of an executor that may not be repeated is launched after its start is on disk",
            "needs a kill between both; tests/core/application/durability.rs: \
             an_executor_is_not_launched_before_its_start_is_durable, and tests/whole/system/signals.rs: \
             a_program_that_was_interrupted_is_not_run_again_unless_retries_allow_it",
        ),
        not_testable(
            Level::Decided,
            "semantics/guarantees/7-after-a-crash",
            "after a crash an interrupted task runs again if it may be repeated or has retries left, else it fails",
            "needs a restart of the server; tests/whole/system/signals.rs: \
             an_idempotent_task_that_was_interrupted_runs_again_after_the_restart, and \
             tests/core/application/recovery.rs: an_attempt_that_must_not_be_repeated_fails_after_a_restart",
        ),
        not_testable(
            Level::Decided,
            "semantics/guarantees/8-three-interruptions",
            "at most three interruptions of a task are forgiven in a run",
            "needs four restarts of the server; tests/core/application/recovery.rs: \
             the_fourth_interruption_ends_a_task",
        ),
        not_testable(
            Level::Decided,
            "semantics/guarantees/9-nothing-for-ever",
            "nothing stays in progress for ever",
            "no finite time shows it; tests/core/application/recovery.rs: \
             an_attempt_that_nobody_runs_is_ended_when_its_flow_is_loaded_again",
        ),
        not_testable(
            Level::Decided,
            "semantics/guarantees/10-one-clock",
            "all time comes from one clock, which tests replace",
            "is about the program's inside; clippy.toml forbids every other clock",
        ),
    ]
}

async fn attempts_are_numbered(probe: &Probe) -> Outcome {
    let (started, _) = run_to_end(probe, &[probe.failing("task")]).await?;
    for attempt in 1..=3 {
        let task = expect_status(probe, &started.root, "failed").await?;
        expect(&task, &[("attempt", json!(attempt))])?;
        let params = json!({"task_id": started.root});
        probe.result("tasks.retry", params).await?;
        end_of_run(probe, &started.root).await?;
    }
    let group = probe
        .run(&[probe.group("group"), probe.task("task").below("group")])
        .await?;
    end_of_run(probe, &group.root).await?;
    for id in [&group.root, group.id("task")?] {
        expect(&probe.get(id).await?, &[("attempt", json!(1))])?;
    }
    seen("1 to 3 of a task that was retried")
}

async fn outcomes_are_recorded_once(probe: &Probe) -> Outcome {
    // Each is cancelled at about the time at which it ends by itself.
    const TASKS: usize = 12;
    let mut ids = Vec::new();
    for number in 0..TASKS {
        let task = probe.slow(&number.to_string(), 20);
        ids.push(probe.run(&[task]).await?.root);
        let last = ids.last().cloned().unwrap_or_default();
        probe.call("tasks.cancel", json!({"task_id": last})).await?;
    }
    let mut first = Vec::new();
    for id in &ids {
        first.push(probe.wait_until_terminal(id).await?);
    }
    // Longer than all of them: late outcomes have come by its end.
    run_to_end(probe, &[probe.slow("last", 200)]).await?;
    for before in &first {
        let after = probe.get(&text_of(before, "id")?).await?;
        for field in ["status", "result", "error", "completed_at", "attempt"] {
            ensure!(
                before[field] == after[field],
                "`{field}` changed from {} to {}",
                before[field],
                after[field]
            );
        }
        let completed = after["status"] == "completed";
        ensure!(
            completed == after["error"].is_null() && completed == after["result"].is_object(),
            "two outcomes in {}",
            shown(&after)
        );
    }
    let completed = first
        .iter()
        .filter(|task| task["status"] == "completed")
        .count();
    seen(format!(
        "{completed} of {TASKS} tasks completed, the others were cancelled"
    ))
}

async fn executors_declare_repeatability(probe: &Probe) -> Outcome {
    let result = probe.result("system.executors", json!({})).await?;
    let list = result["executors"].as_array().cloned().unwrap_or_default();
    let silent = list
        .iter()
        .find(|executor| !executor["idempotent"].is_boolean());
    ensure!(
        silent.is_none() && !list.is_empty(),
        "{}: expected `idempotent` of each",
        shown(&result)
    );
    seen(format!("{} executors", list.len()))
}
