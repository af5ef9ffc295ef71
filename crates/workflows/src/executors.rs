//! The inputs that built-in executors require: a phase that is assigned to one and lacks them fails in every run. The
//! crate knows no executors, so this is a list by name; one that is not listed is not checked.

use crate::members::Members;

/// Inputs that executors require, by the names under which they are called.
const REQUIRED: [(&str, &str); 5] = [
    ("approval_executor", "question"),
    ("command_executor", "program"),
    ("http_executor", "url"),
    ("rest_executor", "url"),
    ("sleep_executor", "duration_ms"),
];

/// Reports inputs that a phase lacks, wherever their values come from.
pub(crate) fn check(phase: &Members<'_>, assign: &str) {
    let inputs = phase.get("inputs");
    let entries = match inputs.map(|inputs| inputs.value.entries()) {
        // What is no map is told elsewhere.
        Some(None) => return,
        Some(Some(entries)) => entries,
        None => &[],
    };
    let required = REQUIRED.iter().filter(|(name, _)| *name == assign);
    for (executor, key) in required {
        if entries.iter().any(|entry| entry.key == *key) {
            continue;
        }
        let at = inputs.or_else(|| phase.get("assign"));
        let at = at.and_then(|entry| entry.at);
        let path = phase.path.key("inputs").key(key);
        let reason = format!("`{executor}` needs the input `{key}`: without it the phase fails");
        let near = phase
            .faults
            .meant(key, entries.iter().map(|entry| entry.key.as_str()));
        let suggestion = match near {
            Some(near) => format!("rename `{near}` to `{key}`"),
            None => {
                format!("add `{key}` to `inputs`, from `$initial_state`, `$trigger` or a phase")
            }
        };
        phase
            .faults
            .lax(phase.fault(&path, at, reason).suggest(Some(suggestion)));
    }
}
