//! A run whose changes are reported as those of one thing, not task by task. Folded from the events of its flow, so
//! whoever takes the outbox over reports the same.

use crate::reports::{Change, Form, Made as Piece, Report, Returned, Said};
use crate::store::Recipient;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use taskledger_domain::flow::{Event, RunKind, RunStage, RunStarted, TaskSuspended, covers};
use taskledger_domain::{FlowId, Position, Recorded, RunId, TaskId, Timestamp, Version};
use taskledger_log::damage::read_stream_over;
use taskledger_log::{Error, EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};
use taskledger_subscription::notice::{Kind, Notice, notices};
use taskledger_subscription::run_fold::{Fold, FoldChange, FoldStatus, Wait};

/// What is said of a run that has failed though none of its own tasks says why.
const NO_REASON: &str = "not all tasks of the run completed";

/// A run that goes on, and to whom it is reported.
#[derive(Debug)]
pub(super) struct ReportedRun {
    pub(super) id: RunId,
    flow: FlowId,
    /// Each is told what stands above its position.
    to: Vec<(Recipient, Position)>,
    tasks: HashMap<TaskId, Node>,
    begun: Option<Begun>,
    /// The last event that was looked at.
    version: Version,
    position: Position,
}

/// What a result says of its task.
#[derive(Debug)]
struct Node {
    ordinal: u32,
    name: Arc<str>,
    parent: Option<TaskId>,
    is_group: bool,
    /// Whether it belongs to the run.
    belongs: bool,
}

#[derive(Debug)]
struct Begun {
    fold: Fold,
    context: Arc<str>,
    /// All tasks of the flow belong to it.
    is_whole: bool,
    /// Why the task that was asked for has failed or was cancelled.
    error: Option<Arc<str>>,
}

/// A report, who gets it, and its identity.
pub(super) struct Made {
    pub(super) id: String,
    pub(super) report: Report,
    pub(super) to: Vec<Recipient>,
}

impl Made {
    /// Those who get it by the form that they get, each with an identity of its own.
    pub(super) fn by_form(&self) -> impl Iterator<Item = (String, Form, Vec<Recipient>)> + '_ {
        let forms = [(Form::Change, ""), (Form::Whole, "w")];
        forms.into_iter().filter_map(|(form, behind)| {
            let of_form = self.to.iter().filter(|it| it.reports == Some(form));
            let to: Vec<_> = of_form.copied().collect();
            let is_told = self.report.change.is_for(form);
            (is_told && !to.is_empty()).then(|| (format!("{}{behind}", self.id), form, to))
        })
    }
}

/// A change, before what it takes to say so was read.
struct Changed {
    told: FoldChange,
    /// How the run stands then.
    stage: RunStage,
    since: Timestamp,
    id: String,
    notice: Notice,
}

impl ReportedRun {
    /// The run as the events up to a place of the log leave it. Cost: O(events of its flow up to there).
    pub(super) async fn at(
        log: &dyn EventStore,
        id: RunId,
        flow: FlowId,
        place: Position,
    ) -> Result<Self, Error> {
        let mut run = Self {
            id,
            flow,
            to: Vec::new(),
            tasks: HashMap::new(),
            begun: None,
            version: 0,
            position: 0,
        };
        run.goes_on(log, place).await?;
        Ok(run)
    }

    /// Takes what stands up to a place of the log. Cost: O(events of its flow that it has not seen).
    pub(super) async fn goes_on(
        &mut self,
        log: &dyn EventStore,
        place: Position,
    ) -> Result<(), Error> {
        loop {
            let (flow, after) = (self.flow, self.version);
            let piece =
                read_stream_over(log, flow, after, PIECE_EVENTS_MAX, PIECE_BYTES_MAX).await?;
            let before = self.version;
            for recorded in piece.iter().filter(|it| it.position <= place) {
                self.take(recorded);
            }
            if self.version == before {
                return Ok(());
            }
        }
    }

    /// The last event that it has seen.
    pub(super) const fn position(&self) -> Position {
        self.position
    }

    /// Adds a receiver, once.
    pub(super) fn tells(&mut self, to: Recipient, since: Position) {
        if !self
            .to
            .iter()
            .any(|(known, _)| known.endpoint == to.endpoint)
        {
            self.to.push((to, since));
        }
    }

    /// The numbers of its receivers.
    pub(super) fn receivers(&self) -> impl Iterator<Item = i64> {
        self.to.iter().map(|(to, _)| to.endpoint)
    }

    /// Keeps those of its receivers that are among these; whether any is left.
    pub(super) fn keep(&mut self, wanted: &HashSet<i64>) -> bool {
        self.to.retain(|(to, _)| wanted.contains(&to.endpoint));
        !self.to.is_empty()
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        let stage = self.begun.as_ref().map(|begun| begun.fold.stage);
        stage.is_some_and(RunStage::is_end)
    }

    /// What an event changes, and who is told of it.
    pub(super) async fn reports(
        &mut self,
        log: &dyn EventStore,
        recorded: &Recorded,
    ) -> Result<Vec<Made>, Error> {
        let changed = self.take(recorded);
        let to = self
            .to
            .iter()
            .filter(|(_, since)| recorded.position > *since);
        let to: Vec<Recipient> = to.map(|(to, _)| *to).collect();
        let mut made = Vec::new();
        if to.is_empty() {
            return Ok(made);
        }
        for Changed {
            told,
            stage,
            since,
            id,
            notice,
        } in changed
        {
            let change = match told {
                FoldChange::Status(stand) => Some(self.status(log, stand).await?),
                FoldChange::Output {
                    task, number, part, ..
                } => {
                    let piece = Piece::Part(part, number);
                    self.returned(task, &notice, piece).map(Change::Returned)
                }
                FoldChange::Artifact { task, parts } => {
                    let result = notice.result.clone();
                    let returned = result.and_then(|result| {
                        self.returned(task, &notice, Piece::Result(result, parts))
                    });
                    returned.map(Change::Returned)
                }
                FoldChange::Node(_) => None,
            };
            let Some((change, begun)) = change.zip(self.begun.as_ref()) else {
                continue;
            };
            made.push(Made {
                id,
                report: Report {
                    run: self.id,
                    stage,
                    since,
                    context: begun.context.clone(),
                    change,
                },
                to: to.clone(),
            });
        }
        Ok(made)
    }

