//! Refusals as JSON-RPC errors: the one table from what the application refuses to codes, texts,
//! members of `data` and paths. spec: interface / Error Handling
//!
//! A refusal comes with the names that the caller gave to the tasks of its call. Wherever a text, a
//! path or a list of ids concerns such a task, it is named as the caller named it.

mod archive;
mod contract;
mod executors;
mod people;
mod runs;
mod schedules;
#[cfg(test)]
mod tests;
mod values;

pub(super) use contract::unfit_workflow;
pub(super) use schedules::unfit_schedule;

use super::error::{ErrorKind, RETRY_AFTER_TIMEOUT_MS, RpcError};
use crate::application::api::NameIndex as Index;
use crate::application::api::work::LeaseLoss;
use crate::application::api::{CallNames, Error, Failure, KnownExecutors, Refused};
use crate::clock::Clock;
use serde_json::Value;
use taskledger_domain::flow::{
    Argument, CallTask, ClosedBy, Refusal, SelfDependency, UnknownDependency,
};
use taskledger_domain::task::Status;
use taskledger_domain::{PathSegment, TaskId, Timestamp, Violation};

/// Milliseconds after which a call that met a server on its way down may find its successor.
const SHUT_DOWN_RETRY_MS: u64 = 1000;
/// What a caller is told to wait when a flow has no owner, in milliseconds: the next one is found
/// within seconds.
const RETRY_AFTER_MOVE_MS: u64 = 500;

/// What would be accepted where a call names a stored task.
const STORED_TASK: &str = "the id of a stored task";

/// What a caller is told of an error. A failure is logged here, under an id that the answer has.
pub(crate) fn told(clock: &dyn Clock, error: Error) -> RpcError {
    match error {
        Error::Refused(refused) => refused_call(&refused),
        Error::Outdated(what) => {
            let cause = format!("an outdated command was not made anew: {what:?}");
            RpcError::internal(clock, &cause)
        }
        Error::Busy {
            reason,
            retry_after_ms,
        } => RpcError::busy(&reason, retry_after_ms),
        Error::RateLimited { retry_after_ms } => RpcError::rate_limited(retry_after_ms),
        Error::QuotaExceeded {
            quota,
            limit,
            used,
            requested,
        } => RpcError::quota_exceeded(quota.as_str(), limit, (used, requested)),
        Error::Elsewhere(_) => RpcError::busy(
            "the flow is changing over to another server",
            RETRY_AFTER_MOVE_MS,
        ),
        Error::OutcomeUnknown => {
            RpcError::internal_answer("outcome unknown; retry with the same idempotency key")
        }
        Error::Unanswered { retry_after_ms } => {
            RpcError::internal_answer("outcome unknown; retry with the same idempotency key")
                .with("retry_after_ms", retry_after_ms)
        }
        Error::OutOfTime { changes } => out_of_time(changes),
        Error::Forbidden { scope, field } => {
            RpcError::forbidden(scope.as_str(), field.as_deref().unwrap_or("credentials"))
        }
        Error::UnknownWebhook { field } => RpcError::webhook_not_found(field, &Value::Null),
        Error::LeaseNotHeld { task, reason } => lease_not_held(task, reason),
        Error::ContractBroken { task, breach } => contract::broken(task, &breach),
        Error::Failed(Failure::ShuttingDown) => {
            RpcError::busy("the server is shutting down", SHUT_DOWN_RETRY_MS)
        }
        Error::Failed(Failure::OfNode { id, reason }) => {
            RpcError::internal_as(reason.as_deref(), id)
        }
        Error::Failed(failure) => match failure.for_the_caller() {
            Some(reason) => RpcError::internal_because(clock, &failure, &reason),
            None => RpcError::internal(clock, &failure),
        },
    }
}

