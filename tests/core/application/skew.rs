//! A flow that goes from one node to another whose clock is seconds away.

use crate::application::ownership::Hand;
use crate::application::world::{World, caller, soon, task};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::application::Partitions;
use taskledger_domain::testing::{START, id};

/// How far the clocks are apart, in milliseconds: one node ahead, then the other.
const SKEWS: [(u64, u64); 2] = [(5_000, 0), (0, 5_000)];

type Node = (World, Arc<Hand>);

/// Two nodes over one log; the first owns everything.
async fn nodes(first_ms: u64, second_ms: u64) -> (Node, Node) {
    let (first, hand) = Hand::world().await;
    let (second, other) = Hand::beside(&first).await;
    first.clock.advance_ms(first_ms);
    second.clock.advance_ms(second_ms);
    ((first, hand), (second, other))
}

async fn hand_over(from: &Node, to: &Node) {
    from.1.leave(&from.0);
    to.1.take(&to.0, Partitions::ALL).await;
}

async fn wake(w: &World) {
    soon(w.app.flows.wake_and_wait(id("a").as_flow())).await;
}

async fn execute(w: &World, params: Value) {
    let mut tasks = task("a", "work");
    tasks["params"] = params;
    let run = soon(w.execute(caller(), json!([tasks]))).await.unwrap();
    assert!(run.is_ok(), "{run:?}");
}

/// How often the log of the flow has these events.
async fn count(w: &World, kind: &str) -> usize {
    let kinds = w.kinds(id("a").as_flow()).await;
    kinds.iter().filter(|k| **k == kind).count()
}

#[tokio::test]
async fn a_retry_happens_once_at_its_time_by_the_clock_of_whoever_owns_it() {
    for (first_ms, second_ms) in SKEWS {
        let (first, second) = nodes(first_ms, second_ms).await;
        let retry = json!({"retry": {"max_attempts": 2, "initial_delay_ms": 2000}});
        execute(&first.0, retry).await;
        first.0.script.fail("a").await;
        hand_over(&first, &second).await;
        wake(&second.0).await;
        if second_ms == 0 {
            assert_eq!(second.0.script.launches(), [], "its time has not come here");
            second.0.clock.advance_ms(first_ms + 4000);
            wake(&second.0).await;
        }
        second.0.script.launched(1).await;
        // Whoever had it before has nothing left that could begin it too.
        first.0.clock.advance_ms(20_000);
        wake(&first.0).await;
        assert_eq!(first.0.script.launches(), [(id("a"), 1)]);
        assert_eq!(second.0.script.launches(), [(id("a"), 2)]);
        second.0.script.complete("a").await;
        let outcomes = ["TaskFailed", "TaskCompleted"];
        for outcome in outcomes {
            assert_eq!(count(&second.0, outcome).await, 1, "{outcome}");
        }
    }
}

#[tokio::test]
async fn an_attempt_that_both_could_end_has_one_outcome() {
    for (first_ms, second_ms) in SKEWS {
        let (first, second) = nodes(first_ms, second_ms).await;
        execute(&first.0, json!({})).await;
        hand_over(&first, &second).await;
        wake(&second.0).await;
        second.0.script.launched(1).await;
        assert_eq!(second.0.script.launches(), [(id("a"), 2)]);
        // The executor of the first node ends now, in its own time.
        first.0.script.complete("a").await;
        assert_eq!(count(&second.0, "TaskCompleted").await, 0);
        second.0.script.complete("a").await;
        assert_eq!(count(&second.0, "TaskCompleted").await, 1);
        // And back.
        hand_over(&second, &first).await;
        wake(&first.0).await;
        assert_eq!(first.0.script.launches(), [(id("a"), 1)]);
        assert_eq!(count(&first.0, "TaskCompleted").await, 1);
    }
}

#[tokio::test]
async fn a_deadline_passes_once_by_the_clock_of_whoever_owns_the_flow() {
    for (first_ms, second_ms) in SKEWS {
        let (first, second) = nodes(first_ms, second_ms).await;
        let deadline = START.plus_ms(20_000).to_string();
        execute(&first.0, json!({"deadline": deadline})).await;
        hand_over(&first, &second).await;
        wake(&second.0).await;
        second.0.script.launched(1).await;
        second.0.clock.advance_ms(19_000 - second_ms);
        wake(&second.0).await;
        let ended = async || count(&second.0, "RunEnded").await;
        assert_eq!(ended().await, 0, "there is a second left");
        second.0.clock.advance_ms(2_000);
        wake(&second.0).await;
        assert_eq!(ended().await, 1);
        first.0.clock.advance_ms(30_000);
        wake(&first.0).await;
        assert_eq!(ended().await, 1);
        assert_eq!(count(&second.0, "TaskCompleted").await, 0);
    }
}
