//! `tasks.retry`: runs a failed task again, and what waits for it.

use super::beginning::{INCLUDE, begun, with_callback};
use crate::application::Service;
use crate::application::api::{Request, Retry};
use crate::transport::jsonrpc::RpcError;
use crate::transport::jsonrpc::encode::Reply;
use crate::transport::jsonrpc::methods::calling::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader, TASK_ID};
use crate::transport::jsonrpc::table::Call;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{ErrorKind, params};
use crate::transport::openrpc::about::tasks::started;
use crate::transport::openrpc::about::{About, Example, FAILING, RUN};
use serde_json::json;
use taskledger_domain::flow::Include;
use taskledger_domain::{TaskId, Violation};

/// Which task to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The failed task.
    pub task_id: TaskId,
    /// Which other failed tasks run again.
    pub include: Include,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The failed task to run again.");
        params::use_streaming(&mut reader);
        let include = reader.optional(
            "include",
            INCLUDE,
            "`failed`: failed tasks that were tolerated, and those behind completed tasks, run again too. Without it, only what is asked for, or needed by something that runs, does.",
        );
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                include: include.unwrap_or_default(),
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.retry",
        title: "Retry Task",
        summary: "Retry a failed task; the pending tasks that depend on it follow",
        tags: &["task", "retry"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, call).await }),
    }
}

async fn carry_out(service: &Service, call: Call) -> Result<Reply, RpcError> {
    let read = Params::read(&call.params);
    let (context, p, callback) = with_callback(call, read, |_, faults| Err(faults))?;
    let retry = Retry {
        task: p.task_id,
        include: p.include,
        callback,
    };
    begun(service, &context, Request::Retry(retry)).await
}

fn about() -> About {
    About {
        description: "Retries a failed task, with the pending tasks that depend on it and the failed groups above them. Other failed tasks run again only if `include` is `failed`. Steps with `when: \"always\"` run again if a task that they wait for in that way does. `will_run` lists the tasks that the run starts. `warnings` names secrets that tasks need and that the owner of the flow does not have.",
        result: "started",
        schema: started(),
        errors: &[
            ErrorKind::TaskNotFound,
            ErrorKind::ExecutorNotFound,
            ErrorKind::AlreadyExecuting,
            ErrorKind::InvalidTransition,
        ],
        examples: vec![Example {
            name: "a failed task",
            description: "Its attempts are counted on.",
            params: json!({"task_id": FAILING}),
            result: json!({
                "root_task_id": FAILING, "task_id": FAILING, "status": "started", "run_id": RUN,
                "will_run": {"tasks": [FAILING], "count": 1},
            }),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
    use serde_json::json;

    #[test]
    fn only_the_task_can_be_named() {
        assert!(Params::read(&map(json!({"task_id": ID}))).is_ok());
        let all = Params::read(&map(json!({"task_id": ID, "include": "failed"})));
        assert_eq!(all.map(|p| p.include), Ok(Include::Failed));
        let unknown = faults(Params::read(&map(json!({"task_id": ID, "include": "all"}))));
        assert_eq!(unknown[0].0, "include");
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID, "tasks": []})))),
            [("tasks".into(), "unknown parameter".into())]
        );
    }
}
