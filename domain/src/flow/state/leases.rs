//! What is kept of leases, and of how ready tasks start.

use crate::contract::OutputFault;
use crate::{LeaseId, Timestamp, Version};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a task says of how long it may take, for the few that say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// Of an attempt.
    pub(crate) timeout_ms: Option<u64>,
    /// Of the wait for a start, once it is ready.
    pub(crate) start_within_ms: Option<u64>,
    /// Of a worker that was told to stop.
    pub(crate) cancel_grace_ms: Option<u64>,
}

/// Ready tasks that start by the same rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line {
    /// Index into `methods`.
    pub(crate) method: u32,
    /// Only workers outside the server start them.
    pub(crate) remote: bool,
    /// Inputs of them cannot be resolved, so that no worker may claim them.
    pub(crate) lacking: bool,
}

impl Held {
    /// A fault as `rejected` has it.
    pub(crate) fn text_of(fault: &OutputFault) -> Box<str> {
        let text = serde_json::to_string(fault);
        text.expect("a fault can always be written as JSON").into()
    }
}

impl Line {
    /// Those of a method.
    pub(crate) fn all(method: u32) -> [Self; 4] {
        [(false, false), (true, false), (false, true), (true, true)].map(|(remote, lacking)| Self {
            method,
            remote,
            lacking,
        })
    }

    /// Of tasks that lack nothing.
    pub(crate) const fn whole(method: u32, remote: bool) -> Self {
        Self {
            method,
            remote,
            lacking: false,
        }
    }
}

/// Methods of whose ready tasks some have come or gone since somebody last looked. It says nothing of the state
/// itself, so states do not differ by it. At most all methods of the flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Touched(pub(crate) BTreeSet<u32>);

impl PartialEq for Touched {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// How the tasks of a [`Line`] start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// By themselves, in this process.
    Local,
    /// By claims of workers.
    Remote,
    /// Not at all: nobody has the executor. A worker that asks for it now may claim them.
    Unknown,
}

/// How the latest attempt under a lease ended by the word of its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndedLease {
    pub(crate) id: LeaseId,
    /// Version of the event with the outcome.
    pub(crate) outcome_at: Version,
}

/// The lease of an attempt that runs outside the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) id: LeaseId,
    pub(crate) worker: Box<str>,
    /// The principal that may use it; `None` for anybody.
    pub(crate) holder: Option<Box<str>>,
    /// Until when it holds at least.
    pub(crate) expires_at: Timestamp,
    /// How long it holds after a renewal that does not say it.
    pub(crate) lease_ms: u64,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) cancel_grace_ms: Option<u64>,
    /// When the attempt times out; far in the future when it never does.
    pub(crate) times_out_at: Timestamp,
    /// What was wrong with the last result that was refused, as text.
    pub(crate) rejected: Option<Box<str>>,
    /// Refused results that are in the log.
    pub(crate) rejections: u32,
}
