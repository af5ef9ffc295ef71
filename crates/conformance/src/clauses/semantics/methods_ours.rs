//! What this project decided. Section: Methods, those that it added

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/methods.ours/1-history",
            "`tasks.history` tells the events of a task or a flow, in order, in pages",
            histories_are_told,
        ),
        decided(
            "semantics/methods.ours/2-history-of-deleted",
            "a deleted task is gone from reads, never from history",
            deleted_tasks_have_a_history,
        ),
        decided(
            "semantics/methods.ours/3-as-of",
            "`as_of`, a time or a position, on `tasks.get` and `tasks.tree` shows them as they were",
            the_past_can_be_read,
        ),
        decided(
            "semantics/methods.ours/4-as-of-outside",
            "`as_of` before creation or after deletion is -32001, beyond the head of the log -32602",
            there_is_nothing_outside_the_past,
        ),
        decided(
            "semantics/methods.ours/5-explain",
            "`tasks.explain` says why a task is not running, or why it ended as it did",
            tasks_are_explained,
        ),
        decided(
            "semantics/methods.ours/6-health",
            "`system.health` says whether the server is sound, its version and its time",
            the_server_tells_its_health,
        ),
        decided(
            "semantics/methods.ours/7-executors",
            "`system.executors` lists each executor with its schema, its limit, and whether it may be repeated",
            executors_are_listed,
        ),
        decided(
            "semantics/methods.ours/8-discover",
            "`rpc.discover` and `GET /openrpc.json` give the same OpenRPC document, with every method",
            the_interface_describes_itself,
        ),
        decided(
            "semantics/methods.idempotency/1-same-body",
            "a state-changing call with `metadata.idempotency_key`, sent again, gets the first answer and does nothing",
            repeated_calls_get_the_first_answer,
        ),
        decided(
            "semantics/methods.idempotency/2-other-body",
            "the same key with another body is -32602, and does nothing",
            other_bodies_are_refused,
        ),
        decided(
            "semantics/methods.idempotency/3-refusals",
            "a refused call does not use its key up, and a key that is no text of sense is -32602",
            refusals_leave_the_key,
        ),
    ]
}

async fn histories_are_told(probe: &Probe) -> Outcome {
    let (started, _) = run_to_end(
        probe,
        &[probe.group("root"), probe.task("child").below("root")],
    )
    .await?;
    let child = started.id("child")?;
    let own = history(probe, json!({"task_id": child})).await?;
    let flow = history(probe, json!({"task_id": child, "scope": "flow"})).await?;
    ensure!(
        own.len() >= 3 && flow.len() > own.len(),
        "{} events of the task, {} of its flow",
        own.len(),
        flow.len()
    );
    for event in &own {
        text_of(event, "type")?;
        instant(event, "timestamp")?;
        ensure!(
            flow.contains(event),
            "the flow's history lacks {}",
            shown(event)
        );
    }
    let positions: Vec<_> = flow
        .iter()
        .filter_map(|event| event["position"].as_u64())
        .collect();
    ensure!(
        positions.len() == flow.len() && positions.is_sorted_by(|a, b| a < b),
        "positions {positions:?}: expected them in order"
    );
    let paged = history(
        probe,
        json!({"task_id": child, "scope": "flow", "limit": 2}),
    )
    .await?;
    ensure!(paged == flow, "in pages of 2 it is {}", shown(json!(paged)));
    probe
        .refused("tasks.history", json!({"task_id": UNKNOWN_ID}), NOT_FOUND)
        .await?;
    probe
        .refused(
            "tasks.history",
            json!({"task_id": child, "limit": 0}),
            INVALID_PARAMS,
        )
        .await?;
    seen(format!(
        "{} events of the task, {} of its flow",
        own.len(),
        flow.len()
    ))
}

async fn deleted_tasks_have_a_history(probe: &Probe) -> Outcome {
    let ids = create_all(
        probe,
        &[probe.group("root"), probe.task("child").below("root")],
    )
    .await?;
    let child = text_of(&ids, "child")?;
    probe
        .result("tasks.delete", json!({"task_id": child}))
        .await?;
    let events = history(probe, json!({"task_id": child})).await?;
    ensure!(
        events.len() >= 2,
        "{} events: expected birth and death",
        events.len()
    );
    probe
        .refused("tasks.get", json!({"task_id": child}), NOT_FOUND)
        .await?;
    seen(format!("{} events of a deleted task", events.len()))
}

/// Takes away the moment that an answer from the past may name.
fn without_moment(task: &mut Value) {
    task.as_object_mut().map(|members| members.remove("as_of"));
}

