//! How the server serves.

use super::{
    A2aConfig, AuthConfig, BrokerConfig, EngineConfig, LimitsConfig, LogConfig, OidcConfig,
    RetentionConfig, TlsConfig, seconds, seconds_in,
};
use crate::tls::Certificates;
use crate::transport::http;
use clap::Args;
use ipnet::IpNet;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Settings of `taskledger serve`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ServerConfig {
    /// Address to listen on; port 0 takes a free one
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "TASKLEDGER_LISTEN",
        default_value = "127.0.0.1:8000",
        value_parser = listen
    )]
    pub listen: String,

    /// Address of this server as others see it, for the agent card
    #[arg(
        long,
        value_name = "URL",
        env = "TASKLEDGER_PUBLIC_URL",
        value_parser = public_url
    )]
    pub public_url: Option<String>,

    /// Other agents.
    #[command(flatten)]
    pub a2a: A2aConfig,

    /// Encryption of connections.
    #[command(flatten)]
    pub tls: TlsConfig,

    /// Address under which the other nodes of the database reach this server: http://HOST:PORT or
    /// https://HOST:PORT; default: the address that it listens on
    #[arg(
        long,
        value_name = "URL",
        env = "TASKLEDGER_NODE_URL",
        value_parser = node_url
    )]
    pub node_url: Option<String>,

    /// Address of a second listener for monitoring, without credentials: GET /metrics and the probes; none unless given
    #[arg(
        long = "admin-listen",
        value_name = "HOST:PORT",
        env = "TASKLEDGER_ADMIN_LISTEN",
        value_parser = listen
    )]
    pub admin_listen: Option<String>,

    /// Answer GET /metrics on the listener of calls too
    #[arg(long = "metrics", env = "TASKLEDGER_METRICS")]
    pub metrics: bool,
    /// Additional certificate authorities (PEM) for https connections to other nodes
    #[arg(
        id = "node_ca",
        long = "node-ca",
        value_name = "FILE",
        env = "TASKLEDGER_NODE_CA"
    )]
    pub node_ca: Option<PathBuf>,

    /// Seconds that a request may take
    #[arg(
        long = "request-timeout",
        value_name = "SECONDS",
        env = "TASKLEDGER_REQUEST_TIMEOUT",
        default_value = "30",
        value_parser = |text: &str| seconds(text, 3600)
    )]
    pub request_timeout: Duration,

    /// Seconds that attempts in progress have to finish before the server stops; 0: they are interrupted at once
    #[arg(
        long = "drain-timeout",
        value_name = "SECONDS",
        env = "TASKLEDGER_DRAIN_TIMEOUT",
        default_value = "30",
        value_parser = |text: &str| seconds_in(text, 0, 86_400)
    )]
    pub drain_timeout: Duration,

    /// Seconds that requests have to finish when the server stops
    #[arg(
        long = "shutdown-grace",
        value_name = "SECONDS",
        env = "TASKLEDGER_SHUTDOWN_GRACE",
        default_value = "10",
        value_parser = |text: &str| seconds(text, 600)
    )]
    pub shutdown_grace: Duration,

    /// Connections at once; more wait until one closes
    #[arg(
        long = "max-connections",
        value_name = "N",
        env = "TASKLEDGER_MAX_CONNECTIONS",
        default_value_t = http::CONNECTIONS_MAX as u32,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub connections_max: u32,

    /// Event streams and sockets at once; more are answered 429
    #[arg(
        long = "max-streams",
        value_name = "N",
        env = "TASKLEDGER_MAX_STREAMS",
        default_value_t = http::STREAMS_MAX as u32,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub streams_max: u32,

    /// Origin of browser pages that may use the server, such as `https://app.example`; can be repeated
    #[arg(
        long = "allow-origin",
        value_name = "ORIGIN",
        env = "TASKLEDGER_ALLOW_ORIGIN",
        value_delimiter = ',',
        value_parser = origin
    )]
    pub allowed_origins: Vec<String>,

    /// Host name that clients may use for the server, such as `ledger.example`, besides localhost and its own
    /// address; can be repeated; `*` takes any.
    /// Default: any name, if the server listens beyond this machine
    #[arg(
        long = "allow-host",
        value_name = "NAME",
        env = "TASKLEDGER_ALLOW_HOST",
        value_delimiter = ',',
        value_parser = host
    )]
    pub allowed_hosts: Vec<String>,

    /// A reverse proxy, or a network of them, whose `X-Forwarded-For` or `Forwarded` header is trusted; may be repeated
    #[arg(
        long = "trusted-proxies",
        value_name = "NET",
        env = "TASKLEDGER_TRUSTED_PROXIES",
        value_delimiter = ',',
        value_parser = super::egress::net
    )]
    pub trusted_proxies: Vec<IpNet>,

    /// The agent broker.
    #[command(flatten)]
    pub broker: BrokerConfig,

    /// Where the data is and what may run.
    #[command(flatten)]
    pub engine: EngineConfig,

    /// Who may call.
    #[command(flatten)]
    pub auth: AuthConfig,

    /// Whose access tokens are accepted.
    #[command(flatten)]
    pub oidc: OidcConfig,

    /// How much one caller may ask.
    #[command(flatten)]
    pub limits: LimitsConfig,

    /// What leaves the log.
    #[command(flatten)]
    pub retention: RetentionConfig,

    /// What the program logs, and in which form.
    #[command(flatten)]
    pub log: LogConfig,
}

