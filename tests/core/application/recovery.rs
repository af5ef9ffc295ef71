//! Restarts, evictions while executors run, and times that come.

use crate::application::world::{Make, World, caller, quiet, soon, task};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::application::{ExecuteOptions, Target};
use taskledger_domain::flow::{Event, FailureReason, RequeueReason};
use taskledger_domain::task::Status;
use taskledger_domain::testing::{START, id};
use taskledger_domain::{FlowId, Recorded};

async fn run(w: &World, tasks: Value) {
    soon(w.execute(caller(), tasks))
        .await
        .unwrap()
        .expect("it starts");
}

fn failures(history: &[Arc<Recorded>]) -> Vec<(FailureReason, bool)> {
    let failure = |r: &Arc<Recorded>| match r.event.as_ref() {
        Event::TaskFailed(e) => Some((e.reason, e.will_retry)),
        _ => None,
    };
    history.iter().filter_map(failure).collect()
}

fn error(history: &[Arc<Recorded>]) -> String {
    let failure = |r: &Arc<Recorded>| match r.event.as_ref() {
        Event::TaskFailed(e) => Some(e.error.clone()),
        _ => None,
    };
    history
        .iter()
        .rev()
        .find_map(failure)
        .expect("something failed")
}

fn flow(name: &str) -> FlowId {
    id(name).as_flow()
}

#[tokio::test]
async fn an_idempotent_attempt_that_a_restart_interrupted_runs_again() {
    let w = World::new().await;
    run(&w, json!([task("a", "work")])).await;
    let w = w.restarted().await;
    let before = w.faults.appends();
    w.app.flows.wake(flow("a"));
    w.script.launched(1).await;
    assert_eq!(
        (w.script.launches(), w.faults.appends()),
        (vec![(id("a"), 2)], before + 1)
    );
    let history = w.history(flow("a")).await;
    assert_eq!(failures(&history), [(FailureReason::Interrupted, true)]);
    let requeued = |r: &Arc<Recorded>| matches!(r.event.as_ref(), Event::TaskRequeued(e) if e.reason == RequeueReason::Interrupted);
    assert!(history.iter().any(requeued));
    w.script.complete("a").await;
    assert_eq!(w.status("a").await, Some(Status::Completed));
}

#[tokio::test]
async fn an_attempt_that_must_not_be_repeated_fails_after_a_restart() {
    let w = World::new().await;
    w.executors.add("once", "once", 1, false);
    run(&w, json!([task("a", "once")])).await;
    let w = w.restarted().await;
    w.executors.add("once", "once", 1, false);
    w.app.flows.wake(flow("a"));
    quiet().await;
    let history = w.history(flow("a")).await;
    assert_eq!(failures(&history), [(FailureReason::Interrupted, false)]);
    assert_eq!(error(&history), "interrupted by a restart of the server");
    assert_eq!((w.script.launches(), w.taken()), (vec![], 0));
    assert_eq!(w.kinds(flow("a")).await.last(), Some(&"RunEnded"));
}

#[tokio::test]
async fn retries_consent_to_a_repetition_after_a_restart() {
    let w = World::new().await;
    w.executors.add("once", "once", 1, false);
    let params = json!({"retry": {"max_attempts": 2, "initial_delay_ms": 0}});
    run(
        &w,
        json!([{"id": id("a"), "name": "a", "schemas": {"method": "once"}, "params": params}]),
    )
    .await;
    let w = w.restarted().await;
    w.executors.add("once", "once", 1, false);
    w.app.flows.wake(flow("a"));
    w.script.launched(1).await;
    assert_eq!(w.script.launches(), [(id("a"), 2)]);
    w.script.fail("a").await;
    assert_eq!(
        w.status("a").await,
        Some(Status::Failed),
        "the budget of two attempts is spent"
    );
}

#[tokio::test]
async fn the_fourth_interruption_ends_a_task() {
    let mut w = World::new().await;
    run(&w, json!([task("a", "work")])).await;
    for attempt in 2..=4 {
        w = w.restarted().await;
        w.app.flows.wake(flow("a"));
        w.script.launched(1).await;
        assert_eq!(w.script.launches(), [(id("a"), attempt)]);
    }
    let w = w.restarted().await;
    w.app.flows.wake(flow("a"));
    quiet().await;
    assert_eq!(w.script.launches(), []);
    assert_eq!(w.status("a").await, Some(Status::Failed));
}

#[tokio::test]
async fn an_executor_that_runs_is_left_alone_when_its_flow_is_loaded_again() {
    let w = World::made(Make {
        idle_bytes_max: 0,
        ..Make::default()
    })
    .await;
    run(&w, json!([task("a", "work")])).await;
    for n in 0..3 {
        assert!(
            soon(w.rename("a", &format!("name {n}")))
                .await
                .unwrap()
                .is_ok()
        );
        quiet().await;
        assert_eq!(w.app.flows.resident(), (0, 0));
    }
    assert_eq!(failures(&w.history(flow("a")).await), []);
    w.script.complete("a").await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
}

#[tokio::test]
async fn an_attempt_that_nobody_runs_is_ended_when_its_flow_is_loaded_again() {
    let w = World::made(Make {
        idle_bytes_max: 0,
        ..Make::default()
    })
    .await;
    run(&w, json!([task("a", "work")])).await;
    quiet().await;
    w.script.forget_all();
    w.app.flows.slots().release("work", id("a"), 1);
    w.app.flows.wake(flow("a"));
    w.script.launched(2).await;
    assert_eq!(w.script.launches(), [(id("a"), 1), (id("a"), 2)]);
}

