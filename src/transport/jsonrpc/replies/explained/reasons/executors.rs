//! Reasons that concern methods without an executor.

use super::super::steps::Steps;
use super::{Said, Speaker, said};
use serde_json::json;
use taskledger_domain::Timestamp;
use taskledger_domain::flow::Refusal;
use taskledger_domain::flow::explain::Again;

/// A method that no executor has, of a task that is to run.
pub(super) struct Unknown<'a> {
    method: &'a str,
    /// Whether it is the method of the task that is explained.
    pub(super) is_own: bool,
    /// The executor that was probably meant.
    pub(super) meant: Option<&'a str>,
}

impl Unknown<'_> {
    /// `; did you mean ..?`, if that is known.
    fn question(&self) -> String {
        let question = |meant: &str| format!("; did you mean `{meant}`?");
        self.meant.map_or_else(String::new, question)
    }
}

impl Speaker<'_> {
    /// The method for which the server would refuse to execute the task.
    pub(super) fn unknown<'s>(&'s self, execute: &'s Again) -> Option<Unknown<'s>> {
        let Again::Refused(Refusal::ExecutorsNotFound(unknown)) = execute else {
            return None;
        };
        let own = unknown.iter().find(|it| it.task == self.e.task.id);
        let first = own.or_else(|| unknown.first())?;
        Some(Unknown {
            method: &first.method,
            is_own: own.is_some(),
            meant: self.meant_by(&first.method),
        })
    }

    fn meant_by(&self, method: &str) -> Option<&str> {
        self.executors.and_then(|known| known.meant_by(method))
    }

    /// Says that no executor has the method, which keeps the task from being executed.
    pub(super) fn add_unknown(&self, said: &mut Said, unknown: &Unknown<'_>) {
        let whose = match unknown.is_own {
            true => "its method",
            false => "the method of a task below it,",
        };
        let (method, question) = (unknown.method, unknown.question());
        said.message += &format!(", and no executor has {whose} `{method}`{question}");
        let mut add = |name: &str, value: &str| said.details.insert(name.to_owned(), json!(value));
        add("unknown_executor", unknown.method);
        if let Some(meant) = unknown.meant {
            add("meant", meant);
        }
    }

    /// The reason that a task of a run waits for an executor that does not exist.
    pub(super) fn executor(&self, until: Timestamp) -> Said {
        let method = self.method();
        let unknown = Unknown {
            method,
            is_own: true,
            meant: self.meant_by(method),
        };
        let question = unknown.question();
        let mut said = said(
            "waits_for_executor",
            format!("waits for an executor `{method}` until {until}, then it fails{question}"),
            json!({"executor": method, "until": until}),
        );
        if let Some(meant) = unknown.meant {
            said.details.insert("meant".to_owned(), json!(meant));
            let next = self.named(Steps::new(), Some(meant)).all();
            said.details.insert("next_steps".to_owned(), next);
        }
        said
    }

    /// What can be done besides, if a name was probably misspelt.
    pub(super) fn named(&self, steps: Steps, meant: Option<&str>) -> Steps {
        let Some(meant) = meant else {
            return steps;
        };
        let why = format!("name the executor `{meant}` in its `schemas.method`");
        steps.now("tasks.update", json!({"task_id": self.e.task.id}), &why)
    }
}
