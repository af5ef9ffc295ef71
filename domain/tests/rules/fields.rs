//! The members of one task, each with its type and bounds; every fault at once.
//! spec: data-model / Task Schema; validation / Schema Validation; semantics / State machine

use crate::support::{faults, fields, path, resolved, update_faults};
use serde_json::{Value, json};
use taskledger_domain::Timestamp;
use taskledger_domain::task::Priority;
use taskledger_domain::testing::START;

fn with(field: &str, value: Value) -> Value {
    let mut task = json!({"name": "a"});
    task[field] = value;
    task
}

fn takes(field: &str, values: &[Value]) {
    for value in values {
        let found = faults(with(field, value.clone()));
        assert!(found.is_empty(), "{field}: {value} is refused: {found:?}");
    }
}

fn refuses(field: &str, values: &[Value]) {
    for value in values {
        let found = faults(with(field, value.clone()));
        assert_eq!(fields(&found), [field], "{field}: {value}");
    }
}

#[test]
fn the_complete_example_of_the_data_model_can_be_posted() {
    let found = faults(json!({
        "id": "550e8400-e29b-41d4-a716-446655440000",
        "parent_id": "660e8400-e29b-41d4-a716-446655440001",
        "user_id": "user-123", "name": "Crawl Website", "status": "pending", "priority": 1,
        "inputs": {"url": "https://example.com", "timeout": 60},
        "schemas": {"type": "local", "method": "web_crawler", "input_schema": {"type": "object"}},
        "params": {"retry_count": 3, "user_agent": "MyCrawler/1.0"},
        "result": null, "error": null,
        "dependencies": [{"id": "550e8400-e29b-41d4-a716-446655440002", "required": true}],
        "progress": 0.0, "created_at": "2025-01-15T10:30:00Z", "started_at": null,
        "updated_at": "2025-01-15T10:30:00Z", "completed_at": null
    }));
    assert_eq!(found, []);
}

#[test]
fn only_a_name_is_required_and_the_rest_has_defaults() {
    let task = resolved(json!({"name": "a"})).unwrap().tasks.remove(0);
    assert_eq!((task.parent, task.user_id), (None, None));
    assert_eq!(task.priority, Priority::NORMAL);
    assert!(task.dependencies.is_empty());
    assert_eq!(task.specification.inputs.as_str(), "{}");
    assert_eq!(
        (task.specification.schemas, task.specification.method),
        (None, None)
    );
    let found = faults(json!({}));
    assert_eq!(
        (fields(&found), found[0].reason.as_str()),
        (vec!["name"], "Required field is missing")
    );
}

#[test]
fn a_name_is_1_to_255_unicode_scalar_values() {
    takes(
        "name",
        &[
            json!("x"),
            json!("é".repeat(255)),
            json!("🦀".repeat(255)),
            json!("free text!"),
        ],
    );
    refuses(
        "name",
        &[
            json!(""),
            json!("x".repeat(256)),
            json!("🦀".repeat(256)),
            json!(1),
            json!(null),
            json!([]),
        ],
    );
    let found = faults(json!({"name": "🦀".repeat(256)}));
    assert_eq!(
        found[0].reason,
        "Too long: 256 characters, the limit is 255"
    );
}

#[test]
fn a_user_is_a_non_empty_string_or_null() {
    takes(
        "user_id",
        &[json!(null), json!("u"), json!("u".repeat(255))],
    );
    refuses(
        "user_id",
        &[json!(""), json!(1), json!({}), json!("u".repeat(256))],
    );
}

#[test]
fn an_id_is_a_uuid_v4_or_an_alias() {
    takes("id", &[json!("task1"), json!("a".repeat(255))]);
    refuses(
        "id",
        &[json!(""), json!(7), json!(null), json!("a".repeat(256))],
    );
}

#[test]
fn a_parent_is_text_or_null() {
    takes("parent_id", &[json!(null), json!("x")]);
    refuses("parent_id", &[json!(""), json!(7), json!({})]);
}

#[test]
fn a_priority_is_an_integer_from_0_to_3_and_2_when_null() {
    takes("priority", &[json!(0), json!(3), json!(2.0), json!(null)]);
    refuses(
        "priority",
        &[
            json!(-1),
            json!(4),
            json!(1.5),
            json!("1"),
            json!(true),
            json!(1e300),
            json!(256),
        ],
    );
    let task = resolved(with("priority", json!(null)))
        .unwrap()
        .tasks
        .remove(0);
    assert_eq!(task.priority.get(), 2);
}

