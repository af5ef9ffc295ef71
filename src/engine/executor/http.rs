//! `http_executor`: sends one request and takes the answer as the task's result.
//!
//! What it promises: one request for each attempt, to an address that the rules for receivers allow
//! (`crates/net`), no redirect followed, no more read than the task asks for. What it does not promise:
//! secrecy of what a task holds. Inputs are recorded, with their headers and credentials, and whoever may
//! read the task may read them. A header or credential that must not be read is named by a reference,
//! `{"$secret": "name"}`; its text comes with the attempt.
//!
//! `inputs` reads inputs into a `request`, `schema` describes them, `answer` makes a result or a failure.

mod answer;
pub(super) mod inputs;
mod request;
pub(super) mod schema;
#[cfg(test)]
mod tests;

use super::{Concurrency, Description, Executor, ExecutorError, Job, references, retry_codes};
use crate::clock::retry_after_now;
use crate::egress::{Egress, Error};
use crate::engine::secrets::Places;
use async_trait::async_trait;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use request::Request;
use serde_json::{Map, Value};
use std::sync::Arc;
use taskledger_auth::SecretName;
use taskledger_domain::Violation;

/// Its name in `schemas.method`.
const NAME: &str = "http_executor";
/// Its other name.
const ALIAS: &str = "rest_executor";
/// Where inputs may name secrets.
pub(super) const PLACES: Places = Places {
    members: &[
        ("headers", None),
        ("auth", Some("username")),
        ("auth", Some("password")),
        ("auth", Some("token")),
        ("auth", Some("value")),
    ],
    told: "as the value of a header, and as `username`, `password`, `token` or `value` in `auth`",
};

/// Sends HTTP requests.
///
/// Inputs: `url`; `method`, `headers`, `params` (of the query), one of `json`, `body`, `form`; `auth`,
/// `timeout_seconds` (or `timeout`), `response_bytes_max`, `truncate`, `expect_status`. Result: `{status,
/// headers, json | body | body_base64, truncated, duration_ms}`. A status that is not expected fails the
/// attempt, and so does a body that is too large. The next attempt waits at least for the answer's `Retry-After`
/// (RFC 9110 10.2.3). No attempt follows after a status of
/// `params.retry.non_retryable_statuses`; without that list, after 400 to 499 but 408, 425 and 429.
#[derive(Debug)]
pub struct HttpExecutor {
    egress: Arc<Egress>,
}

impl HttpExecutor {
    /// An executor that sends through this client.
    #[must_use]
    pub const fn new(egress: Arc<Egress>) -> Self {
        Self { egress }
    }
}

#[async_trait]
impl Executor for HttpExecutor {
    fn describe(&self) -> Description {
        Description {
            name: NAME.to_owned(),
            aliases: vec![ALIAS.to_owned()],
            summary:
                "Sends an HTTP request; its answer is the result. Credentials in the inputs are \
                      recorded with the task, unless they are references to secrets."
                    .to_owned(),
            // A request may have arrived before the server was interrupted, and most methods do
            // something.
            idempotent: false,
            pure: false,
            input_schema: Some(schema::schema()),
            concurrency: Concurrency::Waiting,
        }
    }

    fn params(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn check(&self, inputs: &Map<String, Value>) -> Vec<Violation> {
        references::faults(&PLACES, inputs, |filled| {
            Request::read(filled, self.egress.policy()).err()
        })
    }

    fn secrets(&self, inputs: &Map<String, Value>) -> Vec<SecretName> {
        PLACES.names(inputs)
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        let filled = references::filled_where_allowed(&PLACES, &job)?;
        let request = Request::read(&filled, self.egress.policy());
        let mut request =
            request.map_err(|faults| ExecutorError::new(references::told(&faults)))?;
        request.hide_references(&job.inputs);
        let outgoing = request.outgoing(&job);
        let sending = self.egress.send(outgoing);
        let answered = tokio::select! {
            biased;
            () = job.cancel.cancelled() => {
                return Err(ExecutorError::new(format!("{} was stopped", request.name())));
            }
            answered = sending => answered,
        };
        match answered {
            Ok(incoming) => {
                let status = incoming.status;
                let expected = request.expected.holds(status);
                let pause = incoming.headers.get(RETRY_AFTER);
                let pause = pause.and_then(|it| retry_after_now(it.to_str().ok()?));
                let answer = answer::result(&request, incoming, job.secrets.scrubber());
                answer.map_err(
                    |error| match expected || may_get_better(status, &job.params) {
                        true => error.retry_after(pause),
                        false => error.not_retryable(),
                    },
                )
            }
            Err(error) => Err(unanswered(&request, &error)),
        }
    }
}

/// Whether another request may be answered otherwise than with this status.
fn may_get_better(status: StatusCode, params: &Map<String, Value>) -> bool {
    match retry_codes(params, "non_retryable_statuses") {
        Some(ends) => !ends.contains(&u64::from(status.as_u16())),
        None => {
            !status.is_client_error()
                || [
                    StatusCode::REQUEST_TIMEOUT,
                    StatusCode::TOO_EARLY,
                    StatusCode::TOO_MANY_REQUESTS,
                ]
                .contains(&status)
        }
    }
}

fn unanswered(request: &Request, error: &Error) -> ExecutorError {
    ExecutorError::new(format!("{}: {error}", request.name()))
}
