//! Single tasks. spec: validation / Validation Principles, Task Validation

use super::errors::{details_are_told, faults_have_codes};
use crate::clauses::data_model::{
    broken_tasks_are_refused, completed_at_only_at_the_end, completed_tasks_have_results,
    data_conforms, errors_are_texts, given_ids_are_checked, inputs_conform, names_are_bounded,
    parent_ids_are_checked, priorities_are_integers, progress_is_a_fraction,
    progress_stays_in_range, started_at_only_after_the_start, statuses_are_known,
};
use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    let mut clauses = vec![
        must(
            "validation/principles/1-validates",
            "data is checked by the rules of the document",
            broken_tasks_are_refused,
        ),
        must(
            "validation/principles/2-rejects",
            "invalid data is refused with a fitting code",
            faults_have_codes,
        ),
        should(
            "validation/principles/3-details",
            "a refusal says in detail what is wrong",
            details_are_told,
        ),
    ];
    clauses.extend(algorithm());
    clauses.extend(consistency());
    clauses
}

/// The steps of `validateTaskSchema`.
fn algorithm() -> Vec<Clause> {
    vec![
        must(
            "validation/schema/1-json-schema",
            "tasks are checked against the schema of the data model",
            broken_tasks_are_refused,
        )
        .same_as(&["data-model/compliance/1-validates"]),
        must(
            "validation/schema/2-id-required",
            "a task has an `id`",
            data_conforms,
        ),
        must(
            "validation/schema/3-name-required",
            "a task without a `name`, or with an empty one, is refused",
            names_are_bounded,
        ),
        must(
            "validation/schema/4-status-required",
            "a task has a `status`",
            data_conforms,
        ),
        must(
            "validation/schema/5-id-format",
            "`id` is a UUID v4",
            given_ids_are_checked,
        ),
        must(
            "validation/schema/6-name-type",
            "`name` is a text",
            names_are_bounded,
        ),
        must(
            "validation/schema/7-status-values",
            "`status` is one of the five",
            statuses_are_known,
        ),
        must(
            "validation/schema/8-priority",
            "`priority` is an integer from 0 to 3",
            priorities_are_integers,
        ),
        must(
            "validation/schema/9-progress",
            "`progress` is a number from 0 to 1",
            progress_is_a_fraction,
        ),
        should(
            "validation/schema/10-completed-result",
            "a completed task has a `result`",
            completed_tasks_have_results,
        ),
        should(
            "validation/schema/11-failed-error",
            "a failed or cancelled task has an `error`",
            errors_are_texts,
        ),
        must(
            "validation/schema/12-pending-started-at",
            "a pending task has no `started_at`",
            started_at_only_after_the_start,
        ),
        must(
            "validation/schema/13-in-progress-started-at",
            "a task in progress has a `started_at`",
            started_at_only_after_the_start,
        ),
        must(
            "validation/schema/14-terminal-completed-at",
            "a task that has ended has a `completed_at`",
            completed_at_only_at_the_end,
        ),
        must(
            "validation/schema/15-parent-id",
            "`parent_id` is a UUID v4 if there is one",
            parent_ids_are_checked,
        ),
        must(
            "validation/schema/16-inputs",
            "`inputs` conform to `input_schema`",
            inputs_conform,
        )
        .same_as(&["validation/inputs/1-conform"]),
        must(
            "validation/schema/17-all",
            "none of these checks is left out",
            all_steps_are_made,
        ),
    ]
}

