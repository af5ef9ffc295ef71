//! Claims of workers that wait, in the append that makes their tasks ready.

use crate::application::broker::{Broker, flow, methods};
use crate::application::world::{caller, foreign_rename, quiet, soon, task};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger::application::api::Error;
use taskledger::application::api::work::{Claimed, Claims, Wanted};
use taskledger::store;
use taskledger_domain::flow::Event;
use taskledger_domain::testing::id;

/// A task, and one that waits for it.
fn chain() -> Value {
    let mut second = task("b", "resize");
    second["dependencies"] = json!([{"id": id("a")}]);
    json!([{"id": id("g"), "name": "g", "children": [task("a", "resize"), second]}])
}

/// The first task of the chain, claimed.
async fn given_chain() -> (Broker, Claimed) {
    let b = Broker::running().await;
    b.execute(chain()).await;
    let first = b.next(1).await.pop().expect("it is ready");
    (b, first)
}

/// How often a task was started, according to the log.
async fn starts(b: &Broker, name: &str) -> usize {
    starts_in(b, "g", name).await
}

async fn starts_in(b: &Broker, root: &str, name: &str) -> usize {
    let history = b.w.history(flow(root)).await;
    let is_start = |event: &Event| matches!(event, Event::TaskStarted(e) if e.task_id == id(name));
    history.iter().filter(|r| is_start(&r.event)).count()
}

#[tokio::test]
async fn a_task_that_becomes_ready_is_claimed_in_the_append_of_the_completion_before_it() {
    let (b, first) = given_chain().await;
    let waits = b.waits("w");
    quiet().await;
    let appends = b.w.faults.appends();
    assert!(b.complete(&first, json!({})).await.is_ok());
    let second = soon(waits).await.unwrap().unwrap().claims;
    assert_eq!((second[0].task.id, second[0].attempt), (id("b"), 1));
    assert_eq!(b.w.faults.appends(), appends + 1);
    assert!(b.complete(&second[0], json!({})).await.is_ok());
}

#[tokio::test]
async fn a_task_is_claimed_in_the_append_that_begins_its_flow() {
    let b = Broker::running().await;
    let waits = b.waits("w");
    quiet().await;
    let appends = b.w.faults.appends();
    b.execute(json!([task("a", "resize")])).await;
    assert_eq!(soon(waits).await.unwrap().unwrap().claims.len(), 1);
    assert_eq!(b.w.faults.appends(), appends + 1);
}

#[tokio::test]
async fn a_claim_is_not_answered_before_the_completion_that_it_follows_is_durable() {
    let (b, first) = given_chain().await;
    let waits = b.waits("w");
    quiet().await;
    let mut hold = b.w.faults.hold_next_append();
    let (completing, ()) = tokio::join!(b.complete(&first, json!({})), async {
        hold.arrived().await;
        quiet().await;
        assert!(!waits.is_finished(), "nothing is durable yet");
        hold.release();
    });
    assert!(completing.is_ok());
    assert_eq!(soon(waits).await.unwrap().unwrap().claims.len(), 1);
}

/// Whatever keeps the append from being written, both are written by the next one.
async fn are_decided_again(b: Broker, first: Claimed, keep_from_writing: impl FnOnce(&Broker)) {
    let waits = b.waits("w");
    quiet().await;
    keep_from_writing(&b);
    assert!(b.complete(&first, json!({})).await.is_ok());
    let second = soon(waits).await.unwrap().unwrap().claims;
    assert_eq!((second[0].task.id, second[0].attempt), (id("b"), 1));
    assert_eq!((starts(&b, "a").await, starts(&b, "b").await), (1, 1));
    assert!(b.complete(&second[0], json!({})).await.is_ok());
}

#[tokio::test]
async fn completion_and_claim_are_decided_again_when_their_append_is_lost() {
    let (b, first) = given_chain().await;
    are_decided_again(b, first, |b| b.w.faults.unknown_instead_of_next_append()).await;
}

#[tokio::test]
async fn completion_and_claim_are_decided_again_behind_what_another_server_wrote() {
    let (mut b, first) = given_chain().await;
    // What the other server wrote is read from the tables.
    b.w.run_read_models();
    let rename = |b: &Broker| {
        let renamed = vec![foreign_rename("a")];
        b.w.faults.foreign_write_before_next_append(renamed);
    };
    are_decided_again(b, first, rename).await;
}

#[tokio::test]
async fn nothing_is_left_on_offer_of_an_append_that_fails() {
    let (b, first) = given_chain().await;
    let waits = b.waits("w");
    quiet().await;
    let full = store::Error::Unavailable("the disk is full".to_owned());
    b.w.faults.refuse_next_append(full);
    assert!(b.complete(&first, json!({})).await.is_err());
    assert!(soon(waits).await.unwrap().is_err());
    assert_eq!(starts(&b, "b").await, 0);
    // The first task is in progress still, so nobody gets the second one.
    assert!(b.next(1).await.is_empty());
    let waits = b.waits("w");
    quiet().await;
    assert!(b.complete(&first, json!({})).await.is_ok());
    let second = soon(waits).await.unwrap().unwrap().claims;
    assert_eq!(second[0].task.id, id("b"));
}

#[tokio::test]
async fn the_worker_that_has_waited_for_the_longest_time_claims_first_there_too() {
    let (b, first) = given_chain().await;
    let long = b.waits("long");
    quiet().await;
    let short = b.waits("short");
    quiet().await;
    assert!(b.complete(&first, json!({})).await.is_ok());
    assert_eq!(soon(long).await.unwrap().unwrap().claims.len(), 1);
    quiet().await;
    assert!(!short.is_finished());
}

#[tokio::test]
async fn a_claim_by_method_whose_task_is_cancelled_in_the_same_append_begins_nothing() {
    let (claims, starts) = claimed_with_a_cancel(methods(&["resize"])).await;
    // Both were decided: the attempt began and was cancelled.
    assert_eq!(starts, 1);
    let claims = claims.expect("the outcome is known").claims;
    assert!(claims.is_empty(), "{claims:?}");
}

#[tokio::test]
async fn a_claim_by_id_whose_task_is_cancelled_in_the_same_append_begins_nothing() {
    let (claims, _) = claimed_with_a_cancel(Wanted::Task(id("a"))).await;
    // It says why, as for a task that was cancelled before.
    let refused = format!("{:?}", claims.expect_err("the task is cancelled"));
    assert!(refused.contains("status: Cancelled"), "{refused}");
}

async fn claimed_with_a_cancel(wanted: Wanted) -> (Result<Claims, Error>, usize) {
    let b = Broker::running().await;
    b.execute(json!([task("a", "resize")])).await;
    let mut hold = b.w.faults.hold_next_append();
    let rename = b.w.rename("a", "x");
    hold.arrived().await;
    let claims = b.claims(caller(), "w", wanted, 1, Duration::ZERO);
    quiet().await;
    let release = async {
        quiet().await;
        hold.release();
    };
    tokio::join!(b.cancel("a"), release);
    assert!(soon(rename).await.unwrap().is_ok());
    let claims = soon(claims).await.unwrap();
    (claims, starts_in(&b, "a", "a").await)
}
