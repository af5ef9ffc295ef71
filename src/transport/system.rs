//! `system.health`, `system.executors` and `system.rebuild`: what the server says of itself.

use super::http::{Check, Readiness};
use super::jsonrpc::methods::Context;
use crate::application::LAG_EVENTS_MAX;
use crate::application::ownership::Node;
use crate::subscription::rebuild::Status;
use crate::subscription::runner::State;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::Position;

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("JSON can always be written")
}

/// `system.health`: checks and figures. `status` is `ok` or `degraded`.
pub async fn health(context: &Context) -> Box<RawValue> {
    let checks = checks(context).await;
    let ok = checks.iter().all(|c| c.ok);
    let (flows, idle_bytes) = context.app.flows.resident();
    let head = *context.app.store.watch().borrow();
    let checkpoint = context.app.projections.checkpoint();
    let slots: serde_json::Map<String, Value> = context
        .app
        .flows
        .slots()
        .usage()
        .into_iter()
        .map(|(name, taken, limit)| (name, json!({"running": taken, "limit": limit})))
        .collect();
    raw(&json!({
        "status": if ok { "ok" } else { "degraded" },
        "version": env!("CARGO_PKG_VERSION"),
        "time": context.app.clock.now(),
        "checks": checks,
        "log": {"head": head, "commits": context.app.store.commits()},
        "projections": {"checkpoint": checkpoint, "lag": head.saturating_sub(checkpoint), "rebuild": rebuild(context)},
        "flows": {"resident": flows, "idle_bytes": idle_bytes},
        "executors": slots,
        "streams": {"watchers": context.app.live.watchers()},
        "webhooks": webhooks(context),
        "node": node(context),
    }))
}

/// What this server has sent since it began.
fn webhooks(context: &Context) -> Value {
    let counts = context.deliveries.counts();
    json!({
        "attempts": counts.attempts,
        "delivered": counts.delivered,
        "failed": counts.failed,
        "dead": counts.dead,
        "open_breakers": counts.open_breakers,
    })
}

/// This server among those that share the log; null when it is alone.
fn node(context: &Context) -> Value {
    let Some(census) = context.app.flows.ownership().census() else {
        return Value::Null;
    };
    let held = |(node, partitions): &(Arc<Node>, usize)| json!({"id": node.id, "url": node.url, "partitions": partitions});
    json!({
        "id": census.me,
        "partitions": census.partitions,
        "folds_read_models": census.folds,
        "alive": census.nodes.iter().map(held).collect::<Vec<_>>(),
    })
}

/// How the last rebuild stands; null when there was none since the start.
fn rebuild(context: &Context) -> Value {
    // Filling empty rows is one too, which nobody asked for.
    if let State::Filling { position, of } = context.app.projections.state() {
        return json!({"state": "running", "position": position, "of": of});
    }
    match context.app.rebuilds.status() {
        None => Value::Null,
        Some(Status::Running { position, of }) => {
            json!({"state": "running", "position": position, "of": of})
        }
        Some(Status::Done { position }) => json!({"state": "done", "position": position}),
        Some(Status::Failed { reason }) => json!({"state": "failed", "reason": reason}),
    }
}

/// `system.rebuild`: it has begun, and will contain the log up to `position` at least.
#[must_use]
pub fn rebuild_started(position: Position) -> Box<RawValue> {
    raw(&json!({"started": true, "position": position}))
}

/// `system.executors`, by name.
#[must_use]
pub fn executors(context: &Context) -> Box<RawValue> {
    let list: Vec<Value> = context
        .catalog
        .newest()
        .built_in()
        .map(|registered| {
            let d = registered.description();
            json!({
                "name": d.name,
                "aliases": d.aliases,
                "summary": d.summary,
                "idempotent": d.idempotent,
                "pure": d.pure,
                "input_schema": d.input_schema,
                "params": registered.params(),
                "limit": registered.limit(),
            })
        })
        .collect();
    raw(&json!({"executors": list}))
}

async fn checks(context: &Context) -> Vec<Check> {
    let log = match context.app.store.head().await {
        Ok(head) => Check {
            name: "log",
            ok: true,
            detail: format!("{head} events"),
        },
        Err(error) => Check {
            name: "log",
            ok: false,
            detail: error.to_string(),
        },
    };
    vec![log, projections(context)]
}

/// Readiness for load balancers, from the same checks.
#[derive(Debug)]
pub struct Ready(pub Arc<Context>);

impl Readiness for Ready {
    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        checks(&self.0).boxed()
    }
}

fn projections(context: &Context) -> Check {
    let at = context.app.projections.checkpoint();
    let (ok, detail) = match context.app.projections.state() {
        State::Running => match context.app.projections.lag() {
            lag if lag > LAG_EVENTS_MAX => (
                false,
                format!("at {at}, {lag} events behind: commands wait"),
            ),
            _ => (true, format!("at {at}")),
        },
        State::Filling { position, of } => (false, format!("being filled, at {position} of {of}")),
        State::Retrying { reason } => (false, format!("at {at}, trying again: {reason}")),
        State::Failed { position, reason } => {
            (false, format!("stopped before {position}: {reason}"))
        }
    };
    Check {
        name: "projections",
        ok,
        detail,
    }
}
