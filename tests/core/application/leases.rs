//! Attempts outside the server: their leases, restarts, moves, and workers that fall silent.

use crate::application::broker::{Broker, LEASE_MS, flow, lost, methods};
use crate::application::ownership::Hand;
use crate::application::world::{Make, World, caller, foreign_rename, quiet, soon, task};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger::application::Error;
use taskledger::application::Partitions;
use taskledger::application::api::work::{LeaseLoss, StopReason};
use taskledger_domain::LeaseId;
use taskledger_domain::flow::{FailureReason, Kind};
use taskledger_domain::limits::LOST_REST_MS;
use taskledger_domain::task::Status;
use taskledger_domain::testing::{START, id};

fn bounded(name: &str, params: &Value) -> Value {
    json!([{"id": id(name), "name": name, "schemas": {"method": "resize"}, "params": params}])
}

#[tokio::test]
async fn a_claimed_task_runs_outside_the_server_until_its_worker_ends_it() {
    let b = Broker::new().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    assert_eq!(
        (held.attempt, held.expires_at),
        (1, START.plus_ms(LEASE_MS))
    );
    assert_eq!((b.w.script.launches(), b.w.taken()), (vec![], 1));
    let Err(Error::Refused(refused)) = b.try_claim("a").await else {
        panic!("it is not ready");
    };
    assert_eq!(refused.refusal.kind(), Kind::InvalidTransition);
    let done = b.complete(&held, json!({"n": 1})).await.unwrap();
    assert_eq!((done.status, b.w.taken()), (Status::Completed, 0));
    assert_eq!(b.w.kinds(flow("a")).await.last(), Some(&"RunEnded"));
}

#[tokio::test]
async fn a_restart_interrupts_what_this_process_ran_and_no_leased_attempt() {
    let b = Broker::new().await;
    let children = json!([task("far", "resize"), task("here", "work")]);
    b.execute(json!([{"id": id("g"), "name": "g", "children": children}]))
        .await;
    let held = b.claim("far").await;
    b.w.script.launched(1).await;

    let b = b.restarted().await;
    b.w.app.flows.wake(flow("g"));
    b.w.script.launched(1).await;
    assert_eq!(b.w.script.launches(), [(id("here"), 2)]);
    assert_eq!(b.w.status("far").await, Some(Status::InProgress));
    assert_eq!(b.w.taken(), 2, "its slot is taken in this process too");
    assert!(b.complete(&held, json!({})).await.is_ok());
    assert_eq!(b.w.status("far").await, Some(Status::Completed));
    assert_eq!(b.w.taken(), 1);
}

#[tokio::test]
async fn a_move_to_another_node_interrupts_no_leased_attempt() {
    let (w, hand) = Hand::world().await;
    let a = Broker::over(w).await;
    a.execute(json!([task("a", "resize")])).await;
    let held = a.claim("a").await;
    let (other, theirs) = Hand::beside(&a.w).await;
    let b = Broker::over(other).await;
    hand.leave(&a.w);
    theirs.take(&b.w, Partitions::ALL).await;
    b.w.app.flows.gained(&Partitions::ALL);
    let Err(Error::Elsewhere(_)) = a.renew(&held).await else {
        panic!("the node that had it says whose it is");
    };
    assert_eq!(b.renew(&held).await.unwrap().stop, None);
    assert!(b.complete(&held, json!({})).await.is_ok());
    assert_eq!(b.w.status("a").await, Some(Status::Completed));
    assert_eq!(b.failures("a").await, []);
}

