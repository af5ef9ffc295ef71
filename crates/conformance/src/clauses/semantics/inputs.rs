//! What this project decided. Section: Inputs and schemas

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/inputs/1-create",
            "inputs are checked against `schemas.input_schema` when tasks are created",
            inputs_are_checked_at_create,
        ),
        decided(
            "semantics/inputs/2-update",
            "inputs are checked when inputs or schemas are updated",
            inputs_are_checked_at_update,
        ),
        not_testable(
            Level::Decided,
            "semantics/inputs/3-execution",
            "inputs are checked again before execution",
            "create and update leave no wrong inputs; src/engine/executor/run/tests.rs and \
             tests/core/application/engine.rs: \
             inputs_are_checked_against_the_executor_s_schema_again_before_it_runs",
        ),
        decided(
            "semantics/inputs/4-all-at-once",
            "all faults of a call (fields, references, inputs, executors) come in one answer, each with its path, of all tasks",
            all_violations_come_at_once,
        ),
        decided(
            "semantics/inputs/5-draft-07",
            "schemas are read as draft-07; what is no schema is -32602",
            schemas_are_draft_07,
        ),
        decided(
            "semantics/inputs/6-executor-schema",
            "an executor's own schema is checked too, and shown by `system.executors`",
            executors_have_schemas,
        ),
        not_testable(
            Level::Decided,
            "semantics/inputs/7-result-object",
            "an executor that returns anything but an object fails its task",
            "no executor that comes with the server does; src/engine/executor/run/tests.rs: \
             anything_but_an_object_is_no_result",
        ),
        decided(
            "semantics/inputs/8-timeout",
            "`params.timeout_seconds` bounds each attempt",
            timeouts_bound_attempts,
        ),
        decided(
            "semantics/inputs/9-deadline",
            "`params.deadline` ends what is running and cancels what has not started",
            deadlines_end_tasks,
        ),
        decided(
            "semantics/inputs/10-deadline-inherited",
            "a deadline counts for descendants too, and the earliest of them counts",
            deadlines_are_inherited,
        ),
        decided(
            "semantics/inputs/11-deadline-passed",
            "`tasks.execute` over a deadline that has passed is -32602, and starts nothing",
            passed_deadlines_are_refused,
        ),
        decided(
            "semantics/inputs/12-params",
            "`timeout_seconds` that is no positive number and `deadline` that is no RFC 3339 time are -32602",
            odd_params_are_refused,
        ),
        decided(
            "semantics/inputs/13-unknown-params",
            "members of `params` that an executor does not declare, or that look like the engine's own, are -32602 with a suggestion",
            unknown_params_are_refused,
        ),
    ]
}

/// A task whose schema wants an integer `x` and a text `y`.
fn checked(probe: &Probe, inputs: Value) -> NewTask {
    let schema = json!({
        "type": "object", "required": ["x"], "additionalProperties": false,
        "properties": {"x": {"type": "integer", "minimum": 1}, "y": {"type": "string"}},
    });
    let schemas = json!({"method": probe.options().executor, "input_schema": schema});
    probe
        .task("checked")
        .with("schemas", schemas)
        .with("inputs", inputs)
}

async fn inputs_are_checked_at_create(probe: &Probe) -> Outcome {
    for inputs in [
        json!({}),
        json!({"x": "1"}),
        json!({"x": 0}),
        json!({"x": 1.5}),
        json!({"x": 1, "z": 1}),
    ] {
        let task = checked(probe, inputs);
        probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
        probe
            .refused("tasks.execute", list(&[task]), INVALID_PARAMS)
            .await?;
    }
    let absent = checked(probe, json!({})).without("inputs");
    probe
        .refused("tasks.create", absent.value(), INVALID_PARAMS)
        .await?;
    let stored = count(probe).await?;
    ensure!(stored == 0, "{stored} tasks are stored: expected none");
    let started = probe
        .run(&[checked(probe, json!({"x": 1.0, "y": "é"}))])
        .await?;
    probe.wait_for(&started.root, "completed").await?;
    seen("six wrong inputs are refused, sound ones run")
}

