//! What this project decided. Section: State machine

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/states/1-start",
            "a run starts a pending task: `started_at` is set and the attempt counted",
            a_start_is_counted,
        ),
        decided(
            "semantics/states/2-cancelled-before-start",
            "a pending task can be cancelled: `error` and `completed_at` are set, and it never starts",
            pending_tasks_are_cancelled,
        ),
        decided(
            "semantics/states/3-deadline-before-start",
            "a task whose deadline passes before it could start is cancelled, and `error` says so",
            late_tasks_are_cancelled,
        ),
        decided(
            "semantics/states/4-completed",
            "a completed task has `result`, `progress` 1 and `completed_at`, and no error",
            completed_tasks_have_a_result,
        ),
        decided(
            "semantics/states/5-failed",
            "a failed task has a text in `error`, `completed_at`, the progress it had, and no result",
            failed_tasks_have_an_error,
        ),
        decided(
            "semantics/states/6-cancelled-under-way",
            "a task in progress can be cancelled: it is stopped, and a late outcome is ignored",
            running_tasks_are_cancelled,
        ),
        decided(
            "semantics/states/7-failed-to-pending",
            "a failed task that is run again is pending at first, with its old outcome and times gone",
            failed_tasks_begin_anew,
        ),
        decided(
            "semantics/states/8-nothing-else",
            "every other transition is -32006 and changes nothing",
            other_transitions_are_refused,
        ),
        decided(
            "semantics/states/9-copy-to-rerun",
            "a closed task is not run again; its copy is",
            closed_tasks_run_as_copies,
        ),
        decided(
            "semantics/states/10-default-error",
            "`error` of a cancelled task has a default text, or the reason that was given",
            cancellations_have_a_text,
        ),
        decided(
            "semantics/states/11-not-writable",
            "`status`, `result`, `error`, `progress`, `started_at`, `completed_at` are -32602 in create and update, unless they are `pending`, 0 and null",
            outcomes_are_not_writable,
        ),
        decided(
            "semantics/states/12-times-overwritten",
            "`created_at` and `updated_at` are accepted and overwritten",
            times_are_overwritten,
        ),
        decided(
            "semantics/states/13-complete-example",
            "the data model's complete example, with ids of the call, can be posted",
            the_complete_example_is_taken,
        ),
        decided(
            "semantics/states/14-unknown-fields",
            "unknown fields are -32602 in create and update, all of them named",
            unknown_fields_are_told,
        ),
    ]
}

async fn a_start_is_counted(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.slow("slow", FOREVER_MS)).await?;
    let before = probe.get(&id).await?;
    expect(
        &before,
        &[("attempt", json!(0)), ("started_at", Value::Null)],
    )?;
    execute(probe, &id).await?;
    let running = probe.wait_for(&id, "in_progress").await?;
    expect(
        &running,
        &[("attempt", json!(1)), ("completed_at", Value::Null)],
    )?;
    let (created, started) = (
        instant(&running, "created_at")?,
        instant(&running, "started_at")?,
    );
    ensure!(
        created <= started,
        "started {started} before it was created {created}"
    );
    probe.cancel(&id).await?;
    seen(format!("attempt 1 at {started}"))
}

async fn pending_tasks_are_cancelled(probe: &Probe) -> Outcome {
    let tasks = [
        probe.slow("root", FOREVER_MS),
        probe.task("waiting").below("root").after_end_of("root"),
    ];
    let started = probe.run(&tasks).await?;
    let waiting = started.id("waiting")?.to_owned();
    let result = probe.cancel(&waiting).await?;
    expect(
        &result,
        &[("task_id", json!(waiting)), ("status", json!("cancelled"))],
    )?;
    probe.cancel(&started.root).await?;
    end_of_run(probe, &started.root).await?;
    let task = expect_status(probe, &waiting, "cancelled").await?;
    text_of(&task, "error")?;
    instant(&task, "completed_at")?;
    expect(
        &task,
        &[
            ("started_at", Value::Null),
            ("result", Value::Null),
            ("attempt", json!(0)),
        ],
    )?;
    seen(text_of(&task, "error")?)
}

