//! One step per event kind and old version: the JSON of version v becomes the JSON of version v + 1.

use serde_json::Value;

/// How the stored form of a kind changed from one version to the next.
pub(super) struct Step {
    /// Name of the event.
    pub(super) kind: &'static str,
    /// The old version.
    pub(super) from: u16,
    /// Old JSON to new JSON.
    pub(super) apply: fn(Value) -> Value,
}

/// Other versions have only added members, and values of members, so far; but version 3 of `RunEnded` counts
/// fewer tasks: older ones do not say which of those that they count are groups.
pub(super) const STEPS: &[Step] = &[Step {
    kind: "TaskSuspended",
    from: 1,
    apply: with_schema,
}];

/// Version 1 took `fields` of one member `schema` for a JSON Schema. In version 2 that is a form with such a field.
fn with_schema(mut event: Value) -> Value {
    let question = event.get_mut("question").and_then(Value::as_object_mut);
    if let Some(question) = question
        && let Some(Value::Object(fields)) = question.get("fields")
        && let Some(schema @ (Value::Object(_) | Value::Bool(_))) = fields.get("schema")
        && fields.len() == 1
    {
        let schema = schema.clone();
        question.remove("fields");
        question.insert("schema".to_owned(), schema);
    }
    event
}

/// `data` of `kind` in version `found`, brought to version `known`, one step after the other.
///
/// A version without a step keeps its JSON: the next one only added members that have defaults, or
/// values.
pub(super) fn upcast(steps: &[Step], kind: &str, found: u16, known: u16, data: Value) -> Value {
    (found..known).fold(data, |data, version| {
        let step = steps.iter().find(|s| s.kind == kind && s.from == version);
        match step {
            Some(step) => (step.apply)(data),
            None => data,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use crate::flow::Event;
    use crate::question::Expected;
    use serde_json::json;

    #[test]
    fn a_form_of_version_1_keeps_its_meaning() {
        let stored = |question: &str| {
            format!(
                r#"{{"task_id":"{0}","attempt":1,"suspension_id":"{0}","question":{question},"on_answer":"continue","on_expiry":"fail"}}"#,
                "550e8400-e29b-41d4-a716-446655440000"
            )
        };
        let asked = |version: u16, form: &str| {
            let question = format!(r#"{{"question":"?","response_type":"form",{form}}}"#);
            let event = decode("TaskSuspended", version, &stored(&question));
            let Ok(Event::TaskSuspended(asked)) = event else {
                panic!("{event:?}");
            };
            Expected::of(&asked.question).expect("version 1 has asked it")
        };
        let (number, schema) = (json!({"n": 1}), json!({"schema": {}}));
        // A JSON Schema in version 1, a field of that name in version 2.
        let fields = r#""fields":{"schema":{"type":"object"}}"#;
        assert_eq!(asked(1, fields).check(&number), Ok(()));
        assert!(asked(2, fields).check(&number).is_err());
        assert_eq!(asked(2, fields).check(&schema), Ok(()));
        let fields = r#""fields":{"schema":{"type":"object","required":["n"]}}"#;
        assert_eq!(asked(1, fields).check(&number), Ok(()));
        assert!(asked(1, fields).check(&schema).is_err());
        // Other forms are read alike.
        for form in [
            r#""schema":{"required":["n"]}"#,
            r#""fields":{"n":"integer","schema?":{"type":"string"}}"#,
            r#""fields":{"enum":[{"n":1}]}"#,
        ] {
            for version in [1, 2] {
                let asked = asked(version, form);
                assert_eq!(asked.check(&number), Ok(()), "{version} {form}");
                assert!(asked.check(&json!({})).is_err(), "{version} {form}");
            }
        }
    }
}
