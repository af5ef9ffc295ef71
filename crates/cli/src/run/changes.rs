//! Writes the events of a run as lines, one for each change of a task.

use super::end::End;
use crate::api::run_events::RunEvent;
use crate::output::member;
use crate::span::span;
use crate::tree::Line;
use crate::when::time;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use taskledger_domain::{NoticeKind, Timestamp};

/// The changes of a run, in the order in which they happened.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// When the tasks that run have begun.
    begun: HashMap<String, Timestamp>,
    /// The tasks that have had an attempt in this run.
    attempted: HashSet<String>,
}

impl Changes {
    /// What an event has changed; `None`: no task, or another event says it too.
    pub(super) fn next(&mut self, event: &RunEvent) -> Option<Line> {
        let (kind, data) = (kind(&event.name)?, &event.data);
        match kind {
            NoticeKind::StatusUpdate if is_told_again(kind, data) => return None,
            NoticeKind::StatusUpdate
            | NoticeKind::Completed
            | NoticeKind::Failed
            | NoticeKind::Cancelled
            | NoticeKind::Suspended
            | NoticeKind::SuspensionEnded => {}
            NoticeKind::ProgressUpdate
            | NoticeKind::OutputAppended
            | NoticeKind::SuspensionReminder
            | NoticeKind::ClaimRejected
            | NoticeKind::CompletionRejected
            | NoticeKind::RunCompleted
            | NoticeKind::RunFailed
            | NoticeKind::RunCancelled => return None,
        }
        let (id, status, at) = (
            member(data, "task_id"),
            member(data, "status"),
            time(data, "timestamp"),
        );
        let took = match (kind, status.as_str()) {
            (NoticeKind::StatusUpdate, "in_progress") => {
                self.attempted.insert(id.clone());
                self.begun.extend(at.map(|at| (id.clone(), at)));
                None
            }
            (NoticeKind::Suspended | NoticeKind::SuspensionEnded, _) => None,
            _ => self.begun.remove(&id),
        };
        let begins = match self.attempted.contains(&id) {
            true => "next attempt",
            false => "starts",
        };
        Some(Line {
            took: took.zip(at).map(|(begun, at)| at.ms_since(begun)),
            id,
            name: member(data, "name"),
            note: note(kind, data, begins, at),
            status,
            error: member(data, "error"),
            attempt: data.get("attempt").and_then(Value::as_u64).unwrap_or(0),
            ..Line::default()
        })
    }
}

/// What else is to be said of a change. `begins`: what happens when a task that waits for a time has waited for it.
fn note(kind: NoticeKind, data: &Value, begins: &str, at: Option<Timestamp>) -> String {
    if kind == NoticeKind::Suspended {
        return "waits for a person".to_owned();
    }
    if kind == NoticeKind::SuspensionEnded {
        let resolution = data.pointer("/suspension/resolution");
        return match resolution.and_then(Value::as_str) {
            Some("responded") => "answered".to_owned(),
            _ => "was not answered in time".to_owned(),
        };
    }
    if will_retry(data) {
        return "another attempt follows".to_owned();
    }
    match (time(data, "next_attempt_at"), at) {
        (Some(next), Some(at)) => format!("{begins} in {}", span(next.ms_since(at))),
        _ => String::new(),
    }
}

/// The kind of an event; `None`: one of a newer server.
pub(crate) fn kind(name: &str) -> Option<NoticeKind> {
    NoticeKind::ALL.into_iter().find(|it| it.as_str() == name)
}

/// Whether an event of its own follows, which tells of the same end with the result or the error.
pub(crate) fn is_told_again(kind: NoticeKind, data: &Value) -> bool {
    let is_end = End::parse(&member(data, "status")).is_some();
    let of_run = data.get("run").is_some_and(Value::is_object);
    kind == NoticeKind::StatusUpdate && (of_run || is_end && !will_retry(data))
}

fn will_retry(data: &Value) -> bool {
    data.get("will_retry").and_then(Value::as_bool) == Some(true)
}

/// How the run of this task has ended, if the event is its last one.
pub(super) fn end(event: &RunEvent, root: &str) -> Option<End> {
    let is_last = event.data.get("final").and_then(Value::as_bool) == Some(true);
    if !is_last || member(&event.data, "task_id") != root {
        return None;
    }
    End::parse(&member(event.data.get("run")?, "state"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(name: &str, second: u8, more: Value) -> RunEvent {
        let mut data = json!({"task_id": "t", "name": "fetch",
            "timestamp": format!("2026-01-31T12:00:0{second}Z")});
        data.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        RunEvent {
            name: name.to_owned(),
            data,
        }
    }

    #[test]
    fn each_attempt_and_each_retry_is_a_line() {
        let update = |second, more| event("task_status_update", second, more);
        let events = [
            update(0, json!({"status": "pending"})),
            update(
                0,
                json!({"status": "pending", "next_attempt_at": "2026-01-31T12:00:01Z"}),
            ),
            update(1, json!({"status": "in_progress", "attempt": 1})),
            event("task_progress_update", 2, json!({"status": "in_progress"})),
            update(
                3,
                json!({"status": "failed", "attempt": 1, "will_retry": true, "error": "no"}),
            ),
            update(
                3,
                json!({"status": "pending", "next_attempt_at": "2026-01-31T12:00:05Z"}),
            ),
            update(5, json!({"status": "in_progress", "attempt": 2})),
            update(6, json!({"status": "failed", "attempt": 2})),
            event(
                "task_failed",
                6,
                json!({"status": "failed", "attempt": 2, "error": "no"}),
            ),
            event("run_failed", 6, json!({"status": "failed", "run": {}})),
            update(6, json!({"status": "failed", "final": true, "run": {}})),
            event("of_a_newer_server", 6, json!({"status": "failed"})),
        ];
        let mut changes = Changes::default();
        let lines = events.iter().filter_map(|event| changes.next(event));
        let shown: Vec<String> = lines.map(|line| line.change().letters()).collect();
        assert_eq!(
            shown,
            [
                "· fetch  pending  (t)",
                "· fetch  pending  starts in 1.0 s  (t)",
                "▸ fetch  in_progress  (t)",
                "✗ fetch  failed: no  2.0 s  another attempt follows  (t)",
                "· fetch  pending  next attempt in 2.0 s  (t)",
                "▸ fetch  in_progress  attempt 2  (t)",
                "✗ fetch  failed: no  1.0 s  attempt 2  (t)",
            ]
        );
    }

    #[test]
    fn a_run_ends_with_the_last_event_of_its_own_root() {
        let last = |id: &str, more: bool| {
            let data = json!({"task_id": id, "final": more, "run": {"state": "failed"}});
            event("task_status_update", 0, data)
        };
        assert_eq!(end(&last("t", true), "t"), Some(End::Failed));
        assert_eq!(end(&last("t", false), "t"), None);
        assert_eq!(end(&last("another", true), "t"), None);
    }
}
