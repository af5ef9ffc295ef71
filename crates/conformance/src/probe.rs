//! The tools of a check: calls to one server, names of its own, tasks, and waiting.
//!
//! Each check has a probe of its own, so checks run side by side, on a store that holds other data.

use super::answer::{Answer, Reply, RpcError, shown};
use super::clause::Finding;
use super::options::Options;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Duration;
use tokio::time::Instant;

/// How long a check waits for something that the server does by itself.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(20);
/// Says that the call may be sent again. Other servers use the code for other things and then are
/// not believed for longer than the patience.
const TOO_BUSY: i64 = -32013;

/// Calls to one server on behalf of one check.
#[derive(Debug)]
pub struct Probe {
    options: Options,
    client: Client,
    /// Unlike that of any other check, of this or of another run of the suite.
    token: String,
    last_id: Cell<u64>,
}

impl Probe {
    /// A probe of the server in `options`; nothing is sent yet.
    #[must_use]
    pub fn new(options: Options, client: Client, token: String) -> Self {
        Self {
            options,
            client,
            token,
            last_id: Cell::new(0),
        }
    }

    /// The same names, on connections of their own.
    ///
    /// # Errors
    /// [`Finding::Failed`]: the system cannot make a client.
    pub(super) fn another_client(&self) -> Result<Self, Finding> {
        let client = self.options.client();
        let client = client.map_err(|error| Finding::failed(error.to_string()))?;
        Ok(Self::new(self.options.clone(), client, self.token.clone()))
    }

