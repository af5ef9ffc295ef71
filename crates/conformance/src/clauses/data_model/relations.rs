//! How the members of a task, and those of several tasks, agree. spec: data-model / Field Relationships

use super::configuration::inputs_conform;
use super::dependencies::{missing_dependencies_are_refused, other_flows_are_refused};
use super::outcomes::{completed_tasks_have_results, errors_are_texts, progress_stays_in_range};
use super::times::{
    completed_at_only_at_the_end, started_at_only_after_the_start, times_are_in_utc,
};
use super::trees::missing_parents_are_refused;
use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        should(
            "data-model/relations/1-completed-has-result",
            "a completed task's `result` is not null",
            completed_tasks_have_results,
        )
        .same_as(&["data-model/task-outcome/2-result-when-completed"]),
        should(
            "data-model/relations/2-failed-has-error",
            "a failed or cancelled task's `error` is not null",
            errors_are_texts,
        )
        .same_as(&["data-model/task-outcome/4-error-after-failures"]),
        must(
            "data-model/relations/3-pending-not-started",
            "a pending task's `started_at` is null",
            started_at_only_after_the_start,
        )
        .same_as(&["data-model/times/3-started-at-while-pending"]),
        must_not(
            "data-model/relations/4-in-progress-started",
            "`started_at` of a task in progress is never null",
            started_at_only_after_the_start,
        ),
        must_not(
            "data-model/relations/5-terminal-completed",
            "`completed_at` of a task that has ended is never null",
            completed_at_only_at_the_end,
        ),
        must(
            "data-model/relations/6-parent-exists",
            "the task in `parent_id` exists, in the same flow",
            missing_parents_are_refused,
        ),
        must(
            "data-model/relations/7-dependencies-exist",
            "the tasks in `dependencies` exist, in the same flow",
            dependencies_are_in_the_flow,
        ),
        must(
            "data-model/relations/8-progress",
            "`progress` is between 0 and 1",
            progress_stays_in_range,
        )
        .same_as(&["data-model/progress/1-range"]),
        should(
            "data-model/relations/9-name-of-executor",
            "a task may be called as its executor is",
            names_of_executors_are_names,
        ),
        should(
            "data-model/relations/10-inputs-conform",
            "`inputs` conform to `schemas.input_schema`",
            inputs_conform,
        )
        .same_as(&["data-model/inputs/2-conform"]),
        should(
            "data-model/relations/11-utc",
            "times are in UTC",
            times_are_in_utc,
        ),
    ]
}

async fn dependencies_are_in_the_flow(probe: &Probe) -> Outcome {
    missing_dependencies_are_refused(probe).await?;
    other_flows_are_refused(probe).await
}

async fn names_of_executors_are_names(probe: &Probe) -> Outcome {
    let name = probe.options().executor.as_str();
    let task = probe
        .store(&probe.task("called").with("name", name))
        .await?;
    expect_field(&task, "name", name)?;
    seen(format!("a task `{name}` with this method"))
}
