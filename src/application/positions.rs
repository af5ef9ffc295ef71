//! The position at which each flow's history ended when this server last wrote to it; readers wait until the read
//! models reach it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use taskledger_domain::{FlowId, Position};
use tokio::sync::Notify;

/// Flows remembered before those that the read models have passed are forgotten.
const FLOWS_BEFORE_SWEEP: usize = 10_000;
/// The same of owners.
const OWNERS_BEFORE_SWEEP: usize = 1_000;

/// Last positions of flows that the read models may not have reached. Memory: bounded by the lag of
/// the read models, which is bounded itself.
#[derive(Debug)]
pub struct Positions {
    /// Head of the log when this server started: what was written before belongs to any flow.
    start: Position,
    /// The furthest that the read models are known to have come.
    checkpoint: AtomicU64,
    inner: Mutex<Inner>,
    /// A flow, or the read models, have come further.
    advanced: Notify,
}

/// The owners whose lists may show what was written to a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenBy {
    /// Those of the flow's owner; nobody's flows are in no list of an owner.
    Owner(Option<Arc<str>>),
    /// Those of anybody: the owner has changed, or is not known.
    Anybody,
}

#[derive(Debug, Default)]
struct Inner {
    last: HashMap<FlowId, Position>,
    sweep_at: usize,
    /// Last positions of the flows of each owner.
    owners: HashMap<Arc<str>, Position>,
    sweep_owners_at: usize,
    /// The last one of what anybody may see.
    of_anybody: Position,
}

impl Positions {
    /// Nothing is known of flows but that all of them end at `head` or before.
    #[must_use]
    pub fn after(head: Position) -> Self {
        Self {
            start: head,
            checkpoint: AtomicU64::new(0),
            inner: Mutex::default(),
            advanced: Notify::new(),
        }
    }

    /// The read models have come this far: flows that end before can be forgotten.
    pub fn reached(&self, checkpoint: Position) {
        if self.checkpoint.fetch_max(checkpoint, Ordering::Relaxed) < checkpoint {
            self.advanced.notify_waiters();
        }
    }

    /// Flows that are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        let inner = self.inner.lock();
        inner
            .expect("no code panics while it holds the positions")
            .last
            .len()
    }

    /// The flow has an event at this position, which these may see.
    pub fn advance(&self, flow: FlowId, position: Position, seen_by: &SeenBy) {
        self.remember(flow, position, seen_by);
        self.advanced.notify_waiters();
    }

    fn remember(&self, flow: FlowId, position: Position, seen_by: &SeenBy) {
        let mut inner = self
            .inner
            .lock()
            .expect("no code panics while it holds the positions");
        match seen_by {
            SeenBy::Anybody => inner.of_anybody = position.max(inner.of_anybody),
            SeenBy::Owner(None) => {}
            SeenBy::Owner(Some(owner)) => inner.remember_of(owner, position, &self.checkpoint),
        }
        let last = inner.last.entry(flow).or_default();
        *last = position.max(*last);
        if inner.last.len() > inner.sweep_at.max(FLOWS_BEFORE_SWEEP) {
            let checkpoint = self.checkpoint.load(Ordering::Relaxed);
            inner.last.retain(|_, position| *position > checkpoint);
            // The map is swept again when it has doubled, so that sweeping costs O(1) an advance.
            inner.sweep_at = inner.last.len() * 2;
        }
    }

    /// Waits until this server knows that the flow has come to this position.
    pub async fn reaches(&self, flow: FlowId, position: Position) {
        loop {
            let advanced = self.advanced.notified();
            if self.knows(flow, position) {
                return;
            }
            advanced.await;
        }
    }

    fn knows(&self, flow: FlowId, position: Position) -> bool {
        if position <= self.checkpoint.load(Ordering::Relaxed) {
            return true;
        }
        let inner = self.inner.lock();
        let inner = inner.expect("no code panics while it holds the positions");
        let last = inner.last.get(&flow);
        last.is_some_and(|last| *last >= position)
    }

    /// What the read models must have reached to show all that was written to flows of this owner; 0 when they have,
    /// given that they are at `checkpoint`. What others wrote meanwhile is not waited for.
    pub fn awaited_of(&self, owner: &str, checkpoint: Position) -> Position {
        self.reached(checkpoint);
        let inner = self.inner.lock();
        let inner = inner.expect("no code panics while it holds the positions");
        let own = inner.owners.get(owner).copied().unwrap_or(0);
        let last = own.max(inner.of_anybody).max(self.start);
        if last > checkpoint { last } else { 0 }
    }

    /// What the read models must have reached to show all of the flow; 0 when they have, given that
    /// they are at `checkpoint`.
    pub fn awaited(&self, flow: FlowId, checkpoint: Position) -> Position {
        self.reached(checkpoint);
        let mut inner = self
            .inner
            .lock()
            .expect("no code panics while it holds the positions");
        match inner.last.get(&flow).copied() {
            Some(position) if position > checkpoint => position,
            Some(_) => {
                inner.last.remove(&flow);
                0
            }
            None if checkpoint < self.start => self.start,
            None => 0,
        }
    }
}

