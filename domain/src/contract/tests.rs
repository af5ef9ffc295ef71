//! Types and outputs: declarations, values, comparisons, JSON Schema, and what hostile ones cost.

mod comparisons;
mod declarations;
mod hostile;
mod outputs;
mod places;
mod properties;
mod values;

use super::{FormFault, Outputs, Type, Types};
use serde_json::{Map, Value, json};

/// Names that most tests use.
fn types() -> Value {
    json!({
        "Finding": {"source": "string", "confidence": "number", "note?": "string"},
        "Level": {"enum": ["low", "high", 1, null, {"n": 1}]},
        "Money": "number",
        "Tree": {"value": "any", "children": "array<Tree>"},
        "Json": "string|number|boolean|null|array<Json>|map<Json>",
    })
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A type that may use [`types`].
fn type_of(declaration: &Value) -> Type {
    Types::parse(Some(&types()))
        .unwrap()
        .type_of(declaration)
        .unwrap_or_else(|faults| panic!("{declaration}: {faults:?}"))
}

fn outputs(schemas: &Value) -> Outputs {
    Outputs::parse(&map(schemas)).unwrap().unwrap()
}

/// Where the faults of a declaration are, and their reasons.
fn faults(schemas: &Value) -> Vec<(String, &'static str)> {
    let faults = Outputs::parse(&map(schemas)).unwrap_err();
    let places = faults.iter().map(|it| (it.path.join("/"), it.reason));
    places.collect()
}

/// The one fault of a type on its own.
fn fault(declaration: &Value) -> FormFault {
    let types = Types::parse(Some(&types())).unwrap();
    let mut faults = types.type_of(declaration).unwrap_err();
    assert_eq!(faults.len(), 1, "{declaration}: {faults:?}");
    faults.remove(0)
}
