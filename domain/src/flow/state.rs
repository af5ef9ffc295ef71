//! The decision state of a flow: resident, dense, without payloads (about 250 bytes a task).
//!
//! Tasks are numbered by their order of creation (*ordinal*); relations are lists of ordinals.
//! Primary fields follow from events alone (`evolve`); derived ones (`indexes`) are kept in step
//! with them and can be rebuilt from them, which is how a snapshot is loaded.

mod dialogue;
mod leases;
mod timer;
mod told_claims;
mod wires;

pub(crate) use super::names::{NONE, Names};
use super::{FlowArchived, RunState, WaitBounds, When};
use crate::task::{Priority, Progress, RetryPolicy, Status};
use crate::{RunId, TaskId, Timestamp, Version};
pub(crate) use dialogue::{Dialogue, Expiry, Open, Unheard};
pub use dialogue::{Listens, Turn, Waits};
use hashbrown::HashMap;
pub(crate) use leases::{Bounds, EndedLeases, Held, Line, Standing, Touched};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use timer::Timer;
pub(crate) use told_claims::ToldClaims;
pub(crate) use wires::{Wired, Wires};

/// Bytes of the hash of a message, and what holds it.
const HEARD_BYTES: usize = 64 + 32;

/// Another task and when the dependency is satisfied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Edge {
    pub(crate) task: u32,
    pub(crate) when: When,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) parent: u32,
    /// Index into `methods`; `NONE` for a group.
    pub(crate) method: u32,
    /// Only workers outside the server carry it out.
    pub(crate) remote: bool,
    /// Index into `users`; `NONE` for no user.
    pub(crate) user: u32,
    pub(crate) status: Status,
    pub(crate) priority: Priority,
    pub(crate) deleted: bool,
    /// Interruptions by a restart within the run.
    pub(crate) interruptions: u8,
    /// Failed because whoever carries it out does not do it.
    pub(crate) rejected: bool,
    /// Number of the latest attempt; never restarts.
    pub(crate) attempt: u32,
    /// Attempts charged to the retry budget of the run.
    pub(crate) attempts_in_run: u32,
    pub(crate) progress: Progress,
    /// Key of the active run that covers it.
    pub(crate) run: u32,
    pub(crate) deadline: Timestamp,
    /// Not before this time; 0 for at once.
    pub(crate) next_attempt_at: Timestamp,
    /// When it became ready, or will: its place among tasks of equal priority.
    pub(crate) ready_since: Timestamp,
    pub(crate) retry: Option<Box<RetryPolicy>>,
    /// Version of the event that holds the current specification.
    pub(crate) spec_at: Version,
    /// Version of the event that holds the current name.
    pub(crate) name_at: Version,
    /// Version of the event that holds the latest outcome; 0 for none.
    pub(crate) outcome_at: Version,
    pub(crate) dependencies: Vec<Edge>,
    /// Version of the event that holds the current labels; 0 for none.
    pub(crate) labels_at: Version,

    // Derived.
    #[serde(skip)]
    pub(crate) children: Vec<u32>,
    #[serde(skip)]
    pub(crate) dependents: Vec<Edge>,
    /// Inputs cannot be resolved, whatever else happens.
    #[serde(skip)]
    pub(crate) lacking: bool,
    /// Dependencies that are not satisfied.
    #[serde(skip)]
    pub(crate) unsatisfied: u32,
    /// Dependencies that can never be satisfied any more; 0 while [`Flow::spreads_blocks`] is false.
    #[serde(skip)]
    pub(crate) dead: u32,
    /// The earliest of its own deadline and its ancestors'.
    #[serde(skip)]
    pub(crate) effective_deadline: Timestamp,
    /// Covered descendants of a group in its active run that have not ended.
    #[serde(skip)]
    pub(crate) awaited: u32,
}

impl Task {
    pub(crate) const fn is_group(&self) -> bool {
        self.method == NONE
    }
}

/// Place of a ready task in the order of starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) priority: Priority,
    pub(crate) since: Timestamp,
    pub(crate) task: u32,
}

/// What there is of the output of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Appended {
    /// How many parts.
    pub(crate) parts: u32,
    /// Bytes of all of them.
    pub(crate) bytes: u32,
}

