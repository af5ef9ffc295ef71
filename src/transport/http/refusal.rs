//! HTTP requests that are refused as a whole, before there is a call to answer.
//! Bodies have the form of a JSON-RPC error with id null, so that one client code reads them all.

use super::json::json;
use crate::application::api::Denied;
use crate::transport::jsonrpc::{ErrorKind, RpcError, error_body};
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{
    ACCEPT, ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    ORIGIN, RETRY_AFTER, UPGRADE, WWW_AUTHENTICATE,
};
use axum::response::Response;
use serde_json::Value;
use taskledger_domain::Violation;

/// How to authenticate: RFC 6750, section 3.
const CHALLENGE: &str = r#"Bearer realm="taskledger""#;
/// The same for credentials that do not hold.
const CHALLENGE_INVALID: &str = r#"Bearer realm="taskledger", error="invalid_token""#;
/// What a refused caller is told to wait, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;
/// When a caller with as much as it may have asks again, in seconds: nobody knows when it has less.
const RETRY_AFTER_QUOTA_S: u64 = 5;
/// What is left of a caller's rate.
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// 415 unless the body is announced as JSON in UTF-8, not encoded.
pub(super) fn unless_json(headers: &HeaderMap) -> Result<(), Box<Response>> {
    let media_type = headers.get(CONTENT_TYPE).map(|value| value.to_str());
    let accepted = match media_type {
        // The two spellings that nearly every client sends need no parsing.
        Some(Ok("application/json" | "application/json; charset=utf-8")) => true,
        Some(Ok(text)) => is_json(text),
        Some(Err(_)) | None => false,
    };
    if !accepted {
        let actual = match media_type {
            Some(Ok(text)) => Value::from(text),
            Some(Err(_)) | None => Value::Null,
        };
        return Err(Box::new(refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content-type",
            "unsupported media type",
            "application/json or application/json-rpc, in UTF-8",
            &actual,
        )));
    }
    match headers.get(CONTENT_ENCODING) {
        None => Ok(()),
        Some(value) if value.as_bytes().eq_ignore_ascii_case(b"identity") => Ok(()),
        Some(value) => Err(Box::new(refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content-encoding",
            "unsupported encoding",
            "a body that is not compressed",
            &Value::from(String::from_utf8_lossy(value.as_bytes())),
        ))),
    }
}

fn is_json(media_type: &str) -> bool {
    let mut parts = media_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let known = essence.eq_ignore_ascii_case("application/json")
        || essence.eq_ignore_ascii_case("application/json-rpc");
    known
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                let charset = value.trim().trim_matches('"');
                charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8")
            }
            Some(_) | None => true,
        })
}

/// 413.
pub(super) fn too_large(limit_bytes: usize) -> Response {
    let mut response = refuse(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body",
        "the body is too large",
        &format!("at most {limit_bytes} bytes"),
        &Value::Null,
    );
    close(&mut response);
    response
}

/// 408.
pub(super) fn too_slow() -> Response {
    let mut response = refuse(
        StatusCode::REQUEST_TIMEOUT,
        "body",
        "the body did not arrive in time",
        "a body that is sent without pause",
        &Value::Null,
    );
    close(&mut response);
    response
}

/// 400: the transfer broke off or breaks the rules of HTTP.
pub(super) fn broken() -> Response {
    let mut response = refuse(
        StatusCode::BAD_REQUEST,
        "body",
        "the body broke off",
        "a complete body",
        &Value::Null,
    );
    close(&mut response);
    response
}

/// 503 with the answer `Busy`.
pub(super) fn too_busy(reason: &str) -> Response {
    let error = RpcError::busy(reason, RETRY_AFTER_MS);
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, error_body(&error));
    close(&mut response);
    response
}

/// 429 with the answer `Busy`: there are as many streams as there may be.
pub(super) fn too_many_streams() -> Response {
    let error = RpcError::busy("the server has too many streams", RETRY_AFTER_MS);
    let mut response = json(StatusCode::TOO_MANY_REQUESTS, error_body(&error));
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// 406: the client takes no event streams.
pub(super) fn not_acceptable(headers: &HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).map(HeaderValue::as_bytes);
    refuse(
        StatusCode::NOT_ACCEPTABLE,
        "accept",
        "this path answers with a stream",
        "text/event-stream",
        &Value::from(String::from_utf8_lossy(accept.unwrap_or_default())),
    )
}

