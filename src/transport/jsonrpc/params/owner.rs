//! The member `owner`: who owns a thing that is stored beside the log.

use super::super::reader::{Fault, Kind, Refusal};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::limits::KEY_CHARS_MAX;

/// The `user_id` of flows, or empty for those without one.
#[derive(Debug, Clone, Copy)]
pub struct OwnerKind;

impl Kind for OwnerKind {
    type Out = Arc<str>;

    fn schema(&self) -> Value {
        json!({"type": "string", "maxLength": KEY_CHARS_MAX})
    }

    fn parse(&self, value: &Value) -> Result<Arc<str>, Refusal> {
        let expected = || format!("a string of at most {KEY_CHARS_MAX} characters");
        let text = value
            .as_str()
            .ok_or_else(|| Fault::new("not a string", expected()))?;
        if text.chars().count() > KEY_CHARS_MAX {
            return Err(Fault::new("too long", expected()).into());
        }
        Ok(Arc::from(text))
    }
}
