//! The one method table: what each method is called, reads, and asks of the application.

mod webhooks;

use super::dispatch::{Call, Changes, Method};
use super::encode::{Outcome, Reply};
use super::error::RpcError;
use super::params::{
    cancel, children, copy, create, delete, execute, explain, get, history, list, nothing,
    resubscribe, retry, subscribe, tree, update,
};
use super::reader::Parameters;
use super::refusals;
use super::streaming::Streamed;
use super::task_json::{PageJson, TaskJson, ThenJson};
use super::text::{Text, raw};
use super::tree_json::{ChildrenJson, TreeJson};
use crate::application::stretch::at_a_stretch;
use crate::application::{App, Error, Failure};
use crate::engine::{Dispatcher as Engine, ExecutorDirectory};
use crate::transport::openrpc::about;
use crate::transport::system;
use crate::webhooks::api::Webhooks;
use crate::webhooks::worker;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use std::future::Future;
use std::sync::Arc;
use taskledger_domain::violation::Violation;
use taskledger_projections::{Cursor, ListFilter, Start};

/// Milliseconds after which a call that met a server on its way down may find its successor.
const SHUT_DOWN_RETRY_MS: u64 = 1000;

/// What the methods work on.
#[derive(Debug)]
pub struct Context {
    /// Commands and queries.
    pub app: App,
    /// The executors, for `system.executors`.
    pub catalog: Arc<ExecutorDirectory>,
    /// The attempts, for `system.health`.
    pub engine: Arc<Engine>,
    /// Where notices are sent.
    pub webhooks: Arc<Webhooks>,
    /// How sending them fares, for `system.health`.
    pub deliveries: worker::Handle,
}

/// Handlers are plain functions; this gives them the form of the table.
fn boxed<T: Into<Reply>>(
    future: impl Future<Output = Result<T, RpcError>> + Send + 'static,
) -> BoxFuture<'static, Outcome> {
    future.map(|outcome| outcome.map(Into::into)).boxed()
}

/// All methods, in the order in which the protocol lists them.
#[must_use]
pub fn table() -> Vec<Method<Context>> {
    let mut methods = tasks();
    methods.extend(queries());
    methods.extend(streams());
    methods.extend(webhooks::methods());
    methods.extend(system_methods());
    methods
}

fn tasks() -> Vec<Method<Context>> {
    vec![
        Method {
            name: "tasks.create",
            title: "Create Tasks",
            summary: "Create a task, a task tree, or a list of tasks",
            tags: &["task", "create"],
            params: create::Params::questions(),
            changes: Changes::Flows,
            about: about::create(),
            handler: |context, call| {
                boxed(async move {
                    let p = at_a_stretch(listed(&call), || create::Params::read(&call.params))?;
                    answer(&context, context.app.create(call.caller, p.tasks).await)
                })
            },
        },
        Method {
            name: "tasks.update",
            title: "Update Task",
            summary: "Change fields of a task",
            tags: &["task", "update"],
            params: update::Params::questions(),
            changes: Changes::Flows,
            about: about::update(),
            handler: |context, call| {
                boxed(async move {
                    let p = update::Params::read(&call.params)?;
                    answer(
                        &context,
                        context.app.update(call.caller, p.task_id, p.updates).await,
                    )
                })
            },
        },
        Method {
            name: "tasks.delete",
            title: "Delete Task",
            summary: "Delete a pending task, with `cascade` everything below it too",
            tags: &["task", "delete"],
            params: delete::Params::questions(),
            changes: Changes::Flows,
            about: about::delete(),
            handler: |context, call| {
                boxed(async move {
                    let p = delete::Params::read(&call.params)?;
                    answer(
                        &context,
                        context.app.delete(call.caller, p.task_id, p.cascade).await,
                    )
                })
            },
        },
        Method {
            name: "tasks.execute",
            title: "Execute Task Tree",
            summary: "Execute a complete task tree with multiple tasks",
            tags: &["task", "orchestration", "workflow", "execution"],
            params: execute::Params::questions(),
            changes: Changes::Flows,
            about: about::execute(),
            handler: |context, call| boxed(async move { webhooks::execute(&context, call).await }),
        },
        Method {
            name: "tasks.cancel",
            title: "Cancel Task",
            summary: "Cancel a pending or running task",
            tags: &["task", "cancel"],
            params: cancel::Params::questions(),
            changes: Changes::Flows,
            about: about::cancel(),
            handler: |context, call| {
                boxed(async move {
                    let p = cancel::Params::read(&call.params)?;
                    answer(
                        &context,
                        context
                            .app
                            .cancel(call.caller, p.task_id, p.cascade, p.reason)
                            .await,
                    )
                })
            },
        },
        Method {
            name: "tasks.copy",
            title: "Copy Task",
            summary: "Copy a task or a task tree for re-execution",
            tags: &["task", "copy"],
            params: copy::Params::questions(),
            changes: Changes::Flows,
            about: about::copy(),
            handler: |context, call| {
                boxed(async move {
                    let p = copy::Params::read(&call.params)?;
                    let done = context
                        .app
                        .copy(call.caller, p.task_id, p.copy_children, p.parent_id)
                        .await;
                    answer(&context, done)
                })
            },
        },
        Method {
            name: "tasks.retry",
            title: "Retry Task",
            summary: "Run a failed task again, with the pending tasks behind it",
            tags: &["task", "retry"],
            params: retry::Params::questions(),
            changes: Changes::Flows,
            about: about::retry(),
            handler: |context, call| boxed(async move { webhooks::retry(&context, call).await }),
        },
    ]
}