/// 403: a page of another origin wants a socket.
pub(super) fn foreign_origin(headers: &HeaderMap) -> Response {
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
    refuse(
        StatusCode::FORBIDDEN,
        "origin",
        "pages of this origin may not open sockets",
        "an origin that the server allows with --allow-origin, or that of its --public-url",
        &Value::from(String::from_utf8_lossy(origin.unwrap_or_default())),
    )
}

/// 403: a page of another origin wants to change something, where calls need no credentials.
pub(super) fn foreign_change(headers: &HeaderMap) -> Response {
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
    refuse(
        StatusCode::FORBIDDEN,
        "origin",
        "while authentication is off, pages of this origin may not change anything",
        "an origin that the server allows with --allow-origin, or that of its --public-url",
        &Value::from(String::from_utf8_lossy(origin.unwrap_or_default())),
    )
}

/// 400: a request does not name one host.
pub(super) fn bad_host(reason: &str, host: &str) -> Response {
    let mut response = refuse(
        StatusCode::BAD_REQUEST,
        "host",
        reason,
        "one header `Host` with the name or address of the server, and its port",
        &Value::from(host),
    );
    close(&mut response);
    response
}

/// 421: the server does not go by this name. What a page of somebody else could have made a browser ask.
pub(super) fn foreign_host(host: &str, names: &[String]) -> Response {
    let names = names.join(", ");
    refuse(
        StatusCode::MISDIRECTED_REQUEST,
        "host",
        "this server does not go by this name",
        &format!("localhost, a loopback address, {names}, or a name given with --allow-host"),
        &Value::from(host),
    )
}

/// 426: what came is no request for a socket.
pub(super) fn no_upgrade() -> Response {
    let mut response = refuse(
        StatusCode::UPGRADE_REQUIRED,
        "upgrade",
        "this path is a WebSocket",
        "a WebSocket handshake, version 13, over HTTP/1.1",
        &Value::Null,
    );
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// An error with this status.
pub(super) fn with(status: StatusCode, error: &RpcError) -> Response {
    json(status, error_body(error))
}

/// The error of what is no call, with the status that says the same.
pub(super) fn of_call(error: &RpcError) -> Response {
    let is = |kind: ErrorKind| kind.row().0 == error.code;
    if let Some(wait_ms) = error.rate_limited_ms() {
        let mut response = with(StatusCode::TOO_MANY_REQUESTS, error);
        say_when(&mut response, wait_ms);
        return response;
    }
    let status = if is(ErrorKind::TaskNotFound) {
        StatusCode::NOT_FOUND
    } else if is(ErrorKind::Unauthorized) {
        StatusCode::FORBIDDEN
    } else if is(ErrorKind::InvalidParams) {
        StatusCode::BAD_REQUEST
    } else if is(ErrorKind::Busy) {
        StatusCode::SERVICE_UNAVAILABLE
    } else if is(ErrorKind::QuotaExceeded) {
        StatusCode::TOO_MANY_REQUESTS
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let mut response = with(status, error);
    if status == StatusCode::TOO_MANY_REQUESTS {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_QUOTA_S));
    }
    response
}

/// Says in the headers of an answer that its caller is over its rate, and for how long: `RateLimit` as the draft of the
/// IETF has it.
pub(super) fn say_when(response: &mut Response, wait_ms: u64) {
    let seconds = wait_ms.div_ceil(1000);
    let limit = HeaderValue::try_from(format!("\"calls\";r=0;t={seconds}"));
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    headers.insert(RATE_LIMIT, limit.expect("digits and signs are visible"));
}

/// 401, 429 or 503: the credentials do not hold, or are not looked at.
pub(super) fn denied(denied: Denied) -> Response {
    let reason = denied.to_string();
    let error = match denied {
        Denied::Limited { retry_after_ms } => RpcError::busy(&reason, retry_after_ms),
        Denied::Unavailable => RpcError::busy(&reason, RETRY_AFTER_MS),
        Denied::Missing
        | Denied::Malformed
        | Denied::Unknown
        | Denied::Expired
        | Denied::Revoked => RpcError::unauthorized(&reason),
    };
    denied_with(denied, error_body(&error))
}

