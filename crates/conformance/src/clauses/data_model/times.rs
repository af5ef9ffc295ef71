//! When things happened to a task. spec: data-model / Task Schema

use crate::clauses::prelude::*;

/// The times of a task.
const TIMES: [&str; 4] = ["created_at", "updated_at", "started_at", "completed_at"];

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        should(
            "data-model/times/1-created-at",
            "`created_at` is set when a task is created",
            creation_sets_times,
        ),
        must(
            "data-model/times/2-iso-8601",
            "times are ISO 8601 dates and times",
            times_are_checked,
        ),
        must(
            "data-model/times/3-started-at-while-pending",
            "`started_at` is null while the task is pending",
            started_at_only_after_the_start,
        ),
        should(
            "data-model/times/4-started-at",
            "`started_at` is set when a task starts",
            started_at_only_after_the_start,
        ),
        should(
            "data-model/times/5-updated-at",
            "`updated_at` moves when a task is changed",
            changes_move_updated_at,
        ),
        must(
            "data-model/times/6-completed-at-before-the-end",
            "`completed_at` is null while the task has not ended",
            completed_at_only_at_the_end,
        ),
        should(
            "data-model/times/7-completed-at",
            "`completed_at` is set when a task ends",
            completed_at_only_at_the_end,
        ),
    ]
}

async fn creation_sets_times(probe: &Probe) -> Outcome {
    let first = probe.store(&probe.task("first")).await?;
    let second = probe.store(&probe.task("second")).await?;
    let created = instant(&first, "created_at")?;
    ensure!(
        created <= instant(&second, "created_at")? && created <= instant(&first, "updated_at")?,
        "{} was created before {}, and not changed before its creation",
        shown(&first),
        shown(&second)
    );
    seen(format!("created at {created}"))
}

/// Whatever the probe reads is checked against the schema, which has the format.
pub(in super::super) async fn times_are_checked(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    for task in lives.all() {
        for field in TIMES.iter().filter(|field| task[**field] != Value::Null) {
            instant(task, field)?;
        }
    }
    for field in ["created_at", "updated_at"] {
        let sound = probe.task("sound").with(field, "2025-01-15T10:30:00Z");
        if probe.store_or_refuse(&sound).await?.is_none() {
            continue; // Takes no times from callers, so there is none to check.
        }
        for offset in [
            "2025-01-15T10:30:00+05:30",
            "2025-01-15T10:30:00.123456-08:00",
        ] {
            probe
                .store(&probe.task("offset").with(field, offset))
                .await?;
        }
        let odd = ["", "today", "2025-02-30T10:30:00Z", "2025-13-01T00:00:00Z"];
        let odd = odd
            .into_iter()
            .chain(["2025-01-15T25:00:00Z", "2025-01-15T10:61:00Z", "10:30"]);
        let odd = odd
            .map(Value::from)
            .chain([json!(1_736_937_000), json!([]), json!(true)]);
        for odd in odd {
            let task = probe.task("never").with(field, odd).value();
            probe
                .refuses("tasks.create", [task], &[INVALID_PARAMS])
                .await?;
        }
        // The schema's format and the algorithm's parser disagree about these.
        for open in ["2025-01-15", "2025-01-15T10:30:00", "2016-12-31T23:59:60Z"] {
            probe
                .store_or_refuse(&probe.task("open").with(field, open))
                .await?;
        }
    }
    seen("shown times are sound; days and hours that do not exist, and numbers, are -32602")
}

/// A claimed time is refused, or overwritten.
async fn claimed(probe: &Probe, field: &str) -> Result<(), Finding> {
    let task = probe.task("claimed").with(field, "2025-01-15T10:30:00Z");
    match probe.store_or_refuse(&task).await? {
        Some(task) => expect_field(&task, field, Value::Null),
        None => Ok(()),
    }
}

pub(in super::super) async fn started_at_only_after_the_start(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    let new = probe.store(&probe.task("new")).await?;
    for task in [&lives.pending, &new] {
        expect_field(task, "started_at", Value::Null)?;
    }
    for task in [
        &lives.in_progress,
        &lives.completed,
        &lives.failed,
        &lives.cancelled,
    ] {
        ensure!(
            instant(task, "started_at")? >= instant(task, "created_at")?,
            "started before it was created: {}",
            shown(task)
        );
    }
    claimed(probe, "started_at").await?;
    seen("null while pending, set in every task that has started")
}

async fn changes_move_updated_at(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("changing")).await?;
    let before = instant(&probe.get(&id).await?, "updated_at")?;
    let after = probe
        .eventually("a change moves `updated_at`", async || {
            let updates = json!({"task_id": id, "updates": {"name": probe.name("changed")}});
            probe.result("tasks.update", updates).await?;
            let after = instant(&probe.get(&id).await?, "updated_at")?;
            Ok((after > before).then_some(after))
        })
        .await?;
    seen(format!("from {before} to {after}"))
}

pub(in super::super) async fn completed_at_only_at_the_end(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    for task in [&lives.pending, &lives.in_progress] {
        expect_field(task, "completed_at", Value::Null)?;
    }
    for task in [&lives.completed, &lives.failed, &lives.cancelled] {
        ensure!(
            instant(task, "completed_at")? >= instant(task, "started_at")?,
            "ended before it started: {}",
            shown(task)
        );
    }
    claimed(probe, "completed_at").await?;
    seen("null in pending and in progress, set in the three others")
}

pub(in super::super) async fn times_are_in_utc(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    let mut count = 0;
    for task in lives.all() {
        for field in TIMES.iter().filter(|field| task[**field] != Value::Null) {
            let offset = instant(task, field)?.offset().local_minus_utc();
            ensure!(offset == 0, "`{field}` is {}: expected UTC", task[*field]);
            count += 1;
        }
    }
    seen(format!("{count} times in UTC"))
}
