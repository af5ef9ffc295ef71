//! States that are dropped and loaded again behave as if they had stayed.

use crate::application::world::{Make, World, caller, foreign_rename, metadata, quiet, soon, task};
use serde_json::json;
use taskledger::application::{Error, ExecuteOptions, IdCheck, Target};
use taskledger::store::{EventStore, Snapshot};
use taskledger_domain::FlowId;
use taskledger_domain::codec::snapshot;
use taskledger_domain::flow::{Event, PriorityChanged};
use taskledger_domain::task::{Priority, Status, call};
use taskledger_domain::testing::{START, id};

async fn evicting() -> World {
    World::made(Make {
        idle_bytes_max: 0,
        ..Make::default()
    })
    .await
}

async fn priority(w: &World, flow: FlowId, name: &str) -> Priority {
    let task = id(name);
    let look = w.app.flows.look(flow, metadata("look"), move |f| {
        f.task(task).map(|t| t.priority)
    });
    soon(look).await.unwrap().expect("the task exists")
}

async fn stored(w: &World, flow: FlowId) -> Option<Snapshot> {
    w.log
        .inner()
        .load_snapshot(flow, snapshot::FORMAT)
        .await
        .unwrap()
}

/// A flow whose tail is so long that it got a snapshot.
async fn given_snapshot(w: &World) -> (FlowId, Snapshot) {
    let flow = w.given_flow("root", &["a"]).await;
    for n in 0..500 {
        assert!(
            soon(w.rename("a", &format!("name {n}")))
                .await
                .unwrap()
                .is_ok()
        );
    }
    quiet().await;
    let snapshot = stored(w, flow).await.expect("502 events are more than 500");
    (flow, snapshot)
}

