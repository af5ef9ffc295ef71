//! Which schemas are accepted, and the messages about others.

use super::super::{compile, limits};
use super::{accepts, brief, path_text};
use crate::violation::Violation;
use serde_json::{Map, Value, json};

fn refused(schema: &Value) -> Vec<Violation> {
    compile(schema).expect_err("the schema of this test is refused")
}

fn reason(schema: &Value) -> String {
    refused(schema)[0].reason.clone()
}

#[test]
fn draft_07_is_the_only_dialect() {
    for dialect in [
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
    ] {
        assert!(compile(&json!({"$schema": dialect})).is_ok(), "{dialect}");
    }
    for dialect in [
        json!("http://json-schema.org/draft-04/schema#"),
        json!("https://json-schema.org/draft/2020-12/schema"),
        json!("https://example.com/my-schema"),
        json!(7),
    ] {
        let violations = refused(&json!({"$schema": dialect}));
        assert_eq!(path_text(&violations[0]), "$schema", "{dialect}");
        assert_eq!(violations[0].actual, dialect);
    }
    let nested =
        json!({"properties": {"a": {"$schema": "http://json-schema.org/draft-04/schema#"}}});
    assert_eq!(path_text(&refused(&nested)[0]), "properties.a.$schema");
}

#[test]
fn all_faults_of_a_schema_are_listed_with_their_paths() {
    let violations = refused(&json!({
        "type": "objekt",
        "properties": {"a": {"minLength": -1}, "b": {"required": "a"}}
    }));
    let paths: Vec<_> = violations.iter().map(path_text).collect();
    assert!(paths.contains(&"type".to_owned()), "{paths:?}");
    assert!(
        paths.contains(&"properties.a.minLength".to_owned()),
        "{paths:?}"
    );
    assert!(
        paths.contains(&"properties.b.required".to_owned()),
        "{paths:?}"
    );
}

#[test]
fn what_is_neither_object_nor_boolean_is_no_schema() {
    for value in [json!(null), json!(1), json!("x"), json!([])] {
        let violations = refused(&value);
        assert_eq!(violations[0].field, "input_schema");
        assert_eq!(violations[0].reason, "is not a schema");
    }
    assert!(accepts(&json!(true), &json!({"a": 1})));
    assert_eq!(
        super::faults(&json!(false), &json!({}))[0].reason,
        "is not allowed here"
    );
}

#[test]
fn references_inside_the_schema_work_wherever_they_point() {
    let schema = json!({
        "$id": "https://example.com/task.json",
        "definitions": {
            "a/b~c %": {"type": "object", "properties": {"deep": {"type": "integer"}}},
            "named": {"$id": "#named", "type": "boolean"},
        },
        "properties": {
            "deep": {"$ref": "#/definitions/a~1b~0c%20%25/properties/deep"},
            "named": {"$ref": "#named"},
            "absolute": {"$ref": "https://example.com/task.json#/definitions/named"},
            "self": {"$ref": "#"},
            "list": {"items": [{"type": "string"}, {"$ref": "#/properties/list/items/0"}]},
        }
    });
    let good = json!({"deep": 1, "named": true, "absolute": false, "self": {"deep": 2}, "list": ["a", "b"]});
    assert!(accepts(&schema, &good));
    let bad =
        json!({"deep": "1", "named": 1, "absolute": 0, "self": {"deep": "x"}, "list": ["a", 1]});
    let mut paths: Vec<_> = super::faults(&schema, &bad).iter().map(path_text).collect();
    paths.sort();
    assert_eq!(
        paths,
        ["absolute", "deep", "list.[1]", "named", "self.deep"]
    );
}

#[test]
fn definitions_beside_a_reference_at_the_root_are_found() {
    let schema = json!({
        "$ref": "#/definitions/node",
        "type": "string",
        "definitions": {"node": {"required": ["a"]}}
    });
    assert!(accepts(&schema, &json!({"a": 1})));
    assert_eq!(path_text(&super::faults(&schema, &json!({}))[0]), "a");
}

#[test]
fn references_that_leave_the_schema_are_refused() {
    for reference in [
        "http://127.0.0.1:9/schema.json",
        "https://example.com/schema.json#/definitions/a",
        "http://json-schema.org/draft-07/schema#",
        "file:///etc/passwd",
        "other.json",
        "//example.com/x",
        "urn:uuid:9ff6a1a5-7d8a-4c61-8a3c-5d3f8f2b3a11",
        "#/definitions/absent",
        "#absent",
        "#/title",
        "#/%zz",
        "",
    ] {
        let violations = refused(&json!({
            "title": "t",
            "properties": {"a": {"$ref": reference}}
        }));
        assert_eq!(violations.len(), 1, "{reference}");
        assert_eq!(
            path_text(&violations[0]),
            "properties.a.$ref",
            "{reference}"
        );
        assert_eq!(violations[0].actual, json!(reference));
    }
}

#[test]
fn an_id_below_the_root_must_be_a_name() {
    let violations = refused(&json!({"properties": {"a": {"$id": "http://localhost/x"}}}));
    assert_eq!(path_text(&violations[0]), "properties.a.$id");
}

#[test]
fn a_reference_that_is_no_text_is_named() {
    let violations = refused(&json!({"properties": {"a": {"$ref": 5}}}));
    assert_eq!(path_text(&violations[0]), "properties.a.$ref");
}

#[test]
fn a_member_of_the_author_cannot_set_the_price() {
    let schema = json!({"x-fuel": [9_000_000_000_u64, 0, 0, 0], "x-other": {"$ref": "http://x/"}});
    assert!(accepts(&schema, &json!({"a": 1})));
}

