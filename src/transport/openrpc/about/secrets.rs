//! The methods that keep secrets for tasks.

use super::super::schemas::object;
use super::About;
use serde_json::{Value, json};
use taskledger_auth::SecretName;

/// The secret of the examples.
pub(super) const NAME: &str = "github-token";
const TIME: &str = "2026-01-15T10:30:00.000000Z";

fn secret() -> Value {
    object(json!({
        "name": {"type": "string", "pattern": SecretName::PATTERN},
        "created_at": {"type": "string", "format": "date-time", "description": "When it was first set."},
        "updated_at": {"type": "string", "format": "date-time", "description": "When it was last set."},
    }))
}

fn shown(name: &str) -> Value {
    json!({"name": name, "created_at": TIME, "updated_at": TIME})
}

fn about(
    description: &'static str,
    result: &'static str,
    schema: Value,
    example: (&'static str, Value, Value),
) -> About {
    About::with_example((result, schema), description, &[], example)
}

/// `secrets.set`.
#[must_use]
pub fn set() -> About {
    about(
        "Stores or replaces a secret for the tasks of one user. Inputs of `http_executor` and `a2a_executor` \
         (values of `headers`, members of `auth`) and of `command_executor` (values of `env`) name it as \
         `{\"$secret\": \"name\"}`. It is resolved when an attempt starts, for the user of the flow's root, \
         and removed from what the attempt says. It is stored encrypted beside the log and no call shows it.",
        "secret",
        secret(),
        (
            "a token",
            json!({"name": "api-key", "value": "an-example-of-a-secret"}),
            shown("api-key"),
        ),
    )
}

/// `secrets.list`.
#[must_use]
pub fn list() -> About {
    about(
        "Lists the secrets of one user by name, without their values. At most 1,000.",
        "secrets",
        object(json!({"secrets": {"type": "array", "items": secret()}})),
        ("all", json!({}), json!({"secrets": [shown(NAME)]})),
    )
}

/// `secrets.delete`.
#[must_use]
pub fn delete() -> About {
    about(
        "Deletes a secret. Attempts that start later and name it fail; those under way keep what they have.",
        "deleted",
        object(json!({
            "deleted": {"type": "boolean", "description": "Whether there was one."},
        })),
        ("one", json!({"name": NAME}), json!({"deleted": true})),
    )
}
