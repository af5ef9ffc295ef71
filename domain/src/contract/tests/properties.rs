//! Arbitrary types and values: what must hold for all of them.

use super::{map, outputs};
use crate::contract::{Compatible, Type, Types, compatible};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Cases per property, unless `PROPTEST_CASES` asks for more.
const CASES: u32 = 1500;
/// Named types, `T0` and so on.
const NAMES: usize = 4;

pub(super) fn config() -> ProptestConfig {
    let standard = ProptestConfig::default();
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if asked { standard.cases } else { CASES },
        failure_persistence: None,
        ..standard
    }
}

/// A value of few names and texts, so that types and values meet.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![json!(0), json!(1), json!(1.0), json!(1.5), json!(-2)]),
        prop::sample::select(vec!["", "lo", "hi", "1"]).prop_map(Value::from),
        Just(json!(9_007_199_254_740_993_u64)),
        Just(json!(9_007_199_254_740_992.0)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "e/f"]).prop_map(str::to_owned)
}

fn literal() -> impl Strategy<Value = String> {
    let literals = [
        "\"lo\"",
        "\"hi\"",
        "\"\"",
        "1",
        "1.0",
        "1.5",
        "true",
        "false",
        "9007199254740993",
    ];
    prop::sample::select(literals.to_vec()).prop_map(str::to_owned)
}

fn expression() -> impl Strategy<Value = String> {
    let primitives = vec![
        "string", "number", "integer", "boolean", "object", "array", "any", "null",
    ];
    let leaf = prop_oneof![
        3 => prop::sample::select(primitives).prop_map(str::to_owned),
        2 => literal(),
        3 => (0..NAMES).prop_map(|i| format!("T{i}")),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|it| format!("array<{it}>")),
            inner.clone().prop_map(|it| format!("map< {it} >")),
            inner.clone().prop_map(|it| format!("({it})?")),
            prop::collection::vec(inner, 2..4).prop_map(|list| list.join(" | ")),
        ]
    })
}

/// JSON Schemas, some of which refer to themselves.
fn json_schema() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(true),
        json!(false),
        json!({}),
        json!({"type": "number", "minimum": 1}),
        json!({"pattern": "^l"}),
        json!({"items": {"$ref": "#"}, "properties": {"a": {"$ref": "#/definitions/x~1y"}},
               "definitions": {"x/y": {"type": ["null", "string"]}}}),
        json!({"enum": [{"$ref": "#"}, 1]}),
    ])
}

fn declaration() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => expression().prop_map(Value::from),
        1 => prop::collection::vec(value(), 1..5).prop_map(|values| json!({"enum": values})),
        1 => json_schema().prop_map(|schema| json!({"schema": schema})),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        let field = (inner, 0..4_usize).prop_map(|(of, around)| match around {
            0 => ("?", of),
            1 => ("", json!({"type": of, "required": false})),
            2 => ("", json!({"type": of})),
            _ => ("", of),
        });
        prop::collection::btree_map(key(), field, 0..4).prop_map(|fields| {
            let fields = fields.into_iter();
            let fields = fields.map(|(key, (mark, of))| (format!("{key}{mark}"), of));
            Value::Object(fields.collect())
        })
    })
}

/// A declaration of [`NAMES`] types without faults, and of two types that may use them.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    pub(super) types: Value,
    pub(super) pair: [Value; 2],
}

impl Declared {
    pub(super) fn of(&self, which: usize, validation: &str) -> Type {
        let schemas = json!({
            "types": self.types, "outputs": {"x": {"type": self.pair[which]}}, "validation": validation,
        });
        outputs(&schemas).type_of("x").unwrap()
    }
}

pub(super) fn declared() -> impl Strategy<Value = Declared> {
    let names = prop::collection::vec(declaration(), NAMES);
    (names, declaration(), declaration()).prop_filter_map("a circle", |(names, a, b)| {
        let names = names.into_iter().enumerate();
        let names: Map<_, _> = names.map(|(i, of)| (format!("T{i}"), of)).collect();
        let types = Value::Object(names);
        let parsed = Types::parse(Some(&types)).ok()?;
        let pair = [a, b];
        let fine = pair.iter().all(|it| parsed.type_of(it).is_ok());
        fine.then_some(Declared { types, pair })
    })
}

