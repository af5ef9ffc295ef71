//! `GET /` in a browser: a page that says what this server is, and where to go next.
//!
//! The page is one text that asks for nothing else: no script, no picture, no font. Programs get the answer of
//! the door for calls, as before.

use axum::body::Body;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Method, StatusCode};
use axum::response::Response;

/// Nothing is loaded but the style in the page itself, by its hash; nobody may frame it.
/// `sha256` of the text between `<style>` and `</style>`; a test computes it.
const POLICY: &str = "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44em;margin:3em auto;padding:0 1em;\
                     color-scheme:light dark}code,pre{font-family:ui-monospace,monospace}pre{overflow:auto}\
                     dt{font-weight:600}dd{margin:0 0 .6em}";

/// Whether this is somebody who looks at `/` with a browser: it asks for HTML by name.
pub(super) fn is_looking(method: &Method, headers: &HeaderMap) -> bool {
    let reads = *method == Method::GET || *method == Method::HEAD;
    reads
        && headers.get_all(ACCEPT).iter().any(|accept| {
            let accept = accept.to_str().unwrap_or_default();
            accept.split(',').any(|wanted| {
                let name = wanted.split(';').next().unwrap_or_default().trim();
                name.eq_ignore_ascii_case("text/html")
            })
        })
}

pub(super) fn page() -> Response {
    let mut response = Response::new(Body::from(text()));
    *response.status_mut() = StatusCode::OK;
    let policy = HeaderValue::from_str(&policy()).expect("a policy is ASCII");
    let set: [(HeaderName, HeaderValue); 6] = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (VARY, HeaderValue::from_static("accept")),
    ];
    response.headers_mut().extend(set);
    response
}

fn policy() -> String {
    use base64::Engine as _;
    use sha2::{Digest, Sha256};
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(STYLE));
    POLICY.replace("{hash}", &hash)
}

fn text() -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>taskledger</title>
<style>{STYLE}</style>
</head>
<body>
<h1>taskledger {version}</h1>
<p>This is the API of a task-orchestration server. It runs trees of tasks and keeps every change in a log.
Programs send JSON-RPC 2.0 calls to this address with <code>POST</code>.</p>
<dl>
<dt><a href="/openrpc.json">/openrpc.json</a></dt>
<dd>Every method with its parameters, results, errors and examples (OpenRPC).</dd>
<dt><a href="/healthz">/healthz</a></dt>
<dd>Whether the server is ready; <a href="/livez">/livez</a> says whether it is alive, and
<code>/readyz?verbose</code> what was checked.</dd>
<dt><a href="/.well-known/agent-card.json">/.well-known/agent-card.json</a></dt>
<dd>What an agent needs to know of this server (Agent2Agent).</dd>
<dt><code>/events</code> and <code>/ws</code></dt>
<dd>What happens, as it happens: server-sent events, and a WebSocket for calls and subscriptions.</dd>
</dl>
<p>From a shell:</p>
<pre>taskledger tasks list
taskledger run workflow.json
curl -H 'content-type: application/json' --data '{{"jsonrpc":"2.0","method":"tasks.list","id":1}}' THIS_ADDRESS</pre>
<h2>Documentation</h2>
<ul>
<li>This server describes its own methods, parameters and errors: <a href="/openrpc.json">/openrpc.json</a>.</li>
<li>The program: <code>taskledger --help</code>, <code>man taskledger</code>.</li>
<li>Guides and reference, beginning with <code>README.md</code> and <code>docs/quickstart.md</code>: in
<code>/usr/share/doc/taskledger</code> where the Debian package is installed, beside the program in an archive, and in the
source.</li>
</ul>
</body>
</html>
"#,
        version = env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_for_html_by_name_is_shown_the_page() {
        let looks = |method: Method, accept: &[&'static str]| {
            let values = accept.iter().map(|it| HeaderValue::from_static(it));
            let headers = values.map(|value| (ACCEPT, value)).collect();
            is_looking(&method, &headers)
        };
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert!(looks(Method::GET, &[browser]));
        assert!(looks(
            Method::HEAD,
            &["application/json", "Text/HTML; q=0.1"]
        ));
        assert!(!looks(Method::POST, &[browser]));
        for other in [&["*/*"][..], &["application/json"], &["text/plain"], &[]] {
            assert!(!looks(Method::GET, other), "{other:?}");
        }
    }

    #[test]
    fn the_page_loads_nothing() {
        let text = text();
        for loading in [
            "src=", "<script", "<link", "<img", "@import", "url(", "http://", "https://",
        ] {
            assert!(!text.contains(loading), "{loading}");
        }
        assert_eq!(text.matches("<style>").count(), 1);
    }

    #[test]
    fn the_page_leads_to_what_the_server_has_and_says_where_the_pages_lie() {
        let text = text();
        for path in [
            "/openrpc.json",
            "/healthz",
            "/livez",
            "/.well-known/agent-card.json",
        ] {
            assert!(text.contains(&format!("href=\"{path}\"")), "{path}");
        }
        for place in ["/usr/share/doc/taskledger", "docs/quickstart.md"] {
            assert!(text.contains(place), "{place}");
        }
    }
}
