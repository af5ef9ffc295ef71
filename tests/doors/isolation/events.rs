//! `events.query`: filters, pages, and whose events are shown.

use super::world::World;
use serde_json::{Value, json};
use std::slice::from_ref;

async fn created(world: &World, token: &str, name: &str) -> Value {
    let created = world.call(token, "tasks.create", json!({"name": name}));
    created.await["id"].take()
}

/// All pages of a query.
async fn found(world: &World, token: &str, mut query: Value) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let mut page = world.call(token, "events.query", query.clone()).await;
        events.append(page["events"].as_array_mut().unwrap());
        let cursor = page["next_cursor"].take();
        if cursor.is_null() {
            return events;
        }
        query["cursor"] = cursor;
    }
}

fn of(events: &[Value], member: &str) -> Vec<Value> {
    events.iter().map(|event| event[member].clone()).collect()
}

/// Flows of ann, bob and ann again; then the first is renamed.
async fn given_events(world: &World) -> [Value; 3] {
    let a = created(world, "ann", "a").await;
    let b = created(world, "bob", "b").await;
    let c = created(world, "ann", "c").await;
    let renamed = json!({"task_id": a, "updates": {"name": "z"}});
    world.call("ann", "tasks.update", renamed).await;
    [a, b, c]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_found_by_time_actor_type_flow_and_task() {
    let world = World::start().await;
    let [a, b, c] = given_events(&world).await;
    let query = async |query: Value| of(&found(&world, "chief", query).await, "root_task_id");

    let all = found(&world, "chief", json!({})).await;
    assert_eq!(
        of(&all, "root_task_id"),
        json!([a, b, c, a]).as_array().unwrap()[..]
    );
    assert_eq!(all[3]["data"]["name"], "z");
    assert_eq!(query(json!({"actor": "user:bob"})).await, from_ref(&b));
    assert_eq!(
        query(json!({"types": ["task_renamed"]})).await,
        from_ref(&a)
    );
    assert_eq!(query(json!({"flow": c})).await, from_ref(&c));
    assert_eq!(query(json!({"task_id": a})).await, [a.clone(), a.clone()]);
    // Decided at this time, so recorded at it or later; all before had been recorded.
    let third = &all[2]["timestamp"];
    assert_eq!(query(json!({"since": third})).await, [c.clone(), a.clone()]);
    assert_eq!(query(json!({"until": third})).await, [a.clone(), b.clone()]);
    let both = json!({"until": third, "actor": "user:ann", "order": "desc"});
    assert_eq!(query(both).await, from_ref(&a));
    let none = json!({"since": third, "until": third});
    assert_eq!(query(none).await, [] as [Value; 0]);
    let foreign = json!({"flow": b, "task_id": a});
    let refusal = world.refusal("chief", "events.query", foreign).await;
    assert_eq!(refusal["code"], -32602, "{refusal}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_events_follow_each_other_in_both_orders() {
    let world = World::start().await;
    let [a, ..] = given_events(&world).await;

    for (query, count) in [(json!({}), 4), (json!({"flow": a}), 2)] {
        let with = |order: &str, limit: u32| {
            let mut query = query.clone();
            (query["order"], query["limit"]) = (json!(order), json!(limit));
            query
        };
        let whole = found(&world, "chief", with("asc", 1000)).await;
        assert_eq!(whole.len(), count);
        assert_eq!(found(&world, "chief", with("asc", 1)).await, whole);
        let mut back = found(&world, "chief", with("desc", 1)).await;
        assert_eq!(found(&world, "chief", with("desc", 3)).await, back);
        back.reverse();
        assert_eq!(back, whole);
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_find_the_events_of_their_own_flows_only() {
    let world = World::start().await;
    let [a, b, c] = given_events(&world).await;

    let own = found(&world, "ann", json!({})).await;
    let one_by_one = found(&world, "ann", json!({"limit": 1})).await;
    let of_bob = found(&world, "ann", json!({"actor": "user:bob"})).await;
    let foreign = json!({"flow": b});
    let foreign = world.refusal("ann", "events.query", foreign).await;

    assert_eq!(of(&own, "root_task_id"), [a.clone(), c, a]);
    assert_eq!(one_by_one, own);
    assert_eq!(of_bob, [] as [Value; 0]);
    assert_eq!(foreign["code"], -32001);
    // Reads of others' flows by somebody who sees all are noted, one entry a flow.
    found(&world, "chief", json!({})).await;
    world.server.tokens().audit().flush().await.unwrap();
    let read = json!({"action": "flow.read"});
    let audit = world.call("chief", "audit.list", read).await;
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(of(entries, "principal"), ["user:chief"; 3], "{audit}");
    world.close().await;
}