/// The same with another body.
pub(super) fn denied_with(denied: Denied, body: impl Into<Body>) -> Response {
    let (status, challenge) = match denied {
        Denied::Missing => (StatusCode::UNAUTHORIZED, Some(CHALLENGE)),
        Denied::Malformed | Denied::Unknown | Denied::Expired | Denied::Revoked => {
            (StatusCode::UNAUTHORIZED, Some(CHALLENGE_INVALID))
        }
        Denied::Limited { .. } => (StatusCode::TOO_MANY_REQUESTS, None),
        Denied::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, None),
    };
    let mut response = json(status, body);
    // For doors that say it in words of their own.
    response.extensions_mut().insert(denied);
    let headers = response.headers_mut();
    if let Some(challenge) = challenge {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    if let Denied::Limited { retry_after_ms } = denied {
        headers.insert(
            RETRY_AFTER,
            HeaderValue::from(retry_after_ms.div_ceil(1000)),
        );
    }
    response
}

/// The same, and nothing more is read from the connection.
pub(super) fn denied_unread(denied: Denied) -> Response {
    let mut response = self::denied(denied);
    close(&mut response);
    response
}

/// 405; `allow` lists the methods that the path has.
pub(super) fn method_not_allowed(method: &str, allow: &'static str) -> Response {
    let mut response = refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "method",
        "this path does not take this HTTP method",
        allow,
        &Value::from(method),
    );
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// 401: the caller is no node of this cluster.
pub(super) fn not_a_node() -> Response {
    refuse(
        StatusCode::UNAUTHORIZED,
        "authorization",
        "not a node of this cluster",
        "the secret of the database that this server uses",
        &Value::Null,
    )
}

/// 421: the flow of a call belongs to another node.
pub(super) fn not_here() -> Response {
    refuse(
        StatusCode::MISDIRECTED_REQUEST,
        "flow",
        "this node does not own the flow",
        "a call to its owner",
        &Value::Null,
    )
}

/// 404.
pub(super) fn not_found(path: &str) -> Response {
    nothing_at(
        path,
        "POST / for calls, which GET /openrpc.json describes; GET /events and /ws for streams; POST /a2a and /a2a/rest/ for Agent2Agent; GET /.well-known/agent-card, /livez, /readyz, /healthz",
    )
}

/// 404 at an address for agents, which is often taken for that of the server: `url`, if the operator has made it
/// public. Who sends neither JSON nor gRPC is told in plain text.
pub(super) fn of_agents(
    headers: &HeaderMap,
    path: &str,
    expected: &str,
    url: Option<&str>,
) -> Response {
    const GRPC: &str = "application/grpc";
    let media_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let place = url.unwrap_or("the server's own address");
    let reason = format!(
        "this address speaks gRPC, for agents of the broker; JSON-RPC and everything else is at {place}"
    );
    if media_type.is_some_and(|it| is_json(it) || it.starts_with(GRPC)) {
        let actual = Value::from(path);
        return refuse(StatusCode::NOT_FOUND, "path", &reason, expected, &actual);
    }
    let mut response = Response::new(Body::from(format!("{reason}; expected here: {expected}\n")));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// 404; `expected` lists what there is.
pub(super) fn nothing_at(path: &str, expected: &str) -> Response {
    refuse(
        StatusCode::NOT_FOUND,
        "path",
        "there is nothing at this path",
        expected,
        &Value::from(path),
    )
}

fn refuse(
    status: StatusCode,
    field: &str,
    reason: &str,
    expected: &str,
    actual: &Value,
) -> Response {
    let violation = Violation::of(field, reason, expected, actual);
    let error = RpcError::new(ErrorKind::InvalidRequest, vec![violation]);
    json(status, error_body(&error))
}

/// What follows on the connection cannot be trusted to be a request.
fn close(response: &mut Response) {
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn json_media_types_are_known_in_every_spelling() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json;charset=UTF-8",
            "application/json; charset=\"utf-8\"",
            "application/json-rpc",
            "application/json; profile=x",
        ] {
            assert!(is_json(good), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonx",
            "application/json; charset=latin1",
            "text/json",
        ] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
