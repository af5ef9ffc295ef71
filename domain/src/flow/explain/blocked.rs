//! Finds the pending tasks that can never start, and the path from each to what blocks it.

use super::{Again, TaskRef};
use crate::flow::command::Capacity;
use crate::flow::event::{RunKind, When};
use crate::flow::state::{Edge, Flow, NONE};
use crate::task::Status;
use crate::{TaskId, Timestamp};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Links of a chain that are shown; those before the last are left out when there are more.
const LINKS_MAX: usize = 20;

/// A dependency that can never be satisfied, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The dependency, what that waits for, and so on to the root cause, which is last. Never
    /// empty.
    pub chain: Vec<Link>,
    /// Links left out before the last.
    pub skipped: usize,
    /// What is the matter with the last.
    pub cause: Cause,
    /// The pending task that waits for the last; the explained one, or one before the last, which
    /// may be among those left out.
    pub waiting: TaskId,
    /// A task below which new tasks share the run of the one that waits, so that it may depend on
    /// them: its parent, or itself.
    pub room: TaskId,
    /// Whether the last can be run now, so that it satisfies.
    pub again: Again,
}

/// A step of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The task that is waited for.
    pub task: TaskRef,
    /// When it satisfies.
    pub when: When,
}

/// Why a task does not satisfy those that wait for it, and will not by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// It failed, and its completion is required.
    Failed,
    /// It was cancelled, and its completion is required.
    Cancelled,
    /// It is pending and no run covers it, while one covers the task that waits.
    NotCovered,
}

/// Whether a dependency can never be satisfied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stuck {
    Yes,
    No,
}

/// What was found out about the pending tasks that one task waits for.
pub(super) struct Search<'a> {
    flow: &'a Flow,
    /// For each of them the first dependency that can never be satisfied.
    found: HashMap<u32, Option<Edge>>,
}

impl<'a> Search<'a> {
    /// Looks at everything pending that `start` waits for, directly or not; dependencies close no
    /// cycle, so each task is settled after those that it waits for. No recursion.
    pub(super) fn from(flow: &'a Flow, start: u32) -> Self {
        let mut search = Self {
            flow,
            found: HashMap::new(),
        };
        let mut open = vec![(start, 0)];
        while let Some((i, next)) = open.pop() {
            match flow.at(i).dependencies.get(next) {
                Some(edge) => {
                    open.push((i, next + 1));
                    let waits = flow.at(edge.task).status == Status::Pending;
                    if waits && !search.found.contains_key(&edge.task) {
                        open.push((edge.task, 0));
                    }
                }
                None => {
                    let mut edges = flow.at(i).dependencies.iter();
                    let stuck = edges.find(|e| search.edge(i, **e) == Stuck::Yes);
                    search.found.insert(i, stuck.copied());
                }
            }
        }
        search
    }

    /// Whether the dependency `edge` of the pending task `i` can never be satisfied.
    pub(super) fn edge(&self, i: u32, edge: Edge) -> Stuck {
        match self.cause(i, edge) {
            Some(_) => Stuck::Yes,
            // A dependency that is satisfied in any case is satisfied by being blocked.
            None if edge.when == When::Always => Stuck::No,
            None => {
                let behind = self.found.get(&edge.task).is_some_and(Option::is_some);
                if behind { Stuck::Yes } else { Stuck::No }
            }
        }
    }

    /// What is wrong with the dependency itself.
    fn cause(&self, i: u32, edge: Edge) -> Option<Cause> {
        let target = self.flow.at(edge.task);
        match target.status {
            Status::Failed if edge.when.is_required() => Some(Cause::Failed),
            Status::Cancelled if edge.when.is_required() => Some(Cause::Cancelled),
            Status::Pending if self.flow.at(i).run != NONE && target.run == NONE => {
                Some(Cause::NotCovered)
            }
            Status::Pending
            | Status::InProgress
            | Status::Completed
            | Status::Failed
            | Status::Cancelled => None,
        }
    }

    /// The way from `i` over its dependency `edge`, which can never be satisfied, to the root cause.
    pub(super) fn chain(
        &self,
        i: u32,
        edge: Edge,
        (now, capacity): (Timestamp, &dyn Capacity),
    ) -> Blocked {
        let link = |edge: Edge| Link {
            task: self.flow.task_ref(edge.task),
            when: edge.when,
        };
        let (mut at, mut edge) = (i, edge);
        let (mut chain, mut skipped) = (Vec::new(), 0);
        // The root cause may have causes of its own: a task that failed does not wait for anything,
        // but one that no run covers may stand behind a failed one, which is the deeper reason.
        while let Some(next) = self.found.get(&edge.task).copied().flatten() {
            if chain.len() < LINKS_MAX - 1 {
                chain.push(link(edge));
            } else {
                skipped += 1;
            }
            (at, edge) = (edge.task, next);
        }
        chain.push(link(edge));
        let cause = self.cause(at, edge);
        let cause = cause.expect("the last dependency of a chain is what it ends at");
        let kind = match cause {
            Cause::Failed => RunKind::Retry,
            Cause::Cancelled | Cause::NotCovered => RunKind::Execute,
        };
        Blocked {
            chain,
            skipped,
            cause,
            waiting: self.flow.at(at).id,
            room: self.room(at),
            again: self.flow.again(edge.task, kind, now, capacity),
        }
    }

    /// See [`Blocked::room`].
    fn room(&self, waiting: u32) -> TaskId {
        let task = self.flow.at(waiting);
        let parent = self.flow.tasks.get(task.parent as usize);
        let shares = |p: &&crate::flow::state::Task| p.run == task.run && !p.status.is_terminal();
        parent.filter(shares).unwrap_or(task).id
    }
}
