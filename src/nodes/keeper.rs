//! Renews the leases of this node, once a second.
//!
//! The order of things is what makes it safe. What is lost is lost first by [`NodeOwnership`], so that
//! nothing is decided any more; then everything that rests on it is dropped ([`PartitionListener::lost`]); only
//! then may it be held again, under another token.

use super::leases::{Error, Held, Leases, Sight};
use super::ownership::{NodeOwnership, partitions};
use super::{BEAT_EVERY, BEAT_WAIT, GIVE_MAX, READ_MODELS};
use crate::application::ownership::Node;
use crate::application::{Flows, Partitions};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// A listener to gains and losses of partitions.
pub trait PartitionListener: Send + Sync + fmt::Debug + 'static {
    /// They are not this node's any more; must not wait.
    fn lost(&self, partitions: &Partitions);
    /// They are this node's now; must not wait.
    fn gained(&self, partitions: &Partitions);
    /// Those whose loss would interrupt something.
    fn busy(&self) -> Partitions;
}

impl PartitionListener for Flows {
    fn lost(&self, partitions: &Partitions) {
        Self::lost(self, partitions);
    }
    fn gained(&self, partitions: &Partitions) {
        Self::gained(self, partitions);
    }
    fn busy(&self) -> Partitions {
        Self::busy(self)
    }
}

/// Takes, renews and hands over the leases of one node; one for each server, driven by its `run`.
#[derive(Debug)]
pub struct Keeper {
    node: Node,
    ownership: Arc<NodeOwnership>,
    leases: Arc<dyn Leases>,
    listener: Arc<dyn PartitionListener>,
    /// The last beat did not succeed.
    failing: AtomicBool,
}

impl Keeper {
    /// A keeper that has not begun, for a node that others reach at `url`.
    #[must_use]
    pub fn new(
        url: Arc<str>,
        ownership: Arc<NodeOwnership>,
        leases: Arc<dyn Leases>,
        listener: Arc<dyn PartitionListener>,
    ) -> Self {
        let id = ownership.me();
        Self {
            node: Node { id, url },
            ownership,
            leases,
            listener,
            failing: AtomicBool::new(false),
        }
    }

    /// Renews leases until `stop`; then gives them all up. Stop it when nothing is decided any more.
    ///
    /// # Errors
    /// [`Error::Differs`]: the server must not go on.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let mut gave = false;
        let ended = loop {
            let sent = Instant::now();
            let beaten = tokio::select! {
                biased;
                () = stop.cancelled() => break Ok(()),
                beaten = self.beat(sent, gave) => beaten,
            };
            gave = match beaten {
                Ok(gave) => gave,
                Err(error) => break Err(error),
            };
            // What was given up is free for others once the database knows.
            if gave {
                continue;
            }
            let next = sleep_until(sent + BEAT_EVERY);
            tokio::select! {
                biased;
                () = stop.cancelled() => break Ok(()),
                () = self.ownership.refuted.notified() => self.lose(&self.ownership.expire()),
                () = self.watched(next) => {}
            }
        };
        self.lose(&self.ownership.give(&self.ownership.held()));
        match timeout(BEAT_WAIT, self.leases.leave(&self.node)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "the leases of this node end by themselves");
            }
            Err(_) => tracing::warn!("the leases of this node end by themselves"),
        }
        ended
    }

    /// One beat. Whether leases were given up, of which the database must hear. A beat that only tells
    /// of those of the one before (`gave`) gives up no more.
    ///
    /// # Errors
    /// [`Error::Differs`].
    async fn beat(&self, sent: Instant, gave: bool) -> Result<bool, Error> {
        let asked = self.ownership.held();
        let answer = timeout(BEAT_WAIT, self.leases.beat(&self.node, &asked));
        let sight = match self.watched(answer).await {
            Ok(Ok(sight)) => sight,
            Ok(Err(error @ Error::Differs { .. })) => return Err(error),
            Ok(Err(error @ (Error::Unavailable(_) | Error::InUse { .. }))) => {
                self.not_renewed(&error.to_string());
                return Ok(false);
            }
            Err(_) => {
                self.not_renewed("no answer in time");
                return Ok(false);
            }
        };
        if self.failing.swap(false, Ordering::Relaxed) {
            tracing::info!("the leases of this node are renewed again");
        }
        self.lose(&self.ownership.drop_lost(sent, &sight));
        let gained = self.ownership.take(sent, &asked, &sight);
        if !gained.is_empty() {
            tracing::info!(
                partitions = gained.len(),
                "partitions have come to this node"
            );
            self.ownership.moves.add(gained.len() as u64);
            self.listener.gained(&gained);
        }
        if gave {
            return Ok(false);
        }
        let surplus = self.surplus(&sight);
        self.lose(&self.ownership.give(&surplus));
        Ok(!surplus.is_empty())
    }

    /// Waits for something, and gives up leases whose time passes meanwhile.
    async fn watched<T>(&self, what: impl Future<Output = T>) -> T {
        let mut what = std::pin::pin!(what);
        while let Some(until) = self.ownership.until() {
            tokio::select! {
                biased;
                done = &mut what => return done,
                () = sleep_until(until) => self.lose(&self.ownership.expire()),
            }
        }
        what.await
    }

    /// Said once for each outage.
    fn not_renewed(&self, reason: &str) {
        if !self.failing.swap(true, Ordering::Relaxed) {
            tracing::warn!(reason, "the leases of this node could not be renewed");
        }
    }

    fn lose(&self, gone: &Partitions) {
        if !gone.is_empty() {
            tracing::info!(partitions = gone.len(), "partitions have left this node");
            self.ownership.moves.add(gone.len() as u64);
            self.listener.lost(gone);
        }
    }

    /// What this node holds above its share, at most [`GIVE_MAX`]: first partitions in which nothing
    /// runs, and the read models last.
    fn surplus(&self, sight: &Sight) -> Vec<Held> {
        let mut held = self.ownership.held();
        let above = held.len().saturating_sub(sight.fair_share());
        if above > 0 {
            let busy = self.listener.busy();
            held.sort_by_key(|h| {
                let runs = partitions(&[*h]).iter().any(|p| busy.has(p));
                (h.lease == READ_MODELS, runs, h.lease)
            });
        }
        held.truncate(above.min(GIVE_MAX));
        held
    }
}

#[cfg(test)]
mod tests;
