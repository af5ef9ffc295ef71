//! What this project decided. Section: Runs

use super::looks::*;
use super::streams::{followed, updates_of};
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/runs/1-only-runs-start",
            "`tasks.create` starts nothing, nor does any change of a task that no run covers",
            only_runs_start_tasks,
        ),
        decided(
            "semantics/runs/2-subtree",
            "a run covers the subtree that was asked for, and leaves what is beside it alone",
            runs_cover_the_subtree,
        ),
        decided(
            "semantics/runs/3-dependencies",
            "a run covers the dependencies of what it covers, wherever they are in the flow, and theirs",
            runs_cover_dependencies,
        ),
        decided(
            "semantics/runs/4-groups",
            "a run covers the whole subtree of a group that it depends on; of a task it covers the task",
            runs_cover_whole_groups,
        ),
        decided(
            "semantics/runs/5-join",
            "a task created below a covered task while the run is on joins it",
            new_tasks_join_a_run,
        ),
        decided(
            "semantics/runs/6-leave",
            "deleting a pending task takes it out of its run",
            deleted_tasks_leave_a_run,
        ),
        decided(
            "semantics/runs/7-what-runs",
            "pending and failed tasks run, completed ones are kept, cancelled ones are skipped",
            runs_take_what_is_open,
        ),
        decided(
            "semantics/runs/8-always-ends",
            "a run ends when nothing can move any more; a blocked task stays pending, a blocked root too",
            runs_end,
        ),
        decided(
            "semantics/runs/9-shown",
            "`tasks.get` and `tasks.tree` of the run's root, and of the flow's root if the run covers it, carry `run: {id, state, counts}`",
            runs_are_shown,
        ),
        decided(
            "semantics/runs/10-states",
            "a run is running, then completed, failed or cancelled",
            runs_have_states,
        ),
        decided(
            "semantics/runs/11-final-message",
            "the last message of a run's stream is a `task_status_update` of its root with `final: true`",
            streams_end_with_the_root,
        ),
    ]
}

async fn only_runs_start_tasks(probe: &Probe) -> Outcome {
    let root = probe.create(&probe.task("root")).await?;
    let child = probe.create(&probe.task("child").below(&root)).await?;
    update(
        probe,
        &child,
        json!({"priority": 0, "name": probe.name("renamed")}),
    )
    .await?;
    // Of another flow: a scheduler that looked at all ready tasks would have started both by then.
    let (_, other) = run_to_end(probe, &[probe.slow("other", 100)]).await?;
    expect(&other, &[("status", json!("completed"))])?;
    for id in [&root, &child] {
        let task = expect_status(probe, id, "pending").await?;
        expect(
            &task,
            &[
                ("attempt", json!(0)),
                ("started_at", Value::Null),
                ("run", Value::Null),
            ],
        )?;
    }
    seen("two ready tasks stay pending while another flow runs")
}

