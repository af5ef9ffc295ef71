//! What this project decided. Section: Dependencies and failure

use super::looks::*;
use crate::clauses::prelude::*;

/// Runs programs, so that its limit follows the processor.
const PROGRAM_EXECUTOR: &str = "command_executor";
/// How many wait side by side in executors that only wait.
const WAITING_LIMIT: u64 = 256;
/// Tasks beyond the limit in the checks of it.
const BEYOND: u64 = 12;
/// Looks at how many run, while nothing ends.
const LOOKS: usize = 5;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/dependencies/1-required",
            "a dependency is required unless it says otherwise, and only completion satisfies it",
            required_ones_must_complete,
        ),
        decided(
            "semantics/dependencies/2-optional",
            "an optional dependency is waited for, and any end of it satisfies",
            optional_ones_must_end,
        ),
        decided(
            "semantics/dependencies/3-blocked",
            "a blocked dependency blocks its dependents, optional or not",
            blocked_ones_block,
        ),
        decided(
            "semantics/dependencies/4-no-cascade",
            "a failed or cancelled required dependency leaves its dependents pending, to run later",
            failures_do_not_cascade,
        ),
        decided(
            "semantics/dependencies/5-blocked-by",
            "`tasks.get` of such a dependent says `blocked_by`, with id and status of each",
            blockers_are_named,
        ),
        decided(
            "semantics/dependencies/6-duplicates",
            "a dependency that is listed twice is -32602",
            duplicates_are_refused,
        ),
        decided(
            "semantics/dependencies/7-priority",
            "among ready tasks the priority decides, 0 first",
            priority_decides,
        ),
        decided(
            "semantics/dependencies/8-null-priority",
            "a priority that is null or absent is 2",
            null_priority_is_two,
        ),
        not_testable(
            Level::Decided,
            "semantics/dependencies/9-age-across-flows",
            "among ready tasks of one priority the longer wait decides, across all flows",
            "a client cannot make slots free one by one on a server that others use; \
             tests/core/application/slots.rs: urgency_then_waiting_time_decides_across_flows",
        ),
        decided(
            "semantics/dependencies/10-bound",
            "no more than an executor's limit run at once; the others wait, pending",
            limits_hold,
        ),
        decided(
            "semantics/dependencies/11-default-bound",
            "256 run at once in executors that wait, unless the server was told otherwise",
            limits_are_shown,
        ),
        not_testable(
            Level::Decided,
            "semantics/dependencies/12-default-bound-of-programs",
            "one for each processor runs at once in `command_executor`, unless the server was told otherwise",
            "a client sees neither the processors of a server nor its settings; src/engine/executor/registry/tests.rs: \
             bounds_come_from_the_configuration_or_the_description",
        ),
    ]
}

async fn required_ones_must_complete(probe: &Probe) -> Outcome {
    let implicit = |alias: &str, on: &str| {
        probe
            .task(alias)
            .below("root")
            .with("dependencies", json!([{"id": on}]))
    };
    let tasks = [
        probe.group("root"),
        probe.task("good").below("root"),
        probe.failing("bad").below("root"),
        probe.slow("off", FOREVER_MS).below("root"),
        implicit("after-good", "good"),
        implicit("after-bad", "bad"),
        probe.task("after-off").below("root").after("off"),
    ];
    let started = probe.run(&tasks).await?;
    probe.cancel(started.id("off")?).await?;
    end_of_run(probe, &started.root).await?;
    let good = expect_status(probe, started.id("good")?, "completed").await?;
    let after = expect_status(probe, started.id("after-good")?, "completed").await?;
    expect(&after["dependencies"][0], &[("required", json!(true))])?;
    ensure!(
        instant(&after, "started_at")? >= instant(&good, "completed_at")?,
        "a task started before its dependency had completed"
    );
    expect_status(probe, started.id("after-bad")?, "pending").await?;
    expect_status(probe, started.id("after-off")?, "pending").await?;
    seen("behind completed, failed and cancelled tasks")
}

async fn optional_ones_must_end(probe: &Probe) -> Outcome {
    expect_after_any_end(probe, NewTask::after_end_of).await?;
    seen("completed, failed and cancelled all satisfy")
}