/// A value that is probably of the type: `choices` say how, and are used up.
pub(super) fn guided(
    declaration: &Value,
    types: &Value,
    choices: &mut Vec<u8>,
    depth: usize,
) -> Value {
    let mut choose = |count: usize| usize::from(choices.pop().unwrap_or(0)) % count.max(1);
    match declaration {
        Value::String(text) => guided_text(text.trim(), types, choices, depth),
        Value::Object(map) => match (map.get("enum"), map.get("schema")) {
            (Some(Value::Array(values)), None) => values[choose(values.len())].clone(),
            (None, Some(_)) => {
                [json!("lo"), json!(1), json!([null]), json!({"a": ""})][choose(4)].clone()
            }
            _ => {
                let fields = map.iter().filter_map(|(key, of)| {
                    let surrounded = of.as_object().filter(|it| {
                        it.contains_key("type")
                            && it.keys().all(|name| name == "type" || name == "required")
                    });
                    let optional = key.ends_with('?')
                        || surrounded.is_some_and(|it| it.get("required") == Some(&json!(false)));
                    let present = !optional || choices.pop().unwrap_or(0) % 2 == 1;
                    let of = surrounded.map_or(of, |it| &it["type"]);
                    let name = key.trim_end_matches('?').to_owned();
                    present.then(|| (name, guided(of, types, choices, depth + 1)))
                });
                Value::Object(fields.collect())
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => json!(null),
    }
}

/// The parts of a text between `|` that stand in no brackets.
fn alternatives(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut level) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '<' => level += 1,
            ')' | '>' => level -= 1,
            '|' if level == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn guided_text(text: &str, types: &Value, choices: &mut Vec<u8>, depth: usize) -> Value {
    let mut choose = |count: usize| usize::from(choices.pop().unwrap_or(0)) % count;
    let parts = alternatives(text);
    if parts.len() > 1 {
        return guided_text(parts[choose(parts.len())], types, choices, depth);
    }
    let within = |prefix: &str, suffix: char| text.strip_prefix(prefix)?.strip_suffix(suffix);
    if depth > 12 {
        return json!(null);
    }
    if let Some(inner) = text.strip_suffix('?') {
        return match choose(2) {
            0 => json!(null),
            _ => guided_text(inner, types, choices, depth + 1),
        };
    }
    if let Some(inner) = within("(", ')') {
        return guided_text(inner, types, choices, depth + 1);
    }
    if let Some(inner) = within("array<", '>') {
        let count = choose(3);
        let items = (0..count).map(|_| guided_text(inner.trim(), types, choices, depth + 1));
        return items.collect();
    }
    if let Some(inner) = within("map<", '>') {
        let count = choose(3);
        let names = ["a", "b", "c"].into_iter().take(count);
        let members = names.map(|it| {
            (
                it.to_owned(),
                guided_text(inner.trim(), types, choices, depth + 1),
            )
        });
        return Value::Object(members.collect());
    }
    match text {
        "string" => json!("lo"),
        "number" => [json!(1.5), json!(1)][choose(2)].clone(),
        "integer" => [json!(1), json!(1.0)][choose(2)].clone(),
        "boolean" => json!(choose(2) == 0),
        "object" => [json!({}), json!({"a": 1})][choose(2)].clone(),
        "array" => [json!([]), json!(["lo"])][choose(2)].clone(),
        "any" => [json!(1), json!([])][choose(2)].clone(),
        "null" => json!(null),
        name if name.starts_with('T') => guided(&types[name], types, choices, depth + 1),
        literal => serde_json::from_str(literal).unwrap(),
    }
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

fn validation() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["deep", "deep", "shallow"])
}

/// Some values: any, and such as are probably of the types.
fn values(declared: &Declared, free: Vec<Value>, choices: &[Vec<u8>]) -> Vec<Value> {
    let guided = choices.iter().flat_map(|choices| {
        let one = |of: &Value| guided(of, &declared.types, &mut choices.clone(), 0);
        [one(&declared.pair[0]), one(&declared.pair[1])]
    });
    free.into_iter().chain(guided).collect()
}

fn some_values() -> impl Strategy<Value = (Vec<Value>, Vec<Vec<u8>>)> {
    (
        prop::collection::vec(value(), 4),
        prop::collection::vec(choices(), 4),
    )
}

proptest! {
    #![proptest_config(config())]

    /// Two checkers that share no code come to the same answer.
    #[test]
    fn the_json_schema_of_a_type_accepts_the_same_values(
        declared in declared(),
        validation in validation(),
        (free, choices) in some_values(),
    ) {
        let of = declared.of(0, validation);
        let schema = of.json_schema();
        let validator = jsonschema::draft7::options().offline().build(&schema).unwrap();
        for value in values(&declared, free, &choices) {
            prop_assert_eq!(of.accepts(&value), validator.is_valid(&value), "{} {} {}", of, value, schema);
        }
    }

    /// The schema of all outputs says what the check says.
    #[test]
    fn the_json_schema_of_outputs_accepts_the_same_outputs(
        declared in declared(),
        validation in validation(),
        (free, choices) in some_values(),
    ) {
        let [a, b] = &declared.pair;
        let outputs = outputs(&json!({
            "types": declared.types,
            "outputs": {"a": {"type": a}, "b": {"type": b, "required": false}},
            "validation": validation,
        }));
        let schema = outputs.json_schema();
        let validator = jsonschema::draft7::options().offline().build(&schema).unwrap();
        let values = values(&declared, free, &choices);
        for pair in values.chunks(2) {
            let both = json!({"a": pair[0], "b": pair.last()});
            for output in [both, json!({"a": pair[0]}), json!({"b": pair[0], "c": 1})] {
                let checked = outputs.check(&map(&output));
                prop_assert_eq!(checked.is_ok(), validator.is_valid(&output), "{:?} {}", checked, output);
            }
        }
    }

    /// What a comparison promises holds for every value.
    #[test]
    fn comparisons_are_sound(
        declared in declared(),
        (of_producer, of_consumer) in (validation(), validation()),
        (free, choices) in some_values(),
    ) {
        let (producer, consumer) = (declared.of(0, of_producer), declared.of(1, of_consumer));
        let answer = compatible(&producer, &consumer);
        for value in values(&declared, free, &choices) {
            if producer.accepts(&value) {
                let accepted = consumer.accepts(&value);
                match answer {
                    Compatible::Definite => prop_assert!(accepted, "{producer} {consumer} {value}"),
                    Compatible::Never => prop_assert!(!accepted, "{producer} {consumer} {value}"),
                    Compatible::Maybe => {}
                }
            }
        }
    }

    /// A type fits itself, whatever it is.
    #[test]
    fn every_type_is_compatible_with_itself(declared in declared(), validation in validation()) {
        let of = declared.of(0, validation);
        prop_assert_eq!(compatible(&of, &of), Compatible::Definite);
    }

    #[test]
    fn a_displayed_type_is_parsed_to_an_equal_one(declared in declared()) {
        let of = declared.of(0, "deep");
        let text = of.to_string();
        let declaration = match text.starts_with('{') {
            true => serde_json::from_str(&text).unwrap(),
            false => Value::from(text),
        };
        let types = Types::parse(Some(&declared.types)).unwrap();
        prop_assert_eq!(types.type_of(&declaration).unwrap(), of);
    }

    /// There is something to say of each value that is not accepted, and nothing of the others; what is said is
    /// about a part of the value.
    #[test]
    fn mismatches_are_listed_for_what_is_not_accepted(
        declared in declared(),
        validation in validation(),
        (free, choices) in some_values(),
    ) {
        let of = declared.of(0, validation);
        for value in values(&declared, free, &choices) {
            let found = of.mismatches(&value);
            prop_assert_eq!(found.is_empty(), of.accepts(&value));
            for mismatch in found {
                let there = value.pointer(&mismatch.pointer).is_some();
                prop_assert_eq!(there, mismatch.actual != "nothing", "{:?}", mismatch);
            }
        }
    }

    /// No text is too odd to be told that it is no type, or to be displayed.
    #[test]
    fn any_text_is_a_type_or_a_fault(text in "\\PC{0,12}|[a-z<>()?|\"0-9.\\\\ -]{0,24}") {
        let types = Types::parse(None).unwrap();
        match types.type_of(&Value::from(text.as_str())) {
            Ok(of) => prop_assert_eq!(types.type_of(&Value::from(of.to_string())).unwrap(), of),
            Err(faults) => prop_assert_eq!(faults.len(), 1),
        }
    }

    /// A type in which a few characters were replaced is a type again, or has one fault, which says where.
    #[test]
    fn a_mutated_type_is_a_type_or_a_fault(
        text in expression(),
        at in any::<prop::sample::Index>(),
        cut in 0..4_usize,
        piece in "[a-z<>()?|\"0-9.\\\\ \u{0}\u{301}-]{0,6}",
    ) {
        let chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len() + 1);
        let end = (at + cut).min(chars.len());
        let begin: String = chars[..at].iter().collect();
        let rest: String = chars[end..].iter().collect();
        let text = format!("{begin}{piece}{rest}");
        let types = Types::parse(Some(&super::types())).unwrap();
        match types.type_of(&Value::from(text.as_str())) {
            Ok(of) => prop_assert_eq!(types.type_of(&Value::from(of.to_string())).unwrap(), of),
            Err(faults) => {
                prop_assert_eq!(faults.len(), 1);
                prop_assert!(faults[0].expected.starts_with("at character "), "{:?}", faults);
                prop_assert!(faults[0].expected.len() < 200, "{:?}", faults);
            }
        }
    }

    /// No JSON is too odd to be a declaration with faults.
    #[test]
    fn any_json_is_a_declaration_or_has_faults(outputs in value(), types in value()) {
        let schemas = json!({"outputs": outputs, "types": types});
        if let Err(faults) = crate::contract::Outputs::parse(&map(&schemas)) {
            prop_assert!(!faults.is_empty());
        }
    }
}
