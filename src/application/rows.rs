//! Confirmed rows in memory, by flow: answers `tasks.get` without a database, and gives the engine
//! what an attempt needs. Fed by the mailboxes with what is durable, in order, through the same
//! fold as the read models.
//!
//! A flow is held from its creation on or not at all. All rows are held of a flow that is small enough, and of a larger
//! one those of its root and of the roots of its runs.

use super::ownership::Partitions;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger_domain::flow::{Event, Figures, RunState};
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, Recorded, RunId, TaskId, Version};
use taskledger_projections::{Blocker, Change, RunView, TaskRow, TaskView, new_owner};

/// Bytes of rows kept, roughly.
pub const BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes of one flow's rows; of a larger flow the roots are held, so that it does not drive out all others.
const FLOW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a row weighs besides its payloads.
const ROW_BYTES: usize = 800;
/// What a flow weighs besides its rows: its tables, and its places in the order and the index.
const FLOW_BYTES: usize = 700;
/// What a run weighs.
const RUN_BYTES: usize = 120;

/// Rows of young flows, at most `bytes_max`: the flow that was not used for the longest time goes first.
#[derive(Debug)]
pub struct RowCache {
    inner: Mutex<Inner>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Inner {
    flows: HashMap<FlowId, FlowRows>,
    flow_of: HashMap<TaskId, FlowId>,
    /// Least recently written first.
    order: BTreeMap<u64, FlowId>,
    bytes: usize,
    stamp: u64,
}

#[derive(Debug, Default)]
struct FlowRows {
    rows: HashMap<TaskId, Arc<TaskRow>>,
    /// Who owns it now; `None`: nobody.
    owner: Option<Arc<str>>,
    runs: HashMap<RunId, HeldRun>,
    /// Only rows of roots are held.
    is_partial: bool,
    /// Tasks that began as groups: their progress came from other rows, even if they have got a
    /// method since.
    groups_begun: HashSet<TaskId>,
    /// Version of the last event taken in.
    version: Version,
    bytes: usize,
    stamp: u64,
}

#[derive(Debug)]
struct HeldRun {
    root: TaskId,
    /// As it is shown from its end on.
    ended: Option<RunView>,
}

/// The cached knowledge of a task.
#[derive(Debug)]
pub enum Cached {
    /// The whole answer.
    View(TaskView),
    /// Ask the read models.
    Miss,
}

impl RowCache {
    /// An empty cache of at most about `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            inner: Mutex::default(),
            bytes_max,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner
            .lock()
            .expect("no code panics while it holds the rows")
    }

    /// Takes in durable events of one flow, in order.
    pub fn apply(&self, recorded: &[Arc<Recorded>]) {
        let Some(first) = recorded.first() else {
            return;
        };
        let mut inner = self.inner();
        let inner = &mut *inner;
        let flow_id = first.flow;
        let ends = |recorded: &Arc<Recorded>| matches!(*recorded.event, Event::FlowArchived(_));
        if recorded.last().is_some_and(ends) {
            return inner.forget(flow_id);
        }
        if first.version == 1 {
            inner.flows.insert(
                flow_id,
                FlowRows {
                    bytes: FLOW_BYTES,
                    ..FlowRows::default()
                },
            );
            inner.bytes += FLOW_BYTES;
        }
        let Some(flow) = inner.flows.get_mut(&flow_id) else {
            return;
        };
        if flow.version + 1 != first.version {
            // Something was written that this server was not told of.
            return inner.forget(flow_id);
        }
        flow.version += recorded.len() as Version;
        inner.bytes -= flow.bytes;
        for event in recorded {
            flow.apply(event, &mut inner.flow_of);
            // Not one row more than needed to know it: others wait for the lock.
            if flow.bytes > FLOW_BYTES_MAX && !flow.is_partial {
                flow.keep_roots(&mut inner.flow_of);
            }
        }
        inner.bytes += flow.bytes;
        inner.order.remove(&flow.stamp);
        inner.stamp += 1;
        flow.stamp = inner.stamp;
        inner.order.insert(flow.stamp, flow_id);
        if flow.bytes > FLOW_BYTES_MAX {
            inner.forget(flow_id);
        }
        while inner.bytes > self.bytes_max
            && let Some((_, &oldest)) = inner.order.first_key_value()
        {
            inner.forget(oldest);
        }
    }

