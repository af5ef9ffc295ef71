//! Bytes as the text of a workflow document.
//!
//! Whatever the text, there is a report: bounded, in the order of the document, and with a workflow exactly when there
//! are no errors. A workflow gives tasks that the domain takes, and can be played. The same document as a value is
//! judged alike.

use serde_json::{Map, Value};
use taskledger_domain::task::call::parse_tasks;
use taskledger_workflows::{Fault, Report, Workflow, limits, read, read_json};

/// Bytes of a path.
const PATH_BYTES_MAX: usize = 2048;
/// Bytes of a reason: a short sentence for each input of a phase.
const REASON_BYTES_MAX: usize = 512 * 1024;
/// Bytes of a document that is read as a value too, so that its size cannot decide.
const VALUE_BYTES_MAX: usize = 100_000;

/// Reads `bytes` as a document.
///
/// # Panics
/// When a claim does not hold.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let lines = text.split(['\n', '\r']).count();
    let (lax, strict) = (read(text, false), read(text, true));
    for report in [&lax, &strict] {
        consistent(report, Some(lines));
    }
    assert!(strict.warnings.len() <= lax.warnings.len());
    assert!(strict.errors.len() >= lax.errors.len());
    if let (Some(lax), Some(strict)) = (&lax.workflow, &strict.workflow) {
        assert_eq!(lax, strict, "strictness adds errors and changes nothing");
    }
    if let Some(workflow) = &lax.workflow {
        playable(workflow);
    }
    if text.len() <= VALUE_BYTES_MAX
        && let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(text)
    {
        as_value(&value);
    }
}

fn consistent(report: &Report, lines: Option<usize>) {
    assert_eq!(report.workflow.is_some(), report.errors.is_empty());
    for faults in [&report.errors, &report.warnings] {
        assert!(faults.len() <= limits::FAULTS_MAX + 1);
        let place = |fault: &Fault| Some((fault.line?, fault.column?));
        let places: Vec<_> = faults.iter().filter_map(place).collect();
        assert!(places.is_sorted(), "{places:?}");
        for fault in faults {
            assert!(fault.path.len() <= PATH_BYTES_MAX, "{fault:?}");
            assert!(
                (1..=REASON_BYTES_MAX).contains(&fault.reason.len()),
                "{fault:?}"
            );
            let line = fault.line.map_or(0, |line| line as usize);
            // The end of a text is behind its last line.
            assert!(lines.is_none_or(|lines| line <= lines + 1), "{fault:?}");
        }
    }
}

/// A workflow gives tasks, a run of it begins, and what it says of itself does not change.
fn playable(workflow: &Workflow) {
    // A trigger that the document needs and that is not given is named.
    let tasks = match workflow.tasks(&Map::new(), None) {
        Ok(tasks) => tasks,
        Err(taskledger_workflows::UnfitTrigger::Lacking(lacking)) => {
            assert!(!lacking.is_empty());
            return;
        }
        Err(other) => panic!("there is no trigger that could not fit: {other:?}"),
    };
    assert_eq!(tasks.len(), workflow.phases.len() + 1);
    assert!(parse_tasks(&Value::Array(tasks)).is_ok());
    assert_eq!(workflow.hash.len(), 64);
    let outputs = workflow.phases.iter().map(|phase| {
        let keys = phase.outputs.iter().flat_map(Map::keys);
        let output: Map<String, Value> = keys.map(|key| (key.clone(), Value::from(1))).collect();
        (phase.name.clone(), Value::Object(output))
    });
    let outputs: Map<String, Value> = outputs.collect();
    if let Ok(played) = workflow.play(&Map::new(), &outputs) {
        assert_eq!(played.phases.len(), workflow.phases.len());
        assert!(!played.steps.is_empty(), "some phase depends on none");
    }
}

fn as_value(value: &Value) {
    let (by_value, by_text) = (read_json(value, false), read(&value.to_string(), false));
    consistent(&by_value, None);
    let told = |report: &Report| {
        let faults = report.errors.iter();
        let mut told: Vec<_> = faults.map(|f| (f.path.clone(), f.reason.clone())).collect();
        told.sort();
        told
    };
    if by_value.errors.len() <= limits::FAULTS_MAX {
        assert_eq!(told(&by_value), told(&by_text));
    }
    assert_eq!(by_value.workflow, by_text.workflow);
}