async fn inputs_are_checked_at_update(probe: &Probe) -> Outcome {
    let id = probe.create(&checked(probe, json!({"x": 1}))).await?;
    let error = update_refused(probe, &id, json!({"inputs": {"x": 0}}), INVALID_PARAMS).await?;
    let fault = fault_in(&error, "x")?;
    ensure!(
        fault["path"] == json!(["updates", "inputs", "x"]),
        "{error}: expected the path in the updates"
    );
    let stricter = json!({"method": probe.options().executor, "input_schema": {"required": ["y"]}});
    update_refused(probe, &id, json!({"schemas": stricter}), INVALID_PARAMS).await?;
    update(
        probe,
        &id,
        json!({"schemas": stricter, "inputs": {"y": "text"}}),
    )
    .await?;
    let task = probe.get(&id).await?;
    expect(
        &task,
        &[("inputs", json!({"y": "text"})), ("schemas", stricter)],
    )?;
    seen("of inputs, of schemas, and of both together")
}

async fn all_violations_come_at_once(probe: &Probe) -> Outcome {
    let wrong = checked(probe, json!({"x": "1", "y": 2}));
    let other = checked(probe, json!({}));
    let odd = probe.group("odd").below("root").with("priority", 9);
    let lost = probe.group("lost").below("root").after("nobody");
    let unknown = json!({"method": "no_such_executor"});
    let unknown = probe.group("unknown").below("odd").with("schemas", unknown);
    let tasks = json!({"tasks": [
        probe.group("root").element(),
        wrong.below("root").value(),
        other.below("root").value(),
        odd.element(),
        lost.element(),
        unknown.element(),
    ]});
    for method in ["tasks.create", "tasks.execute"] {
        let error = probe.refused(method, tasks.clone(), INVALID_PARAMS).await?;
        let faults = error.data["errors"].as_array().cloned().unwrap_or_default();
        for path in [
            json!(["tasks", 1, "inputs", "x"]),
            json!(["tasks", 1, "inputs", "y"]),
            json!(["tasks", 2, "inputs", "x"]),
            json!(["tasks", 3, "priority"]),
            json!(["tasks", 4, "dependencies", 0, "id"]),
            // Only an execution needs the executor.
            json!(["tasks", 5, "schemas", "method"]),
        ] {
            let is_due = path[2] != "schemas" || method == "tasks.execute";
            ensure!(
                faults.iter().any(|fault| fault["path"] == path) == is_due,
                "fault at {path} (expected: {is_due}) in {}",
                shown(json!(faults))
            );
        }
        ensure!(
            !faults
                .iter()
                .any(|fault| fault["path"] == json!(["tasks", 5, "parent_id"])),
            "a task with faults is not unknown to others: {}",
            shown(json!(faults))
        );
    }
    seen("six faults of five tasks")
}

async fn schemas_are_draft_07(probe: &Probe) -> Outcome {
    let with = |schema: Value, inputs: Value| {
        let schemas = json!({"method": probe.options().executor, "input_schema": schema});
        probe
            .task("task")
            .with("schemas", schemas)
            .with("inputs", inputs)
    };
    for odd in [
        json!({"type": "text"}),
        json!({"required": "x"}),
        json!({"minimum": "1"}),
        json!(1),
        json!("x"),
    ] {
        let task = with(odd, json!({}));
        probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
    }
    // `items` as a list, `dependencies` and `definitions` are draft-07; `prefixItems` is not.
    let schema = json!({
        "definitions": {"small": {"maximum": 3}},
        "properties": {
            "list": {"items": [{"type": "string"}, {"$ref": "#/definitions/small"}]},
            "new": {"prefixItems": [{"type": "string"}]},
        },
        "dependencies": {"new": ["list"]},
        "if": {"required": ["new"]}, "then": {"required": ["mode"]},
    });
    for (inputs, sound) in [
        (json!({"list": ["a", 3]}), true),
        (json!({"list": [1]}), false),
        (json!({"list": ["a", 4]}), false),
        (json!({"new": [1], "list": [], "mode": 0}), true),
        (json!({"new": [1], "mode": 0}), false),
        (json!({"new": [1], "list": []}), false),
    ] {
        let task = with(schema.clone(), inputs);
        let reply = probe.call("tasks.create", task.value()).await?;
        if sound {
            reply.expect_result()?;
        } else {
            reply.expect_error(INVALID_PARAMS)?;
        }
    }
    seen("draft-07 words count, later ones do not, and what is no schema is refused")
}

