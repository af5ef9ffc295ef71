//! How faults are told. spec: validation / Validation Error Reporting, Implementation Requirements

use crate::clauses::data_model::{
    broken_tasks_are_refused, cycles_are_refused, inputs_conform, parent_cycles_are_refused,
};
use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "validation/error-format/1-structured",
            "a fault is told as an object",
            faults_are_objects,
        ),
        must(
            "validation/error-format/2-field-and-reason",
            "a fault names the field and the reason",
            faults_name_field_and_reason,
        ),
        must(
            "validation/error-format/3-expected-and-actual",
            "a fault tells what was expected and what was found",
            faults_tell_expected_and_actual,
        ),
        must(
            "validation/error-format/4-path",
            "a fault deep in a task tells the path to it",
            faults_tell_paths,
        ),
        should(
            "validation/aggregation/1-together",
            "several faults are told in one answer",
            faults_are_told_together,
        ),
        should(
            "validation/aggregation/2-example",
            "`data.errors` lists the faults, as in the document's example",
            aggregation_example_is_told,
        ),
        must(
            "validation/requirements/1-all-checks",
            "all checks of the document are made",
            all_checks_are_made,
        ),
        must(
            "validation/requirements/2-codes",
            "invalid data is refused with a fitting code",
            faults_have_codes,
        )
        .same_as(&["validation/principles/2-rejects"]),
        should(
            "validation/requirements/3-details",
            "a refusal says in detail what is wrong",
            details_are_told,
        )
        .same_as(&["validation/principles/3-details"]),
        should(
            "validation/requirements/4-aggregation",
            "several faults are told in one answer where that is possible",
            faults_are_told_together,
        )
        .same_as(&["validation/aggregation/1-together"]),
    ]
}

/// The faults in an error: `data` itself, or the list in it.
fn faults(error: &RpcError) -> Vec<&Value> {
    match error.data["errors"].as_array() {
        Some(list) => list.iter().collect(),
        None => vec![&error.data],
    }
}

/// The fault at this field; fields of nested faults may be named with their whole path.
fn fault_of<'a>(error: &'a RpcError, field: &str) -> Result<&'a Value, Finding> {
    let named = |fault: &&Value| {
        let name = fault["field"].as_str().unwrap_or_default();
        let last = name.rsplit(['.', '/']).next().unwrap_or_default();
        name == field || last == field
    };
    let found = faults(error).into_iter().find(named);
    found.ok_or_else(|| Finding::failed(format!("{error}: no fault with `field` `{field}`")))
}

async fn refused(probe: &Probe, task: &NewTask) -> Result<RpcError, Finding> {
    probe
        .refused("tasks.create", task.value(), INVALID_PARAMS)
        .await
}

