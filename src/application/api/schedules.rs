//! Requests and replies about schedules, which start runs of saved workflows and of task trees at given times.

use super::Warning;
use super::workflows::UnfitWorkflow;
use std::sync::Arc;
use taskledger_domain::{TaskId, Timestamp, Violation};
pub use taskledger_schedules::{
    CATCH_UP_SECONDS_DEFAULT, CATCH_UP_SECONDS_MAX, CATCH_UP_SECONDS_MIN, Definition,
    EVERY_SECONDS_MAX, EXPRESSION_CHARS_MAX, Invalid, JITTER_SECONDS_MAX, MAX_RUNS_MAX, Overlap,
    RUNS_KEPT, Refusal, Run, SCHEDULES_MAX, Schedule, State, Timing, Work,
};

/// Times that are shown of those that come.
pub const NEXT_SHOWN: usize = 5;

/// Keys that the server gives each run of a workflow in its trigger; `inputs` of new schedules must not have them.
pub const SCHEDULED_KEYS: [&str; 2] = ["schedule", "scheduled_at"];

/// A schedule, by whom and by which name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The owner; absent: the caller, or nobody without authentication; empty: nobody.
    pub owner: Option<Arc<str>>,
    /// The schedule's name, unique for its owner.
    pub name: Arc<str>,
}

/// Makes a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSchedule {
    /// The owner that the schedule gets, and its name.
    pub named: Named,
    /// What it does.
    pub definition: Definition,
    /// Whether its times pass without a run at first.
    pub is_paused: bool,
    /// Why it is paused, or any other remark for people.
    pub note: Option<Arc<str>>,
}

/// A bound that a schedule can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// `start_at`.
    Start,
    /// `end_at`.
    End,
    /// `max_runs`.
    Runs,
}

/// The changes of a schedule; what is absent stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScheduleChanges {
    /// When it is due.
    pub timing: Option<Timing>,
    /// The zone of its cron expression or rule, also if those stay; unless it is said, the zone stays.
    pub time_zone: Option<Arc<str>>,
    /// What it starts.
    pub work: Option<Work>,
    /// No time before.
    pub start_at: Option<Timestamp>,
    /// No time after.
    pub end_at: Option<Timestamp>,
    /// Runs in all.
    pub max_runs: Option<u64>,
    /// Bounds that are taken away.
    pub without: Vec<Bound>,
    /// What happens while a run goes on.
    pub overlap: Option<Overlap>,
    /// A missed time is made up for within this many seconds.
    pub catch_up_seconds: Option<u64>,
    /// Each start is delayed by up to this many seconds.
    pub jitter_seconds: Option<u64>,
}

/// A schedule with what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownSchedule {
    /// It.
    pub schedule: Schedule,
    /// Its next times, at most [`NEXT_SHOWN`]; none while it is paused.
    pub next: Vec<Timestamp>,
    /// Its newest runs, newest first.
    pub runs: Vec<Run>,
    /// What is probably a mistake in what it starts; looked for when that is given.
    pub warnings: Vec<Warning>,
}

/// A run that was asked for by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunByHand {
    /// What became of it.
    pub run: Run,
    /// The root of its flow.
    pub root: TaskId,
    /// What is probably a mistake in the run that has begun.
    pub warnings: Vec<Warning>,
}

/// Why a schedule is not made, changed or run.
#[derive(Debug, Clone, PartialEq)]
pub enum UnfitSchedule {
    /// No schedule is kept by this name.
    Absent,
    /// What is kept stays as it is.
    NotKept(Refusal),
    /// A member is not acceptable.
    Invalid(Invalid),
    /// The workflow that it is to start gives no tasks.
    Workflow(UnfitWorkflow),
    /// The tasks that it is to start.
    Tasks(Vec<Violation>),
}
