//! The two bindings: an operation as a request, and a body as an answer.

use crate::error::AgentError;
use crate::http::Request;
use crate::{Agent, Error};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use taskledger_a2a::Operation;
use taskledger_a2a::headers::{EXTENSIONS, SERVED, VERSION};
use taskledger_domain::json::{self, Unread};
use url::form_urlencoded;

/// The id of each call over JSON-RPC: each has an answer of its own.
const ID: i64 = 1;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const ANY_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json, application/json");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The binding by which an agent is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// HTTP+JSON.
    Rest,
}

impl Binding {
    /// Those that this client speaks.
    pub const ALL: [Self; 2] = [Self::JsonRpc, Self::Rest];

    /// Its name in cards.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Rest => "HTTP+JSON",
        }
    }
}

impl FromStr for Binding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|binding| binding.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| "expected JSONRPC or HTTP+JSON".to_owned())
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An operation that is to be called.
#[derive(Debug, Clone)]
pub(crate) struct OperationCall<'a> {
    pub(crate) operation: Operation,
    /// The members of its request.
    pub(crate) members: Map<String, Value>,
    pub(crate) key: Option<&'a str>,
    pub(crate) last_event: Option<&'a str>,
    pub(crate) within: Duration,
}

/// The request that calls an operation of an agent.
pub(crate) fn request(agent: &Agent, asked: OperationCall<'_>) -> Result<Request, Error> {
    let mut headers = agent.headers().clone();
    headers.insert(
        HeaderName::from_static(VERSION),
        HeaderValue::from_static(SERVED),
    );
    if let Some(uri) = agent.own_extension() {
        let name = HeaderName::from_static(EXTENSIONS);
        headers.insert(name, HeaderValue::from_static(uri));
    }
    for (name, text) in [
        (IDEMPOTENCY_KEY, asked.key),
        (LAST_EVENT_ID, asked.last_event),
    ] {
        // What an agent calls a place may be no header; then its stream begins anew.
        if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
    let streams = asked.operation.streams();
    let accept = match (streams, agent.binding()) {
        (true, _) => STREAM,
        (false, Binding::JsonRpc) => JSON,
        (false, Binding::Rest) => ANY_JSON,
    };
    headers.insert(ACCEPT, accept);
    match agent.binding() {
        Binding::JsonRpc => Ok(rpc(agent, headers, asked)),
        Binding::Rest => rest(agent, headers, asked),
    }
}

fn rpc(agent: &Agent, mut headers: HeaderMap, asked: OperationCall<'_>) -> Request {
    headers.insert(CONTENT_TYPE, JSON);
    let mut params = asked.members;
    if let Some(tenant) = agent.tenant() {
        params.insert("tenant".to_owned(), tenant.into());
    }
    let body = json!({
        "jsonrpc": "2.0",
        "id": ID,
        "method": asked.operation.name(),
        "params": params,
    });
    Request {
        url: agent.url().to_owned(),
        method: Method::POST,
        headers,
        body: body.to_string().into(),
        within: asked.within,
    }
}

fn rest(agent: &Agent, mut headers: HeaderMap, asked: OperationCall<'_>) -> Result<Request, Error> {
    let mut members = asked.members;
    let mut taken = |name: &str| match members.remove(name) {
        Some(Value::String(id)) => Ok(segment(&id)),
        Some(_) | None => Err(Error::Invalid(format!("`{name}` is needed for the path"))),
    };
    let (method, path) = match asked.operation {
        Operation::SendMessage => (Method::POST, "message:send".to_owned()),
        Operation::SendStreamingMessage => (Method::POST, "message:stream".to_owned()),
        Operation::GetTask => (Method::GET, format!("tasks/{}", taken("id")?)),
        Operation::ListTasks => (Method::GET, "tasks".to_owned()),
        Operation::CancelTask => (Method::POST, format!("tasks/{}:cancel", taken("id")?)),
        Operation::SubscribeToTask => (Method::POST, format!("tasks/{}:subscribe", taken("id")?)),
        Operation::GetExtendedAgentCard => (Method::GET, "extendedAgentCard".to_owned()),
        Operation::CreateTaskPushNotificationConfig
        | Operation::GetTaskPushNotificationConfig
        | Operation::ListTaskPushNotificationConfigs
        | Operation::DeleteTaskPushNotificationConfig => {
            let name = asked.operation.name();
            return Err(Error::Invalid(format!("this client has no {name}")));
        }
    };
    let mut url = agent.url().trim_end_matches('/').to_owned();
    if let Some(tenant) = agent.tenant() {
        url = format!("{url}/{}", segment(tenant));
    }
    url = format!("{url}/{path}");
    let mut body = Bytes::new();
    if method == Method::GET {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &members {
            match value {
                Value::String(text) => query.append_pair(name, text),
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_)) => query.append_pair(name, &other.to_string()),
            };
        }
        let query = query.finish();
        if !query.is_empty() {
            url = format!("{url}?{query}");
        }
    } else {
        headers.insert(CONTENT_TYPE, JSON);
        body = Value::Object(members).to_string().into();
    }
    Ok(Request {
        url,
        method,
        headers,
        body,
        within: asked.within,
    })
}