#[test]
fn server_written_fields_are_accepted_only_as_a_new_task_has_them() {
    takes("status", &[json!("pending")]);
    refuses(
        "status",
        &[
            json!("in_progress"),
            json!("completed"),
            json!("failed"),
            json!("cancelled"),
            json!("done"),
            json!(0),
        ],
    );
    takes("progress", &[json!(0), json!(0.0), json!(-0.0)]);
    refuses(
        "progress",
        &[json!(0.5), json!(1), json!(1.5), json!(-1), json!("0")],
    );
    for field in ["result", "error", "started_at", "completed_at"] {
        takes(field, &[json!(null)]);
        refuses(
            field,
            &[
                json!({}),
                json!("x"),
                json!("2025-01-15T10:30:00Z"),
                json!(0),
            ],
        );
    }
    let reason = |v: Value| faults(with("progress", v))[0].reason.clone();
    assert_eq!(reason(json!(1.5)), "Value out of range");
    assert_eq!(reason(json!(0.5)), "Field is not writable");
}

#[test]
fn creation_and_update_times_are_accepted_when_they_are_iso_8601() {
    for field in ["created_at", "updated_at"] {
        takes(
            field,
            &[
                json!("2025-01-15T10:30:00Z"),
                json!("2025-01-15T10:30:00.123456+02:00"),
                json!("2025-01-15T10:30:00"),
                json!("2025-01-15"),
            ],
        );
        refuses(
            field,
            &[
                json!("yesterday"),
                json!(""),
                json!(1),
                json!("2025-13-15T10:30:00Z"),
                json!("2025-01-15T10:30:60Z"),
                json!("2025-01-15T10:30:60"),
                json!("+2025-01-15T10:30:00"),
                json!("2025-01-15T10:30:00\u{2212}02:00"),
            ],
        );
    }
}

#[test]
fn a_time_in_another_year_is_refused_with_the_accepted_years() {
    for time in ["9999-12-31T23:59:59-00:01", "10000-01-01T00:00:00Z"] {
        for task in [
            with("start_at", json!(time)),
            with("params", json!({"deadline": time})),
            with("created_at", json!(time)),
        ] {
            let found = faults(task);
            assert_eq!(found[0].reason, "Year out of range", "{found:?}");
            let expected = &found[0].expected;
            assert!(expected.contains("years 0000 to 9999"), "{expected}");
        }
    }
    let found = faults(with("start_at", json!("2026-01-31T12:00:60Z")));
    assert_eq!(found[0].reason, "Second out of range");
}

#[test]
fn unknown_fields_are_invalid() {
    refuses("colour", &[json!(1), json!(null)]);
    refuses("Name", &[json!("x")]);
    let expected = |field: &str| faults(with(field, json!(1))).remove(0).expected;
    assert_eq!(expected("lables"), "a known field; did you mean `labels`?");
    assert!(expected("parentId").ends_with("did you mean `parent_id`?"));
    assert!(expected("colour").starts_with("one of: "));
}

#[test]
fn inputs_are_an_object() {
    takes("inputs", &[json!({}), json!({"a": [1, {"b": null}]})]);
    refuses("inputs", &[json!([]), json!("x"), json!(1), json!(null)]);
}

#[test]
fn an_unknown_member_of_schemas_is_refused_with_what_was_probably_meant() {
    let fault = |schemas: Value| {
        let mut found = faults(with("schemas", schemas));
        assert_eq!(found.len(), 1, "{found:?}");
        let fault = found.remove(0);
        assert_eq!(fault.reason, "Unknown field");
        (path(&fault), fault.expected)
    };
    for (given, meant) in [
        ("wirring", "wiring"),
        ("Wiring", "wiring"),
        ("template", "templates"),
        ("output", "outputs"),
        ("inputschema", "input_schema"),
        ("tpye", "type"),
    ] {
        let (path, expected) = fault(json!({"method": "x", given: {}}));
        assert_eq!(path, format!("schemas/{given}"));
        assert_eq!(expected, format!("a known field; did you mean `{meant}`?"));
    }
    let (_, expected) = fault(json!({"method": "x", "colour": "red"}));
    let all = "one of: method, type, input_schema, wiring, templates, outputs, types, validation";
    assert_eq!(expected, all);
    // What a task shows can be written back.
    let of_document = json!({"method": "x", "workflow": {"name": "n", "phase": "p"}});
    assert!(faults(with("schemas", of_document)).is_empty());
    let updated = update_faults(json!({"schemas": {"method": "x", "wirring": {}}}));
    assert_eq!(path(&updated[0]), "updates/schemas/wirring");
}

