//! Which values conform to a type, and the messages about others.

use super::{map, outputs, type_of, types};
use serde_json::{Value, json};

/// A type, values that it accepts, and values that it refuses.
fn table() -> Vec<(Value, Vec<Value>, Vec<Value>)> {
    let refused_by_all = |kinds: &[Value]| kinds.to_vec();
    vec![
        (
            json!("string"),
            vec![json!(""), json!("x")],
            refused_by_all(&[json!(1), json!(null), json!(true), json!([]), json!({})]),
        ),
        (
            json!("number"),
            vec![json!(1), json!(-1.5), json!(0), json!(1e300)],
            vec![
                json!(true),
                json!(false),
                json!("1"),
                json!(null),
                json!([1]),
            ],
        ),
        (
            json!("integer"),
            vec![
                json!(1),
                json!(1.0),
                json!(-3),
                json!(u64::MAX),
                json!(1e300),
            ],
            vec![json!(1.5), json!(true), json!("1"), json!(null)],
        ),
        (
            json!("boolean"),
            vec![json!(true), json!(false)],
            vec![json!(0), json!(1), json!("true"), json!(null)],
        ),
        (
            json!("object"),
            vec![json!({}), json!({"a": null})],
            vec![json!([]), json!(null), json!("{}")],
        ),
        (
            json!("array"),
            vec![json!([]), json!([1, "x", null])],
            vec![json!({}), json!(null), json!("[]")],
        ),
        (json!("any"), vec![json!(null), json!(1), json!({})], vec![]),
        (
            json!("null"),
            vec![json!(null)],
            vec![json!(0), json!(false), json!("")],
        ),
        (
            json!("Level"),
            vec![
                json!("low"),
                json!(1),
                json!(1.0),
                json!(null),
                json!({"n": 1.0}),
            ],
            vec![
                json!("mid"),
                json!(true),
                json!(2),
                json!({}),
                json!({"n": true}),
            ],
        ),
        (
            json!("Money"),
            vec![json!(5), json!(0.5)],
            vec![json!({}), json!(null), json!(false)],
        ),
        (
            json!("Finding"),
            vec![
                json!({"source": "s", "confidence": 1}),
                json!({"source": "s", "confidence": 1, "note": "n", "extra": null}),
            ],
            vec![
                json!({}),
                json!([]),
                json!(null),
                json!({"source": "s"}),
                json!({"source": "s", "confidence": "1"}),
                json!({"source": null, "confidence": 1}),
                json!({"source": "s", "confidence": 1, "note": null}),
            ],
        ),
        (
            json!("array<Finding>?"),
            vec![
                json!([]),
                json!(null),
                json!([{"source": "", "confidence": 0}]),
            ],
            vec![json!([null]), json!([{}]), json!({})],
        ),
        (
            json!("map<integer|\"lo\">"),
            vec![json!({}), json!({"a": 1, "b": "lo"})],
            vec![json!([]), json!({"a": "hi"}), json!({"a": null})],
        ),
        (
            json!("1|true|\"x\""),
            vec![json!(1), json!(1.0), json!(true), json!("x")],
            vec![
                json!(2),
                json!(false),
                json!("1"),
                json!(null),
                json!("true"),
            ],
        ),
        (
            json!("9007199254740993"),
            vec![json!(9_007_199_254_740_993_u64)],
            vec![
                json!(9_007_199_254_740_992.0),
                json!(9_007_199_254_740_992_u64),
            ],
        ),
        (
            json!({"a": {"b": "integer"}, "c?": {"enum": [[1]]}}),
            vec![json!({"a": {"b": 1}}), json!({"a": {"b": 1}, "c": [1.0]})],
            vec![
                json!({"a": {}}),
                json!({"a": {"b": 1}, "c": [2]}),
                json!({"a": 1}),
            ],
        ),
        (
            json!({"a": {"type": "string", "default": "x"}}),
            vec![json!({}), json!({"a": "y"})],
            vec![json!({"a": null}), json!({"a": 1})],
        ),
        (
            json!({"schema": {"type": "array", "items": {"pattern": "^a"}, "maxItems": 2}}),
            vec![json!([]), json!(["a", 1])],
            vec![json!({}), json!(["b"]), json!([1, 2, 3])],
        ),
        (
            json!("Tree"),
            vec![json!({"value": 1, "children": [{"value": null, "children": []}]})],
            vec![
                json!({"value": 1, "children": [{"value": 1}]}),
                json!({"children": []}),
            ],
        ),
        (
            json!("Json"),
            vec![json!({"a": [null, 1, {"b": "c"}]})],
            vec![],
        ),
    ]
}

#[test]
fn a_value_is_of_a_type_or_not_and_is_never_coerced() {
    for (declaration, accepted, refused) in table() {
        let of = type_of(&declaration);
        for value in accepted {
            assert!(of.accepts(&value), "{of}: {value}");
            assert_eq!(of.mismatches(&value), []);
        }
        for value in refused {
            assert!(!of.accepts(&value), "{of}: {value}");
            assert_ne!(of.mismatches(&value), []);
        }
    }
}