/// A worker speaks of a task that it does not hold.
pub(super) fn lease_not_held(task: TaskId, reason: LeaseLoss) -> RpcError {
    let (word, text) = match reason {
        LeaseLoss::Ended => ("ended", "the attempt has ended"),
        LeaseLoss::TimedOut => ("timed_out", "the attempt took longer than it may"),
        LeaseLoss::Deadline => ("deadline", "the deadline of the task has passed"),
        LeaseLoss::Cancelled => ("cancelled", "the task was cancelled"),
        LeaseLoss::Lost => ("lost", "the lease ended, and the attempt was lost"),
        LeaseLoss::Unknown => ("unknown", "the caller holds no such lease"),
    };
    RpcError::lease_not_held(task, word, text)
}

/// A read may simply be repeated; of a change nobody knows whether it happened.
pub(super) fn out_of_time(changes: bool) -> RpcError {
    if changes {
        RpcError::internal_answer(
            "the call ran out of time and its outcome is unknown; retry with the same idempotency key",
        )
        .with("retry_after_ms", RETRY_AFTER_TIMEOUT_MS)
    } else {
        RpcError::busy("the call ran out of time", RETRY_AFTER_TIMEOUT_MS)
    }
}

/// The answer to a refused call. Cost: O(tasks of the call + faults).
fn refused_call(refused: &Refused) -> RpcError {
    let (names, executors) = (refused.names.index(), &refused.executors);
    let unknown = executors::beside(&refused.unknown_executors, executors);
    let wording = Wording { names };
    let others = refused.others.iter();
    let others = others.map(|other| answer(other, executors, &wording));
    let told = answer(&refused.refusal, executors, &wording);
    others.fold(told, RpcError::beside).listing(&unknown)
}

