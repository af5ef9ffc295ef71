//! Writes answers in the version and binding of the request.

use crate::transport::a2a::{Agreed, StreamEvent, jsonrpc};
use crate::transport::http::json::json;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use axum::response::Response;
use serde_json::value::RawValue;
use taskledger_a2a::operation::Answer;
use taskledger_a2a::v03::{self, Answering};
use taskledger_a2a::{Edition, Error, ErrorKind, StreamResponse, event, headers};

/// How answers are written.
#[derive(Debug, Clone)]
pub(super) enum Written {
    /// As JSON-RPC, under an id.
    Rpc(Box<RawValue>),
    /// As HTTP+JSON.
    Rest,
    /// As JSON-RPC of 0.3.
    RpcV03(Box<RawValue>, Answering),
    /// As HTTP+JSON of 0.3.
    RestV03(Answering),
}

const EXTENSIONS: HeaderName = HeaderName::from_static(headers::EXTENSIONS);
const EXTENSIONS_V03: HeaderName = HeaderName::from_static(v03::EXTENSIONS);

impl Written {
    /// An answer.
    ///
    /// # Errors
    /// The version has no such answer.
    pub(super) fn answer(&self, answer: &Answer, edition: Edition) -> Result<Response, Error> {
        Ok(match self {
            Self::Rpc(id) => json(StatusCode::OK, jsonrpc::success(id, &answer.to_json())),
            Self::Rest => rest_answer(StatusCode::OK, answer.to_json().to_string(), edition),
            Self::RpcV03(id, answering) => json(
                StatusCode::OK,
                jsonrpc::success(id, &answering.answer(answer)?),
            ),
            Self::RestV03(answering) => json(StatusCode::OK, answering.answer(answer)?.to_string()),
        })
    }

    /// An error as the answer to a call.
    pub(super) fn failed(&self, error: &Error, edition: Edition) -> Response {
        match self {
            Self::Rpc(id) => rpc_error(Some(id), error),
            Self::RpcV03(id, answering) => rpc_error(
                Some(id),
                &v03::error::of(answering.operation, error.clone()),
            ),
            Self::Rest => {
                let text = event::failed_rest_line(&error.to_rest(edition));
                let status = status(error.kind.http_status(edition));
                later(rest_answer(status, text, edition), error)
            }
            Self::RestV03(answering) => later(
                failed_v03(&v03::error::of(answering.operation, error.clone())),
                error,
            ),
        }
    }

    /// What a stream tells, as an event.
    pub(super) fn line(&self, told: StreamEvent, edition: Edition) -> Bytes {
        match told {
            StreamEvent::Silence => Bytes::from_static(b":\n\n"),
            StreamEvent::Item(None, it) => format!("data: {}\n\n", self.item(&it)).into(),
            StreamEvent::Item(Some(cursor), it) => {
                format!("id: {cursor}\ndata: {}\n\n", self.item(&it)).into()
            }
            StreamEvent::Failed(error) => match self {
                Self::Rpc(id) | Self::RpcV03(id, _) => {
                    let line = event::failed_rpc_line(id.get(), &error.to_rpc());
                    format!("data: {line}\n\n").into()
                }
                Self::Rest => {
                    let line = event::failed_rest_line(&error.to_rest(edition));
                    format!("event: error\ndata: {line}\n\n").into()
                }
                Self::RestV03(_) => {
                    format!("event: error\ndata: {}\n\n", v03::error::to_rest(&error)).into()
                }
            },
        }
    }

    fn item(&self, item: &StreamResponse) -> String {
        match self {
            Self::Rpc(id) => item.to_rpc_line(id.get()),
            Self::Rest => item.to_rest_line(),
            Self::RpcV03(id, answering) => {
                let (id, item) = (id.get(), answering.item(item));
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{item}}}"#)
            }
            Self::RestV03(answering) => answering.item(item).to_string(),
        }
    }

    /// Says which extensions are active.
    pub(super) fn echoed(&self, headers: &mut HeaderMap, agreed: &Agreed) {
        let name = match self {
            Self::Rpc(_) | Self::Rest => EXTENSIONS,
            Self::RpcV03(..) | Self::RestV03(_) => EXTENSIONS_V03,
        };
        let echo = agreed.echo.as_deref();
        if let Some(active) = echo.and_then(|it| HeaderValue::from_str(it).ok()) {
            headers.insert(name, active);
        }
    }

    /// The extensions that a client announces: those of 0.3 by either name.
    pub(super) fn announced<'h>(&self, headers: &'h HeaderMap) -> Vec<&'h str> {
        let names = match self {
            Self::Rpc(_) | Self::Rest => &[EXTENSIONS][..],
            Self::RpcV03(..) | Self::RestV03(_) => &[EXTENSIONS_V03, EXTENSIONS],
        };
        let all = names.iter().flat_map(|name| headers.get_all(name));
        all.filter_map(|it| it.to_str().ok()).collect()
    }

    /// Whether it is version 0.3.
    pub(super) const fn is_v03(&self) -> bool {
        matches!(self, Self::RpcV03(..) | Self::RestV03(_))
    }
}

/// An error over HTTP+JSON of 0.3.
pub(super) fn failed_v03(error: &Error) -> Response {
    let status = status(v03::error::http_status(error.kind));
    json(status, v03::error::to_rest(error).to_string())
}

pub(super) fn rpc_error(id: Option<&RawValue>, error: &Error) -> Response {
    // What concerns credentials is said by HTTP; everything else by the answer.
    let status = if error.kind == ErrorKind::Forbidden {
        StatusCode::FORBIDDEN
    } else {
        StatusCode::OK
    };
    json(status, jsonrpc::failure(id, error))
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn later(mut response: Response, error: &Error) -> Response {
    if let Some(ms) = error.retry_after_ms {
        let seconds = HeaderValue::from(ms.div_ceil(1000));
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

/// An answer of the HTTP+JSON binding.
pub(super) fn rest_answer(status: StatusCode, text: impl Into<Body>, edition: Edition) -> Response {
    let mut response = json(status, text);
    let media_type = HeaderValue::from_static(edition.rest_media_type());
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}
