//! Transitions, ids and times. spec: validation / State Transition Validation, UUID Validation,
//! Timestamp Validation

use crate::clauses::data_model::{
    task_ids_are_checked, times_are_checked, times_are_in_utc, uuids_are_checked,
};
use crate::clauses::prelude::*;

/// The method does not exist, or takes no such parameters.
const NOT_OFFERED: [i64; 2] = [-32601, INVALID_PARAMS];

pub(super) fn clauses() -> Vec<Clause> {
    let mut clauses = vec![
        must(
            "validation/states/1-machine",
            "a task changes its status only along the state machine",
            only_the_machine_changes_status,
        ),
        must(
            "validation/states/2-pending-starts",
            "pending -> in_progress",
            pending_becomes_in_progress,
        ),
        must(
            "validation/states/3-pending-cancelled",
            "pending -> cancelled",
            pending_can_be_cancelled,
        ),
        must(
            "validation/states/4-in-progress-ends",
            "in_progress -> completed, failed or cancelled",
            in_progress_ends_in_three_ways,
        ),
        must(
            "validation/states/5-failed-again",
            "failed -> pending, when it is executed again, and to nothing else",
            failed_runs_again,
        ),
        must(
            "validation/states/6-completed-is-terminal",
            "completed -> nothing",
            completed_stays,
        ),
        must(
            "validation/states/7-cancelled-is-terminal",
            "cancelled -> nothing",
            cancelled_stays,
        ),
        must(
            "validation/states/8-validated",
            "transitions are checked",
            only_the_machine_changes_status,
        ),
        must(
            "validation/states/9-rejected",
            "other transitions are refused, and change nothing",
            only_the_machine_changes_status,
        ),
    ];
    clauses.extend(formats());
    clauses
}

fn formats() -> Vec<Clause> {
    vec![
        must(
            "validation/uuid/1-v4",
            "ids are UUIDs of version 4, upper or lower case",
            upper_case_ids_are_ids,
        ),
        must(
            "validation/uuid/2-validated",
            "the form of `id`, `parent_id` and ids of dependencies is checked",
            uuids_are_checked,
        )
        .same_as(&["data-model/rules/4-uuids"]),
        must(
            "validation/timestamp/1-iso-8601",
            "times are ISO 8601",
            times_are_checked,
        ),
        must(
            "validation/timestamp/2-validated",
            "the form of times is checked",
            times_are_checked,
        )
        .same_as(&["data-model/times/2-iso-8601"]),
        should(
            "validation/timestamp/3-utc",
            "times are in UTC",
            times_are_in_utc,
        )
        .same_as(&["data-model/relations/11-utc"]),
    ]
}

/// None of these statuses can be written by a caller into this task, nor can it be cancelled.
async fn expect_closed(probe: &Probe, task: &Value, next: &[&str]) -> Result<(), Finding> {
    let id = text_of(task, "id")?;
    let updates = next.iter().map(|status| json!({"status": status}));
    probe.refuses_updates(&id, updates, ANY).await?;
    let cancel = [json!({"task_id": id})];
    probe.refuses("tasks.cancel", cancel, ANY).await?;
    expect_field(&probe.get(&id).await?, "status", task["status"].clone())
}

/// An ended task: by its run, or by a call.
async fn ended(probe: &Probe, status: &str) -> Result<Value, Finding> {
    let task = match status {
        "failed" => probe.failing("ended"),
        _ => probe.task("ended"),
    };
    if status == "cancelled" {
        let id = probe.create(&task).await?;
        probe.cancel(&id).await?;
        return probe.wait_for(&id, status).await;
    }
    let started = probe.run(&[task]).await?;
    probe.wait_for(&started.root, status).await
}

async fn completed_stays(probe: &Probe) -> Outcome {
    let task = ended(probe, "completed").await?;
    expect_closed(
        probe,
        &task,
        &["pending", "in_progress", "failed", "cancelled"],
    )
    .await?;
    seen("a completed task cannot be cancelled, reopened or failed")
}

async fn cancelled_stays(probe: &Probe) -> Outcome {
    let task = ended(probe, "cancelled").await?;
    expect_closed(
        probe,
        &task,
        &["pending", "in_progress", "completed", "failed"],
    )
    .await?;
    seen("a cancelled task cannot be cancelled again, reopened or completed")
}

