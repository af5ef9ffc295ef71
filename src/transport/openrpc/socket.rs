//! The methods and notifications that exist only on a socket.

use super::parameter::param;
use super::schemas::{at, object, with_optional};
use crate::subscription::notice::Kind;
use crate::transport::jsonrpc::reader::{Parameters, Question};
use crate::transport::jsonrpc::stream_request::WORK;
use crate::transport::ws::{PATH, RESET, Subscribe, Unsubscribe, Work};
use serde_json::{Value, json};

/// The member `x-socket` of the document. Its methods cannot be among the others: they are answered
/// nowhere else.
pub(super) fn described() -> Value {
    json!({
        "path": PATH,
        "description": "A WebSocket that takes every method of this document, and these. If the answer of a call starts a stream, its result has `subscription`.",
        "methods": [
            method(
                "subscribe",
                "Send events from a position of the log, until `unsubscribe`",
                &Subscribe::questions(),
                &object(json!({"subscription": name(), "cursor": cursor()})),
            ),
            method(
                "unsubscribe",
                "End a subscription of this socket",
                &Unsubscribe::questions(),
                &object(json!({"success": {"type": "boolean", "enum": [true]}})),
            ),
            method(
                WORK,
                "Give the worker at this socket tasks of some methods, as long as it has room for them, until `unsubscribe`. What it holds then stays held. It ends each with a call, here or over POST: messages on a socket have at most 64 KiB, so larger outputs of `tasks.complete` go over POST",
                &Work::questions(),
                &object(json!({"subscription": name()})),
            ),
        ],
        "notifications": [
            notification(
                "event",
                "An event; or, with `reset`, the subscription does not start at the requested cursor.",
                json!({"subscription": name(), "event": {"type": "string", "enum": events()}, "id": cursor(), "data": {"type": "object"}}),
            ),
            notification(
                "place",
                "A newer cursor: no event up to it matched this subscription, which may resume after it.",
                json!({"subscription": name(), "id": cursor()}),
            ),
            given(),
            notification(
                "end",
                "The subscription has ended by itself.",
                json!({"subscription": name()}),
            ),
        ],
    })
}

/// The notification `work`, which says one of three things.
fn given() -> Value {
    let cancel = object(json!({
        "task_id": at("TaskId"),
        "lease": {"type": "string", "minLength": 1, "description": "The token of the lease."},
        "reason": {"type": "string", "enum": ["cancelled", "timed_out", "deadline", "lost"]},
    }));
    let subscription = || object(json!({"subscription": name()}));
    let one_of = [
        (
            "claim",
            at("Claim"),
            "A task for the worker, under a lease.",
        ),
        (
            "cancel",
            cancel,
            "An attempt was cancelled or lost: the worker stops, and further calls about it have no effect.",
        ),
        (
            "draining",
            json!({"type": "boolean", "enum": [true]}),
            "An operator drains the worker: it gets no more work, and should end what it holds and then itself.",
        ),
    ];
    let params = one_of.map(|(member, schema, description)| {
        let mut params = with_optional(subscription(), json!({ member: schema }));
        params["required"] = json!(["subscription", member]);
        params["description"] = json!(description);
        params
    });
    json!({
        "name": WORK,
        "description": "For a worker: a task, that one was taken back, or that it is drained.",
        "params": {"anyOf": params},
    })
}

fn name() -> Value {
    json!({"type": "string", "description": "Names the subscription on this socket."})
}

fn cursor() -> Value {
    json!({"type": "string", "minLength": 1, "description": "A cursor, for `last_event_id`."})
}

fn events() -> Vec<&'static str> {
    let told = Kind::ALL.into_iter().map(Kind::as_str);
    told.chain([RESET]).collect()
}

fn method(name: &str, summary: &str, params: &[Question], result: &Value) -> Value {
    json!({
        "name": name,
        "summary": summary,
        "paramStructure": "by-name",
        "params": params.iter().map(param).collect::<Vec<_>>(),
        "result": {"name": "result", "required": true, "schema": result},
    })
}

fn notification(name: &str, description: &str, params: Value) -> Value {
    json!({"name": name, "description": description, "params": object(params)})
}