#[test]
fn schema_text_has_a_limit() {
    let with_bytes = |bytes: usize| {
        let empty = json!({"description": ""}).to_string().len();
        json!({"description": "d".repeat(bytes - empty)})
    };
    assert!(compile(&with_bytes(limits::SCHEMA_BYTES_MAX)).is_ok());
    let violations = refused(&with_bytes(limits::SCHEMA_BYTES_MAX + 1));
    assert_eq!(violations[0].reason, "is too large");
    assert_eq!(violations[0].actual, json!(limits::SCHEMA_BYTES_MAX + 1));
}

#[test]
fn nesting_has_a_limit() {
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"not": inner}));
    assert!(compile(&nested(limits::SCHEMA_DEPTH_MAX)).is_ok());
    assert_eq!(
        reason(&nested(limits::SCHEMA_DEPTH_MAX + 1)),
        "is nested too deeply"
    );
}

#[test]
fn the_number_of_subschemas_has_a_limit() {
    let with = |count: usize| {
        let properties: Map<String, Value> = (1..count)
            .map(|i| (format!("p{i}"), json!({"type": "string"})))
            .collect();
        json!({"properties": properties})
    };
    assert!(compile(&with(limits::SUBSCHEMAS_MAX)).is_ok());
    assert_eq!(
        reason(&with(limits::SUBSCHEMAS_MAX + 1)),
        "has too many subschemas"
    );
}

#[test]
fn the_number_of_patterns_has_a_limit() {
    let with = |count: usize| {
        let all: Vec<_> = (0..count)
            .map(|i| json!({"pattern": format!("^{i}$")}))
            .collect();
        json!({"allOf": all})
    };
    assert!(compile(&with(limits::PATTERNS_MAX)).is_ok());
    assert_eq!(
        reason(&with(limits::PATTERNS_MAX + 1)),
        "has too many regular expressions"
    );
    let names: Map<String, Value> = (0..=limits::PATTERNS_MAX)
        .map(|i| (format!("^{i}"), json!(true)))
        .collect();
    assert_eq!(
        reason(&json!({"patternProperties": names})),
        "has too many regular expressions"
    );
}

#[test]
fn the_length_of_a_pattern_has_a_limit() {
    let with = |bytes: usize| json!({"pattern": "a".repeat(bytes)});
    assert!(compile(&with(limits::PATTERN_BYTES_MAX)).is_ok());
    assert_eq!(
        reason(&with(limits::PATTERN_BYTES_MAX + 1)),
        "is too long for a regular expression"
    );
}

#[test]
fn the_number_of_values_in_an_enum_has_a_limit() {
    let with = |count: usize| json!({"enum": (0..count).collect::<Vec<_>>()});
    assert!(compile(&with(limits::ENUM_VALUES_MAX)).is_ok());
    assert_eq!(
        reason(&with(limits::ENUM_VALUES_MAX + 1)),
        "has too many values"
    );
}

#[test]
fn patterns_that_people_write_fit_the_limits() {
    for pattern in [
        r"^[a-z]{1,255}$",
        r"^\d{3}-\d{4}$",
        r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$",
        r"^(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$",
        r"^\p{L}+$",
        r"^https?://[^\s/$.?#].[^\s]*$",
    ] {
        assert!(compile(&json!({"pattern": pattern})).is_ok(), "{pattern}");
    }
}

#[test]
fn patterns_that_cannot_be_matched_in_linear_time_are_refused_where_they_stand() {
    for pattern in ["(?=a)b", r"(a)\1", "("] {
        let violations = refused(&json!({"properties": {"a": {"pattern": pattern}}}));
        assert_eq!(
            brief(&violations)[0].0,
            "properties.a.pattern",
            "{pattern}: {violations:?}"
        );
        let violations = refused(&json!({"patternProperties": {(pattern): true}}));
        assert!(
            path_text(&violations[0]).starts_with("patternProperties"),
            "{pattern}: {violations:?}"
        );
    }
}

#[test]
fn any_character_and_a_backspace_mean_what_ecma_262_says() {
    for (pattern, matching, others) in [
        (r"^[\b]$", vec!["\u{8}"], vec!["b", "\\", ""]),
        ("^[^]$", vec!["a", "\n", "\u{2028}", "é"], vec!["", "ab"]),
        ("^a[^]*b$", vec!["ab", "a\n]b"], vec!["a", "ba"]),
        (r"^[^]a\]$", vec!["\na]", "]a]"], vec!["a]", "\n]"]),
    ] {
        let schema = json!({"properties": {"v": {"pattern": pattern}}});
        for text in matching {
            assert!(accepts(&schema, &json!({"v": text})), "{pattern}: {text:?}");
        }
        for text in others {
            let violations = super::faults(&schema, &json!({"v": text}));
            let expected = format!("text that matches `{pattern}`").replace('\\', r"\\");
            assert_eq!(violations[0].expected, expected, "{pattern}: {text:?}");
        }
    }
}

#[test]
fn a_class_that_is_not_closed_is_named_in_the_reason() {
    let found = refused(&json!({"properties": {"a": {"pattern": "^[a-z"}}}));
    let reason = "is not a regular expression: a class that begins with `[` is not closed";
    let expected = r"`]` at the end of each class, or `\[` for the character itself";
    let told = (
        "properties.a.pattern".to_owned(),
        reason.to_owned(),
        expected.to_owned(),
    );
    assert_eq!(brief(&found), [told]);
    assert_eq!(refused(&json!({"pattern": "["}))[0].reason, reason);
}