    /// Takes the next event of the flow. One that was taken before changes nothing.
    fn take(&mut self, recorded: &Recorded) -> Vec<Changed> {
        if recorded.version <= self.version {
            return Vec::new();
        }
        self.version = recorded.version;
        self.position = recorded.position;
        self.learn(recorded);
        let Some(begun) = &mut self.begun else {
            return Vec::new();
        };
        let mut changed = Vec::new();
        let mut number = 0;
        for notice in notices(recorded) {
            let concerns = match notice.run {
                Some(ended) => ended.id == self.id,
                None => {
                    let node = self.tasks.get(&notice.task_id);
                    begun.is_whole || node.is_some_and(|node| node.belongs)
                }
            };
            if !concerns {
                continue;
            }
            if matches!(notice.kind, Kind::Failed | Kind::Cancelled)
                && notice.task_id == begun.fold.task
            {
                begun.error.clone_from(&notice.error);
            }
            let asks = question(recorded).map(|asked| asked.asks);
            for told in begun.fold.take(&notice, self.id, asks) {
                number += 1;
                changed.push(Changed {
                    told,
                    stage: begun.fold.stage,
                    since: begun.fold.at,
                    id: format!("{}-{}-{number}r", recorded.id, self.id),
                    notice: notice.clone(),
                });
            }
        }
        changed
    }

    /// What an event says of tasks, and of the beginning of the run.
    fn learn(&mut self, recorded: &Recorded) {
        let event = &*recorded.event;
        if let Event::TaskCreated(e) = event {
            let node = Node {
                ordinal: e.ordinal,
                name: Arc::from(e.name.as_str()),
                parent: e.parent_id,
                is_group: e.specification.method.is_none(),
                belongs: e.run_id == Some(self.id),
            };
            self.tasks.insert(e.task_id, node);
        } else if let Event::TaskRenamed(e) = event
            && let Some(node) = self.tasks.get_mut(&e.task_id)
        {
            node.name = Arc::from(e.name.as_str());
        } else if let Event::TaskMoved(e) = event
            && let Some(node) = self.tasks.get_mut(&e.task_id)
        {
            node.parent = Some(e.parent_id);
        } else if let Event::TaskRespecified(e) = event
            && let Some(node) = self.tasks.get_mut(&e.task_id)
        {
            node.is_group = e.specification.method.is_none();
        } else if let Event::RunStarted(e) = event
            && e.run_id == self.id
        {
            self.begin(recorded, e);
        }
    }

    fn begin(&mut self, recorded: &Recorded, started: &RunStarted) {
        for node in self.tasks.values_mut() {
            node.belongs |= covers(&started.covers, node.ordinal);
        }
        let root = self.flow.root();
        let origin = started.origin.as_ref();
        let context = origin.and_then(|it| it.context.as_deref());
        self.begun = Some(Begun {
            fold: Fold::begun(self.flow, started.task_id, recorded.time),
            context: context.map_or_else(|| Arc::from(root.to_string()), Arc::from),
            is_whole: started.task_id == root && started.kind == RunKind::Execute,
            error: None,
        });
    }

    async fn status(&self, log: &dyn EventStore, stand: FoldStatus) -> Result<Change, Error> {
        let error = || self.begun.as_ref().and_then(|begun| begun.error.clone());
        let said = match (stand.wait, stand.stage) {
            (Some(wait), _) => self.question(log, wait).await?,
            (None, RunStage::Failed | RunStage::Rejected) => {
                let error = error().unwrap_or_else(|| Arc::from(NO_REASON));
                Some(Said::Error(error))
            }
            (None, RunStage::Cancelled) => error().map(Said::Error),
            (
                None,
                RunStage::Submitted
                | RunStage::Working
                | RunStage::InputRequired
                | RunStage::AuthRequired
                | RunStage::Completed,
            ) => None,
        };
        Ok(Change::Status {
            stage: stand.stage,
            at: stand.at,
            said,
        })
    }

    async fn question(&self, log: &dyn EventStore, wait: Wait) -> Result<Option<Said>, Error> {
        let before = wait.version.saturating_sub(1);
        let found = read_stream_over(log, self.flow, before, 1, PIECE_BYTES_MAX).await?;
        let asked = found
            .first()
            .filter(|it| it.version == wait.version)
            .and_then(|it| Some((question(it)?, it.time)));
        Ok(asked.map(|(asked, at)| Said::Question(Box::new(asked.clone()), at)))
    }

    /// What a task has made; nothing of a group that is not the one that was asked for.
    fn returned(&self, task: TaskId, notice: &Notice, made: Piece) -> Option<Returned> {
        let (node, begun) = self.tasks.get(&task).zip(self.begun.as_ref())?;
        let is_result = task == begun.fold.task;
        if node.is_group && !is_result {
            return None;
        }
        Some(Returned {
            task,
            parent: node.parent,
            is_result,
            name: node.name.clone(),
            attempt: notice.attempt.unwrap_or_default(),
            made,
            at: notice.timestamp,
        })
    }
}

fn question(recorded: &Recorded) -> Option<&TaskSuspended> {
    if let Event::TaskSuspended(asked) = &*recorded.event {
        return Some(asked);
    }
    None
}
