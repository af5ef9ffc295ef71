//! A document that does not change while the server runs, with its headers for caches.

use super::json::json;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use axum::response::Response;
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime};
use taskledger_domain::Timestamp;

/// How long a cache need not ask again. Short, because a new version of the server has another
/// document under the same address; asking again costs 304 and no body.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// A document and its entity tag.
pub(super) struct Published {
    text: Bytes,
    etag: HeaderValue,
    /// Since when it is so, if that is told.
    modified: Option<HeaderValue>,
}

impl Published {
    /// `etag`: a strong tag, quotes included.
    pub(super) fn new(text: &str, etag: &str) -> Self {
        Self {
            text: Bytes::copy_from_slice(text.as_bytes()),
            etag: HeaderValue::from_str(etag).expect("a tag is quoted hexadecimal digits"),
            modified: None,
        }
    }

    /// A document that is as it is since then; its tag is a hash of it.
    pub(super) fn hashed(text: &str, since: Timestamp) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        let hex: String = digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let seconds = u64::try_from(since.0.div_euclid(1_000_000)).unwrap_or_default();
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let modified = HeaderValue::from_str(&httpdate::fmt_http_date(since)).ok();
        Self {
            modified,
            ..Self::new(text, &format!("\"{hex}\""))
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
        if let Some(modified) = &self.modified {
            headers.insert(LAST_MODIFIED, modified.clone());
        }
        response
    }

    /// Whether a reader without a tag has it as it is since then.
    fn is_since(&self, headers: &HeaderMap) -> bool {
        let time = |value: Option<&HeaderValue>| {
            let text = value.and_then(|it| it.to_str().ok());
            text.and_then(|it| httpdate::parse_http_date(it).ok())
        };
        let ours = time(self.modified.as_ref());
        let theirs = time(headers.get(IF_MODIFIED_SINCE));
        matches!((ours, theirs), (Some(ours), Some(theirs)) if ours <= theirs)
    }

    /// Compared weakly, as RFC 9110 asks of `If-None-Match`.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        if !headers.contains_key(IF_NONE_MATCH) {
            return self.is_since(headers);
        }
        let ours = self.etag.as_bytes();
        headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .any(|tag| tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == ours)
    }
}
