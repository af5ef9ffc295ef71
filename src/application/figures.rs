//! The application's counters: appends, flows in memory, runs and attempts.
//!
//! Counted where the fact is known, with atomic additions; read by `crate::metrics`. What is counted of
//! events is counted once they are durable, by the node that decided them.

use super::mailbox::Order;
use crate::meters::{Buckets, Counter, FirstUse, Histogram};
use crate::store::Outcome;
use std::array::from_fn;
use std::sync::Arc;
use taskledger_domain::codec::{self, KINDS};
use taskledger_domain::flow::{
    Capacity, Command, Event, FailureReason, Flow, RunState, TaskFailed,
};
use taskledger_domain::{Recorded, TaskId};
use tokio::time::Instant;

/// Why an append was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The flow had another version.
    Version,
    /// Something that it claims was taken.
    Claim,
    /// Another server has the flow.
    Fence,
}

impl Conflict {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Version, Self::Claim, Self::Fence];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Claim => "claim",
            Self::Fence => "fence",
        }
    }
}

/// The outcome of a time of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOfSchedule {
    /// A run was started.
    Started,
    /// A run was going on.
    Skipped,
    /// No server ran in time.
    Missed,
    /// No run could be started.
    Failed,
}

impl TimeOfSchedule {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Started, Self::Skipped, Self::Missed, Self::Failed];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Skipped => "skipped",
            Self::Missed => "missed",
            Self::Failed => "failed",
        }
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// With a result.
    Completed,
    /// With an error.
    Failed,
    /// Its time limit or its deadline passed.
    TimedOut,
    /// The server stopped, or its worker fell silent.
    Interrupted,
    /// Its worker gave it back.
    Released,
    /// Its task was cancelled.
    Cancelled,
}

impl AttemptEnd {
    /// All variants.
    pub const ALL: [Self; 6] = [
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Interrupted,
        Self::Released,
        Self::Cancelled,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
            Self::Released => "released",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The verdicts of runs that have ended.
pub const RUN_ENDS: [RunState; 3] = [RunState::Completed, RunState::Failed, RunState::Cancelled];

/// Ends of attempts of one executor, in the order of [`AttemptEnd::ALL`].
pub type Ends = [Counter; AttemptEnd::ALL.len()];

/// An attempt that ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    /// The number of its executor.
    executor: usize,
    end: AttemptEnd,
    /// Whether it ended because nobody renewed its lease.
    is_lease_lost: bool,
}

/// The counters of the application. One per server.
#[derive(Debug)]
pub struct Figures {
    /// Events that were appended, in the order of [`KINDS`].
    pub events: [Counter; KINDS.len()],
    /// From the sending of an append to its outcome.
    pub append: Histogram,
    /// Events in an append.
    pub batch: Histogram,
    /// Appends that were not written, in the order of [`Conflict::ALL`].
    pub conflicts: [Counter; Conflict::ALL.len()],
    /// Appends whose outcome was not known at first.
    pub unknown_outcomes: Counter,
    /// What it took to bring a flow into memory.
    pub load: Histogram,
    /// What commands waited in the mailbox of their flow.
    pub mailbox_wait: Histogram,
    /// Runs that ended, in the order of [`RUN_ENDS`].
    pub runs: [Counter; RUN_ENDS.len()],
    /// Attempts that ended, by executor.
    pub attempts: FirstUse<Ends>,
    /// Attempts outside the server that ended because nobody renewed their lease.
    pub leases_lost: Counter,
    /// Times of schedules, in the order of [`TimeOfSchedule::ALL`].
    pub schedule_times: [Counter; TimeOfSchedule::ALL.len()],
    /// From when a time of a schedule was due to the decision about it.
    pub schedule_lag: Histogram,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            events: from_fn(|_| Counter::default()),
            append: Histogram::new(&Buckets::CALLS),
            batch: Histogram::new(&Buckets::EVENTS),
            conflicts: from_fn(|_| Counter::default()),
            unknown_outcomes: Counter::default(),
            load: Histogram::new(&Buckets::CALLS),
            mailbox_wait: Histogram::new(&Buckets::CALLS),
            runs: from_fn(|_| Counter::default()),
            attempts: FirstUse::new(|| from_fn(|_| Counter::default())),
            leases_lost: Counter::default(),
            schedule_times: from_fn(|_| Counter::default()),
            schedule_lag: Histogram::new(&Buckets::CALLS),
        }
    }
}

