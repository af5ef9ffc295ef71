//! The results of `workflows.*`.

use super::super::text::raw;
use crate::application::api::RunProgress;
use crate::application::api::workflows::{
    Change, Compared, CreatedWorkflow, Diff, Document, Event, EventKind, Fault, KeptDocument,
    PhaseSchemas, Played, Report, SavedWorkflow, Version,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use taskledger_domain::flow::OVERVIEW_LISTED_MAX;

/// A fault with its place.
pub(in crate::transport::jsonrpc) fn fault(fault: &Fault) -> Value {
    let mut shown = json!({
        "error": fault.error,
        "path": fault.path,
        "line": fault.line,
        "column": fault.column,
        "reason": fault.reason,
        "suggestion": fault.suggestion,
    });
    if let Some(phase) = &fault.phase_name {
        shown["phase_name"] = Value::from(phase.as_str());
    }
    if !fault.invalid_refs.is_empty() {
        shown["invalid_refs"] = json!(fault.invalid_refs);
    }
    shown
}

fn faults(faults: &[Fault]) -> Vec<Value> {
    faults.iter().map(fault).collect()
}

/// The answer to `workflows.validate`.
pub(in crate::transport::jsonrpc) fn workflow_report(report: &Report) -> Box<RawValue> {
    let mut shown = json!({
        "valid": report.workflow.is_some(),
        "errors": faults(&report.errors),
        "warnings": faults(&report.warnings),
    });
    if let Some(workflow) = &report.workflow {
        shown["workflow"] = json!({
            "name": workflow.name,
            "version": workflow.version,
            "hash": workflow.hash,
            "phases": workflow.phases.iter().map(|phase| &phase.name).collect::<Vec<_>>(),
            "not_acted_on": workflow.not_acted_on,
        });
    }
    raw(&shown)
}

/// Those of the document and the trigger, and those of the run.
fn warnings(created: &CreatedWorkflow) -> Vec<Value> {
    let of_run = created.run_warnings.iter().map(|warning| json!(warning));
    created.warnings.iter().map(fault).chain(of_run).collect()
}

/// The answer to `workflows.create`, and with a version that to `workflows.run`.
pub(in crate::transport::jsonrpc) fn workflow(
    created: &CreatedWorkflow,
    version: Option<u32>,
) -> Box<RawValue> {
    let phases = created.phases.iter();
    let phases = phases.map(|(name, task)| {
        let status = match task.map(|task| task.status) {
            None => "skipped",
            Some(None) => "deleted",
            Some(Some(status)) => status.as_str(),
        };
        let id = task.map(|task| task.id);
        json!({"phase_name": name, "task_id": id, "status": status})
    });
    let mut shown = json!({
        "root_task_id": created.root,
        "phases": phases.collect::<Vec<_>>(),
        "warnings": warnings(created),
        "not_acted_on": created.not_acted_on,
    });
    if let Some(run) = created.run {
        shown["run_id"] = json!(run);
    }
    if let Some(version) = version {
        shown["version"] = json!(version);
    }
    raw(&shown)
}

/// The answer to `workflows.dry_run`.
pub(in crate::transport::jsonrpc) fn played(played: &Played) -> Box<RawValue> {
    raw(&json!({"steps": played.steps, "phases": played.phases}))
}

fn version(version: &Version) -> Value {
    json!({
        "name": version.name,
        "version": version.version,
        "info_version": version.info_version,
        "hash": version.hash,
        "bytes": version.bytes,
        "saved_at": version.saved_at,
        "saved_by": version.saved_by,
    })
}

fn change(change: &Change) -> Value {
    json!({
        "path": change.path,
        "change": change.kind.as_str(),
        "before": change.before,
        "after": change.after,
        "breaking": change.breaking.is_some(),
        "reason": change.breaking,
    })
}

/// Members of an answer that tell a difference.
fn with_diff(shown: &mut Value, diff: &Diff) {
    shown["changes"] = diff.changes.iter().map(change).collect();
    shown["count"] = json!(diff.count);
    shown["breaking"] = json!(diff.breaking);
}

/// The answer to `workflows.save`.
pub(in crate::transport::jsonrpc) fn saved_workflow(saved: &SavedWorkflow) -> Box<RawValue> {
    let mut shown = version(&saved.version);
    shown["created"] = json!(saved.is_new);
    match &saved.diff {
        Some(diff) => with_diff(&mut shown, diff),
        // Nothing was compared.
        None => {
            for member in ["changes", "count", "breaking"] {
                shown[member] = Value::Null;
            }
        }
    }
    shown["warnings"] = json!(faults(&saved.warnings));
    shown["not_acted_on"] = json!(saved.not_acted_on);
    raw(&shown)
}

/// The answer to `workflows.get`.
pub(in crate::transport::jsonrpc) fn kept_workflow(kept: &KeptDocument) -> Box<RawValue> {
    let mut shown = version(&kept.version);
    shown["document"] = match &kept.document {
        Document::Text(text) => Value::from(text.as_str()),
        Document::Json(object) => Value::Object(object.to_map()),
    };
    raw(&shown)
}

/// The answer to `workflows.list`.
pub(in crate::transport::jsonrpc) fn kept_workflows(
    found: &[Version],
    limit: u32,
) -> Box<RawValue> {
    let is_full = found.len() >= limit as usize;
    let last = found.last().filter(|_| is_full);
    raw(&json!({
        "workflows": found.iter().map(version).collect::<Vec<_>>(),
        "next_after": last.map(|last| &last.name),
    }))
}

/// The answer to `workflows.versions`.
pub(in crate::transport::jsonrpc) fn workflow_events(found: &[Event], limit: u32) -> Box<RawValue> {
    let one = |event: &Event| {
        let it = &event.version;
        let mut shown = json!({
            "version": it.version,
            "event": event.kind.as_str(),
            "at": it.saved_at,
            "by": it.saved_by,
            "kept": event.is_kept,
        });
        match event.kind {
            EventKind::Saved => {
                shown["info_version"] = json!(it.info_version);
                shown["hash"] = json!(it.hash);
                shown["bytes"] = json!(it.bytes);
            }
            EventKind::Deleted => {}
        }
        shown
    };
    let is_full = found.len() >= limit as usize;
    let last = found
        .last()
        .filter(|last| is_full && last.version.version > 1);
    raw(&json!({
        "versions": found.iter().map(one).collect::<Vec<_>>(),
        "next_before": last.map(|last| last.version.version),
    }))
}

/// The answer to `workflows.diff`.
pub(in crate::transport::jsonrpc) fn compared_workflows(compared: &Compared) -> Box<RawValue> {
    let mut shown = json!({"from": compared.from, "to": compared.to});
    with_diff(&mut shown, &compared.diff);
    raw(&shown)
}

/// The answer to `workflows.delete`.
pub(in crate::transport::jsonrpc) fn workflow_deleted(deleted: bool) -> Box<RawValue> {
    raw(&json!({"deleted": deleted}))
}

/// The answer to `workflows.schemas`.
pub(in crate::transport::jsonrpc) fn workflow_schemas(schemas: &[PhaseSchemas]) -> Box<RawValue> {
    let phases = schemas.iter().map(
        |it| json!({"phase_name": it.phase, "input_schema": it.input, "output_schema": it.output}),
    );
    raw(&json!({"phases": phases.collect::<Vec<_>>()}))
}

/// The answer to `workflows.progress`. spec: RFC-0024, RFC-0026 patch
pub(in crate::transport::jsonrpc) fn workflow_progress(progress: &RunProgress) -> Box<RawValue> {
    let suspended = progress.suspended.iter().map(|it| {
        json!({
            "phase_name": it.name,
            "task_id": it.task,
            "suspension_id": it.waits.suspension,
            "suspended_since": it.waits.since,
            "expires_at": it.waits.expires_at,
        })
    });
    let lacking = progress.lacking.iter().map(|it| {
        json!({
            "phase_name": it.name,
            "task_id": it.task,
            "error": "UnresolvableInputError",
            "unresolvable_refs": it.refs,
            "message": format!("no value for {}", it.refs.join(", ")),
        })
    });
    let counts = &progress.counts;
    let mut shown = json!({
        "root_task_id": progress.task,
        "status": progress.status,
        "progress": progress.progress,
        "counts": {
            "total": counts.total,
            "pending": counts.pending,
            "ready": counts.ready,
            "in_progress": counts.in_progress,
            "suspended": counts.suspended,
            "completed": counts.completed,
            "failed": counts.failed,
            "cancelled": counts.cancelled,
        },
        "suspended_phases": suspended.collect::<Vec<_>>(),
        "more_suspended": progress.more_suspended,
        "unresolvable_phases": lacking.collect::<Vec<_>>(),
        "more_unresolvable": progress.more_lacking,
    });
    if let Some(skipped) = progress.skipped {
        shown["skipped"] = json!(skipped);
    }
    if let Some(of) = &progress.run_of {
        shown["workflow"] = json!({
            "name": of.name,
            "version": of.version,
            "hash": of.hash,
            "saved_version": of.saved_version,
        });
        let listed: Vec<&String> = of.skipped.iter().take(OVERVIEW_LISTED_MAX).collect();
        shown["more_skipped"] = json!(of.skipped.len() - listed.len());
        shown["skipped_phases"] = json!(listed);
    }
    raw(&shown)
}
