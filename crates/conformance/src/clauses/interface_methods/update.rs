//! spec: interface / tasks.update

use crate::clauses::data_model::{
    broken_tasks_are_refused, cycles_are_refused, missing_dependencies_are_refused,
    parent_cycles_are_refused, priorities_are_integers, self_dependencies_are_refused,
};
use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.update/1-answer",
            "the result has `id` and `status`, and the task has changed",
            changes_are_stored,
        ),
        must(
            "interface/tasks.update/2-task-id",
            "`task_id` is required, the UUID of a task",
            unknown_tasks_are_errors,
        ),
        must(
            "interface/tasks.update/3-updates",
            "`updates` is required, an object",
            updates_are_objects,
        ),
        must(
            "interface/tasks.update/4-validates",
            "updates that make the task faulty are refused, and change nothing",
            faulty_updates_change_nothing,
        ),
        must_not(
            "interface/tasks.update/5-critical-fields",
            "`id`, `parent_id` and `user_id` are not changed while the task is executing",
            critical_fields_stay_while_executing,
        ),
        should(
            "interface/tasks.update/6-dependencies",
            "updates of `dependencies` are checked: no cycles",
            dependencies_are_checked,
        ),
    ]
}

async fn changes_are_stored(probe: &Probe) -> Outcome {
    let id = probe
        .create(&probe.task("old").with("params", json!({"retry_count": 1})))
        .await?;
    let before = probe.get(&id).await?;
    let updates = json!({"name": probe.name("new"), "priority": 0, "inputs": {"a": 1}});
    let params = json!({"task_id": id, "updates": updates});
    let result = probe.result("tasks.update", params).await?;
    expect_field(&result, "id", id.as_str())?;
    expect_field(&result, "status", "pending")?;
    let after = probe.get(&id).await?;
    for (field, value) in updates.as_object().into_iter().flatten() {
        expect_field(&after, field, value.clone())?;
    }
    for field in [
        "id",
        "parent_id",
        "user_id",
        "status",
        "schemas",
        "params",
        "dependencies",
        "created_at",
    ] {
        expect_field(&after, field, before[field].clone())?;
    }
    priorities_are_integers(probe).await?;
    seen(format!(
        "{result}: what was named has changed, and nothing else"
    ))
}

async fn unknown_tasks_are_errors(probe: &Probe) -> Outcome {
    let params = json!({"task_id": UNKNOWN_ID, "updates": {"name": "x"}});
    let error = probe.refused("tasks.update", params, NOT_FOUND).await?;
    let without = json!({"updates": {"name": "x"}});
    probe
        .refused("tasks.update", without, INVALID_PARAMS)
        .await?;
    seen(error.to_string())
}

async fn updates_are_objects(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("kept")).await?;
    let odd = [json!([]), json!("name"), json!(1), Value::Null, json!(true)];
    probe.refuses_updates(&id, odd, &[INVALID_PARAMS]).await?;
    let without = [json!({"task_id": id})];
    let errors = probe
        .refuses("tasks.update", without, &[INVALID_PARAMS])
        .await?;
    seen(errors[0].to_string())
}

/// One sound change beside a faulty one is not made either.
async fn faulty_updates_change_nothing(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("kept")).await?;
    let half = json!({"name": probe.name("changed"), "priority": 9});
    probe
        .refuses_updates(&id, [half], &[INVALID_PARAMS])
        .await?;
    broken_tasks_are_refused(probe).await
}

async fn critical_fields_stay_while_executing(probe: &Probe) -> Outcome {
    let started = probe
        .run(&[
            probe.task("root"),
            probe.slow("running", FOREVER_MS).below("root"),
            probe.task("other").below("root"),
        ])
        .await?;
    let id = started.id("running")?;
    probe.wait_for(started.id("other")?, "completed").await?;
    probe.wait_for(id, "in_progress").await?;
    let critical = [
        json!({"id": UNKNOWN_ID}),
        json!({"user_id": "someone else"}),
        json!({"user_id": null}),
        json!({"parent_id": started.id("other")?}),
        json!({"parent_id": null}),
        json!({"name": probe.name("renamed"), "user_id": "someone else"}),
    ];
    let errors = probe.refuses_updates(id, critical, ANY).await;
    probe.cancel(id).await?;
    seen(format!("six attempts refused, such as {}", errors?[1]))
}

async fn dependencies_are_checked(probe: &Probe) -> Outcome {
    cycles_are_refused(probe).await?;
    self_dependencies_are_refused(probe).await?;
    missing_dependencies_are_refused(probe).await?;
    parent_cycles_are_refused(probe).await?;
    seen("cycles, the task itself and tasks that do not exist are refused")
}