#[tokio::test]
async fn a_lease_whose_flow_has_slipped_away_takes_no_slot_after_its_time() {
    let (w, hand) = Hand::world().await;
    let b = Broker::over(w).await.run().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    hand.slip();
    b.after_ms(LEASE_MS).await;
    assert_eq!(b.w.taken(), 0, "the owner of the flow ends it");
    let Err(Error::Elsewhere(_)) = b.renew(&held).await else {
        panic!("it is elsewhere");
    };
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_ends_and_its_task_is_on_offer_again() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    b.after_ms(LEASE_MS - 1).await;
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
    b.after_ms(1).await;
    assert_eq!(
        (b.w.status("a").await, b.w.taken()),
        (Some(Status::Pending), 0)
    );
    let error = format!(
        "lost by worker `worker`, whose lease ended at {}",
        held.expires_at
    );
    let expected = [(FailureReason::Interrupted, true, error)];
    assert_eq!(b.failures("a").await, expected);

    // The worker wakes up: nothing of what it says counts.
    let events = b.w.history(flow("a")).await.len();
    assert_eq!(lost(b.renew(&held).await), LeaseLoss::Lost);
    assert_eq!(lost(b.complete(&held, json!({})).await), LeaseLoss::Lost);
    assert_eq!(b.w.history(flow("a")).await.len(), events);
    b.after_ms(LOST_REST_MS - 1).await;
    assert!(b.next(1).await.is_empty(), "it rests");
    b.after_ms(1).await;
    let next = b.claim("a").await;
    assert_eq!(next.attempt, 2);
    assert_eq!(lost(b.complete(&held, json!({})).await), LeaseLoss::Lost);
    assert_eq!(lost(b.fail(&held, "late", true).await), LeaseLoss::Lost);
    assert_eq!(lost(b.release(&held).await), LeaseLoss::Lost);
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
    assert!(b.complete(&next, json!({})).await.is_ok());
    assert_eq!(b.w.status("a").await, Some(Status::Completed));
    assert_eq!(lost(b.renew(&held).await), LeaseLoss::Lost);
    assert_eq!(lost(b.complete(&held, json!({})).await), LeaseLoss::Lost);
}

#[tokio::test]
async fn a_lease_whose_time_has_passed_does_not_hold_though_nobody_has_ended_it_yet() {
    let b = Broker::new().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    b.w.clock.advance_ms(LEASE_MS);
    let events = b.w.history(flow("a")).await.len();
    assert_eq!(lost(b.complete(&held, json!({})).await), LeaseLoss::Lost);
    assert_eq!(lost(b.fail(&held, "late", false).await), LeaseLoss::Lost);
    assert_eq!(lost(b.release(&held).await), LeaseLoss::Lost);
    assert_eq!(lost(b.renew(&held).await), LeaseLoss::Lost);
    assert_eq!(b.w.history(flow("a")).await.len(), events);
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
}

#[tokio::test]
async fn the_fourth_lost_lease_fails_the_task() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    for attempt in 1..=4 {
        assert_eq!(b.claim("a").await.attempt, attempt);
        b.after_ms(LEASE_MS).await;
        b.after_ms(LOST_REST_MS << (attempt - 1)).await;
    }
    assert_eq!(b.w.status("a").await, Some(Status::Failed));
    assert_eq!(b.w.kinds(flow("a")).await.last(), Some(&"RunEnded"));
    assert_eq!(b.w.taken(), 0);
}

#[tokio::test]
async fn a_renewed_lease_holds_longer_and_renewals_are_not_events() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    let events = b.w.history(flow("a")).await.len();
    for n in 1..=5 {
        b.after_ms(LEASE_MS / 2).await;
        let renewed = b.renew(&held).await.unwrap();
        let until = START.plus_ms(n * LEASE_MS / 2 + LEASE_MS);
        assert_eq!((renewed.expires_at, renewed.stop), (until, None));
    }
    assert_eq!(b.w.history(flow("a")).await.len(), events);
    assert_eq!(b.w.renewals.len(), 1);
    let mut unknown = held.clone();
    unknown.lease = LeaseId(id("unknown").0);
    assert_eq!(lost(b.renew(&unknown).await), LeaseLoss::Unknown);
    assert!(b.complete(&held, json!({})).await.is_ok());
    assert_eq!(lost(b.renew(&held).await), LeaseLoss::Ended);
    quiet().await;
    assert!(b.w.renewals.is_empty(), "what is over is forgotten");
}

