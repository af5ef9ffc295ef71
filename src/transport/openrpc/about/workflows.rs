//! Schemas and examples of the methods for workflow documents.

pub(in crate::transport) mod kept;

use super::super::schemas::{object, with_optional};
use super::About;
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::openrpc::schema_parts::text;
use serde_json::{Value, json};

/// Two phases, of which the second takes a result of the first.
pub(in crate::transport) const DOCUMENT: &str = "openintent: \"1.0\"\ninfo: {name: Quarterly report}\nworkflow:\n  fetch:\n    assign: data-agent\n    inputs: {quarter: $trigger.quarter}\n    outputs: {revenue: number}\n  report:\n    assign: reporting-agent\n    depends_on: [fetch]\n    inputs: {revenue: fetch.revenue}\n";

pub(in crate::transport) fn faults(description: &str) -> Value {
    let place = |description: &str| json!({"type": ["integer", "null"], "minimum": 1, "description": description});
    let fault = object(json!({
        "error": {"type": "string", "enum": ["WorkflowValidationError", "InputWiringError"]},
        "path": text("Where in the document, such as `workflow.report.inputs`."),
        "line": place("The line, from 1; null for a document given as an object."),
        "column": place("The column, from 1."),
        "reason": text("What is wrong."),
        "suggestion": {"type": ["string", "null"], "description": "How to mend it, if that can be guessed."},
    }));
    let of_wiring = json!({
        "phase_name": text("The phase."),
        "invalid_refs": {"type": "array", "items": {"type": "string"}, "description": "References that are wrong, as written."},
    });
    json!({"type": "array", "items": with_optional(fault, of_wiring), "description": description})
}

/// What [`super::set_up`] keeps [`DOCUMENT`] by.
pub(in crate::transport) const NAME: &str = "Quarterly report";
pub(in crate::transport) const HASH: &str =
    "3d9cbd1b8f3d4f8a4a7d7d2b5d6c6a8de8c2d0c6dbb0e3d1ad8e4a1f0c9b7e55";

/// Errors of those that name a workflow that is kept.
pub(in crate::transport) const ABSENT: &[ErrorKind] = &[ErrorKind::WorkflowNotFound];

/// What is said of a method with one example.
pub(in crate::transport) fn described(
    description: &'static str,
    result: (&'static str, Value),
    errors: &'static [ErrorKind],
    example: (&'static str, Value, Value),
) -> About {
    About::with_example(result, description, errors, example)
}