async fn runs_cover_the_subtree(probe: &Probe) -> Outcome {
    let tasks = [
        probe.task("root"),
        probe.task("asked").below("root"),
        probe.task("below").below("asked"),
        probe.task("beside").below("root"),
        probe.task("behind").below("root").after("asked"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let asked = text_of(&ids, "asked")?;
    let started = execute(probe, &asked).await?;
    expect(&started, &[("root_task_id", ids["root"].clone())])?;
    let task = end_of_run(probe, &asked).await?;
    expect(&task["run"]["counts"], &[("completed", json!(2))])?;
    for (alias, status) in [
        ("asked", "completed"),
        ("below", "completed"),
        ("root", "pending"),
        ("beside", "pending"),
        ("behind", "pending"),
    ] {
        expect_status(probe, &text_of(&ids, alias)?, status).await?;
    }
    seen("two of five tasks ran")
}

async fn runs_cover_dependencies(probe: &Probe) -> Outcome {
    let tasks = [
        probe.task("root"),
        probe.task("far").below("root"),
        probe.task("near").below("root").after_end_of("far"),
        probe.task("asked").below("root").after("near"),
        probe.task("beside").below("root"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let asked = text_of(&ids, "asked")?;
    execute(probe, &asked).await?;
    end_of_run(probe, &asked).await?;
    for (alias, status) in [
        ("far", "completed"),
        ("near", "completed"),
        ("asked", "completed"),
        ("root", "pending"),
        ("beside", "pending"),
    ] {
        expect_status(probe, &text_of(&ids, alias)?, status).await?;
    }
    seen("two dependencies ran, one of them optional")
}

async fn runs_cover_whole_groups(probe: &Probe) -> Outcome {
    let tasks = [
        probe.task("root"),
        probe.group("group").below("root"),
        probe.task("in-group").below("group").after("source"),
        probe.task("source").below("root"),
        probe.task("task").below("root"),
        probe.task("below-task").below("task"),
        probe
            .task("asked")
            .below("root")
            .after("group")
            .after("task"),
    ];
    let ids = create_all(probe, &tasks).await?;
    let asked = text_of(&ids, "asked")?;
    execute(probe, &asked).await?;
    end_of_run(probe, &asked).await?;
    for (alias, status) in [
        ("group", "completed"),
        ("in-group", "completed"),
        ("source", "completed"),
        ("task", "completed"),
        ("asked", "completed"),
        ("below-task", "pending"),
        ("root", "pending"),
    ] {
        expect_status(probe, &text_of(&ids, alias)?, status).await?;
    }
    seen("a group with its child and that one's dependency, a task without its child")
}

async fn new_tasks_join_a_run(probe: &Probe) -> Outcome {
    let started = probe
        .run(&[
            probe.group("root"),
            probe.slow("slow", FOREVER_MS).below("root"),
        ])
        .await?;
    let slow = started.id("slow")?;
    let joined = probe
        .create(&probe.task("joined").below(&started.root))
        .await?;
    let deeper = probe.create(&probe.task("deeper").below(slow)).await?;
    probe.wait_for(&joined, "completed").await?;
    probe.wait_for(&deeper, "completed").await?;
    probe.cancel(slow).await?;
    let root = end_of_run(probe, &started.root).await?;
    expect(
        &root["run"]["counts"],
        &[("completed", json!(2)), ("cancelled", json!(1))],
    )?;
    let late = probe
        .create(&probe.task("late").below(&started.root))
        .await?;
    expect(&probe.get(&late).await?, &[("status", json!("pending"))])?;
    seen("two tasks joined; one that came after the end did not")
}

async fn deleted_tasks_leave_a_run(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.slow("slow", FOREVER_MS).below("root"),
        probe.task("waiting").below("root").after("slow"),
    ];
    let started = probe.run(&tasks).await?;
    let waiting = json!({"task_id": started.id("waiting")?});
    probe.result("tasks.delete", waiting).await?;
    probe.cancel(started.id("slow")?).await?;
    let root = end_of_run(probe, &started.root).await?;
    expect(
        &root["run"]["counts"],
        &[
            ("pending", json!(0)),
            ("cancelled", json!(1)),
            ("completed", json!(0)),
        ],
    )?;
    seen(shown(&root["run"]))
}

async fn runs_take_what_is_open(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("done").below("root"),
        probe.failing("bad").below("root"),
        probe.task("off").below("root").after("bad"),
        probe.task("waiting").below("root").after("bad"),
    ];
    let (started, _) = run_to_end(probe, &tasks).await?;
    probe.cancel(started.id("off")?).await?;
    let kept = probe.get(started.id("done")?).await?;
    let schemas = probe.task("x").value()["schemas"].clone();
    update(
        probe,
        started.id("bad")?,
        json!({"schemas": schemas, "params": null}),
    )
    .await?;
    execute(probe, &started.root).await?;
    let root = end_of_run(probe, &started.root).await?;
    let (done, off) = (
        probe.get(started.id("done")?).await?,
        probe.get(started.id("off")?).await?,
    );
    for field in ["attempt", "started_at", "completed_at", "result"] {
        ensure!(
            done[field] == kept[field],
            "`{field}` of a completed task changed: {}",
            shown(&done)
        );
    }
    expect(
        &off,
        &[("status", json!("cancelled")), ("attempt", json!(0))],
    )?;
    let bad = expect_status(probe, started.id("bad")?, "completed").await?;
    expect(&bad, &[("attempt", json!(2))])?;
    expect_status(probe, started.id("waiting")?, "completed").await?;
    expect(
        &root["run"]["counts"],
        &[("completed", json!(3)), ("cancelled", json!(1))],
    )?;
    seen(shown(&root["run"]))
}

async fn runs_end(probe: &Probe) -> Outcome {
    let tasks = [
        probe.task("root").after("bad"),
        probe.failing("bad").below("root"),
        probe.task("blocked").below("root").after("bad"),
    ];
    let (started, root) = run_to_end(probe, &tasks).await?;
    expect(
        &root,
        &[("status", json!("pending")), ("error", Value::Null)],
    )?;
    expect_status(probe, started.id("blocked")?, "pending").await?;
    expect(&root["run"], &[("state", json!("failed"))])?;
    expect(
        &root["run"]["counts"],
        &[("pending", json!(2)), ("failed", json!(1))],
    )?;
    seen(shown(&root["run"]))
}

async fn runs_are_shown(probe: &Probe) -> Outcome {
    let ids = create_all(
        probe,
        &[
            probe.group("root"),
            probe.task("a").below("root"),
            probe.task("b").below("a"),
        ],
    )
    .await?;
    let (root, a) = (text_of(&ids, "root")?, text_of(&ids, "a")?);
    expect(&probe.get(&a).await?, &[("run", Value::Null)])?;
    let started = execute(probe, &a).await?;
    let task = end_of_run(probe, &a).await?;
    expect(&task["run"], &[("id", started["run_id"].clone())])?;
    let all = json!({"pending": 0, "in_progress": 0, "completed": 2, "failed": 0, "cancelled": 0});
    expect(&task["run"], &[("counts", all)])?;
    let tree = probe.result("tasks.tree", json!({"task_id": a})).await?;
    ensure!(
        tree["task"]["run"] == task["run"],
        "the tree shows {}",
        tree["task"]["run"]
    );
    expect(&probe.get(&root).await?, &[("run", Value::Null)])?;
    expect(
        &probe.get(&text_of(&ids, "b")?).await?,
        &[("run", Value::Null)],
    )?;
    let again = execute(probe, &root).await?;
    let task = end_of_run(probe, &root).await?;
    expect(&task["run"], &[("id", again["run_id"].clone())])?;
    seen(shown(&task["run"]))
}

async fn runs_have_states(probe: &Probe) -> Outcome {
    let under_way = probe
        .run(&[
            probe.group("root"),
            probe.slow("slow", FOREVER_MS).below("root"),
        ])
        .await?;
    let root = probe.get(&under_way.root).await?;
    expect(&root["run"], &[("state", json!("running"))])?;
    probe.cancel(&under_way.root).await?;
    let mut states = vec![end_of_run(probe, &under_way.root).await?["run"]["state"].clone()];
    for child in [probe.task("child"), probe.failing("child")] {
        let (_, root) = run_to_end(probe, &[probe.group("root"), child.below("root")]).await?;
        states.push(root["run"]["state"].clone());
    }
    ensure!(
        states == ["cancelled", "completed", "failed"],
        "states {states:?}: expected cancelled, completed and failed"
    );
    seen("running, then cancelled, completed and failed")
}

async fn streams_end_with_the_root(probe: &Probe) -> Outcome {
    for child in [probe.task("child"), probe.failing("child")] {
        let messages = followed(probe, &[probe.group("root"), child.below("root")]).await?;
        let last = messages
            .last()
            .map(std::slice::from_ref)
            .unwrap_or_default();
        let last = updates_of(last, "task_status_update");
        let last = last.first().copied().unwrap_or(&Value::Null);
        expect(
            last,
            &[
                ("final", json!(true)),
                ("task_id", last["root_task_id"].clone()),
            ],
        )?;
        let finals = updates_of(&messages, "task_status_update");
        let finals = finals.iter().filter(|m| m["final"] == true).count();
        ensure!(finals == 1, "{finals} messages say `final`: expected one");
    }
    seen("after a completed and after a failed run")
}
