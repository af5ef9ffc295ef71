//! Every error that a method documents is provoked, and has the documented form.

use crate::openrpc::support::{Document, World, by_name, check};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use taskledger::clock::SystemClock;
use taskledger::transport::jsonrpc::{ErrorKind, RpcError};

const UNKNOWN: &str = "990e8400-e29b-41d4-a716-446655440000";

/// Nobody can provoke them by a call; their form is checked as the server makes it.
const NOT_BY_A_CALL: [ErrorKind; 3] = [
    ErrorKind::Internal,
    ErrorKind::Busy,
    ErrorKind::Unauthorized,
];

/// Quotas are for callers with credentials, which this server does not ask for.
const WITH_QUOTAS: [&str; 6] = [
    "tasks.create",
    "tasks.execute",
    "tasks.copy",
    "tasks.subscribe",
    "tasks.resubscribe",
    "webhooks.create",
];

/// Documented, but only a race leads to it: the dependency is deleted while the copy is made.
const BY_A_RACE: (&str, i64) = ("tasks.copy", -32011);

#[track_caller]
fn check_error(document: &Document, method: &str, error: &Value) {
    let row = document.error(method, &error["code"]);
    assert_eq!(row["message"], error["message"], "{method}");
    check(&document.validator(&row["data"]), method, &error["data"]);
}

/// Tasks that stand as the provocations need them.
struct Stage {
    /// A group with `first` and `second`, which waits for it. Pending.
    group: Value,
    first: Value,
    second: Value,
    cancelled: Value,
    /// Sleeps for longer than any test, beside `failed`.
    running: Value,
    failed: Value,
    /// Failed because its executor does not exist.
    lost: Value,
    /// At the greatest depth.
    deep: Value,
    /// Ready, for workers, with an input that the result of its dependency has not.
    starved: Value,
    /// Claimed; its result must have `n`, an integer.
    contracted: Value,
    /// Answers that do not keep what their tasks declare.
    wrong: Value,
    less: Value,
    /// Needs a result that waits for a person.
    behind: Value,
}

/// A document without faults.
const KEPT: &str =
    r#"{"openintent": "1.0", "info": {"name": "kept"}, "workflow": {"a": {"assign": "x"}}}"#;

async fn stage(world: &World) -> Stage {
    let create = |params: Value| world.call("tasks.create", params);
    let execute = |params: Value| world.call("tasks.execute", params);
    let group = create(json!({"name": "group", "children": [
        {"name": "first"}, {"name": "second", "dependencies": [{"id": "first"}]},
    ]}))
    .await;
    let cancelled = create(json!({"name": "x"})).await["id"].clone();
    world
        .call("tasks.cancel", json!({"task_id": cancelled}))
        .await;
    world
        .call("workflows.save", json!({"document": KEPT}))
        .await;
    let schedule = json!({"name": "kept", "cron": "@yearly", "workflow": {"name": "kept"}});
    world.call("schedules.create", schedule).await;
    let sleeping = execute(json!({"tasks": [
        {"name": "around"},
        {"name": "running", "parent_id": "around", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 600_000}},
        {"name": "failed", "parent_id": "around", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 600_000}, "params": {"timeout_seconds": 0.001}},
    ]}))
    .await["task_ids"]
        .clone();
    world
        .until(&sleeping["running"], |t| t["status"] == "in_progress")
        .await;
    world
        .until(&sleeping["failed"], |t| t["status"] == "failed")
        .await;
    let lost = execute(json!({
        "tasks": [{"name": "lost", "schemas": {"method": "nobody"}}],
        "allow_unknown_executors": true, "executor_wait_seconds": 0,
    }))
    .await["root_task_id"]
        .clone();
    world.until(&lost, |t| t["status"] == "failed").await;
    let wired = execute(json!({"tasks": [
        {"name": "wired"},
        {"name": "source", "parent_id": "wired", "schemas": {"method": "echo_executor"}},
        {"name": "starved", "parent_id": "wired", "dependencies": [{"id": "source"}],
         "schemas": {"type": "remote", "method": "starve", "wiring": {"x": "source.nothing"}}},
    ]}))
    .await["task_ids"]
        .clone();
    world
        .until(&wired["source"], |t| t["status"] == "completed")
        .await;
    let gates = execute(json!({"tasks": [
        {"name": "gates"},
        {"name": "wrong", "parent_id": "gates", "inputs": {"question": "?"},
         "schemas": {"method": "approval_executor", "outputs": {"value": "string"}}},
        {"name": "less", "parent_id": "gates", "inputs": {"question": "?"},
         "schemas": {"method": "approval_executor", "outputs": {"by": "string"}}},
        {"name": "behind", "parent_id": "gates", "dependencies": [{"id": "less"}],
         "schemas": {"type": "remote", "method": "starve", "wiring": {"x": "less.value"}}},
    ]}))
    .await["task_ids"]
        .clone();
    let mut asked = Vec::new();
    for gate in ["wrong", "less"] {
        let waits = |task: &Value| task["suspension"].is_object();
        let task = world.until(&gates[gate], waits).await;
        asked.push(json!({"task_id": gates[gate], "suspension_id": task["suspension"]["suspension_id"], "value": true}));
    }
    execute(json!({"tasks": [{"name": "contracted", "schemas": {
        "type": "remote", "method": "contract", "outputs": {"n": "integer"},
    }}]}))
    .await;
    let wanted = json!({"methods": ["contract"], "worker": "w", "wait_seconds": 10});
    let contracted = world.call("tasks.claim", wanted).await["claims"][0].clone();
    let levels: Vec<Value> = (0..60)
        .map(|i| match i {
            0 => json!({"id": "l0", "name": "level"}),
            i => {
                json!({"id": format!("l{i}"), "name": "level", "parent_id": format!("l{}", i - 1)})
            }
        })
        .collect();
    let deep = create(json!({"tasks": levels})).await["task_ids"]["l59"].clone();
    let id = |name: &str| group["task_ids"][name].clone();
    Stage {
        group: id("group"),
        first: id("first"),
        second: id("second"),
        cancelled,
        running: sleeping["running"].clone(),
        failed: sleeping["failed"].clone(),
        lost,
        deep,
        starved: wired["starved"].clone(),
        contracted,
        wrong: asked[0].clone(),
        less: asked[1].clone(),
        behind: gates["behind"].clone(),
    }
}

