//! What a task executes, and with which data. spec: data-model / Inputs vs Schemas, Complete Task Example

use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "data-model/schemas/1-type",
            "`schemas.type` may be left out, or is `local`, `remote` or `external`",
            types_are_known,
        ),
        must(
            "data-model/schemas/2-method-required",
            "`schemas` has a `method`, a text that is not empty",
            methods_are_required,
        ),
        must(
            "data-model/schemas/3-method-registered",
            "`schemas.method` is the name of an executor that the server has",
            unknown_methods_never_complete,
        ),
        must(
            "data-model/schemas/4-input-schema",
            "`schemas.input_schema` may be left out, or is a JSON Schema (draft-07)",
            input_schemas_are_schemas,
        ),
        must(
            "data-model/inputs/1-object",
            "`inputs` is any JSON object that conforms to `schemas.input_schema`",
            inputs_conform,
        ),
        must(
            "data-model/inputs/2-conform",
            "`inputs` that do not conform to `schemas.input_schema` are refused",
            inputs_conform,
        )
        .same_as(&["validation/inputs/1-conform"]),
        should(
            "data-model/inputs/3-before-execution",
            "`inputs` are checked before the task is executed",
            nonconforming_inputs_are_not_executed,
        ),
        may(
            "data-model/inputs/4-free-without-schema",
            "without an `input_schema`, `inputs` may be any object",
            inputs_are_free_without_a_schema,
        ),
        must(
            "data-model/example/1-complete-task",
            "the complete task of the document is a valid task",
            complete_example_is_valid,
        ),
    ]
}

/// The schema of the document's example.
fn crawler_schema() -> Value {
    json!({
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "format": "uri"},
            "timeout": {"type": "integer", "minimum": 1, "default": 30},
        },
    })
}

fn with_schema(probe: &Probe, alias: &str, schema: &Value) -> NewTask {
    let method = probe.options().executor.as_str();
    let schemas = json!({"method": method, "input_schema": schema});
    probe.task(alias).with("schemas", schemas)
}

async fn types_are_known(probe: &Probe) -> Outcome {
    let method = probe.options().executor.as_str();
    let of = |kind: Value| json!({"type": kind, "method": method});
    let taken = ["local", "remote", "external"].map(|kind| of(json!(kind)));
    probe.takes_values("schemas", taken).await?;
    let odd = [
        json!("Local"),
        json!(""),
        json!("other"),
        json!(1),
        json!([]),
    ]
    .map(of);
    probe.refuses_values("schemas", odd).await?;
    seen("the three are kept, others are -32602")
}

pub(super) async fn methods_are_required(probe: &Probe) -> Outcome {
    let of = |method: Value| json!({"method": method});
    let odd = [
        json!(""),
        json!(1),
        Value::Null,
        json!([]),
        json!({}),
        json!(true),
    ]
    .map(of);
    let without = [
        json!({}),
        json!({"type": "local"}),
        json!({"input_schema": {}}),
    ];
    probe
        .refuses_values("schemas", odd.into_iter().chain(without))
        .await?;
    seen("`schemas` without a `method`, or with an empty one, is -32602")
}

/// A server may refuse it when it is created or when it is executed, or let the task fail.
pub(in super::super) async fn unknown_methods_never_complete(probe: &Probe) -> Outcome {
    let schemas = json!({"method": probe.name("no executor")});
    let task = probe.task("unknown").with("schemas", schemas);
    let created = probe.call("tasks.create", task.value()).await?;
    if created.outcome.is_err() {
        created.expect_refusal(&[NO_EXECUTOR, INVALID_PARAMS])?;
    }
    let before = probe.own().await?;
    let call = json!({"tasks": [task.element()]});
    let executed = probe.call("tasks.execute", call).await?;
    if executed.outcome.is_err() {
        let error = executed.expect_refusal(&[NO_EXECUTOR, INVALID_PARAMS])?;
        probe.expect_unchanged(&before, &error.to_string()).await?;
        return seen(error.to_string());
    }
    let root = text_of(&executed.expect_result()?, "root_task_id")?;
    let task = probe.wait_for(&root, "failed").await?;
    seen(format!("the task fails: {}", shown(&task["error"])))
}

async fn input_schemas_are_schemas(probe: &Probe) -> Outcome {
    let method = probe.options().executor.as_str();
    let of = |schema: Value| json!({"method": method, "input_schema": schema});
    let draft = "http://json-schema.org/draft-07/schema#";
    let taken = [
        json!({}),
        json!({"$schema": draft, "type": "object"}),
        json!({"type": "object", "properties": {"a": {"if": {"const": 1}, "then": {}}}}),
    ];
    probe.takes_values("schemas", taken.map(of)).await?;
    let odd = [json!(1), json!("object"), json!([])];
    let faulty = [
        json!({"type": "no such type"}),
        json!({"type": 5}),
        json!({"required": "url"}),
        json!({"properties": []}),
        json!({"minimum": "1"}),
    ];
    probe
        .refuses_values("schemas", odd.into_iter().chain(faulty).map(of))
        .await?;
    seen("draft-07 schemas are kept; other types and faulty schemas are -32602")
}

