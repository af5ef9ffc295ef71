//! The interface through which commands call a server: over HTTP or inside the process. Over HTTP or inside the
//! process.

pub mod run_events;

use self::run_events::Begun;
use crate::meant::question_of_list;
use crate::methods::as_commands;
use crate::span::span;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// A call that has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApiError {
    /// The server answered with an error.
    #[error("{}", describe(message, *code, data))]
    Refused {
        /// The protocol's code.
        code: i64,
        /// The protocol's message.
        message: String,
        /// What is wrong.
        data: Value,
    },
    /// The server wants credentials, or others.
    #[error("{text}")]
    Denied {
        /// The status of HTTP: 401 or 403.
        status: u16,
        /// What was shown, and what to set.
        text: String,
    },
    /// The server could not be reached, or the connection broke: it is not known whether the call
    /// was executed.
    #[error("{0}")]
    Connection(String),
    /// Whatever answered does not speak the protocol.
    #[error("{0}")]
    Protocol(String),
}

/// The code with which a server is too busy, or its caller asks too fast.
pub(crate) const TOO_BUSY: i64 = -32013;

impl ApiError {
    /// When the server wants to be asked again, if it says so.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let Self::Refused { data, .. } = self else {
            return None;
        };
        let asked = data.get("retry_after_ms").and_then(Value::as_u64);
        asked.map(Duration::from_millis)
    }

    /// Whether the same question may be answered a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Connection(_) => true,
            Self::Refused { code, .. } => *code == TOO_BUSY,
            Self::Denied { .. } | Self::Protocol(_) => false,
        }
    }
}

/// Makes calls.
#[async_trait]
pub trait Api: Send + Sync {
    /// Calls `method` and returns its result.
    ///
    /// # Errors
    /// [`ApiError`].
    async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError>;

    /// The same under an idempotency key, so that a call whose answer was lost can be repeated. Where no
    /// answer can be lost the key is not needed.
    ///
    /// # Errors
    /// [`ApiError`].
    async fn call_keyed(&self, method: &str, params: Value, _key: &str) -> Result<Value, ApiError> {
        self.call(method, params).await
    }

    /// Makes a call that begins a run, and tells what happens in the run. It is made once, whatever becomes of its
    /// answer.
    ///
    /// # Errors
    /// [`ApiError`].
    async fn begin(&self, method: &str, params: Value) -> Result<Begun, ApiError> {
        let answer = self.call(method, params).await?;
        Ok(Begun {
            answer,
            events: None,
        })
    }

    /// Whether calls stay inside this process, so that nothing goes on when it ends.
    fn is_in_process(&self) -> bool {
        false
    }

    /// Options that a command needs to reach the same server in the same way, each behind a blank.
    fn options(&self) -> &str {
        ""
    }
}

/// The body of a request.
pub fn request(method: &str, params: Value) -> Vec<u8> {
    let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    request.to_string().into_bytes()
}

/// The body of a request that begins a run, and asks for what happens in it.
pub fn begin(method: &str, mut params: Value) -> Vec<u8> {
    if let Some(params) = params.as_object_mut() {
        params.insert("use_streaming".to_owned(), Value::Bool(true));
    }
    request(method, params)
}

/// The body of a request under an idempotency key.
pub(super) fn keyed(method: &str, params: Value, key: &str) -> Vec<u8> {
    let metadata = json!({"idempotency_key": key});
    let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1, "metadata": metadata});
    request.to_string().into_bytes()
}

/// The result in the body of an answer.
pub fn result(body: &[u8]) -> Result<Value, ApiError> {
    let not_understood = || ApiError::Protocol("the server's answer is not JSON-RPC".to_owned());
    let Ok(Value::Object(mut answer)) = serde_json::from_slice(body) else {
        return Err(not_understood());
    };
    if let Some(result) = answer.remove("result") {
        return Ok(result);
    }
    let Some(Value::Object(mut error)) = answer.remove("error") else {
        return Err(not_understood());
    };
    Err(ApiError::Refused {
        code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
        message: error
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or("no message")
            .to_owned(),
        data: error.remove("data").unwrap_or(Value::Null),
    })
}