/// Documented errors for what is not there, the methods that have the parameters, and the parameters that name it.
const NOT_FOUND: [(i64, &str, &[&str]); 4] = [
    (-32001, "", &["task_id", "parent_id", "root_task_id"]),
    (-32014, "", &["id"]),
    (-31012, "workflows.", &["name"]),
    (-31014, "schedules.", &["name"]),
];

/// Examples of methods that document such an error, with an id that nothing has. Where no example names anything, or
/// more is to be there before, `provocations` has a row.
fn not_found(document: &Document) -> Vec<(&'static str, i64, Value)> {
    let mut found = Vec::new();
    for method in document.methods() {
        let name: &'static str = method["name"].as_str().unwrap().to_owned().leak();
        let errors = method["errors"].as_array().unwrap().iter();
        let documented: Vec<_> = errors
            .map(|row| document.at(row)["code"].as_i64().unwrap())
            .collect();
        for (code, group, naming) in NOT_FOUND {
            if !name.starts_with(group) {
                continue;
            }
            let examples = method["examples"].as_array().unwrap().iter();
            let unknown = examples.filter_map(|example| {
                let mut params = by_name(example);
                let id = naming.iter().find(|id| params.get(**id).is_some())?;
                params[*id] = json!(UNKNOWN);
                Some((name, code, params))
            });
            found.extend(unknown.filter(|_| documented.contains(&code)));
        }
    }
    found
}

