//! Kinds of values that only secrets have.

use super::super::super::reader::{Fault, Kind, Reader, Refusal};
use crate::application::api::Secret;
use crate::transport::jsonrpc::params::owner::OwnerKind;
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_auth::{SECRET_BYTES, SecretName};
use taskledger_domain::Violation;

/// Stands for what must not be repeated.
const HIDDEN: &str = "***";

/// The name of a secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameOfSecret;

impl Kind for NameOfSecret {
    type Out = SecretName;

    fn schema(&self) -> Value {
        json!({"type": "string", "pattern": SecretName::PATTERN})
    }

    fn parse(&self, value: &Value) -> Result<SecretName, Refusal> {
        let text = value
            .as_str()
            .ok_or_else(|| Fault::new("not a string", SecretName::EXPECTED))?;
        // What stands behind `NAME=` may be the value of the secret.
        let shown = match text.split_once('=') {
            Some((name, _)) => format!("{name}={HIDDEN}"),
            None => text.to_owned(),
        };
        SecretName::new(text).map_err(|_| {
            let (reason, expected) = ("not the name of a secret", SecretName::EXPECTED);
            let fault = Violation::of("name", reason, expected, &Value::from(shown));
            Refusal::Inside(vec![fault])
        })
    }
}

/// The value of a secret; what is wrong with it never shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueOfSecret;

impl Kind for ValueOfSecret {
    type Out = Secret;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": SECRET_BYTES.start(), "maxLength": SECRET_BYTES.end(),
            "pattern": "^[^\\u0000]*$"})
    }

    /// Bytes are counted by the store.
    fn parse(&self, value: &Value) -> Result<Secret, Refusal> {
        let (least, most) = (SECRET_BYTES.start(), SECRET_BYTES.end());
        let fault = |reason: &str| {
            let expected =
                format!("a string of {least} to {most} characters without NUL characters");
            // A value that is missing is told as that.
            let actual = if value.is_null() {
                Value::Null
            } else {
                HIDDEN.into()
            };
            Refusal::Inside(vec![Violation::of("value", reason, expected, &actual)])
        };
        let text = value.as_str().ok_or_else(|| fault("not a string"))?;
        let chars = text.chars().count();
        if chars < *least {
            Err(fault("too short"))
        } else if chars > *most {
            Err(fault("too long"))
        } else if text.contains('\0') {
            Err(fault("not a text"))
        } else {
            Ok(Secret(Arc::from(text)))
        }
    }
}

/// Asks for `owner`.
pub(super) fn owner(reader: &mut Reader<'_>) -> Option<Arc<str>> {
    reader.optional(
        "owner",
        OwnerKind,
        "The user whose flows may use it; needs `users:any` unless it is the caller. Empty: flows without a user; this is also the default without authentication.",
    )
}
