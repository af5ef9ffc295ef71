//! What this project decided. Section: Methods, `tasks.execute`

use super::looks::*;
use super::streams::followed;
use crate::clauses::prelude::*;

/// A method that no executor has.
const NO_SUCH: &str = "conformance_no_such_executor";

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/methods.execute/1-tasks-or-task-id",
            "`tasks` creates a tree and runs it, `task_id` runs a stored one; both, neither, or an empty array is -32602",
            exactly_one_target_is_taken,
        ),
        decided(
            "semantics/methods.execute/2-stored-in-tasks",
            "a stored id inside `tasks` is -32602, and points to `task_id`",
            stored_ids_inside_tasks_are_refused,
        ),
        decided(
            "semantics/methods.execute/3-nothing-to-do",
            "a set with nothing pending or failed in it is -32006",
            nothing_to_do_is_refused,
        ),
        decided(
            "semantics/methods.execute/4-already-executing",
            "an uncompleted task that an active run covers is -32008; a completed one is no hindrance",
            two_runs_do_not_share_open_tasks,
        ),
        decided(
            "semantics/methods.execute/5-unknown-executor",
            "a method that no executor has is -32003, and nothing is stored or started",
            unknown_executors_are_refused,
        ),
        decided(
            "semantics/methods.execute/6-create-unknown-executor",
            "`tasks.create` takes a method that no executor has yet",
            unknown_executors_can_be_stored,
        ),
        decided(
            "semantics/methods.execute/7-allow-unknown",
            "with `allow_unknown_executors` such a task waits, pending, while the others run",
            allowed_unknown_executors_are_waited_for,
        ),
        decided(
            "semantics/methods.execute/8-executor-wait",
            "after `executor_wait_seconds` it starts and fails with ``executor `x` not found``",
            waiting_for_executors_ends,
        ),
        decided(
            "semantics/methods.execute/9-answer",
            "the answer comes before the run ends: `{root_task_id, status: \"started\", run_id}`, and `task_ids` for new tasks",
            the_answer_comes_at_once,
        ),
        decided(
            "semantics/methods.execute/10-stream",
            "with `metadata.stream` or `use_streaming` the answer is an event stream that begins with the JSON-RPC answer",
            streams_begin_with_the_answer,
        ),
        decided(
            "semantics/methods.execute/11-joins-no-flow",
            "`tasks` with a stored parent is -32010, with a stored dependency -32011",
            new_trees_join_no_flow,
        ),
        decided(
            "semantics/methods.execute/12-executor-wait-default",
            "`executor_wait_seconds` is 300 when it is left out",
            executors_are_waited_for_five_minutes,
        ),
    ]
}

async fn exactly_one_target_is_taken(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("stored")).await?;
    let new = list(&[probe.task("new")]);
    let both = json!({"task_id": id, "tasks": new["tasks"]});
    for params in [
        both,
        json!({}),
        json!({"tasks": []}),
        json!({"tasks": {}}),
        json!({"tasks": [1]}),
    ] {
        probe
            .refused("tasks.execute", params, INVALID_PARAMS)
            .await?;
    }
    expect_status(probe, &id, "pending").await?;
    let stored = count(probe).await?;
    ensure!(stored == 1, "{stored} tasks are stored: expected 1");
    execute(probe, &id).await?;
    probe.wait_for(&id, "completed").await?;
    let started = probe.run(&[probe.task("new")]).await?;
    probe.wait_for(&started.root, "completed").await?;
    seen("each alone runs; both, neither and none are refused")
}

async fn stored_ids_inside_tasks_are_refused(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("stored")).await?;
    let own = probe.task("own").with("id", id.as_str()).value();
    let below = probe
        .task("own")
        .below("root")
        .with("id", id.as_str())
        .value();
    for tasks in [json!([own]), json!([probe.group("root").element(), below])] {
        let params = json!({"tasks": tasks});
        let error = probe
            .refused("tasks.execute", params, INVALID_PARAMS)
            .await?;
        let fault = fault_in(&error, "id")?;
        ensure!(
            fault["expected"].to_string().contains("task_id"),
            "{error}: expected a hint at `task_id`"
        );
    }
    expect_status(probe, &id, "pending").await?;
    let stored = count(probe).await?;
    ensure!(stored == 1, "{stored} tasks are stored: expected 1");
    seen("as root and below a new root")
}

