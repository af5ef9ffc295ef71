//! Requests and checks that several clauses share.

use crate::clauses::prelude::*;
use chrono::{DateTime, FixedOffset, SecondsFormat, TimeDelta};

pub(super) const TRANSITION: i64 = -32006;
pub(super) const EXECUTING: i64 = -32008;
pub(super) const UNDELETABLE: i64 = -32009;
pub(super) const PARENT: i64 = -32010;
pub(super) const DEPENDENCY: i64 = -32011;
pub(super) const TREE: i64 = -32012;

/// A UUID v4 that differs from those of all other checks.
pub(super) fn fresh_id(probe: &Probe, number: u64) -> String {
    let user = probe.user();
    let own = user
        .bytes()
        .rev()
        .take(8)
        .fold(0_u64, |id, byte| id << 8 | u64::from(byte));
    let high = own >> 32;
    let low = own & 0xffff_ffff;
    format!("{high:08x}-{:04x}-4000-8000-0000{low:08x}", number & 0xffff)
}

/// The fault in this field.
pub(super) fn fault_in<'a>(error: &'a RpcError, field: &str) -> Result<&'a Value, Finding> {
    let none = || Finding::failed(format!("{error}: expected a fault in `{field}`"));
    let faults = error.data["errors"].as_array();
    faults
        .and_then(|faults| faults.iter().find(|fault| fault["field"] == field))
        .ok_or_else(none)
}

/// Ends as failed unless the members have these values.
pub(super) fn expect(task: &Value, members: &[(&str, Value)]) -> Result<(), Finding> {
    for (field, value) in members {
        expect_field(task, field, value.clone())?;
    }
    Ok(())
}

/// The task, which must have this status now.
pub(super) async fn expect_status(probe: &Probe, id: &str, status: &str) -> Result<Value, Finding> {
    let task = probe.get(id).await?;
    expect(&task, &[("status", json!(status))])?;
    Ok(task)
}

/// Whole milliseconds from the one time to the other.
pub(super) fn ms_between(
    earlier: DateTime<FixedOffset>,
    later: DateTime<FixedOffset>,
) -> Result<u64, Finding> {
    let ms = (later - earlier).num_milliseconds();
    u64::try_from(ms).map_err(|_| Finding::failed(format!("{later} is before {earlier}")))
}