#[test]
fn a_shallow_check_looks_for_the_fields_and_not_into_them() {
    let deep = json!({
        "types": types(),
        "outputs": {
            "finding": "Finding?", "list": "array<Finding>", "map": "map<integer>", "level": "Level",
            "money": "Money", "either": "Finding|integer",
        },
    });
    let mut shallow = deep.clone();
    shallow["validation"] = json!("shallow");
    let (deep, shallow) = (outputs(&deep), outputs(&shallow));
    let good = json!({
        "finding": {"source": "s", "confidence": 1}, "list": [], "map": {}, "level": "low", "money": 1,
        "either": 1,
    });
    let with = |key: &str, value: Value| {
        let mut output = map(&good);
        output.insert(key.to_owned(), value);
        output
    };
    let only_deep = [
        ("finding", json!({"source": 1, "confidence": null})),
        ("list", json!([1])),
        ("map", json!({"a": "b"})),
        ("either", json!({"source": 1, "confidence": 1})),
    ];
    for (key, value) in only_deep {
        assert!(deep.check(&with(key, value.clone())).is_err(), "{key}");
        assert_eq!(shallow.check(&with(key, value)), Ok(()), "{key}");
    }
    let both = [
        ("finding", json!({"source": "s"})),
        ("list", json!({})),
        ("map", json!([])),
        ("level", json!("mid")),
        ("money", json!("1")),
        ("either", json!({"source": "s"})),
    ];
    for (key, value) in both {
        for outputs in [&deep, &shallow] {
            let fault = outputs.check(&with(key, value.clone())).unwrap_err();
            assert_eq!(fault.mismatches.len(), 1, "{fault:?}");
            assert_eq!(fault.mismatches[0].key, key);
        }
    }
}

#[test]
fn a_mismatch_says_where_and_what() {
    let cases = [
        (json!("string"), json!(1), "", "string", "integer"),
        (json!("integer"), json!(1.5), "", "integer", "number"),
        (json!("Money"), json!("1"), "", "Money", "string"),
        (
            json!("array<Finding>"),
            json!({}),
            "",
            "array<Finding>",
            "object",
        ),
        (
            json!("array<Finding>"),
            json!([null]),
            "/0",
            "Finding",
            "null",
        ),
        (
            json!("array<Finding>"),
            json!([{"source": "s", "confidence": true}]),
            "/0/confidence",
            "number",
            "boolean",
        ),
        (
            json!("Finding?"),
            json!({"confidence": 1}),
            "/source",
            "string",
            "nothing",
        ),
        (json!("Finding?"), json!(1), "", "Finding?", "integer"),
        (
            json!("Finding|string"),
            json!(1),
            "",
            "Finding|string",
            "integer",
        ),
        (
            json!("Finding|string"),
            json!({"source": "s"}),
            "/confidence",
            "number",
            "nothing",
        ),
        (
            json!("map<integer>"),
            json!({"a/b~c": "x"}),
            "/a~1b~0c",
            "integer",
            "string",
        ),
        (
            json!("Level?"),
            json!("mid"),
            "",
            r#"Level? (one of "low", "high", 1, null, {"n":1})"#,
            "\"mid\"",
        ),
        (
            json!({"enum": [1]}),
            json!({"a": 2}),
            "",
            r#"{"enum":[1]}"#,
            r#"{"a":2}"#,
        ),
        (
            json!("\"lo\"|\"hi\""),
            json!("mid"),
            "",
            "\"lo\"|\"hi\"",
            "\"mid\"",
        ),
        (
            json!("\"auto\"|number"),
            json!("fast"),
            "",
            "\"auto\"|number",
            "\"fast\"",
        ),
        (
            json!("\"auto\"|number"),
            json!([]),
            "",
            "\"auto\"|number",
            "array",
        ),
        (
            json!({"schema": {"items": {"maximum": 3}}}),
            json!([1, 5]),
            "/1",
            "a number of at most 3",
            "5",
        ),
        (
            json!({"schema": {"minLength": 3}}),
            json!("ab"),
            "",
            "a text of at least 3 characters",
            "\"ab\"",
        ),
        (
            json!({"schema": {"minItems": 1}}),
            json!([]),
            "",
            "an array of at least 1 items",
            "array",
        ),
        (
            json!({"schema": {"type": "string"}}),
            json!(1),
            "",
            "string",
            "integer",
        ),
        (
            json!({"schema": {"required": ["a"]}}),
            json!({}),
            "/a",
            "a value",
            "nothing",
        ),
    ];
    for (declaration, value, pointer, expected, actual) in cases {
        let found = type_of(&declaration).mismatches(&value);
        assert_eq!(found.len(), 1, "{declaration}: {found:?}");
        let found = &found[0];
        let found = (&*found.pointer, &*found.expected, &*found.actual);
        assert_eq!(found, (pointer, expected, actual), "{declaration}");
    }
}

#[test]
fn a_long_value_is_told_in_short() {
    let long = json!("é".repeat(1000));
    let found = type_of(&json!("Level")).mismatches(&long);
    assert_eq!(found[0].actual.chars().count(), 101);
    let many: Vec<_> = (0..500).map(|i| format!("value {i}")).collect();
    let found = type_of(&json!({"enum": many})).mismatches(&json!("x"));
    assert_eq!(found[0].expected.chars().count(), 201);
}
