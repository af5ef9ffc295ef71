//! Wakes flows at the times at which they must be looked at again.

use super::ownership::Partitions;
use crate::clock::SharedClock;
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;
use taskledger_domain::{FlowId, Timestamp};
use tokio::sync::Notify;

/// One next time per flow. Memory: one entry for each flow that waits for a time.
#[derive(Debug)]
pub(super) struct Timers {
    clock: SharedClock,
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    queue: BTreeSet<(Timestamp, FlowId)>,
    due: HashMap<FlowId, Timestamp>,
}

impl Timers {
    /// No timers.
    #[must_use]
    pub(super) fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            inner: Mutex::new(Inner::default()),
            changed: Notify::new(),
        }
    }

    /// Whether the flow has a timer.
    pub(super) fn has(&self, flow: FlowId) -> bool {
        let inner = self
            .inner
            .lock()
            .expect("no code panics while it holds the timers");
        inner.due.contains_key(&flow)
    }

    /// Sets, moves or removes the flow's timer.
    pub(super) fn set(&self, flow: FlowId, due: Option<Timestamp>) {
        let mut inner = self
            .inner
            .lock()
            .expect("no code panics while it holds the timers");
        let earlier = match due {
            Some(at) => inner.due.insert(flow, at),
            None => inner.due.remove(&flow),
        };
        if earlier == due {
            return;
        }
        if let Some(at) = earlier {
            inner.queue.remove(&(at, flow));
        }
        let Some(at) = due else { return };
        inner.queue.insert((at, flow));
        if inner.queue.first() == Some(&(at, flow)) {
            drop(inner);
            self.changed.notify_one();
        }
    }

    /// Removes the timers of all flows in these partitions.
    pub(super) fn forget(&self, partitions: &Partitions) {
        let mut inner = self
            .inner
            .lock()
            .expect("no code panics while it holds the timers");
        inner.due.retain(|flow, _| !partitions.contain(*flow));
        inner.queue.retain(|(_, flow)| !partitions.contain(*flow));
    }

    /// Removes and returns the flows whose time has come, at most `limit`.
    pub(super) fn take_due(&self, limit: usize) -> Vec<FlowId> {
        let now = self.clock.now();
        let mut inner = self
            .inner
            .lock()
            .expect("no code panics while it holds the timers");
        let mut flows = Vec::new();
        while flows.len() < limit
            && let Some(&(at, flow)) = inner.queue.first().filter(|(at, _)| *at <= now)
        {
            inner.queue.remove(&(at, flow));
            inner.due.remove(&flow);
            flows.push(flow);
        }
        flows
    }

    /// Waits until a timer is due or an earlier one was set. Never longer than
    /// [`Self::POLL`], so that a clock that was moved is noticed.
    pub(super) async fn wait(&self) {
        let next = self
            .inner
            .lock()
            .expect("no code panics while it holds the timers")
            .queue
            .first()
            .map(|(at, _)| *at);
        let wait = match next {
            None => Self::POLL,
            Some(at) => {
                let micros = at.0.saturating_sub(self.clock.now().0).max(0);
                // One more microsecond, so that the time has come when the sleep ends.
                Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX).saturating_add(1))
                    .min(Self::POLL)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.changed.notified() => {}
        }
    }

    /// The longest that a moved clock goes unnoticed.
    pub(super) const POLL: Duration = Duration::from_secs(1);
}
