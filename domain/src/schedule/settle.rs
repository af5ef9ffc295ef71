//! Applies everything that the state makes possible or inevitable, until nothing more follows.

use super::groups;
use crate::flow::decide::attempt;
use crate::flow::state::{Line, Rank, Standing};
use crate::flow::{
    CancelReason, Capacity, Event, FailureReason, Flow, OnExpiry, RequeueReason, SlotRequest,
    TaskCancelled, TaskCompleted, TaskDeferred, TaskFailed, TaskReminded, TaskStarted,
    TaskSuspensionExpired,
};
use crate::limits;
use crate::task::{Progress, Status};
use crate::{RunId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Applies consequences to the state and appends their events to `out`, in this order, until
/// nothing changes: deadlines, attempts outside the server that time out, questions that nobody answers, tasks that
/// start later, groups that begin, groups whose members have ended, starts of ready tasks, and for each run in which
/// nothing moves any more: its open groups, deepest first, and then its end. Cost: O(consequences * (dependents +
/// depth)) and, a few times, O(methods with ready tasks).
pub(crate) fn settle(
    flow: &mut Flow,
    now: Timestamp,
    capacity: &mut dyn Capacity,
    out: &mut Vec<Event>,
) {
    loop {
        flow.refresh();
        let mut turn = Turn {
            flow,
            now,
            out,
            changed: false,
        };
        turn.pass_deadlines();
        turn.pass_time_outs();
        turn.pass_suspensions();
        turn.pass_start_limits(capacity);
        turn.begin_groups();
        turn.end_settled_groups();
        if turn.changed {
            continue;
        }
        turn.start_ready(capacity);
        turn.give_up_on_unknown_executors(capacity);
        if !turn.changed {
            turn.close_still_runs();
        }
        if !turn.changed {
            return;
        }
    }
}

/// The first place of each priority in a queue: the oldest of its kind.
pub(super) fn firsts(queue: &BTreeSet<Rank>) -> impl Iterator<Item = Rank> + '_ {
    let mut next = queue.first();
    std::iter::from_fn(move || {
        let first = *next?;
        let is_last = queue.last().is_some_and(|r| r.priority == first.priority);
        next = if is_last {
            None
        } else {
            let behind = Rank {
                priority: first.priority,
                since: Timestamp(i64::MAX),
                task: u32::MAX,
            };
            queue.range(behind..).next()
        };
        Some(first)
    })
}

/// The tasks of a queue whose time has come, by their places. Cost: O(those that are taken) and, for each priority,
/// O(log tasks): those whose time has not come are not looked at.
pub(crate) fn due(queue: &BTreeSet<Rank>, now: Timestamp) -> impl Iterator<Item = Rank> + '_ {
    firsts(queue)
        .filter(move |first| first.since <= now)
        .flat_map(move |first| {
            let until = Rank {
                priority: first.priority,
                since: now,
                task: u32::MAX,
            };
            queue.range(first..=until).copied()
        })
}

/// The first ready task of a line whose time has come.
pub(crate) fn first_due(flow: &Flow, line: Line, now: Timestamp) -> Option<Rank> {
    let queue = flow.ready.get(&line)?;
    due(queue, now).next()
}

/// Whether the oldest of a queue need not be the first to give up, because runs wait differently
/// long. Cost: O(runs) until two differ.
pub(super) fn waits_differ(flow: &Flow) -> bool {
    let mut waits = flow.runs.values().map(|r| r.executor_wait_ms);
    waits
        .next()
        .is_some_and(|first| waits.any(|other| other != first))
}

/// When a ready task fails because its executor did not appear.
pub(crate) fn gives_up_at(flow: &Flow, rank: Rank) -> Timestamp {
    let wait = flow
        .runs
        .get(&flow.at(rank.task).run)
        .map_or(0, |r| r.executor_wait_ms);
    rank.since.plus_ms(wait)
}

struct Turn<'a> {
    flow: &'a mut Flow,
    now: Timestamp,
    out: &'a mut Vec<Event>,
    changed: bool,
}

