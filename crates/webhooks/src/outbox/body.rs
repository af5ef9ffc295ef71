//! The bytes of a message.

use bytes::Bytes;
use serde_json::{Map, Value};
use taskledger_domain::Payload;
use taskledger_subscription::notice::{Kind, Notice};

/// Bytes of a body; a larger one is sent without its result.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes of an error in a body that would be too large with all of it; a `contract_error` with more is left out.
const ERROR_BYTES_KEPT: usize = 16 * 1024;
const ROOM: usize = 512;

/// The notice with its type, compact. Cost: O(size).
#[must_use]
pub fn body(notice: &Notice) -> Bytes {
    let whole = written(notice);
    if whole.len() <= BODY_BYTES_MAX {
        return whole.into();
    }
    let mut shown = Map::new();
    shown.insert("truncated".to_owned(), Value::Bool(true));
    shown.insert("task_id".to_owned(), notice.task_id.to_string().into());
    let shown = Payload::from_map(&shown);
    let mut thin = notice.clone();
    thin.result = notice.result.as_ref().map(|_| shown);
    thin.error = notice
        .error
        .as_deref()
        .map(|error| error[..error.floor_char_boundary(ERROR_BYTES_KEPT)].into());
    thin.contract_error = notice
        .contract_error
        .clone()
        .filter(|told| told.bytes() <= ERROR_BYTES_KEPT);
    written(&thin).into()
}

fn written(notice: &Notice) -> Vec<u8> {
    let mut text = Vec::with_capacity(ROOM);
    text.extend_from_slice(head(notice.kind).as_bytes());
    let begin = text.len();
    notice.write_json(&mut text);
    // The brace that opens the notice stands before the type already.
    text[begin] = b',';
    text
}

const fn head(kind: Kind) -> &'static str {
    match kind {
        Kind::StatusUpdate => r#"{"type":"task_status_update""#,
        Kind::ProgressUpdate => r#"{"type":"task_progress_update""#,
        Kind::OutputAppended => r#"{"type":"task_output_appended""#,
        Kind::Completed => r#"{"type":"task_completed""#,
        Kind::Failed => r#"{"type":"task_failed""#,
        Kind::Cancelled => r#"{"type":"task_cancelled""#,
        Kind::Suspended => r#"{"type":"task_suspended""#,
        Kind::SuspensionReminder => r#"{"type":"task_suspension_reminder""#,
        Kind::SuspensionEnded => r#"{"type":"task_suspension_ended""#,
        Kind::ClaimRejected => r#"{"type":"task_claim_rejected""#,
        Kind::CompletionRejected => r#"{"type":"task_completion_rejected""#,
        Kind::RunCompleted => r#"{"type":"run_completed""#,
        Kind::RunFailed => r#"{"type":"run_failed""#,
        Kind::RunCancelled => r#"{"type":"run_cancelled""#,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;
    use taskledger_domain::flow::{Event, TaskCompleted};
    use taskledger_domain::{EventId, FlowId, Metadata, Recorded, TaskId, Timestamp};
    use taskledger_subscription::notice::notices;
    use uuid::Uuid;

    fn completed(result: Value) -> Recorded {
        let id = Uuid::from_u128(7);
        let result = result.as_object().unwrap().clone();
        Recorded {
            position: 3,
            flow: FlowId(id),
            version: 3,
            id: EventId(id),
            time: Timestamp(1),
            recorded_at: Timestamp(1),
            metadata: Metadata {
                actor: Arc::from("test"),
                correlation: Arc::from("test"),
                causation: None,
                trace: None,
            },
            event: Arc::new(Event::TaskCompleted(TaskCompleted {
                task_id: TaskId(id),
                attempt: 1,
                result: Payload::from_map(&result),
                remarks: None,
                parts: 0,
            })),
        }
    }

    fn bodies(recorded: &Recorded) -> Vec<Value> {
        notices(recorded)
            .map(|notice| serde_json::from_slice(&body(&notice)).unwrap())
            .collect()
    }

    #[test]
    fn a_body_is_the_notice_with_its_type() {
        let recorded = completed(json!({"n": 1}));
        let bodies = bodies(&recorded);
        for (body, notice) in bodies.iter().zip(notices(&recorded)) {
            let mut expected = serde_json::to_value(&notice).unwrap();
            expected["type"] = json!(notice.kind);
            assert_eq!(*body, expected);
        }
        assert_eq!(bodies[1]["result"], json!({"n": 1}));
        assert_eq!(bodies[1]["sequence"], 3);
        assert!(bodies[1]["timestamp"].is_string());
    }

    #[test]
    fn a_result_that_is_too_large_is_left_out_and_said_to_be() {
        let recorded = completed(json!({"text": "x".repeat(BODY_BYTES_MAX)}));
        let ending = notices(&recorded).nth(1).unwrap();
        let sent = body(&ending);
        assert!(sent.len() < BODY_BYTES_MAX);
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        let id = TaskId(Uuid::from_u128(7)).to_string();
        assert_eq!(sent["result"], json!({"truncated": true, "task_id": id}));
        assert_eq!(sent["status"], "completed");
    }
}
