//! What is said of workflow documents.

use super::super::text::raw;
use crate::application::api::workflows::{CreatedWorkflow, Fault, Report};
use serde_json::value::RawValue;
use serde_json::{Value, json};

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

/// The answer to `workflows.create`.
pub(in crate::transport::jsonrpc) fn workflow(created: &CreatedWorkflow) -> Box<RawValue> {
    let phases = created.phases.iter();
    let phases = phases
        .map(|(name, task)| json!({"phase_name": name, "task_id": task, "status": "pending"}));
    let mut shown = json!({
        "root_task_id": created.root,
        "phases": phases.collect::<Vec<_>>(),
        "warnings": faults(&created.warnings),
        "not_acted_on": created.not_acted_on,
    });
    if let Some(run) = created.run {
        shown["run_id"] = json!(run);
    }
    raw(&shown)
}
