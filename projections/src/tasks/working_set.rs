//! The rows that a batch changes, in memory, and the effect of each event on all of them.
//!
//! Owns: the propagation from a task to its ancestors, its flow, its run and the totals, exactly as
//! if each event were applied alone. Synchronous and without a database: `load` brings in what a
//! batch needs, `flush` writes what it changed. What stays in memory between batches is a cache of
//! committed rows. Invariant: a task in memory has its flow and all its ancestors in memory.

use super::attempts::AttemptRow;
use super::contradiction::Contradiction;
use super::counts::{Deltas, Names};
use super::facets::Facets;
use super::flows::{Flow, Run, shift};
use super::held::{Part, Place, Task, Write};
use super::in_sql::{CoverInSql, InSql};
use super::rows::Placed;
use super::standing::{PastStatus, Said, Standing};
use crate::TaskRow;
use crate::task_row::Change;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use taskledger_domain::flow::{Event, RunEnded, RunStarted, RunState, StatusCounts, covers};
use taskledger_domain::{FlowId, Recorded, RunId, TaskId, Version};
use taskledger_sql::int;

/// Tasks kept in memory between batches. About 500 bytes each: 4 MB.
pub(super) const CACHED_TASKS_MAX: usize = 8192;
/// Bytes of result, error and labels that a cached task may hold; larger ones are dropped with their flow.
const CACHED_OUTCOME_BYTES_MAX: usize = 4096;

#[derive(Default)]
pub(crate) struct WorkingSet {
    pub(super) batch: u64,
    pub(crate) tasks: HashMap<TaskId, Task>,
    pub(crate) flows: HashMap<FlowId, Flow>,
    pub(crate) runs: HashMap<RunId, Run>,
    /// Tasks with something to write, each once.
    pub(super) changed: Vec<TaskId>,
    /// Flows with something to write, each once. With these lists a batch costs what it changes, and
    /// not what is cached.
    pub(super) changed_flows: Vec<FlowId>,
    /// Runs with something to write; some may stand here twice.
    pub(super) changed_runs: Vec<RunId>,
    /// Runs that stand otherwise; some may stand here twice.
    pub(super) changed_standings: Vec<RunId>,
    /// Statuses that ended, which are not written yet.
    pub(super) past_statuses: Vec<PastStatus>,
    /// What was said in runs, by the number of the run and the version of the event.
    pub(super) said: BTreeMap<(i64, Version), Said>,
    /// Parts of outputs that are not written yet.
    pub(super) outputs: BTreeMap<Place, Part>,
    /// Flows of which a task holds more than a cache should.
    heavy: Vec<FlowId>,
    /// A flow was forgotten, and its tasks and runs are still here.
    pub(super) flow_left: bool,
    /// Keys of stored tasks that were deleted.
    pub(super) deleted: Vec<i64>,
    pub(super) attempts: HashMap<(i64, u32), AttemptRow>,
    pub(super) counts: Deltas,
    /// Keys of flows whose owner changed, with the new one.
    pub(super) owners: BTreeMap<i64, Option<Arc<str>>>,
}

impl WorkingSet {
    /// Applies one event. `Some`: the caller must do that in SQL before the next event.
    ///
    /// # Errors
    /// Why the event contradicts what is known; the set is then useless.
    pub(crate) fn fold(&mut self, recorded: &Recorded) -> Result<Option<InSql>, Contradiction> {
        let asking = self.asking(&recorded.event);
        let in_sql = match recorded.event.as_ref() {
            Event::TaskCreated(_) => self.create(recorded).map(|()| None),
            Event::RunStarted(e) => self
                .start_run(recorded, e)
                .map(|cover| cover.map(InSql::Cover)),
            Event::UserChanged(e) if e.task_id == recorded.flow.root() => {
                self.change_owner(recorded)
            }
            Event::RunEnded(e) => self.end_run(recorded, e).map(|()| None),
            Event::MessageReceived(_) => Ok(None),
            // Its rows are dropped, not folded.
            Event::FlowArchived(_) => return Ok(None),
            Event::TaskRenamed(_)
            | Event::PriorityChanged(_)
            | Event::LabelsChanged(_)
            | Event::UserChanged(_)
            | Event::TaskMoved(_)
            | Event::TaskRespecified(_) => self.change(recorded, Write::Definition).map(|()| None),
            Event::DependenciesChanged(_)
            | Event::TaskProgressed(_)
            | Event::TaskOutputAppended(_)
            | Event::TaskClaimRejected(_)
            | Event::TaskCompletionRejected(_)
            | Event::TaskReminded(_) => self.change(recorded, Write::Figures).map(|()| None),
            Event::TaskStarted(_)
            | Event::TaskSuspended(_)
            | Event::TaskAnswered(_)
            | Event::TaskSuspensionExpired(_)
            | Event::TaskCompleted(_)
            | Event::TaskFailed(_)
            | Event::TaskRequeued(_)
            | Event::TaskDeferred(_)
            | Event::TaskCancelled(_)
            | Event::TaskDeleted(_) => self.change(recorded, Write::State).map(|()| None),
        }?;
        self.follow_run(recorded, asking)?;
        let flow = self.flow(recorded.flow)?;
        flow.last_position = recorded.position;
        if !std::mem::replace(&mut flow.changed, true) {
            self.changed_flows.push(recorded.flow);
        }
        Ok(in_sql)
    }