#[test]
fn schemas_need_a_method_and_null_makes_a_group() {
    let schemas = |v: Value| {
        faults(with("schemas", v))
            .iter()
            .map(path)
            .collect::<Vec<_>>()
    };
    assert!(schemas(json!(null)).is_empty());
    for kind in ["local", "remote", "external"] {
        assert!(schemas(json!({"method": "x", "type": kind})).is_empty());
    }
    for wrong in [
        json!({}),
        json!({"method": ""}),
        json!({"method": 1}),
        json!({"method": null}),
    ] {
        assert_eq!(schemas(wrong), ["schemas/method"]);
    }
    assert_eq!(
        schemas(json!({"method": "m".repeat(256)})),
        ["schemas/method"]
    );
    assert_eq!(schemas(json!([])), ["schemas"]);
    let both = schemas(json!({"type": "far", "input_schema": 3}));
    assert_eq!(
        both,
        ["schemas/type", "schemas/input_schema", "schemas/method"]
    );
    let task = resolved(json!({"name": "a", "schemas": {"method": "x"}}))
        .unwrap()
        .tasks
        .remove(0);
    assert_eq!(task.specification.method.as_deref(), Some("x"));
    assert_eq!(
        task.specification.schemas.unwrap().as_str(),
        r#"{"method":"x"}"#
    );
}

#[test]
fn a_dependency_has_an_id_and_may_say_whether_it_is_required() {
    let faults = |v: Value| {
        faults(with("dependencies", v))
            .iter()
            .map(path)
            .collect::<Vec<_>>()
    };
    assert!(faults(json!([{"id": "x"}, {"id": "y", "required": false}])).is_empty());
    assert_eq!(faults(json!({})), ["dependencies"]);
    assert_eq!(faults(json!(null)), ["dependencies"]);
    assert_eq!(
        faults(
            json!([1, {}, {"id": 3}, {"id": ""}, {"id": "x", "required": 1}, {"id": "x", "soft": true}])
        ),
        [
            "dependencies/0",
            "dependencies/1/id",
            "dependencies/2/id",
            "dependencies/3/id",
            "dependencies/4/required",
            "dependencies/5/soft"
        ]
    );
    let r = resolved(json!({"name": "a", "children": [
        {"name": "b"}, {"name": "c", "dependencies": [{"id": "b"}, {"id": "a", "required": false}]},
    ]}));
    let required: Vec<_> = r.unwrap().tasks[2]
        .dependencies
        .iter()
        .map(|d| d.when.is_required())
        .collect();
    assert_eq!(required, [true, false], "required is the default");
}

#[test]
fn params_carry_retries_a_time_limit_and_a_deadline() {
    let params = |v: Value| {
        let task = resolved(with("params", v)).unwrap().tasks.remove(0);
        task.specification
    };
    let plain = params(json!({"retry_count": 2, "user_agent": "x"}));
    let retry = plain.retry.unwrap();
    assert_eq!((retry.max_attempts, retry.initial_delay_ms), (3, 1000));
    assert!(plain.params.unwrap().as_str().contains("user_agent"));
    assert_eq!(params(json!({"retry_count": 0})).retry, None);
    let whole = params(
        json!({"retry": {"max_attempts": 4, "initial_delay_ms": 5, "multiplier": 1.5, "max_delay_ms": 9}}),
    );
    let retry = whole.retry.unwrap();
    assert_eq!(
        (
            retry.max_attempts,
            retry.initial_delay_ms,
            retry.max_delay_ms
        ),
        (4, 5, 9)
    );
    assert!((retry.multiplier - 1.5).abs() < 1e-9);
    assert_eq!(
        params(json!({"timeout_seconds": 1.5})).timeout_ms,
        Some(1500)
    );
    let deadline = params(json!({"deadline": "2023-11-14T23:13:20+01:00"})).deadline;
    assert_eq!(deadline, Some(START));
    assert_eq!(params(json!({"deadline": null})).deadline, None);
    assert_eq!(params(json!(null)).params, None);
}

