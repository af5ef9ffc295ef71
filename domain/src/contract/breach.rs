//! A broken contract, as callers see it: in answers, in histories and in notices, with the same members everywhere.
//! spec: I/O contracts / 4, RFC-0026 patch

use super::OutputFault;
use crate::task::Status;
use crate::{SuspensionId, TaskId, Timestamp, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Bytes of a sentence that names many things; all of them are beside it.
const MESSAGE_BYTES_MAX: usize = 1024;

/// What is wrong, and the name of the task, which events that are told as notices carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// The name that the task had; absent where nobody could look it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_name: Option<String>,
    /// What is wrong.
    pub broken: Broken,
}

/// The part of a contract that is broken. References and tasks are named as far as their names are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broken {
    /// Inputs of the task cannot be resolved.
    Inputs {
        /// The references without a value, at most [`limits::VIOLATIONS_MAX`].
        unresolvable_refs: Vec<String>,
        /// Dependencies that have not completed, at most [`limits::VIOLATIONS_MAX`]. Empty when the results are
        /// there and lack values.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        incomplete: Vec<Incomplete>,
    },
    /// A task whose result it needs waits for a person.
    Upstream {
        /// The task that waits.
        task_id: TaskId,
        /// Name of the task; absent until it was looked up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase_name: Option<String>,
        /// Identifies the wait for a person.
        suspension_id: SuspensionId,
        /// Until when at the latest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    /// The result is not what the task declares.
    Output(OutputFault),
}

/// A dependency that has not completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    /// The id of the dependency.
    pub task_id: TaskId,
    /// Name of the task; absent until it was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_name: Option<String>,
    /// The status of the dependency when the contract was checked.
    pub status: Status,
}

impl Breach {
    /// The members that callers are told: `error`, `task_id`, `phase_name`, what is wrong, and `message`.
    #[must_use]
    pub fn payload(&self, task: TaskId) -> Map<String, Value> {
        let mut told = Map::new();
        told.insert("error".to_owned(), self.broken.name().into());
        told.insert("task_id".to_owned(), task.to_string().into());
        told.insert("phase_name".to_owned(), json!(self.phase_name));
        self.broken.tell(&mut told);
        told.insert("message".to_owned(), self.broken.message().into());
        told
    }

    /// The `error` of an attempt that failed for it.
    #[must_use]
    pub fn failure(&self) -> String {
        let name = self.broken.name();
        match &self.broken {
            Broken::Inputs {
                unresolvable_refs, ..
            } => format!("{name}: no value for {}", unresolvable_refs.join(", ")),
            Broken::Upstream { .. } | Broken::Output(_) => {
                format!("{name}: {}", self.broken.message())
            }
        }
    }

    /// Bytes that it takes, roughly. Cost: O(entries).
    #[must_use]
    pub fn bytes(&self) -> usize {
        let name = |name: &Option<String>| 64 + name.as_ref().map_or(0, String::len);
        let broken = match &self.broken {
            Broken::Inputs {
                unresolvable_refs,
                incomplete,
            } => {
                let refs = unresolvable_refs.iter().map(|it| 24 + it.len());
                let others = incomplete.iter().map(|it| 64 + name(&it.phase_name));
                refs.sum::<usize>() + others.sum::<usize>()
            }
            Broken::Upstream { phase_name, .. } => 128 + name(phase_name),
            Broken::Output(fault) => fault.bytes(),
        };
        name(&self.phase_name) + broken
    }
}

impl Broken {
    /// The name of the error. spec: I/O contracts / 4.1, 4.2, 4.3, RFC-0026 patch
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Inputs { .. } => "UnresolvableInputError",
            Self::Upstream { .. } => "UpstreamIntentSuspendedError",
            Self::Output(fault) => fault.name(),
        }
    }

    /// One sentence for people.
    #[must_use]
    pub fn message(&self) -> String {
        let text = match self {
            Self::Inputs {
                unresolvable_refs,
                incomplete,
            } if incomplete.is_empty() => {
                let listed = unresolvable_refs.join("`, `");
                format!("Task claim rejected: no value for `{listed}`")
            }
            Self::Inputs {
                unresolvable_refs,
                incomplete,
            } => {
                let listed = incomplete.iter().map(|it| {
                    let status = it.status.as_str();
                    match &it.phase_name {
                        Some(name) => format!("`{name}` is {status}"),
                        None => format!("`{}` is {status}", it.task_id),
                    }
                });
                let listed: Vec<String> = listed.collect();
                let values = match unresolvable_refs.as_slice() {
                    [] => String::new(),
                    refs => format!("; no value for `{}`", refs.join("`, `")),
                };
                format!(
                    "Task claim rejected: dependencies have not completed: {}{values}",
                    listed.join(", ")
                )
            }
            Self::Upstream {
                task_id,
                phase_name: None,
                ..
            } => format!("Task claim rejected: `{task_id}` waits for a person"),
            Self::Upstream {
                phase_name: Some(name),
                ..
            } => format!("Task claim rejected: `{name}` waits for a person"),
            Self::Output(fault) => return fault.message(),
        };
        limits::cut(&text, MESSAGE_BYTES_MAX).to_owned()
    }

    fn tell(&self, told: &mut Map<String, Value>) {
        let mut tell = |name: &str, value: Value| {
            told.insert(name.to_owned(), value);
        };
        match self {
            Self::Inputs {
                unresolvable_refs,
                incomplete,
            } => {
                tell("unresolvable_refs", json!(unresolvable_refs));
                if !incomplete.is_empty() {
                    let each = incomplete.iter().map(|it| {
                        let (name, status) = (&it.phase_name, it.status);
                        json!({"phase_name": name, "task_id": it.task_id, "status": status})
                    });
                    tell("incomplete_dependencies", each.collect());
                }
            }
            Self::Upstream {
                task_id,
                expires_at,
                ..
            } => {
                tell("suspended_intent_id", task_id.to_string().into());
                tell("expected_resume_at", json!(expires_at));
            }
            Self::Output(fault) => {
                tell("mismatches", json!(fault.mismatches));
                match (&fault.too_large, fault.mismatches.first()) {
                    (Some(large), _) => {
                        tell("key", json!(large.key));
                        tell("bytes", large.bytes.into());
                        tell("limit", large.limit.into());
                    }
                    (None, Some(first)) if fault.missing.is_empty() => {
                        tell("key", json!(first.key));
                        tell("expected_type", json!(first.expected));
                        tell("actual_type", json!(first.actual));
                    }
                    (None, Some(_) | None) => tell("missing_keys", json!(fault.missing)),
                }
            }
        }
    }
}
