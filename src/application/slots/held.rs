//! A slot that is taken.

use super::Slots;
use std::sync::Arc;
use taskledger_domain::TaskId;

/// The slot of an attempt: dropping it frees the slot.
#[derive(Debug)]
pub struct Held {
    /// `None`: it is not given back here.
    pub(super) slots: Option<Arc<Slots>>,
    pub(super) method: Box<str>,
    pub(super) task: TaskId,
    pub(super) attempt: u32,
}

impl Held {
    /// The task and number of the attempt that has the slot.
    #[must_use]
    pub const fn attempt(&self) -> (TaskId, u32) {
        (self.task, self.attempt)
    }

    /// The attempt begins: whoever runs it gives the slot back ([`Slots::held`]).
    pub fn keep(mut self) {
        self.slots = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(slots) = &self.slots {
            slots.release(&self.method, self.task, self.attempt);
        }
    }
}
