//! Attempts outside the server: their leases, restarts, moves, and workers that fall silent.

use crate::application::world::{Make, World, caller, metadata, quiet, soon, task};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger::application::{Claimed, Error, Wanted};
use taskledger_domain::flow::{Command, Done, Event, FailureReason, Kind, Outdated};
use taskledger_domain::task::{Progress, Status};
use taskledger_domain::testing::{START, id};
use taskledger_domain::{FlowId, LeaseId, Payload, Timestamp};

const LEASE_MS: u64 = 60_000;

async fn world() -> World {
    let w = World::new().await;
    w.executors.add_remote("resize", 2);
    w
}

/// Time stands still but for the clock of the server, and leases are looked at.
async fn running(mut w: World) -> World {
    w.executors.add_remote("resize", 2);
    tokio::time::pause();
    w.run_flows();
    quiet().await;
    w
}

async fn run(w: &World, tasks: Value) {
    soon(w.execute(caller(), tasks))
        .await
        .unwrap()
        .expect("it starts");
}

fn flow(name: &str) -> FlowId {
    id(name).as_flow()
}

/// A claim of a task that is its flow's root.
async fn claim(w: &World, name: &str) -> Result<Option<Claimed>, Error> {
    let wanted = Wanted {
        flow: flow(name),
        task: id(name),
        worker: "worker".to_owned(),
        lease_ms: LEASE_MS,
    };
    soon(w.app.flows.claim(&wanted, &metadata("claim"))).await
}

async fn claimed(w: &World, name: &str) -> Claimed {
    claim(w, name).await.unwrap().expect("a slot is free")
}

async fn complete(w: &World, name: &str, held: Claimed) -> Result<Done, Error> {
    let command = Command::Complete {
        task: id(name),
        attempt: held.attempt,
        result: Payload::empty(),
        lease: Some(held.lease),
    };
    soon(w.app.flows.tell(flow(name), command, metadata("done"))).await
}

async fn renew(w: &World, name: &str, held: Claimed) -> Result<Timestamp, Error> {
    soon(
        w.app
            .flows
            .renew(flow(name), id(name), held.lease, LEASE_MS),
    )
    .await
}

fn outdated<T: std::fmt::Debug>(result: Result<T, Error>) -> Outdated {
    match result {
        Err(Error::Outdated(what)) => what,
        other => panic!("expected it to be outdated, got {other:?}"),
    }
}

/// Time passes, and the server looks at leases.
async fn after_ms(w: &World, ms: u64) {
    w.clock.advance_ms(ms);
    tokio::time::advance(Duration::from_secs(2)).await;
    quiet().await;
}

async fn failures(w: &World, name: &str) -> Vec<(FailureReason, bool, String)> {
    let history = w.history(flow(name)).await;
    let failure = history.iter().filter_map(|r| match r.event.as_ref() {
        Event::TaskFailed(e) => Some((e.reason, e.will_retry, e.error.clone())),
        _ => None,
    });
    failure.collect()
}

#[tokio::test]
async fn a_claimed_task_runs_outside_the_server_until_its_worker_ends_it() {
    let w = world().await;
    run(&w, json!([task("a", "resize")])).await;
    let held = claimed(&w, "a").await;
    assert_eq!(
        (held.attempt, held.expires_at),
        (1, START.plus_ms(LEASE_MS))
    );
    assert_eq!((w.script.launches(), w.taken()), (vec![], 1));
    let Err(Error::Refused(refused)) = claim(&w, "a").await else {
        panic!("it is not ready");
    };
    assert_eq!(refused.refusal.kind(), Kind::InvalidTransition);

    let progress = Command::Report {
        task: id("a"),
        attempt: 1,
        progress: Progress::from_millionths(500_000),
        lease: Some(held.lease),
    };
    let told = w.app.flows.tell(flow("a"), progress, metadata("half"));
    assert_eq!(soon(told).await.unwrap(), Done::Status(Status::InProgress));
    let done = complete(&w, "a", held).await.unwrap();
    assert_eq!((done, w.taken()), (Done::Status(Status::Completed), 0));
    assert_eq!(w.kinds(flow("a")).await.last(), Some(&"RunEnded"));
}

