//! Descriptions of the methods by which tasks ask people.

use super::super::schemas::{at, object, with_optional};
use super::work::{LEASE, PRINTED};
use super::{About, Example};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::openrpc::schema_parts::time_or_null;
use serde_json::{Value, json};

/// What the id of a wait looks like. Each wait has another one.
const SUSPENSION: &str = "ca0e8400-e29b-41d4-a716-446655440000";
const EXPIRES: &str = "2026-01-15T11:30:01.000000Z";

fn id(description: &str) -> Value {
    json!({"type": "string", "format": "uuid", "description": description})
}

/// `tasks.suspend`.
#[must_use]
pub fn suspend() -> About {
    About {
        description: "Asks a person, and suspends the claimed task: it stays `in_progress`, without lease and slot, for days if necessary, until a person answers with `tasks.respond`, the wait expires, or the task ends otherwise. Then it is ready again, and whoever claims it gets all questions and answers of the run in `context.answers`. A wait uses up none of the task's retries. Repetitions are as those of `tasks.complete`.",
        result: "suspended",
        schema: object(json!({
            "task_id": at("TaskId"),
            "suspension_id": id("Names the wait."),
            "expires_at": time_or_null("When the wait ends; null for never."),
        })),
        errors: &[ErrorKind::LeaseNotHeld],
        examples: vec![Example {
            name: "a choice",
            description: "For an hour; without an answer the task fails.",
            params: json!({"task_id": PRINTED, "lease": LEASE, "request": {
                "question": "Which paper?", "response_type": "choice",
                "choices": [{"value": "a4", "label": "A4"}, {"value": "letter"}], "timeout_seconds": 3600,
            }}),
            result: json!({"task_id": PRINTED, "suspension_id": SUSPENSION, "expires_at": EXPIRES}),
        }],
    }
}

/// `tasks.respond`.
#[must_use]
pub fn respond() -> About {
    let always = object(json!({
        "task_id": at("TaskId"),
        "suspension_id": id("The wait, which is over."),
        "resolution": {"type": "string", "enum": ["responded"]},
        "value": {"description": "The answer."},
        "responded_by": {"type": "string", "description": "The principal that answered."},
        "status": {"type": "string", "enum": ["pending", "completed", "failed"], "description": "Status of the task: ready for a worker again, or ended by the answer if no worker asked."},
    }));
    About {
        description: "Answers what a suspended task asks. The first valid answer counts; the same one again, by the same principal, gets the same result. An invalid answer is refused, and the task keeps waiting.",
        result: "responded",
        schema: with_optional(
            always,
            json!({"choice_label": {"type": "string", "description": "What people read of the choice."}}),
        ),
        errors: &[
            ErrorKind::TaskNotFound,
            ErrorKind::NotSuspended,
            ErrorKind::OutputTypeMismatch,
            ErrorKind::MissingOutput,
        ],
        examples: vec![Example {
            name: "a choice",
            description: "The worker that claims the task next gets it.",
            params: json!({"task_id": PRINTED, "suspension_id": SUSPENSION, "value": "a4"}),
            result: json!({
                "task_id": PRINTED, "suspension_id": SUSPENSION, "resolution": "responded", "value": "a4",
                "choice_label": "A4", "responded_by": "anonymous", "status": "pending",
            }),
        }],
    }
}
