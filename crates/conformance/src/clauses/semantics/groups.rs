//! What this project decided. Section: Groups

use super::looks::*;
use crate::clauses::prelude::*;

/// The clauses of this section.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        decided(
            "semantics/groups/1-no-schemas",
            "a task whose `schemas` is absent or null is a group: it runs nothing and ends by itself",
            tasks_without_schemas_are_groups,
        ),
        decided(
            "semantics/groups/2-method",
            "`schemas` without a method that is a text and not empty is -32602",
            schemas_have_a_method,
        ),
        decided(
            "semantics/groups/3-begin",
            "a group begins when its own dependencies are satisfied; its children do not wait for it",
            groups_begin_with_their_dependencies,
        ),
        decided(
            "semantics/groups/4-progress",
            "the progress of a group is the mean of its children's",
            progress_is_the_mean,
        ),
        decided(
            "semantics/groups/5-completed",
            "a group completes with the counts of the descendants that run something when all of them have ended well",
            groups_complete_with_counts,
        ),
        decided(
            "semantics/groups/6-failed",
            "a group fails, with a text that counts, when a child failed or was cancelled",
            groups_fail_with_counts,
        ),
        decided(
            "semantics/groups/7-tolerated",
            "a failed or cancelled child with dependents, all of them optional, does not fail its group",
            tolerated_children_do_no_harm,
        ),
        decided(
            "semantics/groups/8-grandchildren",
            "a group waits for all its descendants, but only its children's failures are its own",
            groups_wait_for_grandchildren,
        ),
        decided(
            "semantics/groups/9-blocked",
            "when nothing can move any more, open groups fail, deepest first, and count what is not done",
            blocked_groups_fail,
        ),
        decided(
            "semantics/groups/10-dependents",
            "what such a group held up is looked at again after each",
            dependents_of_decided_groups_run,
        ),
        decided(
            "semantics/groups/11-empty",
            "a group without children completes at once with `{}`",
            empty_groups_complete,
        ),
        decided(
            "semantics/groups/12-covered",
            "a group that no run covers stays as it is, whatever becomes of its children",
            uncovered_groups_rest,
        ),
    ]
}

fn counts(completed: u64, failed: u64, cancelled: u64) -> Value {
    json!({"completed": completed, "failed": failed, "cancelled": cancelled})
}

async fn tasks_without_schemas_are_groups(probe: &Probe) -> Outcome {
    for group in [
        probe.group("root"),
        probe.group("root").with("schemas", Value::Null),
    ] {
        let started = probe
            .run(&[group, probe.task("child").below("root")])
            .await?;
        let root = probe.wait_for(&started.root, "completed").await?;
        expect(
            &root,
            &[("schemas", Value::Null), ("result", counts(1, 0, 0))],
        )?;
    }
    seen("with `schemas` absent and null")
}

async fn schemas_have_a_method(probe: &Probe) -> Outcome {
    for schemas in [
        json!({}),
        json!({"method": ""}),
        json!({"method": null}),
        json!({"method": 1}),
    ] {
        let task = probe.group("task").with("schemas", schemas);
        for (method, params) in [
            ("tasks.create", task.value()),
            ("tasks.execute", list(&[task])),
        ] {
            let error = probe.refused(method, params, INVALID_PARAMS).await?;
            fault_in(&error, "method")?;
        }
    }
    seen("`{}`, empty, null and 1 are refused")
}

async fn groups_begin_with_their_dependencies(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.slow("first", FOREVER_MS).below("root"),
        probe.group("group").below("root").after_end_of("first"),
        probe.task("child").below("group"),
    ];
    let started = probe.run(&tasks).await?;
    let (first, group) = (started.id("first")?, started.id("group")?);
    expect_status(probe, &started.root, "in_progress").await?;
    probe.wait_for(started.id("child")?, "completed").await?;
    let waiting = expect_status(probe, group, "pending").await?;
    expect(&waiting, &[("started_at", Value::Null)])?;
    probe.cancel(first).await?;
    let group = probe.wait_for(group, "completed").await?;
    let first = probe.get(first).await?;
    ensure!(
        instant(&group, "started_at")? >= instant(&first, "completed_at")?,
        "{} began before its dependency had ended",
        shown(&group)
    );
    seen("the group waited, its child did not")
}

