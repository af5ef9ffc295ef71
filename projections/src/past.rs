//! The past state of a flow: the rows that its first events made, in memory, without a database.
//!
//! Owns: the order of events of one flow -> what `tasks.get` and `tasks.tree` answered then, by the
//! same fold that feeds the tables. Large payloads (inputs, schemas, params, results) are not kept:
//! a row remembers which events hold them, and [`Past::complete`] puts them back for the rows that
//! are shown. So memory is at most about 1.5 KB a task, and its name, error and dependencies.
//! Rows carry the owner that the flow had then. Who may read them depends on its owner now:
//! [`crate::ReadModels::owner_of`].

use crate::task_row::empty_payload;
use crate::tasks::Run;
use crate::tasks::working_set::WorkingSet;
use crate::{Blocker, Error, RunView, TaskRow, TaskView};
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::flow::{Event, RunState, TaskCreated, TaskRespecified};
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, Recorded, RunId, TaskId, Version};

/// Bytes of a specification, and of a result, up to which they are kept, so that trees of small
/// tasks are shown without reading the log again.
const KEPT_BYTES_MAX: usize = 256;

/// The rows of one flow, after as many of its events as were applied.
#[derive(Default)]
pub struct Past {
    set: WorkingSet,
    flow: Option<FlowId>,
    sources: HashMap<TaskId, Sources>,
}

/// The events that hold payloads of a row which were not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sources {
    /// The one with inputs, schemas and params.
    pub specification: Option<Version>,
    /// The one with the result.
    pub result: Option<Version>,
}

impl Sources {
    /// The versions of the events that are named, without those that are absent.
    pub fn versions(self) -> impl Iterator<Item = Version> {
        [self.specification, self.result].into_iter().flatten()
    }
}

impl Past {
    /// Folds the next event of the flow. Cost: O(depth), for the start of a run O(tasks).
    ///
    /// # Errors
    /// [`Error::Poison`]: it contradicts those before.
    pub fn apply(&mut self, recorded: &Recorded) -> Result<(), Error> {
        let poison = |reason: String| Error::Poison {
            position: recorded.position,
            reason,
        };
        self.flow = Some(recorded.flow);
        let folded = self.set.fold(recorded);
        // Never: all tasks of the flow are here.
        if folded.map_err(|found| poison(found.to_string()))?.is_some() {
            return Err(poison("not all of the flow is in memory".to_owned()));
        }
        self.remember_sources(recorded);
        self.set.forget_writes();
        Ok(())
    }

    fn remember_sources(&mut self, recorded: &Recorded) {
        let Some(id) = recorded.event.task_id() else {
            return;
        };
        let Some(task) = self.set.tasks.get_mut(&id) else {
            self.sources.remove(&id);
            return;
        };
        let row = &mut task.placed.row;
        let sources = self.sources.entry(id).or_default();
        match recorded.event.as_ref() {
            Event::TaskCreated(TaskCreated { specification, .. })
            | Event::TaskRespecified(TaskRespecified { specification, .. }) => {
                sources.specification = None;
                if specification.bytes() > KEPT_BYTES_MAX {
                    sources.specification = Some(recorded.version);
                    row.inputs = empty_payload();
                    row.schemas = None;
                    row.params = None;
                }
            }
            Event::TaskCompleted(e) => {
                if e.result.as_str().len() > KEPT_BYTES_MAX {
                    sources.result = Some(recorded.version);
                    row.result = None;
                }
            }
            Event::TaskRenamed(_)
            | Event::PriorityChanged(_)
            | Event::LabelsChanged(_)
            | Event::UserChanged(_)
            | Event::TaskMoved(_)
            | Event::DependenciesChanged(_)
            | Event::TaskDeleted(_)
            | Event::RunStarted(_)
            | Event::MessageReceived(_)
            | Event::TaskStarted(_)
            | Event::TaskProgressed(_)
            | Event::TaskOutputAppended(_)
            | Event::TaskClaimRejected(_)
            | Event::TaskCompletionRejected(_)
            | Event::TaskSuspended(_)
            | Event::TaskReminded(_)
            | Event::TaskAnswered(_)
            | Event::TaskSuspensionExpired(_)
            | Event::TaskFailed(_)
            | Event::TaskRequeued(_)
            | Event::TaskDeferred(_)
            | Event::TaskCancelled(_)
            | Event::RunEnded(_)
            | Event::FlowArchived(_) => {}
        }
    }