async fn the_past_can_be_read(probe: &Probe) -> Outcome {
    let ids = create_all(
        probe,
        &[probe.group("root"), probe.task("child").below("root")],
    )
    .await?;
    let (root, child) = (text_of(&ids, "root")?, text_of(&ids, "child")?);
    let before = probe.get(&child).await?;
    let events = history(probe, json!({"task_id": root, "scope": "flow"})).await?;
    let position = events
        .last()
        .map(|event| event["position"].clone())
        .unwrap_or_default();
    let time = from_now(probe, 0).await?;
    update(probe, &child, json!({"name": "renamed", "priority": 0})).await?;
    probe.create(&probe.task("late").below(&root)).await?;
    for moment in [position, json!(time)] {
        let then = json!({"task_id": child, "as_of": moment});
        let mut task = probe.result("tasks.get", then).await?;
        without_moment(&mut task);
        ensure!(
            task == before,
            "as of {moment}: {}: expected {}",
            shown(&task),
            shown(&before)
        );
        let then = json!({"task_id": root, "as_of": moment});
        let tree = probe.result("tasks.tree", then).await?;
        let mut children = tree["children"].as_array().cloned().unwrap_or_default();
        children
            .iter_mut()
            .for_each(|node| without_moment(&mut node["task"]));
        ensure!(
            children.len() == 1 && children[0]["task"] == before,
            "as of {moment} the tree is {}",
            shown(&tree)
        );
    }
    for moment in [json!("yesterday"), json!(0), json!(1.5), json!(true)] {
        let odd = json!({"task_id": child, "as_of": moment});
        let error = probe.refused("tasks.get", odd, INVALID_PARAMS).await?;
        fault_in(&error, "as_of")?;
    }
    seen(format!("as of {time} and of the position before"))
}

async fn there_is_nothing_outside_the_past(probe: &Probe) -> Outcome {
    let early = from_now(probe, -3_600).await?;
    let ids = create_all(
        probe,
        &[probe.group("root"), probe.task("child").below("root")],
    )
    .await?;
    let child = text_of(&ids, "child")?;
    let while_it_was = from_now(probe, 0).await?;
    probe
        .result("tasks.delete", json!({"task_id": child}))
        .await?;
    let events = history(probe, json!({"task_id": child})).await?;
    let end = events
        .last()
        .map(|event| event["position"].clone())
        .unwrap_or_default();
    for method in ["tasks.get", "tasks.tree"] {
        let at = |moment: Value| json!({"task_id": child, "as_of": moment});
        probe.refused(method, at(json!(early)), NOT_FOUND).await?;
        probe.result(method, at(json!(while_it_was))).await?;
        probe.refused(method, at(end.clone()), NOT_FOUND).await?;
        let error = probe
            .refused(method, at(json!(1_u64 << 50)), INVALID_PARAMS)
            .await?;
        fault_in(&error, "as_of")?;
        let never = json!({"task_id": UNKNOWN_ID, "as_of": while_it_was});
        probe.refused(method, never, NOT_FOUND).await?;
    }
    seen("before creation, after deletion and beyond the head")
}

async fn tasks_are_explained(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.failing("bad").below("root"),
        probe.task("blocked").below("root").after("bad"),
    ];
    let (started, _) = run_to_end(probe, &tasks).await?;
    let (bad, blocked) = (started.id("bad")?, started.id("blocked")?);
    let explained = probe
        .result("tasks.explain", json!({"task_id": blocked}))
        .await?;
    expect(
        &explained,
        &[("task_id", json!(blocked)), ("status", json!("pending"))],
    )?;
    ensure!(
        explained["reasons"].to_string().contains(bad),
        "{}: expected the task that blocks it",
        shown(&explained)
    );
    let failed = probe
        .result("tasks.explain", json!({"task_id": bad}))
        .await?;
    let error = text_of(&probe.get(bad).await?, "error")?;
    ensure!(
        failed.to_string().contains(&error),
        "{}: expected its error `{error}`",
        shown(&failed)
    );
    probe
        .refused("tasks.explain", json!({"task_id": UNKNOWN_ID}), NOT_FOUND)
        .await?;
    seen(shown(&explained))
}

async fn the_server_tells_its_health(probe: &Probe) -> Outcome {
    let health = probe.result("system.health", json!({})).await?;
    let status = text_of(&health, "status")?;
    ensure!(
        ["ok", "degraded"].contains(&status.as_str()),
        "`status` is {status}"
    );
    text_of(&health, "version")?;
    instant(&health, "time")?;
    let error = probe
        .refused("system.health", json!({"verbose": 1}), INVALID_PARAMS)
        .await?;
    fault_in(&error, "verbose")?;
    seen(shown(health))
}

async fn executors_are_listed(probe: &Probe) -> Outcome {
    let result = probe.result("system.executors", json!({})).await?;
    let list = result["executors"].as_array().cloned().unwrap_or_default();
    let mut names = Vec::new();
    for executor in &list {
        names.push(text_of(executor, "name")?);
        text_of(executor, "summary")?;
        ensure!(
            executor["idempotent"].is_boolean()
                && executor["limit"].as_u64().is_some_and(|limit| limit > 0)
                && (executor["input_schema"].is_object() || executor["input_schema"].is_null()),
            "{}: expected `idempotent`, `limit` and `input_schema`",
            shown(executor)
        );
    }
    for name in [&probe.options().executor, &probe.options().slow_executor] {
        ensure!(names.contains(name), "{name} is not among {names:?}");
    }
    ensure!(names.is_sorted(), "{names:?}: expected them by name");
    seen(names.join(", "))
}

