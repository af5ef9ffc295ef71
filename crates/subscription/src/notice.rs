//! Notices: what subscribers are told about an event of the log, in the protocol's words.
//!
//! Owns: the names of notices, which events make which of them, and their JSON. A notice is made
//! from its event alone, so it reads the same live, from history, and on every server; but how its task is
//! described, which most events do not say, is added by [`super::descriptions`].
//! spec: interface / Streaming Events
//!
//! Each change of status is one `task_status_update`; one that ends a task (no attempt follows) is
//! followed by `task_completed`, `task_failed` or `task_cancelled` with the result or the error. Claims and results
//! that were refused, and attempts that failed for the same reasons, have the error of RFC-0024 as `contract_error`.
//! The end of a run is `run_completed`, `run_failed` or `run_cancelled`, then a `task_status_update` of its root with
//! `final`.

mod parts;
mod taken_back;

pub use parts::{BreachReport, Part, Suspension};
pub use taken_back::TakenBack;
pub use taskledger_domain::NoticeKind as Kind;

use crate::descriptions::Description;
use serde::{Serialize, Serializer};
use std::sync::Arc;
use taskledger_domain::contract::Breach;
use taskledger_domain::flow::{
    CancelReason, Event, RootAtEnd, RunEnded, RunState, StatusCounts, TaskFailed,
};
use taskledger_domain::task::{Labels, Progress, Status};
use taskledger_domain::{EventId, Payload, Recorded, RunId, TaskId, Timestamp, Version};

/// The identity of a notice: that of its event, and which of the event's notices it is. The same for
/// every subscriber and every delivery, so receivers know repetitions by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoticeId {
    /// Identifies the event that the notice was made from.
    pub event: EventId,
    /// 0 for the status update that an event makes, 1 for what comes with it; [`PART_AT_REST`] for [`at_rest`].
    pub part: u8,
}

/// Which of an event's notices [`at_rest`] is.
pub const PART_AT_REST: u8 = 2;

impl std::fmt::Display for NoticeId {
    /// Holds no dot, which signatures of webhooks use as a separator.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.part {
            0 => write!(f, "{}", self.event),
            part => write!(f, "{}-{part}", self.event),
        }
    }
}

impl Serialize for NoticeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One notice, independent of the event that it was made from: cloning it copies no payload. Its JSON is
/// the `data` of the protocol's events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Notice {
    /// Always `a2a`. spec: interface / Response Format (A2A Protocol)
    protocol: &'static str,
    /// The kind of change; not part of the JSON of `data`.
    #[serde(skip)]
    pub kind: Kind,
    /// Its identity.
    pub id: NoticeId,
    /// What it is about; for notices of a run, the root of the run.
    pub task_id: TaskId,
    /// The root of its flow.
    pub root_task_id: TaskId,
    /// The task's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// The task above it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<TaskId>,
    /// The task's labels.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The status from now on.
    pub status: Status,
    /// 0 to 1.
    pub progress: Progress,
    /// Place of the event in the history of its flow: the higher, the later.
    pub sequence: Version,
    /// When it was decided.
    pub timestamp: Timestamp,
    /// The attempt, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Whether another attempt follows this failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub will_retry: bool,
    /// What the worker of the attempt says of its progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// Not before this time is the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// The place of a part of its output among those of the attempt, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_number: Option<u32>,
    /// The content of the part of an output, in notices of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_part: Option<Part>,
    /// Parts of its output that were told before its result.
    #[serde(skip)]
    pub parts: u32,
    /// What the task returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Payload>,
    /// Why the task failed or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The contract that was not kept: the members of the error that its worker was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_error: Option<Arc<BreachReport>>,
    /// What the task waits for, or waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// True on the last notice of a run.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not")]
    pub is_final: bool,
    /// The run that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<EndedRun>,
    /// Whether a second notice of the same event follows, with the result or the error.
    #[serde(skip)]
    pub is_followed: bool,
    /// The run that a new task has joined.
    #[serde(skip)]
    pub joins: Option<RunId>,
    /// Why the attempt that ended was taken from whoever did it; absent when that was not so.
    #[serde(skip)]
    pub taken_back: Option<TakenBack>,
    /// What the worker says in detail of its progress: told to its requester alone.
    #[serde(skip)]
    pub progress_data: Option<Payload>,
}

