//! What this project decided. Section: Errors

use super::looks::*;
use super::order::{codes_have_an_order, codes_have_an_order_in_updates};
use crate::clauses::interface_rest::strangers_are_told;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/errors/1-standard-messages",
            "errors with standard codes have exactly the standard's messages",
            standard_messages,
        ),
        decided(
            "semantics/errors/2-own-messages",
            "each code of the tasks has one message",
            own_messages,
        ),
        not_testable(
            Level::Decided,
            "semantics/errors/3-internal",
            "-32603 `Internal error` tells an id that is in the log, and nothing of its cause",
            "a sound server has no such error; src/transport/jsonrpc/error.rs: \
             an_internal_error_shows_an_id_and_nothing_of_its_cause",
        ),
        decided(
            "semantics/errors/4-unauthorized",
            "-32004 is the code of a caller that may not do this",
            strangers_are_told,
        )
        .same_as(&["interface/errors/6-unauthorized"]),
        not_testable(
            Level::Decided,
            "semantics/errors/5-too-busy",
            "-32013 says in `data.retry_after_ms` when to come again",
            "needs a server under stress; tests/core/application/reads.rs and conflicts.rs",
        ),
        decided(
            "semantics/errors/6-order",
            "when several codes apply, the first of -32602, -32012, -32010, -32011, -32002, -32003, -32008 is told",
            codes_have_an_order,
        ),
        decided(
            "semantics/errors/7-order-update",
            "the same order holds within one update",
            codes_have_an_order_in_updates,
        ),
        decided(
            "semantics/errors/8-invalid-task",
            "an invalid task is -32602, wherever it is sent",
            invalid_tasks_are_invalid_params,
        ),
        decided(
            "semantics/errors/9-data",
            "`data.errors` lists faults with `field`, `reason`, `expected`, `actual` and `path`",
            faults_have_five_members,
        ),
        decided(
            "semantics/errors/10-all-at-once",
            "all violations of a call come at once",
            all_faults_come_at_once,
        ),
        decided(
            "semantics/errors/11-flat",
            "a single fault has its members flat in `data` too, several have not",
            single_faults_are_flat_too,
        ),
        decided(
            "semantics/errors/12-http-status",
            "every answer to a caller who is let in has HTTP status 200, a request that gets none 204",
            answers_have_status_200,
        ),
        decided(
            "semantics/errors/13-examples",
            "the interface document's examples, as they stand: create and list succeed, execute is -32003, the others are -32602",
            examples_answer_as_decided,
        ),
        decided(
            "semantics/errors/14-not-for-others",
            "a task that the caller may not see is -32001, as one that does not exist",
            tasks_of_others_are_not_found,
        ),
    ]
}

async fn standard_messages(probe: &Probe) -> Outcome {
    let reply = |method: &'static str, params| probe.call(method, params);
    let errors = [
        probe.post("{").await?.expect_error_without_id(-32700)?,
        probe.post("1").await?.expect_error_without_id(-32600)?,
        reply("no.such", json!({})).await?.expect_error(-32601)?,
        reply("tasks.get", json!({})).await?.expect_error(-32602)?,
    ];
    let expected = [
        "Parse error",
        "Invalid Request",
        "Method not found",
        "Invalid params",
    ];
    for (error, message) in errors.iter().zip(expected) {
        ensure!(error.message == message, "{error}: expected `{message}`");
    }
    seen(format!("{expected:?}"))
}

async fn tasks_of_others_are_not_found(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("own")).await?;
    probe.get(&id).await?;
    let found = probe
        .call_of_another_user("tasks.get", json!({"task_id": id}))
        .await?
        .expect_error(NOT_FOUND)?;
    let unknown = probe
        .call_of_another_user("tasks.get", json!({"task_id": UNKNOWN_ID}))
        .await?
        .expect_error(NOT_FOUND)?;
    ensure!(
        found.message == unknown.message,
        "{found} tells more than {unknown}"
    );
    seen(found.to_string())
}