    /// Puts a stored task into memory.
    pub(super) fn insert_stored(&mut self, placed: Placed) {
        let (id, flow, ordinal) = (placed.row.id, placed.row.flow_id, placed.row.ordinal);
        if self.tasks.contains_key(&id) {
            return;
        }
        if placed.row.outcome_bytes() > CACHED_OUTCOME_BYTES_MAX {
            self.heavy.push(flow);
        }
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.tasks.insert(ordinal, id);
            self.tasks.insert(id, Task::of(placed, Write::Nothing));
        }
    }

    /// Gives a run to the tasks of its ranges that are in memory; the stored ones have it already.
    pub(super) fn covered_in_sql(&mut self, cover: &CoverInSql, counts: StatusCounts) {
        if let Some(flow) = self.flows.get(&cover.flow) {
            for (ordinal, id) in &flow.tasks {
                if covers(&cover.run.covers, *ordinal)
                    && let Some(task) = self.tasks.get_mut(id)
                {
                    task.placed.row.run_id = Some(cover.run.run_id);
                }
            }
        }
        if let Some(run) = self.runs.get_mut(&cover.run.run_id) {
            run.counts = counts;
            self.changed_runs.push(run.id);
        }
    }

    /// Forgets what would have to be written, when nothing is written.
    pub(crate) fn forget_writes(&mut self) {
        self.attempts.clear();
        self.counts = Deltas::default();
        self.owners.clear();
        self.changed.clear();
        self.changed_flows.clear();
        self.changed_runs.clear();
        self.changed_standings.clear();
        self.past_statuses.clear();
        self.said.clear();
        self.outputs.clear();
        self.deleted.clear();
        self.heavy.clear();
    }

    /// Forgets tasks and runs of flows that are no longer there.
    pub(super) fn forget_flows(&mut self, is_gone: impl Fn(FlowId) -> bool) {
        self.tasks
            .retain(|_, task| !is_gone(task.placed.row.flow_id));
        self.runs.retain(|_, run| !is_gone(run.flow_id));
    }

    /// Ends a batch: keeps a bounded cache, the flows of this batch before older ones. Cost: O(1),
    /// unless something leaves.
    pub(super) fn trim(&mut self, cached_tasks_max: usize) {
        for flow in std::mem::take(&mut self.heavy) {
            self.flow_left |= self.flows.remove(&flow).is_some();
        }
        if self.tasks.len() > cached_tasks_max || self.flows.len() > cached_tasks_max {
            let batch = self.batch;
            self.flows.retain(|_, flow| flow.used == batch);
            let kept: usize = self.flows.values().map(|flow| flow.tasks.len()).sum();
            if kept.max(self.flows.len()) > cached_tasks_max {
                self.flows.clear();
            }
            self.flow_left = true;
        }
        if !std::mem::take(&mut self.flow_left) {
            return;
        }
        let flows = &self.flows;
        self.tasks
            .retain(|_, task| flows.contains_key(&task.placed.row.flow_id));
        self.runs.retain(|_, run| flows.contains_key(&run.flow_id));
    }

    pub(super) fn flow(&mut self, id: FlowId) -> Result<&mut Flow, Contradiction> {
        self.flows.get_mut(&id).ok_or(Contradiction::NoFlow(id))
    }

    fn create(&mut self, recorded: &Recorded) -> Result<(), Contradiction> {
        let mut row = TaskRow::created(recorded).ok_or(Contradiction::NoCreation)?;
        let no = int(row.created_position);
        let (flow_no, parent_no) = match row.parent_id {
            Some(parent) => {
                let parent = &self.task(parent)?.placed;
                if parent.row.flow_id != row.flow_id {
                    return Err(Contradiction::ForeignParent(parent.row.id));
                }
                row.owner.clone_from(&parent.row.owner);
                (parent.flow_no, Some(parent.no()))
            }
            None if row.flow_id.root() == row.id && !self.flows.contains_key(&row.flow_id) => {
                let mut flow = Flow::new(row.flow_id, no);
                flow.used = self.batch;
                self.flows.insert(row.flow_id, flow);
                (no, None)
            }
            None => return Err(Contradiction::SecondRoot(row.flow_id)),
        };
        if self.tasks.contains_key(&row.id) {
            return Err(Contradiction::TaskExists(row.id));
        }
        self.counts.created(recorded.time, recorded.position);
        let now = Facets::of(&row);
        self.account(row.flow_id, None, Some(&now))?;
        if let Some(parent) = row.parent_id {
            self.propagate(row.flow_id, parent, 1, 0)?;
        }
        let (id, flow_id, ordinal) = (row.id, row.flow_id, row.ordinal);
        self.flow(flow_id)?.tasks.insert(ordinal, id);
        let placed = Placed {
            flow_no,
            parent_no,
            row,
        };
        self.tasks.insert(id, Task::of(placed, Write::New));
        self.changed.push(id);
        Ok(())
    }

    pub(super) fn change(
        &mut self,
        recorded: &Recorded,
        write: Write,
    ) -> Result<(), Contradiction> {
        let event = recorded.event.as_ref();
        let id = event.task_id().ok_or(Contradiction::NoTaskNamed)?;
        let task = self.tasks.get_mut(&id).ok_or(Contradiction::NoTask(id))?;
        let row = &mut task.placed.row;
        if row.flow_id != recorded.flow {
            return Err(Contradiction::ForeignTask(id));
        }
        if let Some((attempt, attempt_row)) = AttemptRow::of(recorded, row) {
            let key = (int(row.created_position), attempt);
            self.attempts.insert(key, attempt_row);
        }
        let before = Facets::of(row);
        let change = row.apply(recorded);
        if row.outcome_bytes() > CACHED_OUTCOME_BYTES_MAX {
            self.heavy.push(recorded.flow);
        }
        if change == Change::Deleted {
            return self.delete(id, &before);
        }
        let after = Facets::of(row);
        task.dependencies_changed |= matches!(event, Event::DependenciesChanged(_));
        task.specification_changed |= matches!(event, Event::TaskRespecified(_));
        task.labels_changed |= matches!(event, Event::LabelsChanged(_));
        self.mark(id, write);
        self.account(recorded.flow, Some(&before), Some(&after))?;
        let shift = after.millionths - before.millionths;
        match (before.parent, after.parent) {
            (Some(old), Some(new)) if old == new => {
                self.propagate(recorded.flow, new, 0, shift)?;
            }
            (old, new) => {
                if let Some(old) = old {
                    self.propagate(recorded.flow, old, -1, -before.millionths)?;
                }
                if let Some(new) = new {
                    let parent = self.task(new)?.placed.no();
                    self.task_mut(id)?.placed.parent_no = Some(parent);
                    self.propagate(recorded.flow, new, 1, after.millionths)?;
                }
            }
        }
        Ok(())
    }

    fn delete(&mut self, id: TaskId, before: &Facets) -> Result<(), Contradiction> {
        let task = self
            .tasks
            .remove(&id)
            .ok_or(Contradiction::DeletedTwice(id))?;
        let row = &task.placed.row;
        self.account(row.flow_id, Some(before), None)?;
        let flow = self.flow(row.flow_id)?;
        flow.tasks.remove(&row.ordinal);
        flow.rootless |= row.is_root();
        if task.write != Write::New {
            self.deleted.push(task.placed.no());
        }
        let no = task.placed.no();
        self.attempts.retain(|&(task_no, _), _| task_no != no);
        if let Some(parent) = row.parent_id {
            self.propagate(row.flow_id, parent, -1, -before.millionths)?;
        }
        Ok(())
    }

    fn start_run(
        &mut self,
        recorded: &Recorded,
        e: &RunStarted,
    ) -> Result<Option<CoverInSql>, Contradiction> {
        let asked = self.tasks.get(&e.task_id);
        let owner = asked.and_then(|task| task.placed.row.owner.clone());
        let flow_no = self.flow(recorded.flow)?.no;
        let run = Run {
            no: int(recorded.position),
            id: e.run_id,
            flow_id: recorded.flow,
            task_id: e.task_id,
            kind: e.kind,
            state: RunState::Running,
            counts: StatusCounts::default(),
            started_at: recorded.time,
            ended_at: None,
            standing: Standing::begun(recorded, e, (flow_no, owner)),
            shown: None,
            rejected: false,
        };
        self.changed_standings.push(e.run_id);
        self.changed_runs.push(e.run_id);
        if self.runs.insert(e.run_id, run).is_some() {
            return Err(Contradiction::RunExists(e.run_id));
        }
        let flow = self.flow(recorded.flow)?;
        flow.open_runs += 1;
        if !flow.is_whole() {
            return Ok(Some(CoverInSql {
                flow: recorded.flow,
                run: e.clone(),
            }));
        }
        let covered: Vec<TaskId> = flow
            .tasks
            .iter()
            .filter(|(ordinal, _)| covers(&e.covers, **ordinal))
            .map(|(_, id)| *id)
            .collect();
        for id in covered {
            let row = &mut self.task_mut(id)?.placed.row;
            row.apply(recorded);
            let (status, runs) = (row.status, !row.is_group());
            if let Some(run) = self.runs.get_mut(&e.run_id).filter(|_| runs) {
                // It is among the changed ones already.
                run.count(status, 1);
            }
            self.mark(id, Write::State);
        }
        Ok(None)
    }

    fn end_run(&mut self, recorded: &Recorded, e: &RunEnded) -> Result<(), Contradiction> {
        let run = self
            .runs
            .get_mut(&e.run_id)
            .filter(|run| run.state == RunState::Running)
            .ok_or(Contradiction::RunNotRunning(e.run_id))?;
        run.state = e.state;
        run.counts = e.counts;
        run.ended_at = Some(recorded.time);
        self.changed_runs.push(e.run_id);
        self.flow(recorded.flow)?.open_runs -= 1;
        Ok(())
    }

    /// Moves one task from one place to another in all figures above it, its ancestors apart.
    pub(super) fn account(
        &mut self,
        flow: FlowId,
        before: Option<&Facets>,
        after: Option<&Facets>,
    ) -> Result<(), Contradiction> {
        let same_cell = match (before, after) {
            (Some(b), Some(a)) => b.cell == a.cell && b.user == a.user && b.owner == a.owner,
            (None, _) | (_, None) => false,
        };
        let same_run = match (before, after) {
            (Some(b), Some(a)) => {
                (b.cell.status, b.run_id, b.runs) == (a.cell.status, a.run_id, a.runs)
            }
            (None, _) | (_, None) => false,
        };
        for (facets, by) in [(before, -1), (after, 1)] {
            let Some(facets) = facets else { continue };
            if !same_cell {
                let names = Names {
                    user: facets.user.as_ref(),
                    owner: facets.owner.as_ref(),
                };
                self.counts.add(names, facets.created_at, facets.cell, by);
            }
            let flow = self.flow(flow)?;
            shift(&mut flow.counts, facets.cell.status, by);
            flow.progress_sum += by * facets.millionths;
            flow.waiting += by * i64::from(facets.waiting);
            flow.deadlines += by * i64::from(facets.deadline);
            // A run that hands a task over to another one keeps counting it as it was.
            let handed_over = by < 0 && after.is_some_and(|a| a.run_id != facets.run_id);
            if !same_run
                && !handed_over
                && facets.runs
                && let Some(run) = facets.run_id.and_then(|id| self.runs.get_mut(&id))
                && run.count(facets.cell.status, by)
            {
                self.changed_runs.push(run.id);
            }
        }
        Ok(())
    }

    /// Carries a change of children to `parent` and, where that moves a running group, further up.
    /// A parent that is gone was deleted just before its children. Cost: O(depth).
    fn propagate(
        &mut self,
        flow: FlowId,
        mut parent: TaskId,
        mut count: i64,
        mut by: i64,
    ) -> Result<(), Contradiction> {
        while count != 0 || by != 0 {
            let Some(task) = self.tasks.get_mut(&parent) else {
                return Ok(());
            };
            let row = &mut task.placed.row;
            let before = i64::from(row.progress.millionths());
            row.children_changed(count, by);
            (count, by) = (0, i64::from(row.progress.millionths()) - before);
            let next = row.parent_id;
            self.mark(parent, Write::Figures);
            self.flow(flow)?.progress_sum += by;
            match next {
                Some(next) => parent = next,
                None => break,
            }
        }
        Ok(())
    }

    fn mark(&mut self, id: TaskId, write: Write) {
        if let Some(task) = self.tasks.get_mut(&id) {
            if task.write == Write::Nothing {
                self.changed.push(id);
            }
            task.write = task.write.max(write);
        }
    }

    pub(super) fn task(&self, id: TaskId) -> Result<&Task, Contradiction> {
        self.tasks.get(&id).ok_or(Contradiction::NoTask(id))
    }

    pub(super) fn task_mut(&mut self, id: TaskId) -> Result<&mut Task, Contradiction> {
        self.tasks.get_mut(&id).ok_or(Contradiction::NoTask(id))
    }
}
