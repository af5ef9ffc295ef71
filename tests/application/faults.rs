//! The log refuses, loses or cannot tell.

use crate::world::{
    Make, World, caller, foreign_rename, impossible_event, quiet, soon, task, with_key,
};
use serde_json::json;
use std::time::Duration;
use taskledger::application::{Error, ExecuteOptions, Failure, Target};
use taskledger::store::{self, EventStore};
use taskledger_domain::task::Status;
use taskledger_domain::testing::id;

fn full() -> store::Error {
    store::Error::NotWritable("no space left on device".to_owned())
}

#[tokio::test]
async fn a_server_that_was_replaced_refuses_everything_and_stops() {
    let w = World::made(Make {
        fenced: true,
        ..Make::default()
    })
    .await;
    let flow = w.given_flow("root", &["a"]).await;
    w.log.inner().raise_fence("writer").await.unwrap();
    let mut hold = w.faults.hold_next_append();
    let first = w.rename("a", "x");
    hold.arrived().await;
    let second = w.rename("a", "y");
    quiet().await;
    hold.release();
    assert!(matches!(
        soon(first).await.unwrap(),
        Err(Error::Failed(Failure::Store(_)))
    ));
    assert!(matches!(
        soon(second).await.unwrap(),
        Err(Error::Failed(Failure::Store(_)))
    ));
    assert!(w.stop.is_cancelled(), "the server is told to stop");
    let appends = w.faults.appends();
    assert!(matches!(
        soon(w.rename("a", "z")).await.unwrap(),
        Err(Error::Failed(Failure::ShuttingDown))
    ));
    assert_eq!(
        (w.faults.appends(), w.history(flow).await.len()),
        (appends, 2)
    );
}

#[tokio::test]
async fn an_append_that_turns_out_written_is_answered_and_launched_once() {
    let w = World::new().await;
    w.faults.unknown_after_next_append();
    assert!(
        soon(w.execute(caller(), json!([task("a", "work")])))
            .await
            .unwrap()
            .is_ok()
    );
    quiet().await;
    assert_eq!(
        (w.faults.appends(), w.script.launches()),
        (1, vec![(id("a"), 1)])
    );
    w.script.complete("a").await;
    assert_eq!(
        w.kinds(id("a").as_flow()).await,
        [
            "TaskCreated",
            "RunStarted",
            "TaskStarted",
            "TaskCompleted",
            "RunEnded"
        ]
    );
}

#[tokio::test]
async fn an_append_that_turns_out_absent_is_decided_again() {
    let w = World::new().await;
    w.faults.unknown_instead_of_next_append();
    assert!(
        soon(w.execute(caller(), json!([task("a", "work")])))
            .await
            .unwrap()
            .is_ok()
    );
    quiet().await;
    assert_eq!(
        (w.faults.appends(), w.script.launches()),
        (2, vec![(id("a"), 1)])
    );
    assert_eq!(w.taken(), 1);
}

#[tokio::test]
async fn an_outcome_that_stays_unknown_is_said_to_be_after_five_seconds() {
    let mut w = World::new().await;
    tokio::time::pause();
    let begin = tokio::time::Instant::now();
    w.faults.crash_after_next_append();
    let run = w.execute(with_key("k", "b"), json!([task("a", "work")]));
    assert!(matches!(run.await.unwrap(), Err(Error::OutcomeUnknown)));
    let waited = begin.elapsed();
    assert!(
        waited >= Duration::from_secs(5) && waited < Duration::from_secs(6),
        "{waited:?}"
    );
    assert_eq!((w.script.launches(), w.taken()), (vec![], 0));

    // The log is back, and did hold it: the attempt that nobody ran is interrupted and runs again.
    w.faults.reopen();
    w.clock.advance_ms(1001);
    w.run_flows();
    w.script.launched(1).await;
    assert_eq!(w.script.launches(), [(id("a"), 2)]);
    let again = soon(w.execute(with_key("k", "b"), json!([task("a", "work")])))
        .await
        .unwrap();
    assert_eq!(again.unwrap()["root_task_id"], json!(id("a")));
}

#[tokio::test]
async fn a_full_disk_fails_a_command_and_leaves_nothing_behind() {
    let w = World::new().await;
    w.faults.refuse_next_append(full());
    let tree =
        json!({"id": id("root"), "name": "root", "children": [{"id": id("a"), "name": "a"}]});
    let result = soon(w.create(with_key("k", "b"), tree.clone()))
        .await
        .unwrap();
    assert!(
        matches!(
            &result,
            Err(Error::Failed(Failure::Store(store::Error::NotWritable(_))))
        ),
        "{result:?}"
    );
    quiet().await;
    assert_eq!(w.history(id("root").as_flow()).await.len(), 0);
    assert_eq!(
        w.app.flows.resident(),
        (0, 0),
        "a flow that does not exist is not kept"
    );
    assert!(
        soon(w.create(with_key("k", "b"), tree))
            .await
            .unwrap()
            .is_ok(),
        "there is space again"
    );
}