async fn own_messages(probe: &Probe) -> Outcome {
    let ids = create_all(
        probe,
        &[
            probe.group("root"),
            probe.slow("slow", FOREVER_MS).below("root"),
        ],
    )
    .await?;
    let slow = text_of(&ids, "slow")?;
    execute(probe, &slow).await?;
    let off = probe.create(&probe.task("off")).await?;
    probe.cancel(&off).await?;
    let unknown = probe
        .task("task")
        .with("schemas", json!({"method": "conformance_no_such"}));
    let calls = [
        (
            NOT_FOUND,
            "Task not found",
            "tasks.get",
            json!({"task_id": UNKNOWN_ID}),
        ),
        (
            CIRCULAR,
            "Circular dependency detected",
            "tasks.create",
            list(&[probe.task("a").after("a")]),
        ),
        (
            NO_EXECUTOR,
            "Executor not found",
            "tasks.execute",
            list(&[unknown]),
        ),
        (
            TRANSITION,
            "Invalid state transition",
            "tasks.cancel",
            json!({"task_id": off}),
        ),
        (
            EXECUTING,
            "Task is already executing",
            "tasks.execute",
            json!({"task_id": slow}),
        ),
        (
            UNDELETABLE,
            "Task cannot be deleted",
            "tasks.delete",
            json!({"task_id": off}),
        ),
        (
            PARENT,
            "Invalid parent",
            "tasks.create",
            probe.task("a").below(UNKNOWN_ID).value(),
        ),
        (
            DEPENDENCY,
            "Invalid dependency",
            "tasks.create",
            probe.task("a").after(UNKNOWN_ID).value(),
        ),
        (
            TREE,
            "Invalid task tree",
            "tasks.create",
            list(&[probe.task("a"), probe.task("b")]),
        ),
    ];
    for (code, message, method, params) in calls {
        let error = probe.refused(method, params, code).await?;
        ensure!(error.message == message, "{error}: expected `{message}`");
    }
    probe.cancel(&slow).await?;
    seen("nine codes and messages")
}

async fn invalid_tasks_are_invalid_params(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.group("root")).await?;
    for (field, value) in [
        ("name", json!(1)),
        ("name", json!(null)),
        ("user_id", json!(1)),
        ("parent_id", json!(1)),
        ("priority", json!("high")),
        ("dependencies", json!({})),
        ("dependencies", json!([1])),
        ("dependencies", json!([{"id": 1}])),
        ("dependencies", json!([{"id": id, "required": "yes"}])),
        ("dependencies", json!([{"id": id, "kind": 1}])),
        ("inputs", json!([])),
        ("inputs", json!(null)),
        ("schemas", json!("x")),
        ("params", json!([])),
        ("children", json!({})),
    ] {
        let task = probe.task("task").with(field, value.clone());
        probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
        probe
            .refused("tasks.execute", list(&[task]), INVALID_PARAMS)
            .await?;
        update_refused(probe, &id, json!({field: value}), INVALID_PARAMS).await?;
    }
    let nameless = probe.task("task").without("name");
    let error = probe
        .refused("tasks.create", nameless.value(), INVALID_PARAMS)
        .await?;
    fault_in(&error, "name")?;
    seen("fifteen wrong members, in create, execute and update")
}

/// Errors of different kinds, with as many faults as they have.
async fn some_errors(probe: &Probe) -> Result<Vec<(RpcError, usize)>, Finding> {
    let two = probe.task("task").with("priority", 9).with("inputs", 1);
    let root = probe.create(&probe.group("root")).await?;
    let unknown = probe.task("a").below(&root).after(UNKNOWN_ID);
    let mut errors = Vec::new();
    for (method, params, code, faults) in [
        ("tasks.get", json!({}), INVALID_PARAMS, 1),
        ("tasks.get", json!({"task_id": UNKNOWN_ID}), NOT_FOUND, 1),
        ("tasks.create", two.value(), INVALID_PARAMS, 2),
        ("tasks.create", unknown.value(), DEPENDENCY, 1),
        (
            "tasks.create",
            list(&[probe.task("a").after("a")]),
            CIRCULAR,
            1,
        ),
        (
            "tasks.create",
            list(&[probe.task("a"), probe.task("b")]),
            TREE,
            2,
        ),
        ("tasks.retry", json!({"task_id": root}), TRANSITION, 1),
        ("no.such", json!({}), -32601, 1),
    ] {
        errors.push((probe.refused(method, params, code).await?, faults));
    }
    errors.push((probe.post("{").await?.expect_error_without_id(-32700)?, 1));
    errors.push((probe.post("[]").await?.expect_error_without_id(-32600)?, 1));
    Ok(errors)
}

const MEMBERS: [&str; 5] = ["actual", "expected", "field", "path", "reason"];

async fn faults_have_five_members(probe: &Probe) -> Outcome {
    for (error, count) in some_errors(probe).await? {
        let faults = error.data["errors"].as_array().cloned().unwrap_or_default();
        ensure!(faults.len() == count, "{error}: expected {count} faults");
        for fault in &faults {
            let members: Vec<_> = fault
                .as_object()
                .into_iter()
                .flat_map(|f| f.keys())
                .collect();
            ensure!(
                members == MEMBERS,
                "{error}: members {members:?}: expected {MEMBERS:?}"
            );
            for member in ["field", "reason", "expected"] {
                ensure!(
                    !text_of(fault, member)?.is_empty(),
                    "{error}: `{member}` is empty"
                );
            }
            let path = fault["path"].as_array().cloned().unwrap_or_default();
            let sound = path.iter().all(|part| part.is_string() || part.is_u64());
            ensure!(
                sound && !path.is_empty(),
                "{error}: `path` is {}",
                fault["path"]
            );
        }
    }
    seen("errors of eight codes")
}

