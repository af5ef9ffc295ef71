//! Where each flow's history ended when this server last wrote to it: how a reader knows what it
//! has to wait for.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use taskledger_domain::{FlowId, Position};

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
        }
    }

    /// The read models have come this far: flows that end before can be forgotten.
    pub fn reached(&self, checkpoint: Position) {
        self.checkpoint.fetch_max(checkpoint, Ordering::Relaxed);
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
