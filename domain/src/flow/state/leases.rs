//! The state of leases, and of how ready tasks start.

use crate::contract::OutputFault;
use crate::{LeaseId, Timestamp, Version, limits};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a task says of how long it may take, for the few that say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// Milliseconds that an attempt may take.
    pub(crate) timeout_ms: Option<u64>,
    /// Of the wait for a start, once it is ready.
    pub(crate) start_within_ms: Option<u64>,
    /// Milliseconds that a worker has to stop once it was told to.
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

impl Line {
    /// Those of a method.
    pub(crate) fn all(method: u32) -> [Self; 4] {
        [(false, false), (true, false), (false, true), (true, true)].map(|(remote, lacking)| Self {
            method,
            remote,
            lacking,
        })
    }

    /// The line of tasks that lack nothing.
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

/// The leases of a flow that have ended, so that what is said under one of them again is known: for each task the
/// latest `limits::ENDED_LEASES_PER_TASK_MAX`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct EndedLeases {
    /// By task and version of the event that ended the attempt, which is the order in which they ended.
    by_end: BTreeMap<(u32, Version), LeaseId>,
}

impl EndedLeases {
    /// The lease of a task has ended by the event of this version. Cost: O(log tasks + kept leases of the task).
    pub(crate) fn add(&mut self, task: u32, version: Version, lease: LeaseId) {
        self.by_end.insert((task, version), lease);
        if self.of(task).count() > limits::ENDED_LEASES_PER_TASK_MAX {
            let oldest = self.of(task).next().map(|(version, _)| version);
            oldest.and_then(|version| self.by_end.remove(&(task, version)));
        }
    }

    /// Those of a task, the oldest first.
    fn of(&self, task: u32) -> impl Iterator<Item = (Version, LeaseId)> {
        let all = self.by_end.range((task, 0)..=(task, Version::MAX));
        all.map(|((_, version), lease)| (*version, *lease))
    }

    /// The version of the event with which a lease of a task ended.
    pub(crate) fn ended_at(&self, task: u32, lease: LeaseId) -> Option<Version> {
        self.of(task)
            .find(|(_, id)| *id == lease)
            .map(|(version, _)| version)
    }

    /// Whether they belong to the first `tasks` tasks, ended by events up to `version`, and are not too many.
    pub(crate) fn is_sound(&self, tasks: usize, version: Version) -> bool {
        self.by_end
            .keys()
            .all(|(task, at)| (*task as usize) < tasks && *at <= version)
            && self
                .by_end
                .keys()
                .map(|(task, _)| *task)
                .collect::<Vec<_>>()
                .chunk_by(|a, b| a == b)
                .all(|of_task| of_task.len() <= limits::ENDED_LEASES_PER_TASK_MAX)
    }

    /// Bytes that they hold, roughly. Cost: O(1).
    pub(crate) fn weight_bytes(&self) -> usize {
        self.by_end.len() * (size_of::<((u32, Version), LeaseId)>() + 16)
    }
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

impl Held {
    /// A fault as `rejected` has it.
    pub(crate) fn text_of(fault: &OutputFault) -> Box<str> {
        let text = serde_json::to_string(fault);
        text.expect("a fault can always be written as JSON").into()
    }
}
