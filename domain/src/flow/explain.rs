//! Explains why a task is not running, what it is doing, or why it ended as it did.
//!
//! Owns: the reasons, as types. Reads the state alone and changes nothing; what only events hold
//! (names, errors, who cancelled) is referred to by the versions of those events. The application
//! joins both and finds the words.

mod again;
mod blocked;

use super::Capacity;
use super::event::{RunKind, TimerKind, When};
use super::state::{Flow, NONE, Rank, Standing, Waits};
use super::timers::Hold;
use crate::schedule::{due, gives_up_at};
use crate::task::{Priority, Progress, Status};
use crate::{RunId, TaskId, Timestamp, Version};
pub use again::Again;
pub use blocked::{Blocked, Cause, Link};
use blocked::{Search, Stuck};
use serde::{Deserialize, Serialize};

/// Tasks listed in one reason; the rest is counted.
pub const LISTED_MAX: usize = 20;
/// Dependencies whose chains are followed in one explanation; the rest is in the list of
/// dependencies.
pub const CHAINS_MAX: usize = 5;

/// A task as an explanation names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRef {
    /// In the same flow.
    pub id: TaskId,
    /// Where it stands.
    pub status: Status,
    /// Version of the event with its name.
    pub name_at: Version,
    /// Version of the event with its latest outcome; 0 for none.
    pub outcome_at: Version,
}

/// The beginning of a list, and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// At most [`LISTED_MAX`], unless whoever lists says otherwise.
    pub items: Vec<T>,
    /// Those left out.
    pub more: usize,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            more: 0,
        }
    }
}

impl<T> Listed<T> {
    /// Adds one, if there is room among so many.
    pub(super) fn add(&mut self, max: usize, item: impl FnOnce() -> T) {
        if self.items.len() < max {
            self.items.push(item());
        } else {
            self.more += 1;
        }
    }

    fn of(mut all: impl Iterator<Item = T>) -> Self {
        let items = all.by_ref().take(LISTED_MAX).collect();
        Self {
            items,
            more: all.count(),
        }
    }
}

/// Everything that the state of a flow says about how a task stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// What is explained.
    pub task: TaskRef,
    /// Its executor; `None` for a group.
    pub method: Option<String>,
    /// Version of the event with its specification.
    pub spec_at: Version,
    /// The latest attempt; 0 for none.
    pub attempt: u32,
    /// Attempts charged to the retry budget of its latest run, and the budget.
    pub attempts: Budget,
    /// How far the latest attempt has reported.
    pub progress: Progress,
    /// The active run that covers it.
    pub run: Option<CoveringRun>,
    /// When it must have ended, its ancestors' deadlines included.
    pub deadline: Option<Deadline>,
    /// Why, the weightiest first; never empty.
    pub reasons: Vec<Reason>,
}

/// Attempts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Attempts of the run that were made so far.
    pub used: u32,
    /// Allowed; 1 when no retries were asked for.
    pub max: u32,
}

/// An active run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveringRun {
    /// Identifies the run in its flow.
    pub id: RunId,
    /// The task that was asked for.
    pub root: TaskId,
}