async fn executors_have_schemas(probe: &Probe) -> Outcome {
    let executors = probe.result("system.executors", json!({})).await?;
    let name = probe.options().slow_executor.as_str();
    let own = executors["executors"].as_array().into_iter().flatten();
    let schema = own
        .filter(|executor| executor["name"] == name)
        .find_map(|executor| executor["input_schema"].as_object());
    if schema.is_none() {
        return Err(Finding::skipped(format!("{name} has no schema of its own")));
    }
    let wrong = probe
        .slow("wrong", 1)
        .with("inputs", json!({"duration_ms": "long"}));
    let error = probe
        .refused("tasks.create", wrong.value(), INVALID_PARAMS)
        .await?;
    fault_in(&error, "duration_ms")?;
    probe
        .refused("tasks.execute", list(&[wrong]), INVALID_PARAMS)
        .await?;
    let id = probe.create(&probe.slow("right", 1)).await?;
    update_refused(probe, &id, json!({"inputs": {}}), INVALID_PARAMS).await?;
    seen(error.to_string())
}

async fn timeouts_bound_attempts(probe: &Probe) -> Outcome {
    let limited = |ms, seconds: f64| {
        let retry = json!({"max_attempts": 2, "initial_delay_ms": 1});
        let params = json!({"timeout_seconds": seconds, "retry": retry});
        probe.slow("task", ms).with("params", params)
    };
    let started = probe.run(&[limited(FOREVER_MS, 0.2)]).await?;
    let task = probe.wait_for(&started.root, "failed").await?;
    expect(&task, &[("attempt", json!(2))])?;
    let ran = ms_between(
        instant(&task, "started_at")?,
        instant(&task, "completed_at")?,
    )?;
    ensure!(
        ran >= 200,
        "the attempt ended after {ran} ms: expected 200 or more"
    );
    let error = text_of(&task, "error")?;
    let started = probe.run(&[limited(1, 60.0)]).await?;
    probe.wait_for(&started.root, "completed").await?;
    seen(format!("{error}, in each of two attempts"))
}

async fn deadlines_end_tasks(probe: &Probe) -> Outcome {
    let deadline = json!({"deadline": from_now(probe, 1).await?});
    let tasks = [
        probe.group("root"),
        probe
            .slow("slow", FOREVER_MS)
            .below("root")
            .with("params", deadline.clone()),
        probe
            .task("late")
            .below("root")
            .after("slow")
            .with("params", deadline),
    ];
    let started = probe.run(&tasks).await?;
    let slow = probe.wait_for(started.id("slow")?, "failed").await?;
    let late = probe.wait_for(started.id("late")?, "cancelled").await?;
    for task in [&slow, &late] {
        let error = text_of(task, "error")?;
        ensure!(
            error.contains("deadline"),
            "`{error}`: expected the deadline"
        );
    }
    seen(text_of(&slow, "error")?)
}

async fn deadlines_are_inherited(probe: &Probe) -> Outcome {
    let (soon, later) = (from_now(probe, 1).await?, from_now(probe, 600).await?);
    let due = |deadline: &str| json!({"deadline": deadline});
    let tasks = [
        probe.group("root").with("params", due(&later)),
        probe
            .group("strict")
            .below("root")
            .with("params", due(&soon)),
        probe.slow("inherits", FOREVER_MS).below("strict"),
        // Its own is later than its parent's, which counts.
        probe
            .slow("hopes", FOREVER_MS)
            .below("strict")
            .with("params", due(&later)),
        probe.slow("free", FOREVER_MS).below("root"),
    ];
    let started = probe.run(&tasks).await?;
    for alias in ["inherits", "hopes", "strict"] {
        let task = probe.wait_for(started.id(alias)?, "failed").await?;
        let error = text_of(&task, "error")?;
        ensure!(
            error.contains("deadline"),
            "`{alias}`: `{error}`: expected the deadline"
        );
    }
    expect_status(probe, started.id("free")?, "in_progress").await?;
    probe.cancel(&started.root).await?;
    seen("the earliest deadline above ended two tasks and their group")
}

