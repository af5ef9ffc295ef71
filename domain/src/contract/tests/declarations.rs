//! Declarations of types: their forms, and the messages about wrong ones.

use super::{fault, faults, outputs, type_of, types};
use crate::contract::{Outputs, Types};
use crate::{Payload, limits};
use serde_json::{Value, json};

#[test]
fn types_are_displayed_in_one_form() {
    let cases = [
        ("string", "string"),
        (" A | number ", "unknown"),
        ("array < Finding >", "array<Finding>"),
        ("map<array<integer>?>", "map<array<integer>?>"),
        ("Finding??", "Finding?"),
        ("(string?)?", "string?"),
        ("string | number?", "string|number?"),
        ("(string|number)?", "(string|number)?"),
        ("string|(number|null)", "string|number|null"),
        (r#""lo"|"h\u0069"|true"#, r#""lo"|"hi"|true"#),
        ("1|-2.5|1e3|false", "1|-2.5|1000.0|false"),
        (r#""a|b>?" | any"#, r#""a|b>?"|any"#),
    ];
    for (written, displayed) in cases {
        if displayed == "unknown" {
            assert_eq!(fault(&json!(written)).reason, "Unknown type");
            continue;
        }
        let parsed = type_of(&json!(written));
        assert_eq!(parsed.to_string(), displayed, "{written}");
        assert_eq!(type_of(&json!(displayed)), parsed);
    }
}

#[test]
fn inline_types_are_displayed_as_their_declarations() {
    let cases = [
        (json!({}), json!({})),
        (
            json!({"a": " string ", "b?": "any"}),
            json!({"a": "string", "b?": "any"}),
        ),
        (
            json!({"a": {"type": "string", "required": false}, "b": {"type": "null"}}),
            json!({"a?": "string", "b": "null"}),
        ),
        (
            json!({"a": {"type": "integer", "default": 1}}),
            json!({"a?": {"type": "integer", "default": 1}}),
        ),
        (
            json!({"a": {"type": {"type": "string"}}}),
            json!({"a": {"type": {"type": "string"}}}),
        ),
        (
            json!({"schema?": {"type": {"type": "string"}}}),
            json!({"schema?": {"type": {"type": "string"}}}),
        ),
        (json!({"enum": [1, "a"]}), json!({"enum": [1, "a"]})),
        (
            json!({"schema": {"minLength": 1}}),
            json!({"schema": {"minLength": 1}}),
        ),
    ];
    for (written, displayed) in cases {
        let parsed = type_of(&written);
        let text = parsed.to_string();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), displayed);
        assert_eq!(type_of(&displayed), parsed, "{written}");
    }
}