/// A run at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EndedRun {
    /// Identifies the run in its flow.
    pub id: RunId,
    /// Its verdict.
    pub state: RunState,
    /// Its tasks by status, groups left out.
    pub counts: StatusCounts,
    /// Tasks that it has left pending, groups left out.
    pub skipped: u32,
    /// Whether it failed for nothing but that tasks were rejected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
    /// Runs of the flow that go on.
    #[serde(skip)]
    pub others: u32,
}

impl Notice {
    fn of(recorded: &Recorded, task_id: TaskId, status: Status, progress: Progress) -> Self {
        Self {
            protocol: "a2a",
            kind: Kind::StatusUpdate,
            id: NoticeId {
                event: recorded.id,
                part: 0,
            },
            task_id,
            root_task_id: recorded.flow.root(),
            name: None,
            parent_id: None,
            labels: Labels::default(),
            status,
            progress,
            sequence: recorded.version,
            timestamp: recorded.time,
            attempt: None,
            will_retry: false,
            message: None,
            next_attempt_at: None,
            output_number: None,
            output_part: None,
            parts: 0,
            result: None,
            error: None,
            contract_error: None,
            suspension: None,
            is_final: false,
            run: None,
            is_followed: false,
            joins: None,
            taken_back: None,
            progress_data: None,
        }
    }

    /// A notice of a wait for a person.
    fn waiting(
        recorded: &Recorded,
        (task_id, attempt): (TaskId, u32),
        kind: Kind,
        suspension: Suspension,
    ) -> Self {
        let mut notice = Self::of(recorded, task_id, Status::InProgress, Progress::ZERO);
        notice.kind = kind;
        notice.attempt = Some(attempt);
        notice.suspension = Some(suspension);
        notice
    }

    /// A notice of something that was refused.
    fn refused(recorded: &Recorded, task: TaskId, of: (Kind, Status), breach: Breach) -> Self {
        let (kind, status) = of;
        let mut notice = Self::of(recorded, task, status, Progress::ZERO);
        notice.kind = kind;
        notice.contract_error = Some(Arc::new(BreachReport::of(task, breach)));
        notice
    }

    /// Whether it says how its task is described.
    #[must_use]
    pub const fn is_described(&self) -> bool {
        self.name.is_some()
    }

    /// Says how its task is described.
    pub fn set_description(&mut self, description: &Description) {
        self.name = Some(description.name.clone());
        self.parent_id = description.parent_id;
        self.labels = description.labels.clone();
    }

    /// The run that ends with this notice, which is the last one of its stream.
    #[must_use]
    pub fn ended_run(&self) -> Option<EndedRun> {
        self.run.filter(|_| self.is_final)
    }

    /// The notice of a run's end by its verdict, which comes before the last one.
    fn verdict(&self, kind: Kind) -> Self {
        let mut verdict = self.clone();
        verdict.kind = kind;
        verdict.id.part = 1;
        verdict.is_final = false;
        verdict
    }

    /// The notice that follows when a change of status ends the task.
    fn ending(&mut self, kind: Kind, result: Option<&Payload>, error: Option<&str>) -> Self {
        let mut ending = self.clone();
        self.is_followed = true;
        ending.kind = kind;
        ending.id.part = 1;
        ending.result = result.cloned();
        ending.error = error.map(Arc::from);
        ending
    }

    /// Bytes that it takes in memory or in an encoding, roughly. Cost: O(1).
    #[must_use]
    pub fn weight(&self) -> usize {
        /// Ids, names of members, times.
        const FIXED: usize = 400;
        let result = self.result.as_ref().map_or(0, |r| r.as_str().len());
        let asked = self.suspension.as_ref().and_then(|s| s.question.as_ref());
        let data = self
            .progress_data
            .as_ref()
            .map_or(0, |it| it.as_str().len());
        let part = self.output_part.as_ref().map_or(0, |it| it.0.bytes());
        let result = result + part + data + asked.map_or(0, |question| question.as_str().len());
        let told = self.contract_error.as_ref();
        let told = told.map_or(0, |told| told.bytes());
        FIXED
            + result
            + told
            + self.name.as_ref().map_or(0, |n| n.len())
            + self.error.as_ref().map_or(0, |e| e.len())
            + self.labels.bytes()
    }

