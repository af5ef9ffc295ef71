//! Looking ahead at executors without taking anything.

use crate::application::ports::{ExecutorSnapshot, Standing};
use std::sync::Arc;
use taskledger_domain::flow::{Capacity, SlotRequest};

/// See [`Slots::view`](super::Slots::view).
#[derive(Debug)]
pub struct View(Arc<dyn ExecutorSnapshot>);

impl View {
    pub(super) fn of(snapshot: Arc<dyn ExecutorSnapshot>) -> Self {
        Self(snapshot)
    }

    /// The number of the snapshot.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.0.number()
    }

    /// How the snapshot stands to a method.
    #[must_use]
    pub fn standing(&self, method: &str) -> Standing {
        Standing::of(&*self.0, method)
    }
}

impl Capacity for View {
    fn knows(&self, method: &str) -> bool {
        self.0.knows(method)
    }
    fn is_remote(&self, method: &str) -> bool {
        self.0.is_remote(method)
    }
    fn is_idempotent(&self, method: &str) -> bool {
        self.0.is_idempotent(method)
    }
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        self.0.canonical_name(method)
    }
    fn take_slot(&mut self, _: &SlotRequest<'_>) -> bool {
        false
    }
}