async fn progress_is_the_mean(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("a").below("root"),
        probe.group("inner").below("root"),
        probe.task("b").below("inner"),
        // Waits for something that never ends, so that its progress is 0.
        probe.task("c").below("inner").after("d"),
        probe.slow("d", FOREVER_MS).below("root").after_end_of("e"),
        probe.slow("e", FOREVER_MS).below("root"),
    ];
    let started = probe.run(&tasks).await?;
    probe.wait_for(started.id("a")?, "completed").await?;
    probe.wait_for(started.id("b")?, "completed").await?;
    let inner = expect_status(probe, started.id("inner")?, "in_progress").await?;
    expect(&inner, &[("progress", json!(0.5))])?;
    let root = expect_status(probe, &started.root, "in_progress").await?;
    let progress = root["progress"].as_f64().unwrap_or(0.0);
    // (1 + 0.5 + 0 + almost nothing) / 4
    ensure!(
        (0.375..0.395).contains(&progress),
        "`progress` is {progress}: expected 0.375 and a little"
    );
    probe.cancel(&started.root).await?;
    seen(format!("0.5 inside, {progress} at the root"))
}

async fn groups_complete_with_counts(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("a").below("root"),
        probe.group("inner").below("root"),
        probe.task("b").below("inner"),
        probe.task("c").below("inner"),
    ];
    let (started, root) = run_to_end(probe, &tasks).await?;
    expect(
        &root,
        &[
            ("status", json!("completed")),
            ("result", counts(3, 0, 0)),
            ("progress", json!(1.0)),
        ],
    )?;
    let inner = expect_status(probe, started.id("inner")?, "completed").await?;
    expect(&inner, &[("result", counts(2, 0, 0))])?;
    let order = [
        instant(&inner, "completed_at")?,
        instant(&root, "completed_at")?,
    ];
    ensure!(
        order.is_sorted(),
        "the root ended at {}, before {}",
        order[1],
        order[0]
    );
    seen(shown(&root["result"]))
}

async fn groups_fail_with_counts(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.failing("bad").below("root"),
        probe.task("good").below("root"),
    ];
    let (_, root) = run_to_end(probe, &tasks).await?;
    expect(
        &root,
        &[("status", json!("failed")), ("result", Value::Null)],
    )?;
    let error = text_of(&root, "error")?;
    ensure!(
        error.contains("1 of 2") && error.contains("1 failed"),
        "`{error}`: expected the counts"
    );
    let ids = create_all(
        probe,
        &[
            probe.group("root"),
            probe.task("off").below("root"),
            probe.task("on").below("root"),
        ],
    )
    .await?;
    probe.cancel(&text_of(&ids, "off")?).await?;
    let id = text_of(&ids, "root")?;
    execute(probe, &id).await?;
    let root = end_of_run(probe, &id).await?;
    expect(&root, &[("status", json!("failed"))])?;
    let text = text_of(&root, "error")?;
    ensure!(
        text.contains("1 cancelled"),
        "`{text}`: expected the counts"
    );
    seen(error)
}

async fn tolerated_children_do_no_harm(probe: &Probe) -> Outcome {
    let tasks = |second: fn(NewTask, &str) -> NewTask| {
        [
            probe.group("root"),
            probe.failing("bad").below("root"),
            probe.task("one").below("root").after_end_of("bad"),
            second(probe.task("two").below("root"), "bad"),
        ]
    };
    let (_, root) = run_to_end(probe, &tasks(NewTask::after_end_of)).await?;
    expect(
        &root,
        &[("status", json!("completed")), ("result", counts(2, 1, 0))],
    )?;
    let (_, other) = run_to_end(probe, &tasks(NewTask::after)).await?;
    expect(&other, &[("status", json!("failed"))])?;
    seen(format!("completed with {}", root["result"]))
}

