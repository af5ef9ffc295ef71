//! Every event says who, why and on whose behalf.

use crate::application::world::{World, caller, soon, task, updates, user_named};
use serde_json::json;
use std::sync::Arc;
use taskledger::application::Context;
use taskledger_domain::Recorded;
use taskledger_domain::flow::Event;
use taskledger_domain::testing::id;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn traced(correlation: &str) -> Context {
    Context {
        trace: Some(Arc::from(TRACE)),
        ..Context::anonymous(Arc::from(correlation))
    }
}

fn actors(history: &[Arc<Recorded>]) -> Vec<&str> {
    history.iter().map(|r| &*r.metadata.actor).collect()
}

#[tokio::test]
async fn whoever_gives_no_user_is_anonymous() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    assert!(soon(w.rename("a", "x")).await.unwrap().is_ok());
    assert_eq!(actors(&w.history(flow).await), ["anonymous"; 3]);
}

#[tokio::test]
async fn whoever_names_a_user_is_not_that_user() {
    let w = World::new().await;
    let tree = json!({"id": id("root"), "name": "root", "user_id": "cfo@example.org",
        "children": [{"name": "a"}]});
    assert!(soon(w.create(caller(), tree)).await.unwrap().is_ok());
    let history = w.history(id("root").as_flow()).await;
    assert_eq!(actors(&history), ["anonymous", "anonymous"]);
    let run = json!([{"id": id("other"), "name": "other", "user_id": "cfo@example.org"}]);
    assert!(soon(w.execute(caller(), run)).await.unwrap().is_ok());
    let history = w.history(id("other").as_flow()).await;
    assert!(!history.is_empty());
    assert!(actors(&history).iter().all(|actor| *actor == "anonymous"));
}

#[tokio::test]
async fn a_principal_is_not_replaced_by_a_user() {
    let w = World::new().await;
    let bob = Context {
        caller: user_named("bob"),
        ..caller()
    };
    assert!(
        soon(w.create(
            bob,
            json!({"id": id("root"), "name": "root", "user_id": "ann"})
        ))
        .await
        .unwrap()
        .is_ok()
    );
    assert_eq!(actors(&w.history(id("root").as_flow()).await), ["user:bob"]);
}

#[tokio::test]
async fn every_event_of_a_call_carries_its_correlation_and_trace() {
    let w = World::new().await;
    let flow = id("root").as_flow();
    let tree = json!([{"id": id("root"), "name": "root", "children": [task("a", "work")]}]);
    assert!(soon(w.execute(traced("run"), tree)).await.unwrap().is_ok());
    let change = updates(json!({"name": "x", "priority": 0}));
    let update =
        w.call(move |app| async move { app.update(&traced("update"), id("a"), change).await });
    assert!(soon(update).await.unwrap().is_ok());
    let history = w.history(flow).await;
    assert_eq!(
        history.len(),
        2 + 1 + 2 + 2,
        "two tasks, a run, two starts, two changes"
    );
    for (n, recorded) in history.iter().enumerate() {
        let expected = if n < 5 { "run" } else { "update" };
        assert_eq!(&*recorded.metadata.correlation, expected);
        assert_eq!(recorded.metadata.trace.as_deref(), Some(TRACE));
        assert_eq!(recorded.metadata.causation, None);
    }
}

#[tokio::test]
async fn an_outcome_and_what_follows_from_it_name_the_start_as_their_cause() {
    let w = World::new().await;
    let flow = id("root").as_flow();
    let second = json!({"id": id("b"), "name": "b", "schemas": {"method": "work"}, "dependencies": [{"id": id("a")}]});
    let tree = json!([{"id": id("root"), "name": "root", "children": [task("a", "work"), second]}]);
    assert!(soon(w.execute(traced("run"), tree)).await.unwrap().is_ok());
    w.script.complete("a").await;
    w.script.complete("b").await;
    let history = w.history(flow).await;
    let started = |name: &str| {
        let of = |r: &&Arc<Recorded>| matches!(r.event.as_ref(), Event::TaskStarted(e) if e.task_id == id(name));
        history.iter().find(of).expect("it started")
    };
    let (a, b) = (started("a"), started("b"));
    for recorded in &history {
        let metadata = &recorded.metadata;
        assert_eq!(
            (&*metadata.correlation, metadata.trace.as_deref()),
            ("run", Some(TRACE))
        );
        let (actor, cause) = match recorded.event.as_ref() {
            Event::TaskCompleted(e) if e.task_id == id("a") => ("engine", Some(a.id)),
            Event::TaskStarted(e) if e.task_id == id("b") => ("engine", Some(a.id)),
            Event::TaskCompleted(_) | Event::RunEnded(_) => ("engine", Some(b.id)),
            _ => ("anonymous", None),
        };
        assert_eq!(
            (&*metadata.actor, metadata.causation),
            (actor, cause),
            "{:?}",
            recorded.event
        );
    }
}
