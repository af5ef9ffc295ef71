//! What this project decided. Section: Methods, `tasks.cancel`, `tasks.copy` and `tasks.retry`

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/methods.cancel/1-group",
            "cancelling a group cancels what is pending and in progress below it, and nothing that has ended",
            cancelled_groups_take_their_descendants,
        ),
        decided(
            "semantics/methods.cancel/2-task",
            "cancelling a task with a method cancels it alone, with `cascade: true` what is below it too",
            cancelled_tasks_go_alone,
        ),
        decided(
            "semantics/methods.cancel/3-dependents",
            "dependents of a cancelled task follow the rule of dependencies",
            dependents_of_cancelled_tasks_follow_the_rule,
        ),
        decided(
            "semantics/methods.copy/1-new-flow",
            "a copy is a new flow with new ids: one task, with status, outcome and times reset",
            copies_begin_anew,
        ),
        decided(
            "semantics/methods.copy/2-parent",
            "with `parent_id` the copy is a subtree of that flow; an unknown parent is -32010",
            copies_join_a_flow,
        ),
        decided(
            "semantics/methods.copy/3-children",
            "`copy_children: true` copies what a run would cover, shared dependencies once, with ids remapped",
            copies_take_what_a_run_covers,
        ),
        decided(
            "semantics/methods.copy/4-orphans",
            "a copy whose parent is not copied hangs under the copied root",
            orphans_hang_under_the_root,
        ),
        decided(
            "semantics/methods.copy/5-dependencies",
            "dependencies on what is not copied are kept inside the flow, else dropped and listed",
            foreign_dependencies_are_dropped,
        ),
        decided(
            "semantics/methods.retry/1-what-runs",
            "a retry runs a failed task, the pending tasks behind it and the failed groups around them",
            retries_run_what_was_held_up,
        ),
        decided(
            "semantics/methods.retry/2-failed-only",
            "a retry of a task that has not failed is -32006",
            only_failed_tasks_are_retried,
        ),
    ]
}

async fn cancelled_groups_take_their_descendants(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("done").below("root"),
        probe.failing("bad").below("root"),
        probe.group("inner").below("root"),
        probe.slow("slow", FOREVER_MS).below("inner"),
        probe.task("waiting").below("slow").after("slow"),
    ];
    let started = probe.run(&tasks).await?;
    probe.wait_for(started.id("done")?, "completed").await?;
    probe.wait_for(started.id("bad")?, "failed").await?;
    probe.wait_for(started.id("slow")?, "in_progress").await?;
    probe.cancel(&started.root).await?;
    for (alias, status) in [
        ("root", "cancelled"),
        ("done", "completed"),
        ("bad", "failed"),
        ("inner", "cancelled"),
        ("slow", "cancelled"),
        ("waiting", "cancelled"),
    ] {
        expect_status(probe, started.id(alias)?, status).await?;
    }
    let root = end_of_run(probe, &started.root).await?;
    expect(&root["run"], &[("state", json!("cancelled"))])?;
    seen("four of six are cancelled, what had ended is kept")
}

async fn cancelled_tasks_go_alone(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.slow("task", FOREVER_MS).below("root"),
        probe.slow("child", FOREVER_MS).below("task"),
        probe.task("grandchild").below("child").after("child"),
        probe.slow("beside", FOREVER_MS).below("root"),
    ];
    let started = probe.run(&tasks).await?;
    let task = started.id("task")?;
    probe.wait_for(task, "in_progress").await?;
    probe.cancel(task).await?;
    expect_status(probe, started.id("child")?, "in_progress").await?;
    let child = json!({"task_id": started.id("child")?, "cascade": true});
    probe.result("tasks.cancel", child).await?;
    expect_status(probe, started.id("child")?, "cancelled").await?;
    expect_status(probe, started.id("grandchild")?, "cancelled").await?;
    expect_status(probe, started.id("beside")?, "in_progress").await?;
    probe.cancel(&started.root).await?;
    seen("alone without, with its subtree with `cascade`")
}

async fn dependents_of_cancelled_tasks_follow_the_rule(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.slow("off", FOREVER_MS).below("root"),
        probe.task("required").below("root").after("off"),
        probe.task("optional").below("root").after_end_of("off"),
    ];
    let started = probe.run(&tasks).await?;
    probe.cancel(started.id("off")?).await?;
    end_of_run(probe, &started.root).await?;
    let required = expect_status(probe, started.id("required")?, "pending").await?;
    let blocker = json!([{"id": started.id("off")?, "status": "cancelled"}]);
    expect(&required, &[("blocked_by", blocker)])?;
    expect_status(probe, started.id("optional")?, "completed").await?;
    seen("the required one is blocked, the optional one ran")
}