/// An active run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    /// The task that was asked for.
    pub(crate) root: u32,
    pub(crate) allow_unknown_executors: bool,
    pub(crate) executor_wait_ms: u64,
    pub(crate) wait_bounds: WaitBounds,
    /// Covered tasks, deleted and completed ones included, ascending.
    pub(crate) members: Vec<u32>,
    /// Hashes of the messages that it was sent; at most `limits::MESSAGES_PER_RUN_MAX`.
    pub(crate) heard: Vec<Box<str>>,
    /// The event that holds the message with which it began; `None`: it began without one.
    pub(crate) origin_at: Option<Version>,

    // Derived.
    /// Attempts under way.
    #[serde(skip)]
    pub(crate) running: u32,
    /// Pending tasks and groups whose dependencies are satisfied.
    #[serde(skip)]
    pub(crate) ready: u32,
    /// Groups under way, deepest first.
    #[serde(skip)]
    pub(crate) open_groups: BTreeSet<(Reverse<usize>, u32)>,
    /// The tree changed: what its groups wait for must be counted anew.
    #[serde(skip)]
    pub(crate) stale: bool,
}

impl Run {
    /// Milliseconds within which its tasks must have started that do not say so themselves. Where tasks may wait for an
    /// unknown executor, they wait at least as long as the call says.
    pub(crate) fn start_within_ms(&self) -> Option<u64> {
        let start_ms = self.wait_bounds.start_ms?;
        let at_least_ms = match self.allow_unknown_executors {
            true => self.executor_wait_ms,
            false => 0,
        };
        Some(start_ms.max(at_least_ms))
    }

    /// Nothing of it is running, runnable or awaited.
    pub(crate) const fn is_still(&self) -> bool {
        self.running == 0 && self.ready == 0
    }
}

/// A flow as its events have made it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Flow {
    pub(crate) version: Version,
    pub(crate) tasks: Vec<Task>,
    pub(crate) methods: Names,
    pub(crate) users: Names,
    pub(crate) runs: BTreeMap<u32, Run>,
    pub(crate) next_run: u32,
    /// Leases of tasks in progress whose attempts run outside the server.
    pub(crate) leases: BTreeMap<u32, Held>,
    /// The latest leases that have ended, of each task.
    pub(crate) ended_leases: EndedLeases,
    /// Time bounds of the tasks that have some, by ordinal.
    pub(crate) bounds: BTreeMap<u32, Bounds>,
    /// Of the tasks that start later than they could.
    pub(crate) timers: BTreeMap<u32, Timer>,
    /// When the first attempt of the run began, of the tasks whose retries are bounded in time.
    pub(crate) first_starts: BTreeMap<u32, Timestamp>,
    /// Of the tasks that have asked people.
    pub(crate) dialogues: BTreeMap<u32, Dialogue>,
    /// Of the tasks whose inputs need results.
    pub(crate) wires: BTreeMap<u32, Wires>,
    /// Of the tasks of which claims were refused.
    pub(crate) told_claims: BTreeMap<u32, ToldClaims>,
    /// Of the tasks whose latest attempt has made a part of its output and not ended.
    pub(crate) outputs: BTreeMap<u32, Appended>,

    // Derived.
    #[serde(skip)]
    pub(crate) index: HashMap<TaskId, u32>,
    /// Dependencies on tasks whose creation stands later in the same append: the dependent, and the
    /// place in its list.
    #[serde(skip)]
    pub(crate) forward: HashMap<TaskId, Vec<(Edge, u32)>>,
    /// Dependencies of all tasks.
    #[serde(skip)]
    pub(crate) edges: usize,
    /// Of these the ones that [`When::Always`] satisfies.
    #[serde(skip)]
    pub(crate) always_edges: usize,
    /// Whether it is known which tasks are blocked: there are such dependencies.
    #[serde(skip)]
    pub(crate) spreads_blocks: bool,
    /// Keys of active runs by id.
    #[serde(skip)]
    pub(crate) run_keys: HashMap<RunId, u32>,
    /// Active runs in which nothing is running, runnable or awaited.
    #[serde(skip)]
    pub(crate) still_runs: BTreeSet<u32>,
    /// Active runs whose structure has changed.
    #[serde(skip)]
    pub(crate) stale_runs: BTreeSet<u32>,
    /// What `wires` holds, roughly.
    #[serde(skip)]
    pub(crate) wires_bytes: usize,
    /// Ready tasks.
    #[serde(skip)]
    pub(crate) ready: BTreeMap<Line, BTreeSet<Rank>>,
    /// Where that has changed.
    #[serde(skip)]
    pub(crate) touched: Touched,
    /// When ready tasks must have started.
    #[serde(skip)]
    pub(crate) start_limits: BTreeSet<(Timestamp, u32)>,
    /// Pending covered groups whose dependencies are satisfied, and from when on they may begin.
    #[serde(skip)]
    pub(crate) ready_groups: BTreeSet<(Timestamp, u32)>,
    /// Ready tasks of which it is not recorded yet from when on they may start.
    #[serde(skip)]
    pub(crate) untold_timers: BTreeSet<u32>,
    /// Groups under way whose covered descendants are all terminal.
    #[serde(skip)]
    pub(crate) settled_groups: BTreeSet<u32>,
    /// Deadlines of covered tasks that are not terminal.
    #[serde(skip)]
    pub(crate) deadlines: BTreeSet<(Timestamp, u32)>,
    /// What `dialogues` holds, roughly.
    #[serde(skip)]
    pub(crate) dialogues_bytes: usize,
    /// Messages that active runs were sent.
    #[serde(skip)]
    pub(crate) heard: usize,
    /// When somebody is reminded of a question, or nobody will answer any more.
    #[serde(skip)]
    pub(crate) suspension_dues: BTreeSet<(Timestamp, u32)>,
    /// When leased attempts time out. Those of this process are timed by whoever runs them.
    #[serde(skip)]
    pub(crate) time_outs: BTreeSet<(Timestamp, u32)>,
    /// Set by the last event of an archived flow, of which no snapshot is taken.
    #[serde(skip)]
    pub(crate) archived: Option<Box<Archived>>,
}

