//! What this project decided. Section: Trees and flows, its limits

use super::looks::*;
use crate::clauses::prelude::*;

/// Levels of a tree.
const DEPTH_MAX: usize = 60;
/// Calls in a batch.
const BATCH_CALLS_MAX: usize = 100;
/// What is wrong with a batch as a whole.
const INVALID_REQUEST: i64 = -32600;
/// Bytes of a request.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Tasks in a call, and dependencies of a task.
const MANY_MAX: usize = 20_000;
/// Bytes of inputs, params and result.
const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// Characters of a name.
const NAME_CHARS_MAX: usize = 255;
/// Tasks in a chain that would show a recursion.
const CHAIN_TASKS: usize = 5_000;
/// Gathers what its dependencies returned.
const GATHERING_EXECUTOR: &str = "aggregate_results_executor";

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/limits/1-depth",
            "a tree has at most 60 levels; one more is -32012, also when a move or a copy makes it",
            trees_have_60_levels,
        ),
        decided(
            "semantics/limits/2-body",
            "a body has at most 16 MiB; one byte more is refused with HTTP status 413",
            bodies_have_16_mib,
        ),
        decided(
            "semantics/limits/3-batch",
            "a batch has at most 100 calls; with one more it is one invalid request, and none is made",
            batches_have_100_calls,
        ),
        decided(
            "semantics/limits/4-tasks-in-a-call",
            "a call has at most 20,000 tasks; one more is -32602",
            calls_have_20_000_tasks,
        ),
        decided(
            "semantics/limits/5-dependencies",
            "a task has at most 20,000 dependencies; one more is -32602",
            tasks_have_20_000_dependencies,
        ),
        not_testable(
            Level::Decided,
            "semantics/limits/6-tasks-in-a-flow",
            "a flow has at most 100,000 tasks, deleted ones included",
            "100,000 tasks would hold up all other checks; domain/tests/rules/limits.rs shows it",
        ),
        decided(
            "semantics/limits/7-inputs-and-params",
            "inputs and params have at most 1 MiB of JSON each; one byte more is -32602",
            payloads_have_1_mib,
        ),
        decided(
            "semantics/limits/8-result",
            "a result of more than 1 MiB fails its task",
            results_have_1_mib,
        ),
        decided(
            "semantics/limits/9-name",
            "a name has at most 255 characters, counted as Unicode scalar values",
            names_have_255_characters,
        ),
        decided(
            "semantics/limits/10-what-is-told",
            "above a limit the error names the field, the limit and the actual value",
            limits_are_told,
        ),
        decided(
            "semantics/limits/11-no-recursion",
            "chains of thousands of dependencies are taken, and cycles as long are found",
            long_chains_are_taken,
        ),
    ]
}

/// The number where there is one, else the reason.
fn told(fault: &Value) -> String {
    format!(
        "{} {} {}",
        fault["reason"], fault["expected"], fault["actual"]
    )
}

fn nested(probe: &Probe, levels: usize) -> Value {
    let mut task = probe.group("leaf").value();
    for _ in 1..levels {
        task = probe.group("node").with("children", json!([task])).value();
    }
    task
}

/// The id of the last task, the one without children.
async fn leaf_of(probe: &Probe, root: &str) -> Result<String, Finding> {
    let tree = probe.tree(root).await?;
    text_of(tree.last().unwrap_or(&Value::Null), "id")
}

async fn trees_have_60_levels(probe: &Probe) -> Outcome {
    let deepest = nested(probe, DEPTH_MAX);
    let result = probe.result("tasks.create", deepest).await?;
    let root = text_of(&result, "id")?;
    let tree = probe.tree(&root).await?;
    ensure!(tree.len() == DEPTH_MAX, "{} levels are stored", tree.len());
    probe
        .refused("tasks.create", nested(probe, DEPTH_MAX + 1), TREE)
        .await?;
    let tasks = json!({"tasks": [nested(probe, DEPTH_MAX + 1)]});
    probe.refused("tasks.execute", tasks, TREE).await?;
    let leaf = leaf_of(probe, &root).await?;
    let below = probe.task("below").below(&leaf);
    let error = probe.refused("tasks.create", below.value(), TREE).await?;
    ensure!(
        told(&error.data).contains("61"),
        "{error}: expected the depth"
    );
    let sibling = probe.create(&probe.task("sibling").below(&root)).await?;
    update_refused(probe, &sibling, json!({"parent_id": leaf}), TREE).await?;
    let copy = json!({"task_id": sibling, "parent_id": leaf});
    probe.refused("tasks.copy", copy, TREE).await?;
    let above = text_of(&probe.get(&leaf).await?, "parent_id")?;
    update(probe, &sibling, json!({"parent_id": above})).await?;
    let stored = count(probe).await?;
    ensure!(stored == 61, "{stored} tasks are stored: expected 61");
    seen("60 levels are read back, 61 refused by four methods")
}

