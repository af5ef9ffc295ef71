//! `tasks.execute`. spec: interface / tasks.execute

use super::beginning::{INCLUDE, begun, with_callback};
use crate::application::Context;
use crate::application::Service;
use crate::application::api::Target;
use crate::application::api::runs::{AwaitRun, ReadRun};
use crate::application::api::{Consistency, Execute, IdCheck, Request, Run};
use crate::runtime::maybe_block_in_place;
use crate::transport::jsonrpc::encode::Reply;
use crate::transport::jsonrpc::methods::calling::boxed;
use crate::transport::jsonrpc::methods::calling::{answer, listed};
use crate::transport::jsonrpc::reader::{
    BOOLEAN, Fault, Kind, Parameters, Reader, Refusal, TASK_ID, seconds,
};
use crate::transport::jsonrpc::table::Call;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{ErrorKind, params};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::tasks::started;
use crate::transport::openrpc::about::{About, Example, FETCH, GROUP, MINTED, MINTED_TOO, RUN};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_domain::flow::Include;
use taskledger_domain::task::call;
use taskledger_domain::task::call::TaskList;
use taskledger_domain::{Violation, limits};

/// Seconds that a task may wait for an executor that does not exist yet: a day.
pub const EXECUTOR_WAIT_SECONDS_MAX: u32 = 86_400;

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct Params {
    /// New tasks or a stored one. New ones perhaps with faults, those of other parameters included.
    pub target: Target,
    /// Whether tasks may wait for an executor that does not exist yet.
    pub allow_unknown_executors: bool,
    /// Milliseconds that they wait.
    pub executor_wait_ms: u64,
    /// Which failed tasks of a stored task run again.
    pub include: Include,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let list = reader.optional(
            "tasks",
            TASKS,
            "The tasks to create and run; either these or `task_id`.",
        );
        let stored = reader.optional(
            "task_id",
            TASK_ID,
            "The stored task to run, with what is below it; either this or `tasks`.",
        );
        let both = reader.given("tasks");
        if both == reader.given("task_id") {
            let reason = if both {
                "given together with `tasks`"
            } else {
                "missing"
            };
            let expected =
                "either `tasks`, to create and run them, or `task_id`, to run a stored task";
            let actual = reader.value("task_id");
            reader.report("task_id", Fault::new(reason, expected), actual);
        }
        // Taken out of the call by the dispatcher when it is true.
        params::use_streaming(&mut reader);
        let allow_unknown_executors = reader.with_default(
            "allow_unknown_executors",
            BOOLEAN,
            false,
            "Whether tasks whose executor does not exist yet are taken and wait for it.",
        );
        let executor_wait_ms = reader.with_default(
            "executor_wait_seconds",
            seconds(EXECUTOR_WAIT_SECONDS_MAX),
            limits::EXECUTOR_WAIT_MS_DEFAULT,
            "How long a ready task waits for an executor that does not exist, before it fails.",
        );
        let include = reader.optional(
            "include",
            INCLUDE,
            "Of a stored task: `failed` also runs failed tasks again that were tolerated, and those behind completed tasks.",
        );
        if include.is_some() && both {
            let fault = Fault::new("given together with `tasks`", "only with `task_id`");
            let actual = reader.value("include");
            reader.report("include", fault, actual);
        }
        let params = |target| Self {
            target,
            allow_unknown_executors,
            executor_wait_ms,
            include: include.unwrap_or_default(),
        };
        match (reader.finish(|| Some(())), list) {
            (Ok(()), list) => {
                let target = stored.map(Target::Stored).or(list.map(Target::New));
                let target = target.expect("one of the two was given, or a fault was reported");
                Ok(params(target))
            }
            // What else is wrong with the tasks is told with it.
            (Err(faults), Some(list)) if !faults.is_empty() => {
                Ok(params(Target::New(list.with_faults(faults))))
            }
            (Err(faults), _) => Err(faults),
        }
    }
}

impl Params {
    /// The same with faults of what stands beside the parameters, so that what else is wrong with new tasks
    /// is told with them.
    ///
    /// # Errors
    /// The faults: nothing else is looked for in a stored task.
    pub fn with_faults(self, faults: Vec<Violation>) -> Result<Self, Vec<Violation>> {
        match self.target {
            Target::New(list) => Ok(Self {
                target: Target::New(list.with_faults(faults)),
                ..self
            }),
            Target::Stored(_) => Err(faults),
        }
    }
}

const TASKS: TasksKind = TasksKind;

/// The tasks of a call.
struct TasksKind;

impl Kind for TasksKind {
    type Out = TaskList;

    fn schema(&self) -> Value {
        json!({"$ref": "#/components/schemas/TaskInputs"})
    }

    fn parse(&self, value: &Value) -> Result<TaskList, Refusal> {
        let list = call::read_tasks(value).map_err(Refusal::Inside)?;
        Ok(list.without_statics())
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.execute",
        title: "Execute Task Tree",
        summary: "Execute a complete task tree with multiple tasks",
        tags: &["task", "orchestration", "workflow", "execution"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, call).await }),
    }
}