    /// The flow is known to have this version: rows of another one are forgotten.
    pub fn confirm(&self, flow: FlowId, version: Version) {
        let mut inner = self.inner();
        if inner
            .flows
            .get(&flow)
            .is_some_and(|held| held.version != version)
        {
            inner.forget(flow);
        }
    }

    /// The rows of a flow are somebody else's from now on.
    pub(super) fn forget_flow(&self, flow: FlowId) {
        self.inner().forget(flow);
    }

    /// The rows of all flows in these partitions are somebody else's from now on.
    pub(super) fn forget(&self, partitions: &Partitions) {
        let mut inner = self.inner();
        let flows = inner.flows.keys().copied();
        let leaving: Vec<FlowId> = flows.filter(|flow| partitions.contain(*flow)).collect();
        leaving.into_iter().for_each(|flow| inner.forget(flow));
    }

    /// The flow of a task whose row is held.
    #[must_use]
    pub fn flow_of(&self, task: TaskId) -> Option<FlowId> {
        self.inner().flow_of.get(&task).copied()
    }

    /// Who owns a flow whose rows are held (`None` inside: nobody), as of its last durable event.
    #[must_use]
    pub fn owner_of(&self, flow: FlowId) -> Option<Option<Arc<str>>> {
        Some(self.inner().flows.get(&flow)?.owner.clone())
    }

    /// The name of a task whose row is held.
    #[must_use]
    pub fn name_of(&self, task: TaskId) -> Option<Arc<str>> {
        let inner = self.inner();
        let flow = inner.flows.get(inner.flow_of.get(&task)?)?;
        Some(flow.rows.get(&task)?.name.clone())
    }

    /// The rows of these tasks of a flow, if all of them are held.
    #[must_use]
    pub fn rows(
        &self,
        flow: FlowId,
        tasks: impl IntoIterator<Item = TaskId>,
    ) -> Option<Vec<Arc<TaskRow>>> {
        let inner = self.inner();
        let held = inner.flows.get(&flow)?;
        tasks
            .into_iter()
            .map(|id| held.rows.get(&id).cloned())
            .collect()
    }

    /// The rows of the tasks with results of a run that has ended, in the order of creation: when it is the only run of
    /// its flow, and all rows of the flow are held and are at most `rows_max` of about `bytes_max` bytes.
    #[must_use]
    pub fn returned(
        &self,
        flow: FlowId,
        run: RunId,
        (rows_max, bytes_max): (usize, usize),
    ) -> Option<Vec<Arc<TaskRow>>> {
        let inner = self.inner();
        let held = inner.flows.get(&flow)?;
        let has_ended = held.runs.get(&run).is_some_and(|run| run.ended.is_some());
        let is_whole = !held.is_partial;
        let fits = is_whole && held.rows.len() <= rows_max && held.bytes <= bytes_max;
        if held.runs.len() > 1 || !fits || !has_ended {
            return None;
        }
        let of_run = |row: &&Arc<TaskRow>| row.run_id == Some(run) && row.result.is_some();
        let mut found: Vec<_> = held.rows.values().filter(of_run).cloned().collect();
        found.sort_unstable_by_key(|row| row.ordinal);
        Some(found)
    }

    /// The answer to `tasks.get`, if the rows that are held suffice. The progress of a group and the counts of a run
    /// come from `figures`, and count only for the version that these are of.
    #[must_use]
    pub fn view(&self, task: TaskId, figures: Option<&Figures>) -> Cached {
        let inner = self.inner();
        let flow = inner.flow_of.get(&task).and_then(|f| inner.flows.get(f));
        let view = flow.and_then(|flow| flow.view(task, figures));
        view.map_or(Cached::Miss, Cached::View)
    }
}

impl Inner {
    fn forget(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.remove(&id) {
            self.bytes -= flow.bytes;
            self.order.remove(&flow.stamp);
            for task in flow.rows.keys() {
                self.flow_of.remove(task);
            }
        }
    }
}

impl FlowRows {
    /// Gives it, with all rows that are held, to another owner. Cost: O(rows), when it is another one.
    fn give_to(&mut self, owner: Option<&str>) {
        if self.owner.as_deref() == owner {
            return;
        }
        self.owner = owner.map(Arc::from);
        for row in self.rows.values_mut() {
            Arc::make_mut(row).owner.clone_from(&self.owner);
        }
    }

