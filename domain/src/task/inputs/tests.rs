//! Claims about schemas and inputs, by subject.

mod attacks;
mod conformity;
mod schemas;

use super::compile;
use crate::violation::Violation;
use serde_json::Value;

/// (path, reason, expected) of each violation, the path with dots.
pub(super) fn brief(violations: &[Violation]) -> Vec<(String, String, String)> {
    violations
        .iter()
        .map(|v| (path_text(v), v.reason.clone(), v.expected.clone()))
        .collect()
}

pub(super) fn path_text(violation: &Violation) -> String {
    let steps: Vec<_> = violation
        .path
        .iter()
        .map(|step| match step {
            crate::PathSegment::Key(key) => key.clone(),
            crate::PathSegment::Index(index) => format!("[{index}]"),
        })
        .collect();
    steps.join(".")
}

/// Violations of `inputs` under a schema that compiles. A hurried check says the same or nothing.
pub(super) fn faults(schema: &Value, inputs: &Value) -> Vec<Violation> {
    let compiled = compile(schema).expect("the schema of this test compiles");
    let checked = compiled.check(inputs);
    for steps in [100, 10_000, 1_000_000] {
        let mut left = steps;
        if let Ok(hurried) = compiled.check_within(inputs, &mut left) {
            assert_eq!(hurried, checked, "{steps} steps");
        }
    }
    checked.err().unwrap_or_default()
}

pub(super) fn accepts(schema: &Value, inputs: &Value) -> bool {
    faults(schema, inputs).is_empty()
}