async fn late_tasks_are_cancelled(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.slow("first", FOREVER_MS).below("root"),
        probe.task("late").below("root").after("first"),
    ];
    let [root, first, late] = tasks;
    let soon = from_now(probe, 1).await?;
    let late = late.with("params", json!({"deadline": soon}));
    let started = probe.run(&[root, first, late]).await?;
    let late = probe.wait_for(started.id("late")?, "cancelled").await?;
    let error = text_of(&late, "error")?;
    ensure!(
        error.contains("deadline"),
        "`{error}`: expected the deadline"
    );
    expect(&late, &[("started_at", Value::Null)])?;
    instant(&late, "completed_at")?;
    expect_status(probe, started.id("first")?, "in_progress").await?;
    probe.cancel(&started.root).await?;
    seen(error)
}

async fn completed_tasks_have_a_result(probe: &Probe) -> Outcome {
    let task = probe.task("task").with("inputs", json!({"x": [1, null]}));
    let started = probe.run(std::slice::from_ref(&task)).await?;
    let task = probe.wait_for(&started.root, "completed").await?;
    expect(&task, &[("progress", json!(1.0)), ("error", Value::Null)])?;
    ensure!(
        task["result"].is_object(),
        "no `result` in {}",
        shown(&task)
    );
    let (begin, end) = (
        instant(&task, "started_at")?,
        instant(&task, "completed_at")?,
    );
    ensure!(begin <= end, "ended {end} before it began {begin}");
    seen(shown(&task["result"]))
}

async fn failed_tasks_have_an_error(probe: &Probe) -> Outcome {
    let timeout = json!({"timeout_seconds": 1});
    let part = probe.slow("part", 2_000).with("params", timeout);
    let started = probe.run(&[part]).await?;
    let part = probe.wait_for(&started.root, "failed").await?;
    let error = text_of(&part, "error")?;
    ensure!(!error.is_empty(), "`error` is empty in {}", shown(&part));
    instant(&part, "completed_at")?;
    expect(&part, &[("result", Value::Null)])?;
    let progress = part["progress"].as_f64().unwrap_or(1.0);
    ensure!(
        progress > 0.0 && progress < 1.0,
        "`progress` is {progress}: expected what it had when it failed"
    );
    seen(format!("{error}, at {progress}"))
}

async fn running_tasks_are_cancelled(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.slow("short", 500).below("root"),
        // Ends later, so that the outcome of the first would have come by then.
        probe.slow("longer", 1_500).below("root"),
    ];
    let started = probe.run(&tasks).await?;
    let short = started.id("short")?;
    probe.wait_for(short, "in_progress").await?;
    let result = probe.cancel(short).await?;
    expect(&result, &[("status", json!("cancelled"))])?;
    let before = expect_status(probe, short, "cancelled").await?;
    instant(&before, "completed_at")?;
    probe.wait_for(started.id("longer")?, "completed").await?;
    let after = probe.get(short).await?;
    ensure!(
        before == after,
        "a late outcome changed {} to {}",
        shown(&before),
        shown(&after)
    );
    seen(text_of(&after, "error")?)
}

async fn failed_tasks_begin_anew(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.failing("first").below("root"),
        probe.failing("second").below("root"),
    ];
    let (started, _) = run_to_end(probe, &tasks).await?;
    let (first, second) = (started.id("first")?, started.id("second")?);
    expect_status(probe, second, "failed").await?;
    let slow = probe.slow("first", FOREVER_MS).value();
    let slower = json!({"inputs": slow["inputs"], "params": null});
    update(probe, first, slower).await?;
    update(probe, second, json!({"dependencies": [{"id": first}]})).await?;
    execute(probe, &started.root).await?;
    probe.wait_for(first, "in_progress").await?;
    let task = expect_status(probe, second, "pending").await?;
    for field in ["error", "result", "started_at", "completed_at"] {
        expect(&task, &[(field, Value::Null)])?;
    }
    expect(&task, &[("progress", json!(0.0)), ("attempt", json!(1))])?;
    probe.cancel(&started.root).await?;
    seen(shown(task))
}

