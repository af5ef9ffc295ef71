//! What the comparison of types says before a run is what happens in the run: a reference without remark never meets
//! a value of another type, one that is an error never meets a value of its type.

use super::{document, errors};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use taskledger_domain::contract::{Type, Types};
use taskledger_workflows::{Report, read};

/// Named types of every document here.
const TYPES: &str = r#"{"P": {"name": "string", "age?": "integer"}, "L": {"head": "integer", "tail": "L?"}, "K": {"enum": ["lo", 1, null]}}"#;

/// A type as text, and a value that it accepts.
fn typed() -> BoxedStrategy<(String, Value)> {
    let fixed = |text: &'static str, values: Vec<Value>| {
        prop::sample::select(values).prop_map(move |value| (text.to_owned(), value))
    };
    let list = json!({"head": 1, "tail": {"head": 2, "tail": null}});
    let leaf = prop_oneof![
        fixed("string", vec![json!(""), json!("lo")]),
        fixed("number", vec![json!(1), json!(1.5)]),
        fixed("integer", vec![json!(1), json!(-2), json!(1.0)]),
        fixed("boolean", vec![json!(true), json!(false)]),
        fixed("null", vec![json!(null)]),
        fixed("object", vec![json!({}), json!({"name": 1})]),
        fixed("array", vec![json!([]), json!(["lo"])]),
        fixed("any", vec![json!(1), json!(null), json!({"name": "lo"})]),
        fixed("\"lo\"|1", vec![json!("lo"), json!(1)]),
        fixed(
            "P",
            vec![
                json!({"name": "lo"}),
                json!({"name": "", "age": 1, "x": []})
            ]
        ),
        fixed("L", vec![list, json!({"head": 3, "tail": null})]),
        fixed("K", vec![json!("lo"), json!(1), json!(null)]),
    ];
    let compound = leaf.prop_recursive(3, 12, 2, |inner| {
        let some = inner.clone();
        prop_oneof![
            (inner.clone(), 0..3_usize)
                .prop_map(|((of, value), n)| (format!("array<{of}>"), json!(vec![value; n]))),
            (inner.clone(), any::<bool>()).prop_map(|((of, value), is_empty)| {
                let members = if is_empty {
                    json!({})
                } else {
                    json!({"name": value})
                };
                (format!("map<{of}>"), members)
            }),
            (inner.clone(), any::<bool>()).prop_map(|((of, value), is_null)| {
                (
                    format!("({of})?"),
                    if is_null { json!(null) } else { value },
                )
            }),
            (inner, some).prop_map(|((a, value), (b, _))| (format!("({a})|({b})"), value)),
        ]
    });
    compound.boxed()
}

/// A producer with a value, and a consumer, which is often made of the producer.
fn pair() -> impl Strategy<Value = (String, Value, String)> {
    (typed(), typed(), 0..5_u8).prop_map(|((producer, value), (other, _), how)| {
        let consumer = match how {
            0 => format!("({producer})?"),
            1 => format!("({other})|({producer})"),
            2 => producer.clone(),
            _ => other,
        };
        (producer, value, consumer)
    })
}

/// A document whose phase `b` takes from `a` what `reference` names.
fn wired(producer: &str, consumer: &str, reference: &str) -> String {
    let phases = json!({
        "a": {"assign": "x", "outputs": {"o": producer}},
        "b": {"assign": "x", "depends_on": ["a"], "inputs": {"v": {"from": reference, "type": consumer}}},
    });
    format!("{}types: {TYPES}\n", document(&format!("  {phases}\n")))
}

/// What is said of the wired input: nothing, that it may fail, that it must.
#[derive(Debug, PartialEq)]
enum Told {
    Nothing,
    Maybe,
    Never,
}

fn told(report: &Report) -> Told {
    let is_of_input = |faults: &[taskledger_workflows::Fault]| {
        let mut faults = faults.iter();
        faults.all(|fault| fault.path == "workflow.b.inputs.v")
    };
    assert!(is_of_input(&report.errors) && is_of_input(&report.warnings));
    match (report.errors.len(), report.warnings.len()) {
        (0, 0) => Told::Nothing,
        (0, 1) => Told::Maybe,
        (1, 0) => Told::Never,
        _ => panic!("{:?}", errors(report)),
    }
}

fn compiled(text: &str) -> Type {
    let types: Value = serde_json::from_str(TYPES).expect("JSON");
    let types = Types::parse(Some(&types)).expect("they are types");
    types.type_of(&Value::from(text)).expect("it is a type")
}

/// Plays the document with this output: whether `b` is claimed, and with what.
fn claimed(report: &Report, output: &Value) -> Option<Value> {
    let workflow = report.workflow.as_ref().expect("it has no errors");
    let outputs = json!({"a": {"o": output}, "b": {}});
    let outputs = outputs.as_object().expect("an object");
    let played = workflow.play(&Map::new(), outputs).expect("it is small");
    let of_b = |step: &&Value| step["phase"] == "b";
    let step = played.steps.iter().find(of_b);
    let step = step.unwrap_or_else(|| panic!("the output is accepted: {:?}", played.steps));
    let is_claim = step["step"] == "claim";
    let error = step["error"].as_str().unwrap_or_default();
    assert!(
        is_claim || error.starts_with("inputs do not conform"),
        "{step}"
    );
    is_claim.then(|| step["input"].clone())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_said_of_an_input_before_a_run_holds_in_it((producer, value, consumer) in pair()) {
        let report = read(&wired(&producer, &consumer, "a.o"), false);
        let accepted = compiled(&consumer).accepts(&value);
        prop_assert!(compiled(&producer).accepts(&value), "{producer} {value}");
        let told = told(&report);
        if told == Told::Never {
            prop_assert!(!accepted, "{producer} {consumer} {value}");
            prop_assert!(report.workflow.is_none());
            return Ok(());
        }
        let input = claimed(&report, &value);
        prop_assert_eq!(input.is_some(), accepted);
        if let Some(input) = input {
            prop_assert_eq!(input, json!({"v": value}));
        } else {
            // Nothing is said where nothing is known, and where the input always fits.
            prop_assert!(told == Told::Maybe || compiled(&producer).is_any(), "{producer} {consumer} {value}");
        }
    }

    #[test]
    fn what_is_said_of_a_part_before_a_run_holds_in_it(
        (producer, value, consumer) in pair(),
        pointer in prop::sample::select(vec!["/0", "/name", "/tail/head", "/0/name", "/name/0", "/x/y"]),
    ) {
        let report = read(&wired(&producer, &consumer, &format!("a.o#{pointer}")), false);
        let there = value.pointer(pointer);
        let accepted = there.is_some_and(|part| compiled(&consumer).accepts(part));
        if told(&report) == Told::Never {
            prop_assert!(!accepted, "{producer} {consumer} {value} {pointer}");
        } else if let Some(part) = there {
            let input = claimed(&report, &value);
            prop_assert_eq!(input, accepted.then(|| json!({"v": part})));
        }
    }
}
