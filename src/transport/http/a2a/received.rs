//! A request whose body has been received.

use crate::application::api::{Caller, Turn};
use crate::transport::budget::Share;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// A request that was received.
pub(in crate::transport::http) struct Received {
    pub(in crate::transport::http) caller: Arc<Caller>,
    pub(in crate::transport::http) permit: OwnedSemaphorePermit,
    /// Its part of the bytes in hand.
    pub(in crate::transport::http) share: Share,
    /// The turn in which the body is read, if it is large.
    pub(in crate::transport::http) turn: Option<Turn>,
}
