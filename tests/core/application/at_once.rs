//! Attempts that end in the turn that starts them.

mod dispatched;

use crate::application::script::SWIFT;
use crate::application::world::{World, caller, foreign_rename, metadata, quiet, soon, updates};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::application::{Error, ExecuteOptions, Target};
use taskledger::store::{self, NewEvent};
use taskledger_domain::flow::{Event, Specification, TaskRespecified};
use taskledger_domain::testing::{START, id};
use taskledger_domain::{EventId, Payload, Recorded, TaskId};

/// A root over tasks that wait for each other, one after the other.
fn chain(names: &[&str]) -> Value {
    let task = |(n, name): (usize, &&str)| {
        let on: Vec<_> = n
            .checked_sub(1)
            .map(|n| json!({"id": id(names[n])}))
            .into_iter()
            .collect();
        json!({"id": id(name), "name": name, "schemas": {"method": SWIFT}, "inputs": {"n": n}, "dependencies": on})
    };
    let children: Vec<_> = names.iter().enumerate().map(task).collect();
    json!([{"id": id("root"), "name": "root", "children": children}])
}

async fn swift() -> World {
    let w = World::new().await;
    w.executors.add(SWIFT, SWIFT, 1, true);
    w
}

fn results(history: &[Arc<Recorded>]) -> Vec<(TaskId, Value)> {
    let result = |recorded: &Arc<Recorded>| match recorded.event.as_ref() {
        Event::TaskCompleted(e) => {
            Some((e.task_id, serde_json::from_str(e.result.as_str()).unwrap()))
        }
        _ => None,
    };
    history.iter().filter_map(result).collect()
}

fn stored(w: &World, name: &'static str) -> tokio::task::JoinHandle<Result<Value, Error>> {
    w.call(move |app| async move {
        app.execute(
            &caller(),
            Target::Stored(id(name)),
            ExecuteOptions::default(),
        )
        .await
    })
}

#[tokio::test]
async fn a_chain_is_one_append_and_leaves_no_slot_taken() {
    let w = swift().await;
    let before = w.faults.appends();
    soon(w.execute(caller(), chain(&["a", "b", "c"])))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(w.faults.appends(), before + 1);
    let flow = id("root").as_flow();
    assert_eq!(
        w.kinds(flow).await,
        [
            "TaskCreated",
            "TaskCreated",
            "TaskCreated",
            "TaskCreated",
            "RunStarted",
            "TaskStarted",
            "TaskStarted",
            "TaskCompleted",
            "TaskStarted",
            "TaskCompleted",
            "TaskStarted",
            "TaskCompleted",
            "TaskCompleted",
            "RunEnded",
        ]
    );
    assert_eq!((w.taken(), w.script.launches()), (0, Vec::new()));
    let history = w.history(flow).await;
    let expected = ["a", "b", "c"].iter().enumerate();
    let expected = expected.map(|(n, name)| (id(name), json!({"inputs": {"n": n}})));
    assert_eq!(results(&history)[..3], expected.collect::<Vec<_>>());
    for pair in history[6..].windows(2) {
        if matches!(*pair[0].event, Event::TaskStarted(_)) {
            assert_eq!(
                pair[1].metadata.causation,
                Some(pair[0].id),
                "the start is the cause"
            );
            assert_eq!(pair[1].metadata.correlation, pair[0].metadata.correlation);
        }
    }
}

#[tokio::test]
async fn what_is_under_way_is_known_to_attempts_of_the_next_turn() {
    let w = swift().await;
    let created = w.create(
        caller(),
        json!({"id": id("root"), "name": "root", "schemas": {"method": SWIFT}}),
    );
    soon(created).await.unwrap().unwrap();
    let mut hold = w.faults.hold_next_append();
    let updated = w.call(|app| async move {
        app.update(&caller(), id("root"), updates(json!({"inputs": {"n": 7}})))
            .await
    });
    hold.arrived().await;
    let executed = stored(&w, "root");
    quiet().await;
    assert_eq!(
        w.script.ended_at_once(),
        [(id("root"), 1)],
        "nobody waits for the disk"
    );
    assert!(!executed.is_finished(), "but for the answer");
    hold.release();
    soon(updated).await.unwrap().unwrap();
    soon(executed).await.unwrap().unwrap();
    let history = w.history(id("root").as_flow()).await;
    assert_eq!(
        results(&history),
        [(id("root"), json!({"inputs": {"n": 7}}))]
    );
}

#[tokio::test]
async fn after_a_conflict_an_end_is_decided_anew_with_its_start() {
    let w = swift().await;
    let (root, flow) = (id("root"), id("root").as_flow());
    let created = w.create(
        caller(),
        json!({"id": root, "name": "root", "schemas": {"method": SWIFT}}),
    );
    soon(created).await.unwrap().unwrap();
    w.faults
        .foreign_write_before_next_append(vec![foreign_rename("root")]);
    soon(stored(&w, "root")).await.unwrap().unwrap();
    assert_eq!(
        w.kinds(flow).await,
        [
            "TaskCreated",
            "TaskRenamed",
            "RunStarted",
            "TaskStarted",
            "TaskCompleted",
            "RunEnded"
        ]
    );
    assert_eq!(w.script.ended_at_once(), [(root, 1), (root, 1)]);
    assert_eq!(w.taken(), 0);
}

