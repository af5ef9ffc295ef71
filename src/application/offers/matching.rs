//! Matches offers, by method, with workers, by what they may claim; the only place with this rule.

use super::method::{Entry, Method};
use super::turns::{Owner, Place};
use super::{Ask, Offer, Partitions, Rank, Reach, RemoteWork, Sharing, Wakeup};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use taskledger_domain::FlowId;
use taskledger_workers::MethodKey;
use tokio::sync::oneshot;

pub(super) type Tell = oneshot::Sender<Wakeup>;

/// An offer that goes to a worker.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) tell: Tell,
    pub(super) flow: FlowId,
    pub(super) method: MethodKey,
    pub(super) many: usize,
    pub(super) until: Option<Rank>,
}

/// What a flow offers, by method.
#[derive(Debug, Default)]
struct OfFlow {
    owner: Owner,
    offers: HashMap<MethodKey, Offer>,
}

#[derive(Debug)]
struct Worker {
    ask: Ask,
    tell: Tell,
}

#[derive(Debug, Default)]
pub(super) struct Inner {
    methods: HashMap<MethodKey, Method>,
    flows: HashMap<FlowId, OfFlow>,
    workers: BTreeMap<u64, Worker>,
    last: u64,
    /// Where hints begin.
    hinted: usize,
    /// The order in which tasks of different owners come.
    sharing: Sharing,
    /// Methods of which an owner has something and had nothing open before, since that was last asked.
    appeared: Vec<(MethodKey, Owner)>,
}

impl Inner {
    pub(super) fn take_appeared(&mut self) -> Vec<(MethodKey, Owner)> {
        std::mem::take(&mut self.appeared)
    }