/// The place that an archived flow has gone to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// When the flow was archived.
    pub at: Timestamp,
    /// What its last event says.
    pub copy: FlowArchived,
}

/// A summary of a task without its payload.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSummary {
    /// In this flow.
    pub id: TaskId,
    /// The parent in the same flow; `None` for the root.
    pub parent: Option<TaskId>,
    /// Where the task is in its life cycle.
    pub status: Status,
    /// Its urgency.
    pub priority: Priority,
    /// Its user.
    pub user_id: Option<String>,
    /// Its executor; `None` for a group.
    pub method: Option<String>,
    /// The latest attempt.
    pub attempt: u32,
    /// The active run that covers it.
    pub run_id: Option<RunId>,
    /// Version of the event with its specification.
    pub spec_at: Version,
    /// Version of the event with its name.
    pub name_at: Version,
    /// Version of the event with its latest outcome; 0 for none.
    pub outcome_at: Version,
    /// What it waits for.
    pub dependencies: Vec<super::Dependency>,
    /// When it must have ended, ancestors' deadlines included.
    pub deadline: Option<Timestamp>,
    /// Version of the event with its labels; 0 for none.
    pub labels_at: Version,
}

impl Flow {
    /// Version of the last event applied; 0 for a flow that does not exist.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Tasks ever created, deleted ones included.
    #[must_use]
    pub fn size(&self) -> usize {
        self.tasks.len()
    }

    /// Whether a run is active: the flow has work, or waits for some.
    #[must_use]
    pub fn has_active_run(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Where the flow has gone, if it was archived. It has no tasks then.
    #[must_use]
    pub fn archived(&self) -> Option<&Archived> {
        self.archived.as_deref()
    }

    /// The flow's owner: the user of its root, also when that was deleted. `None`: nobody. Cost: O(1).
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.users.text(self.tasks.first()?.user)
    }

    /// A live task. Cost: O(dependencies of the task).
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<TaskSummary> {
        let task = self.at(self.live(id)?);
        Some(TaskSummary {
            id,
            parent: self.tasks.get(task.parent as usize).map(|p| p.id),
            status: task.status,
            priority: task.priority,
            user_id: self.users.text(task.user).map(str::to_owned),
            method: self.methods.text(task.method).map(str::to_owned),
            attempt: task.attempt,
            run_id: self.runs.get(&task.run).map(|r| r.id),
            spec_at: task.spec_at,
            name_at: task.name_at,
            outcome_at: task.outcome_at,
            dependencies: self.dependencies(task),
            deadline: Some(task.effective_deadline).filter(|d| *d != Timestamp::FAR_FUTURE),
            labels_at: task.labels_at,
        })
    }

    /// The executor of a live task; `None` for a group. Cost: O(1).
    #[must_use]
    pub fn method(&self, id: TaskId) -> Option<&str> {
        self.methods.text(self.at(self.live(id)?).method)
    }

