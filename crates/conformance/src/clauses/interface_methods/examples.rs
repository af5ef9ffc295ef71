//! The requests of the document, sent as they stand and then with ids and an executor that exist.

use crate::clauses::prelude::*;

/// The standard methods.
pub(in super::super) const METHODS: [&str; 10] = [
    "tasks.create",
    "tasks.get",
    "tasks.update",
    "tasks.delete",
    "tasks.list",
    "tasks.execute",
    "tasks.cancel",
    "tasks.tree",
    "tasks.children",
    "tasks.copy",
];
/// What may be said of an id that is no UUID and that no task has.
const NO_TASK: [i64; 2] = [INVALID_PARAMS, NOT_FOUND];

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/methods/1-all",
            "the ten standard methods exist",
            all_methods_exist,
        )
        .same_as(&["interface/requirements/1-methods"]),
        must(
            "interface/example/1-tasks.create",
            "the request that creates a task gets an id and `pending`",
            create_example,
        ),
        must(
            "interface/example/2-tasks.get",
            "the request for a task gets the task",
            get_example,
        ),
        must(
            "interface/example/3-tasks.update",
            "the request that changes name and priority changes them",
            update_example,
        ),
        must(
            "interface/example/4-tasks.delete",
            "the request that deletes a task deletes it",
            delete_example,
        ),
        must(
            "interface/example/5-tasks.list",
            "the request for a list gets tasks, limit and offset",
            list_example,
        ),
        must(
            "interface/example/6-tasks.execute",
            "the request that executes a task starts it",
            execute_example,
        ),
        must(
            "interface/example/7-tasks.cancel",
            "the request that cancels a task cancels it",
            cancel_example,
        ),
        must(
            "interface/example/8-tasks.tree",
            "the request for a tree gets nested nodes",
            tree_example,
        ),
        must(
            "interface/example/9-tasks.children",
            "the request for children gets them",
            children_example,
        ),
        must(
            "interface/example/10-tasks.copy",
            "the request that copies a task with its children copies them",
            copy_example,
        ),
    ]
}

pub(in super::super) async fn all_methods_exist(probe: &Probe) -> Outcome {
    for method in METHODS {
        let reply = probe
            .call(method, json!({"no such parameter": true}))
            .await?;
        if let Err(error) = &reply.outcome {
            ensure!(error.code != -32601, "{method}: {error}");
        }
    }
    seen("none of the ten is -32601")
}

/// An example request with its own id.
async fn send(probe: &Probe, method: &str, params: Value, id: &str) -> Result<Reply, Finding> {
    let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": id});
    probe.request(&request).await
}

/// The example as it stands, whose ids are no UUIDs.
async fn without_task(
    probe: &Probe,
    method: &str,
    params: Value,
    id: &str,
) -> Result<RpcError, Finding> {
    send(probe, method, params, id)
        .await?
        .expect_error_of(&NO_TASK)
}

async fn create_example(probe: &Probe) -> Outcome {
    let of = |method: &str| {
        json!({
            "name": "Task Name",
            "user_id": "user123",
            "parent_id": null,
            "priority": 2,
            "inputs": {},
            "schemas": {"method": method},
            "dependencies": [],
        })
    };
    // A server may look for the executor now or later.
    let reply = send(probe, "tasks.create", of("executor_id"), "req-001").await?;
    match reply.outcome {
        Err(_) => _ = reply.expect_error(NO_EXECUTOR)?,
        Ok(result) => expect_field(&result, "status", "pending")?,
    }
    let reply = send(
        probe,
        "tasks.create",
        of(&probe.options().executor),
        "req-001",
    )
    .await?;
    let result = reply.expect_result()?;
    expect_field(&result, "status", "pending")?;
    let task = probe.get(&text_of(&result, "id")?).await?;
    for (field, value) in of(&probe.options().executor)
        .as_object()
        .into_iter()
        .flatten()
    {
        expect_field(&task, field, value.clone())?;
    }
    seen(result.to_string())
}

async fn get_example(probe: &Probe) -> Outcome {
    let error = without_task(
        probe,
        "tasks.get",
        json!({"task_id": "task-uuid"}),
        "req-002",
    )
    .await?;
    let started = probe.run(&[probe.task("done")]).await?;
    probe.wait_for(&started.root, "completed").await?;
    let params = json!({"task_id": started.root});
    let task = send(probe, "tasks.get", params, "req-002")
        .await?
        .expect_result()?;
    expect_task(&task)?;
    expect_field(&task, "id", started.root)?;
    expect_field(&task, "name", probe.name("done"))?;
    expect_field(&task, "status", "completed")?;
    seen(format!("the task; with `task-uuid` {error}"))
}

async fn update_example(probe: &Probe) -> Outcome {
    let of = |id: &str| json!({"task_id": id, "updates": {"name": "Updated Name", "priority": 1}});
    let error = without_task(probe, "tasks.update", of("task-uuid"), "req-003").await?;
    let id = probe.create(&probe.task("changed")).await?;
    let result = send(probe, "tasks.update", of(&id), "req-003")
        .await?
        .expect_result()?;
    expect_field(&result, "id", id.as_str())?;
    expect_field(&result, "status", "pending")?;
    let task = probe.get(&id).await?;
    expect_field(&task, "name", "Updated Name")?;
    expect_field(&task, "priority", 1)?;
    seen(format!("{result}; with `task-uuid` {error}"))
}