/// A task with one fault, the field of the fault, and what is found there.
fn faulty(probe: &Probe) -> [(NewTask, &'static str, Value); 5] {
    let task = || probe.task("never");
    [
        (task().with("priority", 5), "priority", json!(5)),
        (task().with("progress", 1.5), "progress", json!(1.5)),
        (task().with("name", ""), "name", json!("")),
        (task().with("status", "done"), "status", json!("done")),
        (task().with("user_id", 7), "user_id", json!(7)),
    ]
}

async fn faults_are_objects(probe: &Probe) -> Outcome {
    let before = probe.own().await?;
    for (task, field, _) in faulty(probe) {
        let error = refused(probe, &task).await?;
        ensure!(
            error.data.is_object(),
            "{error}: expected an object in `data`"
        );
        ensure!(
            fault_of(&error, field)?.is_object(),
            "{error}: expected objects"
        );
    }
    let error = probe
        .refused("tasks.get", json!({"task_id": "x"}), INVALID_PARAMS)
        .await?;
    fault_of(&error, "task_id")?;
    probe.expect_unchanged(&before, "after refusals").await?;
    seen(error.to_string())
}

async fn faults_name_field_and_reason(probe: &Probe) -> Outcome {
    for (task, field, _) in faulty(probe) {
        let error = refused(probe, &task).await?;
        let reason = text_of(fault_of(&error, field)?, "reason")?;
        ensure!(!reason.trim().is_empty(), "{error}: an empty reason");
    }
    seen("`field` and `reason` for five faults")
}

async fn faults_tell_expected_and_actual(probe: &Probe) -> Outcome {
    for (task, field, actual) in faulty(probe) {
        let error = refused(probe, &task).await?;
        let fault = fault_of(&error, field)?;
        ensure!(!fault["expected"].is_null(), "{error}: no `expected`");
        expect_field(fault, "actual", actual)?;
    }
    seen("`expected` and `actual` for five faults")
}

async fn faults_tell_paths(probe: &Probe) -> Outcome {
    let list = json!([{"id": UNKNOWN_ID, "required": "yes"}]);
    let schema = json!({"method": probe.options().executor, "type": "nowhere"});
    for (field, value, path) in [
        ("dependencies", list, json!(["dependencies", 0, "required"])),
        ("schemas", schema, json!(["schemas", "type"])),
    ] {
        let error = refused(probe, &probe.task("never").with(field, value)).await?;
        // Indices are numbers, or texts as in the document's example.
        let texts = |path: &Value| {
            let parts = path.as_array().cloned().unwrap_or_default();
            let text = |part: Value| part.as_str().map_or(part.to_string(), str::to_owned);
            parts.into_iter().map(text).collect::<Vec<_>>()
        };
        let told = faults(&error)
            .into_iter()
            .any(|fault| texts(&fault["path"]) == texts(&path));
        ensure!(told, "{error}: expected the path {path}");
    }
    seen("`path` leads to the fault in a dependency and in `schemas`")
}

pub(in super::super) async fn faults_are_told_together(probe: &Probe) -> Outcome {
    let task = probe
        .task("never")
        .with("priority", 5)
        .with("user_id", "")
        .with("inputs", json!([]));
    let before = probe.own().await?;
    let error = refused(probe, &task.with("name", "")).await?;
    for field in ["priority", "user_id", "inputs", "name"] {
        fault_of(&error, field)?;
    }
    probe.expect_unchanged(&before, "after a refusal").await?;
    seen(format!("four faults in one answer: {error}"))
}

async fn aggregation_example_is_told(probe: &Probe) -> Outcome {
    let task = probe
        .task("never")
        .with("priority", 5)
        .with("progress", 1.5);
    let error = refused(probe, &task).await?;
    ensure!(
        error.data["errors"].is_array(),
        "{error}: no list `data.errors`"
    );
    expect_field(fault_of(&error, "priority")?, "actual", 5)?;
    expect_field(fault_of(&error, "progress")?, "actual", 1.5)?;
    seen(error.to_string())
}

pub(super) async fn details_are_told(probe: &Probe) -> Outcome {
    let mut texts = std::collections::BTreeSet::new();
    for (task, _, _) in faulty(probe) {
        let error = refused(probe, &task).await?;
        ensure!(!error.data.is_null(), "{error}: no details in `data`");
        texts.insert(error.data.to_string());
    }
    ensure!(
        texts.len() == 5,
        "five faults are told in {} ways",
        texts.len()
    );
    seen("five faults, five different `data`")
}

pub(super) async fn faults_have_codes(probe: &Probe) -> Outcome {
    for (task, _, _) in faulty(probe) {
        refused(probe, &task).await?;
    }
    let unknown = json!({"task_id": UNKNOWN_ID});
    probe.refused("tasks.get", unknown, NOT_FOUND).await?;
    cycles_are_refused(probe).await?;
    seen("faulty tasks -32602, unknown ones -32001, cycles -32002")
}

async fn all_checks_are_made(probe: &Probe) -> Outcome {
    broken_tasks_are_refused(probe).await?;
    cycles_are_refused(probe).await?;
    parent_cycles_are_refused(probe).await?;
    inputs_conform(probe).await?;
    seen("members, dependencies, parents and inputs")
}