/// Method, code, and parameters that lead to it.
fn provocations(s: &Stage) -> Vec<(&'static str, i64, Value)> {
    let one = |members: Value| json!({"tasks": [members]});
    let two_roots = json!({"tasks": [{"name": "a"}, {"name": "b"}]});
    let cycle = json!({"name": "r", "children": [
        {"name": "a", "dependencies": [{"id": "b"}]}, {"name": "b", "dependencies": [{"id": "a"}]},
    ]});
    let update = |task: &Value, updates: Value| json!({"task_id": task, "updates": updates});
    let unknown = json!({"task_id": UNKNOWN});
    let lease = |mut params: Value| {
        params["task_id"] = s.running.clone();
        params["lease"] = json!(UNKNOWN);
        params
    };
    let result = |output: Value| {
        json!({
            "task_id": s.contracted["task"]["id"], "lease": s.contracted["lease"]["token"], "output": output,
        })
    };
    vec![
        ("tasks.create", -32012, two_roots.clone()),
        (
            "tasks.create",
            -32010,
            json!({"name": "a", "parent_id": UNKNOWN}),
        ),
        (
            "tasks.create",
            -32011,
            json!({"name": "a", "dependencies": [{"id": UNKNOWN}]}),
        ),
        ("tasks.create", -32002, cycle.clone()),
        (
            "tasks.update",
            -32012,
            update(&s.group, json!({"parent_id": s.first})),
        ),
        (
            "tasks.update",
            -32010,
            update(&s.first, json!({"parent_id": UNKNOWN})),
        ),
        (
            "tasks.update",
            -32011,
            update(&s.first, json!({"dependencies": [{"id": UNKNOWN}]})),
        ),
        (
            "tasks.update",
            -32002,
            update(&s.first, json!({"dependencies": [{"id": s.second}]})),
        ),
        (
            "tasks.update",
            -32008,
            update(&s.running, json!({"inputs": {"duration_ms": 1}})),
        ),
        (
            "tasks.update",
            -32006,
            update(&s.cancelled, json!({"inputs": {}})),
        ),
        ("tasks.delete", -32009, json!({"task_id": s.group})),
        ("tasks.execute", -32001, unknown),
        ("tasks.execute", -32012, two_roots),
        (
            "tasks.execute",
            -32010,
            one(json!({"name": "a", "parent_id": s.group})),
        ),
        (
            "tasks.execute",
            -32011,
            one(json!({"name": "a", "dependencies": [{"id": UNKNOWN}]})),
        ),
        ("tasks.execute", -32002, one(cycle)),
        (
            "tasks.execute",
            -32003,
            one(json!({"name": "a", "schemas": {"method": "nobody"}})),
        ),
        ("tasks.execute", -32008, json!({"task_id": s.running})),
        ("tasks.execute", -32006, json!({"task_id": s.cancelled})),
        ("tasks.cancel", -32006, json!({"task_id": s.cancelled})),
        (
            "tasks.copy",
            -32012,
            json!({"task_id": s.first, "parent_id": s.deep}),
        ),
        (
            "tasks.copy",
            -32010,
            json!({"task_id": s.first, "parent_id": UNKNOWN}),
        ),
        ("tasks.retry", -32003, json!({"task_id": s.lost})),
        ("tasks.retry", -32008, json!({"task_id": s.failed})),
        ("tasks.retry", -32006, json!({"task_id": s.first})),
        ("tasks.claim", -32001, json!({"task_id": UNKNOWN})),
        ("tasks.claim", -32006, json!({"task_id": s.first})),
        ("tasks.claim", -31022, json!({"task_id": s.starved})),
        ("tasks.complete", -31024, result(json!({}))),
        ("tasks.complete", -31025, result(json!({"n": "1"}))),
        (
            "workflows.create",
            -31021,
            json!({"document": {"openintent": "1.0", "info": {"name": "w"},
                "workflow": {"a": {"assign": "x", "inputs": {"k": "b.key"}}}}}),
        ),
        (
            "workflows.save",
            -31021,
            json!({"document": {"openintent": "1.0", "info": {"name": "w"},
                "workflow": {"a": {"assign": "x", "inputs": {"k": "b.key"}}}}}),
        ),
        (
            "workflows.dry_run",
            -31021,
            json!({"document": {"openintent": "1.0", "info": {"name": "w"},
                "workflow": {"a": {"assign": "x", "inputs": {"k": "b.key"}}}}}),
        ),
        (
            "workflows.diff",
            -31021,
            json!({"name": "Quarterly report", "document": {"openintent": "1.0",
                "info": {"name": "w"},
                "workflow": {"a": {"assign": "x", "inputs": {"k": "b.key"}}}}}),
        ),
        (
            "workflows.schemas",
            -31021,
            json!({"document": {"openintent": "1.0", "info": {"name": "w"},
                "workflow": {"a": {"assign": "x", "inputs": {"k": "b.key"}}}}}),
        ),
        ("workflows.schemas", -31012, json!({"name": "none"})),
        (
            "workflows.save",
            -31013,
            json!({"document": KEPT.replace("kept", "other"), "expected_version": 9}),
        ),
        (
            "workflows.delete",
            -31013,
            json!({"name": "kept", "expected_version": 9}),
        ),
        (
            "schedules.create",
            -31015,
            json!({"name": "kept", "cron": "@yearly", "workflow": {"name": "kept"}}),
        ),
        (
            "schedules.create",
            -31012,
            json!({"name": "x", "cron": "@yearly", "workflow": {"name": "none"}}),
        ),
        (
            "schedules.update",
            -31015,
            json!({"name": "kept", "expected_version": 9}),
        ),
        (
            "schedules.update",
            -31012,
            json!({"name": "kept", "workflow": {"name": "none"}}),
        ),
        (
            "schedules.delete",
            -31015,
            json!({"name": "kept", "expected_version": 9}),
        ),
        ("tasks.renew", -31010, lease(json!({}))),
        ("tasks.complete", -31010, lease(json!({"output": {}}))),
        ("tasks.fail", -31010, lease(json!({"error": "e"}))),
        ("tasks.release", -31010, lease(json!({}))),
        (
            "tasks.suspend",
            -31010,
            lease(json!({"request": {"question": "?"}})),
        ),
        ("tasks.respond", -31025, s.wrong.clone()),
        ("tasks.respond", -31024, s.less.clone()),
        (
            "tasks.respond",
            -31011,
            json!({"task_id": s.running, "suspension_id": UNKNOWN, "value": 1}),
        ),
        (
            "tasks.respond",
            -32001,
            json!({"task_id": UNKNOWN, "suspension_id": UNKNOWN, "value": 1}),
        ),
        ("tasks.claim", -31023, json!({"task_id": s.behind})),
        ("tasks.sibling_output", -31010, lease(json!({"name": "a"}))),
        ("webhooks.redeliver", -32014, json!({"delivery_id": 4711})),
    ]
}

