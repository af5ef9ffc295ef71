//! The results of calls of workers. A claim is written in one pass; payloads are copied as text.

use super::super::task_json::RowJson;
use super::super::text::raw;
use super::lineage::LineageJson;
use super::people::AnswersJson;
use crate::application::api::work::{
    Claimed, Claims, Drained, Ended, HeldTask, MethodView, OriginMessage, Renewed, Sibling,
    StopReason, WorkerView,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use taskledger_domain::task::Status;
use taskledger_domain::{Payload, TaskId, Timestamp};

/// A claimed task, as a worker gets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimJson<'a>(pub(crate) &'a Claimed);

struct ContextJson<'a>(&'a Claimed);
struct MessageJson<'a>(&'a OriginMessage);
struct LeaseJson<'a>(&'a Claimed);
struct ClaimsJson<'a>(&'a Claims);

impl Serialize for ClaimJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("task", &RowJson(&self.0.task))?;
        map.serialize_entry("input", &self.0.input)?;
        if let Some(lineage) = &self.0.lineage {
            map.serialize_entry("lineage", &LineageJson(lineage))?;
        }
        map.serialize_entry("context", &ContextJson(self.0))?;
        map.serialize_entry("lease", &LeaseJson(self.0))?;
        map.end()
    }
}

impl Serialize for ContextJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let claimed = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("root_task_id", &claimed.task.flow_id)?;
        map.serialize_entry("run_id", &claimed.task.run_id)?;
        map.serialize_entry("user_id", &claimed.task.owner)?;
        map.serialize_entry("deadline", &claimed.deadline)?;
        map.serialize_entry("timeout_seconds", &claimed.timeout_ms.map(seconds))?;
        if let Some(trigger) = &claimed.trigger {
            map.serialize_entry("trigger", trigger)?;
        }
        if let Some(message) = &claimed.message {
            map.serialize_entry("message", &MessageJson(message))?;
        }
        if !claimed.answers.is_empty() {
            map.serialize_entry("answers", &AnswersJson(&claimed.answers))?;
        }
        if let Some(trace) = &claimed.trace {
            map.serialize_entry("traceparent", trace)?;
        }
        map.end()
    }
}

impl Serialize for MessageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("context_id", &message.context_id)?;
        if let Some(id) = &message.message_id {
            map.serialize_entry("message_id", id)?;
        }
        if let Some(metadata) = &message.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        if !message.references.is_empty() {
            map.serialize_entry("reference_task_ids", &message.references)?;
        }
        map.end()
    }
}

impl Serialize for LeaseJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let claimed = self.0;
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("token", &claimed.lease)?;
        map.serialize_entry("attempt", &claimed.attempt)?;
        map.serialize_entry("expires_at", &claimed.expires_at)?;
        map.serialize_entry("lease_seconds", &(claimed.lease_ms / 1000))?;
        map.end()
    }
}

impl Serialize for ClaimsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct All<'a>(&'a [Claimed]);
        impl Serialize for All<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.iter().map(ClaimJson))
            }
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("claims", &All(&self.0.claims))?;
        if self.0.draining {
            map.serialize_entry("draining", &true)?;
        }
        map.end()
    }
}

/// Milliseconds as seconds, whole ones without a fraction.
fn seconds(ms: u64) -> Value {
    if ms.is_multiple_of(1000) {
        Value::from(ms / 1000)
    } else {
        Value::from(ms as f64 / 1000.0)
    }
}

/// The result of `tasks.claim`.
pub(in crate::transport::jsonrpc) fn claims(claims: &Claims) -> Box<RawValue> {
    raw(&ClaimsJson(claims))
}

/// The result of `tasks.renew`.
pub(super) fn renewed(renewed: &Renewed) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Result {
        expires_at: Timestamp,
        cancel_requested: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'static str>,
    }
    raw(&Result {
        expires_at: renewed.expires_at,
        cancel_requested: renewed.stop.is_some(),
        reason: renewed.stop.map(|reason| match reason {
            StopReason::Cancelled => "cancelled",
            StopReason::TimedOut => "timed_out",
            StopReason::Deadline => "deadline",
        }),
    })
}

/// The result of `tasks.complete`, `tasks.fail` and `tasks.release`.
pub(super) fn ended(ended: &Ended) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Result {
        task_id: TaskId,
        status: Status,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_attempt_at: Option<Timestamp>,
    }
    raw(&Result {
        task_id: ended.task,
        status: ended.status,
        next_attempt_at: ended.next_attempt_at,
    })
}

/// The result of `tasks.sibling_output`.
pub(super) fn sibling(sibling: &Sibling) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Result<'a> {
        task_id: TaskId,
        name: &'a str,
        status: Status,
        output: Option<&'a Payload>,
    }
    raw(&Result {
        task_id: sibling.task,
        name: &sibling.name,
        status: sibling.status,
        output: sibling.output.as_ref(),
    })
}