pub(in super::super) async fn inputs_conform(probe: &Probe) -> Outcome {
    let task = |alias| with_schema(probe, alias, &crawler_schema());
    let sound = json!({"url": "https://example.com", "timeout": 60});
    for inputs in [
        sound.clone(),
        json!({"url": "https://example.com", "more": [1]}),
    ] {
        let stored = probe
            .store(&task("sound").with("inputs", inputs.clone()))
            .await?;
        expect_field(&stored, "inputs", inputs)?;
    }
    let faulty = [
        json!({}),
        json!({"url": 5}),
        json!({"timeout": 5}),
        json!({"url": "https://example.com", "timeout": 0}),
        json!({"url": "https://example.com", "timeout": 1.5}),
        json!({"url": "https://example.com", "timeout": "60"}),
    ];
    let tasks: Vec<_> = faulty
        .iter()
        .map(|faulty| task("never").with("inputs", faulty.clone()))
        .collect();
    probe.refuses_tasks(&tasks, &[INVALID_PARAMS]).await?;
    probe
        .refuses_tasks(&[task("never").without("inputs")], &[INVALID_PARAMS])
        .await?;
    let id = probe.create(&task("kept").with("inputs", sound)).await?;
    let updates = faulty.into_iter().map(|faulty| json!({"inputs": faulty}));
    probe
        .refuses_updates(&id, updates, &[INVALID_PARAMS])
        .await?;
    let method = probe.options().executor.as_str();
    let stricter = json!({"method": method, "input_schema": {"required": ["other"]}});
    let updates = [json!({"schemas": stricter})];
    probe
        .refuses_updates(&id, updates, &[INVALID_PARAMS])
        .await?;
    seen("what conforms is kept; what does not is -32602, at create, execute and update")
}

async fn nonconforming_inputs_are_not_executed(probe: &Probe) -> Outcome {
    let sound = with_schema(probe, "sound", &crawler_schema());
    let sound = sound.with("inputs", json!({"url": "https://example.com"}));
    let started = probe.run(&[sound]).await?;
    probe.wait_for(&started.root, "completed").await?;
    let faulty = with_schema(probe, "faulty", &crawler_schema()).with("inputs", json!({"url": 1}));
    let call = json!({"tasks": [faulty.element()]});
    let reply = probe.call("tasks.execute", call).await?;
    if reply.outcome.is_err() {
        return seen(reply.expect_error(INVALID_PARAMS)?.to_string());
    }
    let root = text_of(&reply.expect_result()?, "root_task_id")?;
    let task = probe.wait_for(&root, "failed").await?;
    seen(format!("the task fails: {}", shown(&task["error"])))
}

async fn inputs_are_free_without_a_schema(probe: &Probe) -> Outcome {
    let free = [
        json!({}),
        json!({"url": 5, "": null, "deep": {"a": [{}, [], 1e10, "é"]}}),
    ];
    probe.takes_values("inputs", free).await?;
    seen("kept as they are")
}

/// With ids of tasks that exist, and an executor that does, which need not know `user_agent`.
async fn complete_example_is_valid(probe: &Probe) -> Outcome {
    let parent = probe.create(&probe.task("parent")).await?;
    let before = probe.create(&probe.task("before").below(&parent)).await?;
    let method = probe.options().executor.as_str();
    let fields = json!({
        "parent_id": parent,
        "name": "Crawl Website",
        "status": "pending",
        "priority": 1,
        "inputs": {"url": "https://example.com", "timeout": 60},
        "schemas": {"type": "local", "method": method, "input_schema": crawler_schema()},
        "params": {"retry_count": 3},
        "result": null,
        "error": null,
        "dependencies": [{"id": before, "required": true}],
        "progress": 0.0,
        "started_at": null,
        "completed_at": null,
    });
    let times = json!({"created_at": "2025-01-15T10:30:00Z", "updated_at": "2025-01-15T10:30:00Z"});
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut task = probe.task("example");
    for (field, value) in members(&fields).into_iter().chain(members(&times)) {
        task = task.with(&field, value);
    }
    let stored = probe.store(&task).await?;
    for (field, value) in members(&fields) {
        expect_field(&stored, &field, value)?;
    }
    seen("stored with all its members")
}