#[tokio::test]
async fn evicted_flows_go_on_as_if_they_had_stayed() {
    let w = evicting().await;
    for name in ["a", "b"] {
        assert!(
            soon(w.execute(caller(), json!([task(name, "work")])))
                .await
                .unwrap()
                .is_ok()
        );
    }
    quiet().await;
    assert_eq!(w.app.flows.resident(), (0, 0));
    w.script.complete("a").await;
    w.script.complete("b").await;
    assert_eq!(
        (w.status("a").await, w.status("b").await),
        (Some(Status::Completed), Some(Status::Completed))
    );
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
async fn the_coldest_state_is_dropped_first() {
    let weight = {
        let w = World::new().await;
        w.given_flow("a", &[]).await;
        quiet().await;
        w.app.flows.resident().1
    };
    let w = World::made(Make {
        idle_bytes_max: 2 * weight,
        ..Make::default()
    })
    .await;
    for name in ["a", "b"] {
        w.given_flow(name, &[]).await;
    }
    assert!(soon(w.rename("a", "warm")).await.unwrap().is_ok());
    w.given_flow("c", &[]).await;
    quiet().await;
    assert_eq!(w.app.flows.resident(), (2, 2 * weight));
    // Whoever has to be loaded again reads the log.
    let mut read = w.faults.hold_next_read();
    assert!(soon(w.rename("a", "still here")).await.unwrap().is_ok());
    let cold = w.rename("b", "loaded");
    soon(read.arrived()).await;
    read.release();
    assert!(soon(cold).await.unwrap().is_ok());
}

#[tokio::test]
async fn flows_that_do_not_exist_leave_nothing_in_memory() {
    let w = World::new().await;
    for n in 0..100 {
        w.app.flows.wake(id(&format!("nobody {n}")).as_flow());
    }
    quiet().await;
    assert_eq!(w.app.flows.resident(), (0, 0));
}

#[tokio::test]
async fn a_new_flow_is_not_looked_for_in_the_log() {
    let w = World::new().await;
    let _held = w.faults.hold_next_read();
    for new in [
        json!({"name": "new"}),
        json!({"id": id("chosen"), "name": "chosen"}),
    ] {
        assert!(soon(w.create(caller(), new)).await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_new_flow_that_is_there_is_met_by_its_append_or_by_a_refusal() {
    let w = evicting().await;
    w.given_flow("root", &[]).await;
    for allow_unknown_executors in [true, false] {
        quiet().await;
        let again = json!([{"id": id("root"), "name": "again", "schemas": {"method": "absent"}}]);
        let list = call::read_tasks(&again).unwrap();
        let options = ExecuteOptions {
            allow_unknown_executors,
            id_check: IdCheck::Stored,
            ..ExecuteOptions::default()
        };
        let run =
            w.call(
                move |app| async move { app.execute(&caller(), Target::New(list), options).await },
            );
        // Never that its executor is absent: the flow is not new.
        match soon(run).await.unwrap() {
            Err(Error::Refused(refused)) => {
                assert!(refused.refusal.is_of_taken_id(), "{refused:?}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_command_that_meets_a_load_is_not_lost() {
    let w = evicting().await;
    w.given_flow("root", &["a"]).await;
    quiet().await;
    let mut read = w.faults.hold_next_read();
    let first = w.rename("a", "x");
    read.arrived().await;
    let second = w.rename("a", "y");
    quiet().await;
    read.release();
    assert!(soon(first).await.unwrap().is_ok() && soon(second).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_long_tail_gets_a_snapshot_and_a_short_one_none() {
    let w = World::new().await;
    let (flow, snapshot) = given_snapshot(&w).await;
    assert!(snapshot.version > 500 && snapshot.version <= 502);
    assert!(soon(w.rename("a", "one more")).await.unwrap().is_ok());
    quiet().await;
    assert_eq!(
        stored(&w, flow).await,
        Some(snapshot),
        "the next one comes 500 events later"
    );
    w.given_flow("short", &[]).await;
    quiet().await;
    assert_eq!(stored(&w, id("short").as_flow()).await, None);
}

#[tokio::test]
async fn a_large_flow_gets_snapshots_less_often() {
    let w = World::new().await;
    let tasks: Vec<_> = (0..4000)
        .map(|n| json!({"name": format!("t{n}")}))
        .collect();
    let tree = json!({"id": id("root"), "name": "root", "children": tasks});
    assert!(soon(w.create(caller(), tree)).await.unwrap().is_ok());
    quiet().await;
    let flow = id("root").as_flow();
    let first = stored(&w, flow)
        .await
        .expect("4001 events are more than 1000")
        .version;
    for n in 0..1000 {
        assert!(
            soon(w.rename("root", &format!("name {n}")))
                .await
                .unwrap()
                .is_ok()
        );
    }
    quiet().await;
    assert_eq!(
        stored(&w, flow).await.map(|s| s.version),
        Some(first),
        "1000 events are not more than 4001 / 4"
    );
    assert!(soon(w.rename("root", "enough")).await.unwrap().is_ok());
    quiet().await;
    assert_eq!(
        stored(&w, flow).await.map(|s| s.version),
        Some(first + 1001)
    );
}

#[tokio::test]
async fn loading_begins_at_the_snapshot() {
    let w = evicting().await;
    let (flow, honest) = given_snapshot(&w).await;
    // A snapshot that says something else than the log shows that it is what is loaded.
    let mut state = snapshot::decode(&honest.bytes).unwrap();
    let urgent = Priority::new(0).unwrap();
    while state.version() < 502 {
        state.apply(&foreign_rename("a").event, START);
    }
    w.foreign_write(flow, vec![foreign_rename("a")]).await;
    state.apply(
        &Event::PriorityChanged(PriorityChanged {
            task_id: id("a"),
            priority: urgent,
        }),
        START,
    );
    let doctored = Snapshot {
        version: state.version(),
        format: snapshot::FORMAT,
        bytes: snapshot::encode(&state),
    };
    w.log.inner().save_snapshot(flow, doctored).await.unwrap();
    assert_eq!(priority(&w, flow, "a").await, urgent);
    assert!(
        soon(w.rename("a", "after")).await.unwrap().is_ok(),
        "and events go on behind it"
    );
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_used_is_ignored() {
    let w = evicting().await;
    let (flow, honest) = given_snapshot(&w).await;
    let cut = honest.bytes[..honest.bytes.len() / 2].to_vec();
    // Reads as a state with references into nowhere.
    let mut twisted = snapshot::encode(&taskledger_domain::flow::Flow::default());
    twisted[0] = 1;
    let mut flipped: Vec<Vec<u8>> = Vec::new();
    for at in (0..honest.bytes.len()).step_by(7) {
        let mut bytes = honest.bytes.clone();
        bytes[at] ^= 0xff;
        // Only those that a reader can tell: a changed name number is as good as another.
        if !matches!(std::panic::catch_unwind(|| snapshot::decode(&bytes)), Ok(Ok(s)) if s.version() == honest.version)
        {
            flipped.push(bytes);
        }
    }
    assert!(!flipped.is_empty());
    for bytes in [Vec::new(), vec![0; 64], vec![0xff; 64], cut, twisted]
        .into_iter()
        .chain(flipped)
    {
        let damaged = Snapshot {
            bytes,
            ..honest.clone()
        };
        w.log.inner().save_snapshot(flow, damaged).await.unwrap();
        assert!(soon(w.rename("a", "goes on")).await.unwrap().is_ok());
        quiet().await;
    }
    let other = Snapshot {
        format: snapshot::FORMAT + 1,
        bytes: vec![1, 2, 3],
        ..honest
    };
    w.log.inner().save_snapshot(flow, other).await.unwrap();
    assert!(soon(w.rename("a", "goes on")).await.unwrap().is_ok());
}