    fn view(&self, task: TaskId, figures: Option<&Figures>) -> Option<TaskView> {
        let mut row = self.rows.get(&task)?.clone();
        let figures = figures.filter(|it| it.version == self.version);
        let latest = row.run_id.and_then(|id| Some((id, self.runs.get(&id)?)));
        let run = match latest {
            Some((id, run)) if row.is_root() || run.root == task => Some(match run.ended {
                Some(ended) => ended,
                None => {
                    let of_run = |(active, _): &(RunId, _)| *active == id;
                    let (_, counts) = figures?.run.filter(of_run)?;
                    let state = RunState::Running;
                    RunView { id, state, counts }
                }
            }),
            Some(_) | None => None,
        };
        if self.groups_begun.contains(&task) {
            Arc::make_mut(&mut row).progress = figures?.progress;
        }
        let is_pending = row.status == Status::Pending;
        let mut blocked_by = Vec::new();
        let required = row.dependencies.iter().filter(|d| d.when.is_required());
        for dependency in required.filter(|_| is_pending) {
            let target = self.rows.get(&dependency.id)?;
            if matches!(target.status, Status::Failed | Status::Cancelled) {
                blocked_by.push(Blocker {
                    id: target.id,
                    status: target.status,
                });
            }
        }
        let has_ended = latest.is_some_and(|(_, run)| run.ended.is_some());
        Some(TaskView {
            row,
            blocked_by,
            skipped: is_pending && has_ended,
            run,
        })
    }

    /// Holds the rows of roots only from now on.
    fn keep_roots(&mut self, flow_of: &mut HashMap<TaskId, FlowId>) {
        self.is_partial = true;
        let roots: HashSet<TaskId> = self.runs.values().map(|run| run.root).collect();
        self.rows.retain(|id, row| {
            let is_kept = row.is_root() || roots.contains(id);
            if !is_kept {
                flow_of.remove(id);
            }
            is_kept
        });
        self.rows.shrink_to_fit();
        let rows = &self.rows;
        self.groups_begun.retain(|id| rows.contains_key(id));
        let weights = rows.values().map(|row| weight(row)).sum::<usize>();
        self.bytes = FLOW_BYTES + self.runs.len() * RUN_BYTES + weights;
    }

    fn apply(&mut self, recorded: &Recorded, flow_of: &mut HashMap<TaskId, FlowId>) {
        if let Some(owner) = new_owner(recorded) {
            self.give_to(owner);
        }
        if let Event::RunStarted(run) = recorded.event.as_ref() {
            self.bytes += RUN_BYTES;
            let begun = HeldRun {
                root: run.task_id,
                ended: None,
            };
            self.runs.insert(run.run_id, begun);
            for row in self.rows.values_mut() {
                Arc::make_mut(row).apply(recorded);
            }
        } else if let Event::RunEnded(run) = recorded.event.as_ref() {
            if let Some(held) = self.runs.get_mut(&run.run_id) {
                held.ended = Some(RunView {
                    id: run.run_id,
                    state: run.state,
                    counts: run.counts,
                });
            }
        } else if self.is_partial && matches!(*recorded.event, Event::TaskCreated(_)) {
            // Its row is held by the read models only.
        } else if let Some(mut row) = TaskRow::created(recorded) {
            row.owner.clone_from(&self.owner);
            self.bytes += weight(&row);
            flow_of.insert(row.id, recorded.flow);
            self.rows.insert(row.id, Arc::new(row));
        } else if let Some(id) = recorded.event.task_id()
            && let Some(row) = self.rows.get_mut(&id)
        {
            if row.is_group() && matches!(recorded.event.as_ref(), Event::TaskStarted(_)) {
                self.groups_begun.insert(id);
            } else if matches!(recorded.event.as_ref(), Event::TaskRequeued(_)) {
                self.groups_begun.remove(&id);
            }
            self.bytes -= weight(row);
            if Arc::make_mut(row).apply(recorded) == Change::Deleted {
                self.rows.remove(&id);
                flow_of.remove(&id);
            } else {
                self.bytes += weight(row);
            }
        }
    }
}

fn weight(row: &TaskRow) -> usize {
    let payload =
        |p: &Option<taskledger_domain::Payload>| p.as_ref().map_or(0, |p| p.as_str().len());
    ROW_BYTES
        + row.inputs.as_str().len()
        + payload(&row.schemas)
        + payload(&row.params)
        + row.outcome_bytes()
        + row.dependencies.len() * 24
}
