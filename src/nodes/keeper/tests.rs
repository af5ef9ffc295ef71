//! The keeper, with leases that the test hands out.

use super::*;
use crate::application::ownership::{Ownership, Place};
use crate::nodes::leases::{Error, Standing};
use crate::nodes::{LEASES, MARGIN, TTL};
use async_trait::async_trait;
use std::sync::Mutex;
use taskledger_domain::FlowId;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

const ME: u128 = 1;

type Beat = (Vec<Held>, oneshot::Sender<Result<Sight, Error>>);

/// Leases that ask the test.
#[derive(Debug)]
struct Asked {
    beats: mpsc::UnboundedSender<Beat>,
    left: Mutex<bool>,
}

#[async_trait]
impl Leases for Asked {
    async fn beat(&self, _: &Node, held: &[Held]) -> Result<Sight, Error> {
        let (answer, answered) = oneshot::channel();
        let _ = self.beats.send((held.to_vec(), answer));
        match answered.await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    }
    async fn leave(&self, _: &Node) -> Result<(), Error> {
        *self.left.lock().unwrap() = true;
        Ok(())
    }
}

/// What the listener was told, and whether it was true then.
#[derive(Debug)]
struct Told {
    ownership: Arc<NodeOwnership>,
    lost: Mutex<Partitions>,
    gained: Mutex<Partitions>,
    busy: Mutex<Partitions>,
}

impl PartitionListener for Told {
    fn lost(&self, partitions: &Partitions) {
        for flow in flows().filter(|flow| partitions.contain(*flow)) {
            assert!(
                !matches!(self.ownership.of(flow), Place::Here(_)),
                "what is lost is not held while it is dropped"
            );
        }
        self.lost.lock().unwrap().extend(partitions);
    }
    fn gained(&self, partitions: &Partitions) {
        self.gained.lock().unwrap().extend(partitions);
    }
    fn busy(&self) -> Partitions {
        *self.busy.lock().unwrap()
    }
}

struct World {
    ownership: Arc<NodeOwnership>,
    told: Arc<Told>,
    leases: Arc<Asked>,
    beats: mpsc::UnboundedReceiver<Beat>,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<Result<(), Error>>,
}

/// Flows of many partitions.
fn flows() -> impl Iterator<Item = FlowId> {
    (0..2000).map(|n| FlowId(Uuid::from_u128(n)))
}

fn node(n: u128) -> Node {
    Node {
        id: Uuid::from_u128(n),
        url: Arc::from(format!("http://node-{n}")),
    }
}

fn held(leases: impl IntoIterator<Item = u16>, token: u64) -> Vec<Held> {
    let held = |lease| Held { lease, token };
    leases.into_iter().map(held).collect()
}

fn sight(nodes: &[(u128, Vec<Held>)]) -> Sight {
    let standing = |(n, holds): &(u128, Vec<Held>)| Standing {
        node: Arc::new(node(*n)),
        holds: holds.clone(),
    };
    Sight {
        nodes: nodes.iter().map(standing).collect(),
    }
}

fn all() -> std::ops::Range<u16> {
    0..u16::try_from(LEASES).unwrap()
}

