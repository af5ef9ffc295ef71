//! Claims by method, and what workers say of their attempts.

use crate::application::broker::{Broker, flow, lost, methods};
use crate::application::world::{caller, quiet, soon, task, user_named};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskledger::application::Context;
use taskledger::application::api::work::LeaseLoss;
use taskledger_domain::flow::{Event, FailureReason};
use taskledger_domain::task::Status;
use taskledger_domain::testing::{START, id};
use tokio::task::JoinHandle;

fn with(name: &str, params: &Value) -> Value {
    json!([{"id": id(name), "name": name, "schemas": {"method": "resize"}, "params": params}])
}

#[tokio::test]
async fn a_worker_that_waits_is_woken_when_work_becomes_ready() {
    let b = Broker::running().await;
    let waits = b.waits("w");
    quiet().await;
    b.execute(json!([task("a", "resize")])).await;
    let claims = soon(waits).await.unwrap().unwrap().claims;
    assert_eq!(claims.len(), 1);
    assert_eq!((claims[0].task.id, claims[0].attempt), (id("a"), 1));
    assert!(b.complete(&claims[0], json!({})).await.is_ok());
}

#[tokio::test]
async fn a_worker_that_waits_is_woken_when_a_dependency_is_done_or_a_retry_is_due() {
    let b = Broker::running().await;
    let mut second = task("b", "resize");
    second["dependencies"] = json!([{"id": id("a")}]);
    second["params"] = json!({"retry": {"max_attempts": 2, "initial_delay_ms": 5000}});
    let children = json!([task("a", "resize"), second]);
    b.execute(json!([{"id": id("g"), "name": "g", "children": children}]))
        .await;
    let first = b.next(9).await;
    assert_eq!(first.len(), 1);
    let waits = b.waits("w");
    quiet().await;
    assert!(b.complete(&first[0], json!({})).await.is_ok());
    let second = soon(waits).await.unwrap().unwrap().claims;
    assert_eq!(second[0].task.id, id("b"));
    let failed = b.fail(&second[0], "once", true).await.unwrap();
    assert_eq!(failed.status, Status::Pending);
    assert!(failed.next_attempt_at.is_some(), "{failed:?}");
    let waits = b.waits("w");
    b.after_ms(1_000).await;
    assert!(!waits.is_finished());
    b.after_ms(59_000).await;
    let third = soon(waits).await.unwrap().unwrap().claims;
    assert_eq!((third[0].task.id, third[0].attempt), (id("b"), 2));
}

#[tokio::test]
async fn workers_are_served_in_the_order_in_which_they_came() {
    let b = Broker::running().await;
    let mut waiting = Vec::new();
    for n in 0..3 {
        waiting.push(b.waits(&format!("w{n}")));
        quiet().await;
    }
    for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
        b.execute(json!([task(name, "resize")])).await;
        quiet().await;
        let done: Vec<bool> = waiting.iter().map(JoinHandle::is_finished).collect();
        let expected: Vec<bool> = (0..3).map(|other| other <= n).collect();
        assert_eq!(done, expected);
    }
    for (waits, name) in waiting.into_iter().zip(["a", "b", "c"]) {
        let claims = soon(waits).await.unwrap().unwrap().claims;
        assert_eq!(claims[0].task.id, id(name));
    }
}

#[tokio::test]
async fn the_most_urgent_and_then_the_oldest_task_of_all_flows_is_first() {
    let b = Broker::new().await;
    for (name, priority) in [("a", 3), ("b", 2), ("c", 2), ("d", 0)] {
        b.w.clock.advance_ms(10);
        let mut task = task(name, "resize");
        task["priority"] = json!(priority);
        b.execute(json!([task])).await;
    }
    let claims = b.next(3).await;
    let ids: Vec<_> = claims.iter().map(|claimed| claimed.task.id).collect();
    assert_eq!(ids, [id("d"), id("b"), id("c")]);
}

