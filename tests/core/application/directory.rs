//! The directory of executors changes while flows run.

use crate::application::script::TestExecutors;
use crate::application::world::{World, caller, quiet, soon, task};
use serde_json::json;
use std::sync::Arc;
use taskledger::application::slots::{Held, Slots};
use taskledger::application::{ExecuteOptions, Target};
use taskledger_domain::flow::{Capacity, SlotRequest};
use taskledger_domain::task::{Priority, Status};
use taskledger_domain::testing::{START, id};

/// A run that lets its task wait for an executor.
async fn wait_for_executor(w: &World, name: &'static str, method: &str) {
    let created = w.create(caller(), task(name, method));
    assert!(soon(created).await.unwrap().is_ok());
    let options = ExecuteOptions {
        allow_unknown_executors: true,
        executor_wait_ms: 300_000,
        ..ExecuteOptions::default()
    };
    let run = w.call(move |app| async move {
        app.execute(&caller(), Target::Stored(id(name)), options)
            .await
    });
    assert!(soon(run).await.unwrap().is_ok());
}

async fn run(w: &World, name: &str, method: &str) {
    soon(w.execute(caller(), json!([task(name, method)])))
        .await
        .unwrap()
        .expect("it starts");
}

#[tokio::test]
async fn a_task_that_waits_for_an_unknown_executor_starts_when_a_snapshot_has_it() {
    let mut w = World::new().await;
    wait_for_executor(&w, "a", "later").await;
    wait_for_executor(&w, "b", "never").await;
    // No timer fires: the change alone wakes the flow.
    tokio::time::pause();
    w.run_flows();
    quiet().await;
    assert_eq!(w.script.launches(), []);
    w.executors.add("later", "later", 1, true);
    w.script.launched(1).await;
    quiet().await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    assert_eq!(w.status("b").await, Some(Status::Pending));
}

#[tokio::test]
async fn a_flow_that_was_evicted_is_found_too() {
    let mut w = World::made(crate::application::world::Make {
        idle_bytes_max: 0,
        ..Default::default()
    })
    .await;
    wait_for_executor(&w, "a", "later").await;
    tokio::time::pause();
    w.run_flows();
    quiet().await;
    assert_eq!(w.app.flows.resident(), (0, 0));
    w.executors.add("later", "later", 1, true);
    w.script.launched(1).await;
}

#[tokio::test]
async fn an_executor_that_comes_while_a_turn_is_written_is_not_missed() {
    let mut w = World::new().await;
    tokio::time::pause();
    w.run_flows();
    let created = w.create(caller(), task("a", "later"));
    assert!(soon(created).await.unwrap().is_ok());
    let options = ExecuteOptions {
        allow_unknown_executors: true,
        ..ExecuteOptions::default()
    };
    let mut hold = w.faults.hold_next_append();
    let run = w.call(move |app| async move {
        app.execute(&caller(), Target::Stored(id("a")), options)
            .await
    });
    hold.arrived().await;
    // The turn is over and asked the old snapshot; the flow has not come to rest yet.
    w.executors.add("later", "later", 1, true);
    quiet().await;
    hold.release();
    assert!(soon(run).await.unwrap().is_ok());
    w.script.launched(1).await;
}

#[tokio::test]
async fn a_raised_limit_starts_what_waits_and_a_lower_one_stops_nothing() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    tokio::time::pause();
    w.run_flows();
    for name in ["a", "b", "c", "d"] {
        run(&w, name, "one").await;
        w.clock.advance_ms(1);
    }
    quiet().await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    w.executors.add("one", "one", 3, true);
    w.script.launched(3).await;
    quiet().await;
    assert_eq!(
        w.script.launches(),
        [(id("a"), 1), (id("b"), 1), (id("c"), 1)]
    );
    assert_eq!(w.app.flows.slots().usage(), [("one".to_owned(), 3, 3)]);

    w.executors.add("one", "one", 1, true);
    quiet().await;
    assert_eq!(w.script.stops(), []);
    assert_eq!(w.app.flows.slots().usage(), [("one".to_owned(), 3, 1)]);
    // Nothing starts until fewer run than the limit allows.
    for name in ["a", "b"] {
        w.script.complete(name).await;
        quiet().await;
        assert_eq!(w.script.launches().len(), 3);
    }
    w.script.complete("c").await;
    w.script.launched(4).await;
}

#[tokio::test]
async fn the_tasks_of_a_method_that_workers_claim_are_not_started_by_the_flow() {
    let mut w = World::new().await;
    w.executors.add_remote("resize", 1);
    tokio::time::pause();
    w.run_flows();
    run(&w, "a", "resize").await;
    quiet().await;
    assert_eq!(w.status("a").await, Some(Status::Pending));
    // It never counts as missing, and starts at once when this process can do it.
    w.clock.advance_ms(1_000_000);
    w.app.flows.wake_and_wait(id("a").as_flow()).await;
    assert_eq!(w.status("a").await, Some(Status::Pending));
    w.executors.add("resize", "resize", 1, true);
    w.script.launched(1).await;
}

#[tokio::test]
async fn a_task_whose_executor_has_gone_does_not_wait_in_its_line_for_ever() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    tokio::time::pause();
    w.run_flows();
    run(&w, "a", "one").await;
    run(&w, "b", "one").await;
    w.clock.advance_ms(1_000_000);
    w.executors.remove("one");
    quiet().await;
    assert_eq!(w.status("a").await, Some(Status::InProgress));
    assert_eq!(w.status("b").await, Some(Status::Failed));
    w.script.complete("a").await;
    assert_eq!(
        (w.status("a").await, w.taken()),
        (Some(Status::Completed), 0)
    );
}

#[test]
fn a_turn_asks_one_snapshot_only() {
    let executors = Arc::new(TestExecutors::default());
    executors.add("one", "one", 1, true);
    let (slots, _woken) = Slots::new(executors.clone());
    let slots = Arc::new(slots);
    let request = |name: &str| SlotRequest {
        method: "one",
        task: id(name),
        attempt: 1,
        priority: Priority::default(),
        since: START,
        owner: None,
        is_claimed: false,
    };
    let mut turn = slots.turn(id("flow").as_flow(), None);
    executors.add("later", "later", 1, true);
    executors.add("one", "one", 2, true);
    assert!(!turn.knows("later"));
    assert!(turn.take_slot(&request("a")));
    assert!(!turn.take_slot(&request("b")), "the limit of its snapshot");
    turn.end().into_iter().for_each(Held::keep);

    let mut turn = slots.turn(id("flow").as_flow(), None);
    assert!(turn.knows("later") && turn.take_slot(&request("b")));
}
