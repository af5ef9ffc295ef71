//! Fair sharing of an executor: decides which owner's flow comes next within one priority of a queue.
//!
//! Each owner has a virtual time, which a start moves on by one, divided by the owner's weight. The owner with
//! the least is next, with the flow that has waited longest. Who begins to wait begins at the least of those
//! who wait already: being away earns nothing. Starts that nobody else waited for cost nothing.

use super::Weights;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, btree_map, btree_set};
use std::iter::Peekable;
use std::sync::Arc;
use taskledger_domain::{FlowId, Timestamp};

/// The owner of a flow; flows that belong to nobody share one account.
pub(in crate::application) type Owner = Option<Arc<str>>;

/// When a flow began to wait; equal times go by the flow.
type Age = (Timestamp, FlowId);

/// Virtual time of a start at weight 1: all weights up to 16 divide it, so these are exact.
const START: u64 = 720_720;

/// Those who wait within one priority, and what their owners have had.
#[derive(Debug)]
pub(in crate::application) struct Fair {
    weights: Arc<Weights>,
    /// Of owners who are present, and of those who have left ahead of the others.
    accounts: HashMap<Owner, Account>,
    /// Owners who wait, or whose flow is being looked at, by virtual time.
    present: BTreeSet<(u64, Owner)>,
    /// Owners who wait, by virtual time and the age of their oldest flow.
    heads: BTreeMap<(u64, Age), Owner>,
    /// Owners who have left, by virtual time. Each is ahead of somebody who is present; the others are
    /// forgotten, so there are never many more than have waited at once.
    left: BTreeSet<(u64, Owner)>,
}

#[derive(Debug, Default)]
struct Account {
    /// The owner's virtual time.
    at: u64,
    waiting: BTreeSet<Age>,
    /// Flows that waited and are being looked at: whether they still wait is decided just now.
    looked_at: usize,
}

impl Account {
    fn is_present(&self) -> bool {
        !self.waiting.is_empty() || self.looked_at > 0
    }
}

impl Fair {
    pub(in crate::application) fn new(weights: Arc<Weights>) -> Self {
        Self {
            weights,
            accounts: HashMap::new(),
            present: BTreeSet::new(),
            heads: BTreeMap::new(),
            left: BTreeSet::new(),
        }
    }

    pub(in crate::application) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// The flow waits. Cost, like that of everything that changes: O(log owners + log flows of the owner).
    pub(in crate::application) fn join(&mut self, owner: &Owner, age: Age) {
        self.change(owner, |account| _ = account.waiting.insert(age));
    }

    /// The flow waits no more.
    pub(in crate::application) fn leave(&mut self, owner: &Owner, age: Age) {
        self.change(owner, |account| _ = account.waiting.remove(&age));
    }

    /// The flow is being looked at, and may wait again. [`Self::looked`] must follow.
    pub(in crate::application) fn look(&mut self, owner: &Owner, age: Age) {
        self.change(owner, |account| {
            account.waiting.remove(&age);
            account.looked_at += 1;
        });
    }

    /// It is known whether the flow waits again.
    pub(in crate::application) fn looked(&mut self, owner: &Owner) {
        self.change(owner, |account| {
            account.looked_at = account.looked_at.saturating_sub(1);
        });
    }

    /// A task of the owner starts.
    pub(in crate::application) fn started(&mut self, owner: &Owner) {
        if !self.is_alone(owner) {
            let at = self.time_of(owner) + self.step(owner);
            self.change(owner, |account| account.at = at);
        }
    }

    /// Waiting flows, other than this one, that come before it, up to `max`. Cost: O(max * log max).
    pub(in crate::application) fn ahead(&self, owner: &Owner, age: Age, max: usize) -> usize {
        let account = self.accounts.get(owner);
        let own = account.map_or(0, |account| {
            let older = account.waiting.range(..age);
            older.filter(|other| other.1 != age.1).take(max).count()
        });
        let at = self.time_of(owner) + own as u64 * self.step(owner);
        let others = self.order(Some(owner));
        own + others
            .take(max - own)
            .take_while(|other| *other < (at, age))
            .count()
    }