/// Message, code and every fault, a line each.
fn describe(message: &str, code: i64, data: &Value) -> String {
    let mut text = format!("{message} ({code})");
    let scope = data.get("scope").and_then(Value::as_str);
    let mut is_scope_told = false;
    let again = data.get("retry_after_ms").and_then(Value::as_u64);
    let again = again.map(|ms| format!("in {}", span(ms)));
    let faults = data.get("errors").and_then(Value::as_array);
    for fault in faults.into_iter().flatten() {
        let part = |name: &str| {
            let part = fault.get(name).and_then(Value::as_str);
            let text = as_commands(part.unwrap_or_default());
            match &again {
                Some(again) => text.replace("after `retry_after_ms`", again),
                None => text,
            }
        };
        if scope.is_some_and(|scope| part("expected").contains(&format!("`{scope}`"))) {
            // One sentence at the end says so, unless it is about something else than all credentials.
            if part("field") == "credentials" {
                continue;
            }
            is_scope_told = true;
        }
        let path = fault.get("path").map(path).unwrap_or_default();
        let place = if path.is_empty() { part("field") } else { path };
        let _ = write!(text, "\n  {place}: {}", part("reason"));
        if !part("expected").is_empty() {
            let _ = write!(text, ", expected {}", part("expected"));
        }
        match fault.get("actual") {
            None | Some(Value::Null) => {}
            Some(actual) => {
                let _ = write!(text, ", found {actual}");
                let expected = part("expected");
                if let Some(actual) = actual
                    .as_str()
                    .filter(|_| !expected.contains("did you mean"))
                {
                    text.push_str(&question_of_list(actual, &expected));
                }
            }
        }
    }
    if let Some(hint) = data.get("hint").and_then(Value::as_str) {
        let _ = write!(text, "\n  {}", as_commands(hint));
    }
    if let Some(scope) = scope.filter(|_| !is_scope_told) {
        let _ = write!(text, "\n  the credentials lack the scope `{scope}`");
    }
    if let Some(id) = data.get("error_id").and_then(Value::as_str) {
        let _ = write!(text, "\n  error id {id}");
    }
    text
}

/// `tasks[3].name`
fn path(segments: &Value) -> String {
    let mut text = String::new();
    for segment in segments.as_array().into_iter().flatten() {
        if let Some(index) = segment.as_u64() {
            let _ = write!(text, "[{index}]");
            continue;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(segment.as_str().unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_every_fault_and_its_place() {
        let body = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params","data":{"errors":[
            {"field":"name","reason":"empty","expected":"a string","actual":"","path":["tasks",3,"name"]},
            {"field":"x","reason":"unknown parameter","expected":"one of y","actual":null,"path":["x"]}]}}}"#;
        assert_eq!(
            result(body).unwrap_err().to_string(),
            "Invalid params (-32602)\n  tasks[3].name: empty, expected a string, found \"\"\n  x: unknown parameter, expected one of y"
        );
    }

    #[test]
    fn a_refusal_asks_for_the_name_that_was_probably_meant() {
        let fault = json!({"field": "types", "reason": "not a type of event", "path": ["types", 0],
            "expected": "one of task_created, task_completed, task_failed", "actual": "task_compl"});
        let error =
            json!({"code": -32602, "message": "Invalid params", "data": {"errors": [fault]}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string();
        let said = result(body.as_bytes()).unwrap_err().to_string();
        assert!(
            said.ends_with("found \"task_compl\"; did you mean `task_completed`?"),
            "{said}"
        );
    }

    #[test]
    fn a_refusal_names_the_scope_that_is_missing() {
        let body = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"Unauthorized","data":{"scope":"tasks:write"}}}"#;
        assert_eq!(
            result(body).unwrap_err().to_string(),
            "Unauthorized (-32004)\n  the credentials lack the scope `tasks:write`"
        );
    }

    #[test]
    fn a_scope_that_is_missing_is_said_once() {
        let refused = |field: &str, expected: &str| {
            let fault = json!({"field": field, "reason": "the credentials do not allow this",
                "expected": expected, "actual": null, "path": [field]});
            let error = json!({"code": -32004, "message": "Unauthorized",
                "data": {"scope": "worker", "errors": [fault]}});
            let body = json!({"jsonrpc": "2.0", "id": 1, "error": error});
            result(body.to_string().as_bytes()).unwrap_err().to_string()
        };
        assert_eq!(
            refused("credentials", "credentials with the scope `worker`"),
            "Unauthorized (-32004)\n  the credentials lack the scope `worker`"
        );
        assert_eq!(
            refused(
                "methods",
                "credentials with the scope `worker` for this method"
            ),
            "Unauthorized (-32004)\n  methods: the credentials do not allow this, expected credentials with the scope \
             `worker` for this method"
        );
    }

    #[test]
    fn a_refusal_names_commands_and_not_methods() {
        let body = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-31014,"message":"Schedule not found","data":{
            "errors":[{"field":"name","reason":"names no schedule","expected":"a name of `schedules.list`"}],
            "hint":"`system.executors` lists them"}}}"#;
        assert_eq!(
            result(body).unwrap_err().to_string(),
            "Schedule not found (-31014)\n  name: names no schedule, expected a name of `taskledger schedules list`\n  \
             `taskledger executors` lists them"
        );
    }

    #[test]
    fn a_refusal_says_what_would_help() {
        let body = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"Executor not found","data":{"hint":"allow it with --x"}}}"#;
        assert_eq!(
            result(body).unwrap_err().to_string(),
            "Executor not found (-32003)\n  allow it with --x"
        );
    }

    #[test]
    fn what_is_no_answer_is_not_taken_for_one() {
        for body in [&b"<html>"[..], b"[]", b"{}", b"{\"error\":\"no\"}", b""] {
            assert!(matches!(result(body), Err(ApiError::Protocol(_))));
        }
        assert_eq!(result(br#"{"result":null}"#), Ok(Value::Null));
    }
}