#[tokio::test]
async fn several_tasks_of_a_flow_are_claimed_in_one_turn() {
    let b = Broker::new().await;
    let children: Vec<Value> = (0..5).map(|n| task(&format!("t{n}"), "resize")).collect();
    b.execute(json!([{"id": id("g"), "name": "g", "children": children}]))
        .await;
    let appends = b.w.history(flow("g")).await.len();
    let claims = b.next(3).await;
    assert_eq!(claims.len(), 3);
    let history = b.w.history(flow("g")).await;
    let starts = history[appends..].iter();
    assert!(
        starts
            .clone()
            .all(|r| matches!(&*r.event, Event::TaskStarted(_))),
        "{:?}",
        b.w.kinds(flow("g")).await
    );
    assert_eq!(starts.len(), 3);
    assert_eq!(b.next(9).await.len(), 2);
    assert_eq!(b.next(9).await.len(), 0);
}

#[tokio::test]
async fn nobody_gets_what_is_not_there() {
    let b = Broker::running().await;
    let short = Duration::from_millis(500);
    let waits = b.claims(caller(), "w", methods(&["resize"]), 1, short);
    let claims = soon(waits).await.unwrap().unwrap();
    assert!(claims.claims.is_empty() && !claims.draining);
}

#[tokio::test]
async fn a_claim_whose_caller_went_away_is_given_back() {
    let b = Broker::running().await;
    let waits = b.waits("gone");
    quiet().await;
    // The start of the run and the claim are written after a while.
    let mut hold = b.w.faults.hold_next_append();
    let started = b.w.execute(caller(), json!([task("a", "resize")]));
    hold.arrived().await;
    waits.abort();
    quiet().await;
    hold.release();
    soon(started).await.unwrap().unwrap();
    quiet().await;
    let failures = b.failures("a").await;
    assert_eq!(failures.len(), 1);
    assert_eq!(
        (failures[0].0, failures[0].1),
        (FailureReason::Released, true)
    );
    let claims = b.next(1).await;
    assert_eq!(claims[0].attempt, 2);
}

#[tokio::test]
async fn a_drained_worker_gets_nothing() {
    let b = Broker::new().await;
    let drained = b.service.drain(&caller(), "w", true).await.unwrap();
    assert!(drained.draining);
    b.execute(json!([task("a", "resize")])).await;
    let claims = soon(b.waits("w")).await.unwrap().unwrap();
    assert!(claims.draining && claims.claims.is_empty());
    assert_eq!(
        soon(b.waits("other")).await.unwrap().unwrap().claims.len(),
        1
    );
    b.service.drain(&caller(), "w", false).await.unwrap();
    b.execute(json!([task("b", "resize")])).await;
    assert_eq!(soon(b.waits("w")).await.unwrap().unwrap().claims.len(), 1);
}

#[tokio::test]
async fn a_worker_that_is_not_there_is_drained_no_more_when_an_operator_says_so() {
    let b = Broker::new().await;
    let owner = Context::of(user_named("other"), Arc::from("request"));
    let drained = b.service.drain(&owner, "gone", true).await.unwrap();
    assert!(drained.draining);
    let asks = || {
        b.claims(
            owner.clone(),
            "gone",
            methods(&["resize"]),
            1,
            Duration::ZERO,
        )
    };
    assert!(soon(asks()).await.unwrap().unwrap().draining);
    b.service.drain(&caller(), "gone", false).await.unwrap();
    assert!(!soon(asks()).await.unwrap().unwrap().draining);
}

