//! What a real server answers over a whole workflow is what the document says.

use crate::openrpc::support::{Document, World};
use serde_json::{Value, json};

async fn call(world: &World, document: &Document, method: &str, params: Value) -> Value {
    let result = world.call(method, params).await;
    document.check_result(method, &result);
    result
}

fn workflow() -> Value {
    json!({"tasks": [
        {"id": "all", "name": "all", "user_id": "u"},
        {"id": "a", "name": "works", "parent_id": "all", "schemas": {"method": "echo_executor"}, "inputs": {"x": 1}},
        {"id": "b", "name": "fails", "parent_id": "all", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 60_000}, "params": {"timeout_seconds": 0.001}},
        {"id": "c", "name": "blocked", "parent_id": "all", "schemas": {"method": "echo_executor"}, "dependencies": [{"id": "b"}]},
        {"id": "d", "name": "waits", "parent_id": "all", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 60_000}, "params": {"timeout_seconds": 0.001, "retry": {"max_attempts": 2, "initial_delay_ms": 100_000, "max_delay_ms": 100_000}}},
        {"id": "f", "name": "starts later", "parent_id": "all", "schemas": {"method": "echo_executor"}, "start_at": "2026-01-01T00:00:00Z", "params": {"delay_seconds": 100}},
        {"id": "e", "name": "gathers", "parent_id": "all", "schemas": {"method": "aggregate_results_executor"}, "dependencies": [{"id": "a"}, {"id": "b", "required": false}]},
    ]})
}

#[tokio::test]
async fn every_answer_of_a_workflow_fits_its_schema() {
    let world = World::start().await;
    let document = world.document().await;
    let call = |method: &'static str, params: Value| call(&world, &document, method, params);

    let started = call("tasks.execute", workflow()).await;
    let id = |alias: &str| started["task_ids"][alias].clone();
    let root = id("all");
    // A retry that waits, a blocked task, a run that goes on.
    world
        .until(&id("d"), |t| t["next_attempt_at"].is_string())
        .await;
    world
        .until(&id("f"), |t| t["next_attempt_at"].is_string())
        .await;
    world.until(&id("c"), |t| t["blocked_by"].is_array()).await;
    world.until(&id("e"), |t| t["status"] == "completed").await;
    for alias in ["all", "a", "b", "c", "d", "e", "f"] {
        call("tasks.get", json!({"task_id": id(alias)})).await;
        call("tasks.explain", json!({"task_id": id(alias)})).await;
        call("tasks.history", json!({"task_id": id(alias)})).await;
    }
    let events = json!({"task_id": root, "scope": "flow", "order": "desc", "limit": 5});
    let events = call("tasks.history", events).await;
    let last = &events["events"][0]["position"];
    call("tasks.tree", json!({"task_id": root, "as_of": last})).await;
    call("tasks.get", json!({"task_id": root, "as_of": last})).await;
    call("tasks.tree", json!({"task_id": root})).await;
    call("tasks.children", json!({"parent_id": root})).await;
    let page = call("tasks.list", json!({"limit": 2})).await;
    let next = json!({"limit": 2, "cursor": page["next_cursor"]});
    call("tasks.list", next).await;
    call(
        "tasks.update",
        json!({"task_id": id("c"), "updates": {"priority": 0}}),
    )
    .await;
    call("tasks.cancel", json!({"task_id": id("d")})).await;
    let updates = json!({"params": null, "start_at": null});
    call(
        "tasks.update",
        json!({"task_id": id("f"), "updates": updates}),
    )
    .await;
    let ended = world.ended(&root).await;
    assert_eq!(ended["run"]["state"], "failed", "{ended}");
    document.check_result("tasks.get", &ended);
    call("tasks.tree", json!({"task_id": root})).await;

    let everything = json!({"task_id": root, "scope": "flow", "limit": 1000});
    call("tasks.history", everything).await;
    for alias in ["all", "c", "d"] {
        call("tasks.explain", json!({"task_id": id(alias)})).await;
    }
    call("tasks.retry", json!({"task_id": id("b")})).await;
    world.ended(&root).await;
    call("tasks.copy", json!({"task_id": id("e")})).await;
    let copied = call(
        "tasks.copy",
        json!({"task_id": root, "copy_children": true}),
    )
    .await;
    call("tasks.tree", json!({"task_id": copied["copied_task_id"]})).await;
    call(
        "tasks.delete",
        json!({"task_id": copied["copied_task_id"], "cascade": true}),
    )
    .await;
    let created = call("tasks.create", json!({"name": "one"})).await;
    call("tasks.execute", json!({"task_id": created["id"]})).await;
    call(
        "tasks.list",
        json!({"status": "completed", "order": "asc", "root_only": true}),
    )
    .await;
    let declared = json!({"method": "m", "input_schema": {"type": "object"}, "output_schema": {},
        "description": "d", "limit": 2});
    call("workers.declare", declared).await;
    let remote = json!({"name": "remote", "user_id": "u", "schemas": {"method": "m"}});
    let remote = call("tasks.execute", json!({"tasks": [remote]})).await["root_task_id"].clone();
    let wanted = json!({"methods": ["m"], "max": 2, "wait_seconds": 20, "worker": "w"});
    let claimed = call("tasks.claim", wanted).await;
    let lease = &claimed["claims"][0]["lease"]["token"];
    let held = json!({"task_id": remote, "lease": lease, "progress": 0.5});
    call("tasks.renew", held.clone()).await;
    for method in ["workers.list", "workers.methods"] {
        call(method, json!({})).await;
    }
    call("tasks.explain", json!({"task_id": remote})).await;
    let mut done = held;
    done.as_object_mut().unwrap().remove("progress");
    done["output"] = json!({"a": 1});
    call("tasks.complete", done.clone()).await;
    call("tasks.complete", done).await;
    call("workers.drain", json!({"worker": "w"})).await;
    let drained = call("tasks.claim", json!({"methods": ["m"], "worker": "w"})).await;
    assert_eq!(drained["draining"], true);
    call("workers.undeclare", json!({"method": "m"})).await;
    call("system.health", json!({})).await;
    call("system.executors", json!({})).await;
    call("system.rebuild", json!({})).await;
    call("system.drain", json!({})).await;
    call("system.drain", json!({"drain": false})).await;
    call("rpc.discover", json!({})).await;
    world.close().await;
}

