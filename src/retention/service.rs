//! Repeats retention passes beside a running server.

use super::pass::Done;
use super::{Policy, Retention};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// The times of passes.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// From the start to the first one: what was interrupted goes on first.
    pub first_after: Duration,
    /// From one to the next.
    pub every: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            first_after: Duration::from_secs(5),
            every: Duration::from_secs(3600),
        }
    }
}

/// Runs passes as often as `schedule` says, until the server ends. A pass that fails is logged, and the
/// next one tries again.
#[derive(Debug)]
pub struct Service {
    /// What it works on.
    pub retention: Retention,
    /// What is archived.
    pub policy: Policy,
    /// When passes begin.
    pub schedule: Schedule,
}

impl Service {
    /// Archives until `stop`. A transaction that is under way then is ended.
    pub async fn run(self, stop: CancellationToken) {
        let first = tokio::time::Instant::now() + self.schedule.first_after;
        let mut due = interval_at(first, self.schedule.every);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = due.tick() => {}
            }
            match self.retention.pass(&self.policy, &stop).await {
                Ok(done) if done == Done::default() => {}
                Ok(done) => tracing::info!(
                    flows = done.flows,
                    events = done.events,
                    files = done.files.len(),
                    dropped_events = done.dropped_events,
                    changed_flows = done.changed_flows,
                    undropped_flows = done.undropped_flows,
                    failed_flows = done.failed_flows,
                    "finished flows were archived"
                ),
                Err(error) => tracing::error!(
                    error = %error,
                    "archiving finished flows stopped early; it goes on with the next pass"
                ),
            }
        }
    }
}
