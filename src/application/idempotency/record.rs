//! The record that is stored for an idempotency key.

use crate::application::api::Reply;
use crate::application::error::{Error, Failure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;
use uuid::Uuid;

/// The version of the records that are written.
pub(super) const RECORD_VERSION: u32 = 1;

/// A record as it is written.
#[derive(Serialize)]
pub(super) struct Written<'a> {
    pub(super) v: u32,
    pub(super) fingerprint: &'a str,
    pub(super) reply: &'a Reply,
    /// The id of the call, if the audit log has an entry of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<Uuid>,
}

/// A record of any version.
#[derive(Deserialize)]
pub(super) struct Record {
    pub(super) v: u32,
    pub(super) fingerprint: String,
    /// A [`Reply`], if the version is [`RECORD_VERSION`].
    pub(super) reply: Box<RawValue>,
    /// See [`Written::call`].
    pub(super) call: Option<Uuid>,
}

impl Record {
    pub(super) fn read(value: &str) -> Result<Self, Error> {
        serde_json::from_str(value).map_err(|error| unreadable(&error))
    }
}

pub(super) fn unreadable(error: &dyn fmt::Display) -> Error {
    let text = format!("the claim of an idempotency key cannot be read: {error}");
    Failure::Broken(text).into()
}