    pub(super) fn flows(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn methods(&self) -> Vec<MethodKey> {
        self.methods.keys().cloned().collect()
    }

    pub(super) fn waiting(&self) -> usize {
        self.workers.len()
    }

    fn change<T>(&mut self, name: &MethodKey, change: impl FnOnce(&mut Method) -> T) -> T {
        let sharing = &self.sharing;
        let method = self.methods.entry(name.clone());
        let method = method.or_insert_with(|| Method::new(sharing));
        let changed = change(method);
        if method.is_idle() {
            self.methods.remove(name);
        }
        changed
    }

    /// Takes all that a flow has in place of what it had. Gives the methods of which there is something else than
    /// before, the best first. Cost: O(methods of the flow * log).
    pub(super) fn set(
        &mut self,
        flow: FlowId,
        owner: Option<&str>,
        offers: Vec<Offer>,
    ) -> Vec<MethodKey> {
        let names: HashSet<&MethodKey> = offers.iter().map(|offer| &offer.method).collect();
        let had = self.flows.get(&flow).into_iter();
        let had = had.flat_map(|of_flow| of_flow.offers.keys());
        let gone = had.filter(|name| !names.contains(name)).cloned();
        let gone: Vec<_> = gone.map(|name| (name, None)).collect();
        drop(names);
        let offers = offers.into_iter();
        let offers = offers.map(|offer| (offer.method.clone(), Some(offer)));
        self.change_offers(flow, owner, gone.into_iter().chain(offers).collect())
    }

    /// Takes what a flow has of these methods, all that it has if the owner is another one. Gives the methods of
    /// which there is something else than before, the best first. Cost: O(log offers) for each method.
    pub(super) fn change_offers(
        &mut self,
        flow: FlowId,
        owner: Option<&str>,
        offers: Vec<(MethodKey, Option<Offer>)>,
    ) -> Vec<MethodKey> {
        let mut of_flow = self.flows.remove(&flow).unwrap_or_default();
        let is_of_another = of_flow.owner.as_deref() != owner;
        if is_of_another {
            of_flow.owner = owner.map(Arc::from);
        }
        let mut changed = Vec::new();
        for (name, offer) in offers {
            let Some(offer) = offer else {
                if of_flow.offers.remove(&name).is_some() {
                    self.change(&name, |method| method.take_out(flow));
                }
                continue;
            };
            if is_of_another || of_flow.offers.get(&name) != Some(&offer) {
                let is_new = self.change(&name, |method| {
                    let is_new = !method.open_of.contains_key(&of_flow.owner);
                    method.enter(flow, &of_flow.owner, &offer);
                    is_new
                });
                if is_new {
                    self.appeared.push((name.clone(), of_flow.owner.clone()));
                }
                changed.push((offer.rank, name.clone()));
                of_flow.offers.insert(name, offer);
            }
        }
        if !of_flow.offers.is_empty() {
            self.flows.insert(flow, of_flow);
        }
        // A worker that wants several of them gets the best one.
        changed.sort_unstable();
        changed.into_iter().map(|(_, method)| method).collect()
    }

    /// Of how many methods a flow has something.
    pub(super) fn offered(&self, flow: FlowId) -> usize {
        let of_flow = self.flows.get(&flow);
        of_flow.map_or(0, |of_flow| of_flow.offers.len())
    }

    /// The methods that a worker asks for of which there are offers for it, the best one first.
    /// Cost: O(methods * log).
    pub(super) fn best_first(&self, ask: &Ask) -> Vec<MethodKey> {
        let best = |name: &MethodKey| {
            let [first, _] = self.methods.get(name)?.best(&ask.reach);
            Some((first?, name.clone()))
        };
        let mut best: Vec<_> = ask.methods.iter().filter_map(best).collect();
        best.sort_unstable();
        best.into_iter().map(|(_, name)| name).collect()
    }

    pub(super) fn wait(&mut self, ask: Ask, tell: Tell) -> u64 {
        self.last += 1;
        let id = self.last;
        for name in &*ask.methods {
            let method = self.methods.entry(name.clone());
            let method = method.or_insert_with(|| Method::new(&self.sharing));
            let of_reach = method.workers.entry(ask.reach.clone()).or_default();
            of_reach.insert(id);
        }
        self.workers.insert(id, Worker { ask, tell });
        id
    }

    pub(super) fn leave(&mut self, id: u64) -> Option<Tell> {
        let Worker { ask, tell } = self.workers.remove(&id)?;
        for name in &*ask.methods {
            self.change(name, |method| {
                if let Some(of_reach) = method.workers.get_mut(&ask.reach) {
                    of_reach.remove(&id);
                    if of_reach.is_empty() {
                        method.workers.remove(&ask.reach);
                    }
                }
            });
        }
        Some(tell)
    }

    pub(super) fn dismiss(&mut self) -> Vec<Tell> {
        let ids: Vec<u64> = self.workers.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.leave(id)).collect()
    }

    /// Takes out what waits as this worker of one of these principals. Cost: O(workers).
    pub(super) fn dismiss_worker(&mut self, worker: &str, principals: &[Arc<str>]) -> Vec<Tell> {
        let is_it = |(_, it): &(&u64, &Worker)| {
            let (name, principal) = &it.ask.by;
            **name == *worker && principals.contains(principal)
        };
        let ids: Vec<u64> = self
            .workers
            .iter()
            .filter(is_it)
            .map(|(id, _)| *id)
            .collect();
        ids.into_iter().filter_map(|id| self.leave(id)).collect()
    }

    /// Takes workers out for whom it makes a difference whether their owners have declared these methods for
    /// themselves: they wait for one of them, or for the shared one in its place, and may have flows of that owner.
    /// Cost: O(methods + these workers * log).
    pub(super) fn dismiss_for(&mut self, declared: &[MethodKey]) -> Vec<Tell> {
        let mut ids = BTreeSet::new();
        for own in declared {
            let reaches = own.owner.iter().map(|owner| Reach::Of(owner.clone()));
            let reaches: Vec<Reach> = reaches.chain([Reach::All]).collect();
            for name in [own, &MethodKey::shared(own.name.clone())] {
                let workers = self.methods.get(name).map(|method| &method.workers);
                let of_reach = |reach| workers.and_then(|workers| workers.get(reach));
                ids.extend(reaches.iter().filter_map(of_reach).flatten().copied());
            }
        }
        ids.into_iter().filter_map(|id| self.leave(id)).collect()
    }

