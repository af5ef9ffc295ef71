//! Inputs. spec: validation / Input Validation

use crate::clauses::data_model::{inputs_conform, unknown_methods_never_complete};
use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "validation/inputs/1-conform",
            "`inputs` conform to `schemas.input_schema` if there is one",
            inputs_conform,
        ),
        must(
            "validation/inputs/2-validated",
            "`inputs` are checked against `schemas.input_schema`",
            inputs_conform,
        ),
        should(
            "validation/inputs/3-draft-07",
            "the check is that of JSON Schema draft-07",
            draft_07_is_spoken,
        ),
        may(
            "validation/executor-inputs/1-additional",
            "executors may check inputs further",
            executors_check_inputs,
        ),
        must(
            "validation/executor-inputs/2-executor-exists",
            "a task whose executor does not exist is not executed",
            unknown_methods_never_complete,
        )
        .same_as(&["data-model/executor-registry/4-not-found"]),
        should(
            "validation/executor-inputs/3-used",
            "where an executor can check inputs, its check is made",
            executors_check_inputs,
        ),
    ]
}

/// One keyword of draft-07 in each row, with inputs that keep it and inputs that break it.
fn keywords() -> Vec<(Value, Value, Value)> {
    let of = |schema: Value| json!({"properties": {"a": schema}});
    vec![
        (
            of(json!({"type": "integer"})),
            json!({"a": 2.0}),
            json!({"a": 2.5}),
        ),
        (
            of(json!({"enum": [1, "x", null]})),
            json!({"a": null}),
            json!({"a": "y"}),
        ),
        (
            of(json!({"const": {"b": 1}})),
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 2}}),
        ),
        (
            of(json!({"exclusiveMinimum": 1})),
            json!({"a": 1.5}),
            json!({"a": 1}),
        ),
        (
            of(json!({"multipleOf": 3})),
            json!({"a": 9}),
            json!({"a": 10}),
        ),
        (
            of(json!({"maxLength": 2})),
            json!({"a": "é🦀"}),
            json!({"a": "abc"}),
        ),
        (
            of(json!({"pattern": "^a+$"})),
            json!({"a": "aa"}),
            json!({"a": "ab"}),
        ),
        (
            of(json!({"uniqueItems": true})),
            json!({"a": [1, "1"]}),
            json!({"a": [1, 1.0]}),
        ),
        (
            of(json!({"contains": {"const": 1}})),
            json!({"a": [0, 1]}),
            json!({"a": [0]}),
        ),
        (
            of(json!({"items": [{"type": "string"}], "additionalItems": false})),
            json!({"a": ["x"]}),
            json!({"a": ["x", 1]}),
        ),
        (
            json!({"required": ["a"]}),
            json!({"a": null}),
            json!({"b": 1}),
        ),
        (
            json!({"additionalProperties": false}),
            json!({}),
            json!({"a": 1}),
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"a": 1}),
            json!({"ab": 1}),
        ),
        (
            json!({"patternProperties": {"^n": {"type": "number"}}}),
            json!({"n1": 1}),
            json!({"n1": "1"}),
        ),
        (
            json!({"dependencies": {"a": ["b"]}}),
            json!({"a": 1, "b": 1}),
            json!({"a": 1}),
        ),
        (
            json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}),
            json!({"c": 1}),
            json!({"a": 1}),
        ),
        (
            json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": 1}),
            json!({"a": 1, "b": 1}),
        ),
        (
            json!({"not": {"required": ["a"]}}),
            json!({"b": 1}),
            json!({"a": 1}),
        ),
        (
            json!({"definitions": {"n": {"type": "number"}}, "properties": {"a": {"$ref": "#/definitions/n"}}}),
            json!({"a": 1}),
            json!({"a": "1"}),
        ),
    ]
}

async fn draft_07_is_spoken(probe: &Probe) -> Outcome {
    let method = probe.options().executor.as_str();
    let rows = keywords();
    for (schema, sound, faulty) in &rows {
        let schemas = json!({"method": method, "input_schema": schema});
        let task = |inputs: &Value| {
            let task = probe.task("keyword").with("schemas", schemas.clone());
            task.with("inputs", inputs.clone())
        };
        probe.create(&task(sound)).await?;
        let reply = probe.call("tasks.create", task(faulty).value()).await?;
        reply.expect_error(INVALID_PARAMS)?;
    }
    let stored = probe.own().await?.len();
    ensure!(
        stored == rows.len(),
        "{stored} tasks are stored, {} were sound",
        rows.len()
    );
    seen(format!("{} keywords, each kept and broken", rows.len()))
}

/// An executor that takes a while needs to know how long.
async fn executors_check_inputs(probe: &Probe) -> Outcome {
    if probe.options().slow_inputs.is_some() {
        let text = "inputs that break the schema of a foreign executor are not known";
        return Err(Finding::skipped(text));
    }
    let faulty = json!({"duration_ms": "long"});
    let task = probe.slow("odd", 1).with("inputs", faulty);
    let reply = probe
        .call("tasks.execute", json!({"tasks": [task.element()]}))
        .await?;
    if let Err(error) = &reply.outcome {
        if error.code == NO_EXECUTOR {
            return Err(Finding::skipped(format!(
                "{error}; --slow-executor names one"
            )));
        }
        return seen(reply.expect_error(INVALID_PARAMS)?.to_string());
    }
    let root = text_of(&reply.expect_result()?, "root_task_id")?;
    let task = probe.wait_for(&root, "failed").await?;
    seen(format!("the task fails: {}", shown(&task["error"])))
}

#[cfg(test)]
mod tests {
    use super::keywords;

    #[test]
    fn each_keyword_is_kept_and_broken_by_its_examples() {
        for (schema, sound, faulty) in keywords() {
            let validator = jsonschema::draft7::new(&schema).unwrap();
            assert!(validator.is_valid(&sound), "{schema} {sound}");
            assert!(!validator.is_valid(&faulty), "{schema} {faulty}");
        }
    }
}
