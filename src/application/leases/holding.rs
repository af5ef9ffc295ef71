//! An attempt outside the server, and the lease that its worker holds.

use std::sync::Arc;
use taskledger_domain::flow::Turn;
use taskledger_domain::schedule::Leased;
use taskledger_domain::task::Progress;
use taskledger_domain::{FlowId, LeaseId, TaskId, Timestamp, Version, limits};
use taskledger_workers::MethodKey;

/// An attempt outside the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::application) struct Holding {
    pub(in crate::application) flow: FlowId,
    pub(in crate::application) task: TaskId,
    pub(in crate::application) attempt: u32,
    pub(in crate::application) lease: LeaseId,
    /// Its method, as it was offered and is counted.
    pub(in crate::application) method: MethodKey,
    /// Its worker, by its name.
    pub(in crate::application) worker: Arc<str>,
    /// The principal that may use it; `None` for anybody.
    pub(in crate::application) holder: Option<Arc<str>>,
    pub(in crate::application) expires_at: Timestamp,
    /// When the attempt must have ended, as it stood at its start.
    pub(in crate::application) deadline: Option<Timestamp>,
    /// What was last recorded.
    pub(in crate::application) progress: Progress,
    /// Milliseconds that it holds after a renewal that does not say it.
    pub(in crate::application) lease_ms: u64,
    /// Milliseconds that the worker has to stop after a cancel.
    pub(in crate::application) cancel_grace_ms: u64,
    /// What the task has asked people before, and was answered.
    pub(in crate::application) turns: Vec<Turn>,
    /// Where the results are that were there when it began.
    pub(in crate::application) results: Vec<(TaskId, Version)>,
    /// The event that holds the message with which its run began, if it began with one.
    pub(in crate::application) origin_at: Option<Version>,
}

impl Holding {
    pub(super) fn of((flow, method): (FlowId, MethodKey), leased: &Leased) -> Self {
        let grace = leased.cancel_grace_ms;
        Self {
            flow,
            task: leased.task,
            attempt: leased.attempt,
            lease: leased.lease,
            method,
            worker: Arc::from(leased.worker.as_str()),
            holder: leased.holder.as_deref().map(Arc::from),
            expires_at: leased.expires_at,
            deadline: leased.deadline,
            progress: Progress::ZERO,
            lease_ms: leased.lease_ms,
            cancel_grace_ms: grace.unwrap_or(limits::CANCEL_GRACE_MS_DEFAULT),
            turns: leased.turns.clone(),
            results: leased.results.clone(),
            origin_at: leased.origin_at,
        }
    }

    /// Whether this principal may use it for this task.
    pub(in crate::application) fn is_for(&self, task: TaskId, holder: &str) -> bool {
        self.task == task && self.holder.as_deref().is_none_or(|of| of == holder)
    }
}
