//! The inputs and outputs of phases, as JSON Schemas.

use super::sound;
use serde_json::json;
use taskledger_workflows::NoSchemas;

const DOCUMENT: &str = r#"
openintent: "1.0"
info: {name: w}
types: {Node: {v: integer, next: "Node?"}}
workflow:
  a:
    assign: x
    inputs: {q: {from: $trigger.q, type: string, default: "?"}, any: $trigger.any}
    outputs: {n: integer, node: Node, maybe: {type: string, required: false}}
  b:
    assign: y
    depends_on: [a]
    inputs: {n: a.n, node: a.node, deep: a.node#/v, maybe: {from: a.maybe, required: false}}
"#;

#[test]
fn inputs_have_the_types_that_they_declare_or_come_from() {
    let schemas = sound(DOCUMENT).schemas(None).expect("they are small");
    assert_eq!(schemas.len(), 2);
    let first = &schemas[0];
    assert_eq!(first.input["properties"]["q"], json!({"type": "string"}));
    assert_eq!(first.input["required"], json!(["any", "q"]));
    assert_eq!(first.input["additionalProperties"], false);
    assert_eq!(first.output["required"], json!(["n", "node"]));
    let second = &schemas[1];
    assert_eq!(
        second.input["properties"]["n"],
        first.output["properties"]["n"]
    );
    assert_eq!(
        second.input["properties"]["maybe"],
        json!({"type": "string"})
    );
    assert_eq!(second.input["required"], json!(["deep", "n", "node"]));
    assert!(
        second.input["definitions"]["Node"].is_object(),
        "{}",
        second.input
    );
    assert_eq!(second.output, json!({"type": "object"}));
}

#[test]
fn one_phase_may_be_asked_for() {
    let workflow = sound(DOCUMENT);
    assert_eq!(
        workflow.schemas(Some("b")).expect("it is there")[0].phase,
        "b"
    );
    let unknown = workflow.schemas(Some("c"));
    assert_eq!(unknown, Err(NoSchemas::UnknownPhase("c".to_owned())));
}

#[test]
fn types_that_are_repeated_too_often_are_refused() {
    let types: String = (0..200)
        .map(|i| format!("  T{i}: {{field_of_some_length: string}}\n"))
        .collect();
    let phases: String = (0..2000)
        .map(|i| format!("  p{i}: {{assign: x}}\n"))
        .collect();
    let text =
        format!("openintent: \"1.0\"\ninfo: {{name: w}}\ntypes:\n{types}workflow:\n{phases}");
    let workflow = sound(&text);
    assert_eq!(workflow.schemas(None), Err(NoSchemas::TooLarge));
    assert!(workflow.schemas(Some("p7")).is_ok());
}
