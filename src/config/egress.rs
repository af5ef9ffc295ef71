//! Which receivers this server may call.

use crate::egress::{self, BuildError, HostPattern, Policy, SystemLookup};
use clap::Args;
use ipnet::IpNet;
use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use url::Url;

/// Settings of every request that the server sends: webhooks, `http_executor`, `a2a_executor`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct EgressConfig {
    /// A network that may be called although it is not public, for example `10.1.0.0/16`; may be repeated
    #[arg(
        id = "egress_allow_net",
        long = "egress-allow-net",
        value_name = "NET",
        env = "TASKLEDGER_EGRESS_ALLOW_NET",
        value_delimiter = ',',
        value_parser = net
    )]
    pub allow_nets: Vec<IpNet>,

    /// A host that may be in a private network, `name` or `*.name`; may be repeated
    #[arg(
        id = "egress_allow_host",
        long = "egress-allow-host",
        value_name = "PATTERN",
        env = "TASKLEDGER_EGRESS_ALLOW_HOST",
        value_delimiter = ','
    )]
    pub allow_hosts: Vec<HostPattern>,

    /// A host that is never called, `name` or `*.name`; may be repeated; takes precedence over the other options
    #[arg(
        id = "egress_deny_host",
        long = "egress-deny-host",
        value_name = "PATTERN",
        env = "TASKLEDGER_EGRESS_DENY_HOST",
        value_delimiter = ','
    )]
    pub deny_hosts: Vec<HostPattern>,

    /// Plain http to public addresses too; without it only to allowed networks and hosts
    #[arg(
        id = "egress_allow_http",
        long = "egress-allow-http",
        env = "TASKLEDGER_EGRESS_ALLOW_HTTP"
    )]
    pub allow_http: bool,

    /// Proxy of all outgoing requests, which then decides about addresses: http://HOST:PORT
    #[arg(
        id = "egress_proxy",
        long = "egress-proxy",
        value_name = "URL",
        env = "TASKLEDGER_EGRESS_PROXY",
        hide_env_values = true
    )]
    pub proxy: Option<ProxyUrl>,

    /// Additional certificate authorities (PEM) for outgoing requests
    #[arg(
        id = "egress_ca_file",
        long = "egress-ca-file",
        value_name = "FILE",
        env = "TASKLEDGER_EGRESS_CA_FILE"
    )]
    pub ca_file: Option<PathBuf>,

    /// DNS server for outgoing requests, instead of the system's
    #[arg(
        id = "egress_dns",
        long = "egress-dns",
        value_name = "SERVER:PORT",
        env = "TASKLEDGER_EGRESS_DNS"
    )]
    pub dns: Option<SocketAddr>,

    /// Where this server listens: never called. Not a setting of its own.
    #[arg(skip)]
    pub own: Vec<SocketAddr>,
}

impl EgressConfig {
    /// What the client of outgoing requests is made of.
    ///
    /// # Errors
    /// [`BuildError`]: the proxy or the name servers cannot be used.
    pub fn options(&self) -> Result<egress::Options, BuildError> {
        let resolver = match self.dns {
            Some(server) => SystemLookup::of_server(server),
            None => SystemLookup::of_the_system(),
        }?;
        let policy = Policy {
            allow_nets: self.allow_nets.clone(),
            allow_hosts: self.allow_hosts.clone(),
            deny_hosts: self.deny_hosts.clone(),
            allow_http: self.allow_http,
            proxy: self.proxy.as_ref().map(ProxyUrl::parsed).transpose()?,
            own: self.own.clone(),
        };
        Ok(egress::Options {
            ca_file: self.ca_file.clone(),
            ..egress::Options::new(policy, Arc::new(resolver))
        })
    }
}

/// A network, or one address.
pub(super) fn net(text: &str) -> Result<IpNet, String> {
    let one = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse::<IpNet>()
        .map(|net| net.trunc())
        .or_else(|_| one())
        .map_err(|_| "expected a network or an address, for example 10.1.0.0/16".to_owned())
}

/// A proxy, whose URL may hold a password: it is read where it is used, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl(String);

impl ProxyUrl {
    fn parsed(&self) -> Result<Url, BuildError> {
        let usable = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let url = Url::parse(&self.0).map_err(|_| BuildError::Proxy)?;
        let known = BuildError::PROXY_SCHEMES_KNOWN.into_iter();
        match known.into_iter().find(|scheme| *scheme == url.scheme()) {
            Some(scheme) => Err(BuildError::ProxyScheme { scheme }),
            None if usable(&url) => Ok(url),
            None => Err(BuildError::Proxy),
        }
    }

    /// Its host and port, if it names a proxy.
    pub(crate) fn address(&self) -> Option<(String, u16)> {
        let url = self.parsed().ok()?;
        // Without the brackets of an IPv6 address.
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        Some((host, url.port_or_known_default()?))
    }
}

impl FromStr for ProxyUrl {
    type Err = Infallible;

    // What is wrong with it is said later: clap would repeat the value, password included.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyUrl(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::EgressConfig;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        egress: EgressConfig,
    }

    fn parse(words: &[&str]) -> Result<EgressConfig, clap::Error> {
        Command::try_parse_from([&["x"], words].concat()).map(|command| command.egress)
    }

    #[test]
    fn without_settings_only_public_receivers_with_https_are_allowed() {
        let policy = parse(&[]).unwrap().options().unwrap().policy;
        assert_eq!(policy, crate::egress::Policy::default());
    }

    #[test]
    fn networks_and_hosts_are_typed() {
        let config = parse(&[
            "--egress-allow-net",
            "10.1.2.3/16,127.0.0.1",
            "--egress-allow-net",
            "fd00::/8",
            "--egress-allow-host",
            "*.Internal",
            "--egress-deny-host",
            "bad.internal",
            "--egress-dns",
            "127.0.0.1:5353",
        ])
        .unwrap();
        let nets: Vec<_> = config.allow_nets.iter().map(ToString::to_string).collect();
        assert_eq!(nets, ["10.1.0.0/16", "127.0.0.1/32", "fd00::/8"]);
        assert_eq!(config.allow_hosts[0].to_string(), "*.internal");
        for bad in [
            ["--egress-allow-net", "10.0.0.0/33"],
            ["--egress-allow-net", "example.com"],
            ["--egress-allow-host", "*"],
            ["--egress-deny-host", "a.*.b"],
            ["--egress-dns", "127.0.0.1"],
        ] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_proxy_of_another_kind_is_named_with_what_is_expected() {
        let socks = parse(&["--egress-proxy", "socks5://u:hunter2@proxy:1080"]).unwrap();
        assert_eq!(
            socks.options().err().unwrap().to_string(),
            "--egress-proxy: proxies of scheme `socks5` are not supported, expected http://HOST:PORT or \
             https://HOST:PORT"
        );
    }

    #[test]
    fn a_password_of_the_proxy_is_never_shown() {
        let config = parse(&["--egress-proxy", "http://u:hunter2@proxy:3128"]).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        let policy = config.options().unwrap().policy;
        assert!(!format!("{policy:?}").contains("hunter2"));
        for bad in [
            "ftp://u:hunter2@proxy",
            "socks5://hunter2:1080",
            "hunter2:3128",
        ] {
            let options = parse(&["--egress-proxy", bad]).unwrap().options();
            let error = options.err().unwrap().to_string();
            assert!(
                error.contains("expected http://") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }
}