#[tokio::test]
async fn every_answer_about_a_question_and_a_task_without_inputs_fits_its_schema() {
    let world = World::start().await;
    let document = world.document().await;
    let call = |method: &'static str, params: Value| call(&world, &document, method, params);
    let tasks = json!({"tasks": [
        {"id": "all", "name": "all"},
        {"id": "give", "name": "give", "parent_id": "all", "schemas": {"method": "echo_executor"}},
        {"id": "take", "name": "take", "parent_id": "all", "dependencies": [{"id": "give"}],
            "schemas": {"type": "remote", "method": "m", "wiring": {"x": "give.missing"}}},
        {"id": "ask", "name": "ask", "parent_id": "all", "schemas": {"method": "approval_executor"},
            "inputs": {"question": "?"}},
    ]});
    let started = call("tasks.execute", tasks).await;
    let id = |alias: &str| started["task_ids"][alias].clone();
    world
        .until(&id("ask"), |t| t["suspension"].is_object())
        .await;
    world
        .until(&id("give"), |t| t["status"] == "completed")
        .await;
    let progress = call("workflows.progress", json!({"root_task_id": id("all")})).await;
    assert_eq!(
        progress["counts"],
        json!({"total": 3, "pending": 1, "ready": 0, "in_progress": 1, "suspended": 1,
            "completed": 1, "failed": 0, "cancelled": 0})
    );
    let asked = &progress["suspended_phases"][0];
    assert_eq!(
        (&asked["phase_name"], &asked["task_id"]),
        (&json!("ask"), &id("ask"))
    );
    let lacking = &progress["unresolvable_phases"][0];
    assert_eq!(lacking["phase_name"], "take");
    assert_eq!(lacking["unresolvable_refs"], json!(["give.missing"]));
    for alias in ["ask", "take"] {
        call("tasks.get", json!({"task_id": id(alias)})).await;
        call("tasks.explain", json!({"task_id": id(alias)})).await;
    }
    call("tasks.list", json!({"suspended": true})).await;
    let answer =
        json!({"task_id": id("ask"), "suspension_id": asked["suspension_id"], "value": true});
    call("tasks.respond", answer).await;
    call("tasks.history", json!({"task_id": id("ask")})).await;
    call("tasks.explain", json!({"task_id": id("ask")})).await;
}
