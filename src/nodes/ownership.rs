//! Which partitions this node owns at this moment, and which node it believes to own each of the others.

use super::leases::{Held, Sight};
use super::{LEASES, MARGIN, READ_MODELS, TTL};
use crate::application::Partitions;
use crate::application::ownership::{Census, Node, Ownership, Place, Refuted};
use crate::meters::Counter;
use crate::store::Fence;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};
use taskledger_domain::FlowId;
use taskledger_domain::partition;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use uuid::Uuid;

/// The partitions that this node owns, with their tokens. Asked for each order; changed by the keeper
/// alone, but for what an append refutes.
#[derive(Debug)]
pub struct NodeOwnership {
    me: Uuid,
    seen: RwLock<Seen>,
    /// An append was refused: the keeper asks anew.
    pub(super) refuted: Notify,
    /// Whether this node folds the read models.
    folds: watch::Sender<bool>,
    /// Nodes that live.
    alive: watch::Sender<Vec<Uuid>>,
    /// Partitions that have come or left.
    pub(super) moves: Counter,
}

#[derive(Debug)]
struct Seen {
    /// Until when what is ours can be relied on; `None`: nothing is ours.
    until: Option<Instant>,
    /// By lease.
    owners: Vec<Owner>,
    /// Partitions that an append has shown to be lost, and that the keeper has not heard of.
    refuted: Partitions,
    /// Nodes that live and the partitions of each.
    nodes: Vec<(Arc<Node>, usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    Me(Fence),
    Other(Arc<Node>),
    Nobody,
}

impl Seen {
    fn is_ours(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    fn ours(&self) -> impl Iterator<Item = Held> + '_ {
        let number = |lease| u16::try_from(lease).expect("there are few leases");
        let mine = move |(lease, owner): (usize, &Owner)| match owner {
            Owner::Me(fence) => Some(Held {
                lease: number(lease),
                token: fence.token,
            }),
            Owner::Other(_) | Owner::Nobody => None,
        };
        self.owners.iter().enumerate().filter_map(mine)
    }

    /// Makes ours nobody's, for those leases that are to go. Gives their partitions, and those that
    /// went by themselves before.
    fn drop_if(&mut self, goes: impl Fn(Held) -> bool) -> Partitions {
        let going: Vec<Held> = self.ours().filter(|held| goes(*held)).collect();
        for held in &going {
            self.owners[usize::from(held.lease)] = Owner::Nobody;
        }
        let mut gone = std::mem::take(&mut self.refuted);
        gone.extend(&partitions(&going));
        gone
    }
}

/// The partitions among leases.
pub(super) fn partitions(leases: &[Held]) -> Partitions {
    let lease = leases.iter().map(|held| held.lease);
    lease.filter_map(|lease| u8::try_from(lease).ok()).collect()
}

impl NodeOwnership {
    /// The ownership of a node that has not asked yet: nobody owns anything.
    #[must_use]
    pub fn new(me: Uuid) -> Arc<Self> {
        let seen = Seen {
            until: None,
            owners: vec![Owner::Nobody; LEASES],
            refuted: Partitions::default(),
            nodes: Vec::new(),
        };
        Arc::new(Self {
            me,
            seen: RwLock::new(seen),
            refuted: Notify::new(),
            folds: watch::channel(false).0,
            alive: watch::channel(Vec::new()).0,
            moves: Counter::default(),
        })
    }

    /// This node.
    #[must_use]
    pub const fn me(&self) -> Uuid {
        self.me
    }

    /// Whether this node is the one that folds the read models.
    #[must_use]
    pub fn folds(&self) -> watch::Receiver<bool> {
        self.folds.subscribe()
    }

    /// Ends when a node does not live any more, as far as this one knows.
    pub(super) async fn gone(&self, node: Uuid) {
        let mut alive = self.alive.subscribe();
        let gone = alive.wait_for(|nodes| !nodes.contains(&node)).await;
        gone.expect("the ownership holds the sender");
    }

    fn seen(&self) -> RwLockReadGuard<'_, Seen> {
        self.seen
            .read()
            .expect("no code panics while it holds the ownership")
    }