/// A method with who asks for it.
pub(in crate::transport::jsonrpc) fn method(view: &MethodView) -> Box<RawValue> {
    raw(&shown_method(view))
}

/// The result of `workers.methods`.
pub(in crate::transport::jsonrpc) fn methods(views: &[MethodView]) -> Box<RawValue> {
    let methods: Vec<_> = views.iter().map(shown_method).collect();
    raw(&json!({"methods": methods}))
}

/// The result of `workers.undeclare`.
pub(in crate::transport::jsonrpc) fn undeclared(method: &str, removed: bool) -> Box<RawValue> {
    raw(&json!({"method": method, "removed": removed}))
}

/// The result of `workers.list`.
pub(in crate::transport::jsonrpc) fn workers(views: &[WorkerView]) -> Box<RawValue> {
    let workers: Vec<_> = views.iter().map(shown_worker).collect();
    raw(&json!({"workers": workers}))
}

/// The result of `workers.drain`.
pub(in crate::transport::jsonrpc) fn drained(drained: &Drained) -> Box<RawValue> {
    raw(&json!({
        "worker": drained.worker,
        "draining": drained.draining,
        "held": drained.held,
        "present": drained.present,
    }))
}

fn shown_method(view: &MethodView) -> Value {
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("method", json!(view.method));
    put("declared", json!(view.declared.is_some()));
    if let Some(owner) = &view.owner {
        put("owner", json!(owner));
    }
    if let Some(declared) = &view.declared {
        for (name, value) in [
            (
                "description",
                declared.description.as_ref().map(|it| json!(it)),
            ),
            (
                "input_schema",
                declared.input_schema.as_ref().map(|it| json!(it)),
            ),
            (
                "output_schema",
                declared.output_schema.as_ref().map(|it| json!(it)),
            ),
            ("defaults", declared.defaults.as_ref().map(|it| json!(it))),
            ("limit", declared.limit.map(|it| json!(it))),
        ] {
            if let Some(value) = value {
                put(name, value);
            }
        }
        put("declared_by", json!(declared.declared_by));
        put("declared_at", json!(declared.declared_at));
    }
    put("workers", json!(view.workers));
    put("running", json!(view.running));
    put("waiting", json!(view.waiting));
    put("last_asked_at", json!(view.last_asked_at));
    Value::Object(shown)
}

fn shown_worker(view: &WorkerView) -> Value {
    let tasks = view.tasks.iter().map(|held: &HeldTask| {
        json!({"task_id": held.task, "attempt": held.attempt, "expires_at": held.expires_at})
    });
    let mut shown = json!({
        "worker": view.worker,
        "methods": view.methods,
        "connection": view.connection.as_str(),
        "since": view.since,
        "last_seen_at": view.last_seen_at,
        "draining": view.draining,
        "held": view.held,
        "tasks": tasks.collect::<Vec<_>>(),
    });
    if let Some(node) = view.node {
        shown["node"] = json!(node);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::task_json::tests::view;
    use taskledger_domain::testing::{START, id};
    use taskledger_domain::{LeaseId, Payload};

    fn claimed() -> Claimed {
        let view = view("work");
        Claimed {
            input: Payload::parse(r#"{"z": 1.0}"#).unwrap(),
            lineage: None,
            trigger: None,
            message: None,
            deadline: None,
            timeout_ms: Some(1500),
            trace: None,
            answers: Vec::new(),
            lease: LeaseId(id("lease").0),
            attempt: 2,
            expires_at: START,
            lease_ms: 60_000,
            task: view.row.clone(),
        }
    }

    #[test]
    fn a_claim_shows_the_task_its_input_its_context_and_its_lease() {
        let claimed = claimed();
        let text = serde_json::to_string(&ClaimJson(&claimed)).unwrap();
        assert!(
            text.contains(r#""input":{"z": 1.0},"#),
            "as it came: {text}"
        );
        let mut found: Value = serde_json::from_str(&text).unwrap();
        let view = view("work");
        let task = serde_json::to_value(super::super::super::task_json::TaskJson(&view)).unwrap();
        assert_eq!(found["task"].take(), task);
        assert_eq!(
            found["context"],
            json!({"root_task_id": id("work"), "run_id": null, "user_id": null,
                "deadline": null, "timeout_seconds": 1.5})
        );
        assert_eq!(
            found["lease"],
            json!({"token": id("lease"), "attempt": 2, "expires_at": START, "lease_seconds": 60})
        );
    }

    #[test]
    fn only_a_drained_worker_is_told_of_draining() {
        let text = |draining| {
            let none = Claims {
                draining,
                ..Claims::default()
            };
            claims(&none).get().to_owned()
        };
        assert_eq!(text(false), r#"{"claims":[]}"#);
        assert_eq!(text(true), r#"{"claims":[],"draining":true}"#);
    }
}
