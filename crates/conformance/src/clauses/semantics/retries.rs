//! What this project decided. Section: Retry

use super::looks::*;
use super::streams::{followed, updates_of};
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/retries/1-only-pending-is-seen",
            "a failure with retries left is seen as pending with `next_attempt_at`, never as failed",
            a_failure_with_retries_left_is_pending,
        ),
        decided(
            "semantics/retries/2-others-wait",
            "dependents, groups and the run wait for the retry",
            others_wait_for_the_retry,
        ),
        decided(
            "semantics/retries/3-streams",
            "streams say `will_retry` of a failure with retries left, and `task_failed` of the last one only",
            streams_tell_retries,
        ),
        decided(
            "semantics/retries/4-budget",
            "the budget counts within a run, and attempt numbers never restart",
            budgets_count_within_a_run,
        ),
        decided(
            "semantics/retries/5-retry-count",
            "`params.retry_count` is the number of extra attempts; without it there is none",
            retry_count_is_extra,
        ),
        decided(
            "semantics/retries/6-policy",
            "`params.retry` bounds the attempts; the delay grows by `multiplier` up to `max_delay_ms`",
            delays_grow_to_their_limit,
        ),
        decided(
            "semantics/retries/7-sound-policy",
            "a policy that makes no sense, or two of them, is -32602",
            unsound_policies_are_refused,
        ),
    ]
}

/// A task that fails, with these `params` beside those that make it fail.
fn failing(probe: &Probe, alias: &str, params: Value) -> NewTask {
    let task = probe.failing(alias);
    let mut merged = task.value()["params"].clone();
    if !merged.is_object() {
        merged = json!({});
    }
    for (name, value) in params.as_object().into_iter().flatten() {
        merged[name.as_str()] = value.clone();
    }
    task.with("params", merged)
}

/// Waits for a second attempt for as long as no check takes.
fn waiting(probe: &Probe, alias: &str) -> NewTask {
    let retry =
        json!({"max_attempts": 2, "initial_delay_ms": FOREVER_MS, "max_delay_ms": FOREVER_MS});
    failing(probe, alias, json!({"retry": retry}))
}

/// The task, once it waits for its next attempt.
async fn wait_for_delay(probe: &Probe, id: &str) -> Result<Value, Finding> {
    let what = format!("task {id} waits for its next attempt");
    probe
        .eventually(&what, async || {
            let task = probe.get(id).await?;
            ensure!(!is_terminal(&task), "{what}: it rests in {}", shown(&task));
            Ok(task["next_attempt_at"].is_string().then_some(task))
        })
        .await
}

async fn a_failure_with_retries_left_is_pending(probe: &Probe) -> Outcome {
    let started = probe.run(&[waiting(probe, "task")]).await?;
    let task = wait_for_delay(probe, &started.root).await?;
    expect(
        &task,
        &[("status", json!("pending")), ("attempt", json!(1))],
    )?;
    for field in ["error", "result", "started_at", "completed_at"] {
        expect(&task, &[(field, Value::Null)])?;
    }
    expect(&task, &[("progress", json!(0.0))])?;
    let next = instant(&task, "next_attempt_at")?;
    ensure!(
        next > instant(&task, "updated_at")?,
        "{next} is not in the future of {}",
        shown(&task)
    );
    probe.cancel(&started.root).await?;
    let task = probe.get(&started.root).await?;
    expect(
        &task,
        &[
            ("status", json!("cancelled")),
            ("next_attempt_at", Value::Null),
        ],
    )?;
    seen(format!("pending until {next}"))
}

async fn others_wait_for_the_retry(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        waiting(probe, "task").below("root"),
        probe.task("required").below("root").after("task"),
        probe.task("optional").below("root").after_end_of("task"),
    ];
    let started = probe.run(&tasks).await?;
    wait_for_delay(probe, started.id("task")?).await?;
    let root = expect_status(probe, &started.root, "in_progress").await?;
    ensure!(
        root["run"]["state"] == "running",
        "{}: expected a run under way",
        shown(&root)
    );
    for alias in ["required", "optional"] {
        let task = expect_status(probe, started.id(alias)?, "pending").await?;
        expect(&task, &[("blocked_by", Value::Null)])?;
    }
    probe.cancel(started.id("task")?).await?;
    probe.wait_for(started.id("optional")?, "completed").await?;
    seen("group, run and both dependents waited")
}

async fn streams_tell_retries(probe: &Probe) -> Outcome {
    let retry = json!({"max_attempts": 2, "initial_delay_ms": 10});
    let task = failing(probe, "task", json!({"retry": retry}));
    let messages = followed(probe, &[task]).await?;
    let retried = updates_of(&messages, "task_status_update");
    let retried = retried.iter().filter(|m| m["will_retry"] == true).count();
    let failed = updates_of(&messages, "task_failed").len();
    ensure!(
        retried == 1 && failed == 1,
        "{retried} times `will_retry`, {failed} times `task_failed`: expected one of each"
    );
    seen("one `will_retry`, one `task_failed`")
}

