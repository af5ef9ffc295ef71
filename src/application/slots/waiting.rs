//! The queue of flows that wait for the slots of one executor.

use super::fair::{Fair, Owner};
use super::{Rank, Sharing, Weights};
use crate::application::ownership::Partitions;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use taskledger_domain::task::Priority;
use taskledger_domain::{FlowId, Timestamp};

/// At most one place a flow.
#[derive(Debug)]
pub(super) struct Waiting {
    places: HashMap<FlowId, Place>,
    order: Order,
    /// The places that flows had before the turn that they are in. As many as there are turns at once.
    looked_at: BTreeMap<Rank, Owner>,
}

/// Where a flow waits.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) rank: Rank,
    /// Nobody while owners do not matter.
    pub(super) owner: Owner,
    woken: bool,
}

#[derive(Debug)]
enum Order {
    /// By priority, then by age.
    Age(BTreeSet<Rank>),
    /// By priority, then by what owners have had, then by age. Priorities in which nobody waits have no entry.
    Fair(Arc<Weights>, BTreeMap<Priority, Fair>),
}

impl Waiting {
    pub(super) fn new(sharing: &Sharing) -> Self {
        Self {
            places: HashMap::new(),
            order: match sharing {
                Sharing::ByAge => Order::Age(BTreeSet::new()),
                Sharing::Fair(weights) => Order::Fair(weights.clone(), BTreeMap::new()),
            },
            looked_at: BTreeMap::new(),
        }
    }

    /// The account of an owner in this line.
    pub(super) fn account(&self, owner: Option<&str>) -> Owner {
        match self.order {
            Order::Age(_) => None,
            Order::Fair(..) => owner.map(Arc::from),
        }
    }

    pub(super) fn rank_of(&self, flow: FlowId) -> Option<Rank> {
        self.places.get(&flow).map(|place| place.rank)
    }

    /// The ranks of all who wait, in no order.
    pub(super) fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        self.places.values().map(|place| place.rank)
    }

    /// Other flows that come before one with this rank, up to `max`. A flow in a turn counts with the place that it
    /// had, so that a flow behind it, whose turn is at the same time, does not take its slot.
    pub(super) fn ahead(&self, rank: Rank, owner: &Owner, max: usize) -> usize {
        let looked_at = self.looked_at.iter();
        let looked_at = looked_at.filter(|(other, whose)| {
            other.2 != rank.2 && self.precedes((**other, whose), (rank, owner))
        });
        let looked_at = looked_at.take(max).count();
        looked_at + self.waiting_ahead(rank, owner, max - looked_at)
    }

    fn precedes(&self, (one, its): (Rank, &Owner), (other, whose): (Rank, &Owner)) -> bool {
        let had = |rank: Rank, owner| match &self.order {
            Order::Age(_) => 0,
            Order::Fair(_, lines) => lines.get(&rank.0).map_or(0, |line| line.time_of(owner)),
        };
        let key = |rank: Rank, owner| (rank.0, had(rank, owner), rank.1, rank.2);
        key(one, its) < key(other, whose)
    }

    fn waiting_ahead(&self, rank: Rank, owner: &Owner, max: usize) -> usize {
        let (priority, since, flow) = rank;
        match &self.order {
            Order::Age(ranks) => {
                let before = ranks.range(..rank);
                before.filter(|other| other.2 != flow).take(max).count()
            }
            Order::Fair(_, lines) => {
                let more_urgent = lines.range(..priority).flat_map(|(_, line)| line.first());
                let urgent = more_urgent.filter(|other| *other != flow).take(max).count();
                let ahead = |line: &Fair| line.ahead(owner, (since, flow), max - urgent);
                urgent + lines.get(&priority).map_or(0, ahead)
            }
        }
    }

    /// The flow waits with this rank, instead of any other that it had.
    pub(super) fn join(&mut self, rank: Rank, owner: Owner) {
        self.leave(rank.2);
        match &mut self.order {
            Order::Age(ranks) => _ = ranks.insert(rank),
            Order::Fair(weights, lines) => {
                let line = lines.entry(rank.0);
                let line = line.or_insert_with(|| Fair::new(weights.clone()));
                line.join(&owner, (rank.1, rank.2));
            }
        }
        let woken = false;
        let place = Place { rank, owner, woken };
        self.places.insert(rank.2, place);
    }

    /// The flow waits no more.
    pub(super) fn leave(&mut self, flow: FlowId) -> Option<Place> {
        self.take_out(flow, Fair::leave)
    }

    /// Begins a turn of the flow, which decides whether it still waits. Returns its place, with which [`Self::looked`]
    /// ends the turn. Until then the place counts in [`Self::ahead`], so that no flow behind it gets the slot, but the
    /// flow is not woken for it.
    pub(super) fn look(&mut self, flow: FlowId) -> Option<Place> {
        let place = self.take_out(flow, Fair::look)?;
        self.looked_at.insert(place.rank, place.owner.clone());
        Some(place)
    }

    /// Ends the turn of the flow that had this place: it has joined again, or waits no more.
    pub(super) fn looked(&mut self, place: &Place) {
        self.looked_at.remove(&place.rank);
        self.in_line(place.rank.0, |line| line.looked(&place.owner));
    }

    /// Takes the flow out of the order. `leave` does so in the line of its priority, where owners share fairly.
    fn take_out(
        &mut self,
        flow: FlowId,
        leave: impl FnOnce(&mut Fair, &Owner, (Timestamp, FlowId)),
    ) -> Option<Place> {
        let place = self.places.remove(&flow)?;
        let (priority, since, _) = place.rank;
        if let Order::Age(ranks) = &mut self.order {
            ranks.remove(&place.rank);
        }
        self.in_line(priority, |line| leave(line, &place.owner, (since, flow)));
        Some(place)
    }

    /// A task of this owner starts.
    pub(super) fn started(&mut self, priority: Priority, owner: &Owner) {
        self.in_line(priority, |line| line.started(owner));
    }

    /// Flows of these partitions wait here no more.
    pub(super) fn forget(&mut self, partitions: &Partitions) {
        let gone = self.places.keys().filter(|flow| partitions.contain(**flow));
        for flow in gone.copied().collect::<Vec<_>>() {
            self.leave(flow);
        }
    }

    /// Wakes those of the first `count` that are not woken yet.
    pub(super) fn wake_first(&mut self, count: usize, wake: impl Fn(FlowId) -> bool) {
        let places = &mut self.places;
        let mut wake = |flow: FlowId| {
            let place = places.get_mut(&flow);
            let place = place.expect("who is in the order has a place");
            if !place.woken {
                place.woken = wake(flow);
            }
        };
        match &self.order {
            Order::Age(ranks) => ranks.iter().take(count).for_each(|rank| wake(rank.2)),
            Order::Fair(_, lines) => {
                let first = lines.values().flat_map(Fair::first);
                first.take(count).for_each(&mut wake);
            }
        }
    }

    /// Wakes all that are not woken yet.
    pub(super) fn wake_all(&mut self, wake: impl Fn(FlowId) -> bool) {
        self.wake_first(self.places.len(), wake);
    }

    /// Nobody counts as woken any more.
    pub(super) fn forget_wake_ups(&mut self) {
        self.places.values_mut().for_each(|p| p.woken = false);
    }

    fn in_line(&mut self, priority: Priority, change: impl FnOnce(&mut Fair)) {
        if let Order::Fair(_, lines) = &mut self.order
            && let Some(line) = lines.get_mut(&priority)
        {
            change(line);
            if line.is_empty() {
                lines.remove(&priority);
            }
        }
    }
}
