//! Finds the client's address for a request that a reverse proxy has passed on.
//!
//! Only what a proxy says that the operator trusts counts, and of that only what no client can have written: the
//! addresses are read from the right, each being what the proxy before it saw.

use axum::http::header::{FORWARDED, HeaderMap, HeaderName};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Proxies that a request may have passed; of more, nothing is believed.
const PROXIES_MAX: usize = 16;

/// The proxies that are trusted; by default none.
#[derive(Debug, Clone, Default)]
pub(super) struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Those in these networks.
    pub(super) const fn new(nets: Vec<IpNet>) -> Self {
        Self(nets)
    }

    /// The address of the client: that of the connection, unless it is a trusted proxy's that names another one.
    /// What cannot be read, or says two different things, is as if it were not there. Cost: O(1) without proxies.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if self.0.is_empty() || !self.trusts(peer) {
            return peer;
        }
        let passed_on = self.named(headers, &X_FORWARDED_FOR, address);
        let forwarded = self.named(headers, &FORWARDED, forwarded_for);
        match (passed_on, forwarded) {
            (Named::One(one), Named::Nobody) | (Named::Nobody, Named::One(one)) => one,
            (Named::One(one), Named::One(other)) if one == other => one,
            _ => peer,
        }
    }

    fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|net| net.contains(&address))
    }

    /// The address that a header names: the right-most one that is not a trusted proxy's.
    fn named(
        &self,
        headers: &HeaderMap,
        header: &HeaderName,
        read: fn(&str) -> Option<IpAddr>,
    ) -> Named {
        let mut proxies = 0;
        let mut named = Named::Nobody;
        // The values of a header that is repeated are one list.
        for value in headers.get_all(header).iter().rev() {
            let Ok(text) = value.to_str() else {
                return Named::Unreadable;
            };
            for item in text.rsplit(',') {
                let Some(address) = read(item.trim()) else {
                    return Named::Unreadable;
                };
                named = Named::One(address);
                proxies += 1;
                if !self.trusts(address) {
                    return named;
                }
                if proxies == PROXIES_MAX {
                    return Named::Unreadable;
                }
            }
        }
        named
    }
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Nobody,
    One(IpAddr),
    Unreadable,
}

/// An address, perhaps with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || Some(text.parse::<SocketAddr>().ok()?.ip());
    let parsed: Option<IpAddr> = text.parse().ok();
    let parsed = parsed.or_else(bare).or_else(with_port);
    parsed.map(|address| address.to_canonical())
}

/// The address in one element of `Forwarded`, such as `for="[2001:db8::1]:4711";proto=https` (RFC 7239).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    let node = node.trim();
    let quoted = node
        .strip_prefix('"')
        .and_then(|node| node.strip_suffix('"'));
    address(quoted.unwrap_or(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = "203.0.113.9";

    fn client(peer: &str, headers: &[(&'static str, &str)]) -> String {
        let nets = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse().expect("a network"));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        let proxies = TrustedProxies::new(nets.to_vec());
        let peer = peer.parse().expect("an address");
        proxies.client(peer, &map).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let named = [("x-forwarded-for", CLIENT)];
        assert_eq!(client("10.0.0.1", &named), CLIENT);
        assert_eq!(client("::ffff:10.0.0.1", &named), CLIENT);
        assert_eq!(client("192.0.2.1", &named), "192.0.2.1");
        let nobody = TrustedProxies::default();
        let peer = "10.0.0.1".parse().expect("an address");
        assert_eq!(nobody.client(peer, &HeaderMap::new()), peer);
    }

    #[test]
    fn the_right_most_address_that_is_no_proxy_counts() {
        for value in [
            "203.0.113.9",
            "198.51.100.1, 203.0.113.9",
            "198.51.100.1,203.0.113.9 , 10.0.0.7,fd00::1",
            "garbage, 203.0.113.9",
            "203.0.113.9:4711",
        ] {
            assert_eq!(
                client("10.0.0.1", &[("x-forwarded-for", value)]),
                CLIENT,
                "{value}"
            );
        }
        let twice = [
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-for", CLIENT),
        ];
        assert_eq!(client("10.0.0.1", &twice), CLIENT);
        let inside = [("x-forwarded-for", "10.0.0.5, 10.0.0.7")];
        assert_eq!(client("10.0.0.1", &inside), "10.0.0.5");
    }

    #[test]
    fn forwarded_is_read_as_its_standard_says() {
        for (value, expected) in [
            ("for=203.0.113.9;proto=https;by=10.0.0.1", CLIENT),
            (
                "For=198.51.100.1, proto=https; for=\"203.0.113.9:80\"",
                CLIENT,
            ),
            ("for=\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("for=\"[2001:db8::1]\"", "2001:db8::1"),
        ] {
            assert_eq!(
                client("10.0.0.1", &[("forwarded", value)]),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_counts_as_the_proxy() {
        let many = ["10.0.0.7"; PROXIES_MAX + 1].join(",");
        for value in [
            "",
            "unknown",
            "203.0.113.9, ",
            "203.0.113.9 198.51.100.1",
            &many,
        ] {
            let found = client("10.0.0.1", &[("x-forwarded-for", value)]);
            assert_eq!(found, "10.0.0.1", "{value}");
        }
        for value in ["for=unknown", "for=_hidden", "proto=https", "203.0.113.9"] {
            let found = client("10.0.0.1", &[("forwarded", value)]);
            assert_eq!(found, "10.0.0.1", "{value}");
        }
        let differ = [
            ("x-forwarded-for", CLIENT),
            ("forwarded", "for=198.51.100.1"),
        ];
        assert_eq!(client("10.0.0.1", &differ), "10.0.0.1");
        let agree = [
            ("x-forwarded-for", CLIENT),
            ("forwarded", "for=203.0.113.9"),
        ];
        assert_eq!(client("10.0.0.1", &agree), CLIENT);
    }
}