async fn blocked_ones_block(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.failing("bad").below("root"),
        probe.task("blocked").below("root").after("bad"),
        probe.task("required").below("root").after("blocked"),
        probe.task("optional").below("root").after_end_of("blocked"),
    ];
    let (started, root) = run_to_end(probe, &tasks).await?;
    for alias in ["blocked", "required", "optional"] {
        let task = expect_status(probe, started.id(alias)?, "pending").await?;
        expect(
            &task,
            &[("started_at", Value::Null), ("error", Value::Null)],
        )?;
    }
    expect(&root["run"], &[("state", json!("failed"))])?;
    expect(&root["run"]["counts"], &[("pending", json!(3))])?;
    seen("all three stay pending and the run ends")
}

async fn failures_do_not_cascade(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.failing("bad").below("root"),
        probe.task("after").below("root").after("bad"),
    ];
    let (started, _) = run_to_end(probe, &tasks).await?;
    let (bad, after) = (started.id("bad")?, started.id("after")?);
    expect_status(probe, after, "pending").await?;
    let mended =
        json!({"inputs": {}, "params": null, "schemas": probe.task("x").value()["schemas"]});
    update(probe, bad, mended).await?;
    probe.result("tasks.retry", json!({"task_id": bad})).await?;
    end_of_run(probe, bad).await?;
    expect_status(probe, bad, "completed").await?;
    expect_status(probe, after, "completed").await?;
    seen("the dependent ran after its mended dependency")
}

async fn blockers_are_named(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.failing("bad").below("root"),
        probe.slow("off", FOREVER_MS).below("root"),
        probe.task("good").below("root"),
        probe
            .task("after")
            .below("root")
            .after("bad")
            .after("off")
            .after("good"),
        probe
            .task("free")
            .below("root")
            .after("good")
            .after_end_of("bad"),
    ];
    let started = probe.run(&tasks).await?;
    let (bad, off) = (started.id("bad")?, started.id("off")?);
    probe.cancel(off).await?;
    end_of_run(probe, &started.root).await?;
    let after = expect_status(probe, started.id("after")?, "pending").await?;
    let expected = json!([{"id": bad, "status": "failed"}, {"id": off, "status": "cancelled"}]);
    expect(&after, &[("blocked_by", expected)])?;
    let free = expect_status(probe, started.id("free")?, "completed").await?;
    expect(&free, &[("blocked_by", Value::Null)])?;
    seen(shown(&after["blocked_by"]))
}

async fn duplicates_are_refused(probe: &Probe) -> Outcome {
    let first = probe.create(&probe.task("first")).await?;
    let twice = probe
        .task("task")
        .below(&first)
        .after(&first)
        .after_end_of(&first);
    let error = probe
        .refused("tasks.create", twice.value(), INVALID_PARAMS)
        .await?;
    fault_in(&error, "id")?;
    let task = probe.create(&probe.task("task").below(&first)).await?;
    let updates = json!({"dependencies": twice.value()["dependencies"]});
    update_refused(probe, &task, updates, INVALID_PARAMS).await?;
    let by_name = [
        probe.group("root"),
        probe.task("a").below("root"),
        probe
            .task("b")
            .below("root")
            .after("a")
            .after(&probe.name("a")),
    ];
    probe
        .refused("tasks.create", list(&by_name), INVALID_PARAMS)
        .await?;
    seen("by id, and by id and name")
}

/// How many tasks of the slow executor run at once.
async fn limit(probe: &Probe) -> Result<u64, Finding> {
    let name = &probe.options().slow_executor;
    let executors = probe.result("system.executors", json!({})).await?;
    let own = executors["executors"].as_array().into_iter().flatten();
    let limit = own
        .filter(|executor| executor["name"] == name.as_str())
        .find_map(|executor| executor["limit"].as_u64());
    let limit = limit
        .ok_or_else(|| Finding::failed(format!("no `limit` of {name} in {}", shown(&executors))))?;
    if limit > 2_000 || probe.options().slow_inputs.is_some() {
        return Err(Finding::skipped(
            "the slow executor cannot be filled in a short time",
        ));
    }
    Ok(limit)
}

