//! What a driver leaves behind between two rounds: a snapshot, and the time at which it is wanted again.

use super::Driver;
use crate::application::loading;
use crate::application::stretch::at_a_stretch;
use taskledger_domain::schedule;

impl Driver<'_> {
    /// Stores a snapshot when loading the flow would have to read many events.
    pub(super) fn keep_snapshot(&mut self) {
        if self.owes_snapshot()
            && self.is_ours()
            && let Some(state) = &mut self.state
        {
            assert!(
                state.durable == state.flow.version(),
                "a snapshot holds durable events only"
            );
            state.snapshot = state.durable;
            at_a_stretch(state.flow.size(), || {
                self.flows.save_snapshot(self.mailbox.flow, &state.flow);
            });
        }
    }

    pub(super) fn owes_snapshot(&self) -> bool {
        self.state
            .as_ref()
            .filter(|s| s.flow.archived().is_none())
            .is_some_and(|s| s.durable - s.snapshot > loading::snapshot_interval(s.flow.size()))
    }

    /// Registers when, and with which executor, the flow is wanted again.
    pub(super) fn set_timer(&self) {
        let Some(state) = self.state.as_ref() else {
            return;
        };
        let due = if state.flow.has_active_run() {
            schedule::next_due(&state.flow, state.settled_at, &self.flows.slots.view())
        } else {
            None
        };
        self.flows.timers.set(self.mailbox.flow, due);
        self.flows
            .rests(self.mailbox.flow, &state.flow, state.asked);
    }
}