    /// Appends its JSON. Cost: O(size).
    pub fn write_json(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(out, self).expect("a notice can always be written as JSON");
    }
}

/// The notices of an event, in order: none, one or two. Cost: O(text of an error); results are shared.
pub fn notices(recorded: &Recorded) -> impl Iterator<Item = Notice> + use<> {
    let (first, second) = match recorded.event.as_ref() {
        Event::TaskCreated(e) => {
            let mut created = Notice::of(recorded, e.task_id, Status::Pending, Progress::ZERO);
            created.joins = e.run_id;
            created.name = Some(Arc::from(e.name.as_str()));
            created.parent_id = e.parent_id;
            created.labels = e.labels.clone();
            (Some(created), None)
        }
        Event::TaskStarted(e) => {
            let mut started = Notice::of(recorded, e.task_id, Status::InProgress, Progress::ZERO);
            started.attempt = Some(e.attempt);
            (Some(started), None)
        }
        Event::TaskProgressed(e) => {
            let mut moved = Notice::of(recorded, e.task_id, Status::InProgress, e.progress);
            moved.kind = Kind::ProgressUpdate;
            moved.attempt = Some(e.attempt);
            moved.message = e.message.as_deref().map(Arc::from);
            moved.progress_data = e.remarks.as_ref().and_then(|it| it.data.clone());
            (Some(moved), None)
        }
        Event::TaskOutputAppended(e) => {
            let mut made = Notice::of(recorded, e.task_id, Status::InProgress, e.progress);
            made.kind = Kind::OutputAppended;
            made.attempt = Some(e.attempt);
            made.output_number = Some(e.number);
            made.output_part = Some(Part(Arc::new(e.part.clone())));
            (Some(made), None)
        }
        Event::TaskSuspended(e) => {
            let mut suspension = Suspension::of(e.suspension_id);
            suspension.question = Some(e.question.clone());
            suspension.expires_at = e.expires_at;
            let of = (e.task_id, e.attempt);
            let notice = Notice::waiting(recorded, of, Kind::Suspended, suspension);
            (Some(notice), None)
        }
        Event::TaskReminded(e) => {
            let mut suspension = Suspension::of(e.suspension_id);
            suspension.reminder = Some(e.number);
            suspension.escalation = e.escalation.clone();
            let of = (e.task_id, e.attempt);
            let notice = Notice::waiting(recorded, of, Kind::SuspensionReminder, suspension);
            (Some(notice), None)
        }
        Event::TaskAnswered(e) => {
            let mut suspension = Suspension::of(e.suspension_id);
            suspension.resolution = Some("responded");
            suspension.responded_by = Some(Arc::from(e.responded_by.as_str()));
            let of = (e.task_id, e.attempt);
            let notice = Notice::waiting(recorded, of, Kind::SuspensionEnded, suspension);
            (Some(notice), None)
        }
        Event::TaskSuspensionExpired(e) => {
            let mut suspension = Suspension::of(e.suspension_id);
            suspension.resolution = Some("expired");
            let of = (e.task_id, e.attempt);
            let notice = Notice::waiting(recorded, of, Kind::SuspensionEnded, suspension);
            (Some(notice), None)
        }
        Event::TaskClaimRejected(e) => {
            let of = (Kind::ClaimRejected, Status::Pending);
            let notice = Notice::refused(recorded, e.task_id, of, e.breach.clone());
            (Some(notice), None)
        }
        Event::TaskCompletionRejected(e) => {
            let of = (Kind::CompletionRejected, Status::InProgress);
            let mut notice = Notice::refused(recorded, e.task_id, of, e.breach());
            (notice.attempt, notice.progress) = (Some(e.attempt), e.progress);
            (Some(notice), None)
        }
        Event::TaskCompleted(e) => {
            let mut update = Notice::of(recorded, e.task_id, Status::Completed, Progress::DONE);
            update.attempt = Some(e.attempt);
            update.parts = e.parts;
            let ending = update.ending(Kind::Completed, Some(&e.result), None);
            (Some(update), Some(ending))
        }
        Event::TaskFailed(e) => failed(recorded, e),
        Event::TaskRequeued(e) => {
            let mut update = Notice::of(recorded, e.task_id, Status::Pending, Progress::ZERO);
            update.next_attempt_at = e.next_attempt_at;
            (Some(update), None)
        }
        Event::TaskDeferred(e) => {
            let mut update = Notice::of(recorded, e.task_id, Status::Pending, Progress::ZERO);
            update.next_attempt_at = Some(e.next_attempt_at);
            (Some(update), None)
        }
        Event::TaskCancelled(e) => {
            let mut update = Notice::of(recorded, e.task_id, Status::Cancelled, e.progress);
            update.attempt = e.attempt;
            update.taken_back = Some(match e.reason {
                CancelReason::Requested => TakenBack::Cancelled,
                CancelReason::Deadline => TakenBack::Deadline,
            });
            let ending = update.ending(Kind::Cancelled, None, Some(&e.error));
            (Some(update), Some(ending))
        }
        Event::RunEnded(e) => run_ended(recorded, e),
        Event::TaskRenamed(_)
        | Event::PriorityChanged(_)
        | Event::LabelsChanged(_)
        | Event::UserChanged(_)
        | Event::TaskMoved(_)
        | Event::DependenciesChanged(_)
        | Event::TaskRespecified(_)
        | Event::TaskDeleted(_)
        | Event::RunStarted(_)
        | Event::MessageReceived(_)
        | Event::FlowArchived(_) => (None, None),
    };
    first.into_iter().chain(second)
}