#[tokio::test]
async fn a_claim_takes_a_slot_of_its_method_across_flows() {
    let w = world().await;
    for name in ["a", "b", "c"] {
        run(&w, json!([task(name, "resize")])).await;
    }
    let (a, _b) = (claimed(&w, "a").await, claimed(&w, "b").await);
    assert_eq!(claim(&w, "c").await.unwrap(), None);
    assert_eq!(w.status("c").await, Some(Status::Pending));
    assert!(complete(&w, "a", a).await.is_ok());
    let _ = claimed(&w, "c").await;
}

#[tokio::test]
async fn a_restart_interrupts_what_this_process_ran_and_no_leased_attempt() {
    let w = world().await;
    let children = json!([task("far", "resize"), task("here", "work")]);
    run(
        &w,
        json!([{"id": id("g"), "name": "g", "children": children}]),
    )
    .await;
    let wanted = Wanted {
        flow: flow("g"),
        task: id("far"),
        worker: "worker".to_owned(),
        lease_ms: LEASE_MS,
    };
    let held = soon(w.app.flows.claim(&wanted, &metadata("claim"))).await;
    let held = held.unwrap().expect("a slot is free");

    let w = w.restarted().await;
    w.executors.add_remote("resize", 2);
    w.app.flows.wake(flow("g"));
    w.script.launched(1).await;
    assert_eq!(w.script.launches(), [(id("here"), 2)]);
    assert_eq!(w.status("far").await, Some(Status::InProgress));
    assert_eq!(w.taken(), 2, "its slot is taken in this process too");

    let command = Command::Complete {
        task: id("far"),
        attempt: held.attempt,
        result: Payload::empty(),
        lease: Some(held.lease),
    };
    let told = w.app.flows.tell(flow("g"), command, metadata("done"));
    assert!(soon(told).await.is_ok());
    assert_eq!(w.status("far").await, Some(Status::Completed));
    assert_eq!(w.taken(), 1);
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_ends_and_its_task_is_on_offer_again() {
    let w = running(world().await).await;
    run(&w, json!([task("a", "resize")])).await;
    let lost = claimed(&w, "a").await;
    after_ms(&w, LEASE_MS - 1).await;
    assert_eq!(w.status("a").await, Some(Status::InProgress));
    after_ms(&w, 1).await;
    assert_eq!((w.status("a").await, w.taken()), (Some(Status::Pending), 0));
    let error = format!(
        "lost by worker `worker`, whose lease ended at {}",
        lost.expires_at
    );
    let expected = [(FailureReason::Interrupted, true, error)];
    assert_eq!(failures(&w, "a").await, expected);

    // The worker wakes up: nothing of what it says counts.
    assert_eq!(outdated(renew(&w, "a", lost).await), Outdated::Attempt);
    let next = claimed(&w, "a").await;
    assert_eq!(next.attempt, 2);
    assert_eq!(outdated(complete(&w, "a", lost).await), Outdated::Attempt);
    let release = Command::Release {
        task: id("a"),
        attempt: 2,
        lease: lost.lease,
    };
    let released = soon(w.app.flows.tell(flow("a"), release, metadata("release"))).await;
    assert_eq!(outdated(released), Outdated::Attempt);
    assert!(complete(&w, "a", next).await.is_ok());
    assert_eq!(w.status("a").await, Some(Status::Completed));
}

#[tokio::test]
async fn the_fourth_lost_lease_fails_the_task() {
    let w = running(world().await).await;
    run(&w, json!([task("a", "resize")])).await;
    for attempt in 1..=4 {
        assert_eq!(claimed(&w, "a").await.attempt, attempt);
        after_ms(&w, LEASE_MS).await;
    }
    assert_eq!(w.status("a").await, Some(Status::Failed));
    assert_eq!(w.kinds(flow("a")).await.last(), Some(&"RunEnded"));
    assert_eq!(w.taken(), 0);
}

#[tokio::test]
async fn a_renewed_lease_holds_longer_and_renewals_are_not_events() {
    let w = running(world().await).await;
    run(&w, json!([task("a", "resize")])).await;
    let held = claimed(&w, "a").await;
    let events = w.history(flow("a")).await.len();
    for n in 1..=5 {
        after_ms(&w, LEASE_MS / 2).await;
        let until = renew(&w, "a", held).await.unwrap();
        assert_eq!(until, START.plus_ms(n * LEASE_MS / 2 + LEASE_MS));
    }
    assert_eq!(w.history(flow("a")).await.len(), events);
    assert_eq!(w.renewals.len(), 1);
    let unknown = Claimed {
        lease: LeaseId(id("unknown").0),
        ..held
    };
    assert_eq!(outdated(renew(&w, "a", unknown).await), Outdated::Attempt);
    assert!(complete(&w, "a", held).await.is_ok());
    assert_eq!(outdated(renew(&w, "a", held).await), Outdated::Attempt);
    quiet().await;
    assert!(w.renewals.is_empty(), "what is over is forgotten");
}

#[tokio::test]
async fn renewals_outlive_a_restart() {
    let w = running(world().await).await;
    run(&w, json!([task("a", "resize")])).await;
    let held = claimed(&w, "a").await;
    after_ms(&w, LEASE_MS - 1000).await;
    let until = renew(&w, "a", held).await.unwrap();
    after_ms(&w, 30_000).await;

    tokio::time::resume();
    let w = running(w.restarted().await).await;
    w.app.flows.wake(flow("a"));
    after_ms(&w, 0).await;
    assert_eq!(w.status("a").await, Some(Status::InProgress));
    // The worker goes on as if nothing had happened.
    let later = renew(&w, "a", held).await.unwrap();
    assert!(later > until);
    after_ms(&w, LEASE_MS).await;
    assert_eq!(w.status("a").await, Some(Status::Pending));
}

#[tokio::test]
async fn a_worker_that_could_not_renew_while_the_server_was_away_gets_a_moment() {
    let w = running(world().await).await;
    run(&w, json!([task("a", "resize")])).await;
    let held = claimed(&w, "a").await;
    tokio::time::resume();
    let w = w.restarted().await;
    w.clock.advance_ms(10 * LEASE_MS);
    let w = running(w).await;
    w.app.flows.wake(flow("a"));
    after_ms(&w, 9_000).await;
    assert_eq!(w.status("a").await, Some(Status::InProgress));
    assert!(renew(&w, "a", held).await.is_ok());
    after_ms(&w, LEASE_MS - 1).await;
    assert_eq!(w.status("a").await, Some(Status::InProgress));
    after_ms(&w, 1).await;
    assert_eq!(w.status("a").await, Some(Status::Pending));
}

#[tokio::test]
async fn the_first_word_after_a_restart_may_be_a_renewal() {
    let w = world().await;
    run(&w, json!([task("a", "resize")])).await;
    let held = claimed(&w, "a").await;
    let w = w.restarted().await;
    assert!(renew(&w, "a", held).await.is_ok());
    assert_eq!(w.taken(), 1);
}

#[tokio::test]
async fn an_evicted_flow_keeps_its_leases() {
    let w = World::made(Make {
        idle_bytes_max: 0,
        ..Make::default()
    })
    .await;
    let w = running(w).await;
    run(&w, json!([task("a", "resize")])).await;
    let held = claimed(&w, "a").await;
    quiet().await;
    assert_eq!(w.app.flows.resident(), (0, 0));
    after_ms(&w, LEASE_MS - 1).await;
    assert!(renew(&w, "a", held).await.is_ok());
    assert_eq!(w.app.flows.resident(), (0, 0), "a renewal loads nothing");
    assert_eq!(w.taken(), 1);
    after_ms(&w, LEASE_MS).await;
    assert_eq!(w.status("a").await, Some(Status::Pending));
}

#[tokio::test]
async fn cancel_time_out_and_deadline_take_a_leased_attempt_back() {
    let w = running(world().await).await;
    let bounded = |name: &str, params: Value| json!([{"id": id(name), "name": name, "schemas": {"method": "resize"}, "params": params}]);
    run(&w, json!([task("a", "resize")])).await;
    let a = claimed(&w, "a").await;
    let cancel = w.call(|app| async move { app.cancel(&caller(), id("a"), false, None).await });
    assert!(soon(cancel).await.unwrap().is_ok());
    assert_eq!(
        (w.status("a").await, w.taken()),
        (Some(Status::Cancelled), 0)
    );
    assert_eq!(outdated(renew(&w, "a", a).await), Outdated::Attempt);

    run(&w, bounded("b", json!({"timeout_seconds": 5}))).await;
    let deadline = START.plus_ms(10_000).to_string();
    run(&w, bounded("c", json!({"deadline": deadline}))).await;
    let (b, c) = (claimed(&w, "b").await, claimed(&w, "c").await);
    after_ms(&w, 5_000).await;
    assert_eq!(w.status("b").await, Some(Status::Failed));
    assert_eq!(failures(&w, "b").await[0].0, FailureReason::Timeout);
    assert_eq!(outdated(complete(&w, "b", b).await), Outdated::Attempt);
    assert_eq!(w.status("c").await, Some(Status::InProgress));
    after_ms(&w, 5_000).await;
    assert_eq!((w.status("c").await, w.taken()), (Some(Status::Failed), 0));
    assert_eq!(outdated(complete(&w, "c", c).await), Outdated::Attempt);
}

#[tokio::test]
async fn a_lease_that_is_being_ended_cannot_be_renewed() {
    let w = running(world().await).await;
    run(&w, json!([task("a", "resize")])).await;
    let held = claimed(&w, "a").await;
    let mut hold = w.faults.hold_next_append();
    w.clock.advance_ms(LEASE_MS);
    tokio::time::advance(Duration::from_secs(2)).await;
    hold.arrived().await;
    // It is decided: nobody is told that it was renewed.
    assert_eq!(outdated(renew(&w, "a", held).await), Outdated::Attempt);
    hold.release();
    quiet().await;
    assert_eq!(w.status("a").await, Some(Status::Pending));
}

#[tokio::test]
async fn a_claim_that_was_not_written_holds_nothing() {
    let w = world().await;
    run(&w, json!([task("a", "resize")])).await;
    let (flows, wanted) = (
        w.app.flows.clone(),
        Wanted {
            flow: flow("a"),
            task: id("a"),
            worker: "worker".to_owned(),
            lease_ms: LEASE_MS,
        },
    );
    let mut hold = w.faults.hold_next_append();
    let claim = tokio::spawn(async move { flows.claim(&wanted, &metadata("claim")).await });
    hold.arrived().await;
    let event = crate::application::world::foreign_rename("a");
    w.foreign_write(flow("a"), vec![event]).await;
    hold.release();
    // Decided again, on what another server wrote.
    let held = soon(claim).await.unwrap().unwrap().expect("a slot is free");
    assert_eq!((held.attempt, w.taken()), (1, 1));
    assert!(complete(&w, "a", held).await.is_ok());
    assert_eq!(w.taken(), 0);
}

#[tokio::test]
async fn explanations_name_the_worker_that_is_missing_and_the_attempt_that_runs() {
    let mut w = world().await;
    w.run_read_models();
    run(&w, json!([task("a", "resize")])).await;
    let explain = || w.call(|app| async move { app.explain(&caller(), id("a")).await });
    let waiting = soon(explain()).await.unwrap().unwrap();
    assert_eq!(
        waiting["reasons"][0]["code"], "waits_for_worker",
        "{waiting}"
    );
    let _ = claimed(&w, "a").await;
    let runs = soon(explain()).await.unwrap().unwrap();
    assert_eq!(runs["status"], "in_progress");
    assert_eq!(runs["reasons"][0]["code"], "running", "{runs}");
    assert_eq!(runs["attempts"].as_array().unwrap().len(), 1);
}
