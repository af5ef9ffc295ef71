//! What the server writes about a task's end: `result`, `error`, `progress`. spec: data-model

use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "data-model/task-outcome/1-result",
            "`result` is an object or null, and null while the task is not completed",
            results_only_when_completed,
        ),
        should(
            "data-model/task-outcome/2-result-when-completed",
            "a completed task has a `result`",
            completed_tasks_have_results,
        ),
        must(
            "data-model/task-outcome/3-error",
            "`error` is a text that is not empty, or null; null unless the task failed or was cancelled",
            errors_only_after_failures,
        ),
        should(
            "data-model/task-outcome/4-error-after-failures",
            "a failed or cancelled task has an `error`",
            errors_are_texts,
        ),
        should(
            "data-model/task-outcome/5-progress-moves",
            "`progress` is updated while the task runs",
            progress_moves,
        ),
    ]
}

/// The sections on formats, which come later in the document.
pub(super) fn formats() -> Vec<Clause> {
    vec![
        must(
            "data-model/result/1-object",
            "`result` is an object, no bare value",
            results_only_when_completed,
        ),
        must(
            "data-model/result/2-null-before",
            "`result` is null while the task is not completed",
            results_only_when_completed,
        )
        .same_as(&["data-model/task-outcome/1-result"]),
        should(
            "data-model/result/3-when-completed",
            "a completed task has a `result`",
            completed_tasks_have_results,
        )
        .same_as(&["data-model/task-outcome/2-result-when-completed"]),
        must(
            "data-model/error/1-text",
            "`error` of a failed or cancelled task is a text that is not empty",
            errors_are_texts,
        ),
        must(
            "data-model/error/2-null-otherwise",
            "`error` is null when the task neither failed nor was cancelled",
            errors_only_after_failures,
        )
        .same_as(&["data-model/task-outcome/3-error"]),
        should(
            "data-model/error/3-readable",
            "`error` can be read by people: it has words",
            errors_have_words,
        ),
        should(
            "data-model/error/4-context",
            "`error` says what failed: different failures have different texts",
            errors_say_what_failed,
        ),
        must(
            "data-model/progress/1-range",
            "`progress` is between 0 and 1 in every status",
            progress_stays_in_range,
        ),
        should(
            "data-model/progress/2-moves",
            "`progress` is updated while the task runs",
            progress_moves,
        )
        .same_as(&["data-model/task-outcome/5-progress-moves"]),
    ]
}

/// What a caller claims about a task's end is refused, or overwritten: the task has just begun.
async fn claims_come_to_nothing(probe: &Probe, field: &str, claim: Value) -> Result<(), Finding> {
    let task = probe.task("claimed").with(field, claim);
    match probe.store_or_refuse(&task).await? {
        Some(task) => expect_field(&task, field, Value::Null),
        None => Ok(()),
    }
}

pub(in super::super) async fn results_only_when_completed(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    for task in [
        &lives.pending,
        &lives.in_progress,
        &lives.failed,
        &lives.cancelled,
    ] {
        expect_field(task, "result", Value::Null)?;
    }
    let result = &lives.completed["result"];
    ensure!(
        result.is_object() || result.is_null(),
        "`result` is {}: expected an object",
        shown(result)
    );
    claims_come_to_nothing(probe, "result", json!({"output": 1})).await?;
    probe
        .refuses_values("result", [json!(1), json!("x"), json!([1]), json!(true)])
        .await?;
    seen("null in the other four statuses; bare values are -32602")
}

pub(in super::super) async fn completed_tasks_have_results(probe: &Probe) -> Outcome {
    let inputs = json!({"text": "hello"});
    let started = probe
        .run(&[probe.task("done").with("inputs", inputs)])
        .await?;
    let task = probe.wait_for(&started.root, "completed").await?;
    ensure!(
        task["result"].is_object(),
        "no object `result` in {}",
        shown(&task)
    );
    seen(format!("`result` is {}", shown(&task["result"])))
}

pub(in super::super) async fn errors_only_after_failures(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    for task in [&lives.pending, &lives.in_progress, &lives.completed] {
        expect_field(task, "error", Value::Null)?;
    }
    for task in [&lives.failed, &lives.cancelled] {
        ensure!(task["error"] != "", "`error` is empty in {}", shown(task));
    }
    claims_come_to_nothing(probe, "error", json!("claimed")).await?;
    probe
        .refuses_values("error", [json!(1), json!(["x"]), json!({}), json!(true)])
        .await?;
    seen("null in the other three statuses, no empty text, and other types are -32602")
}