/// What is left of the time of a call that has waited for a run, to answer it.
const ANSWER_TIME: Duration = Duration::from_secs(1);

async fn carry_out(service: &Service, call: Call) -> Result<Reply, RpcError> {
    let read = maybe_block_in_place(listed(&call.params), || Params::read(&call.params));
    let as_task = replies::a2a::is_asked_for(call.metadata.as_ref());
    let (context, p, callback) = with_callback(call, read, Params::with_faults)?;
    let execute = Execute {
        target: p.target,
        allow_unknown_executors: p.allow_unknown_executors,
        executor_wait_ms: p.executor_wait_ms,
        include: p.include,
        id_check: IdCheck::First,
        callback,
    };
    let reply = begun(service, &context, Request::Execute(execute)).await?;
    match reply {
        Reply::Begun(_, run) if as_task => ended(service, &context, run).await,
        other @ (Reply::Text(_) | Reply::Begun(..) | Reply::Claimed(..) | Reply::Stream(_)) => {
            Ok(other)
        }
    }
}

/// The run once it has ended or waits for its caller, or as it is when the call's time is up, in the form that
/// the protocol's document gives tasks of A2A. spec: interface / A2A Protocol Methods
async fn ended(service: &Service, context: &Context, run: Run) -> Result<Reply, RpcError> {
    let wait = AwaitRun {
        run: run.id,
        history: None,
        artifacts: true,
        begun: None,
    };
    let waited = service.await_run(context, wait);
    let until = context.deadline.map(|deadline| deadline - ANSWER_TIME);
    let waited = match until {
        None => Some(waited.await),
        Some(until) => tokio::time::timeout_at(until, waited).await.ok(),
    };
    let view = match waited {
        Some(view) => view,
        None => {
            let read = ReadRun {
                run: run.id,
                history: None,
                artifacts: true,
            };
            service.read_run(context, read).await
        }
    };
    let view = answer(service, view)?;
    let root = service.get(context, view.task, Consistency::Strong).await;
    let root = answer(service, root)?;
    let task = replies::a2a::task(&view, &root.row);
    let text = to_raw_value(&task).map_err(|_| RpcError::internal_answer("no JSON"))?;
    Ok(text.into())
}

fn about() -> About {
    About {
        description: "Starts a run: of `tasks`, which are created first, or of the stored task `task_id` with everything below it and all dependencies of these. The answer comes at once; `run` in `tasks.get` of the root shows the status. A run ends when nothing that it covers can continue; waits for workers, slots and answers are bounded by settings of the server. `warnings` names secrets that tasks need and that the owner of the flow does not have.",
        result: "started",
        schema: started(),
        errors: &[
            ErrorKind::TaskNotFound,
            ErrorKind::InvalidTree,
            ErrorKind::InvalidParent,
            ErrorKind::InvalidDependency,
            ErrorKind::CircularDependency,
            ErrorKind::ExecutorNotFound,
            ErrorKind::AlreadyExecuting,
            ErrorKind::InvalidTransition,
            ErrorKind::QuotaExceeded,
        ],
        examples: vec![
            Example {
                name: "new tasks",
                description: "Two tasks, one after the other, in a group.",
                params: json!({"tasks": [
                    {"id": "all", "name": "all"},
                    {"id": "a", "name": "first", "parent_id": "all", "schemas": {"method": "echo_executor"}, "inputs": {"x": 1}},
                    {"id": "b", "name": "then", "parent_id": "all", "schemas": {"method": "aggregate_results_executor"}, "dependencies": [{"id": "a"}]},
                ]}),
                result: json!({
                    "root_task_id": MINTED, "status": "started", "run_id": RUN,
                    "task_ids": {"all": MINTED, "a": MINTED_TOO, "b": FETCH},
                }),
            },
            Example {
                name: "a stored task",
                description: "A group that was created before.",
                params: json!({"task_id": GROUP}),
                result: json!({
                    "root_task_id": GROUP, "task_id": GROUP, "status": "started", "run_id": RUN,
                    "will_run": {"tasks": [FETCH], "count": 1},
                }),
            },
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};

    #[test]
    fn exactly_one_of_tasks_and_task_id_is_taken() {
        let missing = faults(Params::read(&map(json!({}))));
        let fields: Vec<_> = missing.into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["task_id"]);
        // With tasks, what else is wrong with them is still to be found.
        let both = json!({"task_id": ID, "tasks": [{"name": "a"}], "use_streaming": 5});
        let Ok(Params {
            target: Target::New(list),
            ..
        }) = Params::read(&map(both))
        else {
            panic!("a list with faults");
        };
        let fields: Vec<_> = list.faults().iter().map(|v| v.field.as_str()).collect();
        assert_eq!(fields, ["task_id", "use_streaming"]);
        assert!(Params::read(&map(json!({"task_id": ID}))).is_ok());
        assert!(Params::read(&map(json!({"tasks": [{"name": "a"}]}))).is_ok());
    }

    #[test]
    fn an_empty_list_is_refused() {
        let fields = faults(Params::read(&map(json!({"tasks": []}))));
        assert_eq!(
            fields,
            [("tasks".to_owned(), "Must not be empty".to_owned())]
        );
    }
}
