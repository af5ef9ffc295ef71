//! `a2a_conformance_executor`: behaves as the official conformance kit of Agent2Agent tells it to. Registered only with
//! `--a2a-conformance-executor`; for that kit and for nothing else.
//!
//! What is wanted stands in what was said, anew on every turn: the id of the message and its text, or the text alone.
//! Everything that follows is the ordinary engine's: results, failures, questions, cancellation.

use super::{Concurrency, Description, Ended, Executor, ExecutorError, Job};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::time::Duration;
use taskledger_domain::flow::OutputPart;

/// Does what the conformance kit says.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConformanceExecutor;

/// What the kit calls the streaming timeout.
const STREAMING_TIMEOUT: Duration = Duration::from_secs(2);
/// What ends a conversation of several turns.
const DONE: &str = "done";

/// What is done in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Completes with this after a while.
    Completes(Duration, Made),
    /// Completes with the second text, after the first as a piece of its own.
    CompletesInPieces(&'static str, &'static str),
    /// Asks for input.
    Asks,
    AsksForCredentials,
    /// Asks for input until it is told that the conversation is over.
    Converses,
    /// Works until it is cancelled.
    Works,
    /// Does not do it.
    Rejects,
    /// Fails with this text.
    Fails(&'static str),
}

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Text(&'static str),
    File,
    FileUrl,
    Data,
}

const AT_ONCE: Duration = Duration::ZERO;
const HELLO: Turn = Turn::Completes(AT_ONCE, Made::Text("Hello from TCK"));

/// The turn that each beginning of a message stands for. The first that fits counts, so longer ones come before their
/// own beginnings.
const TURNS: [(&str, Turn); 21] = [
    ("tck-complete-task", HELLO),
    (
        "tck-artifact-text",
        Turn::Completes(AT_ONCE, Made::Text("Generated text content")),
    ),
    (
        "tck-artifact-file-url",
        Turn::Completes(AT_ONCE, Made::FileUrl),
    ),
    ("tck-artifact-file", Turn::Completes(AT_ONCE, Made::File)),
    ("tck-artifact-data", Turn::Completes(AT_ONCE, Made::Data)),
    ("tck-input-required", Turn::Asks),
    ("tck-auth-required", Turn::AsksForCredentials),
    ("tck-reject-task", Turn::Rejects),
    ("tck-task-failure", Turn::Fails("failed as it was told to")),
    (
        "tck-delayed-complete",
        Turn::Completes(STREAMING_TIMEOUT, Made::Text("Done after delay")),
    ),
    (
        "test-resubscribe-message-id",
        Turn::Completes(
            STREAMING_TIMEOUT.saturating_mul(2),
            Made::Text("Resubscribed"),
        ),
    ),
    (
        "tck-stream-001",
        Turn::Completes(AT_ONCE, Made::Text("Stream hello from TCK")),
    ),
    (
        "tck-stream-002",
        Turn::Completes(AT_ONCE, Made::Text("Stream message-only response")),
    ),
    (
        "tck-stream-003",
        Turn::Completes(AT_ONCE, Made::Text("Stream task lifecycle")),
    ),
    (
        "tck-stream-ordering-001",
        Turn::Completes(AT_ONCE, Made::Text("Ordered output")),
    ),
    (
        "tck-stream-artifact-text",
        Turn::Completes(AT_ONCE, Made::Text("Streamed text content")),
    ),
    (
        "tck-stream-artifact-file",
        Turn::Completes(AT_ONCE, Made::File),
    ),
    (
        "tck-stream-artifact-chunked",
        Turn::CompletesInPieces("chunk-1 ", "chunk-2"),
    ),
    ("tck-multi-turn", Turn::Converses),
    ("tck-cancel", Turn::Works),
    (
        "tck-long-running",
        Turn::Completes(STREAMING_TIMEOUT, Made::Text("Long-running output")),
    ),
];

impl ConformanceExecutor {
    /// Its name in `schemas.method`.
    pub const NAME: &'static str = "a2a_conformance_executor";
}

/// The turn that is wanted.
fn turn(said: &str) -> Turn {
    let found = TURNS.iter().find(|(prefix, _)| said.starts_with(prefix));
    found.map_or(HELLO, |(_, turn)| *turn)
}

impl Made {
    /// A result that is shown as one part.
    fn result(self) -> Value {
        let file = |content: &str, value: &str| json!({content: value, "filename": "output.txt", "mediaType": "text/plain"});
        let part = match self {
            Self::Text(text) => json!({"text": text}),
            // "tck".
            Self::File => file("raw", "dGNr"),
            Self::FileUrl => file("url", "https://example.com/output.txt"),
            Self::Data => json!({"data": {"key": "value", "count": 42}}),
        };
        json!({"a2a_parts": [part]})
    }
}

fn asks(text: &str, asks: &str) -> Ended {
    let question = [("question", text), ("asks", asks)];
    let question = question.map(|(name, value)| (name.to_owned(), Value::from(value)));
    Ended::Asks(Map::from_iter(question))
}

#[async_trait]
impl Executor for ConformanceExecutor {
    fn describe(&self) -> Description {
        Description {
            name: Self::NAME.to_owned(),
            aliases: Vec::new(),
            summary: "Behaves as the official conformance kit of Agent2Agent tells it to."
                .to_owned(),
            idempotent: true,
            pure: false,
            input_schema: Some(json!({
                "type": "object",
                "required": ["said"],
                "properties": {"said": {"type": "string"}},
                "additionalProperties": false
            })),
            concurrency: Concurrency::Waiting,
        }
    }