#[tokio::test]
async fn a_renewal_that_says_so_makes_a_lease_shorter() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    let long = b.renew_for(&held, 10 * LEASE_MS).await.unwrap().expires_at;
    assert_eq!(long, START.plus_ms(10 * LEASE_MS));
    // One that says nothing takes nothing away.
    assert_eq!(b.renew(&held).await.unwrap().expires_at, long);
    let short = b.renew_for(&held, 5_000).await.unwrap().expires_at;
    assert_eq!(short, START.plus_ms(5_000));
    b.after_ms(4_999).await;
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
    b.after_ms(1).await;
    assert_eq!(b.w.status("a").await, Some(Status::Pending));
    assert_eq!(lost(b.renew(&held).await), LeaseLoss::Lost);
}

#[tokio::test]
async fn a_lease_that_was_made_shorter_stays_so_in_the_next_server() {
    let b = Broker::new().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    b.renew_for(&held, 10 * LEASE_MS).await.unwrap();
    b.renew_for(&held, 15_000).await.unwrap();
    let b = b.restarted().await.run().await;
    b.w.app.flows.wake(flow("a"));
    b.after_ms(0).await;
    b.after_ms(14_999).await;
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
    b.after_ms(1).await;
    assert_eq!(b.w.status("a").await, Some(Status::Pending));
}

#[tokio::test]
async fn renewals_outlive_a_restart() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    b.after_ms(LEASE_MS - 1000).await;
    let until = b.renew(&held).await.unwrap().expires_at;
    b.after_ms(30_000).await;

    tokio::time::resume();
    let b = b.restarted().await.run().await;
    b.w.app.flows.wake(flow("a"));
    b.after_ms(0).await;
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
    // The worker goes on as if nothing had happened.
    let later = b.renew(&held).await.unwrap().expires_at;
    assert!(later > until);
    b.after_ms(LEASE_MS).await;
    assert_eq!(b.w.status("a").await, Some(Status::Pending));
}

#[tokio::test]
async fn a_worker_that_could_not_renew_while_the_server_was_away_gets_a_moment() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    tokio::time::resume();
    let b = b.restarted().await;
    b.w.clock.advance_ms(10 * LEASE_MS);
    let b = b.run().await;
    b.w.app.flows.wake(flow("a"));
    b.after_ms(9_000).await;
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
    assert!(b.renew(&held).await.is_ok());
    b.after_ms(LEASE_MS - 1).await;
    assert_eq!(b.w.status("a").await, Some(Status::InProgress));
    b.after_ms(1).await;
    assert_eq!(b.w.status("a").await, Some(Status::Pending));
}

#[tokio::test]
async fn a_server_that_restarts_again_and_again_keeps_no_lease_for_ever() {
    let mut b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    for restart in 1..=4 {
        tokio::time::resume();
        b = b.restarted().await;
        b.w.clock.advance_ms(LEASE_MS);
        b = b.run().await;
        b.w.app.flows.wake(flow("a"));
        b.after_ms(5_000).await;
        let status = b.w.status("a").await;
        if restart < 4 {
            assert_eq!(status, Some(Status::InProgress), "{restart}");
        } else {
            // A moment less than a lease gets when it is extended.
            b.after_ms(4_000).await;
            assert_eq!(b.w.status("a").await, Some(Status::Pending));
        }
    }
    assert_eq!(lost(b.renew(&held).await), LeaseLoss::Lost);
}

