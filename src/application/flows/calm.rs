//! Flows while the server drains or stops: no new attempt begins, in this process or outside.

use super::Flows;

impl Flows {
    /// Whether no attempt begins, in this process or outside, until it is said otherwise. What is under way goes
    /// on, and workers that wait go on waiting. Says what was so before.
    pub fn hold_back(&self, holds: bool) -> bool {
        let held = self.slots.hold_back(holds);
        self.offers.hold_back(holds);
        held
    }

    /// From now on no attempt begins, and nobody can change that: the server stops when what is under way has ended.
    pub fn stop_soon(&self) {
        self.slots.stop_soon();
        self.offers.stop_soon();
    }

    /// From now on no attempt begins, in this process or outside; workers that wait are told that there is
    /// nothing.
    pub fn close(&self) {
        self.slots.close();
        self.offers.close();
    }
}