#[test]
fn faults_of_params_are_reported_with_their_places() {
    for (params, at) in [
        (json!(1), "params"),
        (json!({"retry_count": -1}), "params/retry_count"),
        (json!({"retry_count": 101}), "params/retry_count"),
        (json!({"retry_count": 1.5}), "params/retry_count"),
        (
            json!({"retry_count": 1, "retry": {"max_attempts": 2}}),
            "params/retry",
        ),
        (json!({"retry": 3}), "params/retry"),
        (json!({"retry": {}}), "params/retry/max_attempts"),
        (
            json!({"retry": {"max_attempts": 0}}),
            "params/retry/max_attempts",
        ),
        (
            json!({"retry": {"max_attempts": 102}}),
            "params/retry/max_attempts",
        ),
        (
            json!({"retry": {"max_attempts": 2, "multiplier": 0.5}}),
            "params/retry/multiplier",
        ),
        (
            json!({"retry": {"max_attempts": 2, "initial_delay_ms": -1}}),
            "params/retry/initial_delay_ms",
        ),
        (
            json!({"retry": {"max_attempts": 2, "max_delay_ms": 1e18}}),
            "params/retry/max_delay_ms",
        ),
        (
            json!({"retry": {"max_attempts": 2, "jitter": 1.5}}),
            "params/retry/jitter",
        ),
        (
            json!({"retry": {"max_attempts": 2, "max_elapsed_seconds": 0}}),
            "params/retry/max_elapsed_seconds",
        ),
        (
            json!({"retry": {"max_attempts": 2, "non_retryable_exit_codes": [0]}}),
            "params/retry/non_retryable_exit_codes",
        ),
        (
            json!({"retry": {"max_attempts": 2, "non_retryable_exit_codes": 7}}),
            "params/retry/non_retryable_exit_codes",
        ),
        (
            json!({"retry": {"max_attempts": 2, "non_retryable_statuses": [400, 200]}}),
            "params/retry/non_retryable_statuses",
        ),
        (
            json!({"retry": {"max_attempts": 2, "jittre": 1}}),
            "params/retry/jittre",
        ),
        (json!({"timeout_seconds": 0}), "params/timeout_seconds"),
        (json!({"timeout_seconds": "1"}), "params/timeout_seconds"),
        (
            json!({"timeout_seconds": 2_592_001}),
            "params/timeout_seconds",
        ),
        (json!({"deadline": "soon"}), "params/deadline"),
        (
            json!({"deadline": "2025-01-15T10:30:00"}),
            "params/deadline",
        ),
        (json!({"deadline": 5}), "params/deadline"),
    ] {
        let found = faults(with("params", params.clone()));
        assert_eq!(found.iter().map(path).collect::<Vec<_>>(), [at], "{params}");
    }
    assert!(
        faults(with(
            "params",
            json!({"retry_count": 100, "timeout_seconds": 2_592_000})
        ))
        .is_empty()
    );
}

#[test]
fn labels_are_keys_with_texts() {
    for (labels, at) in [
        (json!([]), "labels"),
        (json!("team=data"), "labels"),
        (json!({"team": 1}), "labels/team"),
        (json!({"team": null}), "labels/team"),
        (json!({"-team": "data"}), "labels/-team"),
        (json!({"team": "a\nb"}), "labels/team"),
        (json!({"team": "é".repeat(256)}), "labels/team"),
    ] {
        let found = faults(with("labels", labels.clone()));
        assert_eq!(found.iter().map(path).collect::<Vec<_>>(), [at], "{labels}");
    }
    for labels in [
        json!(null),
        json!({}),
        json!({"team": "data", "example.org/stage": "é".repeat(255)}),
    ] {
        assert!(faults(with("labels", labels)).is_empty());
    }
}

#[test]
fn every_fault_of_a_task_is_reported_at_once() {
    let found = faults(json!({
        "id": 1, "name": "", "user_id": "", "parent_id": 2, "priority": 5, "status": "failed",
        "progress": 2, "result": {}, "inputs": [], "schemas": {}, "params": {"retry_count": -1},
        "dependencies": [{}], "created_at": "x", "labels": 1, "wrong": true
    }));
    let mut names = fields(&found);
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "created_at",
            "id",
            "id",
            "inputs",
            "labels",
            "method",
            "name",
            "parent_id",
            "priority",
            "progress",
            "result",
            "retry_count",
            "status",
            "user_id",
            "wrong"
        ]
    );
    for fault in &found {
        assert!(
            !fault.reason.is_empty() && !fault.expected.is_empty(),
            "{fault:?}"
        );
    }
}

#[test]
fn a_violation_has_the_members_of_the_protocol_and_a_short_actual_value() {
    let found = faults(json!({"name": "a", "priority": 5, "status": "x".repeat(10_000)}));
    let texts: Vec<Value> = found
        .iter()
        .map(|f| serde_json::to_value(f).unwrap())
        .collect();
    let priority = texts.iter().find(|f| f["field"] == "priority").unwrap();
    let expected = json!({"field": "priority", "reason": "Value out of range", "expected": "0-3",
                          "actual": 5, "path": ["priority"]});
    assert_eq!(priority, &expected);
    let status = texts.iter().find(|f| f["field"] == "status").unwrap();
    assert!(status["actual"].as_str().unwrap().len() < 300);
    assert_eq!(
        Timestamp::FAR_FUTURE.plus_ms(u64::MAX),
        Timestamp::FAR_FUTURE
    );
}