#[tokio::test]
async fn an_end_that_was_not_written_does_not_end_an_attempt_that_is_launched() {
    let w = swift().await;
    let (root, flow) = (id("root"), id("root").as_flow());
    let created = w.create(
        caller(),
        json!({"id": root, "name": "root", "schemas": {"method": SWIFT}}),
    );
    soon(created).await.unwrap().unwrap();
    w.faults
        .foreign_write_before_next_append(vec![foreign_rename("root")]);
    w.script.end_at_once_only(1);
    soon(stored(&w, "root")).await.unwrap().unwrap();
    quiet().await;
    assert_eq!(w.script.launches(), [(root, 1)]);
    assert_eq!(w.kinds(flow).await.last(), Some(&"TaskStarted"));
    w.script.complete("root").await;
    assert_eq!(w.kinds(flow).await.last(), Some(&"RunEnded"));
}

#[tokio::test]
async fn what_was_under_way_is_not_taken_for_what_another_server_wrote_there() {
    let w = swift().await;
    let (root, flow) = (id("root"), id("root").as_flow());
    let created = w.create(
        caller(),
        json!({"id": root, "name": "root", "schemas": {"method": SWIFT}}),
    );
    soon(created).await.unwrap().unwrap();
    let mut hold = w.faults.hold_next_append();
    let renamed = w.rename("root", "under way");
    hold.arrived().await;
    let executed = stored(&w, "root");
    quiet().await;
    let respecified = Event::TaskRespecified(TaskRespecified {
        task_id: root,
        specification: Specification {
            inputs: Payload::parse(r#"{"n": 9}"#).unwrap(),
            schemas: Some(Payload::parse(&json!({"method": SWIFT}).to_string()).unwrap()),
            params: None,
            method: Some(SWIFT.to_owned()),
            retry: None,
            timeout_ms: None,
            deadline: None,
            remote: false,
            start_within_ms: None,
            cancel_grace_ms: None,
            start_at: None,
            delay_ms: None,
        },
        absent: Vec::new(),
    });
    let event = NewEvent::new(
        EventId(id("foreign").0),
        START,
        metadata("foreign"),
        respecified,
    );
    w.foreign_write(flow, vec![event]).await;
    hold.release();
    soon(renamed).await.unwrap().unwrap();
    soon(executed).await.unwrap().unwrap();
    let history = w.history(flow).await;
    let durable = json!({"inputs": null});
    assert_eq!(results(&history), [(root, durable)]);
}

#[tokio::test]
async fn an_append_that_fails_leaves_neither_start_nor_end() {
    let w = swift().await;
    let refused = store::Error::NotWritable("full".to_owned());
    w.faults.refuse_next_append(refused);
    assert!(
        soon(w.execute(caller(), chain(&["a", "b"])))
            .await
            .unwrap()
            .is_err()
    );
    let flow = id("root").as_flow();
    assert_eq!((w.history(flow).await.len(), w.taken()), (0, 0));
    soon(w.execute(caller(), chain(&["a", "b"])))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(w.kinds(flow).await.last(), Some(&"RunEnded"));
    assert!(w.script.launches().is_empty());
}

#[tokio::test]
async fn beside_attempts_that_take_time_both_end() {
    let w = swift().await;
    let children = json!([
        {"id": id("slow"), "name": "slow", "schemas": {"method": "work"}},
        {"id": id("a"), "name": "a", "schemas": {"method": SWIFT}, "dependencies": [{"id": id("slow")}]},
        {"id": id("b"), "name": "b", "schemas": {"method": SWIFT}},
    ]);
    let tree = json!([{"id": id("root"), "name": "root", "children": children}]);
    soon(w.execute(caller(), tree)).await.unwrap().unwrap();
    assert_eq!(w.script.launches(), [(id("slow"), 1)]);
    assert_eq!(w.script.ended_at_once(), [(id("b"), 1)]);
    w.script.complete("slow").await;
    assert_eq!(w.script.ended_at_once(), [(id("b"), 1), (id("a"), 1)]);
    assert_eq!(
        w.kinds(id("root").as_flow()).await.last(),
        Some(&"RunEnded")
    );
}

#[tokio::test]
async fn what_passes_its_deadline_in_the_turn_that_starts_it_is_not_launched() {
    let w = swift().await;
    w.script.take_time_of(w.clock.clone());
    let deadline = START.plus_ms(5_000).to_string();
    let children = json!([
        {"id": id("a"), "name": "a", "schemas": {"method": SWIFT}},
        {"id": id("b"), "name": "b", "schemas": {"method": "work"}, "params": {"deadline": deadline}},
    ]);
    let tree = json!([{"id": id("root"), "name": "root", "children": children}]);
    soon(w.execute(caller(), tree)).await.unwrap().unwrap();
    let kinds = w.kinds(id("root").as_flow()).await;
    let started = kinds.iter().filter(|kind| **kind == "TaskStarted").count();
    assert_eq!(started, 3, "root, a and b: {kinds:?}");
    assert_eq!(w.script.ended_at_once(), [(id("a"), 1)]);
    assert_eq!((w.script.launches(), w.taken()), (Vec::new(), 0));
    assert_eq!(kinds.last(), Some(&"RunEnded"));
}
