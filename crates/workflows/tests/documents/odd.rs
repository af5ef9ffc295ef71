//! Names and texts that look like something else: keys with dots, NUL and combining marks, values that look like
//! references and templates.

use super::{document, errors, sound};
use serde_json::{Map, Value, json};
use taskledger_workflows::{WIRING, Workflow, read, read_json};

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

/// The inputs with which a phase is claimed in a run with these outputs.
fn input(workflow: &Workflow, trigger: Value, outputs: Value, phase: &str) -> Value {
    let played = workflow.play(&map(trigger), &map(outputs));
    let steps = played.expect("the outputs are objects").steps;
    let claim = steps
        .iter()
        .find(|it| it["phase"] == phase && it["step"] == "claim");
    claim.unwrap_or_else(|| panic!("{steps:?}"))["input"].clone()
}

const ODD: [&str; 9] = [
    "a.b", "\0", "e\u{301}", "a/b~c", " ", "$trigger", "{{x}}", "𝄞", "\u{202e}",
];

#[test]
fn odd_keys_of_outputs_inputs_triggers_and_states_are_keys() {
    for key in ODD {
        let document = json!({
            "openintent": "1.0", "info": {"name": key},
            "workflow": {
                "a": {"assign": "x", "outputs": {key: {key: "integer"}}},
                "b": {
                    "assign": "x", "depends_on": ["a"], "initial_state": {key: 2},
                    "inputs": {
                        key: format!("a.{key}"), "t": format!("$trigger.{key}"),
                        "s": format!("$initial_state.{key}"),
                    },
                },
            },
        });
        let by_value = read_json(&document, true);
        assert_eq!(errors(&by_value), [""; 0], "{key:?}");
        let workflow = by_value.workflow.expect("it has no errors");
        let text = sound(&document.to_string());
        assert_eq!(text, workflow, "{key:?}");
        let outputs = json!({"a": {key: {key: 1}}});
        let found = input(&workflow, json!({key: 3}), outputs, "b");
        let expected = json!({key: {key: 1}, "t": 3, "s": 2});
        assert_eq!(found, expected, "{key:?}");
    }
}

#[test]
fn two_spellings_of_one_letter_are_two_keys() {
    let workflow = sound(&document(
        "  a: {assign: x, outputs: {é: any}}\n  b: {assign: x, depends_on: [a], inputs: {k: a.é}}\n",
    ));
    let outputs = map(json!({"a": {"e\u{301}": 1}}));
    let played = workflow.play(&Map::new(), &outputs).expect("an object");
    assert_eq!(played.steps[1]["error"]["missing_keys"], json!(["é"]));
    let other = document(
        "  a: {assign: x, outputs: {é: any}}\n  b: {assign: x, depends_on: [a], inputs: {k: \"a.e\\u0301\"}}\n",
    );
    let report = read(&other, false);
    assert_eq!(
        report.errors[0].reason,
        "`k`: `a.e\u{301}` phase `a` declares no output `e\u{301}`"
    );
}

#[test]
fn keys_that_no_task_can_have_are_refused_by_name() {
    let long = "𝄞".repeat(256);
    for (phases, path) in [
        (
            format!("  p: {{assign: x, outputs: {{{long}: any}}}}\n"),
            "workflow.p.outputs[",
        ),
        (
            "  p: {assign: x, outputs: {'': any}}\n".to_owned(),
            "workflow.p.outputs[\"\"]",
        ),
        (
            format!("  p: {{assign: x, inputs: {{{long}: $trigger.k}}}}\n"),
            "workflow.p.inputs[",
        ),
        (
            "  p: {assign: x, inputs: {'': $trigger.k}}\n".to_owned(),
            "workflow.p.inputs[\"\"]",
        ),
        (
            "  p: {assign: x}\ntypes: {\"a\\u0000\": any}\n".to_owned(),
            "types[\"a\\u0000\"]",
        ),
        (
            "  p: {assign: x}\ntypes: {a b: any}\n".to_owned(),
            "types[\"a b\"]",
        ),
    ] {
        let report = read(&document(&phases), false);
        assert_eq!(report.errors.len(), 1, "{report:?}");
        assert!(report.errors[0].path.starts_with(path), "{report:?}");
        assert!(report.errors[0].reason.len() < 1_000, "{report:?}");
    }
}

#[test]
fn values_that_look_like_references_or_templates_are_values() {
    let workflow = sound(&document(
        "  a: {assign: x, outputs: {o: any}}\n  b:\n    assign: x\n    depends_on: [a]\n    initial_state: {s: $trigger.t}\n    inputs:\n      o: a.o\n      t: $trigger.t\n      s: $initial_state.s\n      d: {from: $trigger.none, default: a.o}\n",
    ));
    let texts = ["{{b.o}}", "{{a.o}}", "a.o", "$trigger.t", "{{", r"\{{"];
    for text in texts {
        let outputs = json!({"a": {"o": {"$secret": text}}});
        let found = input(&workflow, json!({"t": text}), outputs, "b");
        let expected = json!({"o": {"$secret": text}, "t": text, "s": "$trigger.t", "d": "a.o"});
        assert_eq!(found, expected);
    }
    let trigger = Map::from_iter([("t".to_owned(), json!(1))]);
    for task in &workflow.tasks(&trigger, None).expect("it is small") {
        assert_eq!(task["schemas"].get("templates"), None);
    }
}

#[test]
fn a_document_has_no_templates_and_says_so_of_each() {
    for text in ["'{{a.o}}'", "'{{b.o}}'", "'x{{a.o}}'", "'{{'"] {
        let phases = format!(
            "  a: {{assign: x}}\n  b: {{assign: x, depends_on: [a], inputs: {{k: {text}}}}}\n"
        );
        let report = read(&document(&phases), false);
        assert_eq!(report.errors.len(), 1, "{report:?}");
        assert_eq!(report.errors[0].error, WIRING, "{text}");
        assert_eq!(report.errors[0].path, "workflow.b.inputs.k");
    }
}
