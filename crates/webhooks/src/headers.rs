//! The headers that callers may add to requests.
//!
//! Owns: the rules for names and values. What speaks for the server, what frames a message, and what
//! the server itself sends cannot be set.

use http::{HeaderName, HeaderValue};

/// Headers of one endpoint.
pub const HEADERS_MAX: usize = 20;
/// Bytes of a value.
pub const VALUE_BYTES_MAX: usize = 4096;
/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 255;
/// What is accepted as a name.
pub const NAME_EXPECTED: &str = "a header name that is not the server's own (no host, content-*, webhook-*, proxy-*, traceparent, ..)";
/// What is accepted as a value.
pub const VALUE_EXPECTED: &str =
    "1 to 4096 printable ASCII characters, no line break, no space at the ends";

/// Names that cannot be set.
const REFUSED: [&str; 19] = [
    "accept-encoding",
    "baggage",
    "cache-control",
    "connection",
    "date",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];
/// Beginnings of names that cannot be set.
const REFUSED_BEGINNINGS: [&str; 4] = ["content-", "proxy-", "webhook-", "sec-"];

/// A name in lower case.
///
/// # Errors
/// What is wrong with it.
pub fn name(text: &str) -> Result<String, &'static str> {
    if text.len() > NAME_BYTES_MAX {
        return Err("too long");
    }
    let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| "not a header name")?;
    let name = name.as_str();
    let begins = |beginning: &&str| name.starts_with(beginning);
    if REFUSED.contains(&name) || REFUSED_BEGINNINGS.iter().any(begins) {
        return Err("not a header that can be set");
    }
    Ok(name.to_owned())
}

/// Checks a value.
///
/// # Errors
/// What is wrong with it; never repeats it.
pub fn value(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("empty");
    }
    if text.len() > VALUE_BYTES_MAX {
        return Err("too long");
    }
    let plain = text
        .bytes()
        .all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
    if !plain || text.trim() != text || HeaderValue::from_str(text).is_err() {
        return Err("not a header value");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_the_servers_own_are_refused_in_any_case() {
        for bad in [
            "Host",
            "WEBHOOK-signature",
            "webhook-id",
            "content-length",
            "Content-Type",
            "Transfer-Encoding",
            "proxy-authorization",
            "TraceParent",
            "user-agent",
            "a b",
            "a:b",
            "",
            "x\r\ny",
        ] {
            assert!(name(bad).is_err(), "{bad}");
        }
        assert_eq!(name("Authorization").as_deref(), Ok("authorization"));
        assert_eq!(name("X-Api-Key").as_deref(), Ok("x-api-key"));
    }

    #[test]
    fn values_cannot_begin_another_line() {
        for bad in [
            "a\r\nhost: b",
            "a\nb",
            "a\0",
            "ä",
            " a",
            "",
            &"a".repeat(4097),
        ] {
            assert!(value(bad).is_err(), "{bad}");
        }
        assert_eq!(value("Bearer a.b-c=="), Ok(()));
        assert_eq!(value(&"a".repeat(4096)), Ok(()));
    }
}
