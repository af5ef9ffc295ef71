//! spec: interface / tasks.create

use crate::clauses::data_model::{
    broken_tasks_are_refused, ids_are_unique_uuids, inputs_conform, names_are_bounded,
    parent_ids_are_checked, priorities_are_integers, schemas_are_objects, statuses_are_known,
    unknown_methods_never_complete,
};
use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/tasks.create/1-answer",
            "the result has `id` and `status`",
            creation_is_answered,
        ),
        must(
            "interface/tasks.create/2-tree",
            "a task can be created, and a tree of tasks",
            trees_can_be_created,
        ),
        must(
            "interface/tasks.create/3-name",
            "`name` is required, a text",
            names_are_bounded,
        ),
        must(
            "interface/tasks.create/4-user-id",
            "`user_id` may be given, a text",
            parameters_are_optional,
        ),
        must(
            "interface/tasks.create/5-parent-id",
            "`parent_id` may be given, a UUID",
            parent_ids_are_checked,
        ),
        must(
            "interface/tasks.create/6-priority",
            "`priority` may be given, 0 to 3, and is 2 if it is not",
            priorities_have_a_default,
        ),
        must(
            "interface/tasks.create/7-inputs",
            "`inputs` may be given, an object",
            inputs_conform,
        ),
        must(
            "interface/tasks.create/8-schemas",
            "`schemas` may be given, an object that names the executor",
            schemas_name_the_executor,
        ),
        must(
            "interface/tasks.create/9-dependencies",
            "`dependencies` may be given, a list",
            parameters_are_optional,
        ),
        must(
            "interface/tasks.create/10-validates",
            "a faulty task is refused, and not stored",
            broken_tasks_are_refused,
        ),
        must(
            "interface/tasks.create/11-unique-id",
            "each task gets a UUID of its own",
            ids_are_unique_uuids,
        ),
        must(
            "interface/tasks.create/12-pending",
            "a new task is `pending`",
            statuses_are_known,
        ),
    ]
}

async fn creation_is_answered(probe: &Probe) -> Outcome {
    let task = probe.task("new");
    let result = probe.result("tasks.create", task.value()).await?;
    expect_field(&result, "status", "pending")?;
    let stored = probe.get(&text_of(&result, "id")?).await?;
    for (field, value) in task.value().as_object().into_iter().flatten() {
        expect_field(&stored, field, value.clone())?;
    }
    seen(result.to_string())
}

async fn trees_can_be_created(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let child = probe.create(&probe.task("child").below(&root)).await?;
    let leaf = probe
        .create(&probe.task("leaf").below(&child).after(&root))
        .await?;
    let tree = probe.tree(&root).await?;
    let ids: Vec<_> = tree.iter().map(|task| task["id"].clone()).collect();
    ensure!(
        ids == [json!(root), json!(child), json!(leaf)],
        "the tree has {ids:?}"
    );
    seen("three tasks, one below the other")
}

async fn priorities_have_a_default(probe: &Probe) -> Outcome {
    let task = probe.task("none").without("priority");
    expect_field(&probe.store(&task).await?, "priority", 2)?;
    priorities_are_integers(probe).await?;
    seen("0 to 3 are kept, 2 is filled in, others are -32602")
}

async fn schemas_name_the_executor(probe: &Probe) -> Outcome {
    schemas_are_objects(probe).await?;
    let started = probe.run(&[probe.task("known")]).await?;
    probe.wait_for(&started.root, "completed").await?;
    unknown_methods_never_complete(probe).await?;
    seen("objects are kept; a task of a known executor completes, one of an unknown never")
}

async fn parameters_are_optional(probe: &Probe) -> Outcome {
    let bare = json!({"name": probe.name("bare")});
    let result = probe.result("tasks.create", bare).await?;
    let bare = probe.get(&text_of(&result, "id")?).await?;
    probe.expect_no_other_user(&bare)?;
    expect_field(&bare, "dependencies", json!([]))?;
    let root = probe.store(&probe.task("root")).await?;
    expect_field(&root, "user_id", probe.user())?;
    let root = text_of(&root, "id")?;
    let next = probe
        .store(&probe.task("next").below(&root).after(&root))
        .await?;
    expect_field(
        &next,
        "dependencies",
        json!([{"id": root, "required": true}]),
    )?;
    seen("kept when they are given, null and empty when they are not")
}