async fn other_transitions_are_refused(probe: &Probe) -> Outcome {
    let completed = probe.run(&[probe.task("completed")]).await?.root;
    let failed = probe.run(&[probe.failing("failed")]).await?.root;
    let running = probe.run(&[probe.slow("running", FOREVER_MS)]).await?.root;
    let pending = probe.create(&probe.task("pending")).await?;
    let cancelled = probe.create(&probe.task("cancelled")).await?;
    probe.cancel(&cancelled).await?;
    probe.wait_for(&completed, "completed").await?;
    probe.wait_for(&failed, "failed").await?;
    probe.wait_for(&running, "in_progress").await?;
    let refused = [
        ("tasks.cancel", &completed),
        ("tasks.cancel", &failed),
        ("tasks.cancel", &cancelled),
        ("tasks.execute", &completed),
        ("tasks.execute", &cancelled),
        ("tasks.retry", &completed),
        ("tasks.retry", &cancelled),
        ("tasks.retry", &pending),
        ("tasks.retry", &running),
    ];
    for (method, id) in refused {
        let mut before = probe.get(id).await?;
        let params = json!({"task_id": id});
        let error = probe.refused(method, params, TRANSITION).await?;
        ensure!(
            error.message == "Invalid state transition",
            "{method}: {error}: expected `Invalid state transition`"
        );
        let mut after = probe.get(id).await?;
        for task in [&mut before, &mut after] {
            task["progress"] = Value::Null;
            task["updated_at"] = Value::Null;
        }
        ensure!(
            before == after,
            "{method} changed {} to {}",
            shown(&before),
            shown(&after)
        );
    }
    probe.cancel(&running).await?;
    seen("cancel, execute and retry where they do not belong")
}

async fn closed_tasks_run_as_copies(probe: &Probe) -> Outcome {
    let original = probe.run(&[probe.task("task")]).await?.root;
    let before = probe.wait_for(&original, "completed").await?;
    let copy = probe
        .result("tasks.copy", json!({"task_id": original}))
        .await?;
    let copy = text_of(&copy, "copied_task_id")?;
    execute(probe, &copy).await?;
    let copied = probe.wait_for(&copy, "completed").await?;
    ensure!(
        probe.get(&original).await? == before,
        "the original changed"
    );
    ensure!(
        copied["result"] == before["result"],
        "the copy returned another result"
    );
    seen(format!("{copy} ran"))
}

async fn cancellations_have_a_text(probe: &Probe) -> Outcome {
    let silent = probe.create(&probe.task("silent")).await?;
    probe.cancel(&silent).await?;
    let text = text_of(&probe.get(&silent).await?, "error")?;
    ensure!(!text.is_empty(), "`error` is empty");
    let given = probe.create(&probe.task("given")).await?;
    let params = json!({"task_id": given, "reason": "no longer wanted"});
    probe.result("tasks.cancel", params).await?;
    expect(
        &probe.get(&given).await?,
        &[("error", json!("no longer wanted"))],
    )?;
    seen(text)
}

async fn outcomes_are_not_writable(probe: &Probe) -> Outcome {
    let time = "2026-01-01T00:00:00Z";
    let id = probe.create(&probe.task("task")).await?;
    let faulty = [
        (
            "status",
            vec![
                json!("completed"),
                json!("in_progress"),
                json!("done"),
                json!(null),
            ],
        ),
        ("result", vec![json!({}), json!("x")]),
        ("error", vec![json!("e")]),
        (
            "progress",
            vec![json!(0.5), json!(1), json!(-1), json!("0")],
        ),
        ("started_at", vec![json!(time)]),
        ("completed_at", vec![json!(time)]),
    ];
    for (field, values) in faulty {
        for value in values {
            let task = probe.task("task").with(field, value.clone());
            let error = probe
                .refused("tasks.create", task.value(), INVALID_PARAMS)
                .await?;
            fault_in(&error, field)?;
            let error = update_refused(probe, &id, json!({field: value}), INVALID_PARAMS).await?;
            fault_in(&error, field)?;
        }
    }
    let harmless = json!({
        "status": "pending", "progress": 0, "result": null, "error": null,
        "started_at": null, "completed_at": null,
    });
    update(probe, &id, harmless.clone()).await?;
    let task = probe
        .task("task")
        .with("status", "pending")
        .with("progress", 0.0);
    let task = task.with("result", Value::Null).with("error", Value::Null);
    let task = task
        .with("started_at", Value::Null)
        .with("completed_at", Value::Null);
    probe.create(&task).await?;
    seen(harmless.to_string())
}

