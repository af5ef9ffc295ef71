//! The descriptions of methods beyond their parameters: what they do, answer and refuse, with examples that can be sent
//! as they stand. A method says it in its own file (`jsonrpc/methods/`); here is what several of them show.
//!
//! The examples name tasks that [`set_up`] creates: callers may choose ids, so nothing in them has
//! to be replaced. Every example is run by a test, by name and by position.

mod method;
pub(in crate::transport) mod past;
pub mod people;
pub(in crate::transport) mod schedules;
pub(in crate::transport) mod secrets;
pub(in crate::transport) mod streams;
pub(in crate::transport) mod system;
pub(in crate::transport) mod tasks;
pub(in crate::transport) mod tokens;
pub(in crate::transport) mod webhooks;
pub mod work;
pub(in crate::transport) mod workflows;

pub use system::discover;

pub use method::{About, Example};
pub(in crate::transport) use method::{
    COUNT, FAILING, FETCH, GROUP, MINTED, MINTED_TOO, RUN, TIME,
};
use serde_json::{Value, json};

/// The calls after which every example can be sent, once each.
#[must_use]
pub fn set_up() -> Value {
    let [declared, printed, bound] = work::set_up();
    json!([
        {"method": "tasks.create", "params": {
            "id": GROUP, "name": "report", "user_id": "user-123",
            "children": [
                {"id": FETCH, "name": "fetch", "schemas": {"method": "echo_executor"}, "inputs": {"text": "to be or not"}},
                {"id": COUNT, "name": "count", "schemas": {"method": "aggregate_results_executor"}, "dependencies": [{"id": FETCH}]},
            ],
        }},
        {"method": "tasks.execute", "params": {
            "tasks": [{
                "id": FAILING, "name": "failing", "schemas": {"method": "sleep_executor"},
                "inputs": {"duration_ms": 60_000}, "params": {"timeout_seconds": 0.001},
            }],
        }},
        {"method": "webhooks.create", "params": {
            "id": webhooks::HOOK, "url": "https://receiver.example.com/hook", "description": "for the examples",
        }},
        {"method": "webhooks.test", "params": {"id": webhooks::HOOK}},
        {"method": "tokens.create", "params": {
            "name": "ci", "kind": "service", "scopes": ["tasks:read", "tasks:run"], "note": "for the examples",
            "id": tokens::TOKEN,
        }},
        {"method": "workflows.save", "params": {"document": workflows::DOCUMENT}},
        {"method": "schedules.create", "params": {
            "name": schedules::NAME, "cron": "0 2 * * *", "time_zone": "Europe/Berlin",
            "workflow": {"name": "Quarterly report", "inputs": {"quarter": "2026-Q1"}},
        }},
        {"method": "secrets.set", "params": {"name": secrets::NAME, "value": "an-example-of-a-secret"}},
        declared,
        printed,
        bound,
    ])
}

/// The group of [`set_up`] as it is shown before anything ran.
pub(in crate::transport) fn group() -> Value {
    task(GROUP, Value::Null, "report", Value::Null)
}

/// Its first task.
pub(in crate::transport) fn fetch() -> Value {
    let mut task = task(
        FETCH,
        json!(GROUP),
        "fetch",
        json!({"method": "echo_executor"}),
    );
    task["inputs"] = json!({"text": "to be or not"});
    task
}

/// Its second task.
pub(in crate::transport) fn count() -> Value {
    let schemas = json!({"method": "aggregate_results_executor"});
    let mut task = task(COUNT, json!(GROUP), "count", schemas);
    task["dependencies"] = json!([{"id": FETCH, "required": true}]);
    task
}

/// An answer with the moment that it was asked for with.
pub(in crate::transport) fn with_as_of(mut answer: Value) -> Value {
    answer["as_of"] = json!({"position": 3, "time": "2026-01-15T10:30:00.000000Z"});
    answer
}

fn task(id: &str, parent: Value, name: &str, schemas: Value) -> Value {
    const CREATED: &str = "2026-01-15T10:30:00.000000Z";
    json!({
        "id": id, "parent_id": parent, "user_id": "user-123", "name": name, "status": "pending",
        "priority": 2, "inputs": {}, "schemas": schemas, "params": null, "result": null,
        "error": null, "dependencies": [], "progress": 0.0, "created_at": CREATED,
        "started_at": null, "updated_at": CREATED, "completed_at": null,
        "root_task_id": GROUP, "attempt": 0,
    })
}
