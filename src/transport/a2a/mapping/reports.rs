//! Writes reports of runs as stream items, one in each push request.

use super::views::{self, Named};
use crate::application::api::runs::{Artifact, Piece, Question, RunStatus, StatusMessage};
use crate::application::api::webhooks::{
    BODY_BYTES_MAX, Change, Form, Made, Report, Returned, Said, Wording,
};
use bytes::Bytes;
use serde_json::Value;
use taskledger_a2a::{Part, StreamResponse, Task, TaskStatus, Wire, v03};

/// Writes reports as this protocol has them.
#[derive(Debug, Clone, Copy)]
pub struct Reports;

impl Wording for Reports {
    fn body(&self, report: &Report, form: Form) -> Bytes {
        let named = Named::of(report.run, report.context.clone());
        let item = item(&report.change, &named);
        let text = |item: StreamResponse| match form {
            Form::Change => item.to_json().to_string(),
            Form::Whole => task(report, item, &named).to_string(),
        };
        let whole = text(item.clone());
        if whole.len() <= BODY_BYTES_MAX {
            return whole.into();
        }
        text(shortened(item, whole.len())).into()
    }
}

/// The task as 0.3 tells of it: how it stands, with what it has just made.
fn task(report: &Report, item: StreamResponse, named: &Named) -> Value {
    let mut status = TaskStatus {
        state: views::state(report.stage),
        message: None,
        timestamp: views::time(report.since),
    };
    let mut artifacts = Vec::new();
    match item {
        StreamResponse::StatusUpdate(update) => status = update.status,
        StreamResponse::ArtifactUpdate(update) => artifacts.push(update.artifact),
        // Reports are updates only.
        StreamResponse::Task(_) | StreamResponse::Message(_) => {}
    }
    let task = Task {
        id: named.task.clone(),
        context_id: Some(named.context.to_string()),
        status,
        artifacts,
        history: Vec::new(),
        metadata: None,
    };
    v03::answer::task(&task, v03::Form::Kinds).into()
}

fn item(change: &Change, named: &Named) -> StreamResponse {
    match change.clone() {
        Change::Status { stage, at, said } => {
            let message = said.map(|said| match said {
                Said::Error(text) => StatusMessage::Error(text),
                Said::Question(asked, at) => StatusMessage::Question(Box::new(Question {
                    task: asked.task_id,
                    suspension: asked.suspension_id,
                    asks: asked.asks,
                    question: asked.question,
                    at,
                    expires_at: asked.expires_at,
                })),
            });
            views::status_update(RunStatus { stage, at, message }, named)
        }
        Change::Returned(Returned {
            task,
            parent,
            is_result,
            name,
            attempt,
            made,
            at,
        }) => {
            let is_last = matches!(made, Made::Result(..));
            let (output, result, appends) = match made {
                Made::Part(part, number) => (vec![part.0], None, number > 1),
                Made::Result(result, parts) => (Vec::new(), Some(result), parts > 0),
            };
            let artifact = Artifact {
                task,
                parent,
                is_result,
                name,
                attempt,
                output,
                result,
                at,
            };
            let piece = Piece {
                artifact,
                appends,
                is_last,
            };
            views::artifact_update(piece, named)
        }
    }
}

/// Without what makes it too large.
fn shortened(item: StreamResponse, bytes: usize) -> StreamResponse {
    let left_out = || Part::text(format!("({bytes} bytes are left out: read the task)"));
    match item {
        StreamResponse::ArtifactUpdate(mut update) => {
            update.artifact.parts = vec![left_out()];
            StreamResponse::ArtifactUpdate(update)
        }
        StreamResponse::StatusUpdate(mut update) => {
            if let Some(message) = &mut update.status.message {
                message.parts = vec![left_out()];
            }
            StreamResponse::StatusUpdate(update)
        }
        // Reports are updates only.
        whole @ (StreamResponse::Task(_) | StreamResponse::Message(_)) => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::api::runs::RunStage;
    use serde_json::json;
    use std::sync::Arc;
    use taskledger_domain::{Payload, RunId, TaskId, Timestamp};
    use uuid::Uuid;

    fn written(result: &Value, form: Form) -> (usize, Value) {
        let report = Report {
            run: RunId(Uuid::from_u128(1)),
            stage: RunStage::Working,
            since: Timestamp(1),
            context: Arc::from("talk"),
            change: Change::Returned(Returned {
                task: TaskId(Uuid::from_u128(2)),
                parent: None,
                is_result: true,
                name: Arc::from("say"),
                attempt: 1,
                made: Made::Result(Payload::parse(&result.to_string()).expect("an object"), 0),
                at: Timestamp(1),
            }),
        };
        let body = Reports.body(&report, form);
        (body.len(), serde_json::from_slice(&body).expect("JSON"))
    }

    #[test]
    fn a_report_is_one_item_and_no_larger_than_it_may_be() {
        let (_, item) = written(&json!({"n": 1}), Form::Change);
        let artifact = &item["artifactUpdate"]["artifact"];
        assert_eq!(item["artifactUpdate"]["contextId"], "talk");
        assert_eq!(artifact["artifactId"], "result");
        assert_eq!(artifact["parts"][0]["data"], json!({"n": 1}));
        let (bytes, item) = written(&json!({"text": "x".repeat(BODY_BYTES_MAX)}), Form::Change);
        assert!(bytes < BODY_BYTES_MAX);
        let left_out = &item["artifactUpdate"]["artifact"]["parts"][0]["text"];
        assert!(
            left_out
                .as_str()
                .is_some_and(|it| it.contains("read the task"))
        );
    }

    #[test]
    fn in_0_3_a_report_is_the_task_and_no_larger_either() {
        let (_, task) = written(&json!({"n": 1}), Form::Whole);
        assert_eq!(task["kind"], "task");
        assert_eq!(task["contextId"], "talk");
        assert_eq!(task["status"]["state"], "working");
        let part = &task["artifacts"][0]["parts"][0];
        assert_eq!(*part, json!({"kind": "data", "data": {"n": 1}}));
        let large = json!({"text": "x".repeat(BODY_BYTES_MAX)});
        let (bytes, task) = written(&large, Form::Whole);
        assert!(bytes < BODY_BYTES_MAX);
        assert_eq!(task["artifacts"][0]["parts"][0]["kind"], "text");
    }
}
