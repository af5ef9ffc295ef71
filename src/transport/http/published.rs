//! A document that stays the same while the server runs, with what caches need to know of it.

use super::door::json;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use axum::response::Response;

/// How long a cache need not ask again. Short, because a new version of the server has another
/// document under the same address; asking again costs 304 and no body.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// A document and its entity tag.
pub(super) struct Published {
    text: Bytes,
    etag: HeaderValue,
}

impl Published {
    /// `etag`: a strong tag, quotes included.
    pub(super) fn new(text: &str, etag: &str) -> Self {
        Self {
            text: Bytes::copy_from_slice(text.as_bytes()),
            etag: HeaderValue::from_str(etag).expect("a tag is quoted hexadecimal digits"),
        }
    }

    /// 200 with the document, or 304 for a reader that has it.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response {
        let mut response = if self.is_known(headers) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            json(StatusCode::OK, self.text.clone())
        };
        let headers = response.headers_mut();
        headers.insert(ETAG, self.etag.clone());
        headers.insert(CACHE_CONTROL, FRESH);
        response
    }

    /// Compared weakly, as RFC 9110 asks of `If-None-Match`.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let ours = self.etag.as_bytes();
        headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .any(|tag| tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == ours)
    }
}