/// The time at the server, so many seconds from now or, if negative, ago.
pub(super) async fn from_now(probe: &Probe, seconds: i64) -> Result<String, Finding> {
    let health = probe.result("system.health", json!({})).await?;
    let now = instant(&health, "time")?.to_utc();
    let then = now + TimeDelta::seconds(seconds);
    Ok(then.to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// How many tasks this check has stored.
pub(super) async fn count(probe: &Probe) -> Result<u64, Finding> {
    let params = json!({"user_id": probe.user(), "limit": 1});
    let list = probe.result("tasks.list", params).await?;
    let none = || Finding::failed(format!("no `total` in {}", shown(&list)));
    list["total"].as_u64().ok_or_else(none)
}

/// The root of a run, once the run has ended.
pub(super) async fn end_of_run(probe: &Probe, root: &str) -> Result<Value, Finding> {
    let what = format!("the run of {root} ends");
    probe
        .eventually(&what, async || {
            let task = probe.get(root).await?;
            let state = task["run"]["state"].clone();
            ensure!(state.is_string(), "no `run.state` in {}", shown(&task));
            Ok((state != "running").then_some(task))
        })
        .await
}

/// Runs the tasks and waits until the run has ended; gives its root too.
pub(super) async fn run_to_end(
    probe: &Probe,
    tasks: &[NewTask],
) -> Result<(Started, Value), Finding> {
    let started = probe.run(tasks).await?;
    let root = end_of_run(probe, &started.root).await?;
    Ok((started, root))
}

/// Creates the tasks in one call, the root first; tells their stored ids by their aliases.
pub(super) async fn create_all(probe: &Probe, tasks: &[NewTask]) -> Result<Value, Finding> {
    let elements: Vec<Value> = tasks.iter().map(NewTask::element).collect();
    let result = probe
        .result("tasks.create", json!({"tasks": elements}))
        .await?;
    ensure!(
        result["task_ids"].is_object(),
        "no `task_ids` in {}",
        shown(&result)
    );
    Ok(result["task_ids"].clone())
}

/// The parameters of `tasks.execute` and of `tasks.create` for these tasks.
pub(super) fn list(tasks: &[NewTask]) -> Value {
    let elements: Vec<Value> = tasks.iter().map(NewTask::element).collect();
    json!({"tasks": elements})
}

/// Starts a stored task.
pub(super) async fn execute(probe: &Probe, id: &str) -> Result<Value, Finding> {
    probe.result("tasks.execute", json!({"task_id": id})).await
}

/// Changes a task.
pub(super) async fn update(probe: &Probe, id: &str, updates: Value) -> Result<Value, Finding> {
    let params = json!({"task_id": id, "updates": updates});
    probe.result("tasks.update", params).await
}

/// The error of an update that must be refused, and leave the task as it was.
pub(super) async fn update_refused(
    probe: &Probe,
    id: &str,
    updates: Value,
    code: i64,
) -> Result<RpcError, Finding> {
    let before = probe.get(id).await?;
    let params = json!({"task_id": id, "updates": updates});
    let error = probe.refused("tasks.update", params, code).await?;
    let after = probe.get(id).await?;
    for field in [
        "name",
        "parent_id",
        "user_id",
        "priority",
        "dependencies",
        "inputs",
        "schemas",
        "params",
    ] {
        ensure!(
            before[field] == after[field],
            "a refused update changed `{field}`: {}",
            shown(&after)
        );
    }
    Ok(error)
}

/// All events of a task, page by page.
pub(super) async fn history(probe: &Probe, params: Value) -> Result<Vec<Value>, Finding> {
    const PAGES_MAX: usize = 100;
    let (mut events, mut params) = (Vec::new(), params);
    for _ in 0..PAGES_MAX {
        let page = probe.result("tasks.history", params.clone()).await?;
        let found = page["events"].as_array();
        let none = || Finding::failed(format!("no `events` in {}", shown(&page)));
        events.extend(found.ok_or_else(none)?.iter().cloned());
        if page["next_cursor"].is_null() {
            return Ok(events);
        }
        params["cursor"] = page["next_cursor"].clone();
    }
    Err(Finding::failed(format!(
        "more than {PAGES_MAX} pages of {params}"
    )))
}

/// Ends as failed unless tasks that come `after` others run once those have ended, whichever way, and not before.
pub(super) async fn expect_after_any_end(
    probe: &Probe,
    after: fn(NewTask, &str) -> NewTask,
) -> Result<(), Finding> {
    let tasks = [
        probe.group("root"),
        probe.slow("good", 300).below("root"),
        probe.failing("bad").below("root"),
        probe.slow("off", FOREVER_MS).below("root"),
        after(probe.task("after-good").below("root"), "good"),
        after(probe.task("after-bad").below("root"), "bad"),
        after(probe.task("after-off").below("root"), "off"),
    ];
    let started = probe.run(&tasks).await?;
    expect_status(probe, started.id("after-off")?, "pending").await?;
    probe.cancel(started.id("off")?).await?;
    end_of_run(probe, &started.root).await?;
    for (alias, status) in [
        ("good", "completed"),
        ("bad", "failed"),
        ("off", "cancelled"),
    ] {
        let before = expect_status(probe, started.id(alias)?, status).await?;
        let after = started.id(&format!("after-{alias}"))?;
        let after = expect_status(probe, after, "completed").await?;
        ensure!(
            instant(&after, "started_at")? >= instant(&before, "completed_at")?,
            "a task started before the {status} one that it waits for"
        );
    }
    Ok(())
}