/// Why a command would be refused, in one text: what is said of the first fault.
#[must_use]
pub fn reason(refusal: &Refusal) -> String {
    let names = CallNames::default();
    let names = names.index();
    let error = answer(refusal, &KnownExecutors::default(), &Wording { names });
    let reason = error.data.pointer("/errors/0/reason");
    reason
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The table.
fn answer(refusal: &Refusal, executors: &KnownExecutors, wording: &Wording<'_>) -> RpcError {
    match refusal {
        Refusal::TaskNotFound { task, argument } => {
            let fault = wording.of_task(member(*argument), "Task not found", STORED_TASK, *task);
            RpcError::new(ErrorKind::TaskNotFound, vec![fault])
        }
        Refusal::TaskArchived {
            task,
            argument,
            at,
            file,
        } => {
            let reason = format!("Task was archived at {at} in file `{file}`");
            let fault = wording.of_task(member(*argument), &reason, STORED_TASK, *task);
            RpcError::new(ErrorKind::TaskNotFound, vec![fault])
        }
        Refusal::NotCreatedYet {
            task,
            created_at,
            position,
        } => {
            let reason =
                format!("Task did not exist then; created at {created_at}, position {position}");
            let expected = format!("an `as_of` from {created_at} or position {position} on");
            let fault = wording.of_task(member(Argument::Task), &reason, &expected, *task);
            RpcError::new(ErrorKind::TaskNotFound, vec![fault])
        }
        Refusal::FlowNotFound { flow } => {
            let fault = wording.of_task("flow", "Task not found", STORED_TASK, flow.root());
            RpcError::new(ErrorKind::TaskNotFound, vec![fault])
        }
        Refusal::Invalid(faults) => {
            let faults = faults.iter().map(|fault| wording.value(fault));
            RpcError::new(ErrorKind::InvalidParams, faults.collect())
        }
        Refusal::InvalidTree(faults) => {
            let told = faults.iter().map(|fault| wording.tree(fault));
            let error = RpcError::new(ErrorKind::InvalidTree, told.collect());
            match faults.iter().find_map(|fault| wording.parent_cycle(fault)) {
                Some(cycle) => error.with("cycle", cycle),
                None => error,
            }
        }
        Refusal::InvalidParent(faults) => {
            let faults = faults.iter().map(|fault| wording.parent(*fault));
            RpcError::new(ErrorKind::InvalidParent, faults.collect())
        }
        Refusal::DependenciesNotFound(unknown) => {
            let faults = unknown
                .iter()
                .map(|fault| wording.unknown_dependency(*fault));
            RpcError::new(ErrorKind::InvalidDependency, faults.collect())
        }
        Refusal::SelfDependency(own) => {
            let faults = own.iter().map(|fault| wording.self_dependency(*fault));
            let error = RpcError::new(ErrorKind::CircularDependency, faults.collect());
            let first = own.iter().take(1).map(|fault| fault.task);
            let cycle: Vec<TaskId> = first.flat_map(|task| [task, task]).collect();
            error.with("cycle", wording.ids(&cycle))
        }
        Refusal::CircularDependency {
            cycle,
            len,
            closed_by,
            has_group,
        } => {
            let fault = wording.cycle(cycle, (*len, *has_group), *closed_by);
            let error = RpcError::new(ErrorKind::CircularDependency, vec![fault]);
            error.with("cycle", wording.ids(cycle))
        }
        Refusal::ExecutorsNotFound(unknown) => wording.unknown_executors(unknown, executors),
        Refusal::AlreadyExecuting(conflicts) => {
            let faults = conflicts.iter().map(|conflict| wording.conflict(conflict));
            RpcError::new(ErrorKind::AlreadyExecuting, faults.collect())
        }
        Refusal::InvalidTransition(faults) => {
            let faults = faults.iter().map(|fault| wording.transition(*fault));
            RpcError::new(ErrorKind::InvalidTransition, faults.collect())
        }
        Refusal::RunNotFound { run } => people::run_not_found(*run),
        Refusal::RunOver { run } => people::run_over(*run),
        Refusal::RunNotWaiting { run, task } => people::run_not_waiting(*run, *task),
        Refusal::NotSuspended { task, suspension } => people::not_suspended(*task, *suspension),
        Refusal::DeleteNotPending { task: _, status } => {
            let fault = status_is(*status, "a task that is pending");
            RpcError::new(ErrorKind::NotDeletable, vec![fault])
        }
        Refusal::DeleteHindered {
            task,
            children,
            dependents,
            not_pending,
        } => wording.hindered(*task, children, dependents, not_pending),
        Refusal::NotArchivable(fault) => {
            RpcError::new(ErrorKind::InvalidTransition, vec![archive::archive(*fault)])
        }
    }
}

/// The member that holds an argument.
const fn member(argument: Argument) -> &'static str {
    match argument {
        Argument::Task => "task_id",
        Argument::Parent => "parent_id",
        Argument::Root => "root_task_id",
        Argument::Followed => "task",
    }
}

/// The task is in `status`, which is not one of those that would do.
fn status_is(status: Status, expected: &str) -> Violation {
    let reason = format!("Task is {status}");
    Violation::of("status", reason, expected, &Value::from(status.as_str()))
}

/// Faults in the terms of one caller.
struct Wording<'n> {
    names: Index<'n>,
}