/// How many attempts a task has had when it has failed for good.
async fn attempts(probe: &Probe, id: &str) -> Result<u64, Finding> {
    let task = probe.wait_for(id, "failed").await?;
    expect(&task, &[("next_attempt_at", Value::Null)])?;
    let none = || Finding::failed(format!("no `attempt` in {}", shown(&task)));
    task["attempt"].as_u64().ok_or_else(none)
}

async fn budgets_count_within_a_run(probe: &Probe) -> Outcome {
    let retry = json!({"max_attempts": 2, "initial_delay_ms": 1});
    let task = failing(probe, "task", json!({"retry": retry}));
    let started = probe.run(&[task]).await?;
    let mut found = vec![attempts(probe, &started.root).await?];
    for method in ["tasks.retry", "tasks.execute"] {
        let params = json!({"task_id": started.root});
        probe.result(method, params).await?;
        end_of_run(probe, &started.root).await?;
        found.push(attempts(probe, &started.root).await?);
    }
    ensure!(found == [2, 4, 6], "attempts {found:?}: expected [2, 4, 6]");
    seen("two attempts in each of three runs, numbered 1 to 6")
}

async fn retry_count_is_extra(probe: &Probe) -> Outcome {
    let mut found = Vec::new();
    for params in [
        json!({}),
        json!({"retry_count": 0}),
        json!({"retry_count": 1}),
    ] {
        let started = probe.run(&[failing(probe, "task", params)]).await?;
        found.push(attempts(probe, &started.root).await?);
    }
    ensure!(found == [1, 1, 2], "attempts {found:?}: expected [1, 1, 2]");
    seen("1, 1 and 2 attempts for none, 0 and 1")
}

async fn delays_grow_to_their_limit(probe: &Probe) -> Outcome {
    // The third delay would be 12,500 ms.
    let retry =
        json!({"max_attempts": 4, "initial_delay_ms": 20, "multiplier": 25, "max_delay_ms": 1_000});
    let started = probe
        .run(&[failing(probe, "task", json!({"retry": retry}))])
        .await?;
    let mut delays = [None; 3];
    let root = started.root.as_str();
    let what = "the task has failed four times";
    probe
        .eventually(what, async || {
            let task = probe.get(root).await?;
            let attempt = task["attempt"].as_u64().unwrap_or(0);
            if task["next_attempt_at"].is_string()
                && let Ok(Some(delay)) =
                    usize::try_from(attempt).map(|n| delays.get_mut(n.wrapping_sub(1)))
            {
                let next = instant(&task, "next_attempt_at")?;
                *delay = Some(ms_between(instant(&task, "updated_at")?, next)?);
            }
            Ok((task["status"] == "failed").then_some(()))
        })
        .await?;
    // The shortest delay may pass between two looks; what is seen must be right.
    for (seen, expected) in delays.iter().zip([20, 500, 1_000]) {
        ensure!(
            seen.is_none_or(|seen| seen == expected),
            "delays in ms are {delays:?}: expected 20, 500, 1000"
        );
    }
    ensure!(
        delays[2].is_some(),
        "the last delay, of 1 s, was not seen: {delays:?}"
    );
    let task = probe.get(root).await?;
    expect(&task, &[("attempt", json!(4))])?;
    seen(format!("delays in ms, as far as seen: {delays:?}"))
}

async fn unsound_policies_are_refused(probe: &Probe) -> Outcome {
    for (params, field) in [
        (json!({"retry_count": -1}), "retry_count"),
        (json!({"retry_count": 1.5}), "retry_count"),
        (json!({"retry_count": "3"}), "retry_count"),
        (json!({"retry": 3}), "retry"),
        (json!({"retry": {"max_attempts": 0}}), "max_attempts"),
        (
            json!({"retry": {"max_attempts": 2, "initial_delay_ms": -1}}),
            "initial_delay_ms",
        ),
        (
            json!({"retry": {"max_attempts": 2, "multiplier": 0.5}}),
            "multiplier",
        ),
        (
            json!({"retry": {"max_attempts": 2, "max_delay_ms": "1"}}),
            "max_delay_ms",
        ),
        (json!({"retry": {"max_attempts": 2, "tries": 1}}), "tries"),
        (
            json!({"retry_count": 1, "retry": {"max_attempts": 2}}),
            "retry",
        ),
    ] {
        let task = probe.task("task").with("params", params);
        let error = probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
        fault_in(&error, field)?;
    }
    seen("ten policies are refused")
}
