//! `webhooks.rotate_secret`.

use super::super::super::reader::{Parameters, Reader, integer};
use super::kinds::{Id, OwnSecret};
use crate::application::api::webhooks::{EndpointId, Secret};
use taskledger_domain::Violation;

/// Seconds for which the old secret signs too: a day by default, a week at most.
pub const GRACE_SECONDS_DEFAULT: u32 = 24 * 3600;
/// See [`GRACE_SECONDS_DEFAULT`].
pub const GRACE_SECONDS_MAX: u32 = 7 * 24 * 3600;

/// What signs from now on.
#[derive(Debug, Clone)]
pub struct Params {
    /// The endpoint.
    pub id: EndpointId,
    /// The caller's own secret.
    pub secret: Option<Secret>,
    /// For how long the old one signs too.
    pub grace_seconds: u32,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required("id", Id, "The webhook.");
        let secret = reader.optional(
            "secret",
            OwnSecret,
            "A secret of your own; without it one is made.",
        );
        let grace = reader.with_default(
            "grace_seconds",
            integer(0..=u64::from(GRACE_SECONDS_MAX)),
            u64::from(GRACE_SECONDS_DEFAULT),
            "For how long the old secret signs too.",
        );
        reader.finish(|| {
            Some(Self {
                id: id?,
                secret,
                grace_seconds: u32::try_from(grace).expect("the range fits 32 bits"),
            })
        })
    }
}
