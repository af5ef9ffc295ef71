//! Schemas and examples of the methods for secrets.

use super::super::schemas::object;
use super::About;
use crate::transport::openrpc::about::TIME;
use serde_json::{Value, json};
use taskledger_auth::SecretName;

/// The secret of the examples.
pub(in crate::transport) const NAME: &str = "github-token";

pub(in crate::transport) fn secret() -> Value {
    object(json!({
        "name": {"type": "string", "pattern": SecretName::PATTERN},
        "created_at": {"type": "string", "format": "date-time", "description": "When it was first set."},
        "updated_at": {"type": "string", "format": "date-time", "description": "When it was last set."},
    }))
}

pub(in crate::transport) fn shown(name: &str) -> Value {
    json!({"name": name, "created_at": TIME, "updated_at": TIME})
}

pub(in crate::transport) fn described(
    description: &'static str,
    result: &'static str,
    schema: Value,
    example: (&'static str, Value, Value),
) -> About {
    About::with_example((result, schema), description, &[], example)
}
