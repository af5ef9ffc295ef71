//! The errors of the protocol, and their tables: JSON-RPC code, HTTP status, gRPC code, reason, details.

use crate::read::{Fault, Faults};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The domain of reasons that the protocol names.
pub const DOMAIN: &str = "a2a-protocol.org";
/// The domain of reasons of this server.
pub const OWN_DOMAIN: &str = "taskledger";

/// Which edition of the specification errors and media types follow where editions differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Edition {
    /// 1.0.0.
    V1_0_0,
    /// 1.0.1.
    #[default]
    V1_0_1,
}

impl Edition {
    /// The media type of answers over HTTP+JSON.
    #[must_use]
    pub const fn rest_media_type(self) -> &'static str {
        match self {
            Self::V1_0_0 => "application/json",
            Self::V1_0_1 => "application/a2a+json",
        }
    }
}

impl std::str::FromStr for Edition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1.0.0" => Ok(Self::V1_0_0),
            "1.0.1" => Ok(Self::V1_0_1),
            other => Err(format!(
                "`{other}` is not an edition of A2A; expected 1.0.0 or 1.0.1"
            )),
        }
    }
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_0_0 => "1.0.0",
            Self::V1_0_1 => "1.0.1",
        })
    }
}

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// No such task, or not the caller's.
    TaskNotFound,
    /// The task cannot be cancelled any more.
    TaskNotCancelable,
    /// The agent reports nothing.
    PushNotificationNotSupported,
    /// The agent does not do this, or not now.
    UnsupportedOperation,
    /// The media type of a part, or of the request, is not taken.
    ContentTypeNotSupported,
    /// The agent has made an answer that is none.
    InvalidAgentResponse,
    /// There is no card for callers with credentials.
    ExtendedAgentCardNotConfigured,
    /// The client does not use an extension that is required.
    ExtensionSupportRequired,
    /// The version of the protocol is not served.
    VersionNotSupported,
    /// The body is no JSON.
    Parse,
    /// JSON, but no request.
    InvalidRequest,
    /// No such operation.
    MethodNotFound,
    /// The members of the request are not valid.
    InvalidParams,
    /// A fault of the server.
    Internal,
    /// No credentials, or none that hold.
    Unauthenticated,
    /// The credentials do not allow it.
    Forbidden,
    /// Not now.
    Unavailable,
    /// The caller has or asks for more than it may.
    ResourceExhausted,
}

/// Codes of gRPC.
mod code {
    pub(super) const INVALID_ARGUMENT: (i32, &str) = (3, "INVALID_ARGUMENT");
    pub(super) const NOT_FOUND: (i32, &str) = (5, "NOT_FOUND");
    pub(super) const PERMISSION_DENIED: (i32, &str) = (7, "PERMISSION_DENIED");
    pub(super) const RESOURCE_EXHAUSTED: (i32, &str) = (8, "RESOURCE_EXHAUSTED");
    pub(super) const FAILED_PRECONDITION: (i32, &str) = (9, "FAILED_PRECONDITION");
    pub(super) const UNIMPLEMENTED: (i32, &str) = (12, "UNIMPLEMENTED");
    pub(super) const INTERNAL: (i32, &str) = (13, "INTERNAL");
    pub(super) const UNAVAILABLE: (i32, &str) = (14, "UNAVAILABLE");
    pub(super) const UNAUTHENTICATED: (i32, &str) = (16, "UNAUTHENTICATED");
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 18] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedAgentCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::Unavailable,
        Self::ResourceExhausted,
    ];

    /// The reason in the first detail.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotificationNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::InvalidAgentResponse => "INVALID_AGENT_RESPONSE",
            Self::ExtendedAgentCardNotConfigured => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::ExtensionSupportRequired => "EXTENSION_SUPPORT_REQUIRED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
            Self::Parse => "PARSE_ERROR",
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::MethodNotFound => "METHOD_NOT_FOUND",
            Self::InvalidParams => "INVALID_PARAMS",
            Self::Internal => "INTERNAL_ERROR",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Forbidden => "PERMISSION_DENIED",
            Self::Unavailable => "UNAVAILABLE",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
        }
    }

    /// The code of JSON-RPC. Those that the protocol has no code for are faults of the server to it; their
    /// HTTP status tells them apart.
    #[must_use]
    pub const fn rpc_code(self) -> i32 {
        match self {
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotificationNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported => -32005,
            Self::InvalidAgentResponse => -32006,
            Self::ExtendedAgentCardNotConfigured => -32007,
            Self::ExtensionSupportRequired => -32008,
            Self::VersionNotSupported => -32009,
            Self::Parse => -32700,
            Self::InvalidRequest | Self::Unauthenticated | Self::Forbidden => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal | Self::Unavailable | Self::ResourceExhausted => -32603,
        }
    }

    /// The HTTP status of HTTP+JSON.
    #[must_use]
    pub const fn http_status(self, edition: Edition) -> u16 {
        match (self, edition) {
            (Self::TaskNotFound | Self::MethodNotFound, _) => 404,
            (Self::TaskNotCancelable, Edition::V1_0_0) => 409,
            (Self::ContentTypeNotSupported, Edition::V1_0_0) => 415,
            (Self::InvalidAgentResponse, Edition::V1_0_0) => 502,
            (Self::TaskNotCancelable | Self::ContentTypeNotSupported, Edition::V1_0_1)
            | (
                Self::PushNotificationNotSupported
                | Self::UnsupportedOperation
                | Self::ExtendedAgentCardNotConfigured
                | Self::ExtensionSupportRequired
                | Self::VersionNotSupported
                | Self::Parse
                | Self::InvalidRequest
                | Self::InvalidParams,
                _,
            ) => 400,
            (Self::InvalidAgentResponse, Edition::V1_0_1) | (Self::Internal, _) => 500,
            (Self::Unauthenticated, _) => 401,
            (Self::Forbidden, _) => 403,
            (Self::Unavailable, _) => 503,
            (Self::ResourceExhausted, _) => 429,
        }
    }

    /// The code of gRPC, as number and as name.
    #[must_use]
    pub const fn grpc_code(self, edition: Edition) -> (i32, &'static str) {
        match (self, edition) {
            (Self::TaskNotFound, _) => code::NOT_FOUND,
            (
                Self::PushNotificationNotSupported
                | Self::UnsupportedOperation
                | Self::VersionNotSupported,
                Edition::V1_0_0,
            )
            | (Self::MethodNotFound, _) => code::UNIMPLEMENTED,
            (
                Self::PushNotificationNotSupported
                | Self::UnsupportedOperation
                | Self::VersionNotSupported,
                Edition::V1_0_1,
            )
            | (
                Self::TaskNotCancelable
                | Self::ExtendedAgentCardNotConfigured
                | Self::ExtensionSupportRequired,
                _,
            ) => code::FAILED_PRECONDITION,
            (
                Self::ContentTypeNotSupported
                | Self::Parse
                | Self::InvalidRequest
                | Self::InvalidParams,
                _,
            ) => code::INVALID_ARGUMENT,
            (Self::InvalidAgentResponse | Self::Internal, _) => code::INTERNAL,
            (Self::Unauthenticated, _) => code::UNAUTHENTICATED,
            (Self::Forbidden, _) => code::PERMISSION_DENIED,
            (Self::Unavailable, _) => code::UNAVAILABLE,
            (Self::ResourceExhausted, _) => code::RESOURCE_EXHAUSTED,
        }
    }
}