#[tokio::test]
async fn every_documented_error_is_given_in_the_documented_form_and_no_other() {
    let world = World::start().await;
    let document = world.document().await;
    let stage = stage(&world).await;
    let mut given = BTreeSet::from([(BY_A_RACE.0.to_owned(), BY_A_RACE.1)]);
    let mut provocations = provocations(&stage);
    provocations.extend(not_found(&document));
    for method in document.methods() {
        let name = method["name"].as_str().unwrap().to_owned();
        let name: &'static str = name.leak();
        provocations.push((name, -32602, json!({"no_such_parameter": 1})));
    }
    for (method, code, params) in provocations {
        let answer = world.answer(method, params.clone()).await;
        let error = &answer["error"];
        assert_eq!(error["code"], code, "{method} {params}: {answer}");
        check_error(&document, method, error);
        given.insert((method.to_owned(), code));
    }
    let clock = SystemClock::default();
    for method in document.methods() {
        let name = method["name"].as_str().unwrap();
        for error in [
            RpcError::internal(&clock, &"a cause"),
            RpcError::internal_answer("the answer is too large").with("limit_bytes", 1),
            RpcError::busy("later", 5),
            RpcError::unauthorized("no credentials"),
            RpcError::forbidden("tasks:read", "credentials"),
        ] {
            check_error(&document, name, &json!(error));
        }
        given.extend(NOT_BY_A_CALL.map(|kind| (name.to_owned(), kind.row().0)));
        if WITH_QUOTAS.contains(&name) {
            let error = RpcError::quota_exceeded("open_flows", 10, (10, 1));
            check_error(&document, name, &json!(error));
            given.insert((name.to_owned(), error.code));
        }
    }
    let documented: BTreeSet<_> = document
        .methods()
        .iter()
        .flat_map(|m| {
            let rows = m["errors"].as_array().unwrap().iter();
            let codes = rows.map(|row| document.at(row)["code"].as_i64().unwrap());
            codes.map(|code| (m["name"].as_str().unwrap().to_owned(), code))
        })
        .collect();
    assert_eq!(documented, given);
    world.close().await;
}

#[tokio::test]
async fn the_forms_of_errors_are_told_apart() {
    let document = crate::openrpc::document::described();
    let row = |kind: ErrorKind| {
        let name = format!("{kind:?}");
        document.0["components"]["errors"][name]["data"].clone()
    };
    let fault =
        json!({"field": "f", "reason": "r", "expected": "e", "actual": 1, "path": ["a", 0, "f"]});
    let mut flat = fault.clone();
    flat["errors"] = json!([fault]);
    let general = document.validator(&row(ErrorKind::InvalidParams));
    check(&general, "one fault", &flat);
    check(&general, "two faults", &json!({"errors": [fault, fault]}));
    let mut two_and_flat = flat.clone();
    two_and_flat["errors"] = json!([fault, fault]);
    for wrong in [
        json!({}),
        json!({"errors": [fault]}),
        two_and_flat,
        json!({"errors": [1]}),
    ] {
        assert!(!general.is_valid(&wrong), "{wrong}");
    }
    for kind in [ErrorKind::CircularDependency, ErrorKind::Busy] {
        let own = document.validator(&row(kind));
        assert!(!own.is_valid(&flat), "{kind:?} has a member of its own");
    }
}
