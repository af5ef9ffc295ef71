//! Whatever is read, the reader answers, and tells the truth about itself.

use super::EXAMPLE;
use proptest::prelude::*;
use serde_json::{Map, Value};
use taskledger_workflows::{Report, UnfitTrigger, limits, read, read_json};

fn is_consistent(report: &Report) {
    assert_eq!(report.workflow.is_some(), report.errors.is_empty());
    let places: Vec<_> = report
        .errors
        .iter()
        .filter_map(|f| Some((f.line?, f.column?)))
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(report.errors.len() <= limits::FAULTS_MAX + 1);
    if let Some(workflow) = &report.workflow {
        match workflow.tasks(&Map::new(), None) {
            Ok(tasks) => assert_eq!(tasks.len(), workflow.phases.len() + 1),
            // It needs a trigger.
            Err(UnfitTrigger::Lacking(lacking)) => assert!(!lacking.is_empty()),
            Err(other) => panic!("there is no trigger: {other}"),
        }
    }
}

/// Pieces of YAML and of documents, so that random texts get further than the first character.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "\n",
        "\n  ",
        "\n    ",
        " ",
        "\t",
        "- ",
        ": ",
        ":",
        "? ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "&a ",
        "*a",
        "*b ",
        "!!str ",
        "!x ",
        "|\n",
        ">-\n",
        "'",
        "\"",
        "\\",
        "#",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "<<",
        "~",
        "0x",
        "1e9",
        "workflow",
        "info",
        "name",
        "openintent",
        "assign",
        "depends_on",
        "inputs",
        "outputs",
        "p.q",
        "$trigger.k",
        "#/x",
        "\u{feff}",
        "\r\n",
        "\r",
        "é",
        "e\u{301}",
        "\0",
        "retry",
        "types",
        "required",
        "false",
        "@",
        "`",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "openintent",
        "info",
        "name",
        "workflow",
        "p",
        "q",
        "assign",
        "depends_on",
        "inputs",
        "outputs",
        "retry",
        "types",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["p", "q", "p.x", "$trigger.k", "any", ""]).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone(), inner, 0..6).prop_map(|members| {
                Value::Object(
                    members
                        .into_iter()
                        .map(|(k, v)| (k.to_owned(), v))
                        .collect(),
                )
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_is_answered(text in any::<String>(), strict in any::<bool>()) {
        is_consistent(&read(&text, strict));
    }

    #[test]
    fn random_pieces_of_yaml_are_answered(text in pieces(), strict in any::<bool>()) {
        is_consistent(&read(&text, strict));
    }

    #[test]
    fn a_mutated_document_is_answered(at in 0..EXAMPLE.len(), cut in 0..40_usize, piece in pieces()) {
        let end = (at + cut).min(EXAMPLE.len());
        is_consistent(&read(&format!("{}{piece}{}", &EXAMPLE[..at], &EXAMPLE[end..]), false));
    }

    #[test]
    fn a_value_and_its_text_are_judged_alike(value in json(), strict in any::<bool>()) {
        let (by_value, by_text) = (read_json(&value, strict), read(&value.to_string(), strict));
        is_consistent(&by_value);
        let reasons = |report: &Report| {
            let mut all: Vec<_> = report.errors.iter().map(|f| (f.path.clone(), f.reason.clone())).collect();
            all.sort();
            all
        };
        prop_assert_eq!(reasons(&by_value), reasons(&by_text));
        prop_assert_eq!(by_value.workflow, by_text.workflow);
    }
}
