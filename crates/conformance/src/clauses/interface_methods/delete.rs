//! spec: interface / tasks.delete

use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.delete/1-answer",
            "the result says `success`, and the task is gone",
            deleted_tasks_are_gone,
        ),
        must(
            "interface/tasks.delete/2-task-id",
            "`task_id` is required, the UUID of a task",
            unknown_tasks_are_errors,
        ),
        must(
            "interface/tasks.delete/3-pending-only",
            "only pending tasks are deleted",
            others_than_pending_stay,
        ),
        must(
            "interface/tasks.delete/4-children-and-dependents",
            "a task with children, or with tasks that depend on it, is not deleted",
            tasks_with_others_stay,
        ),
        should(
            "interface/tasks.delete/5-cascade",
            "children are deleted too where the caller asks for it",
            children_go_when_asked,
        ),
    ]
}

fn of(id: &str) -> Value {
    json!({"task_id": id})
}

async fn deleted_tasks_are_gone(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let leaf = probe.create(&probe.task("leaf").below(&root)).await?;
    let result = probe.result("tasks.delete", of(&leaf)).await?;
    expect_field(&result, "success", true)?;
    for method in ["tasks.get", "tasks.tree", "tasks.delete", "tasks.cancel"] {
        probe.refused(method, of(&leaf), NOT_FOUND).await?;
    }
    ensure!(
        probe.tree(&root).await?.len() == 1,
        "{leaf} is still in the tree"
    );
    ensure!(probe.own().await?.len() == 1, "{leaf} is still in the list");
    seen("gone from get, tree and list")
}

async fn unknown_tasks_are_errors(probe: &Probe) -> Outcome {
    let error = probe
        .refused("tasks.delete", of(UNKNOWN_ID), NOT_FOUND)
        .await?;
    probe
        .refused("tasks.delete", json!({}), INVALID_PARAMS)
        .await?;
    seen(error.to_string())
}

async fn others_than_pending_stay(probe: &Probe) -> Outcome {
    let started = probe.running("running").await?;
    let running = [of(&started.root)];
    let errors = probe.refuses("tasks.delete", running, ANY).await?;
    probe.cancel(&started.root).await?;
    let cancelled = probe.wait_for(&started.root, "cancelled").await?;
    let mut ended = vec![text_of(&cancelled, "id")?];
    for (task, status) in [
        (probe.task("completed"), "completed"),
        (probe.failing("failed"), "failed"),
    ] {
        let started = probe.run(&[task]).await?;
        probe.wait_for(&started.root, status).await?;
        ended.push(started.root);
    }
    let calls = ended.iter().map(|id| of(id));
    probe.refuses("tasks.delete", calls, ANY).await?;
    seen(format!(
        "running, completed, failed and cancelled tasks stay: {}",
        errors[0]
    ))
}

async fn tasks_with_others_stay(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let first = probe.create(&probe.task("first").below(&root)).await?;
    let second = probe.task("second").below(&root).after_end_of(&first);
    let second = probe.create(&second).await?;
    let errors = probe
        .refuses("tasks.delete", [of(&root), of(&first)], ANY)
        .await?;
    // Free again once what hangs on them is gone.
    for id in [&second, &first, &root] {
        probe.result("tasks.delete", of(id)).await?;
    }
    ensure!(probe.own().await?.is_empty(), "tasks are left");
    seen(format!(
        "a parent: {}; a dependency: {}",
        errors[0], errors[1]
    ))
}

async fn children_go_when_asked(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let child = probe.create(&probe.task("child").below(&root)).await?;
    let leaf = probe.create(&probe.task("leaf").below(&child)).await?;
    let other = probe.create(&probe.task("other").below(&root)).await?;
    let asked = json!({"task_id": child, "cascade": true});
    let reply = probe.call("tasks.delete", asked).await?;
    if let Err(error) = &reply.outcome {
        let text =
            "the document leaves the form of the request to each server; `cascade: true` is not it";
        return Err(Finding::skipped(format!("{text}: {error}")));
    }
    for id in [&child, &leaf] {
        probe.refused("tasks.get", of(id), NOT_FOUND).await?;
    }
    probe.get(&root).await?;
    probe.get(&other).await?;
    seen("`cascade: true` takes what is below, and nothing else")
}