/// A deadline and who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The time of the deadline.
    pub at: Timestamp,
    /// The task itself, or the ancestor that it inherits it from.
    pub of: TaskRef,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// Pending: no active run covers it.
    NotCovered {
        /// Whether it can be executed now.
        execute: Again,
    },
    /// Pending: a dependency can never be satisfied, unless somebody does something.
    Blocked(Blocked),
    /// Pending: these dependencies are not satisfied.
    WaitsForDependencies(Listed<Awaited>),
    /// Pending: the next attempt is not due yet.
    WaitsForRetry {
        /// When it is due.
        at: Timestamp,
    },
    /// Pending: it is held back by what it or a group around it says of its start.
    WaitsForTime(Held),
    /// Pending: nobody has its executor.
    WaitsForExecutor {
        /// When it fails for that.
        until: Timestamp,
    },
    /// Pending: it is ready; only a worker is missing that claims it.
    WaitsForWorker {
        /// Where it stands among the tasks of its method.
        place: Place,
        /// When it fails for that; absent when it waits without end.
        until: Option<Timestamp>,
    },
    /// Pending: it is ready, and no worker may claim it, because inputs cannot be resolved. Others are needed, or
    /// other `schemas`.
    LacksInputs {
        /// The references without a value, as they are stored.
        refs: Vec<String>,
        /// When it fails for that; absent when it waits without end.
        until: Option<Timestamp>,
    },
    /// Pending: it is ready; only a slot is missing.
    WaitsForSlot(Place),
    /// A group in progress: descendants have not ended.
    WaitsForDescendants(Descendants),
    /// An attempt is under way.
    Running,
    /// In progress: it waits for a person.
    Suspended(Waits),
    /// It has completed.
    Completed,
    /// It has failed.
    Failed {
        /// For a group: the root causes, tasks below it that failed or were cancelled without being tolerated. Of a
        /// group below it that failed for other tasks, those are named instead.
        harmed_by: Listed<TaskRef>,
        /// For a group: descendants that are pending still; groups only when no task is.
        not_done: Listed<TaskRef>,
        /// Whether it can be retried now.
        retry: Again,
    },
    /// It was cancelled.
    Cancelled {
        /// Cancelled tasks around it, the nearest first: one of them may have been what somebody
        /// asked to cancel.
        around: Vec<TaskRef>,
    },
}

/// A reason that holds a task back until some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Until when.
    pub at: Timestamp,
    /// Milliseconds until then.
    pub in_ms: u64,
    /// The task that says it: itself, or a group around it.
    pub of: TaskRef,
    /// What that says.
    pub timer: TimerKind,
}

/// A dependency that is not satisfied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// The dependency that is waited for.
    pub task: TaskRef,
    /// When it is satisfied.
    pub when: When,
    /// Whether it still can satisfy, without anybody's help.
    pub can_satisfy: bool,
}

/// A place in the line for slots or workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its urgency.
    pub priority: Priority,
    /// When it became ready.
    pub since: Timestamp,
    /// Tasks of the same flow that start before it in the same slots: those of its executor,
    /// whichever of its names they use.
    pub ahead_in_flow: usize,
}

/// The descendants that a group waits for. Only descendants that run something are counted, groups are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descendants {
    /// Descendants of its run that have not ended.
    pub open: u32,
    /// Completed ones, whether its run covers them or not.
    pub completed: u32,
    /// Failed ones, whether its run covers them or not.
    pub failed: u32,
    /// Cancelled ones, whether its run covers them or not.
    pub cancelled: u32,
    /// The open ones: running ones first, groups of its run last.
    pub listed: Listed<TaskRef>,
}

impl Flow {
    /// Explains a live task; `None` for any other id. Cost: O(pending tasks that it waits for,
    /// directly or not, and their dependencies); for a group O(subtree). For a task that failed, is
    /// covered by no run or is blocked also O(tasks that running it, or what blocks it, again would
    /// cover), at most [`CHAINS_MAX`] + 1 times.
    #[must_use]
    pub fn explain(
        &self,
        id: TaskId,
        now: Timestamp,
        capacity: &dyn Capacity,
    ) -> Option<Explanation> {
        let i = self.live(id)?;
        let task = self.at(i);
        let reasons = match task.status {
            Status::Pending => self.why_pending(i, now, capacity),
            Status::InProgress if task.is_group() => {
                vec![Reason::WaitsForDescendants(self.descendants(i))]
            }
            Status::InProgress => match self.waits(id) {
                Some(waits) => vec![Reason::Suspended(waits)],
                None => vec![Reason::Running],
            },
            Status::Completed => vec![Reason::Completed],
            Status::Failed => vec![self.why_failed(i, now, capacity)],
            Status::Cancelled => {
                let around = self
                    .ancestors(i)
                    .filter(|&a| self.at(a).status == Status::Cancelled);
                vec![Reason::Cancelled {
                    around: around.map(|a| self.task_ref(a)).collect(),
                }]
            }
        };
        Some(Explanation {
            task: self.task_ref(i),
            method: self.methods.text(task.method).map(str::to_owned),
            spec_at: task.spec_at,
            attempt: task.attempt,
            attempts: Budget {
                used: task.attempts_in_run,
                max: task.retry.as_ref().map_or(1, |r| r.max_attempts),
            },
            progress: self.progress_of(i),
            run: self.runs.get(&task.run).map(|run| CoveringRun {
                id: run.id,
                root: self.at(run.root).id,
            }),
            deadline: self.deadline_of(i),
            reasons,
        })
    }