/// The errors of a failed and of a cancelled task, and of one that was cancelled before its start.
async fn errors(probe: &Probe) -> Result<[String; 3], Finding> {
    let lives = probe.one_of_each_status().await?;
    let waiting = text_of(&lives.pending, "id")?;
    probe.cancel(&waiting).await?;
    let waiting = probe.wait_for(&waiting, "cancelled").await?;
    Ok([
        text_of(&lives.failed, "error")?,
        text_of(&lives.cancelled, "error")?,
        text_of(&waiting, "error")?,
    ])
}

pub(in super::super) async fn errors_are_texts(probe: &Probe) -> Outcome {
    let errors = errors(probe).await?;
    ensure!(
        errors.iter().all(|text| !text.trim().is_empty()),
        "empty: {errors:?}"
    );
    seen(format!("{errors:?}"))
}

async fn errors_have_words(probe: &Probe) -> Outcome {
    let errors = errors(probe).await?;
    let readable = |text: &String| {
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        letters >= 3 && !text.trim_start().starts_with(['{', '[', '<'])
    };
    ensure!(errors.iter().all(readable), "expected words: {errors:?}");
    seen(format!("{errors:?}"))
}

async fn errors_say_what_failed(probe: &Probe) -> Outcome {
    let started = probe.run(&[probe.failing("failing")]).await?;
    let failed = probe.wait_for(&started.root, "failed").await?;
    let failed = text_of(&failed, "error")?;
    let other = error_of_an_unknown_executor(probe).await?;
    ensure!(
        failed != other,
        "two different failures are both `{failed}`"
    );
    seen(format!("`{failed}`, `{other}`"))
}

/// The data model lets a server refuse such a task instead; some can be told not to.
async fn error_of_an_unknown_executor(probe: &Probe) -> Result<String, Finding> {
    let schemas = json!({"method": probe.name("no executor")});
    let task = probe.task("unknown").with("schemas", schemas).element();
    for options in [
        json!({}),
        json!({"allow_unknown_executors": true, "executor_wait_seconds": 0}),
    ] {
        let mut params = options;
        params["tasks"] = json!([task]);
        if let Ok(result) = probe.call("tasks.execute", params).await?.outcome {
            let root = text_of(&result, "root_task_id")?;
            let failed = probe.wait_for(&root, "failed").await?;
            return text_of(&failed, "error");
        }
    }
    let text = "the server refuses what would fail otherwise than the failing task";
    Err(Finding::skipped(text))
}

async fn progress_moves(probe: &Probe) -> Outcome {
    let started = probe.running("long").await?;
    let progress = probe
        .eventually("progress moves while the task runs", async || {
            let task = probe.get(&started.root).await?;
            expect_field(&task, "status", "in_progress")?;
            Ok(task["progress"].as_f64().filter(|progress| *progress > 0.0))
        })
        .await;
    probe.cancel(&started.root).await?;
    seen(format!("{} while it ran", progress?))
}

/// Every task that the probe reads is checked against the schema, which has the range.
pub(in super::super) async fn progress_stays_in_range(probe: &Probe) -> Outcome {
    let lives = probe.one_of_each_status().await?;
    let shown: Vec<_> = lives
        .all()
        .iter()
        .map(|task| task["progress"].clone())
        .collect();
    expect_field(&lives.pending, "progress", 0)?;
    progress_values_are_checked(probe).await?;
    seen(format!("{shown:?} in the five statuses"))
}

pub(super) async fn progress_values_are_checked(probe: &Probe) -> Result<(), Finding> {
    let odd = [
        json!(-0.1),
        json!(1.1),
        json!(1.5),
        json!(-1),
        json!(2),
        json!(1e300),
    ];
    let odd = odd
        .into_iter()
        .chain([json!("0.5"), json!([]), json!({}), json!(true)]);
    probe.refuses_values("progress", odd).await?;
    for claim in [json!(0.5), json!(1.0)] {
        // Allowed by the schema, and not the caller's to say.
        let task = probe.task("claimed").with("progress", claim);
        probe.store_or_refuse(&task).await?;
    }
    Ok(())
}
