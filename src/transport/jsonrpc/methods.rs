//! The one method table: what each method is called, reads, and asks of the application.

mod calling;
pub mod read;
mod schedules;
mod secrets;
mod system;
mod tokens;
mod webhooks;
mod work;
mod workflows;

use super::dispatch::{Call, Changes, Method};
use super::encode::Streamed;
use super::error::RpcError;
use super::params::{cancel, copy, create, delete, execute, resubscribe, retry, subscribe, update};
use super::reader::Parameters;
use super::replies;
use crate::application::api::Access;
use crate::application::api::{Cancel, Copy, Delete, Request, Subscribe, Update};
use crate::application::{Context, Service};
use crate::runtime::maybe_block_in_place;
use crate::transport::openrpc::about;
pub(super) use calling::answer;
use calling::{boxed, called, listed};

/// All methods, in the order in which the protocol lists them.
#[must_use]
pub fn table() -> Vec<Method<Service>> {
    let mut methods = tasks();
    methods.extend(read::methods());
    methods.extend(streams());
    methods.extend(workflows::methods());
    methods.extend(schedules::methods());
    methods.extend(work::methods());
    methods.extend(webhooks::methods());
    methods.extend(secrets::methods());
    methods.extend(tokens::methods());
    methods.extend(system::methods());
    methods
}

/// Only those that concern tokens and the audit log, for whoever has no server.
#[must_use]
pub fn access() -> Vec<Method<Access>> {
    tokens::methods()
}

fn tasks() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "tasks.create",
            title: "Create Tasks",
            summary: "Create a task, a task tree, or a list of tasks",
            tags: &["task", "create"],
            params: create::Params::declared(),
            changes: Changes::Flows,
            about: about::create(),
            handler: |service, call| {
                boxed(async move {
                    let Call {
                        params, context, ..
                    } = call;
                    let p =
                        maybe_block_in_place(listed(&params), || create::Params::read(&params))?;
                    drop(params);
                    called(&service, &context, Request::Create(p.tasks)).await
                })
            },
        },
        Method {
            name: "tasks.update",
            title: "Update Task",
            summary: "Change fields of a task",
            tags: &["task", "update"],
            params: update::Params::declared(),
            changes: Changes::Flows,
            about: about::update(),
            handler: |service, call| {
                boxed(async move {
                    let p = update::Params::read(&call.params)?;
                    let update = Update {
                        task: p.task_id,
                        updates: p.updates,
                    };
                    called(&service, &call.context, Request::Update(Box::new(update))).await
                })
            },
        },
        Method {
            name: "tasks.delete",
            title: "Delete Task",
            summary: "Delete a pending task, with `cascade` everything below it too",
            tags: &["task", "delete"],
            params: delete::Params::declared(),
            changes: Changes::Flows,
            about: about::delete(),
            handler: |service, call| {
                boxed(async move {
                    let p = delete::Params::read(&call.params)?;
                    let delete = Delete {
                        task: p.task_id,
                        cascade: p.cascade,
                    };
                    called(&service, &call.context, Request::Delete(delete)).await
                })
            },
        },
        Method {
            name: "tasks.execute",
            title: "Execute Task Tree",
            summary: "Execute a complete task tree with multiple tasks",
            tags: &["task", "orchestration", "workflow", "execution"],
            params: execute::Params::declared(),
            changes: Changes::Flows,
            about: about::execute(),
            handler: |service, call| boxed(async move { webhooks::execute(&service, call).await }),
        },
        Method {
            name: "tasks.cancel",
            title: "Cancel Task",
            summary: "Cancel a pending or running task",
            tags: &["task", "cancel"],
            params: cancel::Params::declared(),
            changes: Changes::Flows,
            about: about::cancel(),
            handler: |service, call| {
                boxed(async move {
                    let p = cancel::Params::read(&call.params)?;
                    let cancel = Cancel {
                        task: p.task_id,
                        cascade: p.cascade,
                        reason: p.reason,
                        remarks: None,
                    };
                    called(&service, &call.context, Request::Cancel(cancel)).await
                })
            },
        },
        Method {
            name: "tasks.copy",
            title: "Copy Task",
            summary: "Copy a task or a task tree for re-execution",
            tags: &["task", "copy"],
            params: copy::Params::declared(),
            changes: Changes::Flows,
            about: about::copy(),
            handler: |service, call| {
                boxed(async move {
                    let p = copy::Params::read(&call.params)?;
                    let copy = Copy {
                        task: p.task_id,
                        copy_children: p.copy_children,
                        parent: p.parent_id,
                    };
                    called(&service, &call.context, Request::Copy(copy)).await
                })
            },
        },
        Method {
            name: "tasks.retry",
            title: "Retry Task",
            summary: "Retry a failed task; the pending tasks that depend on it follow",
            tags: &["task", "retry"],
            params: retry::Params::declared(),
            changes: Changes::Flows,
            about: about::retry(),
            handler: |service, call| boxed(async move { webhooks::retry(&service, call).await }),
        },
    ]
}

fn streams() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "tasks.subscribe",
            title: "Subscribe to Task",
            summary: "Show a task, then stream the events of its flow until it stops running",
            tags: &["task", "read", "stream"],
            params: subscribe::Params::declared(),
            changes: Changes::Nothing,
            about: about::subscribe(),
            handler: |service, call| {
                boxed(async move {
                    let p = subscribe::Params::read(&call.params)?;
                    let subscribe = Subscribe {
                        task: p.task_id,
                        scope: p.scope,
                        behind: None,
                    };
                    subscribed(&service, &call.context, subscribe).await
                })
            },
        },
        Method {
            name: "tasks.resubscribe",
            title: "Resume Subscription",
            summary: "Resume a subscription after the last event that arrived",
            tags: &["task", "read", "stream"],
            params: resubscribe::Params::declared(),
            changes: Changes::Nothing,
            about: about::resubscribe(),
            handler: |service, call| {
                boxed(async move {
                    let p = resubscribe::Params::read(&call.params)?;
                    let subscribe = Subscribe {
                        task: p.task_id,
                        scope: p.scope,
                        behind: Some(p.last_event_id),
                    };
                    subscribed(&service, &call.context, subscribe).await
                })
            },
        },
    ]
}

async fn subscribed(
    service: &Service,
    context: &Context,
    subscribe: Subscribe,
) -> Result<Streamed, RpcError> {
    let begun = answer(service, service.subscribe(context, subscribe).await)?;
    Ok(Streamed {
        result: replies::subscribed(&begun),
        stream: begun.stream,
    })
}
