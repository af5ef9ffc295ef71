//! Hostile types and values: each check ends within its limits.

use super::{map, outputs};
use crate::contract::{Compatible, Mismatch, Outputs, Types, compatible};
use crate::limits;
use serde_json::{Map, Value, json};

fn object(members: impl Iterator<Item = (String, Value)>) -> Value {
    Value::Object(members.collect::<Map<_, _>>())
}

/// `levels` objects within each other, each as the member `name` of the next.
fn nested(name: &str, levels: usize, last: Value) -> Value {
    (0..levels).fold(last, |it, _| json!({name: it}))
}

#[test]
fn long_and_deep_expressions_are_faults() {
    const BYTES: usize = 1024 * 1024;
    let texts = [
        "(".repeat(BYTES),
        "a|".repeat(BYTES / 2),
        "array<".repeat(BYTES / 6),
        "string?".repeat(BYTES / 7),
        "a\u{301}".repeat(BYTES / 3),
        "\0".repeat(BYTES),
        format!("\"{}", "\\\\".repeat(BYTES / 2)),
        "9".repeat(BYTES),
        "(".repeat(limits::TYPE_CHARS_MAX),
        "array<".repeat(limits::TYPE_CHARS_MAX / 6),
        "|".repeat(limits::TYPE_CHARS_MAX),
        "x".repeat(limits::TYPE_CHARS_MAX),
    ];
    for text in texts {
        let found = Outputs::parse(&map(&json!({"outputs": {"x": text}}))).unwrap_err();
        assert_eq!(found.len(), 1);
    }
}

#[test]
fn a_long_chain_of_marks_is_one_level() {
    let text = format!("string{}", "?".repeat(limits::TYPE_CHARS_MAX - 6));
    let outputs = outputs(&json!({"outputs": {"x": text}}));
    assert_eq!(outputs.type_of("x").unwrap().to_string(), "string?");
}

#[test]
fn declarations_deeper_than_parsers_allow_are_faults() {
    for levels in [limits::TYPE_DEPTH_MAX + 2, 120, 2000] {
        // Every second `type` surrounds a type, and is no level.
        let cases = [
            nested("a", levels, json!("any")),
            nested("type", 2 * levels, json!("any")),
        ];
        for value in cases {
            let schemas = json!({"outputs": {"x": value.clone()}, "types": {"A": value}});
            let found = Outputs::parse(&map(&schemas)).unwrap_err();
            assert!(found.iter().all(|it| it.reason == "Type nested too deep"));
        }
    }
}

#[test]
fn many_faults_are_cut() {
    let bad = object((0..200).map(|i| {
        (
            format!("T{i:03}"),
            object((0..40).map(|j| (format!("f{j}"), json!(format!("U{j}"))))),
        )
    }));
    let found = Outputs::parse(&map(&json!({"outputs": {"x": "any"}, "types": bad}))).unwrap_err();
    assert_eq!(found.len(), limits::VIOLATIONS_MAX);
}

#[test]
fn odd_keys_are_keys_and_pointers_say_them() {
    for key in [
        "a.b", "\0", "e\u{301}", "a/b", "~", " ", "$ref", "𝄞", "a?b", "0",
    ] {
        let outputs = outputs(&json!({"outputs": {key: {key: "integer"}}}));
        assert!(outputs.check(&map(&json!({key: {key: 1}}))).is_ok());
        let output = json!({key: {key: "x"}});
        let fault = outputs.check(&map(&output)).unwrap_err();
        assert_eq!(fault.mismatches[0].key, key);
        assert_eq!(
            output.pointer(&fault.mismatches[0].pointer),
            Some(&json!("x"))
        );
    }
    // Two spellings of one letter are two keys.
    let outputs = outputs(&json!({"outputs": {"é": "any"}}));
    assert!(outputs.check(&map(&json!({"e\u{301}": 1}))).is_err());
}

/// Types whose alternatives each lead to both alternatives again, `levels` of them.
fn doubling(levels: usize) -> Value {
    let types = (0..levels).flat_map(|i| {
        let next = format!("A{0}|B{0}", i + 1);
        [
            (format!("A{i}"), json!({"a": next, "z": "\"a\""})),
            (format!("B{i}"), json!({"a": next, "z": "\"b\""})),
        ]
    });
    let last = ["A", "B"].map(|name| (format!("{name}{levels}"), json!({"z": "integer"})));
    object(types.chain(last))
}