#[tokio::test]
async fn the_same_outcome_again_gets_the_first_answer_and_another_one_changes_nothing() {
    let b = Broker::running().await;
    let retried = json!({"retry_count": 1});
    for name in ["done", "failed", "given"] {
        b.execute(with(name, &retried)).await;
    }
    let done = b.claim("done").await;
    let first = b.complete(&done, json!({"n": 1, "m": 2})).await.unwrap();
    assert_eq!(first.status, Status::Completed);
    let again = b.complete(&done, json!({"m": 2, "n": 1})).await.unwrap();
    assert_eq!(again, first, "members have no order");
    let again = b
        .complete(&done, json!({"n": 1.0, "m": 2e0}))
        .await
        .unwrap();
    assert_eq!(again, first, "numbers are compared by their values");
    let failed = b.claim("failed").await;
    let first = b.fail(&failed, "no", true).await.unwrap();
    assert_eq!(first.status, Status::Pending);
    assert!(first.next_attempt_at.is_some());
    assert_eq!(b.fail(&failed, "no", true).await.unwrap(), first);
    let given = b.claim("given").await;
    let first = b.release(&given).await.unwrap();
    assert_eq!(first.status, Status::Pending);
    assert_eq!(b.release(&given).await.unwrap(), first);

    let mut events = Vec::new();
    for name in ["done", "failed", "given"] {
        events.push(b.w.history(flow(name)).await.len());
    }
    let ended = LeaseLoss::Ended;
    assert_eq!(lost(b.complete(&done, json!({"n": 2})).await), ended);
    assert_eq!(lost(b.fail(&done, "no", true).await), ended);
    assert_eq!(lost(b.release(&done).await), ended);
    assert_eq!(lost(b.complete(&failed, json!({})).await), ended);
    assert_eq!(lost(b.fail(&failed, "nope", true).await), ended);
    assert_eq!(lost(b.fail(&failed, "no", false).await), ended);
    assert_eq!(lost(b.complete(&given, json!({})).await), ended);
    for (name, events) in ["done", "failed", "given"].into_iter().zip(events) {
        assert_eq!(b.w.history(flow(name)).await.len(), events, "{name}");
    }
}

#[tokio::test]
async fn an_outcome_is_repeated_when_the_task_is_held_again_too() {
    let b = Broker::running().await;
    b.execute(with("a", &json!({"retry_count": 1}))).await;
    let first = b.claim("a").await;
    let released = b.release(&first).await.unwrap();
    let second = b.claim("a").await;
    assert_eq!(b.release(&first).await.unwrap(), released);
    assert_eq!(lost(b.complete(&first, json!({})).await), LeaseLoss::Ended);
    let failed = b.fail(&second, "once", true).await.unwrap();
    assert!(failed.next_attempt_at.is_some());
    b.after_ms(60_000).await;
    let third = b.claim("a").await;
    assert_eq!(b.fail(&second, "once", true).await.unwrap(), failed);
    let done = b.complete(&third, json!({})).await.unwrap();

    // And after later attempts have ended, also when the flow was loaded anew. Files are opened in real time.
    tokio::time::resume();
    let b = b.restarted().await;
    assert_eq!(b.release(&first).await.unwrap(), released);
    assert_eq!(b.fail(&second, "once", true).await.unwrap(), failed);
    assert_eq!(b.complete(&third, json!({})).await.unwrap(), done);
    assert_eq!(lost(b.complete(&second, json!({})).await), LeaseLoss::Ended);
    assert_eq!(lost(b.renew(&first).await), LeaseLoss::Ended);
}

/// Time passes for the server and for those who wait alike.
async fn passes(b: &Broker, ms: u64) {
    b.w.clock.advance_ms(ms);
    tokio::time::advance(Duration::from_millis(ms)).await;
    quiet().await;
}

#[tokio::test]
async fn a_worker_that_lost_a_lease_while_it_waited_is_asked_to_ask_again_when_there_is_work() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    assert!(b.renew_for(&held, 5_000).await.is_ok());
    passes(&b, 2_000).await;
    let waits = b.waits("worker");
    quiet().await;
    passes(&b, 4_000).await;
    assert!(!waits.is_finished(), "there is nothing yet");
    passes(&b, 2_000).await;
    // It may stand still, and would lose what it got.
    let claims = soon(waits).await.unwrap().unwrap();
    assert_eq!((claims.claims.len(), claims.draining), (0, false));
    assert!(claims.silent, "its door asks whether it is there");
    assert_eq!(b.next(1).await[0].attempt, 2, "it is there");
}

#[tokio::test]
async fn a_worker_that_asks_behind_the_end_of_its_lease_gets_work_however_late_that_is_noticed() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    assert!(b.renew_for(&held, 5_000).await.is_ok());
    b.w.clock.advance_ms(5_000);
    let waits = b.waits("worker");
    quiet().await;
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
    passes(&b, 2_000).await;
    assert_eq!(b.w.status("a").await, Some(Status::Pending));
    passes(&b, 2_000).await;
    let claims = soon(waits).await.unwrap().unwrap().claims;
    assert_eq!((claims[0].task.id, claims[0].attempt), (id("a"), 2));
}

