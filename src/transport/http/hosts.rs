//! Checks the header `Host` against the names of this server.
//!
//! A page can make a browser look its own name up as an address of this machine, and then reads answers
//! as if they came from the page's server. The name it uses stands in `Host`: whoever listens where only
//! this machine reaches it takes only names that are this machine's, or that the operator has named.

use super::options::Options;
use super::origins::origin;
use super::refusal;
use axum::http::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use axum::http::{Method, Uri, Version};
use axum::response::Response;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use url::{Host, Url};

/// Paths that are answered under any name: probes know addresses only, and nodes prove who they are.
const UNDER_ANY_NAME: [&str; 4] = [
    "/livez",
    "/readyz",
    "/healthz",
    crate::application::api::PEER_CALLS,
];
/// Set by browsers: how the page that sends a request is related to the server.
const SEC_FETCH_SITE: &str = "sec-fetch-site";
/// Stands for every name.
const ANY: &str = "*";

/// The form in which names are compared; `None` for what is none. A port is no part of it.
#[must_use]
pub fn host(text: &str) -> Option<String> {
    if text == ANY {
        return Some(text.to_owned());
    }
    let behind_brackets = text.rsplit_once(']').map_or(text, |(_, rest)| rest);
    if behind_brackets.contains([':', '*']) {
        return None;
    }
    let url = Url::parse(&format!("http://{text}/")).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let named = url.username().is_empty() && url.password().is_none();
    let host = url.host_str()?.trim_end_matches('.');
    (bare && named && !host.is_empty()).then(|| host.to_owned())
}

/// The names under which this server is asked.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    /// `None`: any.
    names: Option<Vec<String>>,
    /// `Host` in the form that most clients send.
    usual: String,
    /// Origins of pages that may use the server: those that were named, and its own as far as they are
    /// known before somebody asks.
    origins: Vec<String>,
}

impl Hosts {
    /// The names of a server that listens at `local`. Who listens for others is reached by names that
    /// only the operator knows, so these are looked at when some were given.
    pub(super) fn new(options: &Options, local: SocketAddr) -> Self {
        let public = options.public_url.as_deref();
        let public = public.and_then(|url| Url::parse(url).ok());
        let given = &options.allowed_hosts;
        let any = given.iter().any(|name| name == ANY);
        let names =
            (!any && (local.ip().to_canonical().is_loopback() || !given.is_empty())).then(|| {
                let listens = options.listen.rsplit_once(':').map(|(name, _)| name);
                let of_public = public.as_ref().and_then(Url::host_str);
                let own = [listens, of_public].into_iter().flatten();
                let own = own.filter_map(host).chain([shown(local.ip())]);
                let mut names: Vec<String> = own.chain(given.iter().cloned()).collect();
                names.sort_unstable();
                names.dedup();
                names
            });
        let mut origins = options.allowed_origins.clone();
        let of_public = public.map(|url| url.origin().ascii_serialization());
        origins.extend(of_public.and_then(|text| origin(&text)));
        if !local.ip().is_unspecified() {
            origins.extend(origin(&options.url(local)));
        }
        if local.ip().to_canonical().is_loopback() {
            let scheme = options.scheme();
            origins.extend(origin(&format!("{scheme}://localhost:{}", local.port())));
        }
        Self {
            names,
            usual: local.to_string(),
            origins,
        }
    }

    /// The refusal of a request before any door reads it: 400 without one valid name of a host, 421 under a name that
    /// is not this server's, 403 for a change that a page of another origin makes the browser send. The last holds
    /// while
    /// `is_open`: without credentials, a browser sends all that a call needs.
    pub(super) fn refusal_of<B>(
        &self,
        request: &axum::http::Request<B>,
        is_open: bool,
    ) -> Option<Response> {
        let headers = request.headers();
        if let Err((reason, actual)) = one_host(request.version(), request.uri(), headers) {
            return Some(refusal::bad_host(reason, &actual));
        }
        if let Some(refusal) = self.refusal(request.uri(), headers) {
            return Some(refusal);
        }
        let is_foreign = is_open && may_change(request.method()) && !self.admits_page(headers);
        is_foreign.then(|| refusal::foreign_change(headers))
    }

    /// Whether a change comes from a program, from a page of this server, or from an allowed page. Browsers leave
    /// `Origin` out of some requests, and describe those in `Sec-Fetch-Site`.
    fn admits_page(&self, headers: &HeaderMap) -> bool {
        if headers.contains_key(ORIGIN) {
            return headers.get_all(ORIGIN).iter().count() == 1 && self.admits_origin(headers);
        }
        let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
        matches!(site, None | Some(b"same-origin" | b"none"))
    }

