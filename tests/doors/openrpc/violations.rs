//! Refusals name what the caller wrote, all of it at once, where it stands.

use crate::openrpc::support::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Every UUID in a text.
fn ids(text: &str) -> BTreeSet<String> {
    let part = |c: char| c.is_ascii_hexdigit() || c == '-';
    text.split(|c| !part(c))
        .filter(|word| word.len() == 36 && word.matches('-').count() == 4)
        .map(str::to_owned)
        .collect()
}

/// The error of a call that is refused without an id that the caller does not know.
async fn refusal(world: &World, method: &str, params: Value) -> Value {
    let mut answer = world.answer(method, params.clone()).await;
    let error = answer["error"].take();
    assert!(error.is_object(), "{method} {params} is refused");
    let known = ids(&params.to_string());
    let told = ids(&error.to_string());
    assert!(told.is_subset(&known), "{method} {params}: {error}");
    error
}

/// (field, path) of each violation.
fn places(error: &Value) -> Vec<(Value, Value)> {
    let errors = error["data"]["errors"].as_array().unwrap();
    errors
        .iter()
        .map(|e| (e["field"].clone(), e["path"].clone()))
        .collect()
}

#[tokio::test]
async fn a_cycle_is_told_in_the_words_of_the_call() {
    let world = World::start().await;
    for method in ["tasks.create", "tasks.execute"] {
        let params = json!({"tasks": [
            {"id": "r", "name": "root"},
            {"id": "a", "name": "x", "parent_id": "r", "dependencies": [{"id": "named"}]},
            {"name": "named", "parent_id": "r", "dependencies": [{"id": "a"}]},
        ]});
        let error = refusal(&world, method, params).await;
        assert_eq!(error["code"], -32002);
        assert_eq!(
            error["data"]["cycle"],
            json!(["a", "named", "a"]),
            "{error}"
        );
        assert_eq!(error["data"]["actual"], "a");
        assert_eq!(error["data"]["path"], json!(["tasks", 1, "dependencies"]));
        let itself = json!({"tasks": [{"id": "me", "name": "x", "dependencies": [{"id": "me"}]}]});
        let error = refusal(&world, method, itself).await;
        assert_eq!(error["data"]["cycle"], json!(["me", "me"]), "{error}");
    }
    world.close().await;
}

#[tokio::test]
async fn a_cycle_of_parents_is_listed_in_the_words_of_the_call() {
    let world = World::start().await;
    for method in ["tasks.create", "tasks.execute"] {
        let params = json!({"tasks": [
            {"name": "root"},
            {"name": "below", "parent_id": "a"},
            {"id": "a", "name": "x", "parent_id": "named"},
            {"name": "named", "parent_id": "a"},
        ]});
        let error = refusal(&world, method, params).await;
        assert_eq!(error["code"], -32012);
        let cycle = json!(["a", "named", "a"]);
        assert_eq!(error["data"]["cycle"], cycle, "{error}");
        let fault = &error["data"]["errors"][0];
        assert_eq!(fault["actual"], "named");
        assert_eq!(fault["path"], json!(["tasks", 2, "parent_id"]));
    }
    world.close().await;
}

#[tokio::test]
async fn tasks_that_share_a_name_are_told_by_it() {
    let world = World::start().await;
    let params = json!({"tasks": [
        {"id": "r", "name": "root"},
        {"name": "twin", "parent_id": "r", "schemas": {"method": "nobody"}},
        {"name": "twin", "parent_id": "r", "schemas": {"method": "nobody too"}},
    ]});
    let error = refusal(&world, "tasks.execute", params).await;
    assert_eq!(error["code"], -32003);
    assert_eq!(
        error["data"]["errors"][1]["reason"],
        "Executor of task `twin` not found"
    );
    let method = json!("method");
    assert_eq!(
        places(&error),
        [
            (method.clone(), json!(["tasks", 1, "schemas", "method"])),
            (method, json!(["tasks", 2, "schemas", "method"])),
        ]
    );
    world.close().await;
}

