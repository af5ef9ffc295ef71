//! Decides which origins of browser pages may use this server.
//!
//! Without a list, pages of other origins may not: browsers keep answers from them, and sockets, which
//! browsers do not guard, are refused ([`super::hosts`]). An origin is never reflected.

use axum::http::Method;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};
use url::Url;

/// How long a browser need not ask again.
const PREFLIGHT_AGE: Duration = Duration::from_secs(600);

/// The form in which browsers send an origin; `None` for what is none.
#[must_use]
pub fn origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let named = url.username().is_empty() && url.password().is_none();
    let web = matches!(url.scheme(), "http" | "https");
    (web && bare && named).then(|| url.origin().ascii_serialization())
}

/// Lets pages of these origins read answers; `None` when there are none.
pub(super) fn cors(allowed: &[String]) -> Option<CorsLayer> {
    if allowed.is_empty() {
        return None;
    }
    let origins = allowed.iter().filter_map(|o| HeaderValue::from_str(o).ok());
    let named = |names: &'static [&'static str]| names.iter().map(|n| HeaderName::from_static(n));
    Some(
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(origins))
            .allow_methods([Method::GET, Method::POST])
            .allow_headers(
                [CONTENT_TYPE, AUTHORIZATION]
                    .into_iter()
                    .chain(named(&["last-event-id", "x-request-id"]))
                    .collect::<Vec<_>>(),
            )
            .expose_headers(
                named(&["x-request-id", "x-taskledger-cursor", "x-taskledger-reset"])
                    .collect::<Vec<_>>(),
            )
            .max_age(PREFLIGHT_AGE),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        let is = |text| origin(text);
        assert_eq!(
            is("https://App.example:443/").as_deref(),
            Some("https://app.example")
        );
        assert_eq!(
            is("http://localhost:3000").as_deref(),
            Some("http://localhost:3000")
        );
        for bad in [
            "",
            "*",
            "null",
            "app.example",
            "ftp://a",
            "http://a/b",
            "http://u@a",
            "http://a?b",
        ] {
            assert_eq!(is(bad), None, "{bad}");
        }
    }
}
