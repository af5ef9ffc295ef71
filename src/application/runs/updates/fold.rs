//! How a run stands at a place of its stream, made from its notices one after the other.

use super::*;

/// A run as its notices up to a place leave it.
#[derive(Clone)]
pub(super) struct Fold {
    pub(super) flow: FlowId,
    /// The task that was asked for.
    pub(super) task: TaskId,
    pub(super) stage: RunStage,
    pub(super) at: Timestamp,
    /// Questions that wait, oldest first.
    pub(super) waits: VecDeque<Wait>,
}

/// What a notice changes, before what it takes to say so was read.
pub(super) enum Told {
    Status,
    Artifact(TaskId),
    Node(NodeChange),
}

impl Fold {
    /// As the run stands at its start.
    pub(super) fn begun(of: &RunSnapshot, started: &Recorded) -> Self {
        Self {
            flow: of.run.flow,
            task: of.run.task,
            stage: RunStage::Submitted,
            at: started.time,
            waits: VecDeque::new(),
        }
    }

    /// Takes a notice. What it changes, in the order in which it is told: changes of single tasks are the last.
    pub(super) fn take(&mut self, notice: &Notice, run: RunId, asks: Option<Asks>) -> Vec<Told> {
        let mut told = Vec::new();
        let before = (self.stage, self.waits.front().map(|wait| wait.version));
        if let Some(ended) = notice.ended_run().filter(|ended| ended.id == run) {
            self.waits.clear();
            self.stage = ended_as(ended.state);
        } else {
            match notice.kind {
                Kind::Suspended => self.waits.push_back(Wait {
                    version: notice.sequence,
                    task: notice.task_id,
                    asks: asks.unwrap_or_default(),
                }),
                Kind::SuspensionEnded => self.waits.retain(|wait| wait.task != notice.task_id),
                Kind::StatusUpdate => match notice.status {
                    Status::InProgress if self.stage == RunStage::Submitted => {
                        self.stage = RunStage::Working;
                    }
                    Status::Pending | Status::InProgress => {}
                    Status::Completed | Status::Failed | Status::Cancelled => {
                        self.waits.retain(|wait| wait.task != notice.task_id);
                    }
                },
                Kind::Completed => told.push(Told::Artifact(notice.task_id)),
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
            self.stage = match self.waits.front().map(|wait| wait.asks) {
                Some(Asks::Input) => RunStage::InputRequired,
                Some(Asks::Auth) => RunStage::AuthRequired,
                None if self.stage.waits() => RunStage::Working,
                None => self.stage,
            };
        }
        if before != (self.stage, self.waits.front().map(|wait| wait.version)) {
            self.at = self.at.max(notice.timestamp);
            told.push(Told::Status);
        }
        let of_node = matches!(notice.kind, Kind::StatusUpdate | Kind::ProgressUpdate);
        if of_node && notice.run.is_none() {
            told.push(Told::Node(NodeChange {
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

const fn ended_as(state: RunState) -> RunStage {
    match state {
        RunState::Completed => RunStage::Completed,
        RunState::Failed => RunStage::Failed,
        RunState::Cancelled => RunStage::Cancelled,
        RunState::Running => RunStage::Working,
    }
}