#[tokio::test]
async fn a_lease_is_good_only_for_the_principal_that_claimed_it() {
    let b = Broker::new().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    let other = Context::of(user_named("other"), Arc::from("request"));
    let said = b.complete_as(&other, &held, json!({})).await;
    assert_eq!(lost(said), LeaseLoss::Unknown);
    assert_eq!(lost(b.renew_as(&other, &held).await), LeaseLoss::Unknown);
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
    assert!(b.complete(&held, json!({})).await.is_ok());
    // Nor is it told of an outcome that is not its own.
    assert!(b.complete_as(&other, &held, json!({})).await.is_err());
}

#[tokio::test]
async fn a_release_uses_up_neither_a_retry_nor_an_interruption() {
    let b = Broker::new().await;
    b.execute(with("a", &json!({"retry_count": 1}))).await;
    for attempt in 1..=9 {
        let held = b.claim("a").await;
        assert_eq!(held.attempt, attempt);
        assert!(b.release(&held).await.is_ok());
    }
    let held = b.claim("a").await;
    let failed = b.fail(&held, "first", true).await.unwrap();
    assert_eq!(failed.status, Status::Pending);
}

#[tokio::test]
async fn a_final_error_is_not_tried_again() {
    let b = Broker::new().await;
    b.execute(with("a", &json!({"retry_count": 5}))).await;
    let held = b.claim("a").await;
    let failed = b.fail(&held, "never", false).await.unwrap();
    assert_eq!(
        (failed.status, failed.next_attempt_at),
        (Status::Failed, None)
    );
    let expected = [(FailureReason::NotRetryable, false, "never".to_owned())];
    assert_eq!(b.failures("a").await, expected);
    assert_eq!(b.w.kinds(flow("a")).await.last(), Some(&"RunEnded"));
}

#[tokio::test]
async fn a_task_that_no_worker_claims_in_time_fails() {
    let b = Broker::running().await;
    let params = json!({"schedule_to_start_seconds": 30});
    for name in ["a", "b"] {
        b.execute(with(name, &params)).await;
    }
    b.after_ms(29_999).await;
    let held = b.claim("b").await;
    assert_eq!(b.w.status("a").await, Some(Status::Pending));
    b.after_ms(1).await;
    assert_eq!(b.w.status("a").await, Some(Status::Failed));
    let error = "no worker claimed it within 30 s: nobody was free for `resize`".to_owned();
    let expected = [(FailureReason::NotStarted, false, error)];
    assert_eq!(b.failures("a").await, expected);
    b.after_ms(1_000).await;
    assert_eq!(b.w.status("b").await, Some(Status::InProgress));
    assert!(b.complete(&held, json!({})).await.is_ok());
}

#[tokio::test]
async fn a_method_has_no_more_attempts_than_its_limit() {
    let b = Broker::running().await;
    b.w.executors.add_remote("resize", 2);
    quiet().await;
    for name in ["a", "b", "c"] {
        b.w.clock.advance_ms(1);
        b.execute(json!([task(name, "resize")])).await;
    }
    let held = b.next(9).await;
    assert_eq!(held.len(), 2);
    assert_eq!(b.try_claim("c").await.unwrap(), None);
    assert_eq!(b.w.status("c").await, Some(Status::Pending));
    let waits = b.waits("w");
    quiet().await;
    assert!(!waits.is_finished());
    assert!(b.complete(&held[0], json!({})).await.is_ok());
    let third = soon(waits).await.unwrap().unwrap().claims;
    assert_eq!(third[0].task.id, id("c"));
}

#[tokio::test]
async fn claims_are_told_when_they_expire_and_what_they_work_on() {
    let b = Broker::new().await;
    let mut spec = task("a", "resize");
    spec["inputs"] = json!({"width": 3});
    b.execute(json!([spec])).await;
    let held = b.claim("a").await;
    assert_eq!(held.input.to_map()["width"], 3);
    assert_eq!(held.expires_at, START.plus_ms(held.lease_ms));
    assert_eq!(held.task.status, Status::InProgress);
}