impl World {
    fn new() -> Self {
        let (sender, beats) = mpsc::unbounded_channel();
        let ownership = NodeOwnership::new(Uuid::from_u128(ME));
        let leases = Arc::new(Asked {
            beats: sender,
            left: Mutex::default(),
        });
        let told = Arc::new(Told {
            ownership: ownership.clone(),
            lost: Mutex::default(),
            gained: Mutex::default(),
            busy: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let keeper = Keeper::new(
            node(ME).url,
            ownership.clone(),
            leases.clone(),
            told.clone(),
        );
        let running = tokio::spawn(keeper.run(stop.clone()));
        Self {
            ownership,
            told,
            leases,
            beats,
            stop,
            running,
        }
    }

    async fn beat(&mut self) -> Beat {
        self.beats.recv().await.expect("the keeper beats")
    }

    /// Answers the next beat; what it said to hold.
    async fn answer(&mut self, nodes: &[(u128, Vec<Held>)]) -> Vec<Held> {
        let (asked, answer) = self.beat().await;
        answer.send(Ok(sight(nodes))).expect("the keeper waits");
        // The answer is taken in before the keeper sleeps.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        asked
    }

    fn here(&self) -> usize {
        let here = |flow: &FlowId| matches!(self.ownership.of(*flow), Place::Here(_));
        let mut partitions = Partitions::default();
        let flows = flows().filter(here);
        flows.for_each(|flow| partitions.extend(&Partitions::of(flow)));
        partitions.len()
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_relies_on_its_leases_for_less_than_they_were_granted() {
    let mut w = World::new();
    assert_eq!(w.here(), 0, "nothing is held before the first beat");
    let (asked, answer) = w.beat().await;
    let sent = Instant::now();
    assert_eq!(asked, []);
    // The answer is a second on its way.
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    answer.send(Ok(sight(&[(ME, held(all(), 1))]))).unwrap();
    let _unanswered = w.beat().await;
    assert_eq!(w.here(), 256);
    tokio::time::sleep_until(sent + (TTL - MARGIN) - std::time::Duration::from_millis(1)).await;
    assert_eq!(w.here(), 256);
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    assert_eq!(w.here(), 0);
    assert_eq!(w.told.lost.lock().unwrap().len(), 256);
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_by_time_does_not_come_back_with_a_late_answer() {
    let mut w = World::new();
    let everything = held(all(), 1);
    w.answer(&[(ME, everything.clone())]).await;
    // Beats fail until the leases are nearly over.
    for _ in 0..2 {
        let (asked, answer) = w.beat().await;
        assert_eq!(asked, everything);
        let _ = answer.send(Err(Error::Unavailable("away".to_owned())));
    }
    let (asked, answer) = w.beat().await;
    assert_eq!(asked, everything);
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert_eq!(w.here(), 0);
    answer.send(Ok(sight(&[(ME, everything)]))).unwrap();
    let (asked, answer) = w.beat().await;
    assert_eq!((asked, w.here()), (vec![], 0), "all of it is given up");
    answer.send(Ok(sight(&[(ME, held(all(), 2))]))).unwrap();
    let _next = w.beat().await;
    assert_eq!(w.here(), 256, "under other tokens it may come back");
}

#[tokio::test(start_paused = true)]
async fn a_beat_that_gets_no_answer_is_followed_by_another() {
    let mut w = World::new();
    let (_, unanswered) = w.beat().await;
    let (_, answer) = w.beat().await;
    drop(unanswered);
    answer.send(Ok(sight(&[(ME, held(all(), 1))]))).unwrap();
    let _next = w.beat().await;
    assert_eq!(w.here(), 256);
}

#[tokio::test(start_paused = true)]
async fn what_exceeds_the_share_is_given_up_before_the_database_hears_of_it() {
    let mut w = World::new();
    w.answer(&[(ME, held(all(), 1))]).await;
    let busy: Partitions = (0..100).collect();
    *w.told.busy.lock().unwrap() = busy;
    let shared = [(ME, held(all(), 1)), (2, vec![])];
    w.answer(&shared).await;
    assert_eq!(w.here(), 256 - GIVE_MAX, "at most so many at once");
    let (asked, answer) = w.beat().await;
    assert_eq!(asked.len(), LEASES - GIVE_MAX);
    let kept = |held: &Held| u8::try_from(held.lease).is_ok_and(|p| busy.has(p));
    assert_eq!(asked.iter().filter(|h| kept(h)).count(), 100);
    assert!(asked.iter().any(|h| h.lease == READ_MODELS));
    let others = |h: &Held| !asked.contains(h);
    let gone: Vec<Held> = held(all(), 1).into_iter().filter(others).collect();
    let taken = gone.iter().map(|h| Held { token: 2, ..*h }).collect();
    let shared = [(ME, asked.clone()), (2, taken)];
    answer.send(Ok(sight(&shared))).unwrap();
    // This beat only announced it; the next ones come a second later.
    assert_eq!(w.answer(&shared).await, asked);
    let (asked, _answer) = w.beat().await;
    // 257 leases, 129 for each of the two.
    assert_eq!(asked.len(), 129);
    let there = |flow: FlowId| matches!(w.ownership.of(flow), Place::There(n) if *n == node(2));
    assert!(flows().any(there));
}

#[tokio::test(start_paused = true)]
async fn a_lease_with_another_token_is_lost_and_gained() {
    let mut w = World::new();
    w.answer(&[(ME, held(all(), 1))]).await;
    let mut other = held(all(), 1);
    other[7].token = 5;
    w.answer(&[(ME, other)]).await;
    let _next = w.beat().await;
    let seventh: Partitions = [7].into_iter().collect();
    assert_eq!(*w.told.lost.lock().unwrap(), seventh);
    let flow = flows().find(|flow| seventh.contain(*flow)).unwrap();
    let Place::Here(Some(fence)) = w.ownership.of(flow) else {
        panic!("it is held");
    };
    assert_eq!((&*fence.name, fence.token), ("partition/7", 5));
}

#[tokio::test(start_paused = true)]
async fn a_refused_append_ends_its_ownership_at_once() {
    let mut w = World::new();
    w.answer(&[(ME, held(all(), 1))]).await;
    let flow = flows().next().unwrap();
    let Place::Here(fence) = w.ownership.of(flow) else {
        panic!("it is held");
    };
    w.ownership.refuted(flow, fence.as_ref());
    assert_eq!(w.ownership.of(flow), Place::Nobody);
    // Told at once, and it is not asked for any more.
    let (asked, _answer) = w.beat().await;
    assert_eq!(asked.len(), LEASES - 1);
    assert_eq!(*w.told.lost.lock().unwrap(), Partitions::of(flow));
}

#[tokio::test(start_paused = true)]
async fn one_node_folds_the_read_models() {
    let mut w = World::new();
    let mut folds = w.ownership.folds();
    assert!(!*folds.borrow_and_update());
    w.answer(&[(ME, held([READ_MODELS], 1))]).await;
    assert!(*folds.borrow_and_update());
    w.answer(&[(ME, vec![]), (2, held([READ_MODELS], 2))]).await;
    assert!(!*folds.borrow_and_update());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_gives_everything_up() {
    let mut w = World::new();
    w.answer(&[(ME, held(all(), 1))]).await;
    w.stop.cancel();
    let ended = w.running.await.expect("the keeper ends");
    assert!(ended.is_ok(), "{ended:?}");
    assert!(*w.leases.left.lock().unwrap());
    let lost = *w.told.lost.lock().unwrap();
    assert_eq!(lost, Partitions::ALL);
    assert!(flows().all(|flow| w.ownership.of(flow) == Place::Nobody));
}

#[tokio::test(start_paused = true)]
async fn a_call_on_its_way_to_a_node_ends_with_the_node() {
    let mut w = World::new();
    w.answer(&[(ME, vec![]), (2, held(all(), 1))]).await;
    let ownership = w.ownership.clone();
    let gone = ownership.gone(Uuid::from_u128(2));
    let mut gone = std::pin::pin!(gone);
    assert!(futures_util::poll!(gone.as_mut()).is_pending());
    w.answer(&[(ME, held(all(), 2))]).await;
    gone.await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_must_not_take_part_gives_up_what_it_holds_and_ends() {
    let mut w = World::new();
    let (_, answer) = w.beats.recv().await.expect("it beats");
    answer
        .send(Err(Error::Differs {
            is_on: false,
            other: None,
        }))
        .expect("it waits");
    let ended = w.running.await.expect("the keeper ends");
    assert!(
        matches!(ended, Err(Error::Differs { is_on: false, .. })),
        "{ended:?}"
    );
    assert!(*w.leases.left.lock().unwrap());
    assert!(w.ownership.held().is_empty());
}
