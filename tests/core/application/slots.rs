//! Slots: limits and urgency count across flows.

use crate::application::script::TestExecutors;
use crate::application::world::{World, caller, quiet, soon, task};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::application::slots::{AHEAD_MAX, Held, Sharing, Slots};
use taskledger_domain::TaskId;
use taskledger_domain::flow::{Capacity, SlotRequest};
use taskledger_domain::task::Priority;
use taskledger_domain::testing::{START, id};

async fn run(w: &World, tasks: Value) {
    soon(w.execute(caller(), tasks))
        .await
        .unwrap()
        .expect("it starts");
}

fn urgent(name: &str, method: &str, priority: u8) -> Value {
    json!({"id": id(name), "name": name, "priority": priority, "schemas": {"method": method}})
}

/// The first attempt of a task of the method `one`.
fn request(task: TaskId, is_claimed: bool) -> SlotRequest<'static> {
    SlotRequest {
        method: "one",
        task,
        attempt: 1,
        priority: Priority::default(),
        since: START,
        owner: None,
        is_claimed,
    }
}

fn names(w: &World, candidates: &[&'static str]) -> Vec<&'static str> {
    let name = |task| {
        candidates
            .iter()
            .copied()
            .find(|n| id(n) == task)
            .expect("a task of the test")
    };
    w.script
        .launches()
        .into_iter()
        .map(|(task, _)| name(task))
        .collect()
}

#[tokio::test]
async fn a_limit_holds_across_flows() {
    let mut w = World::new().await;
    w.executors.add("two", "two", 2, true);
    w.run_flows();
    for flow in ["f", "g", "h"] {
        let children = [
            task(&format!("{flow}1"), "two"),
            task(&format!("{flow}2"), "two"),
        ];
        run(
            &w,
            json!([{"id": id(flow), "name": flow, "children": children}]),
        )
        .await;
    }
    quiet().await;
    assert_eq!((w.script.launches().len(), w.taken()), (2, 2));
    for n in 1..=4 {
        let (task, _) = w.script.launches()[n - 1];
        w.script
            .end(task, |task, attempt| {
                taskledger_domain::flow::Command::Complete {
                    task,
                    attempt,
                    result: taskledger_domain::Payload::empty(),
                    lease: None,
                }
            })
            .await;
        w.script.launched(n + 2).await;
        quiet().await;
        assert_eq!(
            (w.script.launches().len(), w.taken()),
            (n + 2, 2),
            "one more, never two more"
        );
    }
}

#[tokio::test]
async fn urgency_then_waiting_time_decides_across_flows() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    w.run_flows();
    for (name, priority) in [("a", 2), ("b", 2), ("c", 3), ("d", 0), ("e", 0), ("f", 2)] {
        run(&w, json!([urgent(name, "one", priority)])).await;
        w.clock.advance_ms(1);
    }
    let order = ["a", "d", "e", "b", "f", "c"];
    for (n, name) in order.iter().enumerate() {
        w.script.launched(n + 1).await;
        assert_eq!(names(&w, &order), &order[..=n]);
        w.script.complete(name).await;
    }
    assert_eq!(w.taken(), 0);
}

#[tokio::test]
async fn a_newcomer_does_not_overtake_whom_a_free_slot_was_offered_to() {
    let w = World::new().await;
    w.executors.add("one", "one", 1, true);
    run(&w, json!([urgent("a", "one", 2)])).await;
    w.clock.advance_ms(1);
    run(&w, json!([urgent("waiting", "one", 2)])).await;
    w.clock.advance_ms(1);
    // The flow that waits has not been woken yet when the newcomer asks.
    w.app.flows.slots().release("one", id("a"), 1);
    run(&w, json!([urgent("newcomer", "one", 2)])).await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    run(&w, json!([urgent("more urgent", "one", 0)])).await;
    assert_eq!(w.script.launches()[1], (id("more urgent"), 1));
}

#[tokio::test]
async fn a_waiter_that_was_cancelled_blocks_nobody() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    for (name, priority) in [("a", 2), ("gone", 0), ("c", 2)] {
        run(&w, json!([urgent(name, "one", priority)])).await;
    }
    w.run_flows();
    let cancel = w.call(|app| async move { app.cancel(&caller(), id("gone"), false, None).await });
    assert!(soon(cancel).await.unwrap().is_ok());
    w.script.complete("a").await;
    w.script.launched(2).await;
    assert_eq!(w.script.launches()[1], (id("c"), 1));
}

