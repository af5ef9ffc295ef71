//! spec: interface / tasks.execute, tasks.cancel

use crate::clauses::data_model::{
    cycles_are_refused, missing_parents_are_refused, one_root_is_demanded,
    parent_cycles_are_refused, required_waits_for_completion, urgent_tasks_start_first,
};
use crate::clauses::interface_rest::sse_is_supported;
use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.execute/1-answer",
            "the result has `root_task_id` and the status `started`",
            runs_are_answered,
        ),
        must(
            "interface/tasks.execute/2-tasks",
            "`tasks` is required, a list of tasks",
            tasks_are_a_list,
        ),
        must(
            "interface/tasks.execute/3-validates",
            "a faulty tree is refused before anything of it is executed",
            faulty_trees_are_not_executed,
        ),
        must(
            "interface/tasks.execute/4-dependencies",
            "tasks are executed in the order of their dependencies",
            required_waits_for_completion,
        ),
        must(
            "interface/tasks.execute/5-priorities",
            "of tasks that are ready, the urgent are executed first",
            urgent_tasks_start_first,
        ),
        should(
            "interface/tasks.execute/6-streaming",
            "an execution can be streamed",
            sse_is_supported,
        )
        .same_as(&["interface/streaming/5-sse"]),
    ]
}

pub(super) fn cancel() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.cancel/1-answer",
            "the result has `task_id` and the status `cancelled`",
            pending_tasks_are_cancelled,
        ),
        must(
            "interface/tasks.cancel/2-task-id",
            "`task_id` is required, the UUID of a task",
            unknown_tasks_are_errors,
        ),
        must(
            "interface/tasks.cancel/3-pending",
            "a pending task is cancelled",
            pending_tasks_are_cancelled,
        ),
        must(
            "interface/tasks.cancel/4-in-progress",
            "a task in progress is cancelled",
            running_tasks_are_cancelled,
        ),
        must(
            "interface/tasks.cancel/5-status",
            "the task is `cancelled` afterwards, and stays so",
            running_tasks_are_cancelled,
        ),
    ]
}

async fn runs_are_answered(probe: &Probe) -> Outcome {
    let inputs = json!({"text": "hello"});
    let tasks = [
        probe.task("root").with("inputs", inputs),
        probe.task("leaf").below("root"),
    ];
    let started = probe.run(&tasks).await?;
    expect_field(&started.result, "status", "started")?;
    for alias in ["root", "leaf"] {
        let task = probe.wait_for(started.id(alias)?, "completed").await?;
        expect_field(&task, "name", probe.name(alias))?;
    }
    let root = probe.get(&started.root).await?;
    expect_field(&root, "parent_id", Value::Null)?;
    seen(shown(&started.result))
}

async fn tasks_are_a_list(probe: &Probe) -> Outcome {
    let odd = [
        json!({}),
        json!("x"),
        json!(1),
        json!([]),
        json!([1]),
        json!([null]),
        json!([[]]),
    ];
    let calls = odd.map(|tasks| json!({"tasks": tasks}));
    let calls = calls.into_iter().chain([json!({})]);
    let errors = probe
        .refuses("tasks.execute", calls, &[INVALID_PARAMS])
        .await?;
    seen(format!("an empty list: {}", errors[3]))
}

async fn faulty_trees_are_not_executed(probe: &Probe) -> Outcome {
    one_root_is_demanded(probe).await?;
    missing_parents_are_refused(probe).await?;
    parent_cycles_are_refused(probe).await?;
    cycles_are_refused(probe).await?;
    let before = probe.own().await?;
    let faulty = probe.task("faulty").below("root").with("priority", 9);
    let tasks = [probe.task("root").element(), faulty.element()];
    let error = probe
        .refused("tasks.execute", json!({"tasks": tasks}), INVALID_PARAMS)
        .await?;
    probe
        .expect_unchanged(&before, "after a refused tree")
        .await?;
    seen(format!(
        "a sound root with a faulty child: {error}, and nothing is stored"
    ))
}

async fn pending_tasks_are_cancelled(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("pending")).await?;
    let result = probe.cancel(&id).await?;
    expect_field(&result, "task_id", id.as_str())?;
    expect_field(&result, "status", "cancelled")?;
    let task = probe.get(&id).await?;
    expect_field(&task, "status", "cancelled")?;
    expect_field(&task, "started_at", Value::Null)?;
    instant(&task, "completed_at")?;
    seen(shown(result))
}

async fn unknown_tasks_are_errors(probe: &Probe) -> Outcome {
    let params = json!({"task_id": UNKNOWN_ID});
    let error = probe.refused("tasks.cancel", params, NOT_FOUND).await?;
    probe
        .refused("tasks.cancel", json!({}), INVALID_PARAMS)
        .await?;
    seen(error.to_string())
}

/// It must stay so while another task of the same executor begins and ends.
async fn running_tasks_are_cancelled(probe: &Probe) -> Outcome {
    let started = probe.running("cancelled").await?;
    let result = probe.cancel(&started.root).await?;
    expect_field(&result, "task_id", started.root.as_str())?;
    expect_field(&result, "status", "cancelled")?;
    let task = probe.wait_for(&started.root, "cancelled").await?;
    instant(&task, "completed_at")?;
    let witness = probe.run(&[probe.slow("witness", 1)]).await?;
    if probe.options().slow_inputs.is_none() {
        probe.wait_for(&witness.root, "completed").await?;
    } else {
        probe.wait_for(&witness.root, "in_progress").await?;
        probe.cancel(&witness.root).await?;
    }
    expect_field(&probe.get(&started.root).await?, "status", "cancelled")?;
    seen("cancelled while it ran, and still after another one had run")
}
