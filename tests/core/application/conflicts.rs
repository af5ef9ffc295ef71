//! Another server writes to a flow just before this one does.

use crate::application::world::{
    World, caller, foreign_rename, is_busy, metadata, refused, soon, task,
};
use serde_json::json;
use taskledger::application::{Consistency, ExecuteOptions, Target};
use taskledger::store::NewEvent;
use taskledger_domain::EventId;
use taskledger_domain::flow::{Event, Kind, TaskDeleted};
use taskledger_domain::testing::{START, id};

fn foreign_deletion(name: &str) -> NewEvent {
    let event = Event::TaskDeleted(TaskDeleted { task_id: id(name) });
    NewEvent::new(
        EventId(id("a deletion").0),
        START,
        metadata("foreign"),
        event,
    )
}

#[tokio::test]
async fn a_command_that_met_a_conflict_is_decided_on_the_new_state() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    w.faults
        .foreign_write_before_next_append(vec![foreign_rename("root")]);
    assert!(soon(w.rename("a", "mine")).await.unwrap().is_ok());
    assert_eq!(
        w.kinds(flow).await,
        ["TaskCreated", "TaskCreated", "TaskRenamed", "TaskRenamed"]
    );
}

#[tokio::test]
async fn a_kept_command_is_refused_when_the_new_state_says_so() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a", "b"]).await;
    let mut hold = w.faults.hold_next_append();
    let first = w.rename("a", "mine");
    hold.arrived().await;
    let second = w.rename("b", "kept");
    crate::application::world::quiet().await;
    w.foreign_write(flow, vec![foreign_deletion("a")]).await;
    hold.release();
    assert_eq!(refused(soon(first).await.unwrap()), Kind::NotFound);
    assert!(soon(second).await.unwrap().is_ok());
}

#[tokio::test]
async fn after_three_rounds_a_command_is_busy_and_the_next_one_is_not() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    for _ in 0..3 {
        w.faults
            .foreign_write_before_next_append(vec![foreign_rename("root")]);
    }
    assert!(soon(w.rename("a", "third round")).await.unwrap().is_ok());
    for _ in 0..4 {
        w.faults
            .foreign_write_before_next_append(vec![foreign_rename("root")]);
    }
    let busy = soon(w.rename("a", "too late")).await.unwrap();
    assert!(is_busy(&busy), "{busy:?}");
    assert_eq!(w.history(flow).await.len(), 2 + 4 + 4);
    assert!(soon(w.rename("a", "quiet again")).await.unwrap().is_ok());
}

#[tokio::test]
async fn slots_of_starts_that_were_not_written_are_given_back() {
    let w = World::new().await;
    w.executors.add("one", "one", 1, true);
    let created = w.create(
        caller(),
        json!({"id": id("root"), "name": "root", "schemas": {"method": "one"}}),
    );
    assert!(soon(created).await.unwrap().is_ok());
    for _ in 0..4 {
        w.faults
            .foreign_write_before_next_append(vec![foreign_rename("root")]);
    }
    let run = || {
        let options = ExecuteOptions::default();
        w.call(move |app| async move {
            app.execute(&caller(), Target::Stored(id("root")), options)
                .await
        })
    };
    let busy = soon(run()).await.unwrap();
    assert!(is_busy(&busy), "{busy:?}");
    assert_eq!(w.taken(), 0);
    assert!(soon(run()).await.unwrap().is_ok());
    assert_eq!((w.taken(), w.script.launches()), (1, vec![(id("root"), 1)]));
}

#[tokio::test]
async fn an_outcome_is_reported_until_it_is_recorded() {
    let w = World::new().await;
    let flow = id("a").as_flow();
    assert!(
        soon(w.execute(caller(), json!([task("a", "work")])))
            .await
            .unwrap()
            .is_ok()
    );
    tokio::time::pause();
    for _ in 0..9 {
        w.faults
            .foreign_write_before_next_append(vec![foreign_rename("a")]);
    }
    w.script.complete("a").await;
    let kinds = w.kinds(flow).await;
    assert_eq!(kinds.iter().filter(|k| **k == "TaskCompleted").count(), 1);
    assert_eq!(kinds.last(), Some(&"RunEnded"));
}

#[tokio::test]
async fn a_recovery_that_met_a_conflict_interrupts_an_attempt_once() {
    let w = World::new().await;
    let flow = id("a").as_flow();
    assert!(
        soon(w.execute(caller(), json!([task("a", "work")])))
            .await
            .unwrap()
            .is_ok()
    );
    let w = w.restarted().await;
    for _ in 0..3 {
        w.faults
            .foreign_write_before_next_append(vec![foreign_rename("a")]);
    }
    assert!(soon(w.rename("a", "load it")).await.unwrap().is_ok());
    let kinds = w.kinds(flow).await;
    let count = |kind: &str| kinds.iter().filter(|k| **k == kind).count();
    assert_eq!(
        (count("TaskFailed"), count("TaskStarted")),
        (1, 2),
        "{kinds:?}"
    );
    assert_eq!(w.script.launches(), [(id("a"), 2)]);
}

#[tokio::test]
async fn rows_in_memory_do_not_outlive_a_foreign_write() {
    let mut w = World::new().await;
    w.given_flow("root", &["a"]).await;
    w.run_read_models();
    w.faults
        .foreign_write_before_next_append(vec![foreign_rename("a")]);
    assert!(soon(w.rename("root", "mine")).await.unwrap().is_ok());
    let seen = w.call(|app| async move { app.get(&caller(), id("a"), Consistency::Strong).await });
    assert_eq!(soon(seen).await.unwrap().unwrap()["name"], "by another");
}