#[tokio::test]
async fn aliases_share_one_lane() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    w.executors.add("uno", "one", 1, true);
    w.run_flows();
    run(&w, json!([urgent("a", "one", 2)])).await;
    run(&w, json!([urgent("b", "uno", 2)])).await;
    quiet().await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    w.script.complete("a").await;
    w.script.launched(2).await;
    assert_eq!(w.app.flows.slots().usage(), [("one".to_owned(), 1, 1)]);
}

#[tokio::test]
async fn a_flow_waits_with_the_best_rank_of_all_its_aliases() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    w.executors.add("uno", "one", 1, true);
    w.run_flows();
    run(&w, json!([urgent("a", "one", 2)])).await;
    let children = json!([urgent("first", "one", 0), urgent("last", "uno", 3)]);
    run(
        &w,
        json!([{"id": id("both"), "name": "both", "children": children}]),
    )
    .await;
    w.clock.advance_ms(1);
    run(&w, json!([urgent("middle", "one", 1)])).await;
    for (n, name) in ["a", "first", "middle", "last"].iter().enumerate() {
        w.script.launched(n + 1).await;
        assert_eq!(w.script.launches()[n].0, id(name));
        w.script.complete(name).await;
    }
}

#[tokio::test]
async fn a_task_that_is_cancelled_before_its_start_is_durable_gives_its_slot_back() {
    let w = World::new().await;
    w.executors.add("one", "one", 1, true);
    let created = w.create(caller(), task("a", "one"));
    assert!(soon(created).await.unwrap().is_ok());
    let mut hold = w.faults.hold_next_append();
    let first = w.rename("a", "x");
    hold.arrived().await;
    let run = w.call(|app| async move {
        app.execute(
            &caller(),
            taskledger::application::Target::Stored(id("a")),
            Default::default(),
        )
        .await
    });
    let cancel = w.call(|app| async move { app.cancel(&caller(), id("a"), false, None).await });
    quiet().await;
    hold.release();
    for call in [first, run, cancel] {
        assert!(soon(call).await.unwrap().is_ok());
    }
    // Launched and stopped in this order: whoever runs attempts releases the slot.
    assert_eq!(
        (w.script.launches(), w.script.stops()),
        (vec![(id("a"), 1)], vec![(id("a"), 1)])
    );
    w.app.flows.slots().release("one", id("a"), 1);
    assert_eq!(w.taken(), 0);
}

#[tokio::test]
async fn a_refused_command_leaves_a_waiting_flow_in_its_place() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    for name in ["a", "waiting"] {
        run(&w, json!([urgent(name, "one", 2)])).await;
    }
    w.run_flows();
    // A second run of a task that one covers already is refused, and changes nothing.
    let again = w.call(|app| async move {
        app.retry(&caller(), id("waiting"), Default::default(), None)
            .await
    });
    assert!(soon(again).await.unwrap().is_err());
    w.script.complete("a").await;
    w.script.launched(2).await;
    assert_eq!(w.script.launches()[1], (id("waiting"), 1));
}

#[tokio::test]
async fn a_closed_pool_lets_nothing_begin() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    for name in ["a", "b"] {
        run(&w, json!([urgent(name, "one", 2)])).await;
    }
    w.run_flows();
    w.app.flows.slots().close();
    w.script.complete("a").await;
    quiet().await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    assert_eq!(w.taken(), 0);
}

