//! `tasks.subscribe`: a task, then what happens in its flow.

use super::super::reader::{Choice, Parameters, Reader, TASK_ID, choice};
use crate::application::api::Scope;
use taskledger_domain::{TaskId, Violation};

/// Whom to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// A stored task, which is shown before anything is told.
    pub task_id: TaskId,
    /// Whether its neighbours are watched too.
    pub scope: Scope,
}

/// Asks for the member `scope`, which subscriptions have.
pub(super) fn scope(reader: &mut Reader<'_>) -> Scope {
    reader.with_default(
        "scope",
        SCOPE,
        Scope::Flow,
        "`flow`: all tasks of its tree; `task`: this one alone. The end of a run is sent in any case.",
    )
}

const SCOPE: Choice<Scope> = choice(
    "not a scope",
    &[("flow", Scope::Flow), ("task", Scope::Task)],
);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to show and to watch.");
        let scope = scope(&mut reader);
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                scope,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_whole_flow_is_watched_unless_told_otherwise() {
        let scope = |scope| {
            Params::read(&map(json!({"task_id": ID, "scope": scope})))
                .unwrap()
                .scope
        };
        assert_eq!(scope(json!(null)), Scope::Flow);
        assert_eq!(scope(json!("task")), Scope::Task);
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID, "scope": "all"})))),
            [("scope".into(), "not a scope".into())]
        );
    }
}
