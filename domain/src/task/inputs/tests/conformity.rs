//! Which inputs are accepted, and the messages about others.

use super::super::{compile, limits};
use super::{accepts, brief, faults, path_text};
use crate::PathSegment;
use serde_json::{Value, json};

/// The only violation.
fn fault(schema: &Value, inputs: &Value) -> (String, String, String, String, Value) {
    let violations = faults(schema, inputs);
    assert_eq!(violations.len(), 1, "{violations:?}");
    let v = &violations[0];
    (
        v.field.clone(),
        path_text(v),
        v.reason.clone(),
        v.expected.clone(),
        v.actual.clone(),
    )
}

fn told(
    field: &str,
    path: &str,
    reason: &str,
    expected: &str,
    actual: Value,
) -> (String, String, String, String, Value) {
    (
        field.into(),
        path.into(),
        reason.into(),
        expected.into(),
        actual,
    )
}

#[test]
fn a_missing_member_is_named() {
    assert_eq!(
        fault(&json!({"required": ["url"]}), &json!({})),
        told("url", "url", "is required", "a value", Value::Null)
    );
    let nested = json!({"properties": {"a": {"items": {"required": ["b"]}}}});
    assert_eq!(
        fault(&nested, &json!({"a": [{"b": 1}, {}]})),
        told("b", "a.[1].b", "is required", "a value", Value::Null)
    );
}

#[test]
fn a_wrong_type_says_which_types_are_right() {
    let schema =
        json!({"properties": {"n": {"type": "integer"}, "s": {"type": ["string", "null"]}}});
    assert_eq!(
        fault(&schema, &json!({"n": 1.5})),
        told("n", "n", "has the wrong type", "integer", json!(1.5))
    );
    let (_, _, _, expected, _) = fault(&schema, &json!({"s": 1}));
    assert!(
        expected == "string or null" || expected == "null or string",
        "{expected}"
    );
}

#[test]
fn a_value_outside_an_enum_says_what_is_in_it() {
    let schema = json!({"properties": {"color": {"enum": ["red", 1, null]}}});
    assert_eq!(
        fault(&schema, &json!({"color": "blue"})),
        told(
            "color",
            "color",
            "is not one of the allowed values",
            r#"one of "red", 1, null"#,
            json!("blue")
        )
    );
    let many = json!({"properties": {"n": {"enum": (0..30).collect::<Vec<_>>()}}});
    let (_, _, _, expected, _) = fault(&many, &json!({"n": 99}));
    assert!(expected.ends_with("19, and 10 more"), "{expected}");
}

