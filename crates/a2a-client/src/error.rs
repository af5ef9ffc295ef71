//! The errors of a call, those that the agent reports included.

use crate::http::Unanswered;
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use taskledger_a2a::error::DOMAIN;
use taskledger_a2a::read::FAULTS_MAX;
use taskledger_a2a::{ErrorKind, Fault, Faults};
use taskledger_clock::retry_after_now;

/// Characters of a text of an agent that an error repeats.
const SAID_CHARS_MAX: usize = 1000;
const ERROR_INFO: &str = "google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "google.rpc.BadRequest";

/// A call has failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The request did not go out, or no answer came.
    #[error("{url}: {reason}")]
    Unanswered {
        /// Where to, without query.
        url: String,
        /// What went wrong before an answer arrived.
        reason: Unanswered,
    },
    /// The agent says no.
    #[error("{0}")]
    Agent(Box<AgentError>),
    /// More came than is taken.
    #[error("{what} of the agent has more than {max} bytes")]
    TooLarge {
        /// The part of the answer that is too large, in words for the message.
        what: &'static str,
        /// How much is taken.
        max: usize,
    },
    /// What came is not of the protocol.
    #[error("{0}")]
    Invalid(String),
    /// The card names no way to call the agent, or not one that may be taken.
    #[error("{0}")]
    Unusable(String),
    /// Every try has failed for a reason that could have passed.
    #[error("{last}; given up after {tries} tries")]
    GivenUp {
        /// The number of tries, the first included.
        tries: u32,
        /// The failure of the last one.
        last: Box<Self>,
    },
}

impl Error {
    /// The kind of error that the agent has named.
    #[must_use]
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Agent(error) => error.kind,
            Self::GivenUp { last, .. } => last.kind(),
            Self::Unanswered { .. }
            | Self::TooLarge { .. }
            | Self::Invalid(_)
            | Self::Unusable(_) => None,
        }
    }

    /// The failure of a call, without how often it was tried.
    #[must_use]
    pub fn into_last(self) -> Self {
        match self {
            Self::GivenUp { last, .. } => *last,
            single @ (Self::Unanswered { .. }
            | Self::Agent(_)
            | Self::TooLarge { .. }
            | Self::Invalid(_)
            | Self::Unusable(_)) => single,
        }
    }

    /// Whether the same call may do later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unanswered { reason, .. } => !matches!(reason, Unanswered::Refused(_)),
            Self::Agent(error) => error.is_transient(),
            Self::TooLarge { .. } | Self::Invalid(_) | Self::Unusable(_) | Self::GivenUp { .. } => {
                false
            }
        }
    }

    /// The pause before the next try that the agent has asked for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Agent(error) => error.retry_after,
            Self::GivenUp { last, .. } => last.retry_after(),
            Self::Unanswered { .. }
            | Self::TooLarge { .. }
            | Self::Invalid(_)
            | Self::Unusable(_) => None,
        }
    }

    /// The same error of an answer with these headers.
    pub(crate) fn with_headers(mut self, headers: &HeaderMap) -> Self {
        if let Self::Agent(error) = &mut self {
            let asked = headers.get(RETRY_AFTER);
            error.retry_after = asked.and_then(|it| retry_after_now(it.to_str().ok()?));
        }
        self
    }

    /// Whether the agent cannot have done anything.
    #[must_use]
    pub fn is_undone(&self) -> bool {
        match self {
            Self::Unanswered { reason, .. } => match reason {
                Unanswered::Refused(_) | Unanswered::NotSent(_) => true,
                Unanswered::Broken(_) => false,
            },
            // What has no name may be of somebody in between.
            Self::Agent(error) => error.kind.is_some() && error.task_id.is_none(),
            Self::Unusable(_) => true,
            Self::GivenUp { last, .. } => last.is_undone(),
            Self::TooLarge { .. } | Self::Invalid(_) => false,
        }
    }
}

/// An error as the agent has told it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentError {
    /// By its reason, else by its code; `None`: it is none of the protocol.
    pub kind: Option<ErrorKind>,
    /// The reason, if it names one.
    pub reason: Option<String>,
    /// The number that came: of JSON-RPC, else of HTTP.
    pub code: i64,
    /// In words.
    pub message: String,
    /// What is wrong with the request.
    pub faults: Faults,
    /// The task that was begun all the same.
    pub task_id: Option<String>,
    /// The pause that the agent asks for (`Retry-After`).
    pub retry_after: Option<Duration>,
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "the agent answers {reason} ({})", self.code)?,
            None => write!(f, "the agent answers {}", self.code)?,
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        for fault in &self.faults.listed {
            // The first is often the message itself.
            if !self.message.contains(&fault.description) {
                write!(f, "; {}: {}", fault.field, fault.description)?;
            }
        }
        Ok(())
    }
}

impl AgentError {
    fn is_transient(&self) -> bool {
        match self.kind {
            Some(ErrorKind::Unavailable | ErrorKind::ResourceExhausted) => true,
            Some(_) => false,
            None => matches!(self.code, 429 | 502 | 503 | 504),
        }
    }

