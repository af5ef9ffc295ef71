//! How a driver checks that its flow belongs to this node, and what it does when that ends.

use super::Driver;
use crate::application::batch::Batch;
use crate::application::error::Failure;
use crate::application::leases::Source;
use crate::application::ownership::{Place, Refuted};
use crate::application::slots::Held;
use crate::store;
use std::sync::Arc;
use taskledger_domain::Recorded;
use taskledger_domain::schedule::Leased;

impl Driver<'_> {
    pub(super) fn place(&self) -> Place {
        self.flows.ownership.of(self.mailbox.flow)
    }

    /// Whether the ownership under which the state was loaded still holds; without a state, whether
    /// there is one.
    pub(super) fn is_ours(&self) -> bool {
        let place = self.place();
        match &self.state {
            Some(state) => state.is_under(&place),
            None => matches!(place, Place::Here(_)),
        }
    }

    /// Forgets a state of which others may know more. Whoever owns the flow looks after its times.
    pub(super) fn leave(&mut self) {
        self.state = None;
        self.flows.timers.set(self.mailbox.flow, None);
        self.flows.awaited.set(self.mailbox.flow, Vec::new());
        self.flows.offers.clear(self.mailbox.flow);
        self.flows.slots.give_way(self.mailbox.flow);
    }

    /// Keeps the leases of attempts that have begun, before anybody is told of them, and drops those of
    /// attempts that have ended.
    pub(super) fn keep_leases(&self, holds: Vec<(Leased, Held)>, recorded: &[Arc<Recorded>]) {
        if self.is_ours() && !holds.is_empty() {
            let state = self.state.as_ref();
            let view = self.flows.slots.view(state.and_then(|s| s.flow.owner()));
            for (leased, slot) in holds {
                let of = (self.mailbox.flow, view.key(&leased.method));
                self.flows.leases.hold(of, &leased, slot, Source::Begun);
            }
        }
        for event in recorded {
            self.flows.attempt_ended(event);
        }
    }

    /// The ownership under which the batch was decided is over.
    pub(super) fn refuted(&mut self, batch: Batch) {
        let fence = self.state.as_ref().and_then(|s| s.fence.clone());
        let flow = self.mailbox.flow;
        match self.flows.ownership.refuted(flow, fence.as_ref()) {
            Refuted::Server => {
                self.flows.fenced();
                self.fail(batch, || {
                    Failure::Store(store::Error::Unavailable(
                        "another server has taken over".to_owned(),
                    ))
                    .into()
                });
            }
            // If the flow is ours again, the commands are decided on what is stored now; else they
            // are told whose it is.
            Refuted::Partition => {
                tracing::debug!(flow.id = %flow, "the flow has got another owner");
                self.not_written(batch);
            }
        }
    }

    /// A loss that has begun meanwhile may have passed by what was shared and launched just now. The
    /// partition may be ours again already, so its other flows keep their attempts.
    pub(super) fn check_what_was_shared(&self) {
        if !self.is_ours() {
            self.flows.rows.forget_flow(self.mailbox.flow);
            self.flows.attempts().forsake_flow(self.mailbox.flow);
        }
    }
}
