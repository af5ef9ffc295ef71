//! Whether a producer's values fit a consumer, decided before there are any values.

use super::{outputs, type_of, types};
use crate::contract::Compatible::{Definite, Maybe, Never};
use crate::contract::{Types, compatible};
use serde_json::json;

#[test]
fn types_are_compared_by_their_values() {
    let shape = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let cases = [
        (json!("integer"), json!("number"), Definite),
        (json!("number"), json!("integer"), Maybe),
        (json!("number"), json!("string"), Never),
        (json!("string"), json!("any"), Definite),
        (json!("any"), json!("string"), Maybe),
        (
            json!("any"),
            json!("string|number|boolean|null|object|array"),
            Definite,
        ),
        (json!("any"), json!("Json"), Definite),
        (json!("string"), json!("string?"), Definite),
        (json!("string?"), json!("string"), Maybe),
        (json!("null"), json!("string"), Never),
        (json!("boolean"), json!("true|false"), Definite),
        (json!("true"), json!("false"), Never),
        (json!("true"), json!("1"), Never),
        (json!("1"), json!("1.0"), Definite),
        (json!("\"lo\"|\"hi\""), json!("string"), Definite),
        (
            json!("\"lo\"|\"hi\""),
            json!({"enum": ["hi", "lo", "mid"]}),
            Definite,
        ),
        (json!("\"lo\"|\"hi\""), json!("\"lo\"|1"), Maybe),
        (json!("\"lo\"|\"hi\""), json!("\"mid\""), Never),
        (json!("string"), json!("\"lo\""), Maybe),
        (json!("Money"), json!("number"), Definite),
        (json!("array<integer>"), json!("array<number>"), Definite),
        (json!("array<string>"), json!("array<number>"), Maybe),
        (json!("array<string>"), json!("array"), Definite),
        (json!("array"), json!("array<any>"), Definite),
        (json!("array"), json!("array<string>"), Maybe),
        (json!("Finding"), json!("object"), Definite),
        (json!("Finding"), json!("map<any>"), Definite),
        (json!("Finding"), json!("map<string>"), Never),
        (json!("Finding"), json!("map<string|number>"), Maybe),
        (json!("Finding"), json!("map<boolean>"), Never),
        (json!("map<boolean>"), json!("Finding"), Never),
        (json!("map<integer>"), json!("map<number?>"), Definite),
        (
            json!("map<integer>"),
            shape(r#"{"a?": "number"}"#),
            Definite,
        ),
        (json!("map<integer>"), shape(r#"{"a": "number"}"#), Maybe),
        (json!("object"), json!({}), Definite),
        (json!("Finding"), shape(r#"{"source": "string"}"#), Definite),
        (shape(r#"{"source": "string"}"#), json!("Finding"), Maybe),
        (shape(r#"{"source": "number"}"#), json!("Finding"), Never),
        (shape(r#"{"note": "number"}"#), json!("Finding"), Never),
        (
            shape(r#"{"note?": "number"}"#),
            shape(r#"{"note?": "string"}"#),
            Maybe,
        ),
        (shape(r#"{}"#), shape(r#"{"x?": "any"}"#), Definite),
        (shape(r#"{}"#), shape(r#"{"x?": "string"}"#), Maybe),
        (
            json!("Tree"),
            shape(r#"{"children": "array<object>"}"#),
            Definite,
        ),
        (json!("Tree"), json!("Json"), Definite),
        (json!("array<Json>"), json!("Json"), Definite),
        (json!("Json"), json!("any"), Definite),
        (
            json!({"schema": {"minimum": 1}}),
            json!({"schema": {"minimum": 1}}),
            Definite,
        ),
        (json!({"schema": {"minimum": 1}}), json!("number"), Maybe),
        (json!("0"), json!({"schema": {"minimum": 1}}), Never),
        (json!("2|3"), json!({"schema": {"minimum": 1}}), Definite),
    ];
    for (producer, consumer, expected) in cases {
        let found = compatible(&type_of(&producer), &type_of(&consumer));
        assert_eq!(found, expected, "{producer} for {consumer}");
    }
}

#[test]
fn recursive_types_of_different_tasks_are_compared_by_structure() {
    let of = |types: serde_json::Value, text: &str| {
        let types = Types::parse(Some(&types)).unwrap();
        types.type_of(&json!(text)).unwrap()
    };
    let list = of(json!({"L": {"head": "integer", "tail": "L?"}}), "L");
    let pairs = json!({"A": {"head": "number", "tail": "B?"}, "B": {"head": "integer|string", "tail": "A?"}});
    assert_eq!(compatible(&list, &of(pairs.clone(), "A")), Definite);
    assert_eq!(compatible(&of(pairs, "A"), &list), Maybe);
    let texts = of(json!({"L": {"head": "string", "tail": "L?"}}), "L");
    assert_eq!(compatible(&list, &texts), Never);
}

#[test]
fn a_shallow_producer_promises_less_and_a_shallow_consumer_asks_for_less() {
    let of = |validation: &str| {
        let outputs = json!({"x": "array<integer>", "f": "Finding"});
        let schemas = json!({"types": types(), "outputs": outputs, "validation": validation});
        let outputs = self::outputs(&schemas);
        (outputs.type_of("x").unwrap(), outputs.type_of("f").unwrap())
    };
    let ((x, f), (shallow_x, shallow_f)) = (of("deep"), of("shallow"));
    assert_eq!(compatible(&shallow_x, &x), Maybe);
    assert_eq!(compatible(&x, &shallow_x), Definite);
    assert_eq!(compatible(&shallow_f, &f), Maybe);
    assert_eq!(compatible(&f, &shallow_f), Definite);
    assert_eq!(compatible(&shallow_f, &shallow_f), Definite);
}

#[test]
fn what_was_shown_under_an_assumption_falls_with_it() {
    let types = json!({
        "A": {"c": "C", "z": "integer"}, "C": {"a": "A"},
        "B": {"c": "D", "z": "string"}, "D": {"a": "B"},
    });
    let types = Types::parse(Some(&types)).unwrap();
    let of = |declaration: serde_json::Value| types.type_of(&declaration).unwrap();
    // C fits D for as long as A is taken to fit B, which `x` finds out not to be so.
    let producer = of(json!({"x": "A", "y": "C"}));
    let consumer = of(json!({"x": "B|any", "y": "D"}));
    assert_eq!(compatible(&producer, &consumer), Never);
}
