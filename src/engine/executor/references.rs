//! How executors handle inputs that may refer to secrets.

use super::{ExecutorError, Job};
use crate::engine::secrets::Places;
use serde_json::{Map, Value};
use taskledger_domain::Violation;
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::violation::PathSegment;

/// Stands for a secret while inputs are checked.
const UNKNOWN_SECRET: &str = "secret";

/// What is wrong with inputs: with their references, and what `read` finds when these are texts. A reference that
/// stands at a wrong place is told as that and as nothing else.
pub(super) fn faults(
    places: &Places,
    inputs: &Map<String, Value>,
    read: impl FnOnce(&Map<String, Value>) -> Option<Vec<Violation>>,
) -> Vec<Violation> {
    let mut faults = places.check(inputs);
    let filled = places.filled(inputs, |_| Some(UNKNOWN_SECRET));
    let filled = filled.expect("there is a text for each secret");
    let more = read(&filled).into_iter().flatten();
    let more = more.filter(|fault| !faults.iter().any(|f| f.path.first() == fault.path.first()));
    let more: Vec<_> = more.collect();
    faults.extend(more);
    faults.truncate(VIOLATIONS_MAX);
    faults
}

/// The inputs of an attempt with the texts of its secrets.
///
/// # Errors
/// A secret is not there.
pub(super) fn filled(places: &Places, job: &Job) -> Result<Map<String, Value>, ExecutorError> {
    let filled = places.filled(&job.inputs, |name| job.secrets.get(name));
    filled.map_err(|name| {
        ExecutorError::new(format!("the attempt was not given the secret `{name}`"))
    })
}

/// The same, unless there is a reference where none is allowed.
///
/// # Errors
/// There is one, or a secret is not there.
pub(super) fn filled_where_allowed(
    places: &Places,
    job: &Job,
) -> Result<Map<String, Value>, ExecutorError> {
    let misplaced = places.check(&job.inputs);
    if !misplaced.is_empty() {
        return Err(ExecutorError::new(told(&misplaced)));
    }
    filled(places, job)
}

/// Faults as the text of a failed attempt.
pub(super) fn told(faults: &[Violation]) -> String {
    let one = |fault: &Violation| {
        let path: Vec<String> = fault
            .path
            .iter()
            .map(|segment| match segment {
                PathSegment::Key(key) => key.escape_debug().to_string(),
                PathSegment::Index(index) => index.to_string(),
            })
            .collect();
        let (
            path,
            Violation {
                reason, expected, ..
            },
        ) = (path.join("."), fault);
        format!("`{path}`: {reason}, expected {expected}")
    };
    let all: Vec<String> = faults.iter().map(one).collect();
    all.join("; ")
}
