//! `http_executor`: sends one request and takes the answer as the task's result.
//!
//! What it promises: one request for each attempt, to an address that the rules for receivers allow
//! (`src/egress`), no redirect followed, no more read than the task asks for. What it does not promise:
//! secrecy of what a task names. Inputs are recorded, with their headers and credentials, and whoever may
//! read the task may read them.
//!
//! `request` reads inputs, `schema` describes them, `answer` makes a result or a failure.

mod answer;
mod request;
mod schema;
#[cfg(test)]
mod tests;

use super::{Concurrency, Description, Executor, ExecutorError, Job};
use crate::egress::{Egress, Error};
use async_trait::async_trait;
use request::Request;
use serde_json::Value;
use std::sync::Arc;

/// Its name in `schemas.method`.
const NAME: &str = "http_executor";
/// Its other name.
const ALIAS: &str = "rest_executor";

/// Sends HTTP requests.
///
/// Inputs: `url`; `method`, `headers`, `params` (of the query), one of `json`, `body`, `form`; `auth`,
/// `timeout_seconds` (or `timeout`), `response_bytes_max`, `truncate`, `expect_status`. Result: `{status,
/// headers, json | body | body_base64, truncated, duration_ms}`. A status that is not expected fails the
/// attempt, and so does a body that is too large.
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
                      recorded with the task."
                    .to_owned(),
            // A request may have arrived before the server was interrupted, and most methods do
            // something.
            idempotent: false,
            input_schema: Some(schema::schema()),
            concurrency: Concurrency::Waiting,
        }
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        let request = Request::read(&job.inputs, self.egress.policy())?;
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
            Ok(incoming) => answer::result(&request, incoming),
            Err(error) => Err(unanswered(&request, &error)),
        }
    }
}

fn unanswered(request: &Request, error: &Error) -> ExecutorError {
    ExecutorError::new(format!("{}: {error}", request.name()))
}
