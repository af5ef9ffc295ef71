//! The order in which owners are served when they share a method's workers fairly: within a priority by how much each
//! owner has had, then by age, as in the queues of executors (`slots/fair.rs`). In memory only, for the flows of this
//! node.

use super::Rank;
use crate::application::slots::{Fair, Weights};
use std::collections::BTreeMap;
use std::sync::Arc;
use taskledger_domain::FlowId;
use taskledger_domain::task::Priority;

/// The owner of a flow; `None`: nobody.
pub(super) type Owner = Option<Arc<str>>;
/// Where what a flow has of a method stands by age.
pub(super) type Place = (Rank, FlowId);

/// The order of what is open of one method.
#[derive(Debug)]
pub(super) struct Turns {
    weights: Arc<Weights>,
    /// Priorities of which nothing is open have no entry.
    lines: BTreeMap<Priority, Fair>,
}

impl Turns {
    pub(super) fn new(weights: Arc<Weights>) -> Self {
        Self {
            weights,
            lines: BTreeMap::new(),
        }
    }

    /// Something of a flow is open.
    pub(super) fn join(&mut self, owner: &Owner, ((priority, since), flow): Place) {
        let line = self.lines.entry(priority);
        let line = line.or_insert_with(|| Fair::new(self.weights.clone()));
        line.join(owner, (since, flow));
    }

    /// What a flow has open changes: until [`Self::looked`] its owner counts as one who waits.
    pub(super) fn look(&mut self, owner: &Owner, ((priority, since), flow): Place) {
        self.in_line(priority, |line| line.look(owner, (since, flow)));
    }

    pub(super) fn looked(&mut self, owner: &Owner, priority: Priority) {
        self.in_line(priority, |line| line.looked(owner));
    }

    /// So many tasks of an owner are given to workers.
    pub(super) fn given(&mut self, owner: &Owner, priority: Priority, many: usize) {
        self.in_line(priority, |line| (0..many).for_each(|_| line.started(owner)));
    }

    /// Whether somebody else waits with tasks as urgent as the owner's.
    pub(super) fn is_shared(&self, owner: &Owner, priority: Priority) -> bool {
        let line = self.lines.get(&priority);
        line.is_some_and(|line| !line.is_alone(owner))
    }

    /// What owners have had, as far as it decides about a flow of this owner.
    pub(super) fn time_of(&self, owner: &Owner, priority: Priority) -> u64 {
        let line = self.lines.get(&priority);
        line.map_or(0, |line| line.time_of(owner))
    }

    /// Flows of which something is open, first come first. Cost: O(log flows) each.
    pub(super) fn first(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.lines.values().flat_map(Fair::first)
    }

    fn in_line(&mut self, priority: Priority, change: impl FnOnce(&mut Fair)) {
        if let Some(line) = self.lines.get_mut(&priority) {
            change(line);
            if line.is_empty() {
                self.lines.remove(&priority);
            }
        }
    }
}
