//! What this project decided. Section: Dependencies and failure, those that are satisfied in any case

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/dependencies/13-always-ended",
            "a dependency with `when: \"always\"` is satisfied by any end of its task, and waited for until then",
            any_end_satisfies,
        ),
        decided(
            "semantics/dependencies/14-always-blocked",
            "it is satisfied, too, as soon as its task can no longer run in the run, so that clean-up steps run",
            blocked_ones_satisfy,
        ),
        decided(
            "semantics/dependencies/15-always-excuses-nothing",
            "a failure whose only dependents say `always` still fails its group and its run",
            cleaning_up_excuses_nothing,
        ),
        decided(
            "semantics/dependencies/16-always-shown",
            "reads show `when: \"always\"` beside `required: false`, and copies keep it",
            it_is_shown,
        ),
        decided(
            "semantics/dependencies/17-always-form",
            "any other `when`, and `when` beside `required: true`, is -32602",
            other_forms_are_refused,
        ),
    ]
}

async fn any_end_satisfies(probe: &Probe) -> Outcome {
    expect_after_any_end(probe, NewTask::after_always).await?;
    seen("behind completed, failed and cancelled tasks, and not before")
}

async fn blocked_ones_satisfy(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.failing("build").below("root"),
        probe.slow("other", FOREVER_MS).below("root"),
        probe.task("deploy").below("root").after("build"),
        probe.task("announce").below("root").after("deploy"),
        probe.task("clean").below("root").after_always("announce"),
        probe.task("log").below("root").after_end_of("announce"),
    ];
    let started = probe.run(&tasks).await?;
    // The run goes on meanwhile: this task does not end by itself, and may have had to wait for a slot.
    probe.wait_for(started.id("clean")?, "completed").await?;
    probe.wait_for(started.id("other")?, "in_progress").await?;
    probe.cancel(started.id("other")?).await?;
    end_of_run(probe, &started.root).await?;
    for alias in ["deploy", "announce", "log"] {
        expect_status(probe, started.id(alias)?, "pending").await?;
    }
    seen("two blocked tasks further, while another task ran; an optional dependent stayed pending")
}

async fn cleaning_up_excuses_nothing(probe: &Probe) -> Outcome {
    let tasks = |after: fn(NewTask, &str) -> NewTask| {
        [
            probe.group("root"),
            probe.group("stage").below("root"),
            probe.failing("bad").below("stage"),
            after(probe.task("after").below("stage"), "bad"),
        ]
    };
    for (after, status, state) in [
        (
            NewTask::after_always as fn(_, &str) -> _,
            "failed",
            "failed",
        ),
        (NewTask::after_end_of, "completed", "completed"),
    ] {
        let (started, root) = run_to_end(probe, &tasks(after)).await?;
        expect_status(probe, started.id("after")?, "completed").await?;
        expect_status(probe, started.id("stage")?, status).await?;
        expect(&root["run"], &[("state", json!(state))])?;
    }
    seen("the group and the run failed; with an optional dependent they complete")
}

async fn it_is_shown(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("first").below("root"),
        probe.task("clean").below("root").after_always("first"),
        probe.task("plain").below("root").after_end_of("first"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let (root, clean) = (text_of(&ids, "root")?, text_of(&ids, "clean")?);
    let shown_of = |task: &Value| task["dependencies"][0].clone();
    let told = shown_of(&probe.get(&clean).await?);
    expect(
        &told,
        &[("required", json!(false)), ("when", json!("always"))],
    )?;
    let plain = shown_of(&probe.get(&text_of(&ids, "plain")?).await?);
    expect(&plain, &[("when", Value::Null)])?;
    let copy = json!({"task_id": root, "copy_children": true});
    let copied = probe.result("tasks.copy", copy).await?;
    let copied = text_of(&copied["task_ids"], &clean)?;
    let copied = shown_of(&probe.get(&copied).await?);
    expect(&copied, &[("when", json!("always"))])?;
    // An update replaces it.
    let required = json!({"dependencies": [{"id": ids["first"]}]});
    update(probe, &clean, required).await?;
    let told = shown_of(&probe.get(&clean).await?);
    expect(&told, &[("required", json!(true)), ("when", Value::Null)])?;
    seen("in reads and a copy, and gone after an update")
}

async fn other_forms_are_refused(probe: &Probe) -> Outcome {
    let first = probe.create(&probe.task("first")).await?;
    let kept = probe.create(&probe.task("kept").below(&first)).await?;
    for dependency in [
        json!({"id": first, "when": "always", "required": true}),
        json!({"id": first, "when": "completed"}),
        json!({"id": first, "when": "Always"}),
        json!({"id": first, "when": null}),
        json!({"id": first, "when": true}),
    ] {
        let before = count(probe).await?;
        let dependencies = json!([dependency]);
        let task = probe.task("task").below(&first);
        let task = task.with("dependencies", dependencies.clone());
        let error = probe
            .refused("tasks.create", task.value(), INVALID_PARAMS)
            .await?;
        fault_in(&error, "when")?;
        let updates = json!({"dependencies": dependencies});
        update_refused(probe, &kept, updates, INVALID_PARAMS).await?;
        ensure!(count(probe).await? == before, "a refused task is stored");
    }
    seen("five forms, in a creation and an update")
}