fn consistency() -> Vec<Clause> {
    vec![
        must(
            "validation/consistency/1-by-status",
            "the members of a task agree with its status",
            members_agree_with_status,
        ),
        should(
            "validation/consistency/2-completed",
            "`result` of a completed task is not null",
            completed_tasks_have_results,
        )
        .same_as(&["data-model/relations/1-completed-has-result"]),
        should(
            "validation/consistency/3-failed",
            "`error` of a failed or cancelled task is not null",
            errors_are_texts,
        )
        .same_as(&["data-model/relations/2-failed-has-error"]),
        must(
            "validation/consistency/4-pending",
            "`started_at` of a pending task is null",
            started_at_only_after_the_start,
        )
        .same_as(&["data-model/relations/3-pending-not-started"]),
        must_not(
            "validation/consistency/5-in-progress",
            "`started_at` of a task in progress is not null",
            started_at_only_after_the_start,
        )
        .same_as(&["data-model/relations/4-in-progress-started"]),
        must_not(
            "validation/consistency/6-terminal",
            "`completed_at` of a task that has ended is not null",
            completed_at_only_at_the_end,
        )
        .same_as(&["data-model/relations/5-terminal-completed"]),
        must(
            "validation/consistency/7-progress",
            "`progress` is between 0 and 1",
            progress_stays_in_range,
        )
        .same_as(&["data-model/relations/8-progress"]),
    ]
}

async fn all_steps_are_made(probe: &Probe) -> Outcome {
    broken_tasks_are_refused(probe).await?;
    parent_ids_are_checked(probe).await?;
    inputs_conform(probe).await?;
    started_at_only_after_the_start(probe).await?;
    completed_at_only_at_the_end(probe).await?;
    seen("a task is refused for each step that it does not pass")
}

/// What `validateFieldConsistency` finds in a task.
fn inconsistencies(task: &Value) -> Vec<&'static str> {
    let is = |statuses: &[&str]| statuses.iter().any(|status| task["status"] == *status);
    let null = |field: &str| task[field].is_null();
    let progress = task["progress"].as_f64().unwrap_or(0.0);
    let no_error = task["error"].as_str().unwrap_or_default().is_empty();
    let rules = [
        (
            is(&["completed"]) && null("result"),
            "completed without `result`",
        ),
        (
            is(&["failed", "cancelled"]) && no_error,
            "failed without `error`",
        ),
        (
            is(&["pending"]) && !null("started_at"),
            "pending with `started_at`",
        ),
        (
            is(&["in_progress"]) && null("started_at"),
            "in progress without `started_at`",
        ),
        (
            is_terminal(task) && null("completed_at"),
            "terminal without `completed_at`",
        ),
        (
            !is_terminal(task) && !null("completed_at"),
            "open with `completed_at`",
        ),
        (
            !is(&["completed"]) && !null("result"),
            "`result` without completion",
        ),
        (
            !is(&["failed", "cancelled"]) && !null("error"),
            "`error` without failure",
        ),
        (!(0.0..=1.0).contains(&progress), "`progress` out of range"),
    ];
    let broken = rules.into_iter().filter(|(broken, _)| *broken);
    broken.map(|(_, rule)| rule).collect()
}

pub(in super::super) async fn members_agree_with_status(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    for task in lives.all() {
        let faults = inconsistencies(task);
        ensure!(faults.is_empty(), "{}: {}", faults.join(", "), shown(task));
    }
    for task in probe.own().await? {
        let faults = inconsistencies(&task);
        ensure!(faults.is_empty(), "{}: {}", faults.join(", "), shown(&task));
    }
    seen("tasks in each of the five statuses keep all rules")
}

#[cfg(test)]
mod tests {
    use super::inconsistencies;
    use serde_json::json;

    #[test]
    fn each_inconsistency_is_found() {
        let sound = json!({"status": "failed", "error": "e", "started_at": "s", "completed_at": "c", "progress": 0.5});
        assert_eq!(inconsistencies(&sound), [""; 0]);
        for (task, count) in [
            (json!({"status": "completed"}), 2),
            (
                json!({"status": "failed", "error": "", "completed_at": "c"}),
                1,
            ),
            (
                json!({"status": "pending", "started_at": "s", "completed_at": "c"}),
                2,
            ),
            (
                json!({"status": "in_progress", "result": {}, "error": "e", "progress": 2}),
                4,
            ),
        ] {
            assert_eq!(inconsistencies(&task).len(), count, "{task}");
        }
    }
}
