//! Tickets of methods with a limit, as a node keeps and writes them.

use std::sync::Arc;
use taskledger::application::ports::Tickets;
use taskledger::clock::{Clock, SystemClock};
use taskledger::engine::workers::StoredTickets;
use taskledger_domain::testing::START;
use taskledger_domain::{LeaseId, Timestamp};
use taskledger_workers::{Method, MethodKey, Rights, WorkerStore};
use tempfile::TempDir;

/// Two nodes that share a store in which `scrape` may be under way once.
struct World {
    one: StoredTickets,
    other: StoredTickets,
    method: MethodKey,
    _folder: TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(WorkerStore::of_folder(folder.path()).await.unwrap());
        let method = Method {
            owner: None,
            name: Arc::from("scrape"),
            description: None,
            input_schema: None,
            output_schema: None,
            defaults: None,
            limit: Some(1),
            declared_by: Arc::from("user:ann"),
            declared_at: START,
        };
        store.declare(&method, Rights::Own).await.unwrap().unwrap();
        Self {
            one: StoredTickets::of(store.clone()),
            other: StoredTickets::of(store),
            method: method.key(),
            _folder: folder,
        }
    }

    fn ticket(&self, lease: LeaseId) -> (MethodKey, LeaseId, Timestamp) {
        (self.method.clone(), lease, until())
    }

    /// Whether this node gets a ticket.
    async fn takes(&self, tickets: &StoredTickets, lease: LeaseId) -> bool {
        let wanted = (&[lease][..], until());
        tickets.take(&self.method, wanted, START).await.unwrap() == 1
    }
}

fn until() -> Timestamp {
    START.plus_ms(60_000)
}

fn lease() -> LeaseId {
    LeaseId(SystemClock::default().uuid())
}

#[tokio::test]
async fn a_ticket_that_is_given_back_is_free_here_at_once_and_elsewhere_when_it_is_written() {
    let w = World::new().await;
    let (first, second) = (lease(), lease());
    assert!(w.takes(&w.one, first).await);
    assert!(!w.takes(&w.one, second).await);
    assert!(!w.takes(&w.other, second).await);
    assert!(w.one.give_back(first));
    assert!(!w.one.give_back(first), "there is none any more");
    assert!(!w.takes(&w.other, lease()).await, "it is not written yet");
    assert!(w.takes(&w.one, second).await);
    assert!(w.one.give_back(second));
    w.one.write().await.unwrap();
    assert!(w.takes(&w.other, lease()).await);
}

#[tokio::test]
async fn an_attempt_that_ends_before_its_ticket_is_written_leaves_none() {
    let w = World::new().await;
    let ended = lease();
    w.one.keep(vec![w.ticket(ended)]);
    assert!(w.one.give_back(ended));
    w.one.write().await.unwrap();
    assert!(w.takes(&w.other, lease()).await);
}

#[tokio::test]
async fn a_ticket_that_is_kept_counts_before_the_next_one_is_taken() {
    let w = World::new().await;
    let kept = lease();
    w.one.keep(vec![w.ticket(kept)]);
    assert!(!w.takes(&w.one, lease()).await);
    assert!(!w.takes(&w.other, lease()).await, "it was written then");
}

#[tokio::test]
async fn another_nodes_ticket_is_neither_written_nor_given_back() {
    let w = World::new().await;
    let moved = lease();
    assert!(w.takes(&w.one, moved).await);
    w.other.keep(vec![w.ticket(moved)]);
    w.other.write().await.unwrap();
    w.one.forget(moved);
    assert!(!w.one.give_back(moved));
    w.one.write().await.unwrap();
    assert!(!w.takes(&w.one, lease()).await, "it goes on over there");
    assert!(w.other.give_back(moved));
    assert!(w.takes(&w.other, lease()).await);
}
