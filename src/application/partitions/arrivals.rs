//! Partitions that this node has gained and is about to work on.

use crate::application::ownership::Partitions;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// Partitions that have come and whose flows are to be woken.
#[derive(Debug, Default)]
pub(in crate::application) struct Arrivals {
    waiting: Mutex<Partitions>,
    pub(super) changed: Notify,
}

impl Arrivals {
    pub(super) fn waiting(&self) -> MutexGuard<'_, Partitions> {
        self.waiting
            .lock()
            .expect("no code panics while it holds the arrivals")
    }
}
