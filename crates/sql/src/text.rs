//! Texts in the form in which a database can store them.

use std::sync::Arc;
use taskledger_domain::Payload;

/// A text, owned or shared.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    Shared(Arc<str>),
    Name(&'static str),
    Owned(String),
    Payload(Payload),
}

impl Text {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Shared(text) => text,
            Self::Name(text) => text,
            Self::Owned(text) => text,
            Self::Payload(payload) => payload.as_str(),
        }
    }
}
