//! Tasks that start later than they could, by the clock of the application.

use crate::application::world::{Make, World, caller, quiet, soon, updates};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_domain::FlowId;
use taskledger_domain::task::Status;
use taskledger_domain::testing::{START, id};

fn flow(name: &str) -> FlowId {
    id(name).as_flow()
}

fn later(name: &str, members: &Value) -> Value {
    let mut task = json!({"id": id(name), "name": name, "schemas": {"method": "work"}});
    let members = members.as_object().expect("an object").clone();
    task.as_object_mut().expect("an object").extend(members);
    task
}

async fn execute(w: &World, tasks: Value) {
    let started = soon(w.execute(caller(), tasks)).await.unwrap();
    started.expect("it starts");
}

/// Time passes, and timers are looked at.
async fn after_ms(w: &World, ms: u64) {
    w.clock.advance_ms(ms);
    tokio::time::advance(Duration::from_secs(5)).await;
    quiet().await;
}

#[tokio::test]
async fn a_task_is_launched_when_its_time_has_come() {
    let mut w = World::new().await;
    let start_at = START.plus_ms(7_200_000).to_string();
    execute(&w, json!([later("a", &json!({"start_at": start_at}))])).await;
    tokio::time::pause();
    w.run_flows();
    after_ms(&w, 7_199_999).await;
    assert_eq!(w.script.launches(), []);
    w.clock.advance_ms(1);
    w.script.launched(1).await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    let kinds = w.kinds(flow("a")).await;
    let told = kinds.iter().filter(|kind| **kind == "TaskDeferred");
    assert_eq!(told.count(), 1);
}

#[tokio::test]
async fn a_delay_survives_a_restart_and_the_flow_need_not_be_in_memory() {
    let w = World::made(Make {
        idle_bytes_max: 0,
        ..Make::default()
    })
    .await;
    let delayed = json!({"params": {"delay_seconds": 60}});
    execute(&w, json!([later("a", &delayed)])).await;
    quiet().await;
    assert_eq!(w.app.flows.resident(), (0, 0));
    w.clock.advance_ms(30_000);
    let mut w = w.restarted().await;
    w.app.flows.wake(flow("a"));
    quiet().await;
    tokio::time::pause();
    w.run_flows();
    after_ms(&w, 29_999).await;
    assert_eq!(w.script.launches(), []);
    w.clock.advance_ms(1);
    w.script.launched(1).await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
}

#[tokio::test]
async fn a_task_that_waits_may_be_told_another_time_and_cancelled() {
    let mut w = World::new().await;
    let far = json!({"start_at": "2099-01-01T00:00:00Z"});
    execute(&w, json!([later("a", &far)])).await;
    execute(&w, json!([later("b", &far)])).await;
    let sooner = json!({"start_at": START.plus_ms(5000).to_string()});
    let updated = w.call(move |app| async move {
        let updates = updates(sooner);
        app.update(&caller(), id("a"), updates).await
    });
    soon(updated).await.unwrap().expect("it is changed");
    let cancelled = w.call(|app| async move { app.cancel(&caller(), id("b"), false, None).await });
    soon(cancelled).await.unwrap().expect("it is cancelled");
    assert_eq!(w.status("b").await, Some(Status::Cancelled));
    tokio::time::pause();
    w.run_flows();
    w.clock.advance_ms(5000);
    w.script.launched(1).await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
}
