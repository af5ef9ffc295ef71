//! Every read of a flow of somebody else by a caller with `users:any` is in the audit log, whichever method, door or
//! binding shows it.

use super::asked::{Asked, answer, shown};
use super::matrix::{given_object, rows};
use super::world::{World, user};
use serde_json::{Value, json};
use taskledger::application::api::UseCase;
use taskledger_auth::{Scope, Scopes};

/// The flows that a caller has read, according to the audit log.
async fn read_by(world: &World, name: &str) -> Vec<Value> {
    world.server.tokens().audit().flush().await.unwrap();
    let filter = json!({"action": "flow.read", "principal": format!("user:{name}")});
    let audit = world.call("chief", "audit.list", filter).await;
    let entries = audit["entries"].as_array().unwrap();
    entries.iter().map(|it| it["object"].clone()).collect()
}

/// Whether an answer shows something of a flow.
fn shows(status: u16, text: &str, asked: &Asked) -> bool {
    let is_shown = status == 200 && !text.contains(r#""error":{"code""#) && !text.contains("Err(");
    // Below a task without children is nothing that a list would show.
    let is_empty = shown(asked).contains("tasks.list") && text.contains(r#""tasks":[]"#);
    is_shown && !is_empty
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_read_of_somebody_elses_flow_is_noted_whatever_shows_it() {
    let world = World::start().await;
    let hers = given_object(&world, "ann").await;
    let own = given_object(&world, "bob").await;
    // A copy of a task of Bob into her flow is a read of his.
    let flows = [&hers.root, hers.run_flow(), &own.root].map(|flow| json!(flow));
    let mut noted = 0;
    for case in UseCase::ALL {
        // An inbox is the principal's own, and a copy is a read of the original.
        let reads = case.scope() == Some(Scope::TasksRead) && *case != UseCase::ReadInbox;
        if !reads && *case != UseCase::CopyTasks {
            continue;
        }
        for (n, asked) in rows(*case, &hers, &own).iter().enumerate() {
            // Rows of one caller are counted together for a minute.
            let name = format!("auditor-{case:?}-{n}").to_lowercase();
            world.known.put(&name, user(&name, Scopes::all()));
            let (status, text) = answer(&world, Some(&name), asked).await;
            if !shows(status, &text, asked) {
                continue;
            }
            let read = read_by(&world, &name).await;
            assert!(
                read.iter().any(|flow| flows.contains(flow)),
                "{case:?}: {}: {read:?}",
                shown(asked)
            );
            noted += 1;
        }
    }
    assert!(noted > 40, "{noted} reads");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_all_flows_is_noted_once_and_ones_own_are_not() {
    let world = World::start().await;
    let hers = given_object(&world, "ann").await;
    for name in ["of-all", "of-ann", "of-own"] {
        world.known.put(name, user(name, Scopes::all()));
    }
    for (name, path) in [
        ("of-all", "/events".to_owned()),
        ("of-ann", "/events?user=ann".to_owned()),
        ("of-own", "/events?user=of-own".to_owned()),
    ] {
        let (status, text) = answer(&world, Some(name), &Asked::Get(path)).await;
        assert_eq!(status, 200, "{text}");
    }
    assert_eq!(read_by(&world, "of-all").await, [json!("*")]);
    assert_eq!(read_by(&world, "of-ann").await, [json!("*")]);
    assert_eq!(read_by(&world, "of-own").await, [] as [Value; 0]);
    // A list shows flows one by one.
    let list = world.call("of-all", "tasks.list", json!({})).await;
    assert!(list["total"].as_u64().unwrap() > 1, "{list}");
    let read = read_by(&world, "of-all").await;
    assert!(read.contains(&json!(hers.root)), "{read:?}");
    // Who sees his own flows only is no reader of others.
    let path = "/events".to_owned();
    assert_eq!(answer(&world, Some("ann"), &Asked::Get(path)).await.0, 200);
    assert_eq!(read_by(&world, "ann").await, [] as [Value; 0]);
    world.close().await;
}
