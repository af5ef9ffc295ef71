//! spec: interface / tasks.copy

use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.copy/1-answer",
            "the result has `original_task_id`, `copied_task_id` and the status `pending`",
            copies_are_answered,
        ),
        must(
            "interface/tasks.copy/2-task-id",
            "`task_id` is required, the UUID of a task",
            unknown_tasks_are_errors,
        ),
        must(
            "interface/tasks.copy/3-copy-children",
            "`copy_children` may be given, true or false, and is false if it is not",
            children_are_copied_when_asked,
        ),
        must(
            "interface/tasks.copy/4-new-id",
            "the copy is a new task with a new UUID",
            copies_are_new_tasks,
        ),
        must(
            "interface/tasks.copy/5-reset",
            "status, result, error and progress of the copy are those of a new task",
            copies_begin_anew,
        ),
        should(
            "interface/tasks.copy/6-definition",
            "name, inputs, schemas and dependencies of the copy are those of the original",
            copies_keep_definitions,
        ),
    ]
}

async fn copy(probe: &Probe, id: &str, children: bool) -> Result<Vec<Value>, Finding> {
    let params = json!({"task_id": id, "copy_children": children});
    let result = probe.result("tasks.copy", params).await?;
    probe.tree(&text_of(&result, "copied_task_id")?).await
}

async fn copies_are_answered(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("original")).await?;
    let result = probe.result("tasks.copy", json!({"task_id": id})).await?;
    expect_field(&result, "original_task_id", id)?;
    expect_field(&result, "status", "pending")?;
    probe.get(&text_of(&result, "copied_task_id")?).await?;
    seen(shown(result))
}

async fn unknown_tasks_are_errors(probe: &Probe) -> Outcome {
    let params = json!({"task_id": UNKNOWN_ID});
    let errors = probe.refuses("tasks.copy", [params], &[NOT_FOUND]).await?;
    probe
        .refuses("tasks.copy", [json!({})], &[INVALID_PARAMS])
        .await?;
    seen(errors[0].to_string())
}

async fn children_are_copied_when_asked(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let child = probe.create(&probe.task("child").below(&root)).await?;
    probe.create(&probe.task("leaf").below(&child)).await?;
    let result = probe.result("tasks.copy", json!({"task_id": root})).await?;
    let alone = probe.tree(&text_of(&result, "copied_task_id")?).await?;
    let same = copy(probe, &root, false).await?;
    let whole = copy(probe, &root, true).await?;
    ensure!(
        (alone.len(), same.len(), whole.len()) == (1, 1, 3),
        "{} tasks by default, {} without and {} with children: expected 1, 1 and 3",
        alone.len(),
        same.len(),
        whole.len()
    );
    let odd = [json!("true"), json!(1), json!([])];
    let calls = odd.map(|odd| json!({"task_id": root, "copy_children": odd}));
    probe
        .refuses("tasks.copy", calls, &[INVALID_PARAMS])
        .await?;
    seen("1 task by default and with false, 3 with true")
}

async fn copies_are_new_tasks(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    probe.create(&probe.task("child").below(&root)).await?;
    let before = probe.own().await?;
    let copies = copy(probe, &root, true).await?;
    let known = |copy: &Value| before.iter().any(|task| task["id"] == copy["id"]);
    ensure!(
        !copies.iter().any(known),
        "a copy has the id of an original: {}",
        shown(json!(copies))
    );
    let after = probe.own().await?;
    ensure!(
        after.len() == 4,
        "{} tasks after copying two of two",
        after.len()
    );
    for task in &before {
        ensure!(after.contains(task), "copying changed {}", shown(task));
    }
    seen("two new ids; the originals are as they were")
}

async fn copies_begin_anew(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    for task in [&lives.completed, &lives.failed, &lives.cancelled] {
        let copies = copy(probe, &text_of(task, "id")?, false).await?;
        for (field, new) in [
            ("status", json!("pending")),
            ("result", Value::Null),
            ("error", Value::Null),
            ("progress", json!(0)),
            ("started_at", Value::Null),
            ("completed_at", Value::Null),
        ] {
            expect_field(&copies[0], field, new)?;
        }
    }
    seen("copies of a completed, a failed and a cancelled task are pending and empty")
}

async fn copies_keep_definitions(probe: &Probe) -> Outcome {
    let first = probe
        .task("root")
        .with("inputs", json!({"a": [1, "é"]}))
        .with("priority", 0);
    let root = probe
        .create(&first.with("params", json!({"retry_count": 2})))
        .await?;
    let before = probe.create(&probe.task("before").below(&root)).await?;
    let next = probe.task("next").below(&root).after_end_of(&before);
    probe.create(&next).await?;
    let originals = probe.tree(&root).await?;
    let copies = copy(probe, &root, true).await?;
    let named = |tasks: &[Value], alias: &str| {
        let task = tasks.iter().find(|task| task["name"] == probe.name(alias));
        let none = || Finding::failed(format!("no `{alias}` in {}", shown(json!(tasks))));
        task.cloned().ok_or_else(none)
    };
    for alias in ["root", "before", "next"] {
        let (original, copied) = (named(&originals, alias)?, named(&copies, alias)?);
        for field in ["name", "inputs", "schemas", "params", "priority", "user_id"] {
            expect_field(&copied, field, original[field].clone())?;
        }
    }
    // In a tree of its own, a copy can only depend on a copy.
    let copied = named(&copies, "before")?["id"].clone();
    let list = json!([{"id": copied, "required": false}]);
    expect_field(&named(&copies, "next")?, "dependencies", list)?;
    seen("three tasks with all that defines them; the dependency is on the copy")
}