    pub(super) fn task_ref(&self, i: u32) -> TaskRef {
        let task = self.at(i);
        TaskRef {
            id: task.id,
            status: task.status,
            name_at: task.name_at,
            outcome_at: task.outcome_at,
        }
    }

    fn deadline_of(&self, i: u32) -> Option<Deadline> {
        let at = self.at(i).effective_deadline;
        let of = std::iter::once(i)
            .chain(self.ancestors(i))
            .find(|&a| self.at(a).deadline == at)?;
        (at != Timestamp::FAR_FUTURE).then(|| Deadline {
            at,
            of: self.task_ref(of),
        })
    }

    fn why_pending(&self, i: u32, now: Timestamp, capacity: &dyn Capacity) -> Vec<Reason> {
        let task = self.at(i);
        let mut reasons = Vec::new();
        let search = Search::from(self, i);
        let unsatisfied = task.dependencies.iter().filter(|e| !self.is_met(**e));
        let mut awaited = Vec::new();
        let mut chains = 0;
        for edge in unsatisfied {
            let stuck = search.edge(i, *edge);
            if let Stuck::Yes = stuck {
                chains += 1;
                if chains <= CHAINS_MAX {
                    reasons.push(Reason::Blocked(search.chain(i, *edge, (now, capacity))));
                }
            }
            awaited.push((*edge, stuck));
        }
        if task.run == NONE {
            // A run would not help a task behind one that has failed, but would reach one that was
            // not covered either.
            let helpless = |reason: &Reason| matches!(reason, Reason::Blocked(blocked) if blocked.cause != Cause::NotCovered);
            reasons.sort_by_key(|reason| !helpless(reason));
            let first = reasons.iter().filter(|reason| helpless(reason)).count();
            let execute = self.again(i, RunKind::Execute, now, capacity);
            reasons.insert(first, Reason::NotCovered { execute });
            return reasons;
        }
        if !awaited.is_empty() {
            let awaited = awaited.into_iter().map(|(edge, stuck)| Awaited {
                task: self.task_ref(edge.task),
                when: edge.when,
                can_satisfy: stuck == Stuck::No,
            });
            reasons.push(Reason::WaitsForDependencies(Listed::of(awaited)));
            let hold = self.hold(i, now);
            reasons.extend(hold.map(|hold| self.waits_for_time(hold, now)));
            return reasons;
        }
        let rank = Rank {
            priority: task.priority,
            since: task.ready_since,
            task: i,
        };
        let place = || Place {
            priority: rank.priority,
            since: rank.since,
            ahead_in_flow: self.ahead_of(rank, now, capacity),
        };
        let standing = if task.is_group() {
            Standing::Local
        } else {
            self.standing(task.line(), capacity)
        };
        let within_ms = self.start_within_ms(i).filter(|_| !task.is_group());
        let until = within_ms.map(|within_ms| rank.since.plus_ms(within_ms));
        let hold = self.hold(i, now);
        let hold = hold.filter(|hold| hold.until >= task.next_attempt_at);
        reasons.push(if let Some(hold) = hold {
            self.waits_for_time(hold, now)
        } else if task.next_attempt_at > now {
            Reason::WaitsForRetry {
                at: task.next_attempt_at,
            }
        } else {
            match standing {
                Standing::Remote if task.lacking => Reason::LacksInputs {
                    refs: self.unresolvable(task.id),
                    until,
                },
                Standing::Remote => Reason::WaitsForWorker {
                    place: place(),
                    until,
                },
                Standing::Local => Reason::WaitsForSlot(place()),
                Standing::Unknown => {
                    let gives_up = gives_up_at(self, rank);
                    Reason::WaitsForExecutor {
                        until: until.map_or(gives_up, |until| until.min(gives_up)),
                    }
                }
            }
        });
        reasons
    }

