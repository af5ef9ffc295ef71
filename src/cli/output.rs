//! What commands print of answers.

pub(super) use taskledger_terminal::{Output, printable, table};

use serde_json::Value;
use std::io;

/// The member `name` of an object as text for people; empty when it is absent or null.
pub(super) fn member(object: &Value, name: &str) -> String {
    match object.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => printable(text),
        Some(other) => printable(&other.to_string()),
    }
}

/// Says how to see the page after this one, if there is one.
pub(super) fn next_page(result: &Value, out: &mut Output) -> io::Result<()> {
    let cursor = member(result, "next_cursor");
    if cursor.is_empty() {
        return Ok(());
    }
    out.line(format!("next page: --cursor {cursor}"))
}

/// So many things: `1 message`, `2 messages`.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