async fn groups_wait_for_grandchildren(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.task("child").below("root"),
        probe.slow("grandchild", FOREVER_MS).below("child"),
        probe.failing("bad").below("child"),
    ];
    let started = probe.run(&tasks).await?;
    probe.wait_for(started.id("child")?, "completed").await?;
    probe.wait_for(started.id("bad")?, "failed").await?;
    expect_status(probe, &started.root, "in_progress").await?;
    probe.cancel(started.id("grandchild")?).await?;
    let root = end_of_run(probe, &started.root).await?;
    // The failed ones are no children of the group, which is judged by its children.
    expect(
        &root,
        &[("status", json!("completed")), ("result", counts(1, 1, 1))],
    )?;
    seen(shown(&root["result"]))
}

async fn blocked_groups_fail(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.failing("bad").below("root"),
        probe.group("inner").below("root"),
        probe.task("blocked").below("inner").after("bad"),
        probe.task("good").below("inner"),
    ];
    let (started, root) = run_to_end(probe, &tasks).await?;
    expect_status(probe, started.id("blocked")?, "pending").await?;
    let inner = expect_status(probe, started.id("inner")?, "failed").await?;
    let error = text_of(&inner, "error")?;
    ensure!(
        error.contains("1 of 2") && error.contains("1 not done"),
        "`{error}`: expected the counts"
    );
    expect(&root, &[("status", json!("failed"))])?;
    let params = json!({"task_id": started.root, "scope": "flow", "types": ["task_failed"]});
    let ends = history(probe, params).await?;
    let failed: Vec<_> = ends.iter().map(|event| event["task_id"].clone()).collect();
    let expected = [started.id("bad")?, started.id("inner")?, &started.root];
    ensure!(
        failed == expected,
        "the history has the failures of {failed:?}: expected {expected:?}"
    );
    seen(error)
}

async fn dependents_of_decided_groups_run(probe: &Probe) -> Outcome {
    let tasks = [
        probe.group("root"),
        probe.failing("bad").below("root"),
        probe.group("stuck").below("root"),
        probe.task("blocked").below("stuck").after("bad"),
        probe.task("cleanup").below("root").after_end_of("stuck"),
        probe.group("later").below("root").after_end_of("cleanup"),
    ];
    let (started, _) = run_to_end(probe, &tasks).await?;
    let stuck = expect_status(probe, started.id("stuck")?, "failed").await?;
    let cleanup = expect_status(probe, started.id("cleanup")?, "completed").await?;
    expect_status(probe, started.id("later")?, "completed").await?;
    ensure!(
        instant(&cleanup, "started_at")? >= instant(&stuck, "completed_at")?,
        "`cleanup` started before what it waits for"
    );
    seen("a task behind a stuck group ran, and a group behind it")
}

async fn empty_groups_complete(probe: &Probe) -> Outcome {
    let (_, alone) = run_to_end(probe, &[probe.group("alone")]).await?;
    expect(
        &alone,
        &[
            ("status", json!("completed")),
            ("result", json!({})),
            ("progress", json!(1.0)),
        ],
    )?;
    let tasks = [
        probe.group("root"),
        probe.group("gate").below("root").after("first"),
        probe.task("first").below("root"),
        probe.task("last").below("root").after("gate"),
    ];
    let (started, _) = run_to_end(probe, &tasks).await?;
    let gate = expect_status(probe, started.id("gate")?, "completed").await?;
    expect(&gate, &[("result", json!({}))])?;
    expect_status(probe, started.id("last")?, "completed").await?;
    seen("alone, and as a gate between tasks")
}

async fn uncovered_groups_rest(probe: &Probe) -> Outcome {
    let ids = create_all(
        probe,
        &[probe.group("root"), probe.task("child").below("root")],
    )
    .await?;
    let (root, child) = (text_of(&ids, "root")?, text_of(&ids, "child")?);
    execute(probe, &child).await?;
    end_of_run(probe, &child).await?;
    expect_status(probe, &child, "completed").await?;
    let group = expect_status(probe, &root, "pending").await?;
    expect(&group, &[("attempt", json!(0))])?;
    seen("the group is pending beside its completed child")
}