async fn nothing_to_do_is_refused(probe: &Probe) -> Outcome {
    let (started, _) =
        run_to_end(probe, &[probe.group("root"), probe.task("a").below("root")]).await?;
    let id = probe.create(&probe.task("cancelled")).await?;
    probe.cancel(&id).await?;
    for id in [&started.root, &id] {
        let params = json!({"task_id": id});
        probe.refused("tasks.execute", params, TRANSITION).await?;
    }
    // One open task below is enough.
    let late = probe
        .create(&probe.task("late").below(&started.root))
        .await?;
    execute(probe, &started.root).await?;
    probe.wait_for(&late, "completed").await?;
    seen("refused for completed and cancelled sets")
}

async fn two_runs_do_not_share_open_tasks(probe: &Probe) -> Outcome {
    let tasks = [
        probe.task("root"),
        probe.task("done").below("root"),
        probe.slow("slow", FOREVER_MS).below("root"),
        probe.task("waiting").below("root").after("slow"),
        probe.task("needs-slow").below("root").after("slow"),
        probe.task("needs-done").below("root").after("done"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let id = |alias: &str| text_of(&ids, alias);
    for alias in ["done", "waiting"] {
        execute(probe, &id(alias)?).await?;
    }
    probe.wait_for(&id("slow")?, "in_progress").await?;
    probe.wait_for(&id("done")?, "completed").await?;
    for alias in ["slow", "waiting", "needs-slow", "root"] {
        let params = json!({"task_id": id(alias)?});
        probe.refused("tasks.execute", params, EXECUTING).await?;
    }
    execute(probe, &id("needs-done")?).await?;
    probe.wait_for(&id("needs-done")?, "completed").await?;
    probe.cancel(&id("slow")?).await?;
    seen("refused for running, waiting, needed and containing tasks")
}

async fn unknown_executors_are_refused(probe: &Probe) -> Outcome {
    let unknown = || {
        probe
            .task("unknown")
            .with("schemas", json!({"method": NO_SUCH}))
    };
    let new = list(&[
        probe.group("root"),
        probe.task("known").below("root"),
        unknown().below("root"),
    ]);
    let error = probe.refused("tasks.execute", new, NO_EXECUTOR).await?;
    let fault = fault_in(&error, "method")?;
    expect(
        fault,
        &[
            ("actual", json!(NO_SUCH)),
            ("path", json!(["tasks", 2, "schemas", "method"])),
        ],
    )?;
    let stored = count(probe).await?;
    ensure!(stored == 0, "{stored} tasks are stored: expected none");
    let ids = create_all(
        probe,
        &[
            probe.group("root"),
            probe.task("known").below("root"),
            unknown().below("root"),
        ],
    )
    .await?;
    let params = json!({"task_id": ids["root"]});
    probe.refused("tasks.execute", params, NO_EXECUTOR).await?;
    for alias in ["root", "known", "unknown"] {
        let task = expect_status(probe, &text_of(&ids, alias)?, "pending").await?;
        expect(&task, &[("run", Value::Null), ("attempt", json!(0))])?;
    }
    execute(probe, &text_of(&ids, "known")?).await?;
    seen(error.to_string())
}

async fn unknown_executors_can_be_stored(probe: &Probe) -> Outcome {
    let task = probe
        .task("task")
        .with("schemas", json!({"method": NO_SUCH}));
    let id = probe.create(&task).await?;
    expect(
        &probe.get(&id).await?["schemas"],
        &[("method", json!(NO_SUCH))],
    )?;
    let known = probe.create(&probe.task("known")).await?;
    update(probe, &known, json!({"schemas": {"method": NO_SUCH}})).await?;
    seen("created, and set by an update")
}

/// Runs a group of a known and an unknown task, behind which a third one waits.
async fn run_unknown(probe: &Probe, wait_seconds: Option<u64>) -> Result<Value, Finding> {
    let unknown = probe
        .task("unknown")
        .with("schemas", json!({"method": NO_SUCH}));
    let mut params = list(&[
        probe.group("root"),
        probe.task("known").below("root"),
        unknown.below("root").after("known"),
    ]);
    params["allow_unknown_executors"] = json!(true);
    if let Some(seconds) = wait_seconds {
        params["executor_wait_seconds"] = json!(seconds);
    }
    let result = probe.result("tasks.execute", params).await?;
    Ok(result["task_ids"].clone())
}

async fn allowed_unknown_executors_are_waited_for(probe: &Probe) -> Outcome {
    // Without `executor_wait_seconds`: for five minutes.
    let ids = run_unknown(probe, None).await?;
    probe
        .wait_for(&text_of(&ids, "known")?, "completed")
        .await?;
    let unknown = expect_status(probe, &text_of(&ids, "unknown")?, "pending").await?;
    expect(
        &unknown,
        &[("attempt", json!(0)), ("started_at", Value::Null)],
    )?;
    let root = expect_status(probe, &text_of(&ids, "root")?, "in_progress").await?;
    expect(&root["run"], &[("state", json!("running"))])?;
    probe.cancel(&text_of(&ids, "root")?).await?;
    seen("pending while the run goes on")
}

/// As the history of the run tells it.
async fn executors_are_waited_for_five_minutes(probe: &Probe) -> Outcome {
    for (given, expected) in [(None, 300.0), (Some(7), 7.0)] {
        let ids = run_unknown(probe, given).await?;
        let root = text_of(&ids, "root")?;
        let runs = history(probe, json!({"task_id": root, "types": ["run_started"]})).await?;
        ensure!(runs.len() == 1, "{} runs are told: expected 1", runs.len());
        expect(
            &runs[0]["data"],
            &[("executor_wait_seconds", json!(expected))],
        )?;
        probe.cancel(&root).await?;
    }
    seen("300 when it is left out, 7 when that is given")
}

async fn waiting_for_executors_ends(probe: &Probe) -> Outcome {
    for seconds in [0, 1] {
        let ids = run_unknown(probe, Some(seconds)).await?;
        let task = probe.wait_for(&text_of(&ids, "unknown")?, "failed").await?;
        let error = format!("executor `{NO_SUCH}` not found");
        expect(&task, &[("error", json!(error)), ("attempt", json!(1))])?;
        let known = probe.get(&text_of(&ids, "known")?).await?;
        let waited = ms_between(
            instant(&known, "completed_at")?,
            instant(&task, "started_at")?,
        )?;
        ensure!(
            waited >= seconds * 1000,
            "it failed {waited} ms after it was ready: expected {seconds} s or more"
        );
    }
    let odd = json!({"task_id": UNKNOWN_ID, "executor_wait_seconds": -1});
    let error = probe.refused("tasks.execute", odd, INVALID_PARAMS).await?;
    fault_in(&error, "executor_wait_seconds")?;
    seen("after 0 and after 1 s, counted from when it was ready")
}

async fn the_answer_comes_at_once(probe: &Probe) -> Outcome {
    let started = probe.run(&[probe.slow("slow", FOREVER_MS)]).await?;
    let result = &started.result;
    expect(
        result,
        &[
            ("status", json!("started")),
            ("root_task_id", result["task_ids"]["slow"].clone()),
        ],
    )?;
    let task = probe.get(&started.root).await?;
    expect(
        &task["run"],
        &[
            ("id", result["run_id"].clone()),
            ("state", json!("running")),
        ],
    )?;
    probe.cancel(&started.root).await?;
    let root = probe.create(&probe.task("root")).await?;
    let child = probe.create(&probe.task("child").below(&root)).await?;
    let stored = execute(probe, &child).await?;
    expect(
        &stored,
        &[("status", json!("started")), ("root_task_id", json!(root))],
    )?;
    text_of(&stored, "run_id")?;
    seen(shown(stored))
}

async fn streams_begin_with_the_answer(probe: &Probe) -> Outcome {
    let messages = followed(probe, &[probe.task("task")]).await?;
    let first = messages.first().unwrap_or(&Value::Null);
    let result = Reply::of(first, &json!("stream"), "tasks.execute")?.expect_result()?;
    expect(&result, &[("status", json!("started"))])?;
    let root = text_of(&result, "root_task_id")?;
    expect_status(probe, &root, "completed").await?;
    seen(shown(result))
}

async fn new_trees_join_no_flow(probe: &Probe) -> Outcome {
    let stored = probe.create(&probe.group("stored")).await?;
    let below = list(&[probe.task("task").below(&stored)]);
    let error = probe.refused("tasks.execute", below, PARENT).await?;
    let fault = fault_in(&error, "parent_id")?;
    ensure!(
        fault["path"] == json!(["tasks", 0, "parent_id"]),
        "{error}: expected the path of the parent"
    );
    let behind = list(&[probe.task("task").after(&stored)]);
    let error = probe.refused("tasks.execute", behind, DEPENDENCY).await?;
    fault_in(&error, "id")?;
    let found = count(probe).await?;
    ensure!(found == 1, "{found} tasks are stored: expected 1");
    seen("a stored parent and a stored dependency are refused")
}
