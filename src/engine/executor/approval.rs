//! `approval_executor`: asks a person, and needs no worker for it. The task is suspended meanwhile; the answer is its
//! result.

use super::{Asks, Concurrency, Description, Executor, ExecutorError, Job};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use taskledger_domain::Violation;
use taskledger_domain::question::Question;

/// Asks what `question` says: for a yes or no unless `response_type` says otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApprovalExecutor;

/// What happens when the answer is no.
const ON_REJECT: &str = "on_reject";
const RESPONSE_TYPE: &str = "response_type";

#[async_trait]
impl Executor for ApprovalExecutor {
    fn describe(&self) -> Description {
        Description {
            name: "approval_executor".to_owned(),
            aliases: Vec::new(),
            summary: "Asks a person, and completes with the answer.".to_owned(),
            idempotent: true,
            pure: true,
            input_schema: Some(json!({
                "type": "object",
                "required": ["question"],
                "properties": {
                    "question": {"type": "string"},
                    "response_type": {"enum": ["confirm", "choice", "text", "form"]},
                    "choices": {"type": "array"},
                    "schema": {"type": "object"},
                    "fields": {"type": "object"},
                    "context": {"type": "object"},
                    "channel_hint": {"type": "string"},
                    "timeout_seconds": {"type": "number"},
                    "fallback_policy": {"enum": ["fail", "complete_with_fallback", "use_default_and_continue"]},
                    "fallback_value": {},
                    "retry_policy": {"type": "object"},
                    "on_reject": {"enum": ["fail", "complete"]}
                },
                "additionalProperties": false
            })),
            concurrency: Concurrency::Waiting,
        }
    }

    fn params(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn check(&self, inputs: &Map<String, Value>) -> Vec<Violation> {
        Question::parse_beside(&question(inputs), &[ON_REJECT])
            .err()
            .unwrap_or_default()
    }

    fn asks(&self, inputs: &Map<String, Value>) -> Result<Option<Asks>, ExecutorError> {
        Ok(Some(Asks {
            question: question(inputs),
            declines: inputs.get(ON_REJECT).and_then(Value::as_str) != Some("complete"),
        }))
    }

    async fn execute(&self, _job: Job) -> Result<Value, ExecutorError> {
        Err(ExecutorError::new("nobody was asked"))
    }
}

/// Inputs without what is not of the question.
fn question(inputs: &Map<String, Value>) -> Map<String, Value> {
    let mut question = inputs.clone();
    question.remove(ON_REJECT);
    question
        .entry(RESPONSE_TYPE)
        .or_insert_with(|| "confirm".into());
    question
}

#[cfg(test)]
mod tests {
    use super::ApprovalExecutor;
    use crate::engine::executor::Executor as _;
    use serde_json::{Value, json};

    fn inputs(of: Value) -> serde_json::Map<String, Value> {
        of.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn it_asks_for_a_yes_or_no_unless_it_is_told_otherwise() {
        let asks = |given| ApprovalExecutor.asks(&inputs(given)).unwrap().unwrap();
        let asked = asks(json!({"question": "Send it?"}));
        assert_eq!(asked.question["response_type"], "confirm");
        assert!(asked.declines);
        let given = json!({"question": "Which?", "response_type": "text", "on_reject": "complete"});
        let asked = asks(given);
        assert_eq!(asked.question["response_type"], "text");
        assert!(!asked.declines && !asked.question.contains_key("on_reject"));
    }

    #[test]
    fn a_question_that_cannot_be_asked_is_refused_when_the_task_is_created() {
        let faults = ApprovalExecutor.check(&inputs(json!({"question": " "})));
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].field, "question");
        assert!(
            ApprovalExecutor
                .check(&inputs(json!({"question": "Go?"})))
                .is_empty()
        );
    }
}
