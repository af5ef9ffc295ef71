//! Classifies addresses as public or not. Everything else is refused unless an operator allows it.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), bits)
}

/// IPv4 that is not the public internet (the registry of special addresses, RFC 6890).
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),       // this network
    v4(10, 0, 0, 0, 8),      // private
    v4(100, 64, 0, 0, 10),   // shared by carriers
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link-local, metadata of clouds
    v4(172, 16, 0, 0, 12),   // private
    v4(192, 0, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(192, 168, 0, 0, 16),  // private
    v4(198, 18, 0, 0, 15),   // benchmarks
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved, broadcast
];

/// The only part of IPv6 that is handed out for the internet; a list of exceptions would miss one.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Parts of [`GLOBAL_V6`] that are special all the same.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),      // protocol assignments: Teredo, ORCHID
    v6(0x2001, 0x0db8, 32), // documentation
    v6(0x2002, 0, 16),      // 6to4: carries an IPv4 address
    v6(0x3fff, 0, 20),      // documentation
];

/// Networks of an organization or of this machine: a name that an operator allows may be there.
const PRIVATE_V4: [Ipv4Net; 5] = [
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(172, 16, 0, 0, 12),
    v4(192, 168, 0, 0, 16),
];

/// The same in IPv6.
const PRIVATE_V6: [Ipv6Net; 2] = [
    v6(0xfc00, 0, 7),
    Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128),
];

/// An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`) is judged as what it is.
pub(super) fn unmapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Whether an address belongs to the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match unmapped(address) {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !SPECIAL_V6.iter().any(|net| net.contains(&address))
        }
    }
}

/// Whether an address is in a network of one's own, as opposed to link-local, multicast and reserved.
pub(super) fn is_private(address: IpAddr) -> bool {
    match unmapped(address) {
        IpAddr::V4(address) => PRIVATE_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => PRIVATE_V6.iter().any(|net| net.contains(&address)),
    }
}

/// Whether one of the networks holds the address.
pub(super) fn hold(nets: &[IpNet], address: IpAddr) -> bool {
    let address = unmapped(address);
    nets.iter().any(|net| net.contains(&address))
}
