//! How events change the state. Never refuses: an event is a fact.
//!
//! Cost of an event: O(dependents + depth), except `RunStarted` and `RunEnded`, which touch their
//! members, and `TaskMoved` and changes of a deadline, which touch the subtree. `RunStarted`
//! and `TaskMoved` make the run stale: `refresh` then counts anew what its groups wait for.

mod runs;

use super::blocking::{DependencyState, Met};
use super::event::{
    Dependency, Event, RequeueReason, RunStarted, Specification, TaskCreated, When,
};
use super::state::{Archived, Bounds, Edge, Flow, Held, NONE, Run, Task};
use crate::task::wiring::Wiring;
use crate::task::{Progress, Status};
use crate::{Recorded, TaskId, Timestamp};

impl Flow {
    /// Applies the next event of the stream, recorded at the state's version + 1.
    pub fn apply(&mut self, event: &Event, time: Timestamp) {
        self.version += 1;
        match event {
            Event::TaskCreated(e) => self.created(e, time),
            Event::TaskRenamed(e) => {
                let (i, version) = (self.ordinal(e.task_id), self.version);
                self.at_mut(i).name_at = version;
            }
            Event::PriorityChanged(e) => {
                let i = self.ordinal(e.task_id);
                self.unlink(i);
                self.at_mut(i).priority = e.priority;
                self.link(i);
            }
            Event::LabelsChanged(e) => {
                let (i, version) = (self.ordinal(e.task_id), self.version);
                self.at_mut(i).labels_at = if e.labels.is_empty() { 0 } else { version };
            }
            Event::UserChanged(e) => {
                let user = e.user_id.as_deref().map_or(NONE, |u| self.users.number(u));
                let i = self.ordinal(e.task_id);
                self.at_mut(i).user = user;
            }
            Event::TaskMoved(e) => self.moved(e.task_id, e.parent_id, time),
            Event::DependenciesChanged(e) => self.rewired(e.task_id, &e.dependencies, time),
            Event::TaskRespecified(e) => {
                self.respecified(e.task_id, (&e.specification, &e.absent), time);
            }
            Event::TaskDeferred(e) => self.deferred(e, time),
            Event::TaskDeleted(e) => self.deleted(e.task_id, time),
            Event::RunStarted(e) => self.run_started(e, time),
            Event::MessageReceived(e) => {
                if let Some(key) = self.run_keys.get(&e.run_id)
                    && let Some(run) = self.runs.get_mut(key)
                {
                    run.heard.push(e.body_hash.as_str().into());
                    self.heard += 1;
                }
            }
            Event::TaskStarted(e) => {
                let i = self.ordinal(e.task_id);
                self.forget_claims(i);
                self.forget_output(i);
                self.set_status(i, Status::InProgress, time);
                let task = self.at_mut(i);
                task.attempt = e.attempt;
                task.attempts_in_run += 1;
                task.next_attempt_at = Timestamp::default();
                task.progress = Progress::ZERO;
                if task
                    .retry
                    .as_ref()
                    .is_some_and(|r| r.max_elapsed_ms.is_some())
                {
                    self.first_starts.entry(i).or_insert(time);
                }
                if let Some(lease) = &e.lease {
                    self.leased(i, lease, time);
                }
            }
            Event::TaskProgressed(e) => {
                let i = self.ordinal(e.task_id);
                self.at_mut(i).progress = e.progress;
            }
            Event::TaskOutputAppended(e) => self.appended(e),
            Event::TaskCompletionRejected(e) => {
                let i = self.ordinal(e.task_id);
                if let Some(held) = self.leases.get_mut(&i) {
                    held.rejected = Some(Held::text_of(&e.fault));
                    held.rejections = held.rejections.saturating_add(1);
                }
            }
            Event::TaskClaimRejected(e) => {
                let i = self.ordinal(e.task_id);
                let found = e.found();
                let told = self.told_claims.entry(i).or_default();
                *told = told.and(&found);
            }
            Event::TaskSuspended(e) => self.suspended(e, time),
            Event::TaskReminded(e) => self.reminded(e.task_id, e.number),
            Event::TaskAnswered(e) => self.answered(e.task_id),
            Event::TaskSuspensionExpired(e) => self.suspension_expired(e),
            Event::TaskCompleted(e) => {
                let i = self.ordinal(e.task_id);
                self.look_for_needs(i, &e.result);
                self.ended(e.task_id, Status::Completed, time);
            }
            Event::TaskFailed(e) => {
                if e.reason == super::FailureReason::Interrupted {
                    let i = self.ordinal(e.task_id);
                    self.at_mut(i).interruptions = self.at(i).interruptions.saturating_add(1);
                }
                let i = self.ordinal(e.task_id);
                self.at_mut(i).rejected = e.reason == super::FailureReason::Rejected;
                self.at_mut(i).progress = e.progress;
                self.ended(e.task_id, Status::Failed, time);
            }
            Event::TaskCancelled(e) => {
                let i = self.ordinal(e.task_id);
                self.at_mut(i).progress = self.progress_of(i);
                self.ended(e.task_id, Status::Cancelled, time);
            }
            Event::TaskRequeued(e) => {
                let i = self.ordinal(e.task_id);
                let task = self.at_mut(i);
                task.next_attempt_at = e.next_attempt_at.unwrap_or_default();
                match e.reason {
                    // Attempts that nobody is to blame for are not charged to the retry budget.
                    RequeueReason::Interrupted
                    | RequeueReason::Released
                    | RequeueReason::Answered => {
                        task.attempts_in_run = task.attempts_in_run.saturating_sub(1);
                    }
                    RequeueReason::Retry | RequeueReason::Rerun => {}
                }
                task.progress = Progress::ZERO;
                task.rejected = false;
                self.refresh_ready_since(i, time);
                self.set_status(i, Status::Pending, time);
            }
            Event::RunEnded(e) => self.run_ended(e.run_id),
            Event::FlowArchived(e) => {
                // What stood before may be gone already, so what remains does not depend on it.
                *self = Self {
                    version: self.version,
                    archived: Some(Box::new(Archived {
                        at: time,
                        copy: e.clone(),
                    })),
                    ..Self::default()
                };
            }
        }
    }