#[tokio::test]
async fn the_first_word_after_a_restart_may_be_a_renewal_or_an_outcome() {
    let b = Broker::new().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    let b = b.restarted().await;
    assert!(b.renew(&held).await.is_ok());
    assert_eq!(b.w.taken(), 1);
    let b = b.restarted().await;
    assert!(b.complete(&held, json!({"n": 1})).await.is_ok());
    let b = b.restarted().await;
    // The answer was lost with the server: the same again is answered.
    let again = b.complete(&held, json!({"n": 1})).await.unwrap();
    assert_eq!(again.status, Status::Completed);
    assert_eq!(
        lost(b.complete(&held, json!({"n": 2})).await),
        LeaseLoss::Ended
    );
}

#[tokio::test]
async fn an_evicted_flow_keeps_its_leases() {
    let w = World::made(Make {
        idle_bytes_max: 0,
        ..Make::default()
    })
    .await;
    let b = Broker::over(w).await.run().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    quiet().await;
    assert_eq!(b.w.app.flows.resident(), (0, 0));
    b.after_ms(LEASE_MS - 1).await;
    assert!(b.renew(&held).await.is_ok());
    assert_eq!(b.w.app.flows.resident(), (0, 0), "a renewal loads nothing");
    assert_eq!(b.w.taken(), 1);
    b.after_ms(LEASE_MS).await;
    assert_eq!(b.w.status("a").await, Some(Status::Pending));
}

#[tokio::test]
async fn an_evicted_flow_keeps_its_offers() {
    let w = World::made(Make {
        idle_bytes_max: 0,
        ..Make::default()
    })
    .await;
    let b = Broker::over(w).await.run().await;
    b.execute(json!([task("a", "resize")])).await;
    quiet().await;
    assert_eq!(b.w.app.flows.resident(), (0, 0));
    assert_eq!(b.next(1).await.len(), 1);
}

#[tokio::test]
async fn a_worker_hears_of_a_cancel_with_its_next_renewal_and_may_take_its_time_to_stop() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    b.execute(bounded("b", &json!({"cancel_grace_seconds": 5})))
        .await;
    let held = [b.claim("a").await, b.claim("b").await];
    for name in ["a", "b"] {
        b.cancel(name).await;
        assert_eq!(b.w.status(name).await, Some(Status::Cancelled));
    }
    assert_eq!(b.w.taken(), 0);
    for (held, grace_ms) in held.iter().zip([30_000, 5_000]) {
        let renewed = b.renew(held).await.unwrap();
        assert_eq!(renewed.stop, Some(StopReason::Cancelled));
        assert_eq!(renewed.expires_at, START.plus_ms(grace_ms));
        // Nothing that it says counts.
        let done = b.complete(held, json!({})).await;
        assert_eq!(lost(done), LeaseLoss::Cancelled);
        assert_eq!(lost(b.release(held).await), LeaseLoss::Cancelled);
    }
    b.after_ms(5_000).await;
    assert!(b.renew(&held[0]).await.is_ok());
    assert_eq!(lost(b.renew(&held[1]).await), LeaseLoss::Cancelled);
    b.after_ms(25_000).await;
    assert_eq!(lost(b.renew(&held[0]).await), LeaseLoss::Cancelled);
    let b = {
        tokio::time::resume();
        b.restarted().await
    };
    assert_eq!(lost(b.renew(&held[0]).await), LeaseLoss::Cancelled);
}

#[tokio::test]
async fn time_outs_and_deadlines_take_an_attempt_back() {
    let b = Broker::running().await;
    b.execute(bounded("b", &json!({"timeout_seconds": 5})))
        .await;
    let deadline = START.plus_ms(10_000).to_string();
    b.execute(bounded("c", &json!({"deadline": deadline})))
        .await;
    let (timed, dead) = (b.claim("b").await, b.claim("c").await);
    assert_eq!((timed.timeout_ms, timed.deadline), (Some(5_000), None));
    let at = Some(START.plus_ms(10_000));
    assert_eq!((dead.timeout_ms, dead.deadline), (None, at));
    b.after_ms(5_000).await;
    assert_eq!(b.w.status("b").await, Some(Status::Failed));
    assert_eq!(b.failures("b").await[0].0, FailureReason::Timeout);
    let stop = b.renew(&timed).await.unwrap().stop;
    assert_eq!(stop, Some(StopReason::TimedOut));
    let late = b.complete(&timed, json!({})).await;
    assert_eq!(lost(late), LeaseLoss::TimedOut);
    assert_eq!(b.w.status("c").await, Some(Status::InProgress));
    b.after_ms(5_000).await;
    assert_eq!(
        (b.w.status("c").await, b.w.taken()),
        (Some(Status::Failed), 0)
    );
    let stop = b.renew(&dead).await.unwrap().stop;
    assert_eq!(stop, Some(StopReason::Deadline));
    let late = b.complete(&dead, json!({})).await;
    assert_eq!(lost(late), LeaseLoss::Deadline);
}

