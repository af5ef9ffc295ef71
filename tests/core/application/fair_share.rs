//! Fair share: users of a busy executor take turns, whatever one of them has waiting.

use crate::application::script::TestExecutors;
use crate::application::world::{World, caller, quiet, soon};
use proptest::prelude::*;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use taskledger::application::explain::Ahead;
use taskledger::application::slots::{Held, Sharing, Slots, Weights};
use taskledger_domain::flow::{Capacity, SlotRequest};
use taskledger_domain::task::Priority;
use taskledger_domain::testing::{START, id};
use taskledger_domain::{FlowId, TaskId, Timestamp};
use tokio::sync::mpsc::UnboundedReceiver;

/// Flows that take turns when they are woken, as drivers would, at a time that the test sets.
struct Floor {
    slots: Arc<Slots>,
    woken: UnboundedReceiver<FlowId>,
    flows: HashMap<FlowId, Waiting>,
    running: Vec<TaskId>,
    starts: HashMap<&'static str, i64>,
    now: Timestamp,
    made: usize,
}

struct Waiting {
    user: &'static str,
    since: Timestamp,
    tasks: usize,
}

impl Floor {
    fn new(limit: usize, sharing: Sharing) -> Self {
        let executors = Arc::new(TestExecutors::default());
        executors.add("one", "one", limit, true);
        let (slots, woken) = Slots::new(executors);
        slots.share(sharing);
        Self {
            slots: Arc::new(slots),
            woken,
            flows: HashMap::new(),
            running: Vec::new(),
            starts: HashMap::new(),
            now: START,
            made: 0,
        }
    }

    /// A flow with ready tasks.
    fn begin(&mut self, user: &'static str, tasks: usize) -> FlowId {
        let flow = self.fresh().as_flow();
        let since = self.now;
        self.flows.insert(flow, Waiting { user, since, tasks });
        self.turn(flow);
        flow
    }

    fn fresh(&mut self) -> TaskId {
        self.made += 1;
        self.now = self.now.plus_ms(1);
        id(&format!("made {}", self.made))
    }

    fn turn(&mut self, flow: FlowId) {
        let Some(Waiting { user, since, .. }) = self.flows.get(&flow) else {
            drop(self.slots.turn(flow, None));
            return;
        };
        let (user, since) = (*user, *since);
        let slots = self.slots.clone();
        let mut turn = slots.turn(flow, None);
        while self.flows[&flow].tasks > 0 {
            let task = self.fresh();
            let taken = turn.take_slot(&SlotRequest {
                method: "one",
                task,
                attempt: 1,
                priority: Priority::default(),
                since,
                owner: Some(user),
                is_claimed: false,
            });
            if !taken {
                break;
            }
            self.running.push(task);
            *self.starts.entry(user).or_default() += 1;
            self.flows.get_mut(&flow).expect("it is there").tasks -= 1;
        }
        turn.end().into_iter().for_each(Held::keep);
    }

    /// Turns of all flows that were woken, and of those that they wake.
    fn settle(&mut self) {
        while let Ok(flow) = self.woken.try_recv() {
            self.turn(flow);
        }
    }

    fn finish(&mut self, n: usize) {
        if !self.running.is_empty() {
            let task = self.running.swap_remove(n % self.running.len());
            self.slots.release("one", task, 1);
            self.settle();
        }
    }

    /// All tasks of the flow are cancelled.
    fn cancel(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
        self.turn(flow);
        self.settle();
    }

    fn waiting(&self, user: &str) -> usize {
        let own = self.flows.values().filter(|flow| flow.user == user);
        own.map(|flow| flow.tasks).sum()
    }

    fn starts(&self, user: &str) -> i64 {
        self.starts.get(user).copied().unwrap_or_default()
    }
}

fn fair() -> Sharing {
    Sharing::Fair(Arc::new(Weights::default()))
}

