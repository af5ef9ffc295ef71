//! Decides which events an explanation needs, and finds them in the log.

use super::Facts;
use crate::application::App;
use crate::application::error::Error;
use crate::application::stream_reader::StreamReader;
use std::collections::BTreeSet;
use taskledger_domain::flow::explain::{Explanation, Reason, TaskRef};
use taskledger_domain::{FlowId, Version};

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