/// Copies a task; gives the result.
async fn copy(probe: &Probe, params: Value) -> Result<Value, Finding> {
    let result = probe.result("tasks.copy", params).await?;
    expect(&result, &[("status", json!("pending"))])?;
    text_of(&result, "copied_task_id")?;
    Ok(result)
}

async fn copies_begin_anew(probe: &Probe) -> Outcome {
    let timeout = json!({"timeout_seconds": 60, "retry_count": 1});
    let tasks = [
        probe
            .task("root")
            .with("priority", 1)
            .with("params", timeout)
            .with("inputs", json!({"x": 1})),
        probe.failing("child").below("root"),
    ];
    let (started, original) = run_to_end(probe, &tasks).await?;
    for id in [started.root.as_str(), started.id("child")?] {
        let original = probe.get(id).await?;
        let result = copy(probe, json!({"task_id": id})).await?;
        expect(&result, &[("original_task_id", json!(id))])?;
        let copied = text_of(&result, "copied_task_id")?;
        let task = probe.get(&copied).await?;
        expect(
            &task,
            &[
                ("parent_id", Value::Null),
                ("root_task_id", json!(copied)),
                ("status", json!("pending")),
                ("progress", json!(0.0)),
                ("attempt", json!(0)),
            ],
        )?;
        for field in ["result", "error", "started_at", "completed_at"] {
            expect(&task, &[(field, Value::Null)])?;
        }
        for field in ["name", "user_id", "priority", "inputs", "schemas", "params"] {
            expect(&task, &[(field, original[field].clone())])?;
        }
        ensure!(
            instant(&task, "created_at")? > instant(&original, "created_at")?,
            "the copy is as old as its original: {}",
            shown(&task)
        );
        let tree = probe.tree(&copied).await?;
        ensure!(
            tree.len() == 1,
            "{} tasks were copied: expected 1",
            tree.len()
        );
    }
    let after = probe.get(&started.root).await?;
    ensure!(
        after == original,
        "the original changed to {}",
        shown(&after)
    );
    seen("a completed and a failed task")
}

async fn copies_join_a_flow(probe: &Probe) -> Outcome {
    let ids = create_all(
        probe,
        &[probe.group("root"), probe.task("task").below("root")],
    )
    .await?;
    let other = probe.create(&probe.group("other")).await?;
    for parent in [&text_of(&ids, "root")?, &other] {
        let result = copy(probe, json!({"task_id": ids["task"], "parent_id": parent})).await?;
        let task = probe.get(&text_of(&result, "copied_task_id")?).await?;
        expect(
            &task,
            &[
                ("parent_id", json!(parent)),
                ("root_task_id", json!(parent)),
            ],
        )?;
    }
    let lost = json!({"task_id": ids["task"], "parent_id": UNKNOWN_ID});
    let error = probe.refused("tasks.copy", lost, PARENT).await?;
    fault_in(&error, "parent_id")?;
    seen("below a parent of the same and of another flow")
}

