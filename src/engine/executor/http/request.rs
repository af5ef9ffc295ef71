//! Parses the inputs of `http_executor`.

use super::inputs::Reader;
use crate::egress::{Outgoing, Policy, Target};
use crate::engine::executor::Job;
use axum::body::Bytes;
use axum::http::header::Entry;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::time::Duration;
use taskledger_domain::Violation;
use taskledger_domain::limits::PAYLOAD_BYTES_MAX;

/// Methods that are sent.
pub(super) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Headers of one request beside the client's: servers take about a hundred.
pub(super) const HEADERS_MAX: usize = 64;
/// Bytes of one header: servers take 8 KiB for a line.
pub(super) const HEADER_BYTES_MAX: usize = 8 * 1024;
/// Headers that only the client sets: they say where a request ends and who gets it.
pub(super) const FORBIDDEN_HEADERS: [&str; 8] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
];
/// And those for proxies.
pub(super) const FORBIDDEN_PREFIX: &str = "proxy-";
/// Members of `params` and of `form`, and values of each.
pub(super) const PARAMETERS_MAX: usize = 256;
/// Seconds that one request may ask for.
pub(super) const TIMEOUT_SECONDS_MAX: u32 = 600;
pub(super) const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// Bytes of a result beside the body: status, headers, names.
const RESULT_OVERHEAD_BYTES: usize = 128 * 1024;
/// Bytes of an answer's body, also when a task says nothing: what fits into a result.
pub(super) const RESPONSE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - RESULT_OVERHEAD_BYTES;
/// Entries of `expect_status`.
pub(super) const EXPECTED_MAX: usize = 64;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The number of the attempt: receivers that log calls can tell repetitions apart.
const ATTEMPT: HeaderName = HeaderName::from_static("taskledger-attempt");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

#[derive(Debug)]
pub(super) struct Request {
    pub(super) target: Target,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) timeout: Duration,
    pub(super) response_bytes_max: usize,
    pub(super) truncate: bool,
    pub(super) expected: Expected,
}

impl Request {
    /// Reads the inputs, whether or not they were checked against the schema before.
    ///
    /// # Errors
    /// Everything that is wrong with them, at paths from their root.
    pub(super) fn read(
        inputs: &Map<String, Value>,
        policy: &Policy,
    ) -> Result<Self, Vec<Violation>> {
        let mut reader = Reader::new(inputs);
        let method = reader.method();
        let mut headers = reader.headers();
        reader.authorize(&mut headers);
        let body = reader.body(&mut headers);
        let target = reader.target(policy);
        let timeout = reader.timeout();
        let response_bytes_max = reader.response_bytes_max();
        let truncate = reader.truncate();
        let expected = reader.expected();
        let target = reader.finish(target)?;
        Ok(Self {
            target,
            method,
            headers,
            body,
            timeout,
            response_bytes_max,
            truncate,
            expected,
        })
    }

    /// Keeps headers whose values were references to secrets out of `Debug` and out of tables that HTTP/2
    /// shares between requests.
    pub(super) fn hide_references(&mut self, inputs: &Map<String, Value>) {
        let members = inputs.get("headers").and_then(Value::as_object);
        for (name, value) in members.into_iter().flatten() {
            if value.is_object()
                && let Ok(name) = HeaderName::try_from(name.as_str())
                && let Entry::Occupied(mut values) = self.headers.entry(name)
            {
                values
                    .iter_mut()
                    .for_each(|value| value.set_sensitive(true));
            }
        }
    }

    /// What is sent for an attempt.
    pub(super) fn outgoing(&self, job: &Job) -> Outgoing {
        let mut headers = self.headers.clone();
        if let Ok(key) = HeaderValue::try_from(job.idempotency_key()) {
            headers.entry(IDEMPOTENCY_KEY).or_insert(key);
        }
        headers.entry(ATTEMPT).or_insert(job.attempt.into());
        if let Some(traceparent) = &job.traceparent
            && let Ok(traceparent) = HeaderValue::from_str(traceparent)
        {
            headers.entry(TRACEPARENT).or_insert(traceparent);
        }
        Outgoing {
            target: self.target.clone(),
            method: self.method.clone(),
            headers,
            body: self.body.clone(),
            timeout: self.timeout,
            // A secret at the end of what is kept must be seen whole.
            response_bytes_max: self.response_bytes_max + job.secrets.scrubber().reach(),
        }
    }

    /// Method and address, without the query.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

/// The statuses that are a success.
#[derive(Debug, PartialEq)]
pub(super) struct Expected {
    pub(super) ranges: Vec<RangeInclusive<u16>>,
    pub(super) text: String,
}

impl Expected {
    pub(super) fn holds(&self, status: StatusCode) -> bool {
        self.ranges
            .iter()
            .any(|range| range.contains(&status.as_u16()))
    }

    /// As the inputs say it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}
