//! What every implementation does. spec: interface / Implementation Requirements

use super::a2a::card;
use crate::clauses::data_model::{broken_tasks_are_refused, task_ids_are_checked};
use crate::clauses::interface_methods::{METHODS, all_methods_exist};
use crate::clauses::interface_transport::a2a_is_spoken;
use crate::clauses::prelude::*;
use futures_util::future::join_all;
use std::collections::BTreeSet;

/// Calls at once: enough to meet each other, few enough for a small server.
const AT_ONCE: usize = 16;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/requirements/1-methods",
            "all standard methods are there",
            all_methods_exist,
        ),
        should(
            "interface/requirements/2-a2a",
            "A2A is spoken",
            a2a_is_spoken,
        )
        .same_as(&["interface/standards/3-a2a"]),
        may(
            "interface/requirements/3-more-methods",
            "there may be more methods",
            more_methods_are_offered,
        ),
        must(
            "interface/requirements/4-validates",
            "all requests are checked against the document",
            requests_are_checked,
        ),
        must(
            "interface/requirements/5-errors",
            "invalid requests get fitting errors",
            requests_are_checked,
        ),
        must(
            "interface/requirements/6-concurrency",
            "calls at the same time are each answered correctly, and none is lost",
            calls_at_once_are_sound,
        ),
        should(
            "interface/requirements/7-races",
            "of calls that exclude each other, one wins",
            races_have_one_winner,
        ),
    ]
}

async fn more_methods_are_offered(probe: &Probe) -> Outcome {
    let card = card(probe).await?.unwrap_or_default();
    let skills = card["skills"].as_array().map_or(&[][..], Vec::as_slice);
    let own = skills.iter().filter_map(|skill| skill["id"].as_str());
    let own: Vec<_> = own.filter(|id| !METHODS.contains(id)).collect();
    match own.is_empty() {
        false => seen(format!("{own:?} in the agent card")),
        true => Err(Finding::skipped("the agent card lists no other methods")),
    }
}

async fn requests_are_checked(probe: &Probe) -> Outcome {
    broken_tasks_are_refused(probe).await?;
    task_ids_are_checked(probe).await?;
    for (method, params) in [
        ("tasks.list", json!({"limit": "x"})),
        ("tasks.list", json!({"status": "done"})),
        ("tasks.execute", json!({"tasks": 1})),
        ("tasks.update", json!({"task_id": UNKNOWN_ID})),
        (
            "tasks.copy",
            json!({"task_id": UNKNOWN_ID, "copy_children": "yes"}),
        ),
    ] {
        probe.refuses(method, [params], &[INVALID_PARAMS]).await?;
    }
    seen("faulty parameters of all methods are -32602")
}

/// Children of one task, created, changed and read at the same time.
async fn calls_at_once_are_sound(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let names: Vec<_> = (0..AT_ONCE).map(|n| n.to_string()).collect();
    let creations = names.iter().map(|name| {
        let task = probe.task(name).below(&root);
        async move { probe.create(&task).await }
    });
    let mut ids = Vec::new();
    for created in join_all(creations).await {
        ids.push(created?);
    }
    let distinct: BTreeSet<_> = ids.iter().collect();
    ensure!(
        distinct.len() == AT_ONCE,
        "{} ids for {AT_ONCE} tasks",
        distinct.len()
    );
    let (first, second) = (&ids[0], &ids[1]);
    let change = |field: &'static str, value: Value| {
        let params = json!({"task_id": first, "updates": {field: value}});
        probe.result("tasks.update", params)
    };
    let changes = [
        change("name", json!("changed")),
        change("priority", json!(0)),
        change("inputs", json!({"a": 1})),
        change("params", json!({"retry_count": 2})),
        change("dependencies", json!([{"id": second, "required": true}])),
    ];
    for changed in join_all(changes).await {
        changed?;
    }
    let task = probe.get(first).await?;
    for (field, value) in [
        ("name", json!("changed")),
        ("priority", json!(0)),
        ("inputs", json!({"a": 1})),
        ("params", json!({"retry_count": 2})),
        ("dependencies", json!([{"id": second, "required": true}])),
    ] {
        expect_field(&task, field, value)?;
    }
    let reads = ids.iter().map(|id| probe.get(id));
    for (id, read) in ids.iter().zip(join_all(reads).await) {
        expect_field(&read?, "id", id.as_str())?;
    }
    let count = probe.tree(&root).await?.len();
    ensure!(
        count == AT_ONCE + 1,
        "{count} tasks in the tree, {} were created",
        AT_ONCE + 1
    );
    seen(format!(
        "{AT_ONCE} creations, 5 changes of one task, {AT_ONCE} reads"
    ))
}

async fn races_have_one_winner(probe: &Probe) -> Outcome {
    for method in ["tasks.cancel", "tasks.delete"] {
        let id = probe.create(&probe.task(method)).await?;
        let calls = (0..AT_ONCE).map(|_| probe.call(method, json!({"task_id": id})));
        let mut won = 0;
        for reply in join_all(calls).await {
            let reply = reply?;
            match reply.outcome {
                Ok(_) => won += 1,
                Err(_) => _ = reply.expect_refusal(ANY)?,
            }
        }
        ensure!(
            won == 1,
            "{method}: {won} of {AT_ONCE} calls were answered with a result"
        );
    }
    // Each of two tasks made to wait for the other: both at once would be a cycle.
    let root = probe.create(&probe.task("root")).await?;
    let one = probe.create(&probe.task("one").below(&root)).await?;
    let two = probe.create(&probe.task("two").below(&root)).await?;
    let tie = |id: &str, other: &str| {
        let updates = json!({"dependencies": [{"id": other, "required": true}]});
        probe.call("tasks.update", json!({"task_id": id, "updates": updates}))
    };
    let (first, second) = tokio::join!(tie(&one, &two), tie(&two, &one));
    let won = [first?, second?]
        .iter()
        .filter(|reply| reply.outcome.is_ok())
        .count();
    ensure!(
        won == 1,
        "{won} of two calls that make a cycle together were answered with a result"
    );
    seen("one of many cancels and of many deletes wins, and one half of a cycle")
}