async fn all_faults_come_at_once(probe: &Probe) -> Outcome {
    let bad = json!({"name": "", "priority": 9, "inputs": 1, "schemas": {}, "colour": "red"});
    let params = json!({"tasks": [probe.group("root").element(), bad]});
    for method in ["tasks.create", "tasks.execute"] {
        let error = probe
            .refused(method, params.clone(), INVALID_PARAMS)
            .await?;
        for field in ["name", "priority", "inputs", "method", "colour"] {
            fault_in(&error, field)?;
        }
    }
    let list = json!({"limit": 0, "offset": -1, "status": "x", "order": "up", "colour": 1});
    let error = probe.refused("tasks.list", list, INVALID_PARAMS).await?;
    for field in ["limit", "offset", "status", "order", "colour"] {
        fault_in(&error, field)?;
    }
    seen("five faults at once, three times")
}

async fn single_faults_are_flat_too(probe: &Probe) -> Outcome {
    for (error, count) in some_errors(probe).await? {
        for member in MEMBERS {
            let flat = error.data.get(member);
            let first = error.data["errors"][0].get(member);
            let right = if count == 1 {
                flat == first
            } else {
                flat.is_none()
            };
            ensure!(right, "{error}: {count} faults, but `{member}` is {flat:?}");
        }
    }
    seen("flat for one fault, absent for two")
}

async fn answers_have_status_200(probe: &Probe) -> Outcome {
    let call = json!({"jsonrpc": "2.0", "method": "system.health", "params": {}, "id": 1});
    let mut refused = call.clone();
    refused["method"] = json!("no.such");
    let mut silent = call.clone();
    silent.as_object_mut().map(|members| members.remove("id"));
    for (body, status) in [
        (call.to_string(), 200),
        (refused.to_string(), 200),
        ("{".to_owned(), 200),
        ("1".to_owned(), 200),
        ("[]".to_owned(), 200),
        (json!([call, refused]).to_string(), 200),
        (json!([call, silent]).to_string(), 200),
        (silent.to_string(), 204),
        (json!([silent, silent]).to_string(), 204),
    ] {
        let answer = probe.post(body).await?;
        ensure!(
            answer.status == status,
            "{}: expected {status}",
            answer.story()
        );
        ensure!(
            (status == 204) == answer.body.is_empty(),
            "{}: expected a body with 200 only",
            answer.story()
        );
    }
    seen("results, errors, batches and notifications")
}

async fn examples_answer_as_decided(probe: &Probe) -> Outcome {
    let create = json!({
        "name": "Task Name", "user_id": "user123", "parent_id": null, "priority": 2,
        "inputs": {}, "schemas": {"method": "executor_id"}, "dependencies": [],
    });
    let created = probe.result("tasks.create", create).await?;
    expect(&created, &[("status", json!("pending"))])?;
    text_of(&created, "id")?;
    let page = json!({"limit": 100, "offset": 0, "status": "pending", "user_id": "user123"});
    let page = probe.result("tasks.list", page).await?;
    expect(&page, &[("limit", json!(100)), ("offset", json!(0))])?;
    let listed = page["tasks"].as_array().into_iter().flatten();
    ensure!(
        listed.into_iter().any(|task| task["id"] == created["id"]),
        "{} is not in {}",
        created["id"],
        shown(&page)
    );
    // It is of no use to other checks, nor to whoever owns the store.
    probe
        .result("tasks.delete", json!({"task_id": created["id"]}))
        .await?;
    let task = json!({
        "id": "task1", "name": "Task 1", "user_id": "user123",
        "schemas": {"method": "executor_id"}, "inputs": {},
    });
    let tasks = json!({"tasks": [task]});
    probe.refused("tasks.execute", tasks, NO_EXECUTOR).await?;
    let updates = json!({"name": "Updated Name", "priority": 1});
    for (method, params) in [
        ("tasks.get", json!({"task_id": "task-uuid"})),
        (
            "tasks.update",
            json!({"task_id": "task-uuid", "updates": updates}),
        ),
        ("tasks.delete", json!({"task_id": "task-uuid"})),
        ("tasks.cancel", json!({"task_id": "task-uuid"})),
        ("tasks.tree", json!({"task_id": "root-task-uuid"})),
        ("tasks.children", json!({"parent_id": "parent-task-uuid"})),
        (
            "tasks.copy",
            json!({"task_id": "task-uuid", "copy_children": true}),
        ),
    ] {
        let error = probe.refused(method, params, INVALID_PARAMS).await?;
        let fault = error.data["errors"][0].clone();
        expect(&fault, &[("reason", json!("Invalid UUID format"))])?;
    }
    seen("ten examples")
}
