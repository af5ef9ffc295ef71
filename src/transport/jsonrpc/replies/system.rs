//! The results of `system.health`, `system.executors` and `system.rebuild`.

use crate::application::api::{Check, Draining, ExecutorView, Health, NodeHealth, Rebuild};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use taskledger_domain::Position;

/// `system.health`: checks and figures. `status` is `ok` or `degraded`.
pub(in crate::transport::jsonrpc) fn health(health: &Health) -> Box<RawValue> {
    let slots = health.slots.iter().map(|slots| {
        // A method that workers claim may have no limit.
        let limit = (slots.limit < usize::MAX).then_some(slots.limit);
        let usage = json!({"running": slots.running, "limit": limit});
        (slots.executor.clone(), usage)
    });
    let slots: serde_json::Map<String, Value> = slots.collect();
    super::raw(&json!({
        "status": if health.is_ok() { "ok" } else { "degraded" },
        "version": health.version,
        "time": health.time,
        "checks": health.checks.iter().map(check).collect::<Vec<_>>(),
        "log": {"head": health.head, "commits": health.commits},
        "projections": {
            "checkpoint": health.checkpoint,
            "lag": health.head.saturating_sub(health.checkpoint),
            "rebuild": health.rebuild.as_ref().map(rebuild),
        },
        "flows": {"resident": health.resident_flows, "idle_bytes": health.idle_bytes},
        "executors": slots,
        "streams": {"watchers": health.watchers},
        "webhooks": {
            "attempts": health.deliveries.attempts,
            "delivered": health.deliveries.delivered,
            "failed": health.deliveries.failed,
            "dead": health.deliveries.dead,
            "open_breakers": health.deliveries.open_breakers,
        },
        "time_zones": {
            "edition": health.zones.edition,
            "source": health.zones.source,
            "other_editions": health.zones.other_editions,
        },
        "node": health.node.as_ref().map(node),
    }))
}

fn check(check: &Check) -> Value {
    json!({"name": check.name, "ok": check.ok, "detail": check.detail})
}

fn rebuild(rebuild: &Rebuild) -> Value {
    match rebuild {
        Rebuild::Running { position, of } => {
            json!({"state": "running", "position": position, "of": of})
        }
        Rebuild::Done { position } => json!({"state": "done", "position": position}),
        Rebuild::Failed { reason } => json!({"state": "failed", "reason": reason}),
    }
}

/// This server among those that share the log.
fn node(node: &NodeHealth) -> Value {
    let share = |share: &crate::application::api::NodeShare| json!({"id": share.id, "url": share.url, "partitions": share.partitions});
    json!({
        "id": node.id,
        "partitions": node.partitions,
        "folds_read_models": node.folds_read_models,
        "alive": node.alive.iter().map(share).collect::<Vec<_>>(),
    })
}

/// `system.rebuild`: it has begun, and will contain the log up to `position` at least.
pub(in crate::transport::jsonrpc) fn rebuild_started(position: Position) -> Box<RawValue> {
    super::raw(&json!({"started": true, "position": position}))
}

/// `system.drain`.
pub(in crate::transport::jsonrpc) fn draining(draining: &Draining) -> Box<RawValue> {
    super::raw(
        &json!({"draining": draining.is_draining, "was_draining": draining.was_draining,
        "stopping": draining.is_stopping, "running": draining.running}),
    )
}

/// `system.executors`, by name.
pub(in crate::transport::jsonrpc) fn executors(executors: &[ExecutorView]) -> Box<RawValue> {
    let view = |it: &ExecutorView| {
        let mut shown = json!({
            "name": it.name,
            "aliases": it.aliases,
            "summary": it.summary,
            "idempotent": it.idempotent,
            "pure": it.pure,
            "input_schema": it.input_schema.as_ref().map(taskledger_domain::Payload::to_map),
            "params": it.params,
            "limit": it.limit,
        });
        if it.remote {
            shown["remote"] = true.into();
        }
        shown
    };
    super::raw(&json!({"executors": executors.iter().map(view).collect::<Vec<_>>()}))
}