impl Turn<'_> {
    fn emit(&mut self, event: Event) {
        self.flow.apply(&event, self.now);
        self.out.push(event);
        self.changed = true;
    }

    fn run_of(&self, i: u32) -> RunId {
        self.flow
            .runs
            .get(&self.flow.at(i).run)
            .map(|r| r.id)
            .expect("indexed tasks belong to an active run")
    }

    fn begin(&mut self, i: u32) {
        let task = self.flow.at(i);
        let (task_id, attempt) = (task.id, task.attempt + 1);
        let run_id = self.run_of(i);
        self.emit(Event::TaskStarted(TaskStarted {
            task_id,
            attempt,
            run_id,
            lease: None,
        }));
    }

    fn fail(&mut self, i: u32, reason: FailureReason, error: String) {
        let task = self.flow.at(i);
        let (task_id, attempt) = (task.id, task.attempt);
        let progress = self.flow.progress_of(i);
        self.emit(Event::TaskFailed(TaskFailed {
            task_id,
            attempt,
            error,
            reason,
            progress,
            will_retry: false,
            remarks: None,
            breach: None,
        }));
    }

    fn pass_deadlines(&mut self) {
        while let Some(&(at, i)) = self
            .flow
            .deadlines
            .first()
            .filter(|(at, _)| *at <= self.now)
        {
            if self.flow.at(i).status == Status::InProgress {
                self.fail(
                    i,
                    FailureReason::Deadline,
                    format!("the deadline {at} passed"),
                );
            } else {
                let task = self.flow.at(i);
                let again = if task.attempt > 0 { " again" } else { "" };
                let error = format!("the deadline {at} passed before the task could start{again}");
                let task_id = task.id;
                self.emit(Event::TaskCancelled(TaskCancelled {
                    task_id,
                    attempt: None,
                    error,
                    reason: CancelReason::Deadline,
                    progress: Progress::ZERO,
                    remarks: None,
                }));
            }
        }
    }

    /// Attempts of this process are timed by whoever runs them, and end by a command.
    fn pass_time_outs(&mut self) {
        let now = self.now;
        while let Some(&(_, i)) = self.flow.time_outs.first().filter(|(at, _)| *at <= now) {
            let timeout_ms = self.flow.leases[&i].timeout_ms.unwrap_or_default();
            let task = self.flow.at(i);
            let next = attempt::next_attempt(self.flow, task, now, now);
            let again =
                next.map(|at| attempt::requeued(self.flow, task, RequeueReason::Retry, Some(at)));
            let (task_id, attempt, progress) = (task.id, task.attempt, task.progress);
            self.emit(Event::TaskFailed(TaskFailed {
                task_id,
                attempt,
                error: format!("timed out after {} s", timeout_ms as f64 / 1000.0),
                reason: FailureReason::Timeout,
                progress,
                will_retry: again.is_some(),
                remarks: None,
                breach: None,
            }));
            again.into_iter().for_each(|event| self.emit(event));
        }
    }

    /// Reminders of questions, and questions that nobody has answered in time.
    fn pass_suspensions(&mut self) {
        let now = self.now;
        while let Some(&(_, i)) = self
            .flow
            .suspension_dues
            .first()
            .filter(|(at, _)| *at <= now)
        {
            let open = self.flow.open_question(i).expect("the index names those");
            let (task_id, attempt) = (self.flow.at(i).id, self.flow.at(i).attempt);
            if open.expires_at.is_some_and(|at| at <= now) {
                self.give_up_waiting(i);
            } else {
                let number = open.reminder(now).expect("one is due");
                let escalation = open.escalation(number).cloned();
                let reminded = TaskReminded {
                    task_id,
                    attempt,
                    suspension_id: open.id,
                    number,
                    of: open.reminders,
                    escalation,
                };
                self.emit(Event::TaskReminded(reminded));
            }
        }
    }

    fn give_up_waiting(&mut self, i: u32) {
        let task = self.flow.at(i);
        let open = self.flow.open_question(i).expect("the index names those");
        let (task_id, attempt, progress) = (task.id, task.attempt, task.progress);
        let policy = open.on_expiry();
        // The time that was given, not the moment at which its end was noticed.
        let ended = open.expires_at.unwrap_or(self.now);
        let waited_ms = ended.0.saturating_sub(open.since.0) / 1000;
        let late = format!("nobody answered within {} s", waited_ms as f64 / 1000.0);
        let failed = |reason, error| {
            Event::TaskFailed(TaskFailed {
                task_id,
                attempt,
                error,
                reason,
                progress,
                will_retry: false,
                remarks: None,
                breach: None,
            })
        };
        let then = match &policy {
            OnExpiry::Fail => failed(FailureReason::Unanswered, late),
            OnExpiry::Complete { result } => Event::TaskCompleted(TaskCompleted {
                task_id,
                attempt,
                result: result.clone(),
                remarks: None,
                parts: self.flow.parts_of(task_id),
            }),
            OnExpiry::Continue { .. } if open.declines() => {
                let error = format!("declined by the default answer: {late}");
                failed(FailureReason::Declined, error)
            }
            OnExpiry::Continue { .. } => {
                attempt::requeued(self.flow, task, RequeueReason::Answered, None)
            }
        };
        let expired = TaskSuspensionExpired {
            task_id,
            attempt,
            suspension_id: open.id,
            policy,
        };
        self.emit(Event::TaskSuspensionExpired(expired));
        self.emit(then);
    }

    /// Ready tasks that nobody has started in time.
    fn pass_start_limits(&mut self, capacity: &dyn Capacity) {
        while let Some(&(_, i)) = self
            .flow
            .start_limits
            .first()
            .filter(|(at, _)| *at <= self.now)
        {
            let within_ms = self.flow.start_within_ms(i).unwrap_or_default();
            let seconds = within_ms as f64 / 1000.0;
            let line = self.flow.at(i).line();
            let method = self.flow.methods.text(line.method).unwrap_or_default();
            let error = match self.flow.standing(line, capacity) {
                Standing::Local => format!("no slot of `{method}` was free within {seconds} s"),
                Standing::Remote | Standing::Unknown if line.lacking => {
                    let missing = self.flow.unresolvable(self.flow.at(i).id).join(", ");
                    let error = format!(
                        "no worker could claim it within {seconds} s: UnresolvableInputError: no value for {missing}"
                    );
                    limits::cut(&error, limits::ERROR_BYTES_MAX).to_owned()
                }
                Standing::Remote | Standing::Unknown if !capacity.is_remote(method) => {
                    format!(
                        "no worker claimed it within {seconds} s: no worker asks for `{method}`"
                    )
                }
                Standing::Remote | Standing::Unknown => {
                    format!(
                        "no worker claimed it within {seconds} s: nobody was free for `{method}`"
                    )
                }
            };
            self.begin(i);
            self.fail(i, FailureReason::NotStarted, error);
        }
    }

    /// From when on tasks that have become ready may start, where they say it.
    fn tell_timers(&mut self) {
        while let Some(&i) = self.flow.untold_timers.first() {
            let (next_attempt_at, timer) = self.flow.first_start(i, self.now);
            let (task_id, run_id) = (self.flow.at(i).id, self.run_of(i));
            self.emit(Event::TaskDeferred(TaskDeferred {
                task_id,
                run_id,
                next_attempt_at,
                timer,
            }));
        }
    }

    fn begin_groups(&mut self) {
        self.tell_timers();
        while let Some(i) = self.due_group() {
            self.begin(i);
        }
    }

    /// A group that may begin now.
    fn due_group(&self) -> Option<u32> {
        let (since, i) = *self.flow.ready_groups.first()?;
        (since <= self.now).then_some(i)
    }

    fn end_settled_groups(&mut self) {
        while let Some(&i) = self.flow.settled_groups.first() {
            let event = groups::outcome(self.flow, i);
            self.emit(event);
        }
    }

    /// Starts the ready task with the best rank among all methods, again and again: methods may be
    /// names of one executor, and then they compete for its slots.
    fn start_ready(&mut self, capacity: &mut dyn Capacity) {
        let mut names = BTreeMap::new();
        let mut heads = BTreeSet::new();
        for &line in self.flow.ready.keys() {
            if self.flow.standing(line, capacity) == Standing::Local {
                let name = self.flow.methods.text(line.method);
                let name = name.expect("ready tasks have a method");
                names.insert(line, name.to_owned());
                heads.extend(first_due(self.flow, line, self.now).map(|rank| (rank, line)));
            }
        }
        while let Some((rank, line)) = heads.pop_first() {
            let task = self.flow.at(rank.task);
            let request = SlotRequest {
                method: &names[&line],
                task: task.id,
                attempt: task.attempt + 1,
                priority: rank.priority,
                since: rank.since,
                owner: self.flow.owner(),
                is_claimed: false,
            };
            if capacity.take_slot(&request) {
                self.begin(rank.task);
                heads.extend(first_due(self.flow, line, self.now).map(|rank| (rank, line)));
            }
        }
    }

    fn give_up_on_unknown_executors(&mut self, capacity: &dyn Capacity) {
        let mut differ = None;
        let mut overdue = Vec::new();
        for (line, queue) in &self.flow.ready {
            if self.flow.standing(*line, capacity) != Standing::Unknown {
                continue;
            }
            let is_overdue = |rank: &Rank| gives_up_at(self.flow, *rank) <= self.now;
            if *differ.get_or_insert_with(|| waits_differ(self.flow)) {
                overdue.extend(queue.iter().copied().filter(is_overdue));
            } else {
                for first in firsts(queue) {
                    let until = Rank {
                        priority: first.priority,
                        since: self.now,
                        task: u32::MAX,
                    };
                    overdue.extend(
                        queue
                            .range(first..=first.max(until))
                            .copied()
                            .take_while(is_overdue),
                    );
                }
            }
        }
        for rank in overdue {
            let method = self
                .flow
                .methods
                .text(self.flow.at(rank.task).method)
                .unwrap_or_default();
            let error = format!("executor `{method}` not found");
            self.begin(rank.task);
            self.fail(rank.task, FailureReason::ExecutorNotFound, error);
        }
    }

    /// Runs in which nothing is running, runnable or awaited: decides their open groups, deepest
    /// first, until something may move again, or ends them.
    fn close_still_runs(&mut self) {
        let still: Vec<u32> = self.flow.still_runs.iter().copied().collect();
        for key in still {
            let mut decided = false;
            while let Some(group) = self.deepest_open_group(key) {
                let event = groups::outcome(self.flow, group);
                self.emit(event);
                decided = true;
                while !self.flow.settled_groups.is_empty() || self.due_group().is_some() {
                    self.begin_groups();
                    self.end_settled_groups();
                }
            }
            if decided {
                continue;
            }
            let end = groups::end(self.flow, key, None);
            self.emit(Event::RunEnded(end));
        }
    }

    /// `None` when the run moves, or has no group under way.
    fn deepest_open_group(&self, key: u32) -> Option<u32> {
        let run = self.flow.runs.get(&key).filter(|r| r.is_still())?;
        run.open_groups.first().map(|(_, group)| *group)
    }
}
