//! Where each flow's history ended when this server last wrote to it: how a reader knows what it
//! has to wait for.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use taskledger_domain::{FlowId, Position};
use tokio::sync::Notify;

/// Flows remembered before those that the read models have passed are forgotten.
const FLOWS_BEFORE_SWEEP: usize = 10_000;

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

#[derive(Debug, Default)]
struct Inner {
    last: HashMap<FlowId, Position>,
    sweep_at: usize,
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

    /// The flow has an event at this position.
    pub fn advance(&self, flow: FlowId, position: Position) {
        self.remember(flow, position);
        self.advanced.notify_waiters();
    }

    fn remember(&self, flow: FlowId, position: Position) {
        let mut inner = self
            .inner
            .lock()
            .expect("no code panics while it holds the positions");
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
        positions.advance(id("other").as_flow(), 9);
        positions.advance(flow, 4);
        // then
        assert!(reached.as_mut().now_or_never().is_none());
        positions.advance(flow, 5);
        assert!(reached.as_mut().now_or_never().is_some());
        let mut folded = Box::pin(positions.reaches(flow, 7));
        assert!(folded.as_mut().now_or_never().is_none());
        positions.reached(7);
        assert!(folded.as_mut().now_or_never().is_some());
    }
}
