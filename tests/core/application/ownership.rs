//! Flows that come to this node and leave it, at every moment at which that can happen.

use crate::application::world::{
    Make, World, caller, foreign_rename, metadata, quiet, refused, soon, task,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use taskledger::application::ownership::{Census, Node, Place, Refuted};
use taskledger::application::{Consistency, Error, Ownership, Partitions};
use taskledger::store::{EventStore, Fence, NewEvent};
use taskledger_domain::flow::{Event, Kind, TaskDeleted};
use taskledger_domain::partition;
use taskledger_domain::task::{Priority, Status};
use taskledger_domain::testing::{START, id};
use taskledger_domain::{EventId, FlowId, TaskId, Timestamp};

/// An ownership that the test moves by hand: these partitions are here, the others there.
#[derive(Debug)]
pub(crate) struct Hand {
    /// With the fence of each.
    here: Mutex<HashMap<u8, Fence>>,
    other: Mutex<Option<Arc<Node>>>,
    /// Whether it counts the nodes.
    counts: AtomicBool,
}

impl Ownership for Hand {
    fn of(&self, flow: FlowId) -> Place {
        if let Some(fence) = self.here.lock().unwrap().get(&partition(flow)) {
            return Place::Here(Some(fence.clone()));
        }
        match &*self.other.lock().unwrap() {
            Some(node) => Place::There(node.clone()),
            None => Place::Nobody,
        }
    }
    fn is_shared(&self) -> bool {
        true
    }
    fn refuted(&self, flow: FlowId, fence: Option<&Fence>) -> Refuted {
        let mut here = self.here.lock().unwrap();
        if here.get(&partition(flow)) == fence {
            here.remove(&partition(flow));
        }
        Refuted::Partition
    }
    fn census(&self) -> Option<Census> {
        let me = Arc::new(Node {
            id: id("this node").0,
            url: Arc::from("http://this"),
        });
        self.counts.load(Ordering::Relaxed).then(|| Census {
            me: me.id,
            partitions: self.here.lock().unwrap().len(),
            nodes: vec![(me, 1), (other(), 1)],
            folds: false,
            moves: 0,
        })
    }
}

fn other() -> Arc<Node> {
    Arc::new(Node {
        id: id("another node").0,
        url: Arc::from("http://another"),
    })
}

impl Hand {
    fn empty() -> (Arc<Self>, Make) {
        let hand = Arc::new(Self {
            here: Mutex::default(),
            other: Mutex::new(Some(other())),
            counts: AtomicBool::new(false),
        });
        let make = Make {
            ownership: Some(hand.clone()),
            ..Make::default()
        };
        (hand, make)
    }

    pub(crate) async fn world() -> (World, Arc<Self>) {
        let (hand, make) = Self::empty();
        let w = World::made(make).await;
        hand.take(&w, Partitions::ALL).await;
        (w, hand)
    }

    /// Another node over the log of this one; it owns nothing yet.
    pub(crate) async fn beside(w: &World) -> (World, Arc<Self>) {
        let (hand, make) = Self::empty();
        (w.beside(make).await, hand)
    }

    /// The flows of these partitions come, each under a new token; all others are not here.
    pub(crate) async fn take(&self, w: &World, partitions: Partitions) {
        let mut here = HashMap::new();
        for partition in partitions.iter() {
            here.insert(partition, raised(w, partition).await);
        }
        *self.here.lock().unwrap() = here;
    }

    /// From now on it tells that there is another node.
    pub(crate) fn count(&self) {
        self.counts.store(true, Ordering::Relaxed);
    }

    /// They are not here any more; nobody has been told.
    pub(crate) fn slip(&self) {
        self.here.lock().unwrap().clear();
    }

    /// They leave, as they do when all goes well.
    pub(crate) fn leave(&self, w: &World) {
        self.slip();
        w.app.flows.lost(&Partitions::ALL);
    }
}

/// A partition has got another owner.
async fn raised(w: &World, partition: u8) -> Fence {
    let name = format!("partition/{partition}");
    let token = w.log.inner().raise_fence(&name).await.unwrap();
    let name = Arc::from(name);
    Fence { name, token }
}

fn elsewhere(result: Result<Value, Error>) -> Option<Arc<Node>> {
    match result {
        Err(Error::Elsewhere(owner)) => owner,
        other => panic!("expected to be sent elsewhere, got {other:?}"),
    }
}

fn foreign_deletion(name: &str) -> NewEvent {
    let event = Event::TaskDeleted(TaskDeleted { task_id: id(name) });
    let event_id = EventId(id(&format!("deletion of {name}")).0);
    NewEvent::new(event_id, START, metadata("foreign"), event)
}

async fn name_of(w: &World, task: TaskId) -> Value {
    let read =
        w.call(move |app| async move { app.get(&caller(), task, Consistency::Strong).await });
    soon(read).await.unwrap().expect("it is there")["name"].clone()
}

#[tokio::test]
async fn a_command_for_a_flow_of_another_node_is_told_whose_it_is() {
    let (w, hand) = Hand::world().await;
    let flow = w.given_flow("root", &["a"]).await;
    hand.leave(&w);
    assert_eq!(
        elsewhere(soon(w.rename("a", "b")).await.unwrap()),
        Some(other())
    );
    *hand.other.lock().unwrap() = None;
    assert_eq!(elsewhere(soon(w.rename("a", "b")).await.unwrap()), None);
    assert_eq!(w.history(flow).await.len(), 2);
    assert_eq!(w.app.flows.resident().0, 0, "nothing of it is kept");
}

#[tokio::test]
async fn an_append_that_meets_a_new_owner_is_not_written_and_told_whose_the_flow_is() {
    let (w, _hand) = Hand::world().await;
    let flow = w.given_flow("root", &["a", "b"]).await;
    let mut hold = w.faults.hold_next_append();
    let first = w.rename("a", "first");
    hold.arrived().await;
    let second = w.rename("b", "second");
    quiet().await;
    raised(&w, partition(flow)).await;
    hold.release();
    assert_eq!(elsewhere(soon(first).await.unwrap()), Some(other()));
    assert_eq!(elsewhere(soon(second).await.unwrap()), Some(other()));
    assert_eq!(w.history(flow).await.len(), 3);
    assert!(!w.stop.is_cancelled(), "the server has other flows");
}

#[tokio::test]
async fn commands_that_met_a_new_token_are_decided_on_what_is_stored_then() {
    let (w, hand) = Hand::world().await;
    let flow = w.given_flow("root", &["a", "b"]).await;
    let mut hold = w.faults.hold_next_append();
    let first = w.rename("a", "mine");
    hold.arrived().await;
    let second = w.rename("b", "kept");
    quiet().await;
    w.foreign_write(flow, vec![foreign_deletion("a")]).await;
    hand.take(&w, Partitions::ALL).await;
    hold.release();
    assert_eq!(refused(soon(first).await.unwrap()), Kind::NotFound);
    assert!(soon(second).await.unwrap().is_ok());
}

#[tokio::test]
async fn what_was_written_before_the_loss_is_answered_and_not_acted_on() {
    let (w, hand) = Hand::world().await;
    let mut hold = w.faults.hold_next_answer();
    let run = w.execute(caller(), json!([task("a", "work")]));
    hold.arrived().await;
    hand.leave(&w);
    hold.release();
    assert!(soon(run).await.unwrap().is_ok());
    quiet().await;
    assert_eq!((w.script.launches(), w.taken()), (vec![], 0));
    assert_eq!(w.app.rows.flow_of(id("a")), None);
    assert_eq!(w.app.flows.resident().0, 0);

    // The next owner finds an attempt that nobody runs.
    hand.take(&w, Partitions::ALL).await;
    w.app.flows.wake(id("a").as_flow());
    w.script.launched(1).await;
    assert_eq!(w.script.launches(), [(id("a"), 2)]);
}

#[tokio::test]
async fn a_flow_that_was_lost_while_it_was_decided_waits_for_no_slot() {
    let (w, hand) = Hand::world().await;
    w.executors.add("one", "one", 1, true);
    let run = w.execute(caller(), json!([task("a", "one")]));
    assert!(soon(run).await.unwrap().is_ok());
    let mut hold = w.faults.hold_next_append();
    let waiting = w.execute(caller(), json!([task("b", "one")]));
    hold.arrived().await;
    // Everything was told before the flow registered that it waits.
    hand.slip();
    raised(&w, partition(id("b").as_flow())).await;
    hold.release();
    assert_eq!(elsewhere(soon(waiting).await.unwrap()), Some(other()));
    quiet().await;
    let rank = (Priority::NORMAL, Timestamp(i64::MAX));
    let flow = (id("c").as_flow(), None);
    let line = w.app.flows.slots().line("one", flow, rank);
    assert_eq!(line.flows_ahead, 0);
    assert!(!w.app.flows.attends(id("b").as_flow()));
}

#[tokio::test]
async fn a_late_answer_of_an_earlier_ownership_leaves_neighbours_their_attempts() {
    let (w, hand) = Hand::world().await;
    let mut names = (0..).map(|n| format!("neighbour {n}"));
    let same = |name: &String| partition(id(name).as_flow()) == partition(id("a").as_flow());
    let neighbour = names.find(same).unwrap();
    let mut hold = w.faults.hold_next_answer();
    let run = w.execute(caller(), json!([task("a", "work")]));
    hold.arrived().await;
    hand.leave(&w);
    hand.take(&w, Partitions::ALL).await;
    let other = w.execute(caller(), json!([task(&neighbour, "work")]));
    assert!(soon(other).await.unwrap().is_ok());
    hold.release();
    assert!(soon(run).await.unwrap().is_ok());
    quiet().await;
    assert_eq!(w.script.forsaken(), []);
    assert_eq!(w.script.launches(), [(id(&neighbour), 1)]);
}

#[tokio::test]
async fn nothing_is_answered_from_a_state_that_others_may_have_changed() {
    let (w, hand) = Hand::world().await;
    let flow = w.given_flow("root", &["a", "b"]).await;
    assert_eq!(w.status("a").await, Some(Status::Pending));
    assert_eq!(w.app.flows.resident().0, 1);
    // Gone and back between two orders, and nobody has said so.
    hand.slip();
    w.foreign_write(flow, vec![foreign_deletion("a")]).await;
    hand.take(&w, Partitions::ALL).await;
    assert_eq!(w.status("a").await, None, "a look");
    hand.slip();
    w.foreign_write(flow, vec![foreign_deletion("b")]).await;
    hand.take(&w, Partitions::ALL).await;
    let refusal = soon(w.rename("b", "other")).await.unwrap();
    assert_eq!(refused(refusal), Kind::NotFound);
}

#[tokio::test]
async fn a_flow_that_left_during_its_turn_is_not_kept() {
    let (w, hand) = Hand::world().await;
    let flow = w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_answer();
    let first = w.rename("a", "first");
    hold.arrived().await;
    hand.leave(&w);
    let second = w.rename("a", "second");
    quiet().await;
    hold.release();
    assert!(soon(first).await.unwrap().is_ok());
    assert_eq!(elsewhere(soon(second).await.unwrap()), Some(other()));
    quiet().await;
    assert_eq!(w.app.flows.resident().0, 0);
    assert!(!w.app.flows.attends(flow));
}

#[tokio::test]
async fn attempts_of_a_flow_that_left_are_stopped_and_their_outcomes_dropped() {
    let (w, hand) = Hand::world().await;
    let flow = id("a").as_flow();
    let run = w.execute(caller(), json!([task("a", "work")]));
    assert!(soon(run).await.unwrap().is_ok());
    assert_eq!(w.app.flows.busy(), Partitions::of(flow));
    hand.leave(&w);
    assert_eq!(w.script.forsaken(), [(id("a"), 1)]);
    let before = w.history(flow).await.len();
    w.script.complete("a").await;
    assert_eq!(w.history(flow).await.len(), before);
    assert_eq!(w.taken(), 0);
}

#[tokio::test]
async fn a_late_outcome_of_an_earlier_ownership_changes_nothing() {
    let (w, hand) = Hand::world().await;
    let flow = id("a").as_flow();
    let run = w.execute(caller(), json!([task("a", "work")]));
    assert!(soon(run).await.unwrap().is_ok());
    hand.leave(&w);
    hand.take(&w, Partitions::ALL).await;
    // The executor ends now; before anybody has looked at the flow.
    w.script
        .end_attempt(id("a"), 1, |task, attempt| {
            taskledger_domain::flow::Command::Complete {
                task,
                attempt,
                result: taskledger_domain::Payload::empty(),
                lease: None,
            }
        })
        .await;
    w.script.launched(2).await;
    assert_eq!(w.script.launches(), [(id("a"), 1), (id("a"), 2)]);
    let kinds = w.kinds(flow).await;
    assert!(!kinds.contains(&"TaskCompleted"), "{kinds:?}");
    w.script.complete("a").await;
    let kinds = w.kinds(flow).await;
    assert_eq!(kinds.iter().filter(|k| **k == "TaskCompleted").count(), 1);
}

#[tokio::test]
async fn a_read_sees_what_another_node_has_answered() {
    let (mut w, hand) = Hand::world().await;
    w.run_read_models();
    let flow = w.given_flow("root", &["a"]).await;
    assert_eq!(name_of(&w, id("a")).await, "a");
    hand.leave(&w);
    w.foreign_write(flow, vec![foreign_rename("a")]).await;
    assert_eq!(name_of(&w, id("a")).await, "by another");
    // And when the flow is back.
    hand.take(&w, Partitions::ALL).await;
    assert_eq!(name_of(&w, id("a")).await, "by another");
}

#[tokio::test]
async fn a_row_in_memory_is_not_shown_once_the_flow_is_not_here() {
    let (mut w, hand) = Hand::world().await;
    w.run_read_models();
    let flow = w.given_flow("root", &["a"]).await;
    hand.slip();
    w.foreign_write(flow, vec![foreign_rename("a")]).await;
    assert!(w.app.rows.flow_of(id("a")).is_some(), "it is still held");
    assert_eq!(name_of(&w, id("a")).await, "by another");
}

#[tokio::test]
async fn new_flows_belong_to_the_node_that_makes_them() {
    let (w, hand) = Hand::world().await;
    let mine: Partitions = (100..150).collect();
    hand.take(&w, mine).await;
    for n in 0..20 {
        let params = json!({"name": format!("task {n}"), "children": [{"name": "below"}]});
        let made = soon(w.create(caller(), params)).await.unwrap();
        let root = made.expect("it is made here")["id"].clone();
        let root = TaskId::parse(root.as_str().unwrap()).unwrap();
        assert!(mine.contain(root.as_flow()));
    }
}

#[tokio::test]
async fn a_copy_is_made_here_of_a_flow_that_belongs_to_another_node() {
    let (w, hand) = Hand::world().await;
    let flow = w.given_flow("root", &["a"]).await;
    let mut mine = Partitions::ALL;
    mine.remove(&Partitions::of(flow));
    hand.take(&w, mine).await;
    let copy = w.call(move |app| async move { app.copy(&caller(), id("root"), true, None).await });
    let copied = soon(copy).await.unwrap().expect("it is copied");
    let copied = TaskId::parse(copied["copied_task_id"].as_str().unwrap()).unwrap();
    assert_eq!(w.history(copied.as_flow()).await.len(), 2);
}

#[tokio::test]
async fn partitions_that_left_again_are_not_looked_at() {
    let (w, _hand) = Hand::world().await;
    let some: Partitions = (0..10).collect();
    w.app.flows.gained(&some);
    w.app.flows.lost(&(0..4).collect());
    let arrived = soon(w.app.flows.arrived()).await;
    assert_eq!(arrived, (4..10).collect());
}

#[tokio::test]
async fn flows_that_left_wait_for_no_slot_and_no_time() {
    let (mut w, hand) = Hand::world().await;
    w.executors.add("one", "one", 1, true);
    for name in ["a", "b"] {
        let run = w.execute(caller(), json!([task(name, "one")]));
        assert!(soon(run).await.unwrap().is_ok());
    }
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    let mut mine = Partitions::ALL;
    mine.remove(&Partitions::of(id("b").as_flow()));
    hand.slip();
    w.app.flows.lost(&Partitions::of(id("b").as_flow()));
    hand.take(&w, mine).await;
    w.run_flows();
    let before = w.faults.appends();
    w.script.complete("a").await;
    quiet().await;
    assert_eq!(w.script.launches().len(), 1);
    assert_eq!(w.faults.appends(), before + 1);
}
