//! What a driver leaves behind when it stops: a snapshot, and the time at which the flow must be looked at again.

use super::Driver;
use crate::application::loading;
use crate::application::mailbox::Begins;
use crate::runtime::maybe_block_in_place;
use taskledger_domain::schedule;

/// Milliseconds after which a flow whose turn failed is looked at again.
const WAKE_AGAIN_MS: u64 = 1000;

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
            maybe_block_in_place(state.flow.size(), || {
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
    pub(super) fn set_timer(&mut self) {
        let Some(state) = &mut self.state else {
            return;
        };
        let due = if state.flow.has_active_run() {
            schedule::next_due(
                &state.flow,
                state.settled_at,
                &self.flows.slots.view(state.flow.owner()),
            )
        } else {
            None
        };
        self.flows.timers.set(self.mailbox.flow, due);
        self.flows.rests(self.mailbox.flow, state);
    }

    /// Forgets the working state. What it had registered outside may rest on it: its place among those that wait
    /// for slots, so a flow with work is looked at again even if nobody asks; and what workers may claim.
    pub(super) fn drop_state(&mut self) {
        self.flows.offers.clear(self.mailbox.flow);
        if self.state.take().is_some_and(|s| s.flow.has_active_run()) {
            self.wake_later();
        }
    }

    /// Nothing came of a command that was decided as if nothing were stored of the flow, so no append will tell whether
    /// that is so: it is decided again on what is stored.
    pub(super) fn forget_assumption(&mut self) {
        if self.state.as_ref().is_some_and(|s| s.flow.version() > 0) {
            return;
        }
        self.drop_state();
        if let Some(mut entry) = self.next.entries.pop() {
            entry.order.begins = Begins::Contested;
            self.again.push_front(entry.order);
        }
    }

    pub(super) fn wake_later(&self) {
        self.flows.timers.set(
            self.mailbox.flow,
            Some(self.flows.clock.now().plus_ms(WAKE_AGAIN_MS)),
        );
    }
}