#[tokio::test]
async fn a_lease_that_is_being_ended_cannot_be_renewed() {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let held = b.claim("a").await;
    let mut hold = b.w.faults.hold_next_append();
    b.w.clock.advance_ms(LEASE_MS);
    tokio::time::advance(Duration::from_secs(2)).await;
    hold.arrived().await;
    // It is decided: nobody is told that it was renewed.
    assert_eq!(lost(b.renew(&held).await), LeaseLoss::Lost);
    hold.release();
    quiet().await;
    assert_eq!(b.w.status("a").await, Some(Status::Pending));
}

#[tokio::test]
async fn a_claim_that_was_not_written_holds_nothing() {
    let mut b = Broker::new().await;
    b.w.run_read_models();
    b.execute(json!([task("a", "resize")])).await;
    let mut hold = b.w.faults.hold_next_append();
    let claim = b.claims(caller(), "worker", methods(&["resize"]), 1, Duration::ZERO);
    hold.arrived().await;
    b.w.foreign_write(flow("a"), vec![foreign_rename("a")])
        .await;
    hold.release();
    // Decided again, on what another server wrote.
    let held = soon(claim).await.unwrap().unwrap().claims;
    assert_eq!((held.len(), held[0].attempt, b.w.taken()), (1, 1, 1));
    assert!(b.complete(&held[0], json!({})).await.is_ok());
    assert_eq!(b.w.taken(), 0);
}

#[tokio::test]
async fn explanations_name_the_worker_that_is_missing_and_the_attempt_that_runs() {
    let mut b = Broker::new().await;
    b.w.run_read_models();
    b.execute(json!([task("a", "resize")])).await;
    let explain = || {
        b.w.call(|app| async move { app.explain(&caller(), id("a")).await })
    };
    let waiting = soon(explain()).await.unwrap().unwrap();
    assert_eq!(
        waiting["reasons"][0]["code"], "waits_for_worker",
        "{waiting}"
    );
    let _ = b.claim("a").await;
    let runs = soon(explain()).await.unwrap().unwrap();
    assert_eq!(runs["status"], "in_progress");
    assert_eq!(runs["reasons"][0]["code"], "running", "{runs}");
    assert_eq!(runs["attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_explanation_says_that_a_lost_attempt_uses_up_no_retry() {
    let mut b = Broker::new().await;
    b.w.run_read_models();
    b.w.run_flows();
    b.execute(json!([task("a", "resize")])).await;
    let _ = b.claim("a").await;
    b.w.clock.advance_ms(LEASE_MS);
    while b.w.status("a").await != Some(Status::Pending) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let explain =
        b.w.call(|app| async move { app.explain(&caller(), id("a")).await });
    let rests = soon(explain).await.unwrap().unwrap();
    let reason = &rests["reasons"][0];
    assert_eq!(
        (
            &reason["code"],
            &reason["attempt"],
            &reason["attempt_of_run"]
        ),
        (&json!("waits_for_retry"), &json!(2), &json!(1))
    );
    let message = reason["message"].as_str().unwrap();
    let said = "for another attempt; the last one uses up no retry: lost by worker `worker`";
    assert!(message.contains(said), "{message}");
}
