//! The message when no server answers: which option named it, or which proxy stands before it.

use super::{Target, is_loopback};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;

/// What has named a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Named {
    /// An option or a variable.
    #[default]
    Given,
    /// This context.
    Context(String),
    /// Nothing: it is the default.
    Default,
}

impl Named {
    /// What somebody can do when nobody answers there.
    pub(super) fn advice(&self) -> String {
        let start = "`taskledger serve` starts a server on this machine";
        match self {
            Self::Given => format!("{start}; --url, TASKLEDGER_URL or --context name another one"),
            Self::Context(name) => format!(
                "it is the server of the context `{name}`; {start}, --url names another one and `taskledger context use` \
                 another context"
            ),
            Self::Default => format!(
                "no server was named, so this is the default; {start}, --url names another one, and `taskledger context \
                 add` keeps it"
            ),
        }
    }
}

/// A proxy, and what has named it.
pub(super) struct Proxy {
    /// Scheme, host and port: the rest may be a secret.
    place: String,
    of: &'static str,
}

impl Proxy {
    /// Whether it is spoken to in TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.place.starts_with("https://")
    }

    /// The message that the proxy does not answer in TLS. `url` is reached in TLS as well, so it may be that one, if it
    /// is one of `https`.
    pub(super) fn is_not_tls(&self, url: &Url) -> String {
        let Self { place, of } = self;
        let plain = place.replacen("https://", "http://", 1);
        match url.scheme() {
            "https" => format!(
                "the proxy {place} of {of}, or {url} behind it, does not speak TLS; perhaps the proxy is {plain}"
            ),
            _ => format!("the proxy {place} of {of} does not speak TLS; perhaps it is {plain}"),
        }
    }

    /// The message that no connection to `url` is possible through the proxy.
    pub(super) fn broken(&self, url: &Url, reason: &str) -> String {
        let Self { place, of } = self;
        // It has answered, and said no.
        match reason.contains("tunnel") {
            true => format!("the proxy {place} of {of} does not reach {url}: {reason}"),
            false => format!(
                "cannot reach the proxy {place} of {of}, through which requests to {url} go: {reason}"
            ),
        }
    }
}

impl Target {
    /// The proxy through which requests go.
    pub(super) fn proxy(&self) -> Option<Proxy> {
        if let Some(proxy) = &self.given.proxy {
            let host = proxy.host_str().unwrap_or_default();
            let port = proxy.port_or_known_default().unwrap_or_default();
            return Some(Proxy {
                place: format!("{}://{host}:{port}", proxy.scheme()),
                of: self.given.proxy_of,
            });
        }
        if is_loopback(&self.url) {
            return None;
        }
        let found = Matcher::from_env().intercept(&self.url.as_str().parse().ok()?)?;
        let uri = found.uri();
        let place = format!(
            "{}://{}",
            uri.scheme_str().unwrap_or("http"),
            // Credentials stand before the last `@`.
            uri.authority()?.as_str().rsplit('@').next()?
        );
        let own: &[&'static str] = match self.url.scheme() {
            "https" => &["HTTPS_PROXY", "https_proxy"],
            _ => &["HTTP_PROXY", "http_proxy"],
        };
        let is_set = |name: &&&'static str| std::env::var(**name).is_ok_and(|it| !it.is_empty());
        let of = own.iter().chain(&["ALL_PROXY", "all_proxy"]).find(is_set);
        Some(Proxy {
            place,
            of: of.copied().unwrap_or("the environment"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Given;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    /// What is said of a request to `url` through a proxy of `https` that speaks plain HTTP; and where that listens.
    async fn said(url: &str) -> (String, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let answers = tokio::spawn(async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let refusal = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
                let _ = connection.write_all(refusal).await;
            }
        });
        let given = Given {
            proxy: Some(Url::parse(&format!("https://{place}")).unwrap()),
            proxy_of: "--proxy",
            ..Given::default()
        };
        let target = Target::new(url, given).unwrap();
        let request = target.client(None).unwrap().get(url).send().await;
        let said = target.broken(&request.unwrap_err());
        answers.abort();
        (said, place)
    }

    #[tokio::test]
    async fn a_proxy_that_does_not_speak_tls_is_blamed_for_it_and_not_the_server() {
        let (text, place) = said("http://127.0.0.1:9").await;
        assert_eq!(
            text,
            format!(
                "the proxy https://{place} of --proxy does not speak TLS; perhaps it is http://{place}"
            )
        );
        let (text, place) = said("https://ledger.example").await;
        assert_eq!(
            text,
            format!(
                "the proxy https://{place} of --proxy, or https://ledger.example/ behind it, does not speak TLS; \
                 perhaps the proxy is http://{place}"
            )
        );
    }
}
