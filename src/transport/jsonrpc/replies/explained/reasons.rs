//! The words and members of each reason. Codes and members, once released, keep their meaning.

mod executors;
mod retries;
mod slots;
mod waiting;
mod workers;

use super::steps::{self, Steps};
use crate::application::api::views::{Attempt, RunSummary};
use crate::application::api::{AwaitedWorkers, Facts, KnownExecutors, Queue, TaskEnd, TaskOutcome};
use serde::Serialize;
use serde_json::{Map, Value, json};
use taskledger_domain::flow::explain::{
    Again, Awaited, Blocked, Cause, Descendants, Explanation, Link, Listed, Reason, TaskRef,
};
use taskledger_domain::flow::{CancelReason, FailureReason, When};
use taskledger_domain::limits::cut;
use taskledger_domain::task::Status;
use taskledger_domain::{TaskId, Timestamp};

/// Bytes of an error in a sentence; the whole one is beside it.
const ERROR_BYTES_MAX: usize = 200;
/// The reason of an attempt that ended because the server stopped or the lease of its worker ended.
const LOST: &str = "interrupted";
/// Names in one sentence; all are in the list beside it.
const NAMES_MAX: usize = 3;

/// A reason as it is answered.
#[derive(Debug, Serialize)]
pub(super) struct Said {
    /// The reason's code, for programs.
    pub(super) code: &'static str,
    /// For people: goes on after the task's name.
    pub(super) message: String,
    #[serde(flatten)]
    details: Map<String, Value>,
}

fn said(code: &'static str, message: String, details: Value) -> Said {
    let Value::Object(details) = details else {
        unreachable!("details are written as objects below");
    };
    Said {
        code,
        message,
        details,
    }
}

/// Everything that is known of a task, to be put into words.
pub(super) struct Speaker<'a> {
    pub(super) e: &'a Explanation,
    pub(super) facts: &'a Facts,
    pub(super) last_run: Option<&'a RunSummary>,
    pub(super) queue: Option<&'a Queue>,
    pub(super) workers: Option<&'a AwaitedWorkers>,
    pub(super) attempts: &'a [Attempt],
    pub(super) is_draining: bool,
    pub(super) is_stopping: bool,
    pub(super) executors: Option<&'a KnownExecutors>,
    pub(super) skipped: &'a [TaskId],
}