    fn waits_for_time(&self, hold: Hold, now: Timestamp) -> Reason {
        Reason::WaitsForTime(Held {
            at: hold.until,
            in_ms: hold.until.ms_since(now),
            of: self.task_ref(hold.of),
            timer: hold.timer,
        })
    }

    /// Ready tasks with a better rank that compete for the same slots. Cost: O(result + methods).
    fn ahead_of(&self, rank: Rank, now: Timestamp, capacity: &dyn Capacity) -> usize {
        let canonical = |method: u32| {
            let name = self.methods.text(method);
            name.map(|name| capacity.canonical_name(name))
        };
        let own = canonical(self.at(rank.task).method);
        self.ready
            .iter()
            .filter(|(line, _)| canonical(line.method) == own)
            .map(|(_, queue)| due(queue, now).take_while(|other| *other < rank).count())
            .sum()
    }

    /// Covered descendants of a group in progress, which waits for them.
    fn descendants(&self, group: u32) -> Descendants {
        let tally = self.tally(group);
        let run = self.at(group).run;
        let mut open: Vec<u32> = self.subtree(group);
        open.retain(|&i| {
            let task = self.at(i);
            i != group && task.run == run && !task.status.is_terminal()
        });
        open.sort_by_key(|&i| {
            let task = self.at(i);
            (task.is_group(), task.status != Status::InProgress)
        });
        Descendants {
            open: open.iter().filter(|&&i| !self.at(i).is_group()).count() as u32,
            completed: tally.completed,
            failed: tally.failed,
            cancelled: tally.cancelled,
            listed: Listed::of(open.into_iter().map(|i| self.task_ref(i))),
        }
    }

    /// The deepest tasks below a group because of which it failed, in order of creation. No recursion.
    fn root_causes(&self, group: u32) -> Vec<u32> {
        let harmful = |of: u32| self.children(of).filter(|&c| self.harms_its_group(c));
        let mut open: Vec<u32> = harmful(group).collect();
        let mut causes = Vec::new();
        while let Some(task) = open.pop() {
            let before = open.len();
            if self.at(task).is_group() && self.at(task).status == Status::Failed {
                open.extend(harmful(task));
            }
            if open.len() == before {
                causes.push(task);
            }
        }
        causes.sort_unstable();
        causes
    }

    fn why_failed(&self, i: u32, now: Timestamp, capacity: &dyn Capacity) -> Reason {
        let group = self.at(i).is_group();
        let harmed = if group {
            self.root_causes(i)
        } else {
            Vec::new()
        };
        let harmed_by = Listed::of(harmed.into_iter().map(|c| self.task_ref(c)));
        let mut pending = if group { self.subtree(i) } else { Vec::new() };
        pending.retain(|&t| self.at(t).status == Status::Pending);
        if pending.iter().any(|&t| !self.at(t).is_group()) {
            pending.retain(|&t| !self.at(t).is_group());
        }
        let pending = pending.into_iter();
        Reason::Failed {
            harmed_by,
            not_done: Listed::of(pending.map(|t| self.task_ref(t))),
            retry: self.again(i, RunKind::Retry, now, capacity),
        }
    }
}
