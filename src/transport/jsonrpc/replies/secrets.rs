//! The results of `secrets.*`, which never hold a secret's value.

use super::raw;
use crate::application::api::SecretView;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A secret without its value.
pub(in crate::transport::jsonrpc) fn secret(row: &SecretView) -> Box<RawValue> {
    raw(&shown(row))
}

/// All secrets of an owner.
pub(in crate::transport::jsonrpc) fn secrets(rows: &[SecretView]) -> Box<RawValue> {
    let rows: Vec<_> = rows.iter().map(shown).collect();
    raw(&json!({"secrets": rows}))
}

/// Whether there was a secret to delete.
pub(in crate::transport::jsonrpc) fn secret_deleted(deleted: bool) -> Box<RawValue> {
    raw(&json!({"deleted": deleted}))
}

fn shown(row: &SecretView) -> Value {
    json!({
        "name": row.name,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    })
}
