//! What a stream tells. spec: interface / Streaming Events

use super::streaming::{Asking, ends, request, streamed};
use crate::clauses::prelude::*;
use crate::stream::{Event, TYPES};

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "interface/streaming-events/1-format",
            "an event has a type and data with `task_id`, `status`, `progress` and `root_task_id`",
            events_have_members,
        ),
        must(
            "interface/streaming-events/2-protocol",
            "the data of an event have `protocol: \"a2a\"`",
            events_name_the_protocol,
        ),
        must(
            "interface/streaming-events/3-status-update",
            "`task_status_update` tells that a status has changed",
            status_changes_are_told,
        ),
        must(
            "interface/streaming-events/4-progress-update",
            "`task_progress_update` tells that progress was made",
            progress_is_told,
        ),
        must(
            "interface/streaming-events/5-completed",
            "`task_completed` tells that a task has completed",
            completion_is_told,
        ),
        must(
            "interface/streaming-events/6-failed",
            "`task_failed` tells that a task has failed",
            failure_is_told,
        ),
        must(
            "interface/streaming-events/7-cancelled",
            "`task_cancelled` tells that a task was cancelled",
            cancellation_is_told,
        ),
    ]
}

/// Events of a run of three tasks, one of which fails.
async fn some_events(probe: &Probe) -> Result<Vec<Event>, Finding> {
    let tasks = [
        probe.task("root"),
        probe.task("leaf").below("root").after("root"),
        probe.failing("bad").below("root"),
    ];
    streamed(probe, &tasks, Asking::Both).await
}

/// The event of this type about the task with this name.
async fn expect_event(
    probe: &Probe,
    events: &[Event],
    kind: &str,
    alias: &str,
    status: &str,
) -> Result<Event, Finding> {
    let stored = probe.own().await?;
    let task = stored.iter().find(|task| task["name"] == probe.name(alias));
    let id = task.map(|task| task["id"].clone()).unwrap_or_default();
    let found = events.iter().find(|event| {
        event.kind == kind && event.data["task_id"] == id && event.data["status"] == status
    });
    let none = || {
        let kinds: Vec<_> = events
            .iter()
            .map(|e| format!("{} {}", e.kind, e.data["status"]))
            .collect();
        Finding::failed(format!(
            "no `{kind}` with status {status} of `{alias}`: {kinds:?}"
        ))
    };
    found.cloned().ok_or_else(none)
}

async fn events_have_members(probe: &Probe) -> Outcome {
    let events = some_events(probe).await?;
    let stored = probe.own().await?;
    let root = stored.iter().find(|task| task["parent_id"].is_null());
    let root = root.map(|task| task["id"].clone()).unwrap_or_default();
    let typed = |event: &&Event| TYPES.contains(&event.kind.as_str());
    let told: Vec<_> = events.iter().filter(typed).collect();
    ensure!(
        told.len() >= stored.len(),
        "{} of {} events have one of the types {TYPES:?}",
        told.len(),
        events.len()
    );
    for Event { kind, data } in told {
        let known = stored.iter().any(|task| task["id"] == data["task_id"]);
        ensure!(
            known,
            "`{kind}` {}: `task_id` is none of the run",
            shown(data)
        );
        expect_field(data, "root_task_id", root.clone())?;
        let status = text_of(data, "status")?;
        let statuses = ["pending", "in_progress", "completed", "failed", "cancelled"];
        ensure!(
            statuses.contains(&status.as_str()),
            "`{kind}`: unknown status `{status}`"
        );
        let progress = data["progress"].as_f64().unwrap_or(-1.0);
        ensure!(
            (0.0..=1.0).contains(&progress),
            "`{kind}`: progress {}",
            data["progress"]
        );
    }
    seen(format!("{} events of three tasks", events.len()))
}

async fn events_name_the_protocol(probe: &Probe) -> Outcome {
    let events = some_events(probe).await?;
    for event in &events {
        expect_field(&event.data, "protocol", "a2a")?;
    }
    seen(format!("in all {} events", events.len()))
}

async fn status_changes_are_told(probe: &Probe) -> Outcome {
    let tasks = [
        probe.task("root"),
        probe.slow("leaf", 200).below("root").after("root"),
    ];
    let events = streamed(probe, &tasks, Asking::Both).await?;
    let event = expect_event(probe, &events, "task_status_update", "leaf", "in_progress").await?;
    seen(shown(event.data))
}

async fn progress_is_told(probe: &Probe) -> Outcome {
    let tasks = [probe.slow("moving", 1500)];
    let events = streamed(probe, &tasks, Asking::Both).await?;
    let event = expect_event(
        probe,
        &events,
        "task_progress_update",
        "moving",
        "in_progress",
    )
    .await?;
    let progress = event.data["progress"].as_f64();
    let moved = progress.is_some_and(|progress| progress > 0.0);
    ensure!(moved, "progress {}", event.data["progress"]);
    seen(shown(event.data))
}

async fn completion_is_told(probe: &Probe) -> Outcome {
    let events = some_events(probe).await?;
    for alias in ["root", "leaf"] {
        let event = expect_event(probe, &events, "task_completed", alias, "completed").await?;
        expect_field(&event.data, "progress", 1)?;
    }
    seen("of both tasks that completed")
}

async fn failure_is_told(probe: &Probe) -> Outcome {
    let events = some_events(probe).await?;
    let event = expect_event(probe, &events, "task_failed", "bad", "failed").await?;
    seen(shown(event.data))
}

/// Cancels the task while its stream is open.
async fn cancellation_is_told(probe: &Probe) -> Outcome {
    let tasks = [probe.slow("stopped", FOREVER_MS)];
    let request = request(&tasks, Asking::Both);
    let cancelling = async {
        let running = |task: &&Value| task["status"] == "in_progress";
        let id = probe
            .eventually("the streamed task runs", async || {
                Ok(probe
                    .own()
                    .await?
                    .iter()
                    .find(running)
                    .map(|task| task["id"].clone()))
            })
            .await?;
        probe.result("tasks.cancel", json!({"task_id": id})).await
    };
    let (events, _) = tokio::try_join!(probe.stream(&request, ends(1)), cancelling)?;
    let event = expect_event(probe, &events, "task_cancelled", "stopped", "cancelled").await?;
    seen(shown(event.data))
}
