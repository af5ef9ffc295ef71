//! Enters in the node's indexes the tasks that a flow offers to workers, and the executors that it waits for.
//!
//! A flow in memory remembers what it has entered, and enters what has changed since. Whoever takes it out of an
//! index does that together with its state (`driver/belonging.rs`, `Flows::abandoned`), or takes all of it, which
//! is noticed by how much is there.

mod declared;
mod entered;

use super::awaited::Stood;
use super::flows::Flows;
use super::mailbox::Resident;
use super::offers::{Coming, Offer};
use super::slots::View;
pub(super) use declared::Declared;
pub(super) use entered::Entered;
use std::sync::Arc;
use taskledger_domain::FlowId;
use taskledger_domain::flow::Flow;
use taskledger_domain::schedule::{self, Outside, Waiting};
use taskledger_workers::MethodKey;

impl Flows {
    /// Enters what a flow has now; the claims that follow at once are `coming`. Cost: O(what has changed), but at
    /// first, under another directory and for another owner O(methods with ready tasks).
    pub(super) fn enter(&self, id: FlowId, state: &mut Resident, coming: &Arc<Coming>) {
        let view = self.slots.view(state.flow.owner());
        let Resident { flow, entered, .. } = state;
        if !entered.holds(flow, &view) || !self.enter_changes(id, flow, entered, &view, coming) {
            self.enter_all(id, flow, entered, &view, coming);
        }
    }

    /// Enters the flow and has it looked at again when there is another snapshot of the directory already than its
    /// last turn asked: whoever published that may have come too early to find it.
    pub(super) fn rests(self: &Arc<Self>, id: FlowId, state: &mut Resident) {
        self.enter(id, state, &Arc::default());
        let newest = self.slots.view(None).number();
        if schedule::has_ready(&state.flow) && state.asked != 0 && state.asked != newest {
            self.wake(id);
        }
    }

    /// The directory of executors has changed: limits are taken over, and flows that wait for what is
    /// there now are woken.
    pub(super) fn executors_changed(self: &Arc<Self>) {
        self.slots.follow();
        let limited = self.offers.limit(&self.slots.claim_limits());
        self.count_attempts_of(&limited);
        let of = |owner: Option<&str>| self.slots.view(owner);
        let changed = self.awaited.changed(&of(None), of);
        // What workers wait for depends on whose declarations there are.
        let declared = self.declared.follow(|| self.slots.declared_by_users());
        self.offers.look_for(&declared);
        changed.into_iter().for_each(|flow| self.wake(flow));
    }

    /// False when something is missing of what was entered before.
    fn enter_changes(
        &self,
        id: FlowId,
        flow: &mut Flow,
        entered: &mut Entered,
        view: &View,
        coming: &Arc<Coming>,
    ) -> bool {
        let outside = &mut entered.outside;
        let changed = outside.update(flow, self.clock.now(), view);
        if changed.is_empty() {
            return true;
        }
        let awaited = changed.iter().map(|(method, waiting)| {
            let of = (view, entered.owner.as_ref());
            let stood = waiting.map(|waiting| Stood::of(of, method, waiting.is_said));
            (Box::from(*method), stood)
        });
        let awaited = self.awaited.change(id, awaited.collect());
        let offers = changed.iter().map(|(method, waiting)| {
            let method = view.key(method);
            let offer = waiting.and_then(|waiting| offer(&method, waiting));
            (method, offer)
        });
        let (offers, of) = (offers.collect(), (id, entered.owner()));
        let offered = self.offers.change(of, offers, coming);
        awaited == entered.outside.waiting() && offered == entered.outside.offered()
    }

    fn enter_all(
        &self,
        id: FlowId,
        flow: &mut Flow,
        entered: &mut Entered,
        view: &View,
        coming: &Arc<Coming>,
    ) {
        let owner: Option<Arc<str>> = flow.owner().map(Arc::from);
        let (outside, all) = Outside::renewed(flow, self.clock.now(), view);
        let awaited = all.iter().filter_map(|(method, waiting)| {
            let of = (view, owner.as_ref());
            let stood = Stood::of(of, method, waiting.as_ref()?.is_said);
            Some((Box::from(*method), stood))
        });
        self.awaited.set(id, awaited.collect());
        let offers = all
            .iter()
            .filter_map(|(method, waiting)| offer(&view.key(method), (*waiting)?));
        let offers = offers.collect();
        *entered = Entered {
            outside,
            number: Some(view.number()),
            owner,
        };
        self.offers.set((id, entered.owner()), offers, coming);
    }
}

fn offer(method: &MethodKey, waiting: Waiting) -> Option<Offer> {
    let offered = waiting.offered?;
    Some(Offer {
        method: method.clone(),
        rank: (offered.priority, offered.since),
        ready: offered.ready,
    })
}
