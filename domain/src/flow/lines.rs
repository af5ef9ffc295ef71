//! The part of the state that decides how a ready task starts: by this process, or by a worker outside, under a lease.

use super::Capacity;
use super::event::Lease;
use super::state::{Flow, Held, Line, Standing, Task};
use crate::{LeaseId, TaskId, Timestamp, Version};

impl Task {
    /// Where it stands when it is ready.
    pub(crate) const fn line(&self) -> Line {
        Line {
            method: self.method,
            remote: self.remote,
            lacking: self.lacking,
        }
    }
}

impl Flow {
    /// The lines in which tasks of a method may be ready that can be claimed.
    pub(crate) fn lines_of(&self, method: &str) -> impl Iterator<Item = Line> + use<> {
        let method = self.methods.find(method);
        method
            .into_iter()
            .flat_map(|method| [false, true].map(|remote| Line::whole(method, remote)))
    }

    /// How ready tasks of a line start. What runs in this process runs here, whatever a task says: no worker
    /// may claim it.
    pub(crate) fn standing(&self, line: Line, capacity: &dyn Capacity) -> Standing {
        let method = self.methods.text(line.method).unwrap_or_default();
        if capacity.is_remote(method) {
            Standing::Remote
        } else if capacity.knows(method) {
            Standing::Local
        } else if line.remote {
            Standing::Remote
        } else {
            Standing::Unknown
        }
    }

    /// Begins to hold an attempt under a lease.
    pub(super) fn leased(&mut self, i: u32, lease: &Lease, time: Timestamp) {
        let times_out_at = lease
            .timeout_ms
            .map_or(Timestamp::FAR_FUTURE, |ms| time.plus_ms(ms));
        let held = Held {
            id: lease.id,
            worker: lease.worker.as_str().into(),
            holder: lease.holder.as_deref().map(Into::into),
            expires_at: lease.expires_at,
            lease_ms: whole_seconds_ms(lease.expires_at.0.saturating_sub(time.0)),
            timeout_ms: lease.timeout_ms,
            cancel_grace_ms: lease.cancel_grace_ms,
            times_out_at,
            rejected: None,
            rejections: 0,
        };
        self.leases.insert(i, held);
        self.link_time_out(i);
    }

    /// Milliseconds that an attempt of a task may take. Cost: O(log tasks).
    #[must_use]
    pub fn timeout_ms(&self, id: TaskId) -> Option<u64> {
        self.bounds.get(&self.live(id)?)?.timeout_ms
    }

    /// The version of the event with which the attempt of a task under this lease ended, if it was one of the latest
    /// `limits::ENDED_LEASES_PER_TASK_MAX` of the task under a lease. Cost: O(log tasks).
    #[must_use]
    pub fn lease_ended_at(&self, id: TaskId, lease: LeaseId) -> Option<Version> {
        self.ended_leases.ended_at(self.live(id)?, lease)
    }
}

/// Leases are asked for in seconds; the claim may have waited for a moment before it was decided.
fn whole_seconds_ms(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0).div_ceil(1_000_000) * 1000
}
