//! spec: interface / tasks.get, tasks.tree, tasks.children

use crate::clauses::data_model::{
    nodes_have_tasks_and_children, task_ids_are_checked, trees_have_whole_tasks,
};
use crate::clauses::prelude::*;

pub(super) fn get() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.get/1-task-id",
            "`task_id` is required, a UUID",
            task_ids_are_checked,
        ),
        must(
            "interface/tasks.get/2-complete",
            "the result is the complete task",
            tasks_are_shown_whole,
        ),
        must(
            "interface/tasks.get/3-unknown",
            "a task that does not exist is an error",
            unknown_tasks_are_errors,
        ),
    ]
}

pub(super) fn tree() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.tree/1-task-id",
            "`task_id` is required, the UUID of a task",
            unknown_trees_are_errors,
        ),
        must(
            "interface/tasks.tree/2-structure",
            "the result is the whole tree, with complete tasks",
            trees_have_whole_tasks,
        ),
        must(
            "interface/tasks.tree/3-descendants",
            "all descendants are in it, on all levels",
            nodes_have_tasks_and_children,
        ),
    ]
}

pub(super) fn children() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.children/1-parent-id",
            "`parent_id` is required, the UUID of a task",
            unknown_parents_are_errors,
        ),
        must(
            "interface/tasks.children/2-direct",
            "the result has the direct children, and no grandchildren",
            only_direct_children_are_shown,
        ),
    ]
}

async fn tasks_are_shown_whole(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    for task in lives.all() {
        for field in MEMBERS {
            ensure!(task.get(field).is_some(), "no `{field}` in {}", shown(task));
        }
    }
    seen("all 17 members, in each status")
}

async fn unknown_tasks_are_errors(probe: &Probe) -> Outcome {
    let params = json!({"task_id": UNKNOWN_ID});
    let error = probe.refused("tasks.get", params, NOT_FOUND).await?;
    let id = probe.create(&probe.task("gone")).await?;
    probe.result("tasks.delete", json!({"task_id": id})).await?;
    probe
        .refused("tasks.get", json!({"task_id": id}), NOT_FOUND)
        .await?;
    seen(format!("never there, or deleted: {error}"))
}

async fn unknown_trees_are_errors(probe: &Probe) -> Outcome {
    let params = json!({"task_id": UNKNOWN_ID});
    let error = probe.refused("tasks.tree", params, NOT_FOUND).await?;
    probe
        .refused("tasks.tree", json!({}), INVALID_PARAMS)
        .await?;
    let id = probe.create(&probe.task("alone")).await?;
    let tree = probe.result("tasks.tree", json!({"task_id": id})).await?;
    expect_field(&tree["task"], "id", id)?;
    expect_field(&tree, "children", json!([]))?;
    seen(format!("a tree of one task; none: {error}"))
}

async fn unknown_parents_are_errors(probe: &Probe) -> Outcome {
    let params = json!({"parent_id": UNKNOWN_ID});
    let error = probe.refused("tasks.children", params, NOT_FOUND).await?;
    probe
        .refused("tasks.children", json!({}), INVALID_PARAMS)
        .await?;
    let id = probe.create(&probe.task("alone")).await?;
    let result = probe
        .result("tasks.children", json!({"parent_id": id}))
        .await?;
    expect_field(&result, "children", json!([]))?;
    seen(format!("none of a task without children; {error}"))
}

async fn only_direct_children_are_shown(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let mut expected = Vec::new();
    for alias in ["one", "two", "three"] {
        let child = probe.create(&probe.task(alias).below(&root)).await?;
        probe
            .create(&probe.task("grandchild").below(&child))
            .await?;
        expected.push(child);
    }
    let result = probe
        .result("tasks.children", json!({"parent_id": root}))
        .await?;
    let children = result["children"].as_array().map_or(&[][..], Vec::as_slice);
    let mut found = Vec::new();
    for child in children {
        expect_task(child)?;
        expect_field(child, "parent_id", root.as_str())?;
        found.push(text_of(child, "id")?);
    }
    found.sort();
    expected.sort();
    ensure!(
        found == expected,
        "children {found:?}, expected {expected:?}"
    );
    seen("three children, none of their three children")
}