/// A group and so many short tasks more than may run at once; the last ones are urgent.
async fn crowd(probe: &Probe) -> Result<Vec<Value>, Finding> {
    let limit = limit(probe).await?;
    let mut tasks = vec![probe.group("root").element()];
    for number in 0..limit + BEYOND {
        let priority = if number < limit { 3 } else { 0 };
        let task = probe.slow("task", 300).below("root");
        tasks.push(task.with("priority", priority).value());
    }
    let result = probe
        .result("tasks.execute", json!({"tasks": tasks}))
        .await?;
    let root = text_of(&result, "root_task_id")?;
    probe.wait_for(&root, "completed").await?;
    let children = probe
        .result("tasks.children", json!({"parent_id": root}))
        .await?;
    let children = children["children"].as_array().cloned().unwrap_or_default();
    ensure!(
        children.len() as u64 == limit + BEYOND,
        "{} children are stored",
        children.len()
    );
    Ok(children)
}

async fn priority_decides(probe: &Probe) -> Outcome {
    let tasks = crowd(probe).await?;
    let (mut urgent, mut idle) = (Vec::new(), Vec::new());
    for task in &tasks {
        let begin = instant(task, "started_at")?;
        if task["priority"] == 0 {
            urgent.push(begin);
        } else {
            idle.push(begin);
        }
    }
    let (urgent, idle) = (urgent.iter().max(), idle.iter().min());
    ensure!(
        urgent <= idle,
        "the last urgent task started at {urgent:?}, after the first idle one at {idle:?}"
    );
    seen(format!(
        "{BEYOND} urgent tasks started before or with the first of the others"
    ))
}

async fn null_priority_is_two(probe: &Probe) -> Outcome {
    let absent = probe.create(&probe.task("absent")).await?;
    let null = probe.task("null").with("priority", Value::Null);
    let null = probe.create(&null).await?;
    for id in [&absent, &null] {
        expect(&probe.get(id).await?, &[("priority", json!(2))])?;
    }
    for priority in [json!(-1), json!(4), json!(1.5), json!("1")] {
        let task = probe.task("task").with("priority", priority.clone());
        let error = probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
        fault_in(&error, "priority")?;
        update_refused(probe, &null, json!({"priority": priority}), INVALID_PARAMS).await?;
    }
    seen("2 for both, and nothing outside of 0 to 3")
}

async fn limits_hold(probe: &Probe) -> Outcome {
    let limit = limit(probe).await?;
    let mut tasks = vec![probe.group("root").element()];
    for _ in 0..limit + BEYOND {
        // None ends by itself: an end is recorded a little after its slot has become free.
        tasks.push(probe.slow("task", FOREVER_MS).below("root").value());
    }
    let params = json!({"tasks": tasks});
    let result = probe.result("tasks.execute", params).await?;
    let root = text_of(&result, "root_task_id")?;
    let number = async |status: &str| {
        let params = json!({"parent_id": root, "status": status, "limit": 1});
        let list = probe.result("tasks.list", params).await?;
        let none = || Finding::failed(format!("no `total` in {}", shown(&list)));
        list["total"].as_u64().ok_or_else(none)
    };
    let mut most = 0;
    for _ in 0..LOOKS {
        most = most.max(number("in_progress").await?);
    }
    let waiting = number("pending").await?;
    probe.cancel(&root).await?;
    ensure!(
        most <= limit && waiting >= BEYOND,
        "{most} ran at once, {waiting} waited, the limit is {limit}"
    );
    seen(format!(
        "{most} ran at once, {waiting} waited, the limit is {limit}"
    ))
}

async fn limits_are_shown(probe: &Probe) -> Outcome {
    let executors = probe.result("system.executors", json!({})).await?;
    let list = executors["executors"].as_array().into_iter().flatten();
    let (mut with_default, mut with_other) = (Vec::new(), Vec::new());
    for executor in list {
        let (name, limit) = (text_of(executor, "name")?, executor["limit"].as_u64());
        let none = || Finding::failed(format!("{name}: no positive `limit` in {executor}"));
        match limit.filter(|limit| *limit > 0).ok_or_else(none)? {
            _ if name == PROGRAM_EXECUTOR => {}
            WAITING_LIMIT => with_default.push(name),
            limit => with_other.push(format!("{name} {limit}")),
        }
    }
    ensure!(
        !with_default.is_empty() || !with_other.is_empty(),
        "no executors in {}",
        shown(&executors)
    );
    if !with_other.is_empty() {
        let text = format!("other limits, which may be settings: {with_other:?}");
        return Err(Finding::skipped(text));
    }
    seen(with_default.join(", "))
}
