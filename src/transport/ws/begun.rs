//! Subscriptions that a call on a socket has begun and that continue after its answer.

use super::work::Worker;
use crate::subscription::stream::{Notices, Reset};
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;

/// The place of a subscription, from the call that asks for it on.
#[derive(Debug)]
pub(super) struct Place(
    #[expect(dead_code, reason = "it is held, not read")] pub(super) OwnedSemaphorePermit,
);

/// A stream that a call has opened.
pub(super) struct Opened {
    /// The id of the call.
    pub(super) id: Box<RawValue>,
    /// Its result; `None` for `subscribe`, whose result is the subscription.
    pub(super) result: Option<Box<RawValue>>,
    pub(super) stream: Notices,
    pub(super) reset: Option<Reset>,
    /// Its place among the subscriptions.
    pub(super) place: Place,
}

/// Work that a call has asked for.
pub(super) struct Asked {
    /// The id of the call.
    pub(super) id: Box<RawValue>,
    pub(super) worker: Worker,
    /// Its place among the subscriptions.
    pub(super) place: Place,
}

/// What a call has begun. Small: a channel keeps room for 32 from its beginning, and each socket has one.
pub(super) enum Begun {
    Stream(Box<Opened>),
    Work(Box<Asked>),
}