async fn the_interface_describes_itself(probe: &Probe) -> Outcome {
    let document = probe.result("rpc.discover", json!({})).await?;
    text_of(&document, "openrpc")?;
    let methods = document["methods"].as_array().into_iter().flatten();
    let names: Vec<_> = methods
        .filter_map(|method| method["name"].as_str())
        .collect();
    for name in [
        "tasks.create",
        "tasks.get",
        "tasks.update",
        "tasks.delete",
        "tasks.list",
        "tasks.execute",
        "tasks.cancel",
        "tasks.tree",
        "tasks.children",
        "tasks.copy",
        "tasks.retry",
        "tasks.history",
        "tasks.explain",
        "system.health",
        "system.executors",
        "system.rebuild",
        "rpc.discover",
    ] {
        ensure!(names.contains(&name), "{name} is not among {names:?}");
    }
    let file = probe
        .http(reqwest::Method::GET, "/openrpc.json", &[], "")
        .await?;
    ensure!(file.status == 200, "{}: expected 200", file.story());
    ensure!(
        file.json()? == document,
        "GET /openrpc.json differs from rpc.discover"
    );
    seen(format!("{} methods", names.len()))
}

/// Sends a call under a key.
async fn keyed(probe: &Probe, key: Value, method: &str, params: &Value) -> Result<Reply, Finding> {
    let request = json!({
        "jsonrpc": "2.0", "id": "keyed", "method": method, "params": params,
        "metadata": {"idempotency_key": key},
    });
    probe.request(&request).await
}

async fn repeated_calls_get_the_first_answer(probe: &Probe) -> Outcome {
    let key = |what: &str| json!(probe.name(what));
    let root = probe.create(&probe.task("root")).await?;
    let spare = probe.create(&probe.task("spare").below(&root)).await?;
    let failed = probe.run(&[probe.failing("failed")]).await?.root;
    probe.wait_for(&failed, "failed").await?;
    let calls = [
        ("tasks.create", probe.task("new").below(&root).value()),
        (
            "tasks.update",
            json!({"task_id": root, "updates": {"priority": 0}}),
        ),
        ("tasks.copy", json!({"task_id": root, "parent_id": root})),
        ("tasks.delete", json!({"task_id": spare})),
        ("tasks.retry", json!({"task_id": failed})),
        ("tasks.execute", json!({"task_id": root})),
        ("tasks.execute", list(&[probe.slow("slow", FOREVER_MS)])),
        (
            "tasks.cancel",
            json!({"task_id": probe.create(&probe.task("off")).await?}),
        ),
    ];
    for (number, (method, params)) in calls.iter().enumerate() {
        let key = key(&format!("key {number}"));
        let first = keyed(probe, key.clone(), method, params)
            .await?
            .expect_result()?;
        let before = count(probe).await?;
        let second = keyed(probe, key, method, params).await?.expect_result()?;
        ensure!(
            first == second,
            "{method}: first {}, then {}",
            shown(&first),
            shown(&second)
        );
        let after = count(probe).await?;
        ensure!(
            before == after,
            "{method} was done twice: {before} tasks, then {after}"
        );
        if let (Some(run), "tasks.execute") = (first["root_task_id"].as_str(), *method) {
            probe.call("tasks.cancel", json!({"task_id": run})).await?;
        }
    }
    seen("eight calls, each of the state-changing methods")
}

async fn other_bodies_are_refused(probe: &Probe) -> Outcome {
    let key = json!(probe.name("key"));
    let first = probe.task("first").value();
    keyed(probe, key.clone(), "tasks.create", &first)
        .await?
        .expect_result()?;
    let other = probe.task("other").value();
    let reply = keyed(probe, key.clone(), "tasks.create", &other).await?;
    let error = reply.expect_error(INVALID_PARAMS)?;
    fault_in(&error, "idempotency_key")?;
    // Members in another order are the same body.
    let mut turned = json!({});
    for (name, value) in first.as_object().into_iter().flatten().rev() {
        turned[name.as_str()] = value.clone();
    }
    keyed(probe, key, "tasks.create", &turned)
        .await?
        .expect_result()?;
    let stored = count(probe).await?;
    ensure!(stored == 1, "{stored} tasks are stored: expected 1");
    seen(error.to_string())
}

async fn refusals_leave_the_key(probe: &Probe) -> Outcome {
    let key = json!(probe.name("key"));
    let bad = probe.task("bad").with("priority", 9).value();
    keyed(probe, key.clone(), "tasks.create", &bad)
        .await?
        .expect_error(INVALID_PARAMS)?;
    let good = probe.task("good").value();
    keyed(probe, key, "tasks.create", &good)
        .await?
        .expect_result()?;
    for odd in [json!(""), json!(1), json!({}), json!("x".repeat(10_000))] {
        let reply = keyed(probe, odd, "tasks.create", &good).await?;
        fault_in(&reply.expect_error(INVALID_PARAMS)?, "idempotency_key")?;
    }
    let stored = count(probe).await?;
    ensure!(stored == 1, "{stored} tasks are stored: expected 1");
    seen("a key is free after a refusal")
}