/// An error of the protocol, before a binding writes it as a status or a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Decides the status or code in each binding.
    pub kind: ErrorKind,
    /// In words.
    pub message: String,
    /// Members of the first detail.
    pub metadata: BTreeMap<String, String>,
    /// What is wrong with the request.
    pub faults: Faults,
    /// What this server calls it, where the protocol is less exact.
    pub own: Option<&'static str>,
    /// Milliseconds after which the same call may do.
    pub retry_after_ms: Option<u64>,
}

impl Error {
    /// An error with nothing but words.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            metadata: BTreeMap::new(),
            faults: Faults::default(),
            own: None,
            retry_after_ms: None,
        }
    }

    /// Members of the request are not valid.
    #[must_use]
    pub fn invalid(faults: Faults) -> Self {
        let message = match faults.listed.first() {
            Some(Fault { field, description }) if field.is_empty() => description.clone(),
            Some(Fault { field, description }) => format!("{field}: {description}"),
            None => "the request is not valid".to_owned(),
        };
        Self {
            faults,
            ..Self::new(ErrorKind::InvalidParams, message)
        }
    }

    /// One member of the request is not valid.
    pub fn invalid_member(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::invalid(Fault::new(field, description).into())
    }

    /// No such task, or not the caller's.
    #[must_use]
    pub fn task_not_found(id: &str) -> Self {
        Self::new(ErrorKind::TaskNotFound, "no such task").with("taskId", id)
    }

    /// The same with one more member in the first detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.metadata.insert(name.to_owned(), value.into());
        self
    }

    /// The same with what this server calls it.
    #[must_use]
    pub const fn named(mut self, own: &'static str) -> Self {
        self.own = Some(own);
        self
    }

    /// The same with when to come again.
    #[must_use]
    pub const fn after(mut self, retry_after_ms: u64) -> Self {
        self.retry_after_ms = Some(retry_after_ms);
        self
    }

    /// The details: the reason first, then what is wrong with the request, then what only this server says.
    #[must_use]
    pub fn details(&self) -> Vec<Value> {
        let mut details = vec![reason(self.kind.reason(), DOMAIN, &self.metadata)];
        if !self.faults.is_empty() {
            let listed = self.faults.listed.iter();
            let listed = listed.map(|it| json!({"field": it.field, "description": it.description}));
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": listed.collect::<Vec<_>>(),
            }));
        }
        if let Some(own) = self.own {
            details.push(reason(own, OWN_DOMAIN, &BTreeMap::new()));
        }
        if let Some(ms) = self.retry_after_ms {
            let delay = format!("{}.{:03}s", ms / 1000, ms % 1000);
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": delay,
            }));
        }
        details
    }

    /// As the member `error` of a JSON-RPC answer.
    #[must_use]
    pub fn to_rpc(&self) -> Value {
        json!({
            "code": self.kind.rpc_code(),
            "message": self.message,
            "data": self.details(),
        })
    }

    /// As the member `error` of an HTTP+JSON answer.
    #[must_use]
    pub fn to_rest(&self, edition: Edition) -> Value {
        json!({
            "code": self.kind.http_status(edition),
            "status": self.kind.grpc_code(edition).1,
            "message": self.message,
            "details": self.details(),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.reason(), self.message)
    }
}

impl std::error::Error for Error {}

impl From<Faults> for Error {
    fn from(faults: Faults) -> Self {
        Self::invalid(faults)
    }
}

fn reason(reason: &str, domain: &str, metadata: &BTreeMap<String, String>) -> Value {
    let metadata: Map<String, Value> = metadata
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(&**value)))
        .collect();
    json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": domain,
        "metadata": metadata,
    })
}