impl Wording<'_> {
    /// The task as the caller knows it.
    fn task(&self, task: TaskId) -> Value {
        Value::String(self.names.word(task))
    }

    fn ids(&self, tasks: &[TaskId]) -> Value {
        tasks.iter().map(|task| self.task(*task)).collect()
    }

    /// From the parameters to something of a task of the call.
    fn path<const N: usize>(&self, task: CallTask, below: [PathSegment; N]) -> Vec<PathSegment> {
        let written = self.names.path(task).unwrap_or_default();
        let updated = self.names.is_updated(task).then(|| "updates".into());
        written
            .iter()
            .cloned()
            .chain(updated)
            .chain(below)
            .collect()
    }

    /// A fault at `path`, where `actual` is a task.
    fn at(&self, path: &[PathSegment], reason: &str, expected: &str, actual: TaskId) -> Violation {
        let mut fault = Violation::new(path, reason, expected, &Value::Null);
        fault.actual = self.task(actual);
        fault
    }

    /// A fault of the top-level member `field`, which names a task.
    fn of_task(&self, field: &str, reason: &str, expected: &str, actual: TaskId) -> Violation {
        self.at(&[field.into()], reason, expected, actual)
    }

    fn dependency_path(&self, task: CallTask, index: usize) -> Vec<PathSegment> {
        self.path(task, ["dependencies".into(), index.into(), "id".into()])
    }

    fn unknown_dependency(&self, fault: UnknownDependency) -> Violation {
        let path = self.dependency_path(CallTask::Id(fault.task), fault.index);
        let expected = "a task of the same flow";
        self.at(
            &path,
            "Dependency task not found",
            expected,
            fault.dependency,
        )
    }

    fn self_dependency(&self, fault: SelfDependency) -> Violation {
        let path = self.dependency_path(CallTask::Id(fault.task), fault.index);
        let reason = "Task cannot depend on itself";
        self.at(&path, reason, "another task", fault.task)
    }

    /// Tasks that would wait for each other: how many, and whether a group waits for a task below it.
    fn cycle(
        &self,
        cycle: &[TaskId],
        (len, has_group): (usize, bool),
        closed_by: ClosedBy,
    ) -> Violation {
        let first = *cycle.first().expect("a cycle has tasks");
        let second = cycle.get(1).copied().unwrap_or(first);
        let how = if has_group {
            ": a group waits for the tasks below it"
        } else {
            ""
        };
        let reason = format!("Circular dependency of {len} tasks{how}");
        match closed_by {
            ClosedBy::Dependencies => {
                let path = self.path(CallTask::Id(first), ["dependencies".into()]);
                self.at(&path, &reason, "dependencies without a cycle", first)
            }
            ClosedBy::Dependency(index) => {
                let path = self.dependency_path(CallTask::Id(first), index);
                let expected = "a task that does not wait for this one";
                self.at(&path, &reason, expected, second)
            }
            ClosedBy::GroupAbove(index) => {
                let path = self.dependency_path(CallTask::Id(first), index);
                let reason = "Task cannot depend on a group above it, which waits for it";
                self.at(&path, reason, "a task that is not above this one", second)
            }
            ClosedBy::Parent { task } => {
                let path = self.path(CallTask::Id(task), ["parent_id".into()]);
                let expected = "a parent in no group that the task waits for";
                self.at(&path, &reason, expected, task)
            }
            ClosedBy::Method { task } => {
                let path = self.path(CallTask::Id(task), ["schemas".into()]);
                let expected = "schemas with a method, because tasks below it wait for this one";
                self.at(&path, &reason, expected, task)
            }
        }
    }

    fn hindered(
        &self,
        task: TaskId,
        children: &[TaskId],
        dependents: &[TaskId],
        not_pending: &[TaskId],
    ) -> RpcError {
        let hindrances = [
            (
                children,
                "children",
                "Task has children",
                "a task without children, or `cascade: true`",
            ),
            (
                dependents,
                "dependents",
                "Other tasks depend on the task",
                "a task that nothing depends on",
            ),
            (
                not_pending,
                "not_pending",
                "Not all tasks below it are pending",
                "a subtree of pending tasks",
            ),
        ];
        let met = || hindrances.iter().filter(|(tasks, ..)| !tasks.is_empty());
        let faults =
            met().map(|(_, _, reason, expected)| self.of_task("task_id", reason, expected, task));
        let error = RpcError::new(ErrorKind::NotDeletable, faults.collect());
        met().fold(error, |error, (tasks, member, ..)| {
            error.with(member, self.ids(tasks))
        })
    }
}

/// A deadline as a fault shows it.
fn shown(deadline: Timestamp) -> Value {
    Value::String(deadline.to_string())
}