    fn params(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn remembers(&self) -> bool {
        true
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        match self.attempt(job).await? {
            Ended::Result(result) => Ok(result),
            Ended::Asks(_) => Err(ExecutorError::new("nobody can answer")),
        }
    }

    async fn attempt(&self, job: Job) -> Result<Ended, ExecutorError> {
        let answered = job.past.answered.as_ref().map(|it| &it.answer);
        let said = answered.or_else(|| job.inputs.get("said"));
        let said = said.and_then(Value::as_str).unwrap_or_default();
        match turn(said) {
            Turn::Completes(after, made) => {
                tokio::select! {
                    biased;
                    () = job.cancel.cancelled() => Err(stopped()),
                    () = tokio::time::sleep(after) => Ok(Ended::Result(made.result())),
                }
            }
            Turn::CompletesInPieces(first, second) => {
                job.output.append(OutputPart::Text(first.to_owned()));
                Ok(Ended::Result(Made::Text(second).result()))
            }
            Turn::Asks => Ok(asks("Input is required", "input")),
            Turn::AsksForCredentials => Ok(asks("Credentials are required", "auth")),
            Turn::Converses if said.lines().last().is_some_and(|it| it.trim() == DONE) => {
                Ok(Ended::Result(Made::Text("Conversation is over").result()))
            }
            Turn::Converses => Ok(asks("What else?", "input")),
            Turn::Works => {
                job.cancel.cancelled().await;
                Err(stopped())
            }
            Turn::Rejects => Err(ExecutorError::new("rejected as it was told to").rejected()),
            Turn::Fails(text) => Err(ExecutorError::new(text).not_retryable()),
        }
    }
}

fn stopped() -> ExecutorError {
    ExecutorError::new("the attempt was stopped")
}

#[cfg(test)]
mod tests {
    use super::{ConformanceExecutor, TURNS, Turn, turn};
    use crate::engine::executor::test_support::job;
    use crate::engine::executor::{Answered, Ended, Executor as _};
    use serde_json::{Map, Value, json};
    use taskledger_domain::SuspensionId;
    use tokio::time::Instant;

    async fn ended(said: &str) -> Result<Ended, String> {
        let attempt = ConformanceExecutor.attempt(job(json!({"said": said})));
        attempt.await.map_err(|error| error.to_string())
    }

    fn part(ended: Result<Ended, String>) -> Value {
        match ended {
            Ok(Ended::Result(result)) => result["a2a_parts"][0].clone(),
            other => panic!("no result: {other:?}"),
        }
    }

    #[test]
    fn every_prefix_means_its_own_row() {
        for (prefix, meant) in TURNS {
            assert_eq!(turn(&format!("{prefix}-1f\ntext")), meant, "{prefix}");
        }
        assert_eq!(turn("anything"), turn("tck-complete-task"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_said_first_decides() {
        let text = part(ended("tck-artifact-text-1\nhello").await);
        assert_eq!(text, json!({"text": "Generated text content"}));
        let file = part(ended("tck-artifact-file-1").await);
        assert_eq!(file["filename"], "output.txt");
        assert!(
            part(ended("tck-artifact-file-url").await)
                .get("url")
                .is_some()
        );
        assert_eq!(part(ended("tck-artifact-data").await)["data"]["count"], 42);
        let asked = |ended| match ended {
            Ok(Ended::Asks(question)) => question["asks"].clone(),
            other => panic!("no question: {other:?}"),
        };
        assert_eq!(asked(ended("tck-input-required").await), "input");
        assert_eq!(asked(ended("tck-auth-required").await), "auth");
        let rejected = ConformanceExecutor.attempt(job(json!({"said": "tck-reject-task"})));
        assert!(rejected.await.is_err_and(|error| error.is_rejected()));
        let failed = ConformanceExecutor.attempt(job(json!({"said": "tck-task-failure"})));
        assert!(failed.await.is_err_and(|error| !error.is_rejected()));
        let before = Instant::now();
        ended("test-resubscribe-message-id-1")
            .await
            .expect("a result");
        assert_eq!(before.elapsed().as_secs(), 4);
    }

    #[tokio::test]
    async fn an_answer_begins_a_turn_of_its_own() {
        let answered = async |said: &str| {
            let mut job = job(json!({"said": "tck-input-required"}));
            job.past.answered = Some(Answered {
                suspension: SuspensionId(job.task_id.0),
                question: Map::new(),
                answer: said.into(),
            });
            ConformanceExecutor.attempt(job).await
        };
        let asks = async |said| matches!(answered(said).await, Ok(Ended::Asks(_)));
        assert!(asks("tck-input-required-2\nmore").await);
        assert!(asks("tck-multi-turn-2\nmore").await);
        assert!(!asks("tck-multi-turn-3\ndone").await);
        assert!(!asks("more").await);
    }

    #[tokio::test]
    async fn it_works_until_it_is_cancelled() {
        let job = job(json!({"said": "tck-cancel-1"}));
        let cancel = job.cancel.clone();
        let running = tokio::spawn(ConformanceExecutor.attempt(job));
        cancel.cancel();
        assert!(running.await.expect("no panic").is_err());
        assert_eq!(turn("tck-cancel-1"), Turn::Works);
    }
}