    /// Calls a method as [`Options::other_headers`] say.
    ///
    /// # Errors
    /// [`Finding::Skipped`]: there are none. [`Finding::Failed`]: no answer, or no sound one.
    pub(super) async fn call_of_another_user(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Reply, Finding> {
        if self.options.other_headers.is_empty() {
            let text = "no other user is known; --other-header says how one is told apart";
            return Err(Finding::skipped(text));
        }
        let mut other = self.another_client()?;
        other
            .options
            .headers
            .clone_from(&self.options.other_headers);
        other.another_client()?.call(method, params).await
    }

    /// Which server is looked at.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// What sends requests, for answers that are read piece by piece.
    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// A name that no other check uses, with `what` in it.
    #[must_use]
    pub fn name(&self, what: &str) -> String {
        format!("conformance {} {what}", self.token)
    }

    /// A user that no other check uses; tasks of this probe belong to it.
    #[must_use]
    pub fn user(&self) -> String {
        format!("conformance-{}", self.token)
    }

    /// An id for a request.
    fn next_id(&self) -> String {
        self.last_id.set(self.last_id.get() + 1);
        format!("{}-{}", self.token, self.last_id.get())
    }

    /// Calls a method; the answer's envelope is sound. A server that is too busy is asked again.
    ///
    /// # Errors
    /// [`Finding::Failed`]: no answer, or no sound one.
    pub async fn call(&self, method: &str, params: Value) -> Result<Reply, Finding> {
        let id = Value::from(self.next_id());
        let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": id});
        self.request(&request).await
    }

    /// As [`Self::call`], with the whole request object given: for `metadata`, odd ids and so on.
    ///
    /// # Errors
    /// [`Finding::Failed`]: no answer, or no sound one.
    pub async fn request(&self, request: &Value) -> Result<Reply, Finding> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.post(request.to_string()).await?;
            let reply = answer.reply(&request["id"])?;
            match &reply.outcome {
                Err(error) if error.code == TOO_BUSY && Instant::now() < deadline => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(_) | Ok(_) => return Ok(reply),
            }
        }
    }

    /// The result of a call that must succeed.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it did not.
    pub async fn result(&self, method: &str, params: Value) -> Result<Value, Finding> {
        self.call(method, params).await?.expect_result()
    }

    /// The error of a call that must be refused with this code.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it was not.
    pub async fn refused(
        &self,
        method: &str,
        params: Value,
        code: i64,
    ) -> Result<RpcError, Finding> {
        self.call(method, params).await?.expect_error(code)
    }

    /// Posts a body as JSON to where calls go. Nothing of the answer is checked.
    ///
    /// # Errors
    /// [`Finding::Failed`]: no answer.
    pub async fn post(&self, body: impl Into<Vec<u8>>) -> Result<Answer, Finding> {
        self.raw(body, &[("content-type", "application/json")])
            .await
    }

    /// Posts a body with these headers to where calls go. Nothing of the answer is checked.
    ///
    /// # Errors
    /// [`Finding::Failed`]: no answer.
    pub async fn raw(
        &self,
        body: impl Into<Vec<u8>>,
        headers: &[(&str, &str)],
    ) -> Result<Answer, Finding> {
        let endpoint = self.options.path.clone();
        self.http(Method::POST, &endpoint, headers, body).await
    }

    /// Any HTTP request to any path of the server. Nothing of the answer is checked.
    ///
    /// # Errors
    /// [`Finding::Failed`]: no answer.
    pub async fn http(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Result<Answer, Finding> {
        let body = body.into();
        let sent = format!("{method} {path} {}", shown(String::from_utf8_lossy(&body)));
        let mut request = self.client.request(method, self.options.at(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let exchange = async {
            let response = request.body(body).send().await?;
            let version = format!("{:?}", response.version());
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            Ok::<_, reqwest::Error>((version, status, headers, response.bytes().await?))
        };
        let broken = |why: String| Finding::failed(format!("sent {sent}: no answer: {why}"));
        let timeout = self.options.call_timeout;
        let (version, status, headers, body) = match tokio::time::timeout(timeout, exchange).await {
            Ok(Ok(parts)) => parts,
            Ok(Err(error)) => return Err(broken(innermost(&error))),
            Err(_) => return Err(broken(format!("none in {} s", timeout.as_secs_f32()))),
        };
        Ok(Answer {
            sent,
            version,
            status,
            headers,
            body: body.to_vec(),
        })
    }

    /// Sends request objects as one batch and gives the answers, sound, in the order of the
    /// requests; none for a request without id. Those for which the server is too busy are sent again.
    ///
    /// # Errors
    /// [`Finding::Failed`]: the answer is no array of exactly the answers that are due.
    pub async fn batch(&self, requests: &[Value]) -> Result<Vec<Reply>, Finding> {
        let deadline = Instant::now() + PATIENCE;
        let due: Vec<&Value> = requests.iter().filter(|r| r.get("id").is_some()).collect();
        let mut replies = self.batch_once(requests).await?;
        loop {
            let is_busy = |at: &usize| {
                let outcome = &replies[*at].outcome;
                outcome.as_ref().is_err_and(|error| error.code == TOO_BUSY)
            };
            let busy: Vec<usize> = (0..replies.len()).filter(is_busy).collect();
            if busy.is_empty() || Instant::now() >= deadline {
                return Ok(replies);
            }
            tokio::time::sleep(PAUSE).await;
            let again: Vec<Value> = busy.iter().map(|at| due[*at].clone()).collect();
            for (at, reply) in busy.into_iter().zip(self.batch_once(&again).await?) {
                replies[at] = reply;
            }
        }
    }

    /// Sends them once.
    async fn batch_once(&self, requests: &[Value]) -> Result<Vec<Reply>, Finding> {
        let answer = self
            .post(Value::from(requests.to_vec()).to_string())
            .await?;
        let Value::Array(found) = answer.json()? else {
            return Err(Finding::failed(format!(
                "{}: expected an array of answers",
                answer.story()
            )));
        };
        let due: Vec<&Value> = requests.iter().filter_map(|r| r.get("id")).collect();
        if found.len() != due.len() {
            let text = format!("expected {} answers", due.len());
            return Err(Finding::failed(format!("{}: {text}", answer.story())));
        }
        let reply = |id: &&Value| {
            let own = found.iter().find(|reply| reply.get("id") == Some(*id));
            let missing = || Finding::failed(format!("{}: none for id {id}", answer.story()));
            Reply::of(own.ok_or_else(missing)?, id, &answer.sent)
        };
        due.iter().map(reply).collect()
    }

    /// Looks again and again until `look` finds something.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it found nothing within [`PATIENCE`], or failed itself.
    pub async fn eventually<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Result<Option<T>, Finding>,
    ) -> Result<T, Finding> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                let text = format!("waited {} s in vain: {what}", PATIENCE.as_secs());
                return Err(Finding::failed(text));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The cause that says something.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