#[tokio::test]
async fn everything_behind_a_failed_append_fails_with_it() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_append();
    let first = w.rename("a", "x");
    hold.arrived().await;
    let second = w.rename("a", "y");
    quiet().await;
    w.faults.crash_after_next_append();
    // Nobody else writes: the scripted crash is met by the next append, after the held one.
    hold.release();
    assert!(soon(first).await.unwrap().is_ok());
    tokio::time::pause();
    assert!(matches!(
        soon(second).await.unwrap(),
        Err(Error::OutcomeUnknown)
    ));
    w.faults.reopen();
    assert!(soon(w.rename("a", "z")).await.unwrap().is_ok());
    assert_eq!(w.history(flow).await.len(), 5);
}

#[tokio::test]
async fn an_outcome_that_met_a_full_disk_is_recorded_later() {
    let w = World::new().await;
    assert!(
        soon(w.execute(caller(), json!([task("a", "work")])))
            .await
            .unwrap()
            .is_ok()
    );
    tokio::time::pause();
    for _ in 0..5 {
        w.faults.refuse_next_append(full());
    }
    w.script.complete("a").await;
    assert_eq!(w.status("a").await, Some(Status::Completed));
    assert_eq!(w.kinds(id("a").as_flow()).await.last(), Some(&"RunEnded"));
}

#[tokio::test]
async fn a_flow_that_lost_its_start_to_a_full_disk_starts_later() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    for name in ["a", "b"] {
        assert!(
            soon(w.execute(caller(), json!([task(name, "one")])))
                .await
                .unwrap()
                .is_ok()
        );
    }
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    tokio::time::pause();
    // The slot is free, and a rename happens to take it for `b`; its append fails.
    w.app.flows.slots().release("one", id("a"), 1);
    w.lose_wake_ups();
    w.faults.refuse_next_append(full());
    assert!(soon(w.rename("b", "x")).await.unwrap().is_err());
    quiet().await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    w.lose_wake_ups();
    w.clock.advance_ms(1001);
    w.run_flows();
    w.script.launched(2).await;
    assert_eq!(w.script.launches()[1], (id("b"), 1));
}

#[tokio::test]
async fn a_flow_whose_history_is_impossible_fails_its_callers_and_nobody_else() {
    let w = World::made(Make {
        idle_bytes_max: 0,
        ..Make::default()
    })
    .await;
    let flow = w.given_flow("root", &["a"]).await;
    w.given_flow("healthy", &[]).await;
    w.foreign_write(flow, vec![impossible_event()]).await;
    let calls: Vec<_> = (0..3)
        .map(|n| w.rename("a", &format!("name {n}")))
        .collect();
    for call in calls {
        assert!(matches!(
            soon(call).await.unwrap(),
            Err(Error::Failed(Failure::Broken(_)))
        ));
    }
    assert!(soon(w.rename("healthy", "x")).await.unwrap().is_ok());
    assert_eq!(w.app.flows.resident().0, 0);
}

#[tokio::test]
async fn a_damaged_flow_that_waits_for_a_slot_does_not_keep_it_from_others() {
    let mut w = World::made(Make {
        idle_bytes_max: 0,
        ..Make::default()
    })
    .await;
    w.executors.add("one", "one", 1, true);
    for name in ["a", "b", "c"] {
        assert!(
            soon(w.execute(caller(), json!([task(name, "one")])))
                .await
                .unwrap()
                .is_ok()
        );
        w.clock.advance_ms(1);
    }
    w.foreign_write(id("b").as_flow(), vec![impossible_event()])
        .await;
    w.run_flows();
    w.script.complete("a").await;
    w.script.launched(2).await;
    assert_eq!(w.script.launches()[1], (id("c"), 1));
}

#[tokio::test]
async fn mailboxes_drain_when_the_server_ends() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_append();
    let first = w.rename("a", "x");
    hold.arrived().await;
    let second = w.rename("a", "y");
    quiet().await;
    let flows = w.app.flows.clone();
    let drained = tokio::spawn(async move { flows.drain().await });
    quiet().await;
    assert!(!drained.is_finished());
    hold.release();
    soon(drained).await.unwrap();
    assert!(soon(first).await.unwrap().is_ok() && soon(second).await.unwrap().is_ok());
    assert_eq!(w.history(flow).await.len(), 4);
}

#[tokio::test]
async fn a_wake_up_that_met_a_conflict_still_starts_what_waits() {
    let mut w = World::new().await;
    w.executors.add("one", "one", 1, true);
    for name in ["a", "b"] {
        assert!(
            soon(w.execute(caller(), json!([task(name, "one")])))
                .await
                .unwrap()
                .is_ok()
        );
    }
    w.run_flows();
    // The wake-up of `b` meets a conflict with another server; the start still happens.
    w.faults.pass_next_append();
    w.faults
        .foreign_write_before_next_append(vec![foreign_rename("b")]);
    w.script.complete("a").await;
    w.script.launched(2).await;
    assert_eq!(w.script.launches()[1], (id("b"), 1));
    let run = w.call(|app| async move {
        app.execute(
            &caller(),
            Target::Stored(id("b")),
            ExecuteOptions::default(),
        )
        .await
    });
    assert!(soon(run).await.unwrap().is_err(), "it runs already");
}