    fn change(&self) -> RwLockWriteGuard<'_, Seen> {
        self.seen
            .write()
            .expect("no code panics while it holds the ownership")
    }

    /// When the leases end by themselves.
    pub(super) fn until(&self) -> Option<Instant> {
        self.seen().until
    }

    /// What is ours still.
    pub(super) fn held(&self) -> Vec<Held> {
        let seen = self.seen();
        if seen.is_ours(Instant::now()) {
            seen.ours().collect()
        } else {
            Vec::new()
        }
    }

    /// Gives up everything if its time has passed. Gives the partitions that went, by this or before.
    pub(super) fn expire(&self) -> Partitions {
        let mut seen = self.change();
        let over = !seen.is_ours(Instant::now());
        if over {
            seen.until = None;
        }
        let gone = seen.drop_if(|_| over);
        self.tell(&seen);
        gone
    }

    /// Gives up what is ours of these leases. Before the database hears of it: from then on others
    /// may have them.
    pub(super) fn give(&self, leases: &[Held]) -> Partitions {
        let mut seen = self.change();
        let gone = seen.drop_if(|held| leases.contains(&held));
        self.tell(&seen);
        gone
    }

    /// First half of taking in what a beat has shown, asked for at `sent`: what is ours no more
    /// according to it, or came too late to be, is given up. Gives those partitions. What stays is ours
    /// for as long as the beat grants from this moment on: were that said later, its time could pass
    /// in between, and it would hold again after it had been over.
    pub(super) fn drop_lost(&self, sent: Instant, sight: &Sight) -> Partitions {
        let mut seen = self.change();
        let mine = self.holds(sight);
        let late = !seen.is_ours(Instant::now());
        let gone = seen.drop_if(|held| late || !mine.contains(&held));
        if !late {
            seen.until = seen.until.max(Some(sent + (TTL - MARGIN)));
        }
        self.tell(&seen);
        gone
    }

    /// Second half, after nothing is left of what was lost: the rest is as the beat says, counted
    /// from before it was asked for with `asked`. What was asked for and lost meanwhile does not come
    /// back: it is given up with the next beat. What is ours still, and whose time passes just now, is
    /// left for [`Self::expire`], so that its loss is told. Gives the partitions that are new here.
    pub(super) fn take(&self, sent: Instant, asked: &[Held], sight: &Sight) -> Partitions {
        let mut seen = self.change();
        let before: Vec<Held> = seen.ours().collect();
        let until = sent + (TTL - MARGIN);
        let in_time = Instant::now() < until;
        let mut owners = vec![Owner::Nobody; LEASES];
        for standing in &sight.nodes {
            for held in &standing.holds {
                let owner = &mut owners[usize::from(held.lease)];
                if standing.node.id != self.me {
                    *owner = Owner::Other(standing.node.clone());
                } else if before.contains(held) || (in_time && !asked.contains(held)) {
                    *owner = Owner::Me(fence(*held));
                }
            }
        }
        seen.owners = owners;
        seen.until = Some(until);
        let count = |node: &super::Standing| partitions(&node.holds).len();
        seen.nodes = sight
            .nodes
            .iter()
            .map(|standing| (standing.node.clone(), count(standing)))
            .collect();
        let alive = sight.nodes.iter().map(|standing| standing.node.id);
        self.alive.send_replace(alive.collect());
        self.tell(&seen);
        let new: Vec<Held> = seen.ours().filter(|held| !before.contains(held)).collect();
        partitions(&new)
    }

    fn holds<'a>(&self, sight: &'a Sight) -> &'a [Held] {
        let mine = sight.nodes.iter().find(|s| s.node.id == self.me);
        mine.map_or(&[], |standing| &standing.holds)
    }

    fn tell(&self, seen: &Seen) {
        let folds = matches!(seen.owners[usize::from(READ_MODELS)], Owner::Me(_));
        self.folds.send_if_modified(|now| {
            let changed = *now != folds;
            *now = folds;
            changed
        });
    }
}

fn fence(held: Held) -> Fence {
    Fence {
        name: Arc::from(format!("partition/{}", held.lease)),
        token: held.token,
    }
}

impl Ownership for NodeOwnership {
    fn of(&self, flow: FlowId) -> Place {
        let seen = self.seen();
        match &seen.owners[usize::from(partition(flow))] {
            Owner::Me(fence) if seen.is_ours(Instant::now()) => Place::Here(Some(fence.clone())),
            Owner::Other(node) => Place::There(node.clone()),
            Owner::Me(_) | Owner::Nobody => Place::Nobody,
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn refuted(&self, flow: FlowId, fence: Option<&Fence>) -> Refuted {
        let mut seen = self.change();
        let owner = &mut seen.owners[usize::from(partition(flow))];
        if matches!(owner, Owner::Me(mine) if Some(&*mine) == fence) {
            *owner = Owner::Nobody;
            seen.refuted.insert(partition(flow));
            self.refuted.notify_one();
        }
        Refuted::Partition
    }

    fn census(&self) -> Option<Census> {
        let seen = self.seen();
        Some(Census {
            me: self.me,
            partitions: if seen.is_ours(Instant::now()) {
                partitions(&seen.ours().collect::<Vec<_>>()).len()
            } else {
                0
            },
            nodes: seen.nodes.clone(),
            folds: *self.folds.borrow(),
            moves: self.moves.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Standing;

    fn sight(me: Uuid, token: u64) -> Sight {
        let holds = (0..256).map(|lease| Held { lease, token }).collect();
        let (id, url) = (me, Arc::from("http://me"));
        let node = Arc::new(Node { id, url });
        Sight {
            nodes: vec![Standing { node, holds }],
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_beat_has_renewed_is_never_over_in_between() {
        let (me, flow) = (Uuid::from_u128(1), FlowId(Uuid::from_u128(7)));
        let ownership = NodeOwnership::new(me);
        let first = Instant::now();
        ownership.take(first, &[], &sight(me, 1));
        let held = ownership.of(flow);
        assert!(matches!(held, Place::Here(_)));
        tokio::time::advance(TTL - MARGIN - std::time::Duration::from_millis(1)).await;
        let second = Instant::now();
        let asked = ownership.held();
        assert!(ownership.drop_lost(second, &sight(me, 1)).is_empty());
        // The time of the first beat passes between the halves of the second.
        tokio::time::advance(std::time::Duration::from_millis(2)).await;
        assert_eq!(ownership.of(flow), held);
        assert!(ownership.take(second, &asked, &sight(me, 1)).is_empty());
        assert_eq!(ownership.of(flow), held);
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_while_an_answer_is_taken_in_is_told_as_lost() {
        let (me, flow) = (Uuid::from_u128(1), FlowId(Uuid::from_u128(7)));
        let ownership = NodeOwnership::new(me);
        let sent = Instant::now();
        ownership.take(sent, &[], &sight(me, 1));
        let asked = ownership.held();
        assert!(ownership.drop_lost(sent, &sight(me, 1)).is_empty());
        tokio::time::advance(TTL).await;
        assert!(ownership.take(sent, &asked, &sight(me, 1)).is_empty());
        assert_eq!(ownership.of(flow), Place::Nobody);
        assert_eq!(ownership.expire(), Partitions::ALL);
    }
}