impl ServerConfig {
    /// Whether other machines can reach it; a name that cannot be looked up counts as one that they can.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        let mut listens = [Some(&self.listen), self.broker.listen.as_ref()]
            .into_iter()
            .flatten();
        listens.any(|listen| {
            let addresses = listen.to_socket_addrs();
            addresses.map_or(true, |mut all| {
                all.any(|address| !address.ip().is_loopback())
            })
        })
    }

    /// Where other nodes reach this one, which listens at `listens`, a URL.
    #[must_use]
    pub fn node_url(&self, listens: &str) -> String {
        self.node_url.clone().unwrap_or_else(|| listens.to_owned())
    }

    /// Whether other nodes would not find this one: it listens on all addresses and names none.
    #[must_use]
    pub fn hides_from_nodes(&self) -> bool {
        let listens = self.listen.parse::<SocketAddr>();
        self.node_url.is_none() && listens.is_ok_and(|address| address.ip().is_unspecified())
    }

    /// The part that concerns the HTTP server, which shows this certificate.
    #[must_use]
    pub fn http(&self, tls: Option<Arc<Certificates>>) -> http::Options {
        http::Options {
            tls,
            listen: self.listen.clone(),
            public_url: self.public_url.clone(),
            a2a: self.a2a.options(Default::default(), Arc::default()),
            metrics: self.metrics,
            connections_max: self.connections_max as usize,
            streams_max: self.streams_max as usize,
            allowed_origins: self.allowed_origins.clone(),
            allowed_hosts: self.allowed_hosts.clone(),
            trusted_proxies: self.trusted_proxies.clone(),
            request_timeout: self.request_timeout,
            shutdown_grace: self.shutdown_grace,
            broker: self.broker.options(),
            ..http::Options::default()
        }
    }
}

impl ServerConfig {
    /// The part that concerns the listener for monitoring, if there is one.
    #[must_use]
    pub fn admin(&self) -> Option<http::Options> {
        Some(self.monitoring(self.admin_listen.clone()?))
    }

    /// The part that concerns the listener for monitoring of the agent broker, if there is one.
    #[must_use]
    pub fn broker_metrics(&self) -> Option<http::Options> {
        Some(self.monitoring(self.broker.metrics_listen.clone()?))
    }

    fn monitoring(&self, listen: String) -> http::Options {
        http::Options {
            listen,
            public_url: None,
            allowed_origins: Vec::new(),
            ..self.http(None)
        }
    }
}

pub(super) fn listen(text: &str) -> Result<String, String> {
    let port = text
        .rsplit_once(':')
        .filter(|(host, _)| !host.is_empty())
        .and_then(|(_, port)| port.parse::<u16>().ok());
    match port {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected HOST:PORT, for example 127.0.0.1:8000".to_owned()),
    }
}

fn origin(text: &str) -> Result<String, String> {
    let expected = "expected SCHEME://HOST[:PORT], for example https://app.example";
    http::origin(text).ok_or_else(|| expected.to_owned())
}

fn host(text: &str) -> Result<String, String> {
    let expected = "expected a name or an address without a port, for example ledger.example, or *";
    http::host(text).ok_or_else(|| expected.to_owned())
}

fn public_url(text: &str) -> Result<String, String> {
    let parsed = reqwest::Url::parse(text).ok();
    let plain = parsed.filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && (url.username(), url.password()) == ("", None)
            && (url.query(), url.fragment()) == (None, None)
    });
    let expected = "expected http[s]://HOST[:PORT][/PATH] and nothing else, for example https://ledger.example";
    plain
        .map(|_| text.to_owned())
        .ok_or_else(|| expected.to_owned())
}