    /// 421 for a request under a name that is not ours. Cost: O(1) for the usual name.
    pub(super) fn refusal(&self, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
        let names = self.names.as_ref()?;
        let mut given = headers.get_all(HOST).iter().peekable();
        let of_target = uri.authority().map(|authority| authority.as_str());
        if of_target.is_none() {
            // Only programs of old leave it out; browsers never do.
            given.peek()?;
        }
        let given = given.map(|value| value.to_str().unwrap_or_default());
        let foreign = given
            .chain(of_target)
            .find(|given| *given != self.usual && !believed(names, given))?;
        if UNDER_ANY_NAME.contains(&uri.path()) {
            return None;
        }
        Some(refusal::foreign_host(foreign, names))
    }

    /// Whether a request comes from a program, from a page of this server, or from an allowed page. That
    /// its origin is the name it was asked under says something only where names are looked at.
    pub(super) fn admits_origin(&self, headers: &HeaderMap) -> bool {
        let Some(given) = headers.get(ORIGIN) else {
            return true;
        };
        let Some(given) = given.to_str().ok().and_then(origin) else {
            return false;
        };
        let is_own = || {
            let asked = headers.get(HOST).and_then(|host| host.to_str().ok());
            asked.is_some_and(|host| {
                let is = |scheme| origin(&format!("{scheme}://{host}")).as_ref() == Some(&given);
                // In front of a name of the network, a proxy may speak TLS.
                is("http") || (is("https") && !believed(&[], host))
            })
        };
        self.origins.contains(&given) || (self.names.is_some() && is_own())
    }
}

/// Whether a request by this method may change something: all but the safe ones (RFC 9110, 9.2.1).
fn may_change(method: &Method) -> bool {
    !method.is_safe()
}

/// Checks that a request names one host (RFC 9112, 3.2; RFC 9113, 8.3.1). Only HTTP/1.0 may leave the name out.
fn one_host(
    version: Version,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), (&'static str, String)> {
    let mut given = headers.get_all(HOST).iter();
    let first = given.next();
    if given.next().is_some() {
        let all = headers.get_all(HOST).iter();
        let all = all.map(|value| String::from_utf8_lossy(value.as_bytes()));
        return Err(("the header is repeated", all.collect::<Vec<_>>().join(", ")));
    }
    match first {
        Some(value) if !value.to_str().is_ok_and(is_authority) => Err((
            "the name of the host is not valid",
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )),
        None if version == Version::HTTP_11 => Err(("the header is missing", String::new())),
        None if version == Version::HTTP_2 && uri.authority().is_none() => Err((
            "the header is missing, and so is `:authority`",
            String::new(),
        )),
        Some(_) | None => Ok(()),
    }
}

/// Whether a text is a host with or without a port, and nothing more (RFC 9110, 7.2).
fn is_authority(text: &str) -> bool {
    let Ok(authority) = text.parse::<axum::http::uri::Authority>() else {
        return false;
    };
    let port = text.strip_prefix(authority.host()).unwrap_or_default();
    !authority.host().is_empty()
        && !text.contains('@')
        && (port.is_empty() || port == ":" || authority.port_u16().is_some())
}

/// Whether `given`, a name with or without a port, is this machine's or one of `names`.
fn believed(names: &[String], given: &str) -> bool {
    let Ok(url) = Url::parse(&format!("http://{given}/")) else {
        return false;
    };
    let plain = url.path() == "/" && url.username().is_empty() && url.password().is_none();
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => is_loopback(address),
        None => false,
    };
    let name = url.host_str().unwrap_or_default().trim_end_matches('.');
    plain && (is_loopback || names.iter().any(|own| own == name))
}

fn is_loopback(address: Ipv6Addr) -> bool {
    let mapped = address.to_ipv4_mapped();
    address.is_loopback() || mapped.is_some_and(|address| address.is_loopback())
}

