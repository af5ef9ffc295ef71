//! A view of the executors of one snapshot; reading it takes no slot.

use crate::application::ports::{ExecutorSnapshot, Standing};
use std::sync::Arc;
use taskledger_domain::flow::{Capacity, SlotRequest};
use taskledger_workers::MethodKey;

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

    /// Whether any user has declared a method for themselves, or asks for one for their own flows alone.
    #[must_use]
    pub(in crate::application) fn has_owners(&self) -> bool {
        self.0.has_owners()
    }

    /// Whether the owner of the flows that it is for has declared the method for themselves.
    pub(in crate::application) fn is_own(&self, method: &str) -> bool {
        self.0.declared_for(method).is_some()
    }

    /// The method as it is offered and counted.
    pub(in crate::application) fn key(&self, method: &str) -> MethodKey {
        MethodKey {
            name: Arc::from(method),
            owner: self.0.declared_for(method).cloned(),
        }
    }

    /// Whether workers claim tasks of the method, of whichever user.
    #[must_use]
    pub fn is_remote_for_any(&self, method: &str) -> bool {
        self.0.is_remote_for_any(method)
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