impl Inner {
    fn remember_of(&mut self, owner: &Arc<str>, position: Position, checkpoint: &AtomicU64) {
        if let Some(last) = self.owners.get_mut(owner) {
            *last = position.max(*last);
            return;
        }
        self.owners.insert(owner.clone(), position);
        if self.owners.len() > self.sweep_owners_at.max(OWNERS_BEFORE_SWEEP) {
            let checkpoint = checkpoint.load(Ordering::Relaxed);
            self.owners.retain(|_, position| *position > checkpoint);
            self.sweep_owners_at = self.owners.len() * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use taskledger_domain::testing::id;

    #[tokio::test]
    async fn whoever_waits_for_a_position_goes_on_when_the_flow_or_the_read_models_have_reached_it()
    {
        // given
        let (positions, flow) = (Positions::after(0), id("task").as_flow());
        let mut reached = Box::pin(positions.reaches(flow, 5));
        assert!(reached.as_mut().now_or_never().is_none());
        // when: others come further, and the flow not far enough
        positions.advance(id("other").as_flow(), 9, &SeenBy::Anybody);
        positions.advance(flow, 4, &SeenBy::Anybody);
        // then
        assert!(reached.as_mut().now_or_never().is_none());
        positions.advance(flow, 5, &SeenBy::Anybody);
        assert!(reached.as_mut().now_or_never().is_some());
        let mut folded = Box::pin(positions.reaches(flow, 7));
        assert!(folded.as_mut().now_or_never().is_none());
        positions.reached(7);
        assert!(folded.as_mut().now_or_never().is_some());
    }
    #[test]
    fn a_list_of_one_owner_waits_for_what_was_written_to_his_flows_only() {
        let of = |owner: &str| SeenBy::Owner(Some(Arc::from(owner)));
        let positions = Positions::after(2);
        assert_eq!(positions.awaited_of("ann", 1), 2, "of before the start");
        positions.advance(id("a").as_flow(), 3, &of("ann"));
        positions.advance(id("b").as_flow(), 7, &of("bob"));
        positions.advance(id("c").as_flow(), 8, &SeenBy::Owner(None));
        assert_eq!(positions.awaited_of("ann", 2), 3);
        assert_eq!(positions.awaited_of("ann", 3), 0);
        assert_eq!(positions.awaited_of("bob", 3), 7);
        // Whoever got or lost a flow is not known here.
        positions.advance(id("b").as_flow(), 9, &SeenBy::Anybody);
        assert_eq!(positions.awaited_of("ann", 3), 9);
    }

    #[test]
    fn owners_whom_the_read_models_have_passed_are_forgotten() {
        let positions = Positions::after(0);
        for n in 1..=OWNERS_BEFORE_SWEEP as u64 + 1 {
            positions.reached(n - 1);
            let owner = SeenBy::Owner(Some(Arc::from(format!("u{n}"))));
            positions.advance(id("a").as_flow(), n, &owner);
        }
        let inner = positions.inner.lock().expect("not poisoned");
        assert_eq!(inner.owners.len(), 1);
    }
}