async fn bodies_have_16_mib(probe: &Probe) -> Outcome {
    let params = json!({"limit": 1, "user_id": probe.user()});
    let mut body =
        json!({"jsonrpc": "2.0", "method": "tasks.list", "params": params, "id": 1}).to_string();
    body.push_str(&" ".repeat(BODY_BYTES_MAX - body.len()));
    let answer = probe.post(body.clone()).await?;
    answer.reply(&json!(1))?.expect_result()?;
    body.push(' ');
    let answer = probe.post(body).await?;
    let error = answer.expect_error_without_id(-32600)?;
    ensure!(answer.status == 413, "{}: expected 413", answer.status);
    ensure!(
        told(&error.data).contains("16777216"),
        "{error}: expected the limit"
    );
    seen(format!(
        "{BODY_BYTES_MAX} bytes are read, one more is refused"
    ))
}

async fn batches_have_100_calls(probe: &Probe) -> Outcome {
    let request = |id: usize| {
        let task = probe.group("task").value();
        json!({"jsonrpc": "2.0", "method": "tasks.create", "params": task, "id": id})
    };
    let calls: Vec<Value> = (0..=BATCH_CALLS_MAX).map(request).collect();
    let replies = probe.batch(&calls[1..]).await?;
    for reply in replies {
        reply.expect_result()?;
    }
    let answer = probe.post(Value::from(calls).to_string()).await?;
    let error = answer.expect_error_without_id(INVALID_REQUEST)?;
    let fault = told(fault_in(&error, "batch")?);
    ensure!(
        fault.contains("100") && fault.contains("101"),
        "{error}: expected the limit and the number of calls"
    );
    let stored = count(probe).await?;
    ensure!(stored == 100, "{stored} tasks are stored: expected 100");
    seen("100 calls are made, of 101 none")
}

async fn calls_have_20_000_tasks(probe: &Probe) -> Outcome {
    let small = || json!({"name": "t", "parent_id": "root"});
    let mut tasks = vec![small(); MANY_MAX];
    tasks[0] = probe.group("root").element();
    let result = probe
        .result("tasks.create", json!({"tasks": tasks}))
        .await?;
    let root = text_of(&result, "id")?;
    let params = json!({"parent_id": root, "limit": 1});
    let list = probe.result("tasks.list", params).await?;
    expect(&list, &[("total", json!(MANY_MAX - 1))])?;
    tasks.push(small());
    for method in ["tasks.create", "tasks.execute"] {
        let params = json!({"tasks": tasks});
        let error = probe.refused(method, params, INVALID_PARAMS).await?;
        let fault = told(fault_in(&error, "tasks")?);
        ensure!(
            fault.contains("20000") && fault.contains("20001"),
            "{error}: expected the limit and the number of tasks"
        );
    }
    let nested = probe.group("root").with("children", tasks);
    probe
        .refused("tasks.create", nested.value(), INVALID_PARAMS)
        .await?;
    seen("20,000 tasks are stored, 20,001 refused")
}

async fn tasks_have_20_000_dependencies(probe: &Probe) -> Outcome {
    // Ids that no task has: the limit is looked at before the flow is.
    let id = |number: usize| json!({"id": format!("00000000-0000-4000-8000-{number:012}")});
    let mut ids: Vec<Value> = (0..MANY_MAX).map(id).collect();
    let task = probe.task("task");
    let all = task.clone().with("dependencies", ids.clone());
    probe
        .refused("tasks.create", all.value(), DEPENDENCY)
        .await?;
    ids.push(id(MANY_MAX));
    let more = task.with("dependencies", ids);
    let error = probe
        .refused("tasks.create", more.value(), INVALID_PARAMS)
        .await?;
    let fault = told(fault_in(&error, "dependencies")?);
    ensure!(
        fault.contains("20000") && fault.contains("20001"),
        "{error}: expected the limit and the number of dependencies"
    );
    seen("20,000 are looked for, 20,001 refused")
}

/// An object of so many bytes of JSON.
fn object_of(bytes: usize) -> Value {
    json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())})
}

