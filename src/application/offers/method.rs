//! The offers of flows for one method, and the workers that wait for it.

use super::turns::{Owner, Place, Turns};
use super::{Offer, Rank, Reach, Sharing};
use std::collections::{BTreeSet, HashMap};
use taskledger_domain::task::Priority;
use taskledger_domain::{FlowId, Timestamp};

/// The order of offers of one method: urgency, what the owner has had where owners share, age.
pub(super) type Turn = (Priority, u64, Timestamp, FlowId);

/// The entry of a flow under one method.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) owner: Owner,
    pub(super) rank: Rank,
    pub(super) ready: usize,
    /// Given to workers that have not claimed yet.
    pub(super) reserved: usize,
}

impl Entry {
    pub(super) const fn left(&self) -> usize {
        self.ready.saturating_sub(self.reserved)
    }
}

#[derive(Debug, Default)]
pub(super) struct Method {
    pub(super) entries: HashMap<FlowId, Entry>,
    /// Entries of which something is left.
    pub(super) open: BTreeSet<Place>,
    /// The same by owner.
    pub(super) open_of: HashMap<Owner, BTreeSet<Place>>,
    /// The owner that is served next; `None`: age decides.
    pub(super) turns: Option<Turns>,
    /// Workers by whose flows they may have, the longest waiting first.
    pub(super) workers: HashMap<Reach, BTreeSet<u64>>,
    /// Attempts under way.
    pub(super) running: usize,
    /// Given to workers that have not claimed yet.
    pub(super) reserved: usize,
    pub(super) limit: Option<usize>,
    /// Other nodes have all that the limit allows.
    pub(super) is_paused: bool,
}

impl Method {
    pub(super) fn new(sharing: &Sharing) -> Self {
        let turns = match sharing {
            Sharing::ByAge => None,
            Sharing::Fair(weights) => Some(Turns::new(weights.clone())),
        };
        Self {
            turns,
            ..Self::default()
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        let gone = self.entries.is_empty() && self.workers.is_empty();
        let is_limited = self.limit.is_some() || self.is_paused;
        gone && self.running == 0 && self.reserved == 0 && !is_limited
    }

    /// Changes an entry, or takes it out, and puts it where it belongs then.
    pub(super) fn move_entry(&mut self, flow: FlowId, change: impl FnOnce(&mut Self)) {
        let former = self.close(flow);
        change(self);
        self.open(flow);
        if let (Some(turns), Some((owner, priority))) = (&mut self.turns, former) {
            turns.looked(&owner, priority);
        }
    }

    /// Takes an entry out of what is open; gives whose it is and how urgent, if it was open.
    pub(super) fn close(&mut self, flow: FlowId) -> Option<(Owner, Priority)> {
        let entry = self.entries.get(&flow)?;
        let place = (entry.rank, flow);
        let former = (entry.owner.clone(), entry.rank.0);
        if !self.open.remove(&place) {
            return None;
        }
        if let Some(turns) = &mut self.turns {
            turns.look(&entry.owner, place);
        }
        if let Some(of_owner) = self.open_of.get_mut(&entry.owner) {
            of_owner.remove(&place);
            if of_owner.is_empty() {
                self.open_of.remove(&entry.owner);
            }
        }
        Some(former)
    }

    /// Puts an entry where it belongs now.
    pub(super) fn open(&mut self, flow: FlowId) {
        let Some(entry) = self.entries.get(&flow) else {
            return;
        };
        if entry.left() > 0 {
            let (place, owner) = ((entry.rank, flow), entry.owner.clone());
            if let Some(turns) = &mut self.turns {
                turns.join(&owner, place);
            }
            self.open.insert(place);
            self.open_of.entry(owner).or_default().insert(place);
        }
    }

    /// Enters what a flow has of it now.
    pub(super) fn enter(&mut self, flow: FlowId, owner: &Owner, offer: &Offer) {
        self.move_entry(flow, |method| {
            let reserved = method.entries.get(&flow).map_or(0, |entry| entry.reserved);
            let entry = Entry {
                owner: owner.clone(),
                rank: offer.rank,
                ready: offer.ready,
                reserved,
            };
            method.entries.insert(flow, entry);
        });
    }

    /// A flow has nothing of it any more. What is reserved of it is given back by whoever has it.
    pub(super) fn take_out(&mut self, flow: FlowId) {
        self.move_entry(flow, |method| _ = method.entries.remove(&flow));
    }

    /// So many tasks of a flow are given to a worker that has not claimed yet.
    pub(super) fn reserve(&mut self, flow: FlowId, many: usize) {
        self.reserved += many;
        if let (Some(turns), Some(entry)) = (&mut self.turns, self.entries.get(&flow)) {
            turns.given(&entry.owner, entry.rank.0, many);
        }
        self.move_entry(flow, |method| {
            if let Some(entry) = method.entries.get_mut(&flow) {
                entry.reserved += many;
            }
        });
    }

    /// So many tasks of a flow were claimed, or will not be.
    pub(super) fn give_back(&mut self, flow: FlowId, many: usize) {
        self.reserved = self.reserved.saturating_sub(many);
        self.move_entry(flow, |method| {
            if let Some(entry) = method.entries.get_mut(&flow) {
                entry.reserved = entry.reserved.saturating_sub(many);
            }
        });
    }

    /// How many more attempts may begin.
    pub(super) fn free(&self) -> usize {
        if self.is_paused {
            return 0;
        }
        let under_way = self.running + self.reserved;
        self.limit
            .map_or(usize::MAX, |limit| limit.saturating_sub(under_way))
    }

    /// The best two offers for whoever may have these flows.
    pub(super) fn best(&self, reach: &Reach) -> [Option<Place>; 2] {
        let open = match (reach, &self.turns) {
            (Reach::All, Some(turns)) => {
                let place = |flow| Some((self.entries.get(&flow)?.rank, flow));
                let mut places = turns.first().filter_map(place);
                return [places.next(), places.next()];
            }
            (Reach::All, None) => Some(&self.open),
            (Reach::Of(owner), _) => self.open_of.get(&Some(owner.clone())),
        };
        let mut places = open.into_iter().flatten().copied();
        [places.next(), places.next()]
    }

    /// When it is the turn of what is open of a flow, compared with others.
    pub(super) fn turn(&self, ((priority, since), flow): Place) -> Turn {
        let had = match (&self.turns, self.entries.get(&flow)) {
            (Some(turns), Some(entry)) => turns.time_of(&entry.owner, priority),
            (Some(_) | None, _) => 0,
        };
        (priority, had, since, flow)
    }

    /// How many tasks of a flow one worker may be given that wants `max`: one at a time while others wait for their
    /// turn.
    pub(super) fn portion(&self, flow: FlowId, max: usize) -> usize {
        let Some(entry) = self.entries.get(&flow) else {
            return 0;
        };
        let turns = self.turns.as_ref();
        let is_shared = turns.is_some_and(|turns| turns.is_shared(&entry.owner, entry.rank.0));
        let max = if is_shared { 1 } else { max };
        entry.left().min(max).min(self.free())
    }
}