async fn delete_example(probe: &Probe) -> Outcome {
    let of = |id: &str| json!({"task_id": id});
    let error = without_task(probe, "tasks.delete", of("task-uuid"), "req-004").await?;
    let id = probe.create(&probe.task("deleted")).await?;
    let result = send(probe, "tasks.delete", of(&id), "req-004")
        .await?
        .expect_result()?;
    expect_field(&result, "success", true)?;
    probe.refused("tasks.get", of(&id), NOT_FOUND).await?;
    seen(format!("{result}; with `task-uuid` {error}"))
}

async fn list_example(probe: &Probe) -> Outcome {
    let params = json!({"limit": 100, "offset": 0, "status": "pending", "user_id": "user123"});
    let create = probe.task("listed").with("user_id", "user123");
    probe.create(&create).await?;
    let list = send(probe, "tasks.list", params, "req-005")
        .await?
        .expect_result()?;
    expect_field(&list, "limit", 100)?;
    expect_field(&list, "offset", 0)?;
    let tasks = list["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    ensure!(!tasks.is_empty(), "no tasks of user123: {}", shown(&list));
    for task in tasks {
        expect_task(task)?;
        expect_field(task, "status", "pending")?;
    }
    seen(format!("{} tasks", tasks.len()))
}

async fn execute_example(probe: &Probe) -> Outcome {
    let of = |method: &str| {
        json!({"tasks": [{
            "id": "task1",
            "name": "Task 1",
            "user_id": "user123",
            "schemas": {"method": method},
            "inputs": {},
        }]})
    };
    let reply = send(probe, "tasks.execute", of("executor_id"), "req-006").await?;
    match &reply.outcome {
        Err(_) => _ = reply.expect_error(NO_EXECUTOR)?,
        Ok(result) => {
            let root = text_of(result, "root_task_id")?;
            probe.wait_for(&root, "failed").await?;
        }
    }
    let reply = send(
        probe,
        "tasks.execute",
        of(&probe.options().executor),
        "req-006",
    )
    .await?;
    let result = reply.expect_result()?;
    expect_field(&result, "status", "started")?;
    let root = text_of(&result, "root_task_id")?;
    let task = probe.wait_for(&root, "completed").await?;
    expect_field(&task, "name", "Task 1")?;
    seen(shown(result))
}

async fn cancel_example(probe: &Probe) -> Outcome {
    let of = |id: &str| json!({"task_id": id});
    let error = without_task(probe, "tasks.cancel", of("task-uuid"), "req-007").await?;
    let id = probe.create(&probe.task("cancelled")).await?;
    let result = send(probe, "tasks.cancel", of(&id), "req-007")
        .await?
        .expect_result()?;
    expect_field(&result, "task_id", id.as_str())?;
    expect_field(&result, "status", "cancelled")?;
    expect_field(&probe.get(&id).await?, "status", "cancelled")?;
    seen(format!("{}; with `task-uuid` {error}", shown(result)))
}

async fn tree_example(probe: &Probe) -> Outcome {
    let of = |id: &str| json!({"task_id": id});
    let error = without_task(probe, "tasks.tree", of("root-task-uuid"), "req-008").await?;
    let root = probe.create(&probe.task("Root Task")).await?;
    let child = probe.create(&probe.task("Child Task").below(&root)).await?;
    let tree = send(probe, "tasks.tree", of(&root), "req-008")
        .await?
        .expect_result()?;
    expect_field(&tree["task"], "id", root)?;
    expect_field(&tree["task"], "name", probe.name("Root Task"))?;
    let below = &tree["children"][0];
    expect_field(&below["task"], "id", child)?;
    expect_field(&below["task"], "name", probe.name("Child Task"))?;
    expect_field(below, "children", json!([]))?;
    seen(format!("{}; with `root-task-uuid` {error}", shown(tree)))
}

async fn children_example(probe: &Probe) -> Outcome {
    let of = |id: &str| json!({"parent_id": id});
    let error = without_task(probe, "tasks.children", of("parent-task-uuid"), "req-009").await?;
    let root = probe.create(&probe.task("parent")).await?;
    let child = probe.create(&probe.task("Child Task").below(&root)).await?;
    let result = send(probe, "tasks.children", of(&root), "req-009")
        .await?
        .expect_result()?;
    let [only] = result["children"].as_array().map_or(&[][..], Vec::as_slice) else {
        return Err(Finding::failed(format!(
            "expected one child: {}",
            shown(&result)
        )));
    };
    expect_task(only)?;
    expect_field(only, "id", child)?;
    expect_field(only, "name", probe.name("Child Task"))?;
    seen(format!("one child; with `parent-task-uuid` {error}"))
}

async fn copy_example(probe: &Probe) -> Outcome {
    let of = |id: &str| json!({"task_id": id, "copy_children": true});
    let error = without_task(probe, "tasks.copy", of("task-uuid"), "req-010").await?;
    let root = probe.create(&probe.task("original")).await?;
    probe.create(&probe.task("child").below(&root)).await?;
    let result = send(probe, "tasks.copy", of(&root), "req-010")
        .await?
        .expect_result()?;
    expect_field(&result, "original_task_id", root.as_str())?;
    expect_field(&result, "status", "pending")?;
    let copied = text_of(&result, "copied_task_id")?;
    let names: Vec<_> = probe
        .tree(&copied)
        .await?
        .iter()
        .map(|t| t["name"].clone())
        .collect();
    let expected = ["original", "child"].map(|alias| json!(probe.name(alias)));
    ensure!(
        copied != root && names == expected,
        "{copied}: {names:?}, expected {expected:?}"
    );
    seen(format!("{}; with `task-uuid` {error}", shown(result)))
}
