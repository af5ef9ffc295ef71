//! `tasks.resubscribe`: continues a subscription where it broke off.

use super::beginning::subscribed;
use super::subscribe;
use crate::application::Service;
use crate::application::api::{Scope, Subscribe};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::calling::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader, TASK_ID, text};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::streams::{CURSOR, cursor, shown};
use crate::transport::openrpc::about::{About, Example, GROUP, group};
use crate::transport::openrpc::schema_parts::{at, object, with_optional};
use serde_json::json;
use taskledger_domain::{TaskId, Violation};

/// Characters of what may be meant as a cursor. Longer than any cursor: what is none is answered with
/// a new beginning, and not refused.
const LAST_EVENT_ID_CHARS_MAX: usize = 1024;

/// The task to watch, and the cursor to continue from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// A stored task; its flow is watched.
    pub task_id: TaskId,
    /// The id of the last event that arrived, or the `cursor` of an answer.
    pub last_event_id: String,
    /// As in `tasks.subscribe`.
    pub scope: Scope,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to watch.");
        let last_event_id = reader.required(
            "last_event_id",
            text(LAST_EVENT_ID_CHARS_MAX),
            "The `id` of the last event that arrived, or the `cursor` of an answer.",
        );
        let scope = subscribe::scope(&mut reader);
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                last_event_id: last_event_id?,
                scope,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.resubscribe",
        title: "Resume Subscription",
        summary: "Resume a subscription after the last event that arrived",
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
                    behind: Some(p.last_event_id),
                };
                subscribed(&service, &call.context, subscribe).await
            })
        },
    }
}

fn about() -> About {
    let always = object(json!({
        "root_task_id": at("TaskId"),
        "resumed": {"type": "boolean", "description": "Whether nothing is missing between `last_event_id` and the first event."},
        "cursor": cursor(),
    }));
    let over = json!({"type": "boolean", "enum": [true], "description": "The flow does not run, and its end was sent before: no event follows."});
    let mut optional = shown();
    optional["final"] = over;
    optional["reason"] = json!({
        "type": "string",
        "enum": ["malformed", "another_log", "ahead_of_log", "archived"],
        "description": "Why it is not resumed; then the task is shown, and the stream continues from there.",
    });
    About {
        description: "Resumes a stream of a flow after the last event that arrived. The answer is that of `tasks.subscribe`, without the task. A stream that cannot be resumed starts again, and says so.",
        result: "resubscribed",
        schema: with_optional(always, optional),
        errors: &[ErrorKind::TaskNotFound, ErrorKind::QuotaExceeded],
        examples: vec![Example {
            name: "an invalid cursor",
            description: "The task is shown again.",
            params: json!({"task_id": GROUP, "last_event_id": "lost"}),
            result: json!({
                "task": group(), "root_task_id": GROUP, "resumed": false, "reason": "malformed",
                "cursor": CURSOR,
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
    fn a_place_to_go_on_from_must_be_named() {
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID})))),
            [("last_event_id".into(), "missing".into())]
        );
        assert!(Params::read(&map(json!({"task_id": ID, "last_event_id": "x"}))).is_ok());
    }
}
