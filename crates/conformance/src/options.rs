//! Which server is looked at, and what it can be asked to run.

use reqwest::Client;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_net::tls::{Authority, client_trusting};

/// How long one call may take: longer than a sound server needs for the largest call of the suite.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// A server and its executors. Names and inputs differ between implementations.
#[derive(Debug, Clone)]
pub struct Options {
    /// Scheme (`http` or `https`), host and port: `http://127.0.0.1:8000`.
    pub url: String,
    /// Where calls go: `/` or `/tasks`.
    pub path: String,
    /// An executor that ends at once and takes any inputs.
    pub executor: String,
    /// An executor that takes a while.
    pub slow_executor: String,
    /// Its inputs for one minute; none: `{"duration_ms": n}` with the time that a check wants.
    pub slow_inputs: Option<Value>,
    /// Members of a task that fails soon after it was started.
    pub failing_task: Value,
    /// Sent with every call: what a caller authenticates itself with, for example.
    pub headers: HeaderMap,
    /// What another user sends instead; none where no other is known.
    pub other_headers: HeaderMap,
    /// Authorities that certificates of the server may come from, beside those of the system.
    pub authorities: Vec<Authority>,
    /// How long one call may take.
    pub call_timeout: Duration,
}

impl Options {
    /// The server at `url`, with the executors that come with this program.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self {
            url: url.trim_end_matches('/').to_owned(),
            path: "/".to_owned(),
            executor: "echo_executor".to_owned(),
            slow_executor: "sleep_executor".to_owned(),
            slow_inputs: None,
            failing_task: failing_task(),
            headers: HeaderMap::new(),
            other_headers: HeaderMap::new(),
            authorities: Vec::new(),
            call_timeout: CALL_TIMEOUT,
        }
    }

    /// A client that sends [`Self::headers`], unless a request has others of the same names.
    ///
    /// # Errors
    /// The system cannot make one, or one of [`Self::authorities`] cannot be one.
    pub(super) fn client(&self) -> Result<Client, String> {
        let trusting = client_trusting(self.authorities.iter().cloned());
        trusting
            .map_err(|error| error.to_string())?
            .no_proxy()
            .tcp_nodelay(true)
            .redirect(Policy::none())
            .default_headers(self.headers.clone())
            .build()
            .map_err(|error| error.to_string())
    }

    /// The address of calls.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.at(&self.path)
    }

    /// The address of `path` at the same server.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}/{}", self.url, path.trim_start_matches('/'))
    }
}

/// Sleeps for longer than it may.
#[must_use]
pub fn failing_task() -> Value {
    json!({
        "schemas": {"method": "sleep_executor"},
        "inputs": {"duration_ms": 60_000},
        "params": {"timeout_seconds": 0.05},
    })
}