#[test]
fn unions_of_recursive_types_take_no_exponential_time() {
    let recursive = json!({"A": {"a": "A|B|null", "z": "1"}, "B": {"a": "A|B|null", "z": "2"}});
    let at = |it: Value, z: Value| json!({"a": it, "z": z});
    let value = (0..90).fold(json!(null), |it, i| at(it, json!(i % 2 + 1)));
    let outputs_of =
        |types: &Value, of: &str| outputs(&json!({"types": types, "outputs": {"x": of}}));
    let outputs_ab = outputs_of(&recursive, "A|B");
    assert_eq!(outputs_ab.check(&map(&json!({"x": value}))), Ok(()));
    let wrong = (0..90).fold(json!(0), |it, i| at(it, json!(i % 2 + 1)));
    assert!(outputs_ab.check(&map(&json!({"x": wrong}))).is_err());

    let types = doubling(80);
    let outputs_ab = outputs_of(&types, "A0|B0");
    let value = (0..80).fold(json!({"z": 1}), |it, _| at(it, json!("b")));
    assert_eq!(outputs_ab.check(&map(&json!({"x": value}))), Ok(()));
    let of = outputs_ab.type_of("x").unwrap();
    assert_eq!(compatible(&of, &of), Compatible::Definite);
    let shifted = Types::parse(Some(&types))
        .unwrap()
        .type_of(&json!("A1|B1"))
        .unwrap();
    assert_ne!(compatible(&of, &shifted), Compatible::Definite);
}

#[test]
fn aliases_that_double_take_no_exponential_time() {
    let types = (0..60).map(|i| (format!("A{i}"), json!(format!("A{0}|A{0}", i + 1))));
    for (last, bad) in [
        (json!("\"x\""), json!("y")),
        (json!({"a": "any"}), json!({})),
    ] {
        let types = object(types.clone().chain([("A60".to_owned(), last.clone())]));
        // Each alias and its union are two levels, of which there may be 64.
        assert!(Types::parse(Some(&types)).is_err());
        let short = types.as_object().unwrap().iter();
        let short = short.filter(|(name, _)| name[1..].parse::<usize>().unwrap() >= 32);
        let types = object(short.map(|(name, of)| (name.clone(), of.clone())));
        let types = Types::parse(Some(&types)).unwrap();
        let of = types.type_of(&json!("A32|A33")).unwrap();
        assert!(!of.accepts(&bad));
        assert_eq!(of.mismatches(&bad).len(), 1);
        let end = types.type_of(&json!("A60")).unwrap();
        assert_eq!(compatible(&of, &end), Compatible::Definite);
        assert_eq!(compatible(&end, &of), Compatible::Definite);
        let string = types.type_of(&json!("integer")).unwrap();
        assert_eq!(compatible(&of, &string), Compatible::Never);
    }
}

#[test]
fn what_cannot_be_checked_within_the_steps_is_a_mismatch_that_says_so() {
    // 999 small objects in the list of allowed values, before each of which the items are compared.
    let values: Vec<_> = (0..999).map(|i| json!({"n": i})).collect();
    let outputs = outputs(&json!({"outputs": {"x": "array<E>"}, "types": {"E": {"enum": values}}}));
    let items = vec![json!({"n": 998}); 20_000];
    let fault = outputs.check(&map(&json!({"x": items}))).unwrap_err();
    let expected = Mismatch {
        key: "x".to_owned(),
        pointer: "/x".to_owned(),
        expected: "array<E>".to_owned(),
        actual: "too costly to check".to_owned(),
    };
    assert_eq!(fault.mismatches, [expected]);
}

