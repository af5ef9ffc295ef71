//! Slots while the server drains: no new slot is given out, and the drain waits until all taken slots are returned.

use super::{Slots, Standing};
use std::pin::pin;
use std::sync::atomic::Ordering;

impl Slots {
    /// Whether nothing begins until it is said otherwise. What becomes ready meanwhile waits in the line. Says what
    /// was so before. Once the server is stopping, nothing begins again.
    pub fn hold_back(&self, holds: bool) -> bool {
        let held = self.held_back.swap(holds, Ordering::AcqRel);
        if !holds {
            self.repeat_wake_ups();
        }
        held
    }

    /// From now on nothing begins, whatever is said.
    pub fn stop_soon(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Whether the server stops as soon as what is under way has ended.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Whether nothing begins for now.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        self.held_back.load(Ordering::Acquire) || self.is_stopping()
    }

    /// Attempts of this process that are under way. Those of workers outside are not among them, also of methods that
    /// only one user has.
    #[must_use]
    pub fn running_here(&self) -> usize {
        let executors = self.executors.snapshot();
        let lanes = self.lanes();
        let here = lanes
            .iter()
            .filter(|(name, _)| Standing::of(&*executors, name) == Standing::BuiltIn);
        here.map(|(_, lane)| lane.taken.len()).sum()
    }

    /// Waits until no attempt of this process is under way.
    pub async fn at_rest(&self) {
        loop {
            let mut given_back = pin!(self.given_back.notified());
            given_back.as_mut().enable();
            if self.running_here() == 0 {
                return;
            }
            given_back.await;
        }
    }
}
