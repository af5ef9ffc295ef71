//! Where each flow's history ended when this server last wrote to it: how a reader knows what it
//! has to wait for.

use std::collections::HashMap;
use std::sync::Mutex;
use taskledger_domain::{FlowId, Position};

/// Flows remembered before those that the read models have passed are forgotten.
const FLOWS_BEFORE_SWEEP: usize = 10_000;

/// Last positions of flows that the read models may not have reached. Memory: bounded by the lag of
/// the read models, which is bounded itself.
#[derive(Debug, Default)]
pub struct Positions {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last: HashMap<FlowId, Position>,
    sweep_at: usize,
    checkpoint: Position,
}

impl Positions {
    /// The flow has an event at this position.
    pub fn advance(&self, flow: FlowId, position: Position) {
        let mut inner = self
            .inner
            .lock()
            .expect("no code panics while it holds the positions");
        let last = inner.last.entry(flow).or_default();
        *last = position.max(*last);
        if inner.last.len() > inner.sweep_at.max(FLOWS_BEFORE_SWEEP) {
            let checkpoint = inner.checkpoint;
            inner.last.retain(|_, position| *position > checkpoint);
            // The map is swept again when it has doubled, so that sweeping costs O(1) an advance.
            inner.sweep_at = inner.last.len() * 2;
        }
    }

    /// What the read models must have reached to show all of the flow; 0 when they have, given that
    /// they are at `checkpoint`.
    pub fn awaited(&self, flow: FlowId, checkpoint: Position) -> Position {
        let mut inner = self
            .inner
            .lock()
            .expect("no code panics while it holds the positions");
        inner.checkpoint = checkpoint.max(inner.checkpoint);
        match inner.last.get(&flow).copied() {
            Some(position) if position > checkpoint => position,
            Some(_) => {
                inner.last.remove(&flow);
                0
            }
            None => 0,
        }
    }
}