async fn payloads_have_1_mib(probe: &Probe) -> Outcome {
    for field in ["inputs", "params"] {
        // Built-in executors declare their `params`; a task without an executor takes any.
        let largest = probe
            .group("task")
            .with(field, object_of(PAYLOAD_BYTES_MAX));
        let id = probe.create(&largest).await?;
        let stored = probe.get(&id).await?;
        ensure!(
            stored[field] == object_of(PAYLOAD_BYTES_MAX),
            "`{field}` of {PAYLOAD_BYTES_MAX} bytes is not what was sent"
        );
        let larger = object_of(PAYLOAD_BYTES_MAX + 1);
        let task = probe.group("task").with(field, larger.clone());
        let error = probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
        let fault = told(fault_in(&error, field)?);
        ensure!(
            fault.contains("1048576") && fault.contains("1048577"),
            "{error}: expected the limit and the bytes"
        );
        update_refused(probe, &id, json!({field: larger}), INVALID_PARAMS).await?;
    }
    seen("inputs and params of 1 MiB are stored, one byte more is refused")
}

async fn results_have_1_mib(probe: &Probe) -> Outcome {
    let half = || {
        probe
            .task("half")
            .with("inputs", object_of(PAYLOAD_BYTES_MAX * 2 / 3))
    };
    let whole = object_of(PAYLOAD_BYTES_MAX);
    let tasks = [
        probe.group("root"),
        probe
            .task("largest")
            .below("root")
            .with("inputs", whole.clone()),
        NewTask::clone(&half())
            .with("name", "one")
            .with("parent_id", "root"),
        probe.task("both").below("root"),
    ];
    let [root, largest, one, both] = tasks;
    let one = one.with("id", "one").value();
    let other = half()
        .below("root")
        .with("name", "two")
        .with("id", "two")
        .value();
    let both = both
        .with("schemas", json!({"method": GATHERING_EXECUTOR}))
        .after("one")
        .after("two");
    let params = json!({"tasks": [root.element(), largest.element(), one, other, both.element()]});
    let result = probe.result("tasks.execute", params).await?;
    let ids = &result["task_ids"];
    let largest = probe
        .wait_for(&text_of(ids, "largest")?, "completed")
        .await?;
    ensure!(
        largest["result"] == whole,
        "a result of 1 MiB is not what was returned"
    );
    let both = probe.wait_for(&text_of(ids, "both")?, "failed").await?;
    expect(&both, &[("result", Value::Null)])?;
    let error = text_of(&both, "error")?;
    ensure!(error.contains("1048576"), "`{error}`: expected the limit");
    seen(error)
}

async fn names_have_255_characters(probe: &Probe) -> Outcome {
    for character in ["x", "é", "\u{1d11e}"] {
        let longest = character.repeat(NAME_CHARS_MAX);
        let task = probe.task("task").with("name", longest.as_str());
        let id = probe.create(&task).await?;
        expect(&probe.get(&id).await?, &[("name", json!(longest))])?;
        let longer = character.repeat(NAME_CHARS_MAX + 1);
        let task = probe.task("task").with("name", longer.as_str());
        let error = probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
        fault_in(&error, "name")?;
        update_refused(probe, &id, json!({"name": longer}), INVALID_PARAMS).await?;
    }
    let empty = probe.task("task").with("name", "");
    probe
        .refused("tasks.create", empty.value(), INVALID_PARAMS)
        .await?;
    seen("255 characters of one, two and four bytes")
}

async fn limits_are_told(probe: &Probe) -> Outcome {
    let name = probe.task("task").with("name", "x".repeat(300)).value();
    let page = json!({"limit": 1001});
    for (method, params, field, limit, actual) in [
        ("tasks.create", name, "name", "255", "300"),
        ("tasks.list", page, "limit", "1000", "1001"),
    ] {
        let error = probe.refused(method, params, INVALID_PARAMS).await?;
        let fault = told(fault_in(&error, field)?);
        ensure!(
            fault.contains(limit) && fault.contains(actual),
            "{error}: expected {limit} and {actual}"
        );
    }
    seen("name and limit")
}

async fn long_chains_are_taken(probe: &Probe) -> Outcome {
    let link = |number: usize, before: usize| {
        let dependencies = json!([{"id": format!("t{before}")}]);
        json!({"id": format!("t{number}"), "name": "link", "parent_id": "root", "dependencies": dependencies})
    };
    let mut tasks: Vec<Value> = (2..=CHAIN_TASKS).map(|n| link(n, n - 1)).collect();
    let first = json!({"id": "t1", "name": "link", "parent_id": "root"});
    tasks.extend([probe.group("root").element(), first]);
    probe
        .result("tasks.create", json!({"tasks": tasks}))
        .await?;
    tasks.pop();
    tasks.push(link(1, CHAIN_TASKS));
    let params = json!({"tasks": tasks});
    let error = probe.refused("tasks.create", params, CIRCULAR).await?;
    let length = error.data["cycle"].as_array().map(Vec::len);
    ensure!(
        length == Some(CHAIN_TASKS + 1),
        "`cycle` has {length:?} ids: expected {}",
        CHAIN_TASKS + 1
    );
    seen(format!("a chain and a cycle of {CHAIN_TASKS} tasks"))
}