/// The notices of an event, in order.
type UpToTwo = (Option<Notice>, Option<Notice>);

/// The update of a task whose attempt failed, and the end of the task unless it is retried.
fn failed(recorded: &Recorded, e: &TaskFailed) -> UpToTwo {
    let mut update = Notice::of(recorded, e.task_id, Status::Failed, e.progress);
    update.attempt = Some(e.attempt);
    update.taken_back = TakenBack::by_failure(e.reason);
    let task = e.task_id;
    let told = e.breach.as_ref();
    let told = told.map(|breach| BreachReport::of(task, Breach::clone(breach)));
    update.contract_error = told.map(Arc::new);
    if e.will_retry {
        update.will_retry = true;
        update.error = Some(Arc::from(e.error.as_str()));
        (Some(update), None)
    } else {
        let ending = update.ending(Kind::Failed, None, Some(&e.error));
        (Some(update), Some(ending))
    }
}

/// The verdict on a run, then the update of its root.
fn run_ended(recorded: &Recorded, e: &RunEnded) -> UpToTwo {
    let RootAtEnd { status, progress } = e.root;
    let mut update = Notice::of(recorded, e.task_id, status, progress);
    update.is_final = true;
    update.run = Some(EndedRun {
        id: e.run_id,
        state: e.state,
        counts: e.counts,
        skipped: e.counts.pending,
        rejected: e.rejected,
        others: e.others,
    });
    let kind = match e.state {
        RunState::Completed => Some(Kind::RunCompleted),
        RunState::Failed => Some(Kind::RunFailed),
        RunState::Cancelled => Some(Kind::RunCancelled),
        RunState::Running => None,
    };
    // The last message of a run's stream is its root's update.
    (kind.map(|kind| update.verdict(kind)), Some(update))
}

/// The last notice for who watches a task that has ended and that nothing runs: its status once more,
/// with `final`, made from the event that ended it. `None`: the event changes no status. No subscriber
/// who was there gets it, because no run has ended.
#[must_use]
pub fn at_rest(recorded: &Recorded) -> Option<Notice> {
    let mut last = notices(recorded).find(|notice| notice.id.part == 0)?;
    last.id.part = PART_AT_REST;
    last.is_final = true;
    last.is_followed = false;
    Some(last)
}