#[test]
fn values_deeper_than_parsers_allow_are_no_overflow_of_the_stack() {
    let types =
        json!({"T": {"a?": "U|T?"}, "U": "array<T>|V", "V": "map<string|T>|W", "W": "integer|T"});
    let types = Types::parse(Some(&types)).unwrap();
    let of = types.type_of(&json!("T")).unwrap();
    assert!(of.accepts(&nested("a", limits::PAYLOAD_DEPTH_MAX, json!({}))));
    let deep = nested("a", 5_000, json!({"a": "x"}));
    let work = move || {
        assert!(!of.accepts(&deep));
        assert_eq!(of.mismatches(&deep).len(), 1);
    };
    // As much as the threads of the server have.
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn comparisons_of_many_large_types_end() {
    let types = |from: usize| {
        object((0..200).map(|i| {
            let fields = (0..8).map(|j| {
                let other = (i * 7 + j * 13 + from) % 200;
                (
                    format!("f{j}?"),
                    json!(format!("T{other:03}|array<T{:03}>|string?", 199 - other)),
                )
            });
            (format!("T{i:03}"), object(fields))
        }))
    };
    let of = |from: usize| {
        let types = Types::parse(Some(&types(from))).unwrap();
        types.type_of(&json!("T000")).unwrap()
    };
    assert_ne!(compatible(&of(0), &of(1)), Compatible::Never);
    assert_eq!(compatible(&of(0), &of(0)), Compatible::Definite);
}

#[test]
fn pointers_of_long_names_are_cut_at_a_name() {
    let name = "n".repeat(200);
    let of = |levels: usize| {
        let outputs = outputs(&json!({"outputs": {"x": "J"}, "types": {"J": "map<J>"}}));
        let output = json!({"x": nested(&name, levels, json!(1))});
        let fault = outputs.check(&map(&output)).unwrap_err();
        (fault.mismatches[0].pointer.clone(), output)
    };
    let (whole, output) = of(3);
    assert_eq!(output.pointer(&whole), Some(&json!(1)));
    let (cut, output) = of(50);
    assert!(cut.len() <= Mismatch::POINTER_BYTES_MAX);
    assert!(output.pointer(&cut).is_some_and(Value::is_object));
}

#[test]
fn many_mismatches_are_cut() {
    let outputs = outputs(&json!({"outputs": {"x": "array<integer>", "y": "array<string>"}}));
    let fault = outputs
        .check(&map(
            &json!({"x": vec!["a"; 100_000], "y": vec![1; 100_000]}),
        ))
        .unwrap_err();
    assert_eq!(fault.mismatches.len(), limits::VIOLATIONS_MAX);
}

#[test]
fn a_costly_json_schema_ends_with_a_mismatch() {
    let mut too_costly = 0;
    for attack in crate::testing::hostile::attacks() {
        let schemas = json!({"outputs": {"x": {"schema": attack.schema}}});
        let Ok(Some(outputs)) = Outputs::parse(&map(&schemas)) else {
            continue;
        };
        let checked = outputs.check(&map(&json!({"x": attack.inputs})));
        let mismatches = checked.clone().err().map(|fault| fault.mismatches);
        for told in mismatches.unwrap_or_default() {
            // It is an output: nothing is said of inputs.
            assert!(!told.expected.contains("inputs"), "{told:?}");
            too_costly += usize::from(told.actual == "too costly to check");
        }
        let told = checked.map_err(|fault| fault.mismatches.len());
        assert!(
            told.is_ok() || told.is_err_and(|count| count > 0),
            "{}",
            attack.name
        );
    }
    assert!(too_costly > 0);
}

/// A type that accepts numbers, for which it looks at each of them 2^17 times.
fn doubling_schema() -> Value {
    let levels = (0..17).map(|i| {
        let next = json!({"$ref": format!("#/definitions/d{}", i + 1)});
        (format!("d{i}"), json!({"allOf": [next, next]}))
    });
    let last = [("d17".to_owned(), json!({"type": "number"}))];
    let definitions = object(levels.chain(last));
    json!({"schema": {"definitions": definitions, "$ref": "#/definitions/d0"}})
}

#[test]
fn checks_that_share_their_steps_end_together() {
    let types = Types::parse(Some(&json!({"S": doubling_schema()}))).unwrap();
    let of = types.type_of(&json!("S")).unwrap();
    let mut left = limits::OUTPUT_CHECK_STEPS_MAX;
    let accepted = (0..100).filter(|_| of.accepts_within(&json!(1), &mut left));
    let accepted = accepted.count();
    assert!((1..100).contains(&accepted), "{accepted}");
    assert!(of.accepts(&json!(1)));
    let mut left = limits::OUTPUT_CHECK_STEPS_MAX;
    let told: Vec<_> = (0..100)
        .flat_map(|_| of.mismatches_within(&json!(1), &mut left))
        .collect();
    assert_eq!(told.len(), 100 - accepted);
    assert!(told.iter().all(|it| it.actual == "too costly to check"));
}

#[test]
fn a_default_that_is_costly_to_check_is_a_fault_of_its_declaration() {
    let types = json!({"S": doubling_schema()});
    let outputs = json!({"x": {"a": {"type": "S", "default": 1}}});
    let schemas = json!({"types": types, "outputs": outputs});
    let found = super::faults(&schemas);
    let expected = [("outputs/x/a/default".to_owned(), "Wrong type")];
    assert_eq!(found, expected);
}

#[test]
fn json_schemas_of_many_tasks_share_their_steps() {
    let text = |n: usize| json!({"type": "string", "pattern": format!("^[a-z]{{{n}}}$")});
    let declared = |n: usize| {
        let schemas = json!({"outputs": {"k": {"schema": text(n)}}});
        schemas.as_object().cloned().unwrap()
    };
    let mut steps_left = 1;
    assert!(Outputs::parse_within(&declared(1), &mut steps_left).is_ok());
    assert_eq!(steps_left, 0, "the one that goes beyond them is the last");
    let faults = Outputs::parse_within(&declared(2), &mut steps_left).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].path, ["outputs", "k", "schema"]);
    assert_eq!(
        faults[0].reason,
        "The JSON Schemas are too costly to compile together"
    );
    // What has no JSON Schema needs none of them.
    let plain = json!({"outputs": {"k": "string"}});
    let plain = plain.as_object().cloned().unwrap();
    assert!(Outputs::parse_within(&plain, &mut steps_left).is_ok());
    let types = json!({"T": {"schema": text(3)}});
    assert!(Types::parse_within(Some(&types), &mut steps_left).is_err());
}
