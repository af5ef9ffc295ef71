//! Steps that somebody can take about a reason: calls that the server accepts now come before those that it accepts
//! later.

use crate::transport::jsonrpc::refusals;
use serde_json::{Value, json};
use taskledger_domain::TaskId;
use taskledger_domain::flow::explain::{Again, Blocked, Cause};

/// Calls for the answer. What can be done at once comes first.
#[derive(Debug)]
pub(super) struct Steps {
    now: Vec<Value>,
    later: Vec<Value>,
}

impl Steps {
    /// None yet.
    pub(super) const fn new() -> Self {
        Self {
            now: Vec::new(),
            later: Vec::new(),
        }
    }

    /// A call that is accepted now.
    pub(super) fn now(mut self, method: &str, params: Value, why: &str) -> Self {
        self.now.push(step(method, params, why, "now"));
        self
    }

    /// A call that runs a task, as the rules would answer to it.
    pub(super) fn run(mut self, method: &str, task: TaskId, why: &str, again: &Again) -> Self {
        let params = json!({"task_id": task});
        match again {
            Again::Accepted => return self.now(method, params, why),
            Again::OnlyCopy => {
                let params = json!({"task_id": task, "copy_children": true});
                let why = "a cancelled task below it cannot run again: copy it with what is below it, and execute the copy";
                return self.now("tasks.copy", params, why);
            }
            Again::AfterRun => {
                let why = format!("after the active run has ended: {why}");
                self.later.push(step(method, params, &why, "after_run"));
            }
            Again::Refused(refusal) => {
                let reason = refusals::reason(refusal);
                let why = format!("after this is fixed ({reason}): {why}");
                self.later.push(step(method, params, &why, "after_mending"));
            }
        }
        self
    }

    /// All of them.
    pub(super) fn all(self) -> Value {
        Value::Array(self.now.into_iter().chain(self.later).collect())
    }
}

/// What helps a blocked task.
pub(super) fn unblock(blocked: &Blocked) -> Value {
    let cause = blocked
        .chain
        .last()
        .expect("a chain is never empty")
        .task
        .id;
    let update = json!({"task_id": blocked.waiting});
    let steps = Steps::new();
    let steps = match blocked.cause {
        Cause::Failed => steps
            .run(
                "tasks.retry",
                cause,
                "retry the failed task; the tasks that depend on it follow",
                &blocked.again,
            )
            .now("tasks.update", update, "let it depend on other tasks"),
        Cause::Cancelled => steps
            .now(
                "tasks.copy",
                json!({"task_id": cause, "parent_id": blocked.room}),
                "a cancelled task cannot run again: copy it",
            )
            .now(
                "tasks.update",
                update,
                "let it depend on the copy, or on other tasks",
            ),
        Cause::NotCovered => steps
            .run(
                "tasks.execute",
                cause,
                "run the task that it waits for",
                &blocked.again,
            )
            .now("tasks.update", update, "let it depend on other tasks"),
    };
    steps.all()
}

fn step(method: &str, params: Value, why: &str, when: &str) -> Value {
    json!({"method": method, "params": params, "why": why, "when": when})
}
