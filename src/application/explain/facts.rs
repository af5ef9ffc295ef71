//! What only events hold of the tasks that an explanation names: names, errors, who and when.

use crate::application::App;
use crate::application::error::Error;
use crate::application::facts;
use crate::application::stream_reader::StreamReader;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use taskledger_domain::flow::explain::{Explanation, Reason, TaskRef};
use taskledger_domain::flow::{CancelReason, Event, FailureReason};
use taskledger_domain::{FlowId, Recorded, Timestamp, Version};

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// When that was decided.
    pub time: Timestamp,
    /// Who caused it.
    pub actor: Arc<str>,
    /// The request that led there.
    pub correlation: Arc<str>,
    /// In which way.
    pub end: TaskEnd,
}

/// In which way a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskEnd {
    /// It completed.
    Completed,
    /// It failed, with this error.
    Failed(FailureReason, String),
    /// It was cancelled, with this error.
    Cancelled(CancelReason, String),
}

/// Names and outcomes of the tasks in an explanation, by the version of the event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    names: HashMap<Version, String>,
    outcomes: HashMap<Version, TaskOutcome>,
    timeouts_ms: HashMap<Version, Option<u64>>,
}

impl Facts {
    /// The name of a task; empty when it is not known.
    #[must_use]
    pub fn name(&self, task: &TaskRef) -> &str {
        self.names.get(&task.name_at).map_or("", String::as_str)
    }

    /// How a task ended, if it has and somebody asks.
    #[must_use]
    pub fn outcome(&self, task: &TaskRef) -> Option<&TaskOutcome> {
        self.outcomes.get(&task.outcome_at)
    }

    /// What a task that ended badly said.
    #[must_use]
    pub fn error(&self, task: &TaskRef) -> Option<&str> {
        match &self.outcome(task)?.end {
            TaskEnd::Failed(_, error) | TaskEnd::Cancelled(_, error) => Some(error),
            TaskEnd::Completed => None,
        }
    }

    /// What an attempt may take by the specification in this event.
    #[must_use]
    pub fn timeout_ms(&self, spec_at: Version) -> Option<u64> {
        self.timeouts_ms.get(&spec_at).copied().flatten()
    }

    fn learn(&mut self, recorded: &Recorded) {
        let (version, event) = (recorded.version, recorded.event.as_ref());
        if let Some(name) = facts::name(event) {
            self.names.insert(version, name.to_owned());
        }
        if let Some(specification) = facts::specification(event) {
            self.timeouts_ms.insert(version, specification.timeout_ms);
        }
        let end = if let Event::TaskCompleted(_) = event {
            TaskEnd::Completed
        } else if let Event::TaskFailed(e) = event {
            TaskEnd::Failed(e.reason, e.error.clone())
        } else if let Event::TaskCancelled(e) = event {
            TaskEnd::Cancelled(e.reason, e.error.clone())
        } else {
            return;
        };
        let outcome = TaskOutcome {
            time: recorded.time,
            actor: recorded.metadata.actor.clone(),
            correlation: recorded.metadata.correlation.clone(),
            end,
        };
        self.outcomes.insert(version, outcome);
    }
}

/// The events that are wanted: names of all, outcomes where they say something.
fn versions(e: &Explanation) -> BTreeSet<Version> {
    let mut named: Vec<&TaskRef> = vec![&e.task];
    let mut ended: Vec<&TaskRef> = vec![&e.task];
    named.extend(e.deadline.iter().map(|d| &d.of));
    for reason in &e.reasons {
        match reason {
            Reason::Blocked(blocked) => {
                named.extend(blocked.chain.iter().map(|link| &link.task));
                ended.extend(blocked.chain.last().map(|link| &link.task));
            }
            Reason::WaitsForDependencies(list) => named.extend(list.items.iter().map(|d| &d.task)),
            Reason::WaitsForTime(held) => named.push(&held.of),
            Reason::WaitsForDescendants(below) => named.extend(&below.listed.items),
            Reason::Failed {
                harmed_by,
                not_done,
                retry: _,
            } => {
                named.extend(harmed_by.items.iter().chain(&not_done.items));
                ended.extend(&harmed_by.items);
            }
            Reason::Cancelled { around } => {
                named.extend(around);
                ended.extend(around);
            }
            Reason::NotCovered { .. }
            | Reason::WaitsForRetry { .. }
            | Reason::WaitsForExecutor { .. }
            | Reason::WaitsForWorker { .. }
            | Reason::LacksInputs { .. }
            | Reason::WaitsForSlot(_)
            | Reason::Running
            | Reason::Suspended(_)
            | Reason::Completed => {}
        }
    }
    let mut versions: BTreeSet<Version> = named.iter().map(|t| t.name_at).collect();
    versions.extend(ended.iter().map(|t| t.outcome_at).filter(|at| *at > 0));
    versions.insert(e.spec_at);
    versions
}

impl App {
    /// What the explanation refers to. Cost: O(tasks named in it), which is bounded.
    pub(super) async fn explained_facts(
        &self,
        flow: FlowId,
        e: &Explanation,
    ) -> Result<Facts, Error> {
        let versions: Vec<Version> = versions(e).into_iter().collect();
        let mut facts = Facts::default();
        StreamReader::of(&*self.store, flow)
            .versions(&versions, |recorded| facts.learn(recorded))
            .await?;
        Ok(facts)
    }
}
