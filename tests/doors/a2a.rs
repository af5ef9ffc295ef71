//! Agent2Agent 1.0 with the real program: one table of scenarios over all bindings, errors, streams, the card.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

pub(crate) mod binding;
mod card;
mod deadlines;
mod faults;
mod kit;
mod lives;
mod nodes;
pub(crate) mod pieces;
mod push;
mod rejected;
mod scenarios;
mod strangers;
mod text;
mod v03;
pub(crate) mod v03_callers;
mod wire;
mod workflows;

use serde_json::{Value, json};

/// A message with these parts.
fn message(parts: Value) -> Value {
    json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": parts}})
}

/// A message that runs these tasks.
fn runs(tasks: Value) -> Value {
    message(json!([{"text": "please"}, {"data": {"tasks": tasks}}]))
}

fn echo(name: &str) -> Value {
    json!({"name": name, "schemas": {"method": "echo_executor"}, "inputs": {"text": name}})
}

fn endless() -> Value {
    json!({"name": "endless", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 600_000}})
}

fn question() -> Value {
    json!({"name": "ask", "schemas": {"method": "approval_executor"},
        "inputs": {"question": "Which colour?", "response_type": "text"}})
}