    /// Waiting flows, first come first. Cost: O(log n) each.
    pub(in crate::application) fn first(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.order(None).map(|(_, (_, flow))| flow)
    }

    /// Whether nobody else waits.
    pub(in crate::application) fn is_alone(&self, owner: &Owner) -> bool {
        let own = self.accounts.get(owner).is_some_and(Account::is_present);
        self.present.len() <= usize::from(own)
    }

    /// Where the owner stands, or would if it came now.
    pub(in crate::application) fn time_of(&self, owner: &Owner) -> u64 {
        match self.accounts.get(owner) {
            Some(account) if account.is_present() => account.at,
            account => account.map_or(0, |account| account.at).max(self.least()),
        }
    }

    fn least(&self) -> u64 {
        self.present.first().map_or(0, |(at, _)| *at)
    }

    fn step(&self, owner: &Owner) -> u64 {
        START / u64::from(self.weights.of(owner.as_deref()))
    }

    /// Changes an account and the places that it has in the indexes.
    fn change(&mut self, owner: &Owner, change: impl FnOnce(&mut Account)) {
        let mut account = self.accounts.remove(owner).unwrap_or_default();
        let was_present = account.is_present();
        let place = (account.at, owner.clone());
        if was_present {
            self.present.remove(&place);
        } else {
            self.left.remove(&place);
        }
        if let Some(head) = account.waiting.first() {
            self.heads.remove(&(account.at, *head));
        }
        change(&mut account);
        if account.is_present() {
            if !was_present {
                account.at = account.at.max(self.least());
            }
            self.present.insert((account.at, owner.clone()));
            if let Some(head) = account.waiting.first() {
                self.heads.insert((account.at, *head), owner.clone());
            }
            self.accounts.insert(owner.clone(), account);
        } else if self.present.is_empty() {
            // Nobody waits for anybody: all are equal again.
            self.accounts.clear();
            self.left.clear();
        } else {
            self.left.insert((account.at, owner.clone()));
            self.accounts.insert(owner.clone(), account);
        }
        let least = self.least();
        while let Some((_, owner)) = self.left.first().filter(|(at, _)| *at <= least) {
            self.accounts.remove(owner);
            self.left.pop_first();
        }
    }

    /// The order of those who wait, but for one owner: as if one task of each flow started.
    fn order<'a>(&'a self, except: Option<&'a Owner>) -> Order<'a> {
        Order {
            fair: self,
            heads: self.heads.iter().peekable(),
            except,
            later: BinaryHeap::new(),
            queues: Vec::new(),
        }
    }
}

type Key = (u64, Age);

/// See [`Fair::order`].
struct Order<'a> {
    fair: &'a Fair,
    /// The oldest flows of owners of whom none came yet.
    heads: Peekable<btree_map::Iter<'a, Key, Owner>>,
    except: Option<&'a Owner>,
    /// The next flows of owners of whom one came: with the index of the queue.
    later: BinaryHeap<Reverse<(Key, usize)>>,
    /// What is left of the queues of these owners, and what a start costs them.
    queues: Vec<(btree_set::Iter<'a, Age>, u64)>,
}

impl Iterator for Order<'_> {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        while self
            .heads
            .next_if(|(_, owner)| Some(*owner) == self.except)
            .is_some()
        {}
        let later = self.later.peek().map(|Reverse((key, _))| *key);
        let head = self
            .heads
            .next_if(|(key, _)| later.is_none_or(|later| **key < later));
        let (key, queue) = if let Some((key, owner)) = head {
            let account = self.fair.accounts.get(owner);
            let account = account.expect("who waits has an account");
            let mut waiting = account.waiting.iter();
            waiting.next();
            self.queues.push((waiting, self.fair.step(owner)));
            (*key, self.queues.len() - 1)
        } else {
            let Reverse(next) = self.later.pop()?;
            next
        };
        let (waiting, step) = &mut self.queues[queue];
        if let Some(age) = waiting.next() {
            self.later.push(Reverse(((key.0 + *step, *age), queue)));
        }
        Some(key)
    }
}

#[cfg(test)]
mod tests;