async fn passed_deadlines_are_refused(probe: &Probe) -> Outcome {
    let passed = json!({"deadline": from_now(probe, -60).await?});
    let late = || {
        probe
            .task("late")
            .below("root")
            .with("params", passed.clone())
    };
    let tasks = || {
        [
            probe.group("root"),
            probe.task("task").below("root"),
            late(),
        ]
    };
    let error = probe
        .refused("tasks.execute", list(&tasks()), INVALID_PARAMS)
        .await?;
    let fault = fault_in(&error, "deadline")?;
    ensure!(
        fault["path"] == json!(["tasks", 2, "params", "deadline"]),
        "{error}: expected the path of the deadline"
    );
    let none = count(probe).await?;
    ensure!(none == 0, "{none} tasks are stored: expected none");
    let ids = create_all(probe, &tasks()).await?;
    let error = probe
        .refused(
            "tasks.execute",
            json!({"task_id": ids["root"]}),
            INVALID_PARAMS,
        )
        .await?;
    fault_in(&error, "deadline")?;
    expect_status(probe, &text_of(&ids, "task")?, "pending").await?;
    let inherited = probe.task("child").below(&text_of(&ids, "late")?);
    let inherited = probe.create(&inherited).await?;
    probe
        .refused(
            "tasks.execute",
            json!({"task_id": inherited}),
            INVALID_PARAMS,
        )
        .await?;
    execute(probe, &text_of(&ids, "task")?).await?;
    probe.wait_for(&text_of(&ids, "task")?, "completed").await?;
    seen(error.to_string())
}

async fn odd_params_are_refused(probe: &Probe) -> Outcome {
    let id = probe.create(&probe.task("task")).await?;
    for (field, value) in [
        ("timeout_seconds", json!(0)),
        ("timeout_seconds", json!(-1)),
        ("timeout_seconds", json!("1")),
        ("timeout_seconds", json!(1e300)),
        ("deadline", json!("tomorrow")),
        ("deadline", json!("2026-01-01")),
        ("deadline", json!(1_800_000_000)),
    ] {
        let params = json!({field: value});
        let task = probe.task("task").with("params", params.clone());
        let error = probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
        fault_in(&error, field)?;
        update_refused(probe, &id, json!({"params": params}), INVALID_PARAMS).await?;
    }
    let zone = json!({"deadline": "2999-01-01T00:00:00+05:30", "timeout_seconds": 0.001});
    probe
        .create(&probe.task("task").with("params", zone))
        .await?;
    seen("seven odd values are refused, an offset and a fraction are not")
}

async fn unknown_params_are_refused(probe: &Probe) -> Outcome {
    let near = [
        ("timeout", "timeout_seconds"),
        ("retries", "retry_count"),
        ("deadlin", "deadline"),
    ];
    let own = |task: &NewTask, field: &str| task.clone().with("params", json!({field: 1}));
    // With an executor that declares its members, with one that does not exist yet, with none.
    let unknown = || {
        probe
            .task("task")
            .with("schemas", json!({"method": "web_crawler"}))
    };
    for task in [probe.task("task"), unknown(), probe.group("task")] {
        let id = probe.create(&task).await?;
        for (given, meant) in near {
            let create = own(&task, given).value();
            let error = probe
                .refused("tasks.create", create, INVALID_PARAMS)
                .await?;
            let expected = text_of(fault_in(&error, given)?, "expected")?;
            ensure!(expected.contains(meant), "{error}: expected `{meant}`");
            let updates = json!({"params": {given: 1}});
            update_refused(probe, &id, updates, INVALID_PARAMS).await?;
        }
    }
    let odd = own(&probe.task("task"), "user_agent");
    let error = probe
        .refused("tasks.execute", list(&[odd]), INVALID_PARAMS)
        .await?;
    let expected = text_of(fault_in(&error, "user_agent")?, "expected")?;
    ensure!(
        expected.contains("timeout_seconds") && expected.contains("retry_count"),
        "{error}: expected the members that there are"
    );
    for open in [unknown(), probe.group("task")] {
        probe.create(&own(&open, "user_agent")).await?;
    }
    seen(error.to_string())
}
