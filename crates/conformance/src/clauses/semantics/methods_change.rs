//! What this project decided. Section: Methods, `tasks.update` and `tasks.delete`

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/methods.update/1-specification",
            "`inputs`, `schemas`, `params` and `dependencies` change while the task is pending or failed",
            specifications_change_before_execution,
        ),
        decided(
            "semantics/methods.update/2-place",
            "`user_id` and `parent_id` change while the task is pending, within the flow",
            places_change_while_pending,
        ),
        decided(
            "semantics/methods.update/3-always",
            "name and priority change in every status, while it is executing too",
            names_change_always,
        ),
        decided(
            "semantics/methods.update/4-executing",
            "a task in progress refuses every other change with -32008, an ended one with -32006",
            other_changes_are_refused,
        ),
        decided(
            "semantics/methods.update/5-id",
            "`id` never changes: it is -32602",
            ids_never_change,
        ),
        decided(
            "semantics/methods.update/6-covered",
            "a pending task that a run covers keeps its parent, and stays a group or a task with a method (-32008)",
            covered_tasks_keep_their_kind,
        ),
        decided(
            "semantics/methods.update/7-covered-dependencies",
            "it may get new dependencies only on covered or completed tasks (else -32008)",
            covered_tasks_depend_within_the_run,
        ),
        decided(
            "semantics/methods.update/8-as-a-whole",
            "the merged task is checked as a whole, and a refused update changes nothing",
            the_merged_task_is_checked,
        ),
        decided(
            "semantics/methods.update/9-used",
            "what was changed is what runs",
            changes_are_executed,
        ),
        decided(
            "semantics/methods.delete/1-pending-only",
            "only a pending task is deleted, else -32009",
            only_pending_tasks_are_deleted,
        ),
        decided(
            "semantics/methods.delete/2-hangs-on",
            "a task with children or dependents is -32009, and `data` lists them",
            what_others_hang_on_is_kept,
        ),
        decided(
            "semantics/methods.delete/3-cascade",
            "`cascade: true` removes the subtree if all of it is pending and nothing outside depends on it",
            subtrees_are_deleted_whole,
        ),
        decided(
            "semantics/methods.delete/4-gone",
            "a deleted task is gone from all reads",
            deleted_tasks_are_gone,
        ),
    ]
}

async fn specifications_change_before_execution(probe: &Probe) -> Outcome {
    let pending = probe.create(&probe.task("pending")).await?;
    let child = probe.create(&probe.task("child").below(&pending)).await?;
    let (failed, _) = run_to_end(
        probe,
        &[probe.failing("failed"), probe.task("below").below("failed")],
    )
    .await?;
    let below = failed.id("below")?.to_owned();
    for (id, on) in [(&pending, &child), (&failed.root, &below)] {
        let schemas = probe.task("x").value()["schemas"].clone();
        let changed = json!({
            "inputs": {"new": [1]}, "schemas": schemas, "params": {"retry_count": 2},
            "dependencies": [{"id": on, "required": false}],
        });
        update(probe, id, changed.clone()).await?;
        let task = probe.get(id).await?;
        for (field, value) in changed.as_object().into_iter().flatten() {
            expect(&task, &[(field, value.clone())])?;
        }
        update(
            probe,
            id,
            json!({"schemas": null, "params": null, "dependencies": []}),
        )
        .await?;
        let task = probe.get(id).await?;
        expect(
            &task,
            &[
                ("schemas", Value::Null),
                ("params", Value::Null),
                ("dependencies", json!([])),
                ("inputs", json!({"new": [1]})),
            ],
        )?;
    }
    seen("all four, of a pending and of a failed task")
}