#[tokio::test]
async fn flows_ahead_are_counted_up_to_a_bound_and_then_told_to_be_more() {
    let executors = Arc::new(TestExecutors::default());
    executors.add("one", "one", 1, true);
    let (slots, _woken) = Slots::new(executors);
    let slots = Arc::new(slots);
    let wait = |n: usize| {
        let task = id(&format!("waiting {n}"));
        let request = request(task, false);
        let mut turn = slots.turn(task.as_flow(), None);
        if turn.take_slot(&request) {
            turn.end().into_iter().for_each(Held::keep);
        }
    };
    // One of them gets the slot.
    (0..=AHEAD_MAX).for_each(wait);
    let late = (Priority::default(), START.plus_ms(1));
    let line = || slots.line("one", (id("late").as_flow(), None), late);
    assert_eq!(
        (line().flows_ahead, line().more_flows_ahead),
        (AHEAD_MAX, false)
    );
    wait(AHEAD_MAX + 1);
    assert_eq!(
        (line().flows_ahead, line().more_flows_ahead),
        (AHEAD_MAX, true)
    );
}

#[tokio::test]
async fn who_takes_a_slot_again_does_not_give_it_back() {
    let executors = Arc::new(TestExecutors::default());
    executors.add("one", "one", 2, true);
    let (slots, _woken) = Slots::new(executors);
    let slots = Arc::new(slots);
    let task = id("task");
    let request = request(task, true);
    let mut turn = slots.turn(task.as_flow(), None);
    assert!(turn.take_slot(&request));
    turn.end().into_iter().for_each(Held::keep);
    // Decided without what is stored of the flow, and taken back.
    let mut turn = slots.turn(task.as_flow(), None);
    assert!(turn.take_slot(&request));
    drop(turn.end());
    let line = slots.line(
        "one",
        (id("late").as_flow(), None),
        (Priority::default(), START),
    );
    assert_eq!(line.running, 1);
}

/// A turn of a flow that wants the slot of the method `one`, for `owner`, since so many milliseconds.
fn wants(flow: &str, owner: Option<&'static str>, since_ms: u64) -> (TaskId, SlotRequest<'static>) {
    let task = id(flow);
    let request = SlotRequest {
        owner,
        since: START.plus_ms(since_ms),
        ..request(task, false)
    };
    (task, request)
}

#[tokio::test]
async fn a_flow_that_is_being_looked_at_keeps_its_place_before_others() {
    for sharing in [Sharing::ByAge, Sharing::Fair(Arc::default())] {
        let executors = Arc::new(TestExecutors::default());
        executors.add("one", "one", 1, true);
        let (slots, mut woken) = Slots::new(executors);
        let slots = Arc::new(slots);
        slots.share(sharing);
        let holder = slots.occupy("one", id("holder"), 1);
        let (older, older_request) = wants("older", Some("ann"), 0);
        let (younger, younger_request) = wants("younger", Some("bob"), 1);
        for (task, request) in [(older, &older_request), (younger, &younger_request)] {
            assert!(!slots.turn(task.as_flow(), None).take_slot(request));
        }

        let mut turn = slots.turn(older.as_flow(), None);
        drop(holder);
        let mut beside = slots.turn(younger.as_flow(), None);
        assert!(
            !beside.take_slot(&younger_request),
            "the slot is for whoever is first, looked at or not"
        );
        drop(beside);
        assert!(turn.take_slot(&older_request));
        let held = turn.end();

        // Whoever is first and does not want the slot any more lets the next one know.
        drop(held);
        let mut turn = slots.turn(younger.as_flow(), None);
        assert!(turn.take_slot(&younger_request));
        drop(turn.end());
        while woken.try_recv().is_ok() {}
        let holder = slots.occupy("one", id("holder"), 2);
        for (task, request) in [(older, &older_request), (younger, &younger_request)] {
            assert!(!slots.turn(task.as_flow(), None).take_slot(request));
        }
        let turn = slots.turn(older.as_flow(), None);
        drop(holder);
        assert!(
            !slots
                .turn(younger.as_flow(), None)
                .take_slot(&younger_request)
        );
        drop(turn);
        let mut flows = Vec::new();
        while let Ok(flow) = woken.try_recv() {
            flows.push(flow);
        }
        assert_eq!(flows.last(), Some(&younger.as_flow()));
    }
}
