//! Reports of runs as items of a stream, one in each request.

use super::views::{self, Named};
use crate::application::api::runs::{Artifact, Question, RunStatus, StatusMessage};
use crate::application::api::webhooks::{BODY_BYTES_MAX, Change, Report, Returned, Said, Wording};
use bytes::Bytes;
use taskledger_a2a::{Part, StreamResponse, Wire};

/// Writes reports as this protocol has them.
#[derive(Debug, Clone, Copy)]
pub struct Reports;

impl Wording for Reports {
    fn body(&self, report: &Report) -> Bytes {
        let named = Named::of(report.run, report.context.clone());
        let whole = item(&report.change, &named);
        let text = whole.to_json().to_string();
        if text.len() <= BODY_BYTES_MAX {
            return text.into();
        }
        shortened(whole, text.len()).to_json().to_string().into()
    }
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
            result,
            at,
        }) => {
            let artifact = Artifact {
                task,
                parent,
                is_result,
                name,
                attempt,
                result,
                at,
            };
            views::artifact_update(artifact, named)
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
    use serde_json::{Value, json};
    use std::sync::Arc;
    use taskledger_domain::{Payload, RunId, TaskId, Timestamp};
    use uuid::Uuid;

    fn written(result: &Value) -> (usize, Value) {
        let report = Report {
            run: RunId(Uuid::from_u128(1)),
            context: Arc::from("talk"),
            change: Change::Returned(Returned {
                task: TaskId(Uuid::from_u128(2)),
                parent: None,
                is_result: true,
                name: Arc::from("say"),
                attempt: 1,
                result: Payload::parse(&result.to_string()).expect("an object"),
                at: Timestamp(1),
            }),
        };
        let body = Reports.body(&report);
        (body.len(), serde_json::from_slice(&body).expect("JSON"))
    }

    #[test]
    fn a_report_is_one_item_and_no_larger_than_it_may_be() {
        let (_, item) = written(&json!({"n": 1}));
        let artifact = &item["artifactUpdate"]["artifact"];
        assert_eq!(item["artifactUpdate"]["contextId"], "talk");
        assert_eq!(artifact["artifactId"], "result");
        assert_eq!(artifact["parts"][0]["data"], json!({"n": 1}));
        let (bytes, item) = written(&json!({"text": "x".repeat(BODY_BYTES_MAX)}));
        assert!(bytes < BODY_BYTES_MAX);
        let left_out = &item["artifactUpdate"]["artifact"]["parts"][0]["text"];
        assert!(
            left_out
                .as_str()
                .is_some_and(|it| it.contains("read the task"))
        );
    }
}