    /// Gives the methods whose limit may have changed.
    pub(super) fn limit(&mut self, limits: &HashMap<MethodKey, usize>) -> Vec<MethodKey> {
        let had = self.methods.iter().filter(|(_, m)| m.limit.is_some());
        let had = had.map(|(name, _)| name.clone());
        let mut names: Vec<MethodKey> = had.chain(limits.keys().cloned()).collect();
        names.sort_unstable();
        names.dedup();
        for name in &names {
            self.change(name, |method| method.limit = limits.get(name).copied());
        }
        names
    }

    pub(super) fn is_limited(&self, name: &MethodKey) -> bool {
        let limit = self.methods.get(name).and_then(|method| method.limit);
        limit.is_some()
    }

    pub(super) fn is_paused(&self, name: &MethodKey) -> bool {
        let method = self.methods.get(name);
        method.is_some_and(|method| method.is_paused)
    }

    pub(super) fn is_full(&self, name: &MethodKey) -> bool {
        let method = self.methods.get(name);
        method.is_some_and(|method| method.free() == 0)
    }

    /// Says whether that is a change.
    pub(super) fn pause(&mut self, name: &MethodKey, is_paused: bool) -> bool {
        self.change(name, |method| {
            std::mem::replace(&mut method.is_paused, is_paused) != is_paused
        })
    }

    /// Takes one task of a flow for a worker that named it, if the limit allows it.
    pub(super) fn reserve(&mut self, flow: FlowId, name: &MethodKey) -> bool {
        self.change(name, |method| {
            if method.free() == 0 {
                return false;
            }
            method.reserve(flow, 1);
            true
        })
    }

    pub(super) fn began(&mut self, name: &MethodKey) {
        self.change(name, |method| method.running += 1);
    }

    /// Whether that frees something.
    pub(super) fn ended(&mut self, name: &MethodKey) -> bool {
        self.change(name, |method| {
            method.running = method.running.saturating_sub(1);
            method.limit.is_some()
        })
    }

    pub(super) fn give_back(&mut self, flow: FlowId, name: &MethodKey, many: usize) {
        self.change(name, |method| method.give_back(flow, many));
    }

    pub(super) fn forget(&mut self, partitions: &Partitions) {
        let leaving = self.flows.keys().filter(|flow| partitions.contain(**flow));
        let leaving: Vec<FlowId> = leaving.copied().collect();
        for flow in leaving {
            self.set(flow, None, Vec::new());
        }
    }

    pub(super) fn figures(&self) -> HashMap<MethodKey, RemoteWork> {
        let figures = self.methods.iter().map(|(name, method)| {
            let figures = RemoteWork {
                ready: method.entries.values().map(|entry| entry.ready).sum(),
                oldest: method.entries.values().map(|entry| entry.rank.1).min(),
                leased: method.running,
                workers_waiting: method.workers.values().map(BTreeSet::len).sum(),
            };
            (name.clone(), figures)
        });
        figures.collect()
    }

    /// Ready tasks by method, of the flows that are in reach.
    pub(super) fn ready_of(&self, reach: &Reach) -> HashMap<MethodKey, usize> {
        let ready = self.methods.iter().map(|(name, method)| {
            let entries = method.entries.values();
            let of_reach = entries.filter(|entry| reach.covers(entry.owner.as_deref()));
            (name.clone(), of_reach.map(|entry| entry.ready).sum())
        });
        ready.collect()
    }

    pub(super) fn ahead(
        &self,
        name: &MethodKey,
        (rank, flow): Place,
        of: &Reach,
        most: usize,
    ) -> usize {
        let Some(method) = self.methods.get(name) else {
            return 0;
        };
        let before: Box<dyn Iterator<Item = FlowId>> = match &method.turns {
            Some(turns) if method.entries.contains_key(&flow) => {
                let is_urgent = |other: &FlowId| {
                    let entry = method.entries.get(other);
                    *other != flow && entry.is_some_and(|entry| entry.rank.0 <= rank.0)
                };
                Box::new(turns.first().take_while(is_urgent))
            }
            Some(_) | None => Box::new(method.open.range(..(rank, flow)).map(|(_, flow)| *flow)),
        };
        let mut tasks = 0;
        for flow in before {
            let entry = method.entries.get(&flow);
            let competes = entry.filter(|entry| of.covers(entry.owner.as_deref()));
            tasks += competes.map_or(0, |entry| entry.ready);
            if tasks >= most {
                return most;
            }
        }
        tasks
    }