/// A text as one segment of a path.
fn segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                segment.push(char::from(byte));
            }
            other => segment.push_str(&format!("%{other:02X}")),
        }
    }
    segment
}

/// What a body holds that answers a call, or one event of a stream.
///
/// # Errors
/// [`Error`]: the agent says no, or it is no answer.
pub(crate) fn result(binding: Binding, status: StatusCode, body: &[u8]) -> Result<Value, Error> {
    if status.is_redirection() {
        let text =
            format!("the agent answers {status}; it points elsewhere, which is not followed");
        return Err(Error::Invalid(text));
    }
    let members = match json::read(body) {
        Ok(Value::Object(members)) => Some(members),
        Err(lossy @ (Unread::Large(_) | Unread::Reserved)) => {
            let text = format!("the answer of the agent cannot be kept: {lossy}");
            return Err(Error::Invalid(text));
        }
        Ok(_) | Err(Unread::Json(_)) => None,
    };
    let Some(mut members) = members else {
        return Err(match status.is_success() {
            true => Error::Invalid(format!("the agent answers {status} with no JSON object")),
            false => Error::Agent(Box::new(AgentError::of_status(status, body))),
        });
    };
    // An answer of HTTP+JSON has no member of this name.
    if let Some(error) = members.get("error").filter(|it| !it.is_null()) {
        return Err(Error::Agent(Box::new(AgentError::read(error, status))));
    }
    if !status.is_success() {
        return Err(Error::Agent(Box::new(AgentError::of_status(status, body))));
    }
    match binding {
        Binding::Rest => Ok(Value::Object(members)),
        Binding::JsonRpc => match (members.remove("result"), members.get("id")) {
            (Some(result), Some(id)) if *id == json!(ID) => Ok(result),
            (Some(_), _) => Err(Error::Invalid(
                "the agent answers under another id than that of the call".to_owned(),
            )),
            (None, _) => Err(Error::Invalid(
                "the agent answers with neither `result` nor `error`".to_owned(),
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_cannot_leave_its_place() {
        assert_eq!(segment("a-1_b.c~"), "a-1_b.c~");
        assert_eq!(segment("../x?y#z:ä"), "..%2Fx%3Fy%23z%3A%C3%A4");
    }

    #[test]
    fn answers_are_told_from_errors_and_from_what_is_neither() {
        let rpc = |body: &str| result(Binding::JsonRpc, StatusCode::OK, body.as_bytes());
        assert_eq!(
            rpc(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#),
            Ok(json!({"a": 1}))
        );
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"id":2,"result":{}}"#,
            r#"{"result":{}}"#,
            "<html>",
        ] {
            assert!(matches!(rpc(bad), Err(Error::Invalid(_))), "{bad}");
        }
        let failed = rpc(r#"{"id":null,"error":{"code":-32700,"message":"no"}}"#);
        assert!(matches!(failed, Err(Error::Agent(_))), "{failed:?}");
        let rest = |status: StatusCode, body: &str| result(Binding::Rest, status, body.as_bytes());
        assert_eq!(
            rest(StatusCode::OK, r#"{"id":"t"}"#),
            Ok(json!({"id": "t"}))
        );
        let gone = rest(StatusCode::BAD_GATEWAY, "<html>").expect_err("no answer");
        assert!(gone.is_transient(), "{gone}");
        let moved = rest(StatusCode::FOUND, "").expect_err("not followed");
        assert!(moved.to_string().contains("not followed"), "{moved}");
    }
}
