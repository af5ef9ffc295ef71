//! Rewrites refusals of whole requests as errors of the protocol.

use crate::application::api::Denied;
use crate::transport::a2a::jsonrpc;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::response::Response;
use serde_json::value::RawValue;
use taskledger_a2a::{Edition, Error, ErrorKind, event, headers};

/// Whether a request names the protocol.
pub(in crate::transport::http) fn names_version(headers: &HeaderMap) -> bool {
    headers
        .get(headers::VERSION)
        .is_some_and(|it| !it.is_empty())
}

/// A refusal of a whole request in the words of the protocol; its status and headers stay.
pub(in crate::transport::http) fn reshaped(
    refused: Response,
    edition: Edition,
    is_rpc: bool,
) -> Response {
    reshaped_under(refused, None, edition, is_rpc)
}

/// The same under the id of a call, if it is known.
pub(in crate::transport::http) fn reshaped_under(
    refused: Response,
    id: Option<&RawValue>,
    edition: Edition,
    is_rpc: bool,
) -> Response {
    let status = refused.status();
    let denied = refused.extensions().get::<Denied>().copied();
    let (kind, reason) = match status {
        StatusCode::UNAUTHORIZED => (
            ErrorKind::Unauthenticated,
            required(denied.unwrap_or(Denied::Missing)),
        ),
        StatusCode::FORBIDDEN => (ErrorKind::Forbidden, "the credentials do not allow this"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (
            ErrorKind::ContentTypeNotSupported,
            "the body must be `application/json`, in UTF-8 and not compressed",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => (ErrorKind::InvalidRequest, "the body is too large"),
        StatusCode::TOO_MANY_REQUESTS => (ErrorKind::ResourceExhausted, "too many requests"),
        StatusCode::SERVICE_UNAVAILABLE => (ErrorKind::Unavailable, "the server is too busy"),
        _ => (ErrorKind::InvalidRequest, "the body did not arrive"),
    };
    let error = Error::new(kind, reason);
    let (text, media_type) = match is_rpc {
        true => (jsonrpc::failure(id, &error), "application/json"),
        false => {
            let mut told = error.to_rest(edition);
            // What HTTP says, which has more words than the protocol.
            told["code"] = status.as_u16().into();
            (
                event::failed_rest_line(&told).into_bytes(),
                edition.rest_media_type(),
            )
        }
    };
    let (mut head, _) = refused.into_parts();
    head.headers
        .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    Response::from_parts(head, Body::from(text))
}

/// What is said to whoever shows no credentials, or some that do not hold.
const fn required(denied: Denied) -> &'static str {
    match denied {
        Denied::Missing => "credentials are required: the header `Authorization: Bearer <token>`",
        Denied::Malformed => {
            "the credentials cannot be read; one header `Authorization: Bearer <token>` is expected, and no token in the URL"
        }
        Denied::Unknown => {
            "the credentials are not known; a token of this server, or of an issuer that it accepts, is expected"
        }
        Denied::Expired => "the credentials have expired; get a new token",
        Denied::Revoked => "the credentials were revoked; get a new token",
        Denied::Limited { .. } => "too many failed attempts came from this address; retry later",
        Denied::Unavailable => "the credentials cannot be checked now; retry later",
    }
}