fn queries() -> Vec<Method<Context>> {
    vec![
        Method {
            name: "tasks.get",
            title: "Get Task",
            summary: "Show a task, now or as it was",
            tags: &["task", "read"],
            params: get::Params::questions(),
            changes: Changes::Nothing,
            about: about::get(),
            handler: |context, call| {
                boxed(async move {
                    let p = get::Params::read(&call.params)?;
                    match p.as_of {
                        None => {
                            let found = context.app.get(p.task_id, p.consistency).await;
                            answer(&context, found).map(|task| raw(&TaskJson(&task)))
                        }
                        Some(at) => {
                            let found = context.app.get_as_of(p.task_id, at).await;
                            answer(&context, found).map(|then| raw(&ThenJson(&then)))
                        }
                    }
                })
            },
        },
        Method {
            name: "tasks.list",
            title: "List Tasks",
            summary: "List tasks with filters",
            tags: &["task", "read"],
            params: list::Params::questions(),
            changes: Changes::Nothing,
            about: about::list(),
            handler: |context, call| boxed(async move { list_tasks(&context, &call).await }),
        },
        Method {
            name: "tasks.tree",
            title: "Get Task Tree",
            summary: "Show a task with all its descendants, now or as they were",
            tags: &["task", "read"],
            params: tree::Params::questions(),
            changes: Changes::Nothing,
            about: about::tree(),
            handler: |context, call| {
                boxed(async move {
                    let p = tree::Params::read(&call.params)?;
                    let json = TreeJson::default();
                    let found = match p.as_of {
                        None => context.app.tree(p.task_id, p.consistency, json).await,
                        Some(at) => context.app.tree_as_of(p.task_id, at, json).await,
                    };
                    answer(&context, found).map(Text::from)
                })
            },
        },
        Method {
            name: "tasks.children",
            title: "Get Children",
            summary: "Show the direct children of a task",
            tags: &["task", "read"],
            params: children::Params::questions(),
            changes: Changes::Nothing,
            about: about::children(),
            handler: |context, call| {
                boxed(async move {
                    let p = children::Params::read(&call.params)?;
                    let json = ChildrenJson::default();
                    let found = context.app.children(p.parent_id, p.consistency, json);
                    answer(&context, found.await).map(Text::from)
                })
            },
        },
        Method {
            name: "tasks.history",
            title: "Get History",
            summary: "Show what happened to a task or to its flow",
            tags: &["task", "read", "history"],
            params: history::Params::questions(),
            changes: Changes::Nothing,
            about: about::history(),
            handler: |context, call| {
                boxed(async move {
                    let query = history::Params::read(&call.params)?.query()?;
                    answer(&context, context.app.history(query).await)
                })
            },
        },
        Method {
            name: "tasks.explain",
            title: "Explain Task",
            summary: "Say why a task is not running, or why it ended as it did",
            tags: &["task", "read"],
            params: explain::Params::questions(),
            changes: Changes::Nothing,
            about: about::explain(),
            handler: |context, call| {
                boxed(async move {
                    let p = explain::Params::read(&call.params)?;
                    answer(
                        &context,
                        context.app.explain(p.task_id, refusals::reason).await,
                    )
                })
            },
        },
    ]
}