    /// The task as it was, without its large payloads: [`Self::complete`] adds them. With its latest run when
    /// it is the root of that run or of the flow and `with_run` says so. Cost: O(dependencies).
    #[must_use]
    pub fn view(&self, id: TaskId, with_run: WithRun) -> Option<(TaskView, Sources)> {
        let row = &self.set.tasks.get(&id)?.placed.row;
        let sources = self.sources.get(&id).copied().unwrap_or_default();
        let view = TaskView {
            row: Arc::new(row.clone()),
            blocked_by: self.blockers(row),
            skipped: self.is_skipped(row),
            run: match with_run {
                WithRun::Yes => row.run_id.and_then(|run| self.run(run, id)),
                WithRun::No => None,
            },
        };
        Some((view, sources))
    }

    fn is_skipped(&self, row: &TaskRow) -> bool {
        let run = row.run_id.and_then(|run| self.set.runs.get(&run));
        row.status == Status::Pending && run.is_some_and(|run| run.state != RunState::Running)
    }

    fn blockers(&self, row: &TaskRow) -> Vec<Blocker> {
        if row.status != Status::Pending {
            return Vec::new();
        }
        let required = row.dependencies.iter().filter(|d| d.when.is_required());
        required
            .filter_map(|d| {
                let status = self.set.tasks.get(&d.id)?.placed.row.status;
                matches!(status, Status::Failed | Status::Cancelled)
                    .then_some(Blocker { id: d.id, status })
            })
            .collect()
    }

    fn run(&self, run: RunId, root: TaskId) -> Option<RunView> {
        let shows = |r: &&Run| r.task_id == root || r.flow_id.root() == root;
        let run = self.set.runs.get(&run).filter(shows)?;
        Some(RunView {
            id: run.id,
            state: run.state,
            counts: run.counts,
        })
    }

    /// Puts the payloads that an event holds into the row. Cost: O(1).
    pub fn complete(view: &mut TaskView, event: &Event) {
        let row = Arc::make_mut(&mut view.row);
        if let Event::TaskCreated(e) = event {
            row.show(&e.specification);
        } else if let Event::TaskRespecified(e) = event {
            row.show(&e.specification);
        } else if let Event::TaskCompleted(e) = event {
            row.result = Some(e.result.clone());
        }
    }

    /// The task and everything below it in depth-first order, with depths; siblings in order of
    /// creation. Empty when it does not exist. No recursion. Cost: O(tasks of the flow).
    #[must_use]
    pub fn depth_first(&self, root: TaskId) -> Vec<(TaskId, usize)> {
        let Some(flow) = self.flow.and_then(|flow| self.set.flows.get(&flow)) else {
            return Vec::new();
        };
        if !self.set.tasks.contains_key(&root) {
            return Vec::new();
        }
        let mut children: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
        // Newest first, so that what is pushed last, and popped first, is the oldest.
        for id in flow.tasks.values().rev() {
            let parent = self.set.tasks.get(id).and_then(|t| t.placed.row.parent_id);
            if let Some(parent) = parent {
                children.entry(parent).or_default().push(*id);
            }
        }
        let mut order = Vec::new();
        let mut open = vec![(root, 0)];
        while let Some((id, depth)) = open.pop() {
            order.push((id, depth));
            let below = children.remove(&id).unwrap_or_default();
            open.extend(below.into_iter().map(|child| (child, depth + 1)));
        }
        order
    }
}

/// Whether a view shows a run: the root of an answer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithRun {
    /// The latest one that covers the task, when the task is the root of that run or of the flow.
    Yes,
    /// None.
    No,
}

impl std::fmt::Debug for Past {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Past")
            .field("flow", &self.flow)
            .field("tasks", &self.set.tasks.len())
            .finish_non_exhaustive()
    }
}
