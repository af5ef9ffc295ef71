//! The ownership of flows: a flow's commands are decided by this node, by another one, or by none at the moment.
//!
//! A flow has one owner at a time, the holder of its partition. All commands for a flow and all
//! looks at its state happen in the mailbox of its owner, so what is resident there is the truth:
//! refusals, answers that change nothing and cached rows rest on it. Which node owns what is
//! settled elsewhere (`nodes`); a server that is alone owns everything.

use crate::store::Fence;
use std::fmt;
use std::sync::Arc;
use taskledger_domain::FlowId;
use taskledger_domain::partition;
use uuid::Uuid;

/// Ids that are drawn for a new flow until one lies in a partition of this node. With a third of the
/// partitions, all of them miss once in 10^11 times; then the creation is forwarded like any other
/// call.
const DRAWS_MAX: usize = 64;

/// A server that shares the log with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Fresh for each start of a server, so that nobody takes it for its predecessor.
    pub id: Uuid,
    /// Where other nodes reach it: `http://host:port`.
    pub url: Arc<str>,
}

/// The node that decides a flow's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Here; appends carry this proof of ownership.
    Here(Option<Fence>),
    /// By another node, as far as this one knows.
    There(Arc<Node>),
    /// By nobody: the lease is free, or ours is too close to its end to rely on. Soon somebody has it.
    Nobody,
}

/// What follows from an append that was refused because its proof of ownership is out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refuted {
    /// Another server has taken over everything: this one stops.
    Server,
    /// One partition has another owner.
    Partition,
}

/// The servers that share a log, as one of them sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Census {
    /// This one.
    pub me: Uuid,
    /// Partitions that this one may rely on.
    pub partitions: usize,
    /// All that live, this one included, with the partitions of each.
    pub nodes: Vec<(Arc<Node>, usize)>,
    /// Whether this one folds the read models.
    pub folds: bool,
    /// Partitions that have come to this one or left it since the start.
    pub moves: u64,
}

/// Tells who owns a flow. Asked for each order, so it must be quick.
pub trait Ownership: Send + Sync + fmt::Debug + 'static {
    /// Where commands for the flow are decided now. Once it has said that an ownership is over, it
    /// never says again that it holds: a later one has another fence.
    fn of(&self, flow: FlowId) -> Place;

    /// Whether other servers write to the same log.
    fn is_shared(&self) -> bool;

    /// An append of the flow with this proof was refused: the ownership that it stands for is over.
    fn refuted(&self, flow: FlowId, fence: Option<&Fence>) -> Refuted;

    /// The servers that share the log; `None` for one that is alone.
    fn census(&self) -> Option<Census> {
        None
    }

    /// An id for the root of a new flow, out of `ids`, so that the flow is owned here if that can be.
    fn mint(&self, ids: &dyn Fn() -> Uuid) -> Uuid {
        let mut id = ids();
        for _ in 1..DRAWS_MAX {
            match self.of(FlowId(id)) {
                Place::Here(_) => break,
                Place::There(_) | Place::Nobody => id = ids(),
            }
        }
        id
    }
}

/// The ownership of a server that is alone: it owns every flow, until another one replaces it.
#[derive(Debug)]
pub struct Sole(pub Option<Fence>);

impl Ownership for Sole {
    fn of(&self, _: FlowId) -> Place {
        Place::Here(self.0.clone())
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn refuted(&self, _: FlowId, _: Option<&Fence>) -> Refuted {
        Refuted::Server
    }
}

/// Partitions into which flows fall ([`partition`]).
pub const PARTITIONS: usize = 256;

/// A set of partitions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Partitions([u64; PARTITIONS / 64]);

impl Partitions {
    /// Every partition.
    pub const ALL: Self = Self([u64::MAX; PARTITIONS / 64]);

    /// The partition of one flow.
    #[must_use]
    pub fn of(flow: FlowId) -> Self {
        std::iter::once(partition(flow)).collect()
    }

    /// Adds a partition.
    pub fn insert(&mut self, partition: u8) {
        self.0[usize::from(partition) / 64] |= 1 << (partition % 64);
    }

    /// Adds all of the others.
    pub fn extend(&mut self, others: &Self) {
        for (mine, other) in self.0.iter_mut().zip(others.0) {
            *mine |= other;
        }
    }

    /// Removes all of the others.
    pub fn remove(&mut self, others: &Self) {
        for (mine, other) in self.0.iter_mut().zip(others.0) {
            *mine &= !other;
        }
    }

    /// Whether a flow is in one of them.
    #[must_use]
    pub fn contain(&self, flow: FlowId) -> bool {
        self.has(partition(flow))
    }

    /// Whether a partition is among them.
    #[must_use]
    pub fn has(&self, partition: u8) -> bool {
        self.0[usize::from(partition) / 64] & (1 << (partition % 64)) != 0
    }

    /// Number of partitions in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// From the lowest to the highest.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|partition| self.has(*partition))
    }
}

impl FromIterator<u8> for Partitions {
    fn from_iter<I: IntoIterator<Item = u8>>(partitions: I) -> Self {
        let mut set = Self::default();
        partitions.into_iter().for_each(|p| set.insert(p));
        set
    }
}

impl fmt::Debug for Partitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, SystemClock};

    #[derive(Debug)]
    struct Only(Partitions);

    impl Ownership for Only {
        fn of(&self, flow: FlowId) -> Place {
            if self.0.contain(flow) {
                Place::Here(None)
            } else {
                Place::Nobody
            }
        }
        fn is_shared(&self) -> bool {
            true
        }
        fn refuted(&self, _: FlowId, _: Option<&Fence>) -> Refuted {
            Refuted::Partition
        }
    }

    #[test]
    fn new_flows_fall_into_partitions_of_this_node() {
        let clock = SystemClock::default();
        let mine = Only((0..85).collect());
        for _ in 0..100 {
            assert!(mine.0.contain(FlowId(mine.mint(&|| clock.uuid()))));
        }
    }

    #[test]
    fn a_node_that_owns_nothing_still_makes_ids() {
        let clock = SystemClock::default();
        let drawn = std::cell::Cell::new(0);
        let draw = || {
            drawn.set(drawn.get() + 1);
            clock.uuid()
        };
        let _ = Only(Partitions::default()).mint(&draw);
        assert_eq!(drawn.get(), DRAWS_MAX);
    }

    #[test]
    fn sets_of_partitions_are_sets() {
        let mut set: Partitions = [0, 63, 64, 255].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 255]);
        set.remove(&[63, 255].into_iter().collect());
        set.extend(&[7].into_iter().collect());
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 7, 64]);
        assert_eq!((set.len(), Partitions::ALL.len()), (3, PARTITIONS));
    }
}