async fn places_change_while_pending(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("a").below("root"),
        probe.task("b").below("root"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let (a, b) = (text_of(&ids, "a")?, text_of(&ids, "b")?);
    let user = format!("{}-other", probe.user());
    update(probe, &b, json!({"parent_id": a, "user_id": user})).await?;
    let moved = probe.get(&b).await?;
    expect(&moved, &[("parent_id", json!(a)), ("user_id", json!(user))])?;
    let tree = probe.result("tasks.tree", json!({"task_id": a})).await?;
    ensure!(
        tree["children"][0]["task"]["id"] == b.as_str(),
        "the tree is {}",
        shown(&tree)
    );
    let other = probe.create(&probe.group("other")).await?;
    for parent in [other.as_str(), UNKNOWN_ID] {
        let error = update_refused(probe, &b, json!({"parent_id": parent}), PARENT).await?;
        fault_in(&error, "parent_id")?;
    }
    seen("moved within the flow, refused to leave it")
}

/// Tasks below one root.
struct Family {
    /// A running and three ended tasks, and their statuses.
    tasks: [(String, &'static str); 4],
    /// A pending group, below which they could be moved if their statuses allowed it.
    place: String,
}

/// Each was executed by itself, so that no run covers those that have ended.
async fn family(probe: &Probe) -> Result<Family, Finding> {
    let tasks = [
        probe.group("root"),
        probe.group("place").below("root"),
        probe.slow("running", FOREVER_MS).below("root"),
        probe.task("completed").below("root"),
        probe.failing("failed").below("root"),
        probe.task("cancelled").below("root"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let id = |alias| text_of(&ids, alias);
    for (alias, status) in [
        ("running", "in_progress"),
        ("completed", "completed"),
        ("failed", "failed"),
    ] {
        execute(probe, &id(alias)?).await?;
        probe.wait_for(&id(alias)?, status).await?;
    }
    probe.cancel(&id("cancelled")?).await?;
    Ok(Family {
        tasks: [
            (id("running")?, "in_progress"),
            (id("completed")?, "completed"),
            (id("cancelled")?, "cancelled"),
            (id("failed")?, "failed"),
        ],
        place: id("place")?,
    })
}

async fn names_change_always(probe: &Probe) -> Outcome {
    let tasks = family(probe).await?.tasks;
    for (id, status) in &tasks {
        let name = probe.name(&format!("{status} renamed"));
        let result = update(probe, id, json!({"name": name, "priority": 0})).await?;
        expect(&result, &[("id", json!(id)), ("status", json!(status))])?;
        let task = probe.get(id).await?;
        expect(
            &task,
            &[
                ("name", json!(name)),
                ("priority", json!(0)),
                ("status", json!(status)),
            ],
        )?;
    }
    probe.cancel(&tasks[0].0).await?;
    seen("in progress, completed, cancelled and failed")
}

async fn other_changes_are_refused(probe: &Probe) -> Outcome {
    let Family { tasks, place } = family(probe).await?;
    let user = format!("{}-other", probe.user());
    let specification = [
        json!({"inputs": {"duration_ms": 1}}),
        json!({"schemas": {"method": probe.options().executor}, "inputs": {"new": 1}}),
        json!({"params": {"retry_count": 1}}),
        json!({"dependencies": []}),
    ];
    let place = [json!({"user_id": user}), json!({"parent_id": place})];
    for (id, status) in &tasks {
        let code = if *status == "in_progress" {
            EXECUTING
        } else {
            TRANSITION
        };
        for updates in &place {
            update_refused(probe, id, updates.clone(), code).await?;
        }
        if *status != "failed" {
            for updates in &specification {
                // Nothing of an update is done when a part of it is refused.
                let mut updates = updates.clone();
                updates["name"] = json!("never");
                update_refused(probe, id, updates, code).await?;
            }
        }
    }
    probe.cancel(&tasks[0].0).await?;
    seen("-32008 in progress, -32006 after the end")
}

async fn ids_never_change(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("task")).await?;
    for other in [id.as_str(), UNKNOWN_ID, "alias"] {
        let error = update_refused(probe, &id, json!({"id": other}), INVALID_PARAMS).await?;
        fault_in(&error, "id")?;
    }
    seen("not even to what it is")
}

async fn covered_tasks_keep_their_kind(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.slow("slow", FOREVER_MS).below("root"),
        probe.group("group").below("root").after("slow"),
        probe.task("task").below("root").after("slow"),
    ];
    let started = probe.run(&tasks).await?;
    let (group, task) = (started.id("group")?, started.id("task")?);
    let method = json!({"method": probe.options().executor});
    let error = update_refused(probe, group, json!({"schemas": method}), EXECUTING).await?;
    fault_in(&error, "schemas")?;
    update_refused(probe, task, json!({"schemas": null}), EXECUTING).await?;
    let error = update_refused(probe, task, json!({"parent_id": group}), EXECUTING).await?;
    fault_in(&error, "parent_id")?;
    update(
        probe,
        task,
        json!({"parent_id": started.root, "inputs": {"new": 1}}),
    )
    .await?;
    probe.cancel(&started.root).await?;
    seen("no other parent and no other kind; new inputs are taken")
}

async fn covered_tasks_depend_within_the_run(probe: &Probe) -> Outcome {
    let tasks = [
        probe.task("root"),
        probe.task("done").below("root"),
        probe.task("open").below("root"),
        probe.slow("asked", FOREVER_MS).below("root"),
        probe.task("waiting").below("asked").after("asked"),
        probe.task("beside").below("asked").after("asked"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let id = |alias: &str| text_of(&ids, alias);
    execute(probe, &id("done")?).await?;
    probe.wait_for(&id("done")?, "completed").await?;
    execute(probe, &id("asked")?).await?;
    let waiting = id("waiting")?;
    let on = |other: &str| {
        let asked = json!({"id": ids["asked"], "required": true});
        json!({"dependencies": [asked, {"id": ids[other], "required": true}]})
    };
    let error = update_refused(probe, &waiting, on("open"), EXECUTING).await?;
    fault_in(&error, "id")?;
    update(probe, &waiting, on("done")).await?;
    update(probe, &waiting, on("beside")).await?;
    let task = probe.get(&waiting).await?;
    expect(
        &task,
        &[("dependencies", on("beside")["dependencies"].clone())],
    )?;
    probe.cancel(&id("asked")?).await?;
    seen("a completed and a covered one are taken, an open one is not")
}

async fn the_merged_task_is_checked(probe: &Probe) -> Outcome {
    let schema =
        json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}});
    let schemas = json!({"method": probe.options().executor, "input_schema": schema});
    let task = probe
        .task("task")
        .with("schemas", schemas.clone())
        .with("inputs", json!({"x": 1}));
    let id = probe.create(&task).await?;
    let error = update_refused(probe, &id, json!({"inputs": {"x": "1"}}), INVALID_PARAMS).await?;
    fault_in(&error, "x")?;
    let plain = probe.create(&probe.task("plain")).await?;
    update_refused(probe, &plain, json!({"schemas": schemas}), INVALID_PARAMS).await?;
    update(
        probe,
        &plain,
        json!({"schemas": schemas, "inputs": {"x": 2}}),
    )
    .await?;
    let bad = json!({"name": "never", "priority": 9, "inputs": [], "dependencies": {}});
    let error = update_refused(probe, &plain, bad, INVALID_PARAMS).await?;
    for field in ["priority", "inputs", "dependencies"] {
        fault_in(&error, field)?;
    }
    for updates in [json!(null), json!([]), json!("x")] {
        update_refused(probe, &plain, updates, INVALID_PARAMS).await?;
    }
    seen(error.to_string())
}

async fn changes_are_executed(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.slow("slow", FOREVER_MS).below("root"),
        probe
            .task("task")
            .below("root")
            .after("slow")
            .with("inputs", json!({"x": "old"})),
    ];
    let started = probe.run(&tasks).await?;
    let task = started.id("task")?;
    update(
        probe,
        task,
        json!({"inputs": {"x": "new"}, "dependencies": []}),
    )
    .await?;
    let task = probe.wait_for(task, "completed").await?;
    ensure!(
        task["result"].to_string().contains("new"),
        "the result is {}: expected the new inputs",
        task["result"]
    );
    probe.cancel(&started.root).await?;
    seen("a task whose dependencies were taken away ran with its new inputs")
}

async fn only_pending_tasks_are_deleted(probe: &Probe) -> Outcome {
    let tasks = family(probe).await?.tasks;
    for (id, status) in &tasks {
        for cascade in [false, true] {
            let params = json!({"task_id": id, "cascade": cascade});
            probe.refused("tasks.delete", params, UNDELETABLE).await?;
        }
        expect_status(probe, id, status).await?;
    }
    probe.cancel(&tasks[0].0).await?;
    let id = probe.create(&probe.task("pending")).await?;
    let result = probe.result("tasks.delete", json!({"task_id": id})).await?;
    expect(&result, &[("success", json!(true))])?;
    seen("refused in progress, completed, cancelled and failed")
}

async fn what_others_hang_on_is_kept(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("a").below("root"),
        probe.task("b").below("root").after_end_of("a"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let delete = |alias: &str| json!({"task_id": ids[alias]});
    let error = probe
        .refused("tasks.delete", delete("root"), UNDELETABLE)
        .await?;
    expect(&error.data, &[("children", json!([ids["a"], ids["b"]]))])?;
    let error = probe
        .refused("tasks.delete", delete("a"), UNDELETABLE)
        .await?;
    expect(&error.data, &[("dependents", json!([ids["b"]]))])?;
    for alias in ["b", "a", "root"] {
        probe.result("tasks.delete", delete(alias)).await?;
    }
    seen("kept while anything hangs on it, then deleted from the leaves")
}

async fn subtrees_are_deleted_whole(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.group("inner").below("root"),
        probe.task("a").below("inner"),
        probe.task("b").below("inner").after("a"),
        probe.task("outside").below("root").after("a"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let id = |alias: &str| text_of(&ids, alias);
    let inner = json!({"task_id": ids["inner"], "cascade": true});
    let error = probe
        .refused("tasks.delete", inner.clone(), UNDELETABLE)
        .await?;
    expect(&error.data, &[("dependents", json!([ids["outside"]]))])?;
    update(probe, &id("outside")?, json!({"dependencies": []})).await?;
    probe.cancel(&id("b")?).await?;
    let error = probe.refused("tasks.delete", inner, UNDELETABLE).await?;
    expect(&error.data, &[("not_pending", json!([ids["b"]]))])?;
    let tree = probe.tree(&id("root")?).await?;
    ensure!(
        tree.len() == 5,
        "{} tasks are left: expected all five",
        tree.len()
    );
    let tasks = [
        probe.group("root"),
        probe.group("in").below("root"),
        probe.task("c").below("in"),
        probe.task("d").below("root").after("c"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let params = json!({"task_id": ids["root"], "cascade": true});
    probe.result("tasks.delete", params).await?;
    for alias in ["root", "in", "c", "d"] {
        probe
            .refused("tasks.get", json!({"task_id": ids[alias]}), NOT_FOUND)
            .await?;
    }
    seen("refused for a dependent outside and a cancelled task inside, then deleted whole")
}

async fn deleted_tasks_are_gone(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.group("root")).await?;
    let child = probe.create(&probe.task("child").below(&root)).await?;
    probe
        .result("tasks.delete", json!({"task_id": child}))
        .await?;
    for method in ["tasks.get", "tasks.tree"] {
        probe
            .refused(method, json!({"task_id": child}), NOT_FOUND)
            .await?;
    }
    probe
        .refused("tasks.children", json!({"parent_id": child}), NOT_FOUND)
        .await?;
    let tree = probe.tree(&root).await?;
    ensure!(
        tree.len() == 1,
        "the tree has {} tasks: expected 1",
        tree.len()
    );
    let children = probe
        .result("tasks.children", json!({"parent_id": root}))
        .await?;
    expect(&children, &[("children", json!([]))])?;
    let stored = count(probe).await?;
    ensure!(stored == 1, "{stored} tasks are listed: expected 1");
    let lost = probe.task("lost").below(&root).after(&child);
    probe
        .refused("tasks.create", lost.value(), DEPENDENCY)
        .await?;
    let lost = probe.task("lost").below(&child);
    probe.refused("tasks.create", lost.value(), PARENT).await?;
    seen("gone from get, tree, children and list, and no parent or dependency any more")
}