#[tokio::test]
async fn faults_of_the_tree_are_told_in_the_words_of_the_call() {
    let world = World::start().await;
    let deep: Vec<Value> = (0..62)
        .map(|i| match i {
            0 => json!({"id": "l0", "name": "level"}),
            i => {
                json!({"id": format!("l{i}"), "name": "level", "parent_id": format!("l{}", i - 1)})
            }
        })
        .collect();
    let stored = world.call("tasks.create", json!({"name": "stored"})).await;
    let below = json!({"tasks": [
        {"id": "a", "name": "a", "parent_id": stored["id"], "dependencies": [{"id": "b"}]},
        {"id": "b", "name": "b", "parent_id": "a", "dependencies": [{"id": "a"}]},
    ]});
    for (params, code) in [
        (json!({"tasks": deep}), -32012),
        (json!({"tasks": [{"name": "a"}, {"name": "b"}]}), -32012),
        (
            json!({"tasks": [{"id": "a", "name": "a", "parent_id": "b"}, {"id": "b", "name": "b", "parent_id": "a"}]}),
            -32012,
        ),
        (below, -32002),
    ] {
        let error = refusal(&world, "tasks.create", params.clone()).await;
        assert_eq!(error["code"], code, "{params}: {error}");
    }
    world.close().await;
}

#[tokio::test]
async fn what_is_invalid_in_any_way_is_told_in_one_answer() {
    let world = World::start().await;
    let demanding = json!({"method": "echo_executor", "input_schema": {"type": "object", "required": ["x", "y"]}});
    let params = json!({"tasks": [
        {"id": "r", "name": "root"},
        {"name": "a", "parent_id": "r", "schemas": demanding},
        {"name": "b", "parent_id": "nobody", "dependencies": [{"id": "r"}, {"id": "r"}]},
    ]});
    for method in ["tasks.create", "tasks.execute"] {
        let error = refusal(&world, method, params.clone()).await;
        assert_eq!(error["code"], -32602);
        assert!(
            error["data"].get("field").is_none(),
            "several faults are not flat"
        );
        let paths: BTreeSet<String> = places(&error).iter().map(|(_, p)| p.to_string()).collect();
        let expected = [
            json!(["tasks", 1, "inputs", "x"]),
            json!(["tasks", 1, "inputs", "y"]),
            json!(["tasks", 2, "parent_id"]),
            json!(["tasks", 2, "dependencies", 1, "id"]),
        ];
        let expected = expected.iter().map(Value::to_string).collect();
        assert_eq!(paths, expected, "{error}");
    }
    let updates = json!({"task_id": "x", "updates": {
        "priority": 9, "parent_id": "p", "dependencies": [{"id": "d"}], "name": "",
    }});
    let error = refusal(&world, "tasks.update", updates).await;
    assert_eq!(places(&error).len(), 5, "{error}");
    world.close().await;
}

/// Where the faults of a refusal stand, and its code.
fn told(error: &Value) -> (Value, BTreeSet<String>) {
    let step = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let path = |fault: &Value| {
        let steps = fault["path"].as_array().unwrap().iter().map(step);
        steps.collect::<Vec<_>>().join(".")
    };
    let faults = error["data"]["errors"].as_array().unwrap();
    (error["code"].clone(), faults.iter().map(path).collect())
}