impl Figures {
    /// The store has answered an append that was sent then.
    pub(super) fn answered(&self, sent_at: Option<Instant>, outcome: &Outcome) {
        if let Some(sent) = sent_at {
            self.append.observe_time(sent.elapsed());
        }
        let conflict = match outcome {
            Outcome::Appended(_) => return,
            Outcome::Unknown => return self.unknown_outcomes.increment(),
            Outcome::Conflict { .. } => Conflict::Version,
            Outcome::Exists { .. } => Conflict::Claim,
            Outcome::Fenced => Conflict::Fence,
        };
        self.conflicts[conflict as usize].increment();
    }

    /// Events have become durable, and with them these ends of attempts.
    pub(super) fn appended(&self, recorded: &[Arc<Recorded>], ended: &[Ended]) {
        self.batch.observe(recorded.len() as u64);
        for event in recorded {
            self.events[codec::ordinal(&event.event)].increment();
            if let Event::TaskFailed(failed) = &*event.event {
                tell_of_failure(event, failed);
            }
            if let Event::RunEnded(end) = &*event.event
                && let Some(state) = RUN_ENDS.iter().position(|state| *state == end.state)
            {
                self.runs[state].increment();
            }
        }
        for ended in ended {
            self.attempts.at(ended.executor)[ended.end as usize].increment();
            if ended.is_lease_lost {
                self.leases_lost.increment();
            }
        }
    }

    /// Adds the attempts that end with `events`, which `order` has led to and after which the flow is
    /// `flow`.
    pub(super) fn note_ends(
        &self,
        flow: &Flow,
        order: &Order,
        events: &[Event],
        executors: &dyn Capacity,
        ended: &mut Vec<Ended>,
    ) {
        for event in events {
            let Some((task, end)) = end_of(order, event) else {
                continue;
            };
            // A group has no executor, and no attempts.
            if let Some(method) = flow.method(task) {
                let name = executors.canonical_name(method);
                ended.push(Ended {
                    executor: self.attempts.position(name),
                    end,
                    is_lease_lost: end == AttemptEnd::Interrupted && ends_lease(order),
                });
            }
        }
    }
}

/// One line for each attempt that has failed, without what the task or its executor said.
fn tell_of_failure(recorded: &Recorded, failed: &TaskFailed) {
    let (flow, task, attempt) = (recorded.flow, failed.task_id, failed.attempt);
    let reason = failed.reason.as_str();
    if failed.will_retry {
        tracing::info!(flow.id = %flow, task.id = %task, attempt, reason, "an attempt failed; another one follows");
    } else {
        tracing::warn!(flow.id = %flow, task.id = %task, attempt, reason, "a task failed");
    }
}

/// The attempt that an event ends. A task may also fail, or be cancelled, without one.
fn end_of(order: &Order, event: &Event) -> Option<(TaskId, AttemptEnd)> {
    if let Event::TaskCompleted(e) = event {
        return Some((e.task_id, AttemptEnd::Completed));
    }
    if let Event::TaskCancelled(e) = event {
        return e.attempt.map(|_| (e.task_id, AttemptEnd::Cancelled));
    }
    let Event::TaskFailed(e) = event else {
        return None;
    };
    let end = match e.reason {
        FailureReason::Timeout | FailureReason::Deadline => AttemptEnd::TimedOut,
        FailureReason::Interrupted => AttemptEnd::Interrupted,
        FailureReason::Released => AttemptEnd::Released,
        // Waiting for an executor can end a task that no attempt was begun of.
        FailureReason::ExecutorNotFound if !reports_failure(order) => return None,
        // Nobody worked on it any more.
        FailureReason::Group
        | FailureReason::NotStarted
        | FailureReason::Unanswered
        | FailureReason::Declined => return None,
        FailureReason::Executor
        | FailureReason::NotRetryable
        | FailureReason::ExecutorNotFound
        | FailureReason::InvalidInputs
        | FailureReason::InvalidResult
        | FailureReason::Rejected => AttemptEnd::Failed,
    };
    Some((e.task_id, end))
}

/// Whether an order ends an attempt whose lease has not been renewed.
fn ends_lease(order: &Order) -> bool {
    let command = order.command.as_ref().map(Command::plain);
    matches!(command, Some(Command::EndLease { .. }))
}

fn reports_failure(order: &Order) -> bool {
    let command = order.command.as_ref().map(Command::plain);
    matches!(
        command,
        Some(Command::Fail { .. } | Command::FailBreached { .. })
    )
}
