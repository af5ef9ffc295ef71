//! What several of these checks send and look at.

use crate::conformance::clauses::prelude::*;
use taskledger_domain::Timestamp;

pub(super) const INVALID: i64 = -32602;
pub(super) const TRANSITION: i64 = -32006;
pub(super) const EXECUTING: i64 = -32008;
pub(super) const UNDELETABLE: i64 = -32009;
pub(super) const PARENT: i64 = -32010;
pub(super) const DEPENDENCY: i64 = -32011;
pub(super) const TREE: i64 = -32012;

/// Milliseconds that outlast every check: such a task ends only when it is cancelled.
pub(super) const LONG_MS: u64 = 600_000;

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
    for (name, value) in members {
        ensure!(
            task[*name] == *value,
            "expected `{name}` to be {value} in {}",
            shown(task)
        );
    }
    Ok(())
}

/// The task, which must have this status now.
pub(super) async fn expect_status(probe: &Probe, id: &str, status: &str) -> Result<Value, Finding> {
    let task = probe.get(id).await?;
    expect(&task, &[("status", json!(status))])?;
    Ok(task)
}

/// A time of the task.
pub(super) fn moment(task: &Value, field: &str) -> Result<Timestamp, Finding> {
    let text = text_of(task, field)?;
    let broken = |why| Finding::failed(format!("`{field}` is {text}: {why}"));
    Timestamp::parse(&text).map_err(broken)
}

/// The time at the server, so many seconds from now or, if negative, ago.
pub(super) async fn from_now(probe: &Probe, seconds: i64) -> Result<String, Finding> {
    let health = probe.result("system.health", json!({})).await?;
    let now = moment(&health, "time")?;
    Ok(Timestamp(now.0 + seconds * 1_000_000).to_string())
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

/// Cancels a task.
pub(super) async fn cancel(probe: &Probe, id: &str) -> Result<Value, Finding> {
    probe.result("tasks.cancel", json!({"task_id": id})).await
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
    for field in ["name", "parent_id", "user_id", "priority", "dependencies"] {
        ensure!(
            before[field] == after[field],
            "a refused update changed `{field}`: {}",
            shown(&after)
        );
    }
    for field in ["inputs", "schemas", "params"] {
        ensure!(
            before[field] == after[field],
            "a refused update changed `{field}`: {}",
            shown(&after)
        );
    }
    Ok(error)
}
