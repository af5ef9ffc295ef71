//! The state of a run at a place of its stream, folded from its notices.
//!
//! The same for everybody who is told of a run, by a stream or by requests: a change follows from the log alone, so it
//! reads the same live, from history, and on every server.

use crate::notice::{Kind, Notice, Part};
use std::collections::VecDeque;
use std::sync::Arc;
use taskledger_domain::flow::{RunStage, RunState};
use taskledger_domain::question::Asks;
use taskledger_domain::task::{Progress, Status};
use taskledger_domain::{FlowId, RunId, TaskId, Timestamp};
pub use taskledger_projections::Wait;

/// A run as its notices up to a place leave it.
#[derive(Debug, Clone)]
pub struct Fold {
    /// The flow that the run belongs to.
    pub flow: FlowId,
    /// The task that was asked for.
    pub task: TaskId,
    /// How it stands.
    pub stage: RunStage,
    /// Since when.
    pub at: Timestamp,
    /// Questions that wait, oldest first.
    pub waits: VecDeque<Wait>,
    /// When the last question ended with its task, or unanswered: if the run does not end at the same time, it works
    /// again, which is told with the next notice.
    resumes: Option<Timestamp>,
}

/// The status of a run, and the question that it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldStatus {
    /// In a word.
    pub stage: RunStage,
    /// Since when.
    pub at: Timestamp,
    /// The oldest question that waits.
    pub wait: Option<Wait>,
}

/// The change that a notice makes, before the details that it needs were read.
#[derive(Debug, Clone, PartialEq)]
pub enum FoldChange {
    /// How the run stands.
    Status(FoldStatus),
    /// A task has made a part of its output.
    Output {
        /// The task that makes the output.
        task: TaskId,
        /// Number of the attempt that makes it, from 1.
        attempt: u32,
        /// Its place among the parts of the attempt, from 1.
        number: u32,
        /// The content: a piece of text or a JSON object.
        part: Part,
    },
    /// A task has returned something.
    Artifact {
        /// The task whose result it is.
        task: TaskId,
        /// Parts of its output that its result comes behind.
        parts: u32,
    },
    /// A task stands otherwise.
    Node(NodeChange),
}

/// A task of a run that stands otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeChange {
    /// The task that has changed.
    pub task: TaskId,
    /// Its status from now on.
    pub status: Status,
    /// 0 to 1.
    pub progress: Progress,
    /// The attempt, from 1.
    pub attempt: Option<u32>,
    /// What its worker says of it, or why it ended.
    pub message: Option<Arc<str>>,
}

impl Fold {
    /// As a run of `task` stands at its start.
    #[must_use]
    pub const fn begun(flow: FlowId, task: TaskId, at: Timestamp) -> Self {
        Self {
            flow,
            task,
            stage: RunStage::Submitted,
            at,
            waits: VecDeque::new(),
            resumes: None,
        }
    }

    /// As it stands at another place.
    #[must_use]
    pub fn standing(self, stage: RunStage, at: Timestamp, waits: VecDeque<Wait>) -> Self {
        Self {
            stage,
            at,
            waits,
            ..self
        }
    }

    fn stand(&self) -> FoldStatus {
        FoldStatus {
            stage: self.stage,
            at: self.at,
            wait: self.waits.front().copied(),
        }
    }

    /// Takes a notice. What it changes, in the order in which it is told: changes of single tasks are the last.
    /// `asks`: what a question asks for, of a notice of one.
    pub fn take(&mut self, notice: &Notice, run: RunId, asks: Option<Asks>) -> Vec<FoldChange> {
        let mut told = Vec::new();
        if let Some(at) = self.resumes.filter(|at| *at != notice.timestamp) {
            self.resumes = None;
            self.stage = RunStage::Working;
            self.at = self.at.max(at);
            told.push(FoldChange::Status(self.stand()));
        }
        let before = (self.stage, self.waits.front().map(|wait| wait.version));
        // Whether a question that ends now was answered.
        let mut is_answered = false;
        if let Some(ended) = notice.ended_run().filter(|ended| ended.id == run) {
            self.waits.clear();
            self.resumes = None;
            self.stage = ended_as(ended.state, ended.rejected);
        } else {
            match notice.kind {
                Kind::Suspended => self.waits.push_back(Wait {
                    version: notice.sequence,
                    task: notice.task_id,
                    asks: asks.unwrap_or_default(),
                }),
                Kind::SuspensionEnded => {
                    let suspension = notice.suspension.as_ref();
                    let resolution = suspension.and_then(|it| it.resolution);
                    is_answered = resolution == Some("responded");
                    self.waits.retain(|wait| wait.task != notice.task_id);
                }
                Kind::StatusUpdate => match notice.status {
                    Status::InProgress if self.stage == RunStage::Submitted => {
                        self.stage = RunStage::Working;
                    }
                    Status::Pending | Status::InProgress => {}
                    Status::Completed | Status::Failed | Status::Cancelled => {
                        self.waits.retain(|wait| wait.task != notice.task_id);
                    }
                },
                Kind::OutputAppended => {
                    told.extend(notice.output_part.clone().map(|part| FoldChange::Output {
                        task: notice.task_id,
                        attempt: notice.attempt.unwrap_or_default(),
                        number: notice.output_number.unwrap_or_default(),
                        part,
                    }))
                }
                Kind::Completed => told.push(FoldChange::Artifact {
                    task: notice.task_id,
                    parts: notice.parts,
                }),
                Kind::ProgressUpdate
                | Kind::Failed
                | Kind::Cancelled
                | Kind::SuspensionReminder
                | Kind::ClaimRejected
                | Kind::CompletionRejected
                | Kind::RunCompleted
                | Kind::RunFailed
                | Kind::RunCancelled => {}
            }
            match self.waits.front().map(|wait| wait.asks) {
                Some(Asks::Input) => (self.stage, self.resumes) = (RunStage::InputRequired, None),
                Some(Asks::Auth) => (self.stage, self.resumes) = (RunStage::AuthRequired, None),
                None if !self.stage.waits() => {}
                None if is_answered => (self.stage, self.resumes) = (RunStage::Working, None),
                // The run may end in the same breath.
                None => self.resumes = Some(notice.timestamp),
            }
        }
        let after = (self.stage, self.waits.front().map(|wait| wait.version));
        if before != after && self.resumes.is_none() {
            self.at = self.at.max(notice.timestamp);
            told.push(FoldChange::Status(self.stand()));
        }
        let of_node = matches!(notice.kind, Kind::StatusUpdate | Kind::ProgressUpdate);
        if of_node && notice.run.is_none() {
            told.push(FoldChange::Node(NodeChange {
                task: notice.task_id,
                status: notice.status,
                progress: notice.progress,
                attempt: notice.attempt,
                message: notice.message.clone().or_else(|| notice.error.clone()),
            }));
        }
        told
    }
}

const fn ended_as(state: RunState, rejected: bool) -> RunStage {
    match state {
        RunState::Completed => RunStage::Completed,
        RunState::Failed if rejected => RunStage::Rejected,
        RunState::Failed => RunStage::Failed,
        RunState::Cancelled => RunStage::Cancelled,
        RunState::Running => RunStage::Working,
    }
}
