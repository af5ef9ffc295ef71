//! The type of one method's description, and the ids that examples share.

use crate::transport::jsonrpc::ErrorKind;
use serde_json::Value;

/// The description of a method in the document.
#[derive(Debug, Clone)]
pub struct About {
    /// What it does, in a few sentences.
    pub description: &'static str,
    /// What the result is called.
    pub result: &'static str,
    /// The JSON Schema (draft-07) of the result.
    pub schema: Value,
    /// The errors that it has of its own, in order of precedence.
    pub errors: &'static [ErrorKind],
    /// At least one call.
    pub examples: Vec<Example>,
}

impl About {
    /// What is said of a method with one example, on a server as it was set up.
    pub(in crate::transport) fn with_example(
        (result, schema): (&'static str, Value),
        description: &'static str,
        errors: &'static [ErrorKind],
        (name, params, shown): (&'static str, Value, Value),
    ) -> Self {
        Self {
            description,
            result,
            schema,
            errors,
            examples: vec![Example {
                name,
                description: "On a server as it was set up.",
                params,
                result: shown,
            }],
        }
    }
}

/// A call and its answer.
#[derive(Debug, Clone)]
pub struct Example {
    /// A short name, unique within the method.
    pub name: &'static str,
    /// What it shows.
    pub description: &'static str,
    /// The parameters by name.
    pub params: Value,
    /// The result, as far as it can be known before.
    pub result: Value,
}

/// A group with two tasks, the second of which waits for the first.
pub(in crate::transport) const GROUP: &str = "550e8400-e29b-41d4-a716-446655440000";
pub(in crate::transport) const FETCH: &str = "550e8400-e29b-41d4-a716-446655440001";
pub(in crate::transport) const COUNT: &str = "550e8400-e29b-41d4-a716-446655440002";
/// A task that fails because its time is too short.
pub(in crate::transport) const FAILING: &str = "660e8400-e29b-41d4-a716-446655440000";

/// Ids in results that the server makes.
/// The time of what is shown.
pub(in crate::transport) const TIME: &str = "2026-01-15T10:30:00.000000Z";
pub(in crate::transport) const MINTED: &str = "770e8400-e29b-41d4-a716-446655440000";
pub(in crate::transport) const MINTED_TOO: &str = "770e8400-e29b-41d4-a716-446655440001";
pub(in crate::transport) const RUN: &str = "880e8400-e29b-41d4-a716-446655440000";