fn streams() -> Vec<Method<Context>> {
    vec![
        Method {
            name: "tasks.subscribe",
            title: "Subscribe to Task",
            summary: "Show a task, then tell what happens in its flow until nothing runs",
            tags: &["task", "read", "stream"],
            params: subscribe::Params::questions(),
            changes: Changes::Nothing,
            about: about::subscribe(),
            handler: |context, call| {
                boxed(async move {
                    let p = subscribe::Params::read(&call.params)?;
                    let begun = context.app.subscribe(p.task_id, p.scope).await;
                    answer(&context, begun).map(Streamed::from)
                })
            },
        },
        Method {
            name: "tasks.resubscribe",
            title: "Resume Subscription",
            summary: "Go on with a subscription behind the last event that arrived",
            tags: &["task", "read", "stream"],
            params: resubscribe::Params::questions(),
            changes: Changes::Nothing,
            about: about::resubscribe(),
            handler: |context, call| {
                boxed(async move {
                    let p = resubscribe::Params::read(&call.params)?;
                    let app = &context.app;
                    let begun = app.resubscribe(p.task_id, p.scope, &p.last_event_id).await;
                    answer(&context, begun).map(Streamed::from)
                })
            },
        },
    ]
}

fn system_methods() -> Vec<Method<Context>> {
    vec![
        Method {
            name: "system.health",
            title: "Health",
            summary: "Show how the server is",
            tags: &["system"],
            params: nothing::Params::questions(),
            changes: Changes::Nothing,
            about: about::health(),
            handler: |context, call| {
                boxed(async move {
                    nothing::Params::read(&call.params)?;
                    Ok(system::health(&context).await)
                })
            },
        },
        Method {
            name: "system.executors",
            title: "Executors",
            summary: "List the executors with their schemas and limits",
            tags: &["system"],
            params: nothing::Params::questions(),
            changes: Changes::Nothing,
            about: about::executors(),
            handler: |context, call| {
                boxed(async move {
                    nothing::Params::read(&call.params)?;
                    Ok(system::executors(&context))
                })
            },
        },
        Method {
            name: "system.rebuild",
            title: "Rebuild",
            summary: "Make the read models anew from the log, while they serve",
            tags: &["system"],
            params: nothing::Params::questions(),
            changes: Changes::Nothing,
            about: about::rebuild(),
            handler: |context, call| {
                boxed(async move {
                    nothing::Params::read(&call.params)?;
                    let started = context.app.rebuild_read_models().await;
                    answer(&context, started.map(system::rebuild_started))
                })
            },
        },
    ]
}

async fn list_tasks(context: &Context, call: &Call) -> Result<Box<RawValue>, RpcError> {
    let p = list::Params::read(&call.params)?;
    let start = match &p.cursor {
        None => Start::Offset(p.offset),
        Some(text) => Start::After(Cursor::parse(text, p.order).map_err(|_| {
            let expected = "a `next_cursor` of the same list, with the same `order`";
            vec![Violation::of(
                "cursor",
                "not a cursor of this list",
                expected,
                &Value::String(text.clone()),
            )]
        })?),
    };
    let filter = ListFilter {
        status: p.status,
        user_id: p.user_id.map(Arc::from),
        root_only: p.root_only,
        parent_id: p.parent_id,
        name: p.name.map(Arc::from),
        priority: p.priority,
        created_after: p.created_after,
        created_before: p.created_before,
    };
    let page = context
        .app
        .list(filter, p.order, start, p.limit, p.consistency)
        .await;
    answer(context, page).map(|page| raw(&PageJson(&page)))
}

/// Tasks in the list of a call.
fn listed(call: &Call) -> usize {
    let list = call.params.get("tasks").and_then(Value::as_array);
    list.map_or(1, Vec::len)
}

pub(super) fn answer<T>(context: &Context, answer: Result<T, Error>) -> Result<T, RpcError> {
    answer.map_err(|error| match error {
        Error::Refused(refused) => refusals::error(&refused),
        Error::Outdated(what) => {
            let cause = format!("an outdated command was not made anew: {what:?}");
            RpcError::internal(&*context.app.clock, &cause)
        }
        Error::Busy {
            reason,
            retry_after_ms,
        } => RpcError::busy(&reason, retry_after_ms),
        Error::Elsewhere(owner) => RpcError::elsewhere(owner),
        Error::OutcomeUnknown => {
            RpcError::internal_answer("outcome unknown; retry with the same idempotency key")
        }
        Error::Failed(Failure::ShuttingDown) => {
            RpcError::busy("the server is shutting down", SHUT_DOWN_RETRY_MS)
        }
        Error::Failed(failure) => {
            let clock = &*context.app.clock;
            match failure.for_the_caller() {
                Some(reason) => RpcError::internal_because(clock, &failure, &reason),
                None => RpcError::internal(clock, &failure),
            }
        }
    })
}