impl Speaker<'_> {
    /// All reasons; never empty.
    pub(super) fn reasons(&self) -> Vec<Said> {
        let mut all: Vec<Said> = self.e.reasons.iter().map(|r| self.reason(r)).collect();
        if let (Some(deadline), Some(_)) = (self.e.deadline, self.e.run)
            && !self.e.task.status.is_terminal()
        {
            let of = self.facts.name(&deadline.of);
            let ends = match self.e.task.status {
                Status::InProgress => "fails",
                Status::Pending | Status::Completed | Status::Failed | Status::Cancelled => {
                    "is cancelled"
                }
            };
            all.push(said(
                "deadline",
                format!("{ends} at {} by the deadline of `{of}`", deadline.at),
                json!({"at": deadline.at, "of": self.task(&deadline.of)}),
            ));
        }
        self.add_drain(&mut all);
        all
    }

    fn reason(&self, reason: &Reason) -> Said {
        match reason {
            Reason::NotCovered { execute } => self.not_covered(execute),
            Reason::Blocked(blocked) => self.blocked(blocked),
            Reason::WaitsForDependencies(list) => self.dependencies(list),
            Reason::WaitsForRetry { at } => self.retry(*at),
            Reason::WaitsForTime(held) => self.time(held),
            Reason::WaitsForExecutor { until } => self.executor(*until),
            Reason::WaitsForWorker { place, until } => self.worker(place, *until),
            Reason::LacksInputs { refs, until } => self.lacks_inputs(refs, *until),
            Reason::WaitsForSlot(_) => self.slot(),
            Reason::WaitsForDescendants(below) => self.descendants(below),
            Reason::Running => self.running(),
            Reason::Suspended(waits) => self.suspended(waits),
            Reason::Completed => self.completed(),
            Reason::Failed {
                harmed_by,
                not_done,
                retry,
            } => self.failed(harmed_by, not_done, retry),
            Reason::Cancelled { around } => self.cancelled(around),
        }
    }

    fn latest(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    fn method(&self) -> &str {
        self.e.method.as_deref().unwrap_or_default()
    }

    fn task(&self, task: &TaskRef) -> Value {
        let mut said = json!({"id": task.id, "name": self.facts.name(task), "status": task.status});
        if self.skipped.contains(&task.id) {
            said["skipped"] = json!(true);
        }
        said
    }

    fn tasks(&self, list: &Listed<TaskRef>) -> (Value, usize) {
        let tasks = list.items.iter().map(|t| self.task(t)).collect();
        (Value::Array(tasks), list.more)
    }

    fn names<'t>(&self, tasks: impl Iterator<Item = &'t TaskRef>, more: usize) -> String {
        let all: Vec<&TaskRef> = tasks.collect();
        let named: Vec<String> = all
            .iter()
            .take(NAMES_MAX)
            .map(|t| format!("`{}` ({})", self.facts.name(t), t.status.as_str()))
            .collect();
        let rest = all.len() - named.len() + more;
        let named = named.join(", ");
        if rest > 0 {
            format!("{named} and {rest} more")
        } else {
            named
        }
    }

    fn not_covered(&self, execute: &Again) -> Said {
        let unknown = self.unknown(execute);
        let steps = Steps::new().run("tasks.execute", self.e.task.id, "run it", execute);
        let next = match &unknown {
            Some(unknown) if unknown.is_own => self.named(steps, unknown.meant),
            Some(_) | None => steps,
        };
        let next = next.all();
        let mut said = match self.last_run {
            None => said(
                "not_covered",
                "was never executed: no run includes it".to_owned(),
                json!({"executed": false, "next_steps": next}),
            ),
            Some(last) => {
                let state = last.run.state;
                let ended = match last.ended_at {
                    Some(at) => format!(" at {at}"),
                    None => String::new(),
                };
                let word = json!(state);
                let word = word.as_str().unwrap_or_default();
                said(
                    "not_covered",
                    format!("is not part of a run any more: its last run ended {word}{ended}"),
                    json!({"executed": true, "run_id": last.run.id, "run_state": state,
                        "run_root_task_id": last.task_id, "run_ended_at": last.ended_at,
                        "next_steps": next}),
                )
            }
        };
        if let Some(unknown) = unknown {
            self.add_unknown(&mut said, &unknown);
        }
        said
    }

    fn blocked(&self, blocked: &Blocked) -> Said {
        let last = blocked.chain.last().expect("a chain is never empty");
        let cause = last.task;
        let name = self.facts.name(&cause);
        let error = self.facts.error(&cause);
        let what = match blocked.cause {
            Cause::Failed => format!("failed{}", short(error)),
            Cause::Cancelled => format!("was cancelled{}", short(error)),
            Cause::NotCovered => "is covered by no run".to_owned(),
        };
        let through = match blocked.chain.len() - 1 + blocked.skipped {
            0 => String::new(),
            n => format!(", {} before it", counted(n, "task", "tasks")),
        };
        let link = |link: &Link| {
            let mut task = self.task(&link.task);
            waits(&mut task, link.when);
            task
        };
        let mut root_cause = self.task(&cause);
        if let Some(error) = error {
            root_cause["error"] = json!(error);
        }
        let reason = self.facts.outcome(&cause).and_then(|o| reason_of(&o.end));
        if let Some(reason) = reason {
            root_cause["reason"] = reason;
        }
        said(
            "blocked",
            format!("cannot start by itself: `{name}`{through} {what}"),
            json!({"chain": blocked.chain.iter().map(link).collect::<Vec<_>>(),
                "chain_more": blocked.skipped, "root_cause": root_cause,
                "next_steps": steps::unblock(blocked)}),
        )
    }

    fn dependencies(&self, list: &Listed<Awaited>) -> Said {
        let count = list.items.len() + list.more;
        let dependency = |d: &Awaited| {
            let mut task = self.task(&d.task);
            waits(&mut task, d.when);
            task["can_satisfy"] = json!(d.can_satisfy);
            task
        };
        let names = self.names(list.items.iter().map(|d| &d.task), list.more);
        said(
            "waits_for_dependencies",
            format!(
                "waits for {}: {names}",
                counted(count, "dependency", "dependencies")
            ),
            json!({"dependencies": list.items.iter().map(dependency).collect::<Vec<_>>(),
                "more": list.more}),
        )
    }

    fn retry(&self, at: Timestamp) -> Said {
        let budget = self.e.attempts;
        let next = budget.used + 1;
        let latest = self.latest();
        let last = latest.and_then(|a| a.error.as_deref());
        let is_lost = latest.is_some_and(|a| a.reason.as_deref() == Some(LOST));
        let error = short(last);
        said(
            "waits_for_retry",
            match (is_lost, last) {
                // It is not one of those that `retry_count` allows.
                (true, _) => {
                    format!(
                        "waits until {at} for another attempt; the last one uses up no retry{error}"
                    )
                }
                (false, None) => {
                    format!(
                        "waits until {at} for attempt {next} of {}",
                        budget.max.max(next)
                    )
                }
                (false, Some(_)) => format!(
                    "waits until {at} for attempt {next} of {}; the last one failed{error}",
                    budget.max.max(next)
                ),
            },
            json!({"at": at, "attempt": self.e.attempt + 1, "attempt_of_run": next,
                "max_attempts": budget.max, "last_error": last}),
        )
    }

    fn descendants(&self, below: &Descendants) -> Said {
        let total = below.open + below.completed + below.failed + below.cancelled;
        // Groups stand last. They are told only when no task is open, because counts are of tasks.
        let (mut listed, open) = (below.listed.clone(), below.open as usize);
        if open > 0 {
            listed.items.truncate(open);
            listed.more = open - listed.items.len();
        }
        let names = self.names(listed.items.iter(), listed.more);
        let (open, more) = self.tasks(&listed);
        said(
            "waits_for_descendants",
            match below.open {
                0 => format!("waits for groups below it: {names}"),
                open => format!(
                    "waits for {open} of {} below it: {names}",
                    counted(total as usize, "task", "tasks")
                ),
            },
            json!({"counts": {"open": below.open, "completed": below.completed,
                "failed": below.failed, "cancelled": below.cancelled}, "open": open, "more": more}),
        )
    }

    fn running(&self) -> Said {
        let since = self.latest().and_then(|a| a.started_at);
        let timeout = self
            .facts
            .timeout_ms(self.e.spec_at)
            .and_then(|ms| Some(since?.plus_ms(ms)));
        let budget = self.e.attempts;
        let attempt = if budget.max > 1 {
            format!("attempt {} of {}", budget.used, budget.max.max(budget.used))
        } else {
            format!("attempt {}", self.e.attempt)
        };
        let began = since.map_or_else(String::new, |at| format!(" since {at}"));
        let percent = self.e.progress.millionths() / 10_000;
        said(
            "running",
            format!("is running{began}: {attempt}, {percent} % done"),
            json!({"since": since, "attempt": self.e.attempt, "attempt_of_run": budget.used,
                "max_attempts": budget.max, "progress": self.e.progress, "timeout_at": timeout,
                "run_id": self.e.run.map(|r| r.id),
                "run_root_task_id": self.e.run.map(|r| r.root)}),
        )
    }

    fn duration_ms(&self) -> Option<u64> {
        let attempt = self.latest()?;
        Some(attempt.ended_at?.ms_since(attempt.started_at?))
    }

    fn completed(&self) -> Said {
        let took = self.duration_ms();
        let at = self.facts.outcome(&self.e.task).map(|o| o.time);
        let when = at.map_or_else(String::new, |at| format!(" at {at}"));
        let long = took.map_or_else(String::new, |ms| format!(" after {ms} ms"));
        said(
            "completed",
            format!("completed{when} in attempt {}{long}", self.e.attempt),
            json!({"at": at, "attempt": self.e.attempt, "duration_ms": took,
                "run_id": self.latest().and_then(|a| a.run_id)}),
        )
    }

    fn failed(
        &self,
        harmed_by: &Listed<TaskRef>,
        not_done: &Listed<TaskRef>,
        retry: &Again,
    ) -> Said {
        let outcome = self.facts.outcome(&self.e.task);
        let error = self.facts.error(&self.e.task);
        let reason = match outcome.map(|o| &o.end) {
            Some(TaskEnd::Failed(reason, _)) => Some(*reason),
            Some(TaskEnd::Completed | TaskEnd::Cancelled(..)) | None => None,
        };
        let budget = self.e.attempts;
        let retries = self.retries(reason);
        let (harmed, harmed_more) = (self.ended(harmed_by), harmed_by.more);
        let (open, open_more) = self.tasks(not_done);
        let is_cancelled = |it: &&TaskRef| it.status == Status::Cancelled;
        let next = match harmed_by.items.iter().find(is_cancelled) {
            // A retry skips what was cancelled, so it would end in the same way.
            Some(cancelled) => Steps::new().now(
                "tasks.copy",
                json!({"task_id": self.e.task.id, "copy_children": true}),
                &format!(
                    "`{}` was cancelled and cannot run again, so a retry would fail too: run a copy",
                    self.facts.name(cancelled)
                ),
            ),
            None => Steps::new().run(
                "tasks.retry",
                self.e.task.id,
                "retry it; the tasks that depend on it follow",
                retry,
            ),
        };
        let mut details = json!({"error": error, "reason": reason,
            "at": outcome.map(|o| o.time), "attempt": self.e.attempt,
            "attempts_of_run": budget.used, "max_attempts": budget.max, "retries": retries.code,
            "next_steps": next.all()});
        retries.add_to(&mut details);
        if self.e.method.is_none() {
            details["harmed_by"] = harmed;
            details["harmed_by_more"] = json!(harmed_more);
            details["not_done"] = open;
            details["not_done_more"] = json!(open_more);
        }
        if let (Some(FailureReason::Deadline), Some(deadline)) = (reason, self.e.deadline) {
            details["deadline_of"] = self.task(&deadline.of);
        }
        let words = retries.words;
        let cause = self.root_cause(harmed_by);
        let message = format!("failed{words}{}{cause}", short(error));
        said("failed", message, details)
    }

    /// The first root cause of a group, in words.
    fn root_cause(&self, harmed_by: &Listed<TaskRef>) -> String {
        let Some(first) = harmed_by.items.first() else {
            return String::new();
        };
        let others = match harmed_by.items.len() - 1 + harmed_by.more {
            0 => String::new(),
            1 => ", and 1 other task".to_owned(),
            others => format!(", and {others} other tasks"),
        };
        let (name, status) = (self.facts.name(first), first.status.as_str());
        let error = short(self.facts.error(first));
        format!("; root cause: `{name}` {status}{error}{others}")
    }

    /// Tasks with the errors that they ended with.
    fn ended(&self, list: &Listed<TaskRef>) -> Value {
        let with_error = |task: &TaskRef| {
            let mut said = self.task(task);
            said["error"] = json!(self.facts.error(task));
            said
        };
        Value::Array(list.items.iter().map(with_error).collect())
    }

    fn cancelled(&self, around: &[TaskRef]) -> Said {
        let Some(outcome) = self.facts.outcome(&self.e.task) else {
            return said("cancelled", "was cancelled".to_owned(), json!({}));
        };
        let reason = match &outcome.end {
            TaskEnd::Cancelled(reason, _) => Some(*reason),
            TaskEnd::Completed | TaskEnd::Failed(..) => None,
        };
        // Who cancels a task cancels those below it in the same breath; the outermost was meant.
        let same = |o: &TaskOutcome| o.correlation == outcome.correlation && o.time == outcome.time;
        let through = around
            .iter()
            .take_while(|t| self.facts.outcome(t).is_some_and(same))
            .last()
            .filter(|_| reason == Some(CancelReason::Requested));
        let error = self.facts.error(&self.e.task);
        let next = Steps::new().now(
            "tasks.copy",
            json!({"task_id": self.e.task.id}),
            "a cancelled task cannot run again: run a copy",
        );
        let mut details = json!({"reason": reason, "error": error, "at": outcome.time,
            "actor": &*outcome.actor, "correlation_id": &*outcome.correlation,
            "next_steps": next.all()});
        let words = match (reason, through) {
            (Some(CancelReason::Deadline), _) => {
                if let Some(deadline) = self.e.deadline {
                    details["deadline_of"] = self.task(&deadline.of);
                }
                String::new()
            }
            (_, Some(task)) => {
                details["through"] = self.task(task);
                let name = self.facts.name(task);
                format!(" with `{name}` by `{}`", outcome.actor)
            }
            (_, None) => format!(" by `{}`", outcome.actor),
        };
        let message = format!("was cancelled{words} at {}{}", outcome.time, short(error));
        said("cancelled", message, details)
    }
}

/// What a dependency on the task waits for.
fn waits(task: &mut Value, when: When) {
    task["required"] = json!(when.is_required());
    if when == When::Always {
        task["when"] = json!("always");
    }
}

fn reason_of(end: &TaskEnd) -> Option<Value> {
    match end {
        TaskEnd::Completed => None,
        TaskEnd::Failed(reason, _) => Some(json!(reason)),
        TaskEnd::Cancelled(reason, _) => Some(json!(reason)),
    }
}

/// `: error`, or nothing.
fn short(error: Option<&str>) -> String {
    match error {
        None => String::new(),
        Some(error) if error.len() > ERROR_BYTES_MAX => {
            format!(": {}…", cut(error, ERROR_BYTES_MAX))
        }
        Some(error) => format!(": {error}"),
    }
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
