//! Notifications: messages that a socket gets without having asked.

use axum::extract::ws::Message;
use serde_json::{Value, json};

/// A notification as it is written.
pub(super) fn notification(method: &str, params: &Value) -> Message {
    let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
    Message::text(told.to_string())
}
