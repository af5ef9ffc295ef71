//! `tasks.subscribe`: returns a task, then streams what happens in its flow.

use super::beginning::subscribed;
use crate::application::Service;
use crate::application::api::{Scope, Subscribe};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::calling::boxed;
use crate::transport::jsonrpc::reader::{Choice, Parameters, Reader, TASK_ID, choice};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::streams::{CURSOR, cursor, shown};
use crate::transport::openrpc::about::{About, Example, GROUP, group};
use crate::transport::openrpc::schema_parts::{at, object, with_optional};
use serde_json::json;
use taskledger_domain::{TaskId, Violation};

/// The task to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// A stored task, which is shown before anything is told.
    pub task_id: TaskId,
    /// Whether its neighbours are watched too.
    pub scope: Scope,
}

/// Asks for the member `scope`, which subscriptions have.
pub(super) fn scope(reader: &mut Reader<'_>) -> Scope {
    reader.with_default(
        "scope",
        SCOPE,
        Scope::Flow,
        "`flow`: all tasks of its tree; `task`: this one alone. The end of a run is sent in any case.",
    )
}

const SCOPE: Choice<Scope> = choice(
    "not a scope",
    &[("flow", Scope::Flow), ("task", Scope::Task)],
);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to show and to watch.");
        let scope = scope(&mut reader);
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                scope,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.subscribe",
        title: "Subscribe to Task",
        summary: "Show a task, then stream the events of its flow until it stops running",
        tags: &["task", "read", "stream"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let subscribe = Subscribe {
                    task: p.task_id,
                    scope: p.scope,
                    behind: None,
                };
                subscribed(&service, &call.context, subscribe).await
            })
        },
    }
}

fn about() -> About {
    let always = object(json!({"root_task_id": at("TaskId"), "cursor": cursor()}));
    About {
        description: "Shows a task, then streams the events of its flow from exactly that moment until it stops running; for a flow that never ran, until its first run has ended, or all its tasks were cancelled. Over HTTP the answer is `text/event-stream`: its first message is the JSON-RPC answer, the others are events, the last of which has `final: true`. On a socket the result has `subscription`, and the events are notifications. It stands alone: not in a batch, not without an id.",
        result: "subscribed",
        schema: with_optional(always, shown()),
        errors: &[ErrorKind::TaskNotFound, ErrorKind::QuotaExceeded],
        examples: vec![Example {
            name: "a group",
            description: "A task that has not run, with its flow.",
            params: json!({"task_id": GROUP}),
            result: json!({"task": group(), "root_task_id": GROUP, "cursor": CURSOR}),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
    use serde_json::json;

    #[test]
    fn the_whole_flow_is_watched_unless_told_otherwise() {
        let scope = |scope| {
            Params::read(&map(json!({"task_id": ID, "scope": scope})))
                .unwrap()
                .scope
        };
        assert_eq!(scope(json!(null)), Scope::Flow);
        assert_eq!(scope(json!("task")), Scope::Task);
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID, "scope": "all"})))),
            [("scope".into(), "not a scope".into())]
        );
    }
}