    /// Whether owners share workers fairly.
    pub(super) fn is_fair(&self) -> bool {
        match self.sharing {
            Sharing::ByAge => false,
            Sharing::Fair(_) => true,
        }
    }

    /// Before the first flow.
    pub(super) fn share(&mut self, sharing: Sharing) {
        self.sharing = sharing;
    }

    /// At most [`HINTED_MAX`](super::HINTED_MAX) methods, others each time when there are more. Cost: O(methods).
    pub(super) fn unwanted(&mut self) -> Vec<(MethodKey, usize)> {
        let all = self.methods.len();
        let start = self.hinted.checked_rem(all).unwrap_or_default();
        let methods = self.methods.iter().cycle().skip(start).take(all);
        let left = methods.map(|(name, method)| {
            let open = method.open.iter().take(super::HINTED_TASKS_MAX);
            let left = open.filter_map(|(_, flow)| method.entries.get(flow));
            let left: usize = left.map(Entry::left).sum();
            (
                name.clone(),
                left.min(method.free()).min(super::HINTED_TASKS_MAX),
            )
        });
        let left = left.filter(|(_, left)| *left > 0);
        let left: Vec<_> = left.take(super::HINTED_MAX).collect();
        if left.len() == super::HINTED_MAX {
            self.hinted = start + super::HINTED_MAX;
        }
        left
    }

    /// Takes workers out that want one of these methods: the first of each reach, since nobody here knows whose the
    /// tasks are, and one for each further task.
    pub(super) fn hint(&mut self, methods: &[(MethodKey, usize)]) -> Vec<Tell> {
        let mut told = Vec::new();
        for (name, tasks) in methods {
            let firsts = |inner: &Self| -> Vec<u64> {
                let method = inner.methods.get(name);
                let workers = method
                    .into_iter()
                    .flat_map(|method| method.workers.values());
                workers.filter_map(|ids| ids.first().copied()).collect()
            };
            for id in firsts(self) {
                told.extend(self.leave(id));
            }
            for _ in 1..*tasks {
                let Some(id) = firsts(self).into_iter().min() else {
                    break;
                };
                told.extend(self.leave(id));
            }
        }
        told
    }

    /// Gives offers of a method to workers, the best one to the one that has waited for the longest time, until
    /// no offer has a worker. Says whether offers are left. Cost: O(matches * (kinds of reach + log)).
    pub(super) fn bring_together(&mut self, name: &MethodKey, matches: &mut Vec<Match>) -> bool {
        loop {
            let Some(method) = self.methods.get(name) else {
                return false;
            };
            if method.open.is_empty() || method.free() == 0 {
                return false;
            }
            let candidates = method.workers.iter().filter_map(|(reach, ids)| {
                let [first, _] = method.best(reach);
                Some((method.turn(first?), *ids.first()?))
            });
            let Some(((_, _, _, flow), id)) = candidates.min() else {
                return true;
            };
            let max = self.workers.get(&id).map_or(1, |worker| worker.ask.max);
            let until = if max > 1 {
                self.next_best(id, name)
            } else {
                None
            };
            let Some(tell) = self.leave(id) else {
                return true;
            };
            let many = self.change(name, |method| {
                let many = method.portion(flow, max);
                method.reserve(flow, many);
                many
            });
            matches.push(Match {
                tell,
                flow,
                method: name.clone(),
                many,
                until,
            });
        }
    }

    /// The rank that has a better right to a worker than what stands behind it in the best offer of a method.
    fn next_best(&self, worker: u64, name: &MethodKey) -> Option<Rank> {
        let ask = &self.workers.get(&worker)?.ask;
        let ranks = ask.methods.iter().filter_map(|other| {
            let [first, second] = self.methods.get(other)?.best(&ask.reach);
            let place = if other == name { second } else { first };
            place.map(|(rank, _)| rank)
        });
        ranks.min()
    }
}