    /// State of an active run; `None` once it has ended. Cost: O(1).
    #[must_use]
    pub fn run_state(&self, id: RunId) -> Option<RunState> {
        self.run_keys.get(&id).map(|_| RunState::Running)
    }

    /// Bytes that this state holds, roughly: what the cache of idle flows weighs. Cost: O(1).
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        // A task, its place in the index, in its parent's children and in its run; an edge stands
        // in two lists.
        let task = size_of::<Task>() + 64;
        let edge = 2 * size_of::<Edge>();
        let names = self.methods.weight_bytes() + self.users.weight_bytes();
        let leases = self.leases.len() * (size_of::<Held>() + 64)
            + self.ended_leases.weight_bytes()
            + self.bounds.len() * (size_of::<Bounds>() + 16)
            + self.timers.len() * (size_of::<Timer>() + 16)
            + self.first_starts.len() * (size_of::<Timestamp>() + 16)
            + self.told_claims.len() * (size_of::<ToldClaims>() + 16)
            + self.outputs.len() * (size_of::<Appended>() + 16);
        let tasks = self.tasks.len() * task + self.edges * edge;
        let heard = self.heard * HEARD_BYTES;
        tasks
            + names
            + leases
            + heard
            + self.wires_bytes
            + self.dialogues_bytes
            + size_of::<Self>()
            + 1024
    }

    /// What a live task depends on. Cost: O(dependencies).
    #[must_use]
    pub fn dependencies_of(&self, id: TaskId) -> Option<Vec<super::Dependency>> {
        Some(self.dependencies(self.at(self.live(id)?)))
    }

    pub(crate) fn dependencies(&self, task: &Task) -> Vec<super::Dependency> {
        let edges = task.dependencies.iter();
        edges
            .map(|e| super::Dependency {
                id: self.at(e.task).id,
                when: e.when,
            })
            .collect()
    }

    /// Ordinal of a task that is not deleted.
    pub(crate) fn live(&self, id: TaskId) -> Option<u32> {
        self.index
            .get(&id)
            .copied()
            .filter(|&i| !self.at(i).deleted)
    }

    pub(crate) fn at(&self, ordinal: u32) -> &Task {
        &self.tasks[ordinal as usize]
    }

    pub(crate) fn at_mut(&mut self, ordinal: u32) -> &mut Task {
        &mut self.tasks[ordinal as usize]
    }

    /// Live children in order of creation.
    pub(crate) fn children(&self, ordinal: u32) -> impl Iterator<Item = u32> + '_ {
        self.at(ordinal).children.iter().copied()
    }

    /// The task's parent, its parent's parent, and so on. At most the tree's depth.
    pub(crate) fn ancestors(&self, ordinal: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(self.at(ordinal).parent), |&p| {
            self.tasks.get(p as usize).map(|t| t.parent)
        })
        .take_while(|&p| p != NONE)
    }

    /// 0 for the root. Cost: O(depth).
    pub(crate) fn depth(&self, ordinal: u32) -> usize {
        self.ancestors(ordinal).count()
    }

    /// The task and everything below it, parents first. Cost: O(result).
    pub(crate) fn subtree(&self, ordinal: u32) -> Vec<u32> {
        let mut all = Vec::new();
        let mut stack = vec![ordinal];
        while let Some(i) = stack.pop() {
            all.push(i);
            stack.extend(self.at(i).children.iter().rev());
        }
        all
    }

    /// Whether it harms nobody that the task failed: all that depend on it, cleaning up left out, are optional.
    pub(crate) fn is_tolerated(&self, ordinal: u32) -> bool {
        let dependents = self.at(ordinal).dependents.iter();
        let mut waiting = dependents.filter(|d| d.when != When::Always).peekable();
        waiting.peek().is_some() && waiting.all(|d| !d.when.is_required())
    }

    /// Whether the group around this child cannot complete because of it.
    pub(crate) fn harms_its_group(&self, child: u32) -> bool {
        matches!(self.at(child).status, Status::Failed | Status::Cancelled)
            && !self.is_tolerated(child)
    }

    /// Place in the order of creation of a task that the flow has or had, and a version at or
    /// after that of its creation: the earlier of the events with its name and its specification.
    #[must_use]
    pub fn creation(&self, id: TaskId) -> Option<(u32, Version)> {
        let ordinal = *self.index.get(&id)?;
        let task = self.at(ordinal);
        Some((ordinal, task.name_at.min(task.spec_at)))
    }
}