async fn only_the_machine_changes_status(probe: &Probe) -> Outcome {
    completed_stays(probe).await?;
    cancelled_stays(probe).await?;
    let failed = ended(probe, "failed").await?;
    expect_closed(probe, &failed, &["in_progress", "completed", "cancelled"]).await?;
    let pending = probe.create(&probe.task("pending")).await?;
    let next = ["completed", "failed"].map(|status| json!({"status": status}));
    probe.refuses_updates(&pending, next, ANY).await?;
    let running = probe.running("running").await?;
    let back = [json!({"status": "pending"})];
    let reply = probe
        .call(
            "tasks.update",
            json!({"task_id": running.root, "updates": back[0]}),
        )
        .await?;
    let answered = reply.outcome.is_ok();
    let task = probe.get(&running.root).await?;
    probe.cancel(&running.root).await?;
    ensure!(
        task["status"] == "in_progress",
        "in_progress -> pending: answered with a result: {answered}, and the task is {}",
        task["status"]
    );
    seen("transitions outside the machine are refused, from each status")
}

async fn pending_becomes_in_progress(probe: &Probe) -> Outcome {
    let id = probe.store(&probe.task("stored")).await?;
    expect_field(&id, "status", "pending")?;
    let started = probe.running("running").await?;
    let task = probe.get(&started.root).await?;
    probe.cancel(&started.root).await?;
    expect_field(&task, "status", "in_progress")?;
    seen(format!("started at {}", task["started_at"]))
}

async fn pending_can_be_cancelled(probe: &Probe) -> Outcome {
    let task = ended(probe, "cancelled").await?;
    expect_field(&task, "started_at", Value::Null)?;
    seen(format!(
        "cancelled before it started: {}",
        shown(&task["error"])
    ))
}

async fn in_progress_ends_in_three_ways(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    for task in [&lives.completed, &lives.failed, &lives.cancelled] {
        ensure!(
            task["started_at"].is_string(),
            "never started: {}",
            shown(task)
        );
    }
    seen("completed, failed and cancelled, each after its start")
}

async fn failed_runs_again(probe: &Probe) -> Outcome {
    let failed = ended(probe, "failed").await?;
    expect_closed(probe, &failed, &["in_progress", "completed", "cancelled"]).await?;
    let id = text_of(&failed, "id")?;
    // Where a failed task may be changed, it lasts the second time, so that it is seen to run.
    let slow = probe.slow("again", FOREVER_MS).value();
    let updates = json!({"schemas": slow["schemas"], "inputs": slow["inputs"], "params": null});
    let update = json!({"task_id": id, "updates": updates});
    let lasts = probe.call("tasks.update", update).await?.outcome.is_ok();
    for method in ["tasks.execute", "tasks.retry"] {
        let reply = probe.call(method, json!({"task_id": id})).await?;
        match &reply.outcome {
            Ok(_) => {
                if lasts {
                    probe
                        .eventually("the task is executed again", async || {
                            let task = probe.get(&id).await?;
                            Ok((task["status"] == "in_progress").then_some(()))
                        })
                        .await?;
                    probe.cancel(&id).await?;
                } else {
                    probe
                        .eventually("the task is executed again", async || {
                            let task = probe.get(&id).await?;
                            let again = task["status"] != "failed"
                                || task["started_at"] != failed["started_at"];
                            Ok(again.then_some(()))
                        })
                        .await?;
                }
                return seen(format!("`{method}` of a failed task executes it again"));
            }
            Err(error) if NOT_OFFERED.contains(&error.code) => {}
            Err(error) => return Err(Finding::failed(format!("{method}: {error}"))),
        }
    }
    let text = "failed tasks stay failed; no call of the documents executes a stored task again";
    Err(Finding::skipped(text))
}

/// Other versions are refused; the letters may be of either case.
async fn upper_case_ids_are_ids(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("cased")).await?;
    let upper = json!({"task_id": id.to_uppercase()});
    let reply = probe.call("tasks.get", upper).await?;
    if let Err(error) = &reply.outcome {
        // Sound as a UUID; whether it names the task is left open.
        ensure!(
            error.code == NOT_FOUND,
            "{error}: upper case is a sound form"
        );
    }
    task_ids_are_checked(probe).await?;
    seen("upper case is sound; other versions, braces and bare digits are -32602")
}