fn node_url(text: &str) -> Result<String, String> {
    let parsed = reqwest::Url::parse(text).ok();
    let known = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    match parsed.filter(known) {
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
        None => Err("expected http[s]://HOST:PORT, for example http://10.0.0.1:8000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{ServerConfig, listen, node_url};
    use clap::Parser;
    use std::time::Duration;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        config: ServerConfig,
    }

    #[test]
    fn nodes_reach_each_other_over_http_with_tls_or_without() {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://node1:8000");
            assert_eq!(node_url(&format!("{url}/")), Ok(url));
        }
        for bad in ["", "node1:8000", "https://", "http://", "ftp://x"] {
            assert!(node_url(bad).is_err(), "{bad}");
        }
        let config = parse(&[]).expect("the defaults are valid");
        let own = "https://127.0.0.1:8001";
        assert_eq!(config.node_url(own), own);
    }

    fn parse(arguments: &[&str]) -> Result<ServerConfig, clap::Error> {
        Command::try_parse_from([&["x"], arguments].concat()).map(|command| command.config)
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for good in ["127.0.0.1:8000", "localhost:0", "[::1]:80"] {
            assert!(listen(good).is_ok(), "{good}");
        }
        for bad in ["", "8000", ":8000", "host", "host:99999", "host:http"] {
            assert!(listen(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn flags_are_typed_and_bounded() {
        let config = parse(&[
            "--request-timeout",
            "5",
            "--allow-command",
            "git",
            "--allow-command",
            "make",
            "--executor-limit",
            "a=1",
            "--executor-limit",
            "b=2",
            "--log-format",
            "json",
        ])
        .unwrap();
        assert_eq!(config.request_timeout, Duration::from_secs(5));
        assert_eq!(config.engine.allowed_commands, ["git", "make"]);
        assert_eq!(config.engine.executor_limits.len(), 2);
        assert_eq!(config.http(None).request_timeout, Duration::from_secs(5));
        for bad in [
            ["--request-timeout", "0"],
            ["--request-timeout", "3601"],
            ["--executor-limit", "a"],
            ["--listen", "8000"],
            ["--max-connections", "0"],
            ["--max-streams", "0"],
            ["--broker-listen", "50051"],
            ["--broker-metrics-listen", ":8080"],
            ["--broker-message-bytes", "1024"],
            ["--broker-message-bytes", "100000000"],
            ["--broker-ttl", "0"],
            ["--allow-host", "http://a"],
            ["--allow-host", "a:80"],
            ["--allow-origin", "*"],
            ["--log-format", "xml"],
        ] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_broker_may_be_reachable_where_other_calls_are_not() {
        let reachable = |arguments: &[&str]| parse(arguments).unwrap().is_reachable();
        assert!(!reachable(&["--broker-listen", "127.0.0.1:50051"]));
        assert!(reachable(&["--broker-listen", "0.0.0.0:50051"]));
        let broker = parse(&["--broker-ttl", "60"]).unwrap().http(None).broker;
        assert_eq!(broker.ttl, Some(Duration::from_secs(60)));
        assert_eq!(broker.message_bytes_max, 4 * 1024 * 1024);
        assert_eq!(broker.listen, None);
    }

    #[test]
    fn who_listens_everywhere_must_say_where_nodes_find_it() {
        let hides = |arguments: &[&str]| parse(arguments).unwrap().hides_from_nodes();
        assert!(hides(&["--listen", "0.0.0.0:8000"]));
        assert!(hides(&["--listen", "[::]:8000"]));
        assert!(!hides(&["--listen", "10.0.0.1:8000"]));
        let named = ["--listen", "0.0.0.0:8000", "--node-url", "http://a:8000"];
        assert!(!hides(&named));
    }

    #[test]
    fn certificate_and_key_are_given_together() {
        assert_eq!(parse(&[]).unwrap().tls.files(), None);
        assert!(parse(&["--tls-cert", "c"]).is_err());
        assert!(parse(&["--tls-key", "k"]).is_err());
        let files = parse(&["--tls-cert", "c", "--tls-key", "k"]).unwrap().tls;
        let files = files.files().unwrap();
        assert_eq!((files.certificate, files.key), ("c".into(), "k".into()));
    }

    #[test]
    fn commands_are_off_by_default() {
        assert!(parse(&[]).unwrap().engine.allowed_commands.is_empty());
    }
}