async fn copies_take_what_a_run_covers(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("shared").below("root"),
        probe.group("asked").below("root"),
        probe.task("a").below("asked").after("shared"),
        probe
            .task("b")
            .below("asked")
            .after_end_of("shared")
            .after("a"),
        probe.task("beside").below("root"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let result = copy(
        probe,
        json!({"task_id": ids["asked"], "copy_children": true}),
    )
    .await?;
    let new = |alias: &str| result["task_ids"][ids[alias].as_str().unwrap_or_default()].clone();
    let root = text_of(&result, "copied_task_id")?;
    ensure!(
        new("asked") == root.as_str(),
        "`task_ids` is {}",
        result["task_ids"]
    );
    let tree = probe.tree(&root).await?;
    ensure!(
        tree.len() == 4,
        "{} tasks were copied: expected 4",
        tree.len()
    );
    let b = probe.get(new("b").as_str().unwrap_or_default()).await?;
    let both =
        json!([{"id": new("shared"), "required": false}, {"id": new("a"), "required": true}]);
    expect(&b, &[("parent_id", json!(root)), ("dependencies", both)])?;
    expect(&result, &[("dropped_dependencies", json!([]))])?;
    execute(probe, &root).await?;
    let copied = probe.wait_for(&root, "completed").await?;
    expect(&copied["result"], &[("completed", json!(3))])?;
    expect_status(probe, &text_of(&ids, "a")?, "pending").await?;
    seen(shown(&result["task_ids"]))
}

async fn orphans_hang_under_the_root(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.group("elsewhere").below("root"),
        probe.task("needed").below("elsewhere"),
        probe.task("asked").below("root").after("needed"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let result = copy(
        probe,
        json!({"task_id": ids["asked"], "copy_children": true}),
    )
    .await?;
    let needed = &result["task_ids"][text_of(&ids, "needed")?];
    let task = probe.get(needed.as_str().unwrap_or_default()).await?;
    expect(
        &task,
        &[
            ("name", json!(probe.name("needed"))),
            ("parent_id", result["copied_task_id"].clone()),
        ],
    )?;
    seen(format!("{needed} is below {}", result["copied_task_id"]))
}

async fn foreign_dependencies_are_dropped(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("first").below("root"),
        probe.task("second").below("root").after_end_of("first"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let kept = copy(
        probe,
        json!({"task_id": ids["second"], "parent_id": ids["root"]}),
    )
    .await?;
    let task = probe.get(&text_of(&kept, "copied_task_id")?).await?;
    let dependency = json!([{"id": ids["first"], "required": false}]);
    expect(&task, &[("dependencies", dependency)])?;
    expect(&kept, &[("dropped_dependencies", json!([]))])?;
    let dropped = copy(probe, json!({"task_id": ids["second"]})).await?;
    let task = probe.get(&text_of(&dropped, "copied_task_id")?).await?;
    expect(&task, &[("dependencies", json!([]))])?;
    let listed =
        json!([{"task_id": dropped["copied_task_id"], "id": ids["first"], "required": false}]);
    expect(&dropped, &[("dropped_dependencies", listed)])?;
    seen(shown(&dropped["dropped_dependencies"]))
}

async fn retries_run_what_was_held_up(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.group("inner").below("root"),
        probe.failing("bad").below("inner"),
        probe.task("behind").below("inner").after("bad"),
        probe.task("further").below("root").after("behind"),
        probe.failing("other").below("root"),
        probe.task("off").below("root").after("bad"),
    ];
    let (started, _) = run_to_end(probe, &tasks).await?;
    let bad = started.id("bad")?;
    probe.cancel(started.id("off")?).await?;
    let schemas = probe.task("x").value()["schemas"].clone();
    update(probe, bad, json!({"schemas": schemas, "params": null})).await?;
    let result = probe.result("tasks.retry", json!({"task_id": bad})).await?;
    expect(
        &result,
        &[
            ("root_task_id", json!(started.root)),
            ("status", json!("started")),
        ],
    )?;
    end_of_run(probe, bad).await?;
    for (alias, status, attempt) in [
        ("bad", "completed", 2),
        ("behind", "completed", 1),
        ("further", "completed", 1),
        ("inner", "completed", 2),
        // Its other child has failed still.
        ("root", "failed", 2),
        ("other", "failed", 1),
        ("off", "cancelled", 0),
    ] {
        let task = expect_status(probe, started.id(alias)?, status).await?;
        expect(&task, &[("attempt", json!(attempt))])?;
    }
    let root = probe.get(&started.root).await?;
    expect(&root["run"], &[("id", result["run_id"].clone())])?;
    let inner = probe.get(started.id("inner")?).await?;
    expect(&inner["result"], &[("completed", json!(2))])?;
    let error = text_of(&root, "error")?;
    // Of five tasks in two groups, one failed before the retry and one was cancelled after it.
    ensure!(
        error.contains("3 of 5") && error.contains("1 failed"),
        "`{error}`: expected the counts of all tasks"
    );
    seen("the task, two behind it and two groups around them ran again")
}

async fn only_failed_tasks_are_retried(probe: &Probe) -> Outcome {
    let pending = probe.create(&probe.task("pending")).await?;
    let group = probe.create(&probe.group("group")).await?;
    let completed = probe.run(&[probe.task("completed")]).await?.root;
    probe.wait_for(&completed, "completed").await?;
    for id in [&pending, &group, &completed] {
        probe
            .refused("tasks.retry", json!({"task_id": id}), TRANSITION)
            .await?;
    }
    seen("a pending task, a pending group and a completed task are refused")
}