#[tokio::test]
async fn a_retry_begins_when_its_delay_has_passed() {
    let mut w = World::new().await;
    let params = json!({"retry": {"max_attempts": 2, "initial_delay_ms": 60_000}});
    run(
        &w,
        json!([{"id": id("a"), "name": "a", "schemas": {"method": "work"}, "params": params}]),
    )
    .await;
    w.script.fail("a").await;
    assert_eq!(w.status("a").await, Some(Status::Pending));
    tokio::time::pause();
    w.run_flows();
    w.clock.advance_ms(59_999);
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    quiet().await;
    assert_eq!(w.script.launches().len(), 1);
    w.clock.advance_ms(1);
    w.script.launched(2).await;
    assert_eq!(w.script.launches()[1], (id("a"), 2));
}

#[tokio::test]
async fn a_retry_that_becomes_due_while_its_failure_is_written_begins() {
    let mut w = World::new().await;
    let params = json!({"retry": {"max_attempts": 2, "initial_delay_ms": 1}});
    run(
        &w,
        json!([{"id": id("a"), "name": "a", "schemas": {"method": "work"}, "params": params}]),
    )
    .await;
    let mut hold = w.faults.hold_next_append();
    let written = async {
        hold.arrived().await;
        w.clock.advance_ms(2);
        hold.release();
    };
    tokio::join!(w.script.fail("a"), written);
    tokio::time::pause();
    w.run_flows();
    w.script.launched(2).await;
    assert_eq!(w.script.launches()[1], (id("a"), 2));
}

#[tokio::test]
async fn timers_survive_a_restart() {
    let w = World::new().await;
    let params = json!({"retry": {"max_attempts": 2, "initial_delay_ms": 60_000}});
    run(
        &w,
        json!([{"id": id("a"), "name": "a", "schemas": {"method": "work"}, "params": params}]),
    )
    .await;
    w.script.fail("a").await;
    let mut w = w.restarted().await;
    w.app.flows.wake(flow("a"));
    quiet().await;
    assert_eq!(w.script.launches(), []);
    tokio::time::pause();
    w.run_flows();
    w.clock.advance_ms(60_000);
    w.script.launched(1).await;
    assert_eq!(w.script.launches(), [(id("a"), 2)]);
}

#[tokio::test]
async fn a_deadline_fails_what_runs_and_cancels_what_waits() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    let params = json!({"deadline": START.plus_ms(10_000).to_string()});
    let child = |name: &str| json!({"id": id(name), "name": name, "schemas": {"method": "one"}});
    let tree = json!([{"id": id("root"), "name": "root", "params": params, "children": [child("a"), child("b")]}]);
    run(&w, tree).await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    tokio::time::pause();
    w.run_flows();
    w.clock.advance_ms(10_000);
    let mut head = w.app.store.watch();
    soon(head.changed()).await.unwrap();
    quiet().await;
    assert_eq!(
        (w.status("a").await, w.status("b").await),
        (Some(Status::Failed), Some(Status::Cancelled))
    );
    assert!(w.script.stops().contains(&(id("a"), 1)));
    assert_eq!(w.kinds(flow("root")).await.last(), Some(&"RunEnded"));
}

#[tokio::test]
async fn a_task_waits_so_long_for_an_executor_and_no_longer() {
    let mut w = World::new().await;
    let created = w.create(caller(), task("a", "later"));
    assert!(soon(created).await.unwrap().is_ok());
    let options = ExecuteOptions {
        allow_unknown_executors: true,
        executor_wait_ms: 300_000,
        ..ExecuteOptions::default()
    };
    let run = w.call(move |app| async move {
        app.execute(&caller(), Target::Stored(id("a")), options)
            .await
    });
    assert!(soon(run).await.unwrap().is_ok());
    tokio::time::pause();
    w.run_flows();
    w.clock.advance_ms(299_999);
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    quiet().await;
    assert_eq!(w.status("a").await, Some(Status::Pending));
    w.clock.advance_ms(1);
    soon(w.app.store.watch().changed()).await.unwrap();
    quiet().await;
    assert_eq!(w.status("a").await, Some(Status::Failed));
    assert_eq!(
        error(&w.history(flow("a")).await),
        "executor `later` not found"
    );
}

#[tokio::test]
async fn a_time_that_comes_is_kept_while_slots_keep_flows_awake() {
    let mut w = World::new().await;
    let params = json!({"retry": {"max_attempts": 2, "initial_delay_ms": 1_000}});
    run(
        &w,
        json!([{"id": id("a"), "name": "a", "schemas": {"method": "work"}, "params": params}]),
    )
    .await;
    w.executors.add("one", "one", 1, true);
    run(&w, json!([task("busy", "one")])).await;
    run(&w, json!([task("waits", "one")])).await;
    w.script.fail("a").await;
    w.clock.advance_ms(1_000);
    // Time stands still for everybody but the clock: no timer can fire, only free slots wake.
    tokio::time::pause();
    w.run_flows();
    quiet().await;
    w.script.complete("busy").await;
    quiet().await;
    let launched: Vec<_> = w.script.launches().into_iter().skip(2).collect();
    assert!(
        launched.contains(&(id("waits"), 1)) && launched.contains(&(id("a"), 2)),
        "{launched:?}"
    );
}