    /// Rebuilds or continues a state from recorded events, in order. Before the end of an archived
    /// stream events may be missing.
    pub fn replay<'a>(&mut self, events: impl IntoIterator<Item = &'a Recorded>) {
        for recorded in events {
            if matches!(*recorded.event, Event::FlowArchived(_)) {
                self.version = self.version.max(recorded.version - 1);
            }
            assert_eq!(
                recorded.version,
                self.version + 1,
                "events of a stream follow each other"
            );
            self.apply(&recorded.event, recorded.time);
        }
        self.refresh();
    }

    fn created(&mut self, e: &TaskCreated, time: Timestamp) {
        let i = u32::try_from(self.tasks.len()).expect("a flow has at most 100,000 tasks");
        assert_eq!(i, e.ordinal, "tasks are numbered in order of creation");
        let parent = e.parent_id.map_or(NONE, |p| self.ordinal(p));
        let run = self
            .tasks
            .get(parent as usize)
            .filter(|_| e.run_id.is_some())
            .map_or(NONE, |p| p.run);
        let method = e
            .specification
            .method
            .as_deref()
            .map_or(NONE, |m| self.methods.number(m));
        let user = e.user_id.as_deref().map_or(NONE, |u| self.users.number(u));
        let deadline = e.specification.deadline.unwrap_or(Timestamp::FAR_FUTURE);
        let inherited = self
            .tasks
            .get(parent as usize)
            .map_or(Timestamp::FAR_FUTURE, |p| p.effective_deadline);
        self.tasks.push(Task {
            id: e.task_id,
            parent,
            method,
            remote: e.specification.remote,
            user,
            status: Status::Pending,
            priority: e.priority,
            deleted: false,
            interruptions: 0,
            rejected: false,
            attempt: 0,
            attempts_in_run: 0,
            progress: Progress::ZERO,
            run: NONE,
            deadline,
            next_attempt_at: Timestamp::default(),
            ready_since: time,
            retry: e.specification.retry.map(Box::new),
            spec_at: self.version,
            name_at: self.version,
            outcome_at: 0,
            dependencies: Vec::new(),
            labels_at: if e.labels.is_empty() { 0 } else { self.version },
            children: Vec::new(),
            dependents: Vec::new(),
            lacking: false,
            unsatisfied: 0,
            dead: 0,
            effective_deadline: deadline.min(inherited),
            awaited: 0,
        });
        self.index.insert(e.task_id, i);
        self.bound(i, &e.specification);
        self.set_timer(i, &e.specification);
        let wiring = Wiring::of(&e.specification);
        self.wire(i, &wiring, |id| e.dependencies.iter().any(|d| d.id == id));
        if parent != NONE {
            self.at_mut(parent).children.push(i);
        }
        self.add_dependencies(i, &e.dependencies);
        self.edges_changed(i, DependencyState::NEW, time);
        self.resolve_forward(e.task_id, i, time);
        if run != NONE {
            let members = &mut self
                .runs
                .get_mut(&run)
                .expect("the parent's run is active")
                .members;
            members.push(i);
            let task = self.at_mut(i);
            task.run = run;
            self.count_in_groups(i, Status::Pending, true);
            self.refresh_ready_since(i, time);
            self.link(i);
        }
    }

    /// Adds edges of `i`, which must not be linked; targets that do not exist yet are remembered.
    fn add_dependencies(&mut self, i: u32, dependencies: &[Dependency]) {
        for dependency in dependencies {
            let when = dependency.when;
            match self.index.get(&dependency.id) {
                Some(&target) => {
                    self.at_mut(i)
                        .dependencies
                        .push(Edge { task: target, when });
                    self.add_dependent(target, Edge { task: i, when });
                }
                None => {
                    // Keeps its place in the list until the target is created in the same append.
                    let place = self.at(i).dependencies.len() as u32;
                    self.forward
                        .entry(dependency.id)
                        .or_default()
                        .push((Edge { task: i, when }, place));
                    self.at_mut(i).dependencies.push(Edge { task: NONE, when });
                    self.at_mut(i).unsatisfied += 1;
                }
            }
        }
    }

    fn add_dependent(&mut self, target: u32, edge: Edge) {
        let met = self.stand(target).meets(edge.when);
        let list = &mut self.at_mut(target).dependents;
        match list.binary_search_by_key(&edge.task, |e| e.task) {
            Ok(at) | Err(at) => list.insert(at, edge),
        }
        self.edges += 1;
        self.always_edges += usize::from(edge.when == When::Always);
        let dies = self.spreads_blocks && met == Met::Never;
        let dependent = self.at_mut(edge.task);
        dependent.unsatisfied += u32::from(met != Met::Yes);
        dependent.dead += u32::from(dies);
    }

    /// Edges that were waiting for the creation of this task.
    fn resolve_forward(&mut self, id: TaskId, i: u32, time: Timestamp) {
        for (edge, place) in self.forward.remove(&id).unwrap_or_default() {
            let before = self.stand(edge.task);
            self.unlink(edge.task);
            let dependent = self.at_mut(edge.task);
            dependent.dependencies[place as usize].task = i;
            dependent.unsatisfied -= 1;
            self.add_dependent(i, edge);
            self.refresh_ready_since(edge.task, time);
            self.link(edge.task);
            self.edges_changed(edge.task, before, time);
        }
    }

    fn moved(&mut self, id: TaskId, to: TaskId, time: Timestamp) {
        let (i, to) = (self.ordinal(id), self.ordinal(to));
        let subtree = self.subtree(i);
        self.make_runs_stale(&subtree);
        subtree.iter().for_each(|&t| self.unlink(t));
        let from = self.at(i).parent;
        self.leave_parent(i, from);
        self.at_mut(i).parent = to;
        let siblings = &mut self.at_mut(to).children;
        let at = siblings.partition_point(|&c| c < i);
        siblings.insert(at, i);
        self.refresh_deadlines(i);
        if !self.timers.is_empty() {
            self.hold_back(&subtree, time);
        }
        subtree.iter().for_each(|&t| self.link(t));
    }

    fn make_runs_stale(&mut self, tasks: &[u32]) {
        for &t in tasks {
            let run = self.at(t).run;
            self.make_stale(run);
        }
    }

    fn rewired(&mut self, id: TaskId, dependencies: &[Dependency], time: Timestamp) {
        let i = self.ordinal(id);
        let before = self.stand(i);
        self.unlink(i);
        self.drop_dependencies(i);
        self.add_dependencies(i, dependencies);
        self.wire_to(i, dependencies);
        self.refresh_ready_since(i, time);
        self.link(i);
        self.edges_changed(i, before, time);
    }

    /// Cost: O(dependencies * log dependents), and moving what stands behind in their lists.
    fn drop_dependencies(&mut self, i: u32) {
        for edge in std::mem::take(&mut self.at_mut(i).dependencies) {
            self.edges -= 1;
            self.always_edges -= usize::from(edge.when == When::Always);
            let list = &mut self.at_mut(edge.task).dependents;
            if let Ok(at) = list.binary_search_by_key(&i, |d| d.task) {
                list.remove(at);
            }
        }
        let task = self.at_mut(i);
        (task.unsatisfied, task.dead) = (0, 0);
    }

    /// Children stand in order of creation, so that the place of one is found fast.
    fn leave_parent(&mut self, i: u32, parent: u32) {
        if parent != NONE {
            let siblings = &mut self.at_mut(parent).children;
            if let Ok(at) = siblings.binary_search(&i) {
                siblings.remove(at);
            }
        }
    }

    fn respecified(
        &mut self,
        id: TaskId,
        (specification, absent): (&Specification, &[String]),
        time: Timestamp,
    ) {
        let i = self.ordinal(id);
        let method = specification
            .method
            .as_deref()
            .map_or(NONE, |m| self.methods.number(m));
        let deadline = specification.deadline.unwrap_or(Timestamp::FAR_FUTURE);
        let deadline_changed = deadline != self.at(i).deadline;
        let timer_changed = self.changes_timer(i, specification);
        let touched = if deadline_changed || timer_changed {
            self.subtree(i)
        } else {
            vec![i]
        };
        touched.iter().for_each(|&t| self.unlink(t));
        let version = self.version;
        self.bound(i, specification);
        let dependencies = self.dependencies(self.at(i));
        let wiring = Wiring::of(specification);
        self.wire(i, &wiring, |id| dependencies.iter().any(|d| d.id == id));
        self.wire_absent(i, absent);
        let task = self.at_mut(i);
        task.method = method;
        task.remote = specification.remote;
        task.retry = specification.retry.map(Box::new);
        task.spec_at = version;
        task.deadline = deadline;
        if deadline_changed {
            self.refresh_deadlines(i);
        }
        if timer_changed {
            self.set_timer(i, specification);
            self.hold_back(&touched, time);
        }
        touched.iter().for_each(|&t| self.link(t));
    }

    fn deleted(&mut self, id: TaskId, time: Timestamp) {
        let i = self.ordinal(id);
        let (status, parent) = (self.at(i).status, self.at(i).parent);
        self.unlink(i);
        self.count_in_groups(i, status, false);
        self.drop_dependencies(i);
        self.leave_parent(i, parent);
        self.unwire(i);
        self.forget_claims(i);
        self.forget_output(i);
        self.forget_dialogue(i);
        self.first_starts.remove(&i);
        self.timers.remove(&i);
        let task = self.at_mut(i);
        task.lacking = false;
        task.deleted = true;
        task.effective_deadline = Timestamp::FAR_FUTURE;
        task.awaited = 0;
        // Whoever waits for it goes with it.
        let stand = self.stand(i);
        self.edges_changed(i, stand, time);
    }

    /// Keeps what a task says of times. The task must not be linked.
    fn bound(&mut self, i: u32, specification: &Specification) {
        let bounds = Bounds {
            timeout_ms: specification.timeout_ms,
            start_within_ms: specification.start_within_ms,
            cancel_grace_ms: specification.cancel_grace_ms,
        };
        if bounds == Bounds::default() {
            self.bounds.remove(&i);
        } else {
            self.bounds.insert(i, bounds);
        }
    }

    fn ended(&mut self, id: TaskId, status: Status, time: Timestamp) {
        let (i, version) = (self.ordinal(id), self.version);
        self.end_lease(i);
        self.forget_output(i);
        self.stop_waiting(i);
        self.at_mut(i).outcome_at = version;
        self.at_mut(i).next_attempt_at = Timestamp::default();
        self.set_status(i, status, time);
    }

    /// Nobody holds the attempt any more, by the event that is applied.
    pub(super) fn end_lease(&mut self, i: u32) {
        if let Some(held) = self.leases.remove(&i) {
            self.time_outs.remove(&(held.times_out_at, i));
            self.ended_leases.add(i, self.version, held.id);
        }
    }
}