async fn times_are_overwritten(probe: &Probe) -> Outcome {
    let past = "2001-01-01T00:00:00Z";
    let task = probe
        .task("task")
        .with("created_at", past)
        .with("updated_at", past);
    let id = probe.create(&task).await?;
    let times = json!({"created_at": past, "updated_at": past, "name": probe.name("renamed")});
    update(probe, &id, times).await?;
    let task = probe.get(&id).await?;
    for field in ["created_at", "updated_at"] {
        let time = text_of(&task, field)?;
        ensure!(
            !time.starts_with("2001"),
            "`{field}` is {time}: expected the server's time"
        );
    }
    seen(text_of(&task, "created_at")?)
}

async fn the_complete_example_is_taken(probe: &Probe) -> Outcome {
    let (own, parent, dependency) = (fresh_id(probe, 1), fresh_id(probe, 2), fresh_id(probe, 3));
    let example = json!({
        "id": own, "parent_id": parent, "user_id": probe.user(),
        "name": probe.name("example"), "status": "pending", "priority": 1,
        "dependencies": [{"id": dependency, "required": true}],
        "inputs": {"url": "https://example.com", "timeout": 60},
        "params": {"retry_count": 3, "user_agent": "MyCrawler/1.0"},
        "schemas": {
            "type": "local",
            "method": "web_crawler",
            "input_schema": {"type": "object", "required": ["url"], "properties": {
                "url": {"type": "string", "format": "uri"},
                "timeout": {"type": "integer", "minimum": 1, "default": 30},
            }},
        },
        "result": null, "error": null, "progress": 0.0,
        "created_at": "2026-01-01T00:00:00Z", "started_at": null,
        "updated_at": "2026-01-01T00:00:00Z", "completed_at": null,
    });
    let root = probe.group("root").with("id", parent.as_str()).value();
    let first = probe
        .task("first")
        .below(&parent)
        .with("id", dependency.as_str());
    let params = json!({"tasks": [root, first.value(), example]});
    probe.result("tasks.create", params).await?;
    let stored = probe.get(&own).await?;
    expect_task(&stored)?;
    for (field, value) in example.as_object().into_iter().flatten() {
        if !["created_at", "updated_at"].contains(&field.as_str()) {
            expect(&stored, &[(field, value.clone())])?;
        }
    }
    seen("every member but the times is read back as it was sent")
}

async fn unknown_fields_are_told(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("task")).await?;
    let odd = probe.task("task").with("prioritty", 1).with("owner", "x");
    let below = odd.clone().below("root").element();
    for (method, params) in [
        ("tasks.create", odd.value()),
        (
            "tasks.create",
            json!({"tasks": [probe.group("root").element(), below]}),
        ),
        ("tasks.execute", json!({"tasks": [odd.value()]})),
        (
            "tasks.update",
            json!({"task_id": id, "updates": {"prioritty": 1, "owner": "x"}}),
        ),
    ] {
        let error = probe.refused(method, params, INVALID_PARAMS).await?;
        fault_in(&error, "prioritty")?;
        fault_in(&error, "owner")?;
    }
    let stored = count(probe).await?;
    ensure!(stored == 1, "{stored} tasks are stored: expected 1");
    seen("both unknown fields are named, in create, execute and update")
}