    /// The member `error` of an answer in either form.
    pub(crate) fn read(error: &Value, status: StatusCode) -> Self {
        let details = error.get("data").or_else(|| error.get("details"));
        let details = details.and_then(Value::as_array);
        let details = details.map_or(&[] as &[Value], Vec::as_slice);
        let named = |name: &'static str| {
            let is = move |detail: &&Value| {
                let kind = detail.get("@type").and_then(Value::as_str);
                kind.is_some_and(|kind| kind.ends_with(name))
            };
            details.iter().filter(is)
        };
        let text = |value: &Value, name: &str| {
            let text = value.get(name).and_then(Value::as_str);
            text.filter(|it| !it.is_empty()).map(cut)
        };
        let of_protocol =
            |info: &&Value| info.get("domain").and_then(Value::as_str) == Some(DOMAIN);
        let info = named(ERROR_INFO).find(of_protocol);
        let info = info.or_else(|| named(ERROR_INFO).next());
        let reason = info.and_then(|info| text(info, "reason"));
        let code = error.get("code").and_then(Value::as_i64);
        let code = code.unwrap_or_else(|| i64::from(status.as_u16()));
        let mut faults = Faults::default();
        let violations = named(BAD_REQUEST).filter_map(|it| it.get("fieldViolations")?.as_array());
        for violation in violations.flatten().take(FAULTS_MAX) {
            let member = |name| text(violation, name).unwrap_or_default();
            faults.note(Fault::new(member("field"), member("description")));
        }
        let metadata = info.and_then(|info| info.get("metadata"));
        Self {
            kind: kind(reason.as_deref(), code),
            reason,
            code,
            message: text(error, "message").unwrap_or_default(),
            faults,
            task_id: metadata.and_then(|it| text(it, "taskId")),
            retry_after: None,
        }
    }

    /// An answer that is no error of the protocol.
    pub(crate) fn of_status(status: StatusCode, said: &[u8]) -> Self {
        let code = i64::from(status.as_u16());
        Self {
            kind: match status {
                StatusCode::UNAUTHORIZED => Some(ErrorKind::Unauthenticated),
                StatusCode::FORBIDDEN => Some(ErrorKind::Forbidden),
                _ => None,
            },
            reason: None,
            code,
            message: cut(String::from_utf8_lossy(said).trim()),
            faults: Faults::default(),
            task_id: None,
            retry_after: None,
        }
    }
}

/// By the reason if it is one of the protocol's, else by the code.
fn kind(reason: Option<&str>, code: i64) -> Option<ErrorKind> {
    let mut all = ErrorKind::ALL.into_iter();
    let by_reason = reason.and_then(|reason| all.find(|kind| kind.reason() == reason));
    by_reason.or_else(|| {
        let by_code = |kind: &ErrorKind| i64::from(kind.rpc_code()) == code;
        let by_status = match code {
            401 => Some(ErrorKind::Unauthenticated),
            403 => Some(ErrorKind::Forbidden),
            429 => Some(ErrorKind::ResourceExhausted),
            503 => Some(ErrorKind::Unavailable),
            _ => None,
        };
        by_status.or_else(|| ErrorKind::ALL.into_iter().find(by_code))
    })
}

/// The beginning of a text, on one line.
fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(SAID_CHARS_MAX).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_of_both_forms_are_told_by_their_reason() {
        let details = json!([
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "OTHER", "domain": "example.com"},
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
             "domain": "a2a-protocol.org", "metadata": {"taskId": "t"}},
            {"@type": "type.googleapis.com/google.rpc.BadRequest",
             "fieldViolations": [{"field": "id", "description": "unknown"}]}
        ]);
        let rpc = json!({"code": -32001, "message": "no such task", "data": details});
        let rest = json!({"code": 404, "status": "NOT_FOUND", "message": "no such task", "details": details});
        for (error, code) in [(rpc, -32001), (rest, 404)] {
            let read = AgentError::read(&error, StatusCode::OK);
            assert_eq!(read.kind, Some(ErrorKind::TaskNotFound));
            assert_eq!(read.code, code);
            assert_eq!(read.task_id.as_deref(), Some("t"));
            let told =
                format!("the agent answers TASK_NOT_FOUND ({code}): no such task; id: unknown");
            assert_eq!(read.to_string(), told);
        }
    }

    #[test]
    fn an_error_without_details_is_told_by_its_code() {
        let read = |code: i64| AgentError::read(&json!({"code": code}), StatusCode::OK).kind;
        assert_eq!(read(-32002), Some(ErrorKind::TaskNotCancelable));
        assert_eq!(read(-32009), Some(ErrorKind::VersionNotSupported));
        assert_eq!(read(503), Some(ErrorKind::Unavailable));
        assert_eq!(read(7), None);
        let nothing = AgentError::read(&json!("what"), StatusCode::BAD_GATEWAY);
        assert_eq!((nothing.kind, nothing.code), (None, 502));
        assert!(nothing.is_transient());
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "x".repeat(SAID_CHARS_MAX * 3);
        let read = AgentError::read(&json!({"code": -1, "message": long}), StatusCode::OK);
        assert_eq!(read.message.chars().count(), SAID_CHARS_MAX + 1);
    }
}
