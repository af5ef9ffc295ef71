//! Texts for what a run or a status does not allow.

use super::{Wording, status_is};
use serde_json::Value;
use taskledger_domain::Violation;
use taskledger_domain::flow::{CallTask, Changeable, RunConflict, TransitionFault};
use taskledger_domain::task::Status;

/// What would be accepted instead of a task in another status.
const fn changeable_task(changeable: Changeable) -> &'static str {
    match changeable {
        Changeable::Pending => "a task that is pending",
        Changeable::PendingOrFailed => "a task that is pending or failed",
        Changeable::Idle => {
            "a flow without attempts under way: wait until they have ended, or cancel them"
        }
    }
}

impl Wording<'_> {
    pub(super) fn conflict(&self, conflict: &RunConflict) -> Violation {
        match conflict {
            RunConflict::Covered { task } => {
                let expected = "tasks that no active run covers";
                self.of_task("task_id", "An active run covers the task", expected, *task)
            }
            RunConflict::InProgress {
                task,
                changeable: changeable @ Changeable::Idle,
            } => {
                let path = self.path(CallTask::Id(*task), ["user_id".into()]);
                let reason = "An attempt of the flow is under way";
                self.at(&path, reason, changeable_task(*changeable), *task)
            }
            RunConflict::InProgress {
                task: _,
                changeable,
            } => status_is(Status::InProgress, changeable_task(*changeable)),
            RunConflict::Moved { task, parent } => {
                let path = self.path(CallTask::Id(*task), ["parent_id".into()]);
                let reason = "An active run covers the task, which may not get another parent";
                self.at(&path, reason, "the present parent", *parent)
            }
            RunConflict::MethodChanged { task: _, method } => {
                let reason =
                    "An active run covers the task, which may not change between group and method";
                let (expected, actual) = match method.as_deref() {
                    Some(method) => ("no `schemas`", Value::from(method)),
                    None => ("`schemas` with a method", Value::Null),
                };
                Violation::of("schemas", reason, expected, &actual)
            }
            RunConflict::DependencyNotCovered {
                task,
                index,
                dependency,
            } => {
                let path = self.dependency_path(CallTask::Id(*task), *index);
                let reason = "An active run covers the task, but not this dependency";
                let expected = "a task that the run covers, or a completed one";
                self.at(&path, reason, expected, *dependency)
            }
        }
    }

    pub(super) fn transition(&self, fault: TransitionFault) -> Violation {
        match fault {
            TransitionFault::StatusGiven { task: _, status } => {
                status_is(status, "no `status`: updates do not change it")
            }
            TransitionFault::NotChangeable {
                task: _,
                status,
                changeable,
            } => status_is(status, changeable_task(changeable)),
            TransitionFault::NotFailed { task: _, status } => status_is(
                status,
                match status {
                    Status::Completed | Status::Cancelled => {
                        "a failed task; a task that completed or was cancelled does not run again: copy it with `tasks.copy`"
                    }
                    Status::Pending => "a failed task; `tasks.execute` runs a pending one",
                    Status::InProgress | Status::Failed => "a failed task",
                },
            ),
            TransitionFault::Ended { task: _, status } => {
                status_is(status, "a task that is pending or in_progress")
            }
            TransitionFault::NotClaimable { task: _, status } => {
                let expected = "a pending task of a run that is ready for a worker";
                status_is(status, expected)
            }
            TransitionFault::NothingToExecute { task } => {
                let expected = "a task with something pending in it, or failed and not tolerated; `include: \"failed\"` runs tolerated failures again, and `tasks.copy` makes a new task of one that has ended";
                self.of_task("task_id", "Nothing to execute", expected, task)
            }
        }
    }
}
