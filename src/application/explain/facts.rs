//! What only events hold of the tasks that an explanation names: names, errors, who and when.

use crate::application::App;
use crate::application::error::Error;
use crate::application::facts;
use crate::application::stream_reader::StreamReader;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use taskledger_domain::flow::explain::{Explanation, Reason, TaskRef};
use taskledger_domain::flow::{CancelReason, Event, FailureReason};
use taskledger_domain::{FlowId, Recorded, Timestamp, Version};

/// How a task ended.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) time: Timestamp,
    pub(super) actor: Arc<str>,
    pub(super) correlation: Arc<str>,
    pub(super) end: End,
}

/// See [`Outcome`].
#[derive(Debug, Clone)]
pub(super) enum End {
    Completed,
    Failed(FailureReason, String),
    Cancelled(CancelReason, String),
}

/// What was found, by the version of the event.
#[derive(Debug, Default)]
pub(super) struct Facts {
    names: HashMap<Version, String>,
    outcomes: HashMap<Version, Outcome>,
    timeouts_ms: HashMap<Version, Option<u64>>,
}

impl Facts {
    pub(super) fn name(&self, task: &TaskRef) -> &str {
        self.names.get(&task.name_at).map_or("", String::as_str)
    }

    pub(super) fn outcome(&self, task: &TaskRef) -> Option<&Outcome> {
        self.outcomes.get(&task.outcome_at)
    }

    pub(super) fn error(&self, task: &TaskRef) -> Option<&str> {
        match &self.outcome(task)?.end {
            End::Failed(_, error) | End::Cancelled(_, error) => Some(error),
            End::Completed => None,
        }
    }

    pub(super) fn timeout_ms(&self, spec_at: Version) -> Option<u64> {
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
            End::Completed
        } else if let Event::TaskFailed(e) = event {
            End::Failed(e.reason, e.error.clone())
        } else if let Event::TaskCancelled(e) = event {
            End::Cancelled(e.reason, e.error.clone())
        } else {
            return;
        };
        let outcome = Outcome {
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
            | Reason::WaitsForSlot(_)
            | Reason::Running
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
