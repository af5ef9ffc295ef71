//! The policy of allowed receivers: settings of the operator over the rules for addresses.

use super::nets;
use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;
use url::{Host, Url};

/// The rules for allowed receivers. Without settings: `https` to public addresses only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Networks that are allowed although they are not public; plain `http` is allowed to them.
    pub allow_nets: Vec<IpNet>,
    /// Names that may be in private networks and on this machine, and be spoken to by plain `http`.
    /// Link-local and reserved addresses stay forbidden for them.
    pub allow_hosts: Vec<HostPattern>,
    /// Names that are never called, whatever else says so.
    pub deny_hosts: Vec<HostPattern>,
    /// Plain `http` to anybody who is allowed.
    pub allow_http: bool,
    /// All requests go through it, and it decides which addresses are allowed: the server does not
    /// look names up then.
    pub proxy: Option<Url>,
    /// Addresses of this server, which are never called.
    pub own: Vec<SocketAddr>,
}

/// How a request would be made, as far as rules look at it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The host as the URL has it, without a trailing dot.
    pub(super) host: &'a str,
    pub(super) port: u16,
    /// `http`, not `https`.
    pub(super) plain: bool,
}

impl Policy {
    /// Whether an address may be dialled.
    pub(super) fn allows(&self, wanted: Wanted<'_>, address: IpAddr) -> bool {
        let address = nets::unmapped(address);
        let listed_net = nets::hold(&self.allow_nets, address);
        let listed_host = self.lists(wanted.host);
        let reachable =
            listed_net || nets::is_public(address) || (listed_host && nets::is_private(address));
        let encrypted_enough = !wanted.plain || self.allow_http || listed_net || listed_host;
        reachable
            && encrypted_enough
            && !self.denies(wanted.host)
            && !self.is_own(SocketAddr::new(address, wanted.port))
    }

    /// Whether plain `http` could be allowed to a host. The addresses of a name are not known yet: if
    /// some are allowed, the lookup decides; behind a proxy there is none.
    pub(super) fn may_be_plain(&self, host: &str, literal: Option<IpAddr>) -> bool {
        let listed_net = match literal {
            Some(address) => nets::hold(&self.allow_nets, address),
            None => self.proxy.is_none() && !self.allow_nets.is_empty(),
        };
        self.allow_http || listed_net || self.lists(host)
    }

    /// Whether the operator has named this host as allowed.
    pub(super) fn lists(&self, host: &str) -> bool {
        self.allow_hosts.iter().any(|pattern| pattern.matches(host))
    }

    /// Whether the operator has named this host as forbidden.
    pub(super) fn denies(&self, host: &str) -> bool {
        self.deny_hosts.iter().any(|pattern| pattern.matches(host))
    }

    pub(super) fn is_own(&self, address: SocketAddr) -> bool {
        self.own.iter().any(|own| {
            own.port() == address.port()
                && (nets::unmapped(own.ip()) == address.ip()
                    || (own.ip().is_unspecified() && is_of_this_machine(address.ip())))
        })
    }
}

impl fmt::Debug for Policy {
    /// Without the URL of the proxy, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("allow_nets", &self.allow_nets)
            .field("allow_hosts", &self.allow_hosts)
            .field("deny_hosts", &self.deny_hosts)
            .field("allow_http", &self.allow_http)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

/// Only an address of this machine can be bound to.
fn is_of_this_machine(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// `name` for one host, `*.name` for every host below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// Lower case, in the form that URLs have.
    name: String,
    below: bool,
}

impl HostPattern {
    /// Whether a host, as a URL has it, is meant.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        if !self.below {
            return host == self.name;
        }
        host.strip_suffix(&self.name)
            .is_some_and(|front| front.len() > 1 && front.ends_with('.'))
    }
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected `name` or `*.name`, for example `*.example.com`".to_owned();
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        // The same normal form as in URLs: letters in lower case, names of other alphabets encoded.
        let host = match Host::parse(name) {
            Ok(Host::Domain(domain)) if !domain.contains('*') => domain,
            Ok(host @ (Host::Ipv4(_) | Host::Ipv6(_))) if !below => host.to_string(),
            Ok(Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_)) | Err(_) => return Err(expected()),
        };
        let name = host.strip_suffix('.').unwrap_or(&host).to_owned();
        if name.is_empty() {
            return Err(expected());
        }
        Ok(Self { name, below })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = if self.below { "*." } else { "" };
        write!(f, "{below}{}", self.name)
    }
}