#[test]
fn alternatives_are_counted_and_not_spelled_out() {
    let schema = json!({"properties": {"x": {"oneOf": [{"type": "string"}, {"minimum": 5}, {"minimum": 6}]}}});
    assert_eq!(
        fault(&schema, &json!({"x": 1})),
        told(
            "x",
            "x",
            "matches none of the alternatives",
            "a value that matches exactly one of 3 alternatives (`oneOf`)",
            json!(1)
        )
    );
    assert_eq!(
        fault(&schema, &json!({"x": 7})).2,
        "matches several of the alternatives"
    );
    let any = json!({"properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}});
    assert_eq!(
        fault(&any, &json!({"x": 1})).3,
        "a value that matches one of 2 alternatives (`anyOf`)"
    );
}

#[test]
fn each_unknown_member_is_a_violation_of_its_own() {
    let schema = json!({"properties": {"a": true}, "additionalProperties": false});
    let violations = faults(&schema, &json!({"a": 1, "b": 2, "c": {"d": 3}}));
    assert_eq!(
        brief(&violations),
        [
            (
                "b".into(),
                "is not a known member".into(),
                "one of `a`".into()
            ),
            (
                "c".into(),
                "is not a known member".to_owned(),
                "one of `a`".to_owned()
            ),
        ]
    );
    assert_eq!(violations[1].actual, json!({"d": 3}));
    let schema =
        json!({"properties": {"duration_ms": true, "o": schema}, "additionalProperties": false});
    let expected = |inputs| brief(&faults(&schema, &inputs))[0].2.clone();
    assert_eq!(
        expected(json!({"duration": 1})),
        "a known member; did you mean `duration_ms`?"
    );
    assert_eq!(expected(json!({"seconds": 1})), "one of `duration_ms`, `o`");
    assert_eq!(expected(json!({"o": {"b": 1}})), "no such member");
}

#[test]
fn places_in_nested_arrays_are_exact_and_numbers_as_names_stay_names() {
    let schema = json!({
        "properties": {
            "m": {"items": {"items": {"type": "number"}}},
            "o": {"properties": {"0": {"properties": {"": {"type": "null"}, "a/b~": {"type": "null"}}}}}
        }
    });
    let violations = faults(
        &schema,
        &json!({"m": [[1], [2, "x"]], "o": {"0": {"": 1, "a/b~": 2}}}),
    );
    let paths: Vec<_> = violations.iter().map(|v| v.path.clone()).collect();
    let key = |k: &str| PathSegment::from(k);
    assert!(
        paths.contains(&vec![key("m"), 1.into(), 1.into()]),
        "{paths:?}"
    );
    assert!(
        paths.contains(&vec![key("o"), key("0"), key("")]),
        "{paths:?}"
    );
    assert!(
        paths.contains(&vec![key("o"), key("0"), key("a/b~")]),
        "{paths:?}"
    );
}

#[test]
fn a_fault_of_the_whole_is_a_fault_of_inputs() {
    assert_eq!(
        fault(&json!({"minProperties": 1}), &json!({})),
        told(
            "inputs",
            "",
            "has too few members",
            "at least 1 members",
            json!({})
        )
    );
}

#[test]
fn bounds_say_their_number() {
    for (schema, value, expected) in [
        (json!({"maximum": 5}), json!(6), "at most 5"),
        (json!({"exclusiveMaximum": 5}), json!(5), "less than 5"),
        (json!({"minimum": 5}), json!(4), "at least 5"),
        (json!({"exclusiveMinimum": 5}), json!(5), "more than 5"),
        (json!({"multipleOf": 2}), json!(3), "a multiple of 2"),
        (
            json!({"multipleOf": 9_007_199_254_740_993_u64}),
            json!(9_007_199_254_740_992_u64),
            "a multiple of 9007199254740993",
        ),
        (
            json!({"maxLength": 2}),
            json!("äöü"),
            "at most 2 characters",
        ),
        (json!({"minLength": 2}), json!("ä"), "at least 2 characters"),
        (json!({"maxItems": 1}), json!([1, 2]), "at most 1 items"),
        (json!({"minItems": 3}), json!([1, 2]), "at least 3 items"),
        (
            json!({"items": [true], "additionalItems": false}),
            json!([1, 2]),
            "at most 1 items",
        ),
        (
            json!({"uniqueItems": true}),
            json!([1, 1.0]),
            "unique items",
        ),
        (json!({"const": {"a": 1}}), json!(1), r#"{"a":1}"#),
        (
            json!({"pattern": "^a"}),
            json!("b"),
            "text that matches `^a`",
        ),
        // ECMA 262: a dot matches no line terminator.
        (
            json!({"pattern": "^a.b$"}),
            json!("a\rb"),
            "text that matches `^a.b$`",
        ),
        (
            json!({"pattern": "^a.b$"}),
            json!("a\u{2028}b"),
            "text that matches `^a.b$`",
        ),
        (
            json!({"contains": {"const": 1}}),
            json!([2]),
            "an item that matches the schema under `contains`",
        ),
        (
            json!({"not": {"type": "string"}}),
            json!("x"),
            "a value that does not match the schema under `not`",
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            "names: at most 1 characters",
        ),
        (json!(false), json!(1), "no value"),
    ] {
        let inputs = json!({"v": value});
        let told = fault(&json!({"properties": {"v": schema}}), &inputs);
        assert_eq!(
            (told.1.as_str(), told.3.as_str()),
            ("v", expected),
            "{schema}"
        );
    }
}

#[test]
fn conditions_and_dependencies_apply() {
    let schema = json!({
        "if": {"properties": {"kind": {"const": "file"}}, "required": ["kind"]},
        "then": {"required": ["path"]},
        "else": {"required": ["text"]},
        "dependencies": {"user": ["password"], "retries": {"required": ["delay"]}}
    });
    assert!(accepts(&schema, &json!({"kind": "file", "path": "/x"})));
    assert!(accepts(&schema, &json!({"text": "t"})));
    let paths: Vec<_> = faults(&schema, &json!({"kind": "file", "user": "u", "retries": 1}))
        .iter()
        .map(path_text)
        .collect();
    for name in ["path", "password", "delay"] {
        assert!(paths.iter().any(|p| p == name), "{name} in {paths:?}");
    }
}

#[test]
fn the_formats_of_draft_07_are_checked() {
    for (format, good, bad) in [
        ("date-time", "2026-01-02T03:04:05Z", "yesterday"),
        ("date", "2026-02-28", "2026-02-30"),
        ("time", "03:04:05Z", "25:00:00Z"),
        ("email", "a@example.com", "a"),
        ("idn-email", "ä@example.com", "ä"),
        ("hostname", "example.com", "-x-.com"),
        ("idn-hostname", "bücher.example", "〮bad.example"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", ":::"),
        ("uri", "https://example.com/x", "not a uri"),
        ("uri-reference", "/x", "\\x"),
        ("iri", "https://example.com/ä", "ä ä"),
        ("iri-reference", "/ä", "\\ä"),
        ("uri-template", "/x/{id}", "/x/{id"),
        ("json-pointer", "/a/0", "a"),
        ("relative-json-pointer", "1/a", "/a"),
        ("regex", "^a$", "("),
    ] {
        let schema = json!({"properties": {"v": {"format": format}}});
        assert!(accepts(&schema, &json!({"v": good})), "{format} {good}");
        assert_eq!(
            fault(&schema, &json!({"v": bad})).3,
            format!("format `{format}`"),
            "{bad}"
        );
    }
}

#[test]
fn the_format_uuid_means_version_4() {
    let schema = json!({"properties": {"v": {"format": "uuid"}}});
    assert!(accepts(
        &schema,
        &json!({"v": "9ff6a1a5-7d8a-4c61-8a3c-5d3f8f2b3a11"})
    ));
    assert!(accepts(
        &schema,
        &json!({"v": "9FF6A1A5-7D8A-4C61-8A3C-5D3F8F2B3A11"})
    ));
    assert!(
        accepts(&schema, &json!({"v": 5})),
        "formats are about texts"
    );
    for bad in [
        "9ff6a1a5-7d8a-1c61-8a3c-5d3f8f2b3a11",
        "9ff6a1a5-7d8a-4c61-ca3c-5d3f8f2b3a11",
        "9ff6a1a57d8a4c618a3c5d3f8f2b3a11",
        "",
    ] {
        assert_eq!(
            fault(&schema, &json!({"v": bad})).3,
            "format `uuid` (version 4)",
            "{bad}"
        );
    }
}

#[test]
fn unknown_formats_and_keywords_are_annotations() {
    let schema = json!({"properties": {"v": {"format": "colour", "x-unit": {"a": 1}}}});
    assert!(accepts(&schema, &json!({"v": "blue"})));
}

#[test]
fn long_lists_of_violations_are_cut_and_counted() {
    let schema = json!({"additionalProperties": {"type": "string"}});
    let with = |count: usize| {
        let members: serde_json::Map<_, _> =
            (0..count).map(|i| (format!("m{i:03}"), json!(i))).collect();
        faults(&schema, &Value::Object(members))
    };
    assert_eq!(with(limits::LISTED_MAX).len(), limits::LISTED_MAX);
    let cut = with(limits::LISTED_MAX + 7);
    assert_eq!(cut.len(), limits::LISTED_MAX + 1);
    assert_eq!(
        cut[limits::LISTED_MAX].reason,
        "7 more violations are not listed"
    );
}

#[test]
fn the_order_of_violations_is_always_the_same() {
    let names: Vec<_> = (0..50).map(|i| format!("n{}", i * 7919 % 50)).collect();
    let properties: serde_json::Map<_, _> = names
        .iter()
        .map(|n| (n.clone(), json!({"type": "string"})))
        .collect();
    let inputs: serde_json::Map<_, _> = names.iter().map(|n| (n.clone(), json!(1))).collect();
    let schema = json!({"properties": properties, "required": ["z", "y", "x"]});
    let first = brief(&faults(&schema, &Value::Object(inputs.clone())));
    for _ in 0..10 {
        assert_eq!(
            brief(&faults(&schema, &Value::Object(inputs.clone()))),
            first
        );
    }
}

#[test]
fn actual_values_are_shortened() {
    let schema = json!({"properties": {"v": {"type": "null"}}});
    let (_, _, _, _, actual) = fault(&schema, &json!({"v": "x".repeat(100_000)}));
    assert!(actual.to_string().len() < 400);
}

#[test]
fn one_fault_in_large_inputs_is_found() {
    let schema = json!({"properties": {"v": {"items": {"type": "integer"}}}});
    let mut values: Vec<Value> = (0..200_000).map(|_| json!(1)).collect();
    assert!(accepts(&schema, &json!({"v": values.clone()})));
    values[150_000] = json!("x");
    assert_eq!(fault(&schema, &json!({"v": values})).1, "v.[150000]");
}

#[test]
fn a_compiled_schema_says_what_it_weighs() {
    let small = compile(&json!({}))
        .expect("an empty schema compiles")
        .weight();
    let with_pattern = compile(&json!({"pattern": "a"}))
        .expect("it compiles")
        .weight();
    assert!(small >= 1024);
    assert!(with_pattern >= small + limits::PATTERN_PROGRAM_BYTES_MAX);
}
