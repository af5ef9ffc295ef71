//! An answer: an HTTP response, and the JSON-RPC answer in it.

use super::clause::{Finding, ensure};
use reqwest::header::HeaderMap;
use serde_json::Value;

/// Characters of a request or an answer that a finding shows.
const SHOWN_CHARS_MAX: usize = 300;

/// `value` as a finding shows it.
pub(super) fn shown(value: impl ToString) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN_CHARS_MAX {
        return text;
    }
    let begin: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    format!("{begin}... ({} bytes)", text.len())
}

/// One HTTP response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What was sent, for findings.
    pub sent: String,
    /// `HTTP/1.1`, for example.
    pub version: String,
    /// The HTTP status.
    pub status: u16,
    /// The HTTP headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub body: Vec<u8>,
}

impl Answer {
    /// The header `name`; empty when it is absent or no text.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// What was sent and what came, in one line.
    #[must_use]
    pub fn story(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        format!("sent {}, got {} {}", self.sent, self.status, shown(body))
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it is none.
    pub fn json(&self) -> Result<Value, Finding> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Finding::failed(format!("{}: no JSON: {error}", self.story())))
    }

    /// The body as one sound JSON-RPC answer to the request with this id.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it is none.
    pub fn reply(&self, id: &Value) -> Result<Reply, Finding> {
        let value = self.json()?;
        Reply::of(&value, id, &self.sent)
    }

    /// The error of a request whose id could not be read, or that has none.
    ///
    /// # Errors
    /// [`Finding::Failed`]: the body is no sound answer, has another id than null, or no such error.
    pub fn expect_error_without_id(&self, code: i64) -> Result<RpcError, Finding> {
        self.reply(&Value::Null)?.expect_error(code)
    }
}

/// The error object of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// The JSON-RPC error code.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// Anything; null when absent.
    pub data: Value,
}

/// One sound answer to one request.
#[derive(Debug, Clone)]
pub struct Reply {
    /// What was sent, for findings.
    pub sent: String,
    /// What was answered.
    pub outcome: Result<Value, RpcError>,
}

impl Reply {
    /// Checks the envelope: version, id, and either a result or an error with code and message.
    ///
    /// # Errors
    /// [`Finding::Failed`]: what is wrong with it.
    pub fn of(value: &Value, id: &Value, sent: &str) -> Result<Self, Finding> {
        let story = || format!("sent {sent}, got {}", shown(value));
        ensure!(value.is_object(), "{}: expected one object", story());
        ensure!(
            value["jsonrpc"] == "2.0",
            "{}: expected `jsonrpc` to be \"2.0\"",
            story()
        );
        ensure!(
            value.get("id") == Some(id),
            "{}: expected `id` to be {id}",
            story()
        );
        let outcome = match (value.get("result"), value.get("error")) {
            (Some(result), None) => Ok(result.clone()),
            (None, Some(error)) => Err(RpcError::of(error).ok_or_else(|| {
                let text = "expected `error` to have an integer `code` and a text `message`";
                Finding::failed(format!("{}: {text}", story()))
            })?),
            (Some(_), Some(_)) | (None, None) => {
                let text = "expected either `result` or `error`";
                return Err(Finding::failed(format!("{}: {text}", story())));
            }
        };
        Ok(Self {
            sent: sent.to_owned(),
            outcome,
        })
    }

    /// The result.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it is an error.
    pub fn expect_result(self) -> Result<Value, Finding> {
        let sent = self.sent;
        self.outcome.map_err(|error| {
            Finding::failed(format!("sent {sent}, got {error}: expected a result"))
        })
    }

    /// The error, which must have this code.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it is a result, or another error.
    pub fn expect_error(self, code: i64) -> Result<RpcError, Finding> {
        self.expect_error_of(&[code])
    }

    /// The error, which must have one of these codes.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it is a result, or another error.
    pub fn expect_error_of(self, codes: &[i64]) -> Result<RpcError, Finding> {
        let sent = self.sent;
        match self.outcome {
            Err(error) if codes.contains(&error.code) => Ok(error),
            Err(error) => Err(Finding::failed(format!(
                "sent {sent}, got {error}: expected code {codes:?}"
            ))),
            Ok(result) => Err(Finding::failed(format!(
                "sent {sent}, got result {}: expected an error with code {codes:?}",
                shown(result)
            ))),
        }
    }

    /// The error, whatever its code.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it is a result.
    pub fn expect_any_error(self) -> Result<RpcError, Finding> {
        let sent = self.sent;
        match self.outcome {
            Err(error) => Ok(error),
            Ok(result) => Err(Finding::failed(format!(
                "sent {sent}, got result {}: expected an error",
                shown(result)
            ))),
        }
    }
}

impl RpcError {
    fn of(error: &Value) -> Option<Self> {
        Some(Self {
            code: error["code"].as_i64()?,
            message: error["message"].as_str()?.to_owned(),
            data: error["data"].clone(),
        })
    }
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "error {} `{}`", self.code, self.message)?;
        if !self.data.is_null() {
            write!(f, " {}", shown(&self.data))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sound_answers_are_believed() {
        let result = json!({"jsonrpc": "2.0", "id": "a", "result": null});
        let reply = Reply::of(&result, &json!("a"), "x").unwrap();
        assert_eq!(reply.expect_result(), Ok(Value::Null));
        let error =
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "m"}});
        let reply = || Reply::of(&error, &Value::Null, "x").unwrap();
        assert_eq!(reply().expect_error(-32600).unwrap().message, "m");
        assert!(reply().expect_error_of(&[-32601, -32602]).is_err());
        assert!(reply().expect_result().is_err());
    }

    #[test]
    fn each_fault_of_an_envelope_is_found() {
        let error = json!({"code": -1, "message": "m"});
        for faulty in [
            json!(null),
            json!([]),
            json!({}),
            json!({"id": 1, "result": 1}),
            json!({"jsonrpc": "1.0", "id": 1, "result": 1}),
            json!({"jsonrpc": 2.0, "id": 1, "result": 1}),
            json!({"jsonrpc": "2.0", "result": 1}),
            json!({"jsonrpc": "2.0", "id": "1", "result": 1}),
            json!({"jsonrpc": "2.0", "id": null, "error": error}),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "result": 1, "error": error}),
            json!({"jsonrpc": "2.0", "id": 1, "result": null, "error": null}),
            json!({"jsonrpc": "2.0", "id": 1, "error": "m"}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "-1", "message": "m"}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1.5, "message": "m"}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1}}),
        ] {
            assert!(Reply::of(&faulty, &json!(1), "x").is_err(), "{faulty}");
        }
    }

    #[test]
    fn long_texts_are_shortened_between_characters() {
        assert_eq!(shown("é"), "é");
        let long = shown("é".repeat(SHOWN_CHARS_MAX + 1));
        assert!(long.ends_with("... (602 bytes)"), "{long}");
    }
}