/// An address as a URL has it.
fn shown(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn hosts(listen: &str, given: &[&str], public_url: Option<&str>) -> Hosts {
        let options = Options {
            listen: listen.to_owned(),
            allowed_hosts: given.iter().map(|name| (*name).to_owned()).collect(),
            public_url: public_url.map(str::to_owned),
            allowed_origins: vec!["https://app.example".to_owned()],
            ..Options::default()
        };
        let listens = listen.replace("localhost", "127.0.0.1");
        Hosts::new(&options, listens.parse().unwrap())
    }

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        headers
    }

    fn takes(hosts: &Hosts, host: &str) -> bool {
        let uri = Uri::from_static("/events");
        hosts.refusal(&uri, &headers(host, None)).is_none()
    }

    #[test]
    fn who_listens_for_this_machine_is_asked_under_its_names() {
        let hosts = hosts(
            "127.0.0.1:8000",
            &["ledger.example"],
            Some("https://pub.example/x"),
        );
        for own in [
            "127.0.0.1:8000",
            "127.0.0.1",
            "127.1.2.3:9",
            "localhost",
            "LOCALHOST:8000",
            "a.localhost.",
            "[::1]:8000",
            "[::ffff:127.0.0.1]",
            "pub.example",
            "Ledger.Example:443",
        ] {
            assert!(takes(&hosts, own), "{own}");
        }
        for foreign in [
            "evil.example:8000",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "10.0.0.1:8000",
            "[::2]",
            "evil@127.0.0.1",
            "127.0.0.1/x",
            "",
        ] {
            assert!(!takes(&hosts, foreign), "{foreign}");
        }
    }

    #[test]
    fn who_listens_for_others_looks_at_names_when_some_were_given() {
        assert!(takes(&hosts("0.0.0.0:8000", &[], None), "whatever"));
        assert!(takes(
            &hosts("0.0.0.0:8000", &[], Some("https://a")),
            "whatever"
        ));
        let named = hosts("0.0.0.0:8000", &["ledger.example"], Some("https://a"));
        assert!(
            takes(&named, "ledger.example:80") && takes(&named, "a") && takes(&named, "localhost")
        );
        assert!(!takes(&named, "evil.example"));
        assert!(takes(
            &hosts("127.0.0.1:8000", &["*"], None),
            "evil.example"
        ));
    }

    #[test]
    fn probes_and_nodes_come_under_any_name_and_some_programs_under_none() {
        let hosts = hosts("127.0.0.1:8000", &[], None);
        for path in UNDER_ANY_NAME {
            let uri = path.parse().unwrap();
            assert!(hosts.refusal(&uri, &headers("t", None)).is_none(), "{path}");
        }
        let uri = Uri::from_static("/");
        assert!(hosts.refusal(&uri, &HeaderMap::new()).is_none());
        // HTTP/2 has the name in the target; both count.
        let uri = Uri::from_static("http://evil.example/");
        assert!(hosts.refusal(&uri, &HeaderMap::new()).is_some());
        assert!(hosts.refusal(&uri, &headers("localhost", None)).is_some());
    }

    #[test]
    fn a_request_names_one_host() {
        let hosts = hosts("0.0.0.0:8000", &[], None);
        let status = |version: Version, uri: &str, given: &[&str]| {
            let mut request = axum::http::Request::builder().version(version).uri(uri);
            for host in given {
                request = request.header(HOST, *host);
            }
            let refusal = hosts.refusal_of(&request.body(()).unwrap(), true);
            refusal.map(|refusal| refusal.status().as_u16())
        };
        for (version, uri, given, expected) in [
            (Version::HTTP_11, "/", &["a"][..], None),
            (Version::HTTP_11, "/", &["a:80"], None),
            (Version::HTTP_11, "/", &["[::1]:80"], None),
            (Version::HTTP_11, "/", &["xn--bcher-kva.example."], None),
            (Version::HTTP_11, "/", &[], Some(400)),
            (Version::HTTP_11, "/livez", &[], Some(400)),
            (Version::HTTP_11, "/", &[""], Some(400)),
            (Version::HTTP_11, "/", &[":80"], Some(400)),
            (Version::HTTP_11, "/", &["a", "a"], Some(400)),
            (Version::HTTP_11, "/", &["a", "b"], Some(400)),
            (Version::HTTP_11, "/", &["a b"], Some(400)),
            (Version::HTTP_11, "/", &["u@a"], Some(400)),
            (Version::HTTP_11, "/", &["a/x"], Some(400)),
            (Version::HTTP_11, "/", &["a:80x"], Some(400)),
            (Version::HTTP_11, "/", &["a:99999"], Some(400)),
            (Version::HTTP_11, "http://a/", &[], Some(400)),
            (Version::HTTP_10, "/", &[], None),
            (Version::HTTP_10, "/", &["a", "a"], Some(400)),
            (Version::HTTP_2, "http://a/", &[], None),
            (Version::HTTP_2, "http://a/", &["a", "b"], Some(400)),
            (Version::HTTP_2, "/", &[], Some(400)),
        ] {
            assert_eq!(
                status(version, uri, given),
                expected,
                "{version:?} {uri} {given:?}"
            );
        }
    }

    #[test]
    fn without_credentials_pages_of_other_origins_change_nothing() {
        let hosts = hosts("127.0.0.1:8000", &[], None);
        let request = |method: &str, added: &[(&str, &str)]| {
            let mut request = axum::http::Request::builder().method(method).uri("/x");
            for (name, value) in [("host", "127.0.0.1:8000")].iter().chain(added) {
                request = request.header(*name, *value);
            }
            request.body(()).unwrap()
        };
        for (method, added, expected) in [
            ("POST", &[][..], None),
            ("POST", &[("origin", "http://127.0.0.1:8000")], None),
            ("POST", &[("origin", "https://app.example")], None),
            (
                "POST",
                &[
                    ("origin", "https://app.example"),
                    ("sec-fetch-site", "cross-site"),
                ],
                None,
            ),
            ("POST", &[("sec-fetch-site", "same-origin")], None),
            ("POST", &[("sec-fetch-site", "none")], None),
            ("POST", &[("origin", "https://evil.example")], Some(403)),
            ("POST", &[("origin", "null")], Some(403)),
            ("POST", &[("origin", "http://127.0.0.1:8001")], Some(403)),
            (
                "POST",
                &[
                    ("origin", "https://app.example"),
                    ("origin", "https://evil.example"),
                ],
                Some(403),
            ),
            ("POST", &[("sec-fetch-site", "cross-site")], Some(403)),
            ("POST", &[("sec-fetch-site", "same-site")], Some(403)),
            ("DELETE", &[("origin", "https://evil.example")], Some(403)),
            ("PUT", &[("origin", "https://evil.example")], Some(403)),
            // A page cannot read the answer.
            ("GET", &[("origin", "https://evil.example")], None),
            ("OPTIONS", &[("origin", "https://evil.example")], None),
        ] {
            let request = request(method, added);
            let status = |is_open| {
                let refusal = hosts.refusal_of(&request, is_open);
                refusal.map(|refusal| refusal.status().as_u16())
            };
            assert_eq!(status(true), expected, "{method} {added:?}");
            assert_eq!(status(false), None, "with credentials: {method} {added:?}");
        }
    }

    #[test]
    fn names_have_one_form() {
        assert_eq!(host("Ledger.Example.").as_deref(), Some("ledger.example"));
        assert_eq!(host("[::1]").as_deref(), Some("[::1]"));
        assert_eq!(host("*").as_deref(), Some("*"));
        for bad in [
            "",
            "a:80",
            "http://a",
            "a/b",
            "u@a",
            "a b",
            "*.example",
            "[::1]:80",
        ] {
            assert_eq!(host(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_page_of_another_origin_is_not_admitted() {
        let local = hosts("127.0.0.1:8000", &[], Some("https://pub.example/base"));
        let open = hosts("0.0.0.0:8000", &[], None);
        let at = hosts("10.0.0.1:8000", &[], None);
        let own = "127.0.0.1:8000";
        for (hosts, asked, origin, admitted) in [
            (&local, own, None, true),
            (&local, own, Some("http://127.0.0.1:8000"), true),
            (
                &local,
                "localhost:8000",
                Some("http://localhost:8000"),
                true,
            ),
            (&local, own, Some("https://app.example"), true),
            (&local, own, Some("https://pub.example"), true),
            // Another scheme is another origin.
            (&local, own, Some("https://127.0.0.1:8000"), false),
            (&local, own, Some("http://pub.example"), false),
            (&local, own, Some("https://app.example.evil"), false),
            (&local, own, Some("http://127.0.0.1:8001"), false),
            (&local, own, Some("null"), false),
            // Where any name is taken, that both are the same says nothing.
            (
                &open,
                "evil.example:8000",
                Some("http://evil.example:8000"),
                false,
            ),
            (&open, "a", Some("https://app.example"), true),
            (&at, "a", Some("http://10.0.0.1:8000"), true),
        ] {
            assert_eq!(
                hosts.admits_origin(&headers(asked, origin)),
                admitted,
                "{asked} {origin:?}"
            );
        }
    }
}