#[tokio::test]
async fn faults_of_every_family_are_told_in_one_answer() {
    let world = World::start().await;
    let unknown = "11111111-1111-4111-8111-111111111111";
    let wants_q =
        json!({"method": "echo_executor", "input_schema": {"type": "object", "required": ["q"]}});
    let on = |id: &str| json!([{"id": id}]);
    let cycle = |of: &str| {
        let (one, other) = (format!("{of}1"), format!("{of}2"));
        [
            json!({"id": one, "name": one, "parent_id": "r", "dependencies": on(&other)}),
            json!({"id": other, "name": other, "parent_id": "r", "dependencies": on(&one)}),
        ]
    };
    let [x1, x2] = cycle("x");
    let [y1, y2] = cycle("y");
    let (create, execute) = (
        &["tasks.create"][..],
        &["tasks.create", "tasks.execute"][..],
    );
    for (methods, tasks, code, paths) in [
        // A value, and a stored reference.
        (
            execute,
            json!([{"id": "a", "name": ""}, {"name": "b", "parent_id": "a", "dependencies": on(unknown)}]),
            -32602,
            &["tasks.0.name", "tasks.1.dependencies.0.id"][..],
        ),
        // References of each kind, with their places.
        (
            execute,
            json!([{"id": "a", "name": "a", "dependencies": [{"id": 7}, {"id": unknown}, {"id": "a"}, {"id": "zz"}]}]),
            -32602,
            &[
                "tasks.0.dependencies.0.id",
                "tasks.0.dependencies.1.id",
                "tasks.0.dependencies.2.id",
                "tasks.0.dependencies.3.id",
            ],
        ),
        // A parent that cannot be read is no second root.
        (
            execute,
            json!([{"id": "a", "name": "a"}, {"name": "b", "parent_id": 7, "dependencies": on(unknown)}]),
            -32602,
            &["tasks.1.parent_id", "tasks.1.dependencies.0.id"],
        ),
        // A stored parent, and a schema.
        (
            create,
            json!([{"name": "a", "parent_id": unknown, "schemas": wants_q}]),
            -32602,
            &["tasks.0.inputs.q", "parent_id"],
        ),
        // A stored parent, where none may be named, or that is not there.
        (
            &["tasks.execute"],
            json!([{"id": "r", "name": "r", "parent_id": unknown}, x1, x2]),
            -32010,
            &["tasks.0.parent_id", "tasks.1.dependencies"],
        ),
        (
            create,
            json!([{"id": "r", "name": "r", "parent_id": unknown}, x1, x2]),
            -32010,
            &["parent_id", "tasks.1.dependencies"],
        ),
        // What they name that is stored may be in a flow that cannot be told.
        (
            create,
            json!([{"name": "a", "parent_id": 7, "dependencies": on(unknown)}]),
            -32602,
            &["tasks.0.parent_id"],
        ),
        // What is wired to a dependency that cannot be read.
        (
            execute,
            json!([{"id": "a", "name": "a"}, {"name": "b", "parent_id": "a", "dependencies": ["a"],
                "schemas": {"method": "echo_executor", "wiring": {"x": "a.r"}}}]),
            -32602,
            &["tasks.1.dependencies.0"],
        ),
        // Two roots, two cycles, a stored reference, a schema.
        (
            execute,
            json!([{"id": "r", "name": "r", "schemas": wants_q}, {"name": "s", "dependencies": on(unknown)}, x1, x2, y1, y2]),
            -32602,
            &[
                "tasks.0.inputs.q",
                "tasks.0.parent_id",
                "tasks.1.parent_id",
                "tasks.1.dependencies.0.id",
                "tasks.2.dependencies",
                "tasks.4.dependencies",
            ],
        ),
        // Nothing is wrong with values.
        (
            create,
            json!([{"id": "r", "name": "r"}, {"name": "s", "dependencies": on(unknown)}, x1, x2, y1, y2]),
            -32012,
            &[
                "tasks.0.parent_id",
                "tasks.1.parent_id",
                "tasks.1.dependencies.0.id",
                "tasks.2.dependencies",
                "tasks.4.dependencies",
            ],
        ),
        (
            execute,
            json!([{"id": "r", "name": "r"}, {"name": "s", "parent_id": "r", "dependencies": on(unknown)}, x1, x2]),
            -32011,
            &["tasks.1.dependencies.0.id", "tasks.2.dependencies"],
        ),
        // An executor too.
        (
            &["tasks.execute"],
            json!([{"id": "r", "name": "r", "schemas": {"method": "none"}}, {"name": "s", "dependencies": on(unknown)}, x1, x2]),
            -32012,
            &[
                "tasks.0.parent_id",
                "tasks.1.parent_id",
                "tasks.1.dependencies.0.id",
                "tasks.2.dependencies",
                "tasks.0.schemas.method",
            ],
        ),
    ] {
        for method in methods {
            let params = json!({"tasks": tasks});
            let error = refusal(&world, method, params.clone()).await;
            let paths = paths.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(told(&error), (json!(code), paths), "{method} {params}");
        }
    }
    // Tasks of a schedule are looked at when it is made.
    let tasks = json!([{"id": "r", "name": "r"}, x1, x2]);
    let schedule = json!({"name": "loop", "cron": "@yearly", "tasks": tasks});
    let error = refusal(&world, "schedules.create", schedule).await;
    let path = BTreeSet::from(["tasks.1.dependencies".to_owned()]);
    assert_eq!(told(&error), (json!(-32002), path), "{error}");
    let listed = error["data"]["errors"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{error}");
    // Also the root, to which the server gives an id.
    let below = json!({"name": "a", "parent_id": "r", "dependencies": on("r")});
    let schedule =
        json!({"name": "loop", "cron": "@yearly", "tasks": [{"id": "r", "name": "root"}, below]});
    let error = refusal(&world, "schedules.create", schedule).await;
    assert_eq!(error["data"]["cycle"], json!(["a", "r", "a"]), "{error}");
    assert_eq!(error["data"]["actual"], "r", "{error}");
    let root = world.call("tasks.create", json!({"name": "r"})).await;
    let child =
        json!({"name": "c", "parent_id": root["id"], "schemas": {"method": "echo_executor"}});
    let child = world.call("tasks.create", child).await;
    for (updates, code, paths) in [
        (
            json!({"priority": 9, "parent_id": unknown, "dependencies": [{"id": "no id"}, {"id": unknown}]}),
            -32602,
            &[
                "updates.priority",
                "updates.parent_id",
                "updates.dependencies.0.id",
                "updates.dependencies.1.id",
            ][..],
        ),
        (
            json!({"dependencies": [{"id": "no id"}, {"id": child["id"]}]}),
            -32602,
            &["updates.dependencies.0.id", "updates.dependencies.1.id"],
        ),
        (
            json!({"dependencies": 7, "schemas": {"method": "echo_executor", "wiring": {"x": format!("{unknown}.r")}}}),
            -32602,
            &["updates.dependencies"],
        ),
        (
            json!({"schemas": wants_q, "dependencies": on(unknown), "priority": 9}),
            -32602,
            &[
                "updates.inputs.q",
                "updates.dependencies.0.id",
                "updates.priority",
            ],
        ),
        (
            json!({"schemas": wants_q, "dependencies": on(unknown)}),
            -32602,
            &["updates.inputs.q", "updates.dependencies.0.id"],
        ),
        (
            json!({"parent_id": unknown, "dependencies": [{"id": child["id"]}]}),
            -32010,
            &["updates.parent_id", "updates.dependencies.0.id"],
        ),
    ] {
        let params = json!({"task_id": child["id"], "updates": updates});
        let error = refusal(&world, "tasks.update", params.clone()).await;
        let paths = paths.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(told(&error), (json!(code), paths), "{params}");
    }
    world.close().await;
}

#[tokio::test]
async fn a_single_fault_stands_flat_too_and_what_was_found_is_shortened() {
    let world = World::start().await;
    let error = refusal(&world, "tasks.list", json!({"status": "x".repeat(10_000)})).await;
    let data = &error["data"];
    for member in ["field", "reason", "expected", "actual", "path"] {
        assert_eq!(data[member], data["errors"][0][member], "{member}");
    }
    assert!(data["actual"].as_str().unwrap().len() < 300);
    assert_eq!(data["path"], json!(["status"]));
    world.close().await;
}
