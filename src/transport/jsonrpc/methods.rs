//! The one method table: what each method is called, reads, and asks of the application.

mod calling;
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
use super::params::{
    cancel, children, copy, create, delete, events, execute, explain, get, history, list,
    resubscribe, retry, subscribe, tree, update,
};
use super::reader::Parameters;
use super::replies;
use super::task_json::{PageJson, TaskJson, ThenJson, WithInputJson};
use super::text::{Text, raw};
use super::tree_json::{ChildrenJson, TreeJson};
use crate::application::api::Access;
use crate::application::api::views::{ListCursor as Cursor, ListFilter, ListStart as Start};
use crate::application::api::{Cancel, Copy, Delete, Request, Subscribe, Update};
use crate::application::{Context, Service};
use crate::runtime::maybe_block_in_place;
use crate::transport::openrpc::about;
pub(super) use calling::answer;
use calling::{boxed, called, listed};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use taskledger_domain::violation::Violation;

/// All methods, in the order in which the protocol lists them.
#[must_use]
pub fn table() -> Vec<Method<Service>> {
    let mut methods = tasks();
    methods.extend(queries());
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
            params: create::Params::questions(),
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
            params: update::Params::questions(),
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
            params: delete::Params::questions(),
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
            params: execute::Params::questions(),
            changes: Changes::Flows,
            about: about::execute(),
            handler: |service, call| boxed(async move { webhooks::execute(&service, call).await }),
        },
        Method {
            name: "tasks.cancel",
            title: "Cancel Task",
            summary: "Cancel a pending or running task",
            tags: &["task", "cancel"],
            params: cancel::Params::questions(),
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
            params: copy::Params::questions(),
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
            params: retry::Params::questions(),
            changes: Changes::Flows,
            about: about::retry(),
            handler: |service, call| boxed(async move { webhooks::retry(&service, call).await }),
        },
    ]
}

fn queries() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "tasks.get",
            title: "Get Task",
            summary: "Show a task, now or as it was",
            tags: &["task", "read"],
            params: get::Params::questions(),
            changes: Changes::Nothing,
            about: about::get(),
            handler: |service, call| {
                boxed(async move {
                    let p = get::Params::read(&call.params)?;
                    match p.as_of {
                        None if p.include_input => {
                            let found =
                                service.get_with_input(&call.context, p.task_id, p.consistency);
                            let found = answer(&service, found.await);
                            found
                                .map(|(task, lineage)| raw(&WithInputJson(&task, lineage.as_ref())))
                        }
                        None => {
                            let found = service.get(&call.context, p.task_id, p.consistency).await;
                            answer(&service, found).map(|task| raw(&TaskJson(&task)))
                        }
                        Some(at) => {
                            let found = service.get_as_of(&call.context, p.task_id, at).await;
                            answer(&service, found).map(|then| raw(&ThenJson(&then)))
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
            handler: |service, call| boxed(async move { list_tasks(&service, &call).await }),
        },
        Method {
            name: "tasks.tree",
            title: "Get Task Tree",
            summary: "Show a task with all its descendants, now or as they were",
            tags: &["task", "read"],
            params: tree::Params::questions(),
            changes: Changes::Nothing,
            about: about::tree(),
            handler: |service, call| {
                boxed(async move {
                    let p = tree::Params::read(&call.params)?;
                    let json = TreeJson::default();
                    let found = match p.as_of {
                        None => {
                            let tree = service.tree(&call.context, p.task_id, p.consistency, json);
                            tree.await
                        }
                        Some(at) => {
                            let tree = service.tree_as_of(&call.context, p.task_id, at, json);
                            tree.await
                        }
                    };
                    answer(&service, found).map(Text::from)
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
            handler: |service, call| {
                boxed(async move {
                    let p = children::Params::read(&call.params)?;
                    let json = ChildrenJson::default();
                    let found = service.children(&call.context, p.parent_id, p.consistency, json);
                    answer(&service, found.await).map(Text::from)
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
            handler: |service, call| {
                boxed(async move {
                    let history = history::Params::read(&call.params)?.query()?;
                    called(&service, &call.context, Request::History(history)).await
                })
            },
        },
        Method {
            name: "events.query",
            title: "Query Events",
            summary: "Search the events of all flows by time, actor, type, flow and task",
            tags: &["read", "history", "audit"],
            params: events::Params::questions(),
            changes: Changes::Nothing,
            about: about::events(),
            handler: |service, call| {
                boxed(async move {
                    let query = events::Params::read(&call.params)?.query()?;
                    let found = service.events(&call.context, query).await;
                    answer(&service, found).map(|page| replies::events_page(&page))
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
            handler: |service, call| {
                boxed(async move {
                    let p = explain::Params::read(&call.params)?;
                    called(&service, &call.context, Request::Explain(p.task_id)).await
                })
            },
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
            params: subscribe::Params::questions(),
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
            params: resubscribe::Params::questions(),
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

async fn list_tasks(service: &Service, call: &Call) -> Result<Box<RawValue>, RpcError> {
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
        owner: None,
        user_id: p.user_id.map(Arc::from),
        root_only: p.root_only,
        suspended: p.suspended,
        parent_id: p.parent_id,
        name: p.name.map(Arc::from),
        priority: p.priority,
        created_after: p.created_after,
        created_before: p.created_before,
        ids: p.ids,
        labels: p.labels,
    };
    let found = service.list(
        &call.context,
        filter,
        p.order,
        start,
        p.limit,
        p.consistency,
    );
    answer(service, found.await).map(|page| raw(&PageJson(&page)))
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