#[test]
fn members_around_a_type_are_known_by_their_names() {
    let schemas = json!({"outputs": {
        "around": {"type": "string", "required": false},
        "shape": {"type": "string", "size": "number"},
        "within": {"type": {"type": "string"}},
        "listed": {"enum": ["string"]},
        "shape_enum": {"enum": "string"},
        "shape_schema": {"schema": "string"},
        "marked?": "string",
    }});
    let outputs = outputs(&schemas);
    let shown = |key| outputs.type_of(key).unwrap().to_string();
    assert_eq!(shown("around"), "string");
    assert_eq!(shown("shape"), r#"{"size":"number","type":"string"}"#);
    assert_eq!(shown("within"), r#"{"type":"string"}"#);
    assert_eq!(shown("listed"), r#"{"enum":["string"]}"#);
    assert!(
        outputs
            .type_of("shape_enum")
            .unwrap()
            .accepts(&json!({"enum": "x"}))
    );
    assert!(
        outputs
            .type_of("shape_schema")
            .unwrap()
            .accepts(&json!({"schema": "x"}))
    );
    assert_eq!(outputs.is_required("around"), Some(false));
    assert_eq!(outputs.is_required("within"), Some(true));
    assert_eq!(outputs.is_required("marked"), Some(false));
    assert_eq!(outputs.is_required("marked?"), None);
    let keys: Vec<_> = outputs.keys().collect();
    let sorted = [
        "around",
        "listed",
        "marked",
        "shape",
        "shape_enum",
        "shape_schema",
        "within",
    ];
    assert_eq!(keys, sorted);
}

#[test]
fn a_text_that_is_no_type_is_faulted_at_its_character() {
    const UNKNOWN: &str = "at character 1: the name of a type: string, number, integer, boolean, object, array, null, any, array<T>, map<T>, or one of `types`";
    let cases = [
        ("", "at character 1: a type"),
        ("  ", "at character 3: a type"),
        ("string|", "at character 8: a type"),
        ("é|é", UNKNOWN),
        ("string number", "at character 8: `|`, `?` or the end"),
        ("string<number>", "at character 7: `|`, `?` or the end"),
        ("array<string", "at character 13: `|`, `?` or `>`"),
        ("array<>", "at character 7: a type"),
        ("array[]", "at character 6: `|`, `?` or the end"),
        ("(string", "at character 8: `|`, `?` or `)`"),
        ("map", "at character 4: `<` and the type of the values"),
        ("\"lo", "at character 1: a JSON string"),
        ("string|01", "at character 8: a JSON number"),
        ("1e999", "at character 1: a JSON number"),
        ("'lo'", "at character 1: a type"),
        ("a\u{301}b", UNKNOWN),
        ("string\0", "at character 7: `|`, `?` or the end"),
    ];
    for (text, expected) in cases {
        assert_eq!(fault(&json!(text)).expected, expected, "{text:?}");
    }
}

#[test]
fn an_unknown_name_is_compared_with_known_ones() {
    let hint = |text: &str| fault(&json!(text)).expected;
    assert_eq!(
        hint("array<Findng>"),
        "at character 7: the name of a type: string, number, integer, boolean, object, array, null, any, array<T>, map<T>, or one of `types`; did you mean `Finding`?"
    );
    for (name, meant) in [
        ("String", "string"),
        ("finding", "Finding"),
        ("int", "integer"),
        ("Bool", "boolean"),
        ("float", "number"),
        ("list", "array<T>"),
        ("array<dict>", "map<T>"),
        ("text", "string"),
        ("str", "string"),
        ("strng", "string"),
    ] {
        let hint = hint(name);
        let end = format!("; did you mean `{meant}`?");
        assert!(hint.ends_with(&end), "{name}: {hint}");
    }
    assert!(hint("uuid").ends_with("one of `types`"));
}

#[test]
fn what_surrounds_a_type_but_for_a_letter_is_told() {
    for (around, meant) in [
        (json!({"type": "string", "requird": false}), "required"),
        (json!({"type": "string", "defalt": "Paris"}), "default"),
    ] {
        let expected = fault(&json!({"city": around})).expected;
        assert_eq!(expected, format!("a known field; did you mean `{meant}`?"));
    }
    // Without a fault it is a shape as any other.
    let shape = json!({"type": "string", "require": "boolean"});
    assert!(Types::parse(Some(&json!({"T": shape}))).is_ok());
}

#[test]
fn types_without_faults_are_there_beside_those_with_faults() {
    let types = json!({
        "Bad": "strng", "On": {"bad": "array<Bad>"}, "A": "B", "B": "A?", "Good": {"n": "integer"},
    });
    let (compiled, faults) = Types::parse_partly(Some(&types));
    let places: Vec<String> = faults.iter().map(|fault| fault.path.join("/")).collect();
    assert_eq!(places, ["types/Bad", "types/A"]);
    let compiled = compiled.expect("the names are known");
    for (of, is_faulty) in [
        ("Bad", true),
        ("map<On>", true),
        ("B", true),
        ("Good", false),
        ("string", false),
    ] {
        let compiled = compiled.type_of(&json!(of)).expect("it is a type");
        assert_eq!(compiled.rests_on_fault(), is_faulty, "{of}");
    }
    assert!(compiled.type_of(&json!("Other")).is_err());
    let (unknown, faults) = Types::parse_partly(Some(&json!([])));
    assert!(unknown.is_none() && faults.len() == 1);
}

#[test]
fn what_is_no_type_is_faulted_where_it_stands() {
    let cases = [
        (json!({"x": null}), "outputs/x", "Invalid type"),
        (json!({"x": ["string"]}), "outputs/x", "Invalid type"),
        (
            json!({"x": {"a": {"b": 1}}}),
            "outputs/x/a/b",
            "Invalid type",
        ),
        (json!({"x": {"enum": []}}), "outputs/x/enum", "Invalid enum"),
        (
            json!({"x": {"enum": [1], "of": "any"}}),
            "outputs/x/enum",
            "Invalid type",
        ),
        (
            json!({"x": {"type": "any", "required": "no"}}),
            "outputs/x/required",
            "Wrong type",
        ),
        (
            json!({"x": {"type": "any", "default": 1}}),
            "outputs/x/default",
            "Unknown field",
        ),
        (
            json!({"x?": {"type": "any", "required": true}}),
            "outputs/x?/required",
            "Contradiction",
        ),
        (
            json!({"x": {"required": false}}),
            "outputs/x/required",
            "Invalid type",
        ),
        (json!({"": "any"}), "outputs/", "Invalid key"),
        (json!({"?": "any"}), "outputs/?", "Invalid key"),
        (json!({"x": {"": "any"}}), "outputs/x/", "Invalid key"),
        (
            json!({"x": "any", "x?": "any"}),
            "outputs/x",
            "Declared twice",
        ),
        (
            json!({"x": {"a": {"type": "integer", "default": "1"}}}),
            "outputs/x/a/default",
            "Wrong type",
        ),
        (
            json!({"x": {"schema": {"type": 1}}}),
            "outputs/x/schema/type",
            "Invalid JSON Schema",
        ),
        (
            json!({"x": {"schema": {"pattern": "(a)\\1"}}}),
            "outputs/x/schema/pattern",
            "Invalid JSON Schema",
        ),
        (
            json!({"x": {"schema": {"$ref": "http://example.org"}}}),
            "outputs/x/schema/$ref",
            "Invalid JSON Schema",
        ),
        (json!(["x"]), "outputs", "Wrong type"),
        (json!(null), "outputs", "Wrong type"),
    ];
    for (declared, path, reason) in cases {
        let found = faults(&json!({"outputs": declared}));
        assert_eq!(found, [(path.to_owned(), reason)], "{declared}");
    }
}

#[test]
fn names_of_types_are_checked() {
    let found = |types: Value| faults(&json!({"outputs": {"x": "any"}, "types": types}));
    for name in ["string", "any", "map", "true", "null", "array"] {
        assert_eq!(
            found(json!({name: "number"})),
            [(format!("types/{name}"), "Reserved name")]
        );
    }
    for name in ["", "1a", "a b", "a?", "a|b", "\0", "a\u{20dd}", "\"a\""] {
        assert_eq!(
            found(json!({name: "number"})),
            [(format!("types/{name}"), "Invalid name")],
            "{name:?}"
        );
    }
    assert_eq!(found(json!([])), [("types".to_owned(), "Wrong type")]);
    let good = json!({"a.b-c_1": "number", "Größe": "a.b-c_1", "_": "Größe"});
    assert!(Types::parse(Some(&good)).is_ok());
}

#[test]
fn a_name_that_only_means_itself_is_refused() {
    let circles = [
        json!({"A": "A"}),
        json!({"A": "A?"}),
        json!({"A": "B", "B": "A?"}),
        json!({"A": "string|B", "B": "number|(C?)", "C": "A", "D": "A|B"}),
    ];
    for types in circles {
        let found = faults(&json!({"outputs": {"x": "A"}, "types": types}));
        assert_eq!(found, [("types/A".to_owned(), "Circular type")], "{types}");
    }
    let structures = json!({"A": "array<A>", "B": "map<B>|B2", "B2": {"b": "B?"}, "C": {"c": "C"}});
    assert!(Types::parse(Some(&structures)).is_ok());
}

#[test]
fn all_faults_are_listed_together() {
    let schemas = json!({
        "types": {"A": "B", "null": "any", "C": {"x": 1, "y": "nope"}},
        "outputs": {"a": "A", "b": "D", "c": 7},
        "validation": "strict",
    });
    let places: Vec<_> = faults(&schemas).into_iter().map(|(path, _)| path).collect();
    let expected = [
        "types/A",
        "types/C/x",
        "types/C/y",
        "types/null",
        "outputs/b",
        "outputs/c",
        "validation",
    ];
    assert_eq!(places, expected);
}

#[test]
fn nothing_is_declared_without_outputs() {
    for schemas in [
        json!({}),
        json!({"types": 7, "validation": 7}),
        json!({"outputs": {}}),
    ] {
        assert!(
            Outputs::parse(schemas.as_object().unwrap())
                .unwrap()
                .is_none()
        );
    }
    let of = |schemas: Value| Outputs::of(&Payload::from_map(schemas.as_object().unwrap()));
    assert!(of(json!({"method": "x"})).is_none());
    assert!(of(json!({"outputs": {"x": "nope"}})).is_none());
    assert!(of(json!({"outputs": {"x": "Level"}, "types": types()})).is_some());
}

#[test]
fn each_limit_is_a_fault_that_names_it() {
    let many = |count: usize| -> Value {
        (0..count)
            .map(|i| (format!("k{i}"), json!("any")))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let deep = |levels: usize| (0..levels).fold(json!("any"), |it, _| json!({"a": it}));
    let arrays = |levels: usize| format!("{}any{}", "array<".repeat(levels), ">".repeat(levels));
    let long_key = "k".repeat(limits::KEY_CHARS_MAX + 1);
    let chain: Value = (0..100)
        .map(|i| (format!("T{i:02}"), json!(format!("T{:02}?", i + 1))))
        .chain([("T100".to_owned(), json!("any"))])
        .collect::<serde_json::Map<_, _>>()
        .into();
    let wide = vec!["any"; 800].join("|");
    let wide: Value = (0..20)
        .map(|i| (format!("k{i}"), json!(wide)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let schemas = vec![json!({"schema": {}}); limits::TYPE_SCHEMAS_MAX + 1];
    let schemas: Value = schemas
        .into_iter()
        .enumerate()
        .map(|(i, it)| (format!("k{i}"), it))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let text = " ".repeat(limits::TYPE_CHARS_MAX) + "any";
    let cases = [
        (
            json!({"outputs": many(limits::OUTPUTS_MAX + 1)}),
            "Too many outputs",
        ),
        (
            json!({"outputs": {"x": "any"}, "types": many(limits::TYPES_MAX + 1)}),
            "Too many types",
        ),
        (json!({"outputs": {long_key: "any"}}), "Invalid key"),
        (json!({"outputs": {"x": text}}), "Type too long"),
        (
            json!({"outputs": {"x": deep(limits::TYPE_DEPTH_MAX + 2)}}),
            "Type nested too deep",
        ),
        (
            json!({"outputs": {"x": arrays(100)}}),
            "Type nested too deep",
        ),
        (
            json!({"outputs": {"x": "T00"}, "types": chain}),
            "Type nested too deep",
        ),
        (json!({"outputs": wide}), "Too many types"),
        (json!({"outputs": schemas}), "Too many JSON Schemas"),
        (
            json!({"outputs": {"x": {"enum": vec![0; limits::ENUM_VALUES_MAX + 1]}}}),
            "Invalid enum",
        ),
    ];
    for (schemas, reason) in cases {
        let found = faults(&schemas);
        assert!(found.iter().all(|(_, it)| *it == reason), "{found:?}");
        assert!(!found.is_empty());
    }
    assert!(Outputs::parse(json!({"outputs": {"x": deep(60)}}).as_object().unwrap()).is_ok());
    assert!(Outputs::parse(json!({"outputs": {"x": arrays(20)}}).as_object().unwrap()).is_ok());
}

#[test]
fn an_unknown_member_beside_a_type_is_named() {
    let of = |declared: Value| {
        let schemas = json!({"outputs": {"v": declared}});
        let mut faults = Outputs::parse(schemas.as_object().unwrap()).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        let fault = faults.remove(0);
        (fault.path.join("/"), fault.reason, fault.expected)
    };
    let unit = "outputs/v/unit".to_owned();
    let (path, reason, expected) = of(json!({"type": "number", "unit": "kg", "required": true}));
    assert_eq!((path, reason), (unit.clone(), "Unknown field"));
    assert_eq!(expected, "one of: type, required");
    let (path, _, expected) = of(json!({"type": "number", "typ": "x", "required": false}));
    assert_eq!(path, "outputs/v/typ");
    assert_eq!(expected, "a known field; did you mean `type`?");
    // It could be a shape, if there were a type of that name.
    let (path, reason, expected) = of(json!({"type": "number", "unit": "kg"}));
    assert_eq!((path, reason), (unit, "Unknown field"));
    let begins = "`required` or `default` with `type`; as a field of a shape, ";
    assert!(expected.starts_with(begins), "{expected}");
    // In a field of a shape, where defaults may stand too.
    let (path, _, expected) = of(json!({"f": {"type": "number", "unit": 7, "required": true}}));
    assert_eq!(path, "outputs/v/f/unit");
    assert_eq!(expected, "one of: type, required, default");
}
