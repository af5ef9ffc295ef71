//! `webhooks.redeliver`.

use super::super::super::reader::{Parameters, Reader, integer, text};
use crate::application::context::IDEMPOTENCY_KEY_CHARS_MAX;
use std::sync::Arc;
use taskledger_domain::Violation;

/// Which delivery is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Its id.
    pub delivery_id: i64,
    /// Orders with the same key are one.
    pub request_key: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required(
            "delivery_id",
            integer(1..=i64::MAX as u64),
            "The delivery, in any state.",
        );
        let key = reader.optional(
            "request_key",
            text(IDEMPOTENCY_KEY_CHARS_MAX),
            "Calls with the same key send the message once.",
        );
        reader.finish(|| {
            Some(Self {
                delivery_id: i64::try_from(id?).expect("the range fits"),
                request_key: key.map(Arc::from),
            })
        })
    }
}