#[derive(Debug, Clone)]
enum Step {
    Begin(&'static str, usize),
    Finish(usize),
    Cancel(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let user = prop_oneof![Just("ann"), Just("bob")];
    let step = prop_oneof![
        2 => (user, 1..6_usize).prop_map(|(user, tasks)| Step::Begin(user, tasks)),
        6 => any::<usize>().prop_map(Step::Finish),
        1 => any::<usize>().prop_map(Step::Cancel),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// While both have something waiting, no user starts more than one task per slot more than the other,
    /// and no slot stays free.
    #[test]
    fn two_equal_users_differ_by_at_most_one_start_per_slot(limit in 1..5_usize, steps in steps()) {
        let mut floor = Floor::new(limit, fair());
        floor.begin("ann", 5 * limit);
        floor.begin("bob", 5);
        let ahead = floor.starts("ann") - floor.starts("bob");
        for step in steps {
            match step {
                Step::Begin(user, tasks) => _ = floor.begin(user, tasks),
                Step::Finish(n) => floor.finish(n),
                Step::Cancel(n) => {
                    // The user keeps something that waits.
                    let mut flows: Vec<FlowId> = floor.flows.keys().copied().collect();
                    flows.sort_unstable();
                    let flow = flows[n % flows.len()];
                    let left = floor.waiting(floor.flows[&flow].user) - floor.flows[&flow].tasks;
                    if left > 0 {
                        floor.cancel(flow);
                    }
                }
            }
            floor.flows.retain(|_, flow| flow.tasks > 0);
            for user in ["ann", "bob"] {
                if floor.waiting(user) == 0 {
                    floor.begin(user, 3);
                }
            }
            let differ = floor.starts("ann") - floor.starts("bob") - ahead;
            prop_assert!(differ.unsigned_abs() as usize <= limit, "{differ} with {limit} slots");
            prop_assert_eq!(floor.running.len(), limit);
        }
    }
}

#[test]
fn a_hundred_thousand_tasks_of_one_user_do_not_starve_another() {
    let mut floor = Floor::new(4, fair());
    for _ in 0..100_000 {
        floor.begin("ann", 1);
    }
    let begun = Instant::now();
    floor.begin("bob", 50);
    let before = floor.starts("ann");
    while floor.starts("bob") < 50 {
        floor.finish(0);
    }
    assert!(floor.starts("ann") - before <= 51, "they take turns");
    assert!(begun.elapsed().as_secs() < 5, "a start is not a scan");
}

#[test]
fn without_fair_share_age_alone_decides() {
    let mut floor = Floor::new(1, Sharing::ByAge);
    for _ in 0..100 {
        floor.begin("ann", 1);
    }
    floor.begin("bob", 1);
    for _ in 0..99 {
        floor.finish(0);
    }
    assert_eq!((floor.starts("ann"), floor.starts("bob")), (100, 0));
    floor.finish(0);
    assert_eq!(floor.starts("bob"), 1);
}

#[test]
fn the_line_tells_who_is_ahead_by_what_users_have_had() {
    let mut floor = Floor::new(1, fair());
    for _ in 0..10 {
        floor.begin("ann", 1);
    }
    let flow = floor.begin("bob", 1);
    let rank = (Priority::default(), floor.flows[&flow].since);
    let line = floor.slots.line("one", (flow, Some("bob")), rank);
    assert_eq!((line.flows_ahead, line.fair_share), (1, true));
    let line = floor
        .slots
        .line("one", (id("other").as_flow(), Some("ann")), rank);
    assert_eq!(
        line.flows_ahead, 10,
        "nine of the same user, and one of the other"
    );
}

#[tokio::test]
async fn users_take_turns_and_explain_says_so() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    w.app.flows.share(fair());
    w.run_flows();
    w.run_read_models();
    let run = async |name: &str, user: &str| {
        let task =
            json!([{"id": id(name), "name": name, "user_id": user, "schemas": {"method": "one"}}]);
        soon(w.execute(caller(), task))
            .await
            .unwrap()
            .expect("it starts");
        w.clock.advance_ms(1);
    };
    for name in ["ann 1", "ann 2", "ann 3", "ann 4"] {
        run(name, "ann").await;
    }
    for name in ["bob 1", "bob 2"] {
        run(name, "bob").await;
    }
    quiet().await;
    let explained = soon(w.app.explain(&caller(), id("bob 2"))).await;
    let queue = explained.expect("it is explained").queue;
    let told = queue.map(|queue| (queue.flows_ahead, queue.fair_share));
    assert_eq!(
        told,
        Some((
            Ahead::Counted {
                count: 3,
                more: false
            },
            true
        )),
        "two of the other user, and one of its own"
    );
    let order = ["ann 1", "ann 2", "bob 1", "ann 3", "bob 2", "ann 4"];
    for (n, name) in order.iter().enumerate() {
        w.script.launched(n + 1).await;
        assert_eq!(w.script.launches()[n].0, id(name), "{name}");
        w.script.complete(name).await;
    }
}
