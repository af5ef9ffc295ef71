//! Errors of tasks. spec: interface / Error Handling

use crate::clauses::data_model::cycles_are_refused;
use crate::clauses::prelude::*;
use crate::clauses::validation::faults_are_told_together;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/errors/1-format",
            "an error has `code`, `message` and `data`; for a fault `data` has `field` and `reason`",
            faults_are_told_as_in_the_example,
        ),
        must(
            "interface/errors/2-task-not-found",
            "a task that does not exist is -32001 `Task not found`",
            missing_tasks_are_told,
        ),
        must(
            "interface/errors/3-invalid-task",
            "a faulty task is -32602, with details of its faults",
            faults_are_told_together,
        ),
        must(
            "interface/errors/4-circular-dependency",
            "a cycle is -32002 `Circular dependency detected`",
            cycles_are_told,
        ),
        must(
            "interface/errors/5-executor-not-found",
            "an executor that does not exist is -32003 `Executor not found`",
            missing_executors_are_told,
        ),
        must(
            "interface/errors/6-unauthorized",
            "where callers authenticate themselves, a stranger gets -32004 `Unauthorized`",
            strangers_are_told,
        ),
    ]
}

fn expect_message(error: &RpcError, message: &str) -> Result<(), Finding> {
    ensure!(
        error.message == message,
        "{error}: expected the message `{message}`"
    );
    Ok(())
}

async fn faults_are_told_as_in_the_example(probe: &Probe) -> Outcome {
    let error = probe
        .refused("tasks.get", json!({"task_id": "x"}), INVALID_PARAMS)
        .await?;
    expect_message(&error, "Invalid params")?;
    expect_field(&error.data, "field", "task_id")?;
    let reason = text_of(&error.data, "reason")?;
    ensure!(
        reason.contains("UUID"),
        "{error}: expected a reason that speaks of UUIDs"
    );
    seen(error.to_string())
}

async fn missing_tasks_are_told(probe: &Probe) -> Outcome {
    for method in [
        "tasks.get",
        "tasks.delete",
        "tasks.cancel",
        "tasks.tree",
        "tasks.copy",
    ] {
        let params = json!({"task_id": UNKNOWN_ID});
        expect_message(
            &probe.refused(method, params, NOT_FOUND).await?,
            "Task not found",
        )?;
    }
    let update = json!({"task_id": UNKNOWN_ID, "updates": {"priority": 1}});
    let errors = [
        probe.refused("tasks.update", update, NOT_FOUND).await?,
        probe
            .refused(
                "tasks.children",
                json!({"parent_id": UNKNOWN_ID}),
                NOT_FOUND,
            )
            .await?,
    ];
    for error in &errors {
        expect_message(error, "Task not found")?;
    }
    seen(format!("seven methods: {}", errors[0]))
}

async fn cycles_are_told(probe: &Probe) -> Outcome {
    let tasks = [
        probe.task("root").element(),
        probe.task("a").below("root").after("b").element(),
        probe.task("b").below("root").after("a").element(),
    ];
    let error = probe
        .refused("tasks.execute", json!({"tasks": tasks}), CIRCULAR)
        .await?;
    expect_message(&error, "Circular dependency detected")?;
    cycles_are_refused(probe).await?;
    seen(error.to_string())
}

async fn missing_executors_are_told(probe: &Probe) -> Outcome {
    let schemas = json!({"method": probe.name("no executor")});
    let task = probe.task("never").with("schemas", schemas);
    let reply = probe
        .call("tasks.execute", json!({"tasks": [task.element()]}))
        .await?;
    if let Ok(result) = &reply.outcome {
        let task = probe
            .wait_for(&text_of(result, "root_task_id")?, "failed")
            .await?;
        let text = "the data model allows this: the task fails instead";
        return Err(Finding::skipped(format!(
            "{text}: {}",
            shown(&task["error"])
        )));
    }
    let error = reply.expect_error(NO_EXECUTOR)?;
    expect_message(&error, "Executor not found")?;
    seen(error.to_string())
}

pub(in super::super) async fn strangers_are_told(probe: &Probe) -> Outcome {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.list", "params": {"limit": 1}});
    let headers = [
        ("content-type", "application/json"),
        ("authorization", "Bearer nobody.issued.this"),
    ];
    let answer = probe.raw(call.to_string(), &headers).await?;
    let reply = answer.reply(&json!(1))?;
    if reply.outcome.is_ok() {
        let text = "a call with a token that nobody issued is answered as any other";
        return Err(Finding::skipped(text));
    }
    let error = reply.expect_error(-32004)?;
    expect_message(&error, "Unauthorized")?;
    seen(error.to_string())
}
